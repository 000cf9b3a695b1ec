"""The tool ``run_command`` of agents that may only read: a command in a throwaway checkout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gsd_core import StepHost, some_of

from .answers import RunCommand, handler

OUTPUT_LIMIT = 1500
"""Characters of a command's output that the agent sees, from its end."""
CASES_LISTED = 40
"""Test cases of a command that the agent sees."""
MAX_COMMANDS = 30
"""Commands that an agent may run in one step."""


def command_runner(host: StepHost) -> Callable[[Mapping[str, Any]], Awaitable[str]]:
    """Return the function behind the tool, which runs at most :data:`MAX_COMMANDS` commands."""
    left = MAX_COMMANDS

    async def run_command(call: RunCommand) -> str:
        nonlocal left
        if not left:
            return f"{MAX_COMMANDS} commands have been run: give your answer now."
        left -= 1
        ran = await host.run_command(call.command)
        status = "It did not run to its end." if ran.exit is None else f"exit {ran.exit}"
        if ran.flaw:
            status += f", but it {ran.flaw}: it proves nothing"
        elif ran.passes_without:
            status += ", and the same without the work of this phase: it proves nothing about it"
        passed = [case.name for case in ran.cases if case.outcome == "passed"]
        cases = f"\ntest cases that passed: {some_of(passed, CASES_LISTED)}" if passed else ""
        return f"{status}{cases}\n{ran.output[-OUTPUT_LIMIT:]}".rstrip()

    return handler(RunCommand, run_command)
