"""Run a plan's commands: through the gate, in the tree, bounded, with its output's end kept."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from gsd_core.agent import Allow, Permission, ToolUse
from gsd_core.checks import CheckResult, TaskCheck
from gsd_core.planning.model import PhaseView
from gsd_core.text import redact, sanitize

KEPT = 4000
PASSED_ON = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ",
    "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME",
    "NVM_DIR", "PYENV_ROOT",
)  # fmt: skip


class Judge(Protocol):
    """Who says whether a command may run: the gate of a step, or one at the desk.

    *mark* is what the command bears in its environment.
    """

    step: str

    @property
    def mark(self) -> str: ...

    async def decide(self, use: ToolUse) -> Permission:
        """Return whether the tool may be used; ``Ask`` counts as no."""
        ...


def environment(run: str) -> dict[str, str]:
    """Return what a command of a plan may see of ours, with the mark by which it is found after a crash."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"GSD_RUN": run}


async def check(gate: Judge, command: str, tree: Path, limit: timedelta) -> CheckResult:
    """Run *command* if the gate allows it; refused or too slow is a result without an exit code."""
    use = ToolUse(step=gate.step, name="Bash", input={"command": command}, asked_by="plan", tree=tree)
    verdict = await gate.decide(use)
    if not isinstance(verdict, Allow):
        return CheckResult(command=command, exit=None, output=f"refused: {verdict.reason}")
    return await _execute(command, tree, environment(gate.mark), limit)


async def _execute(command: str, tree: Path, env: Mapping[str, str], limit: timedelta) -> CheckResult:
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", command, cwd=tree, env=dict(env), start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    tail = bytearray()
    try:
        async with asyncio.timeout(limit.total_seconds()):
            await _drain(process, tail)
            code = await process.wait()
    except TimeoutError:
        return CheckResult(command=command, exit=None, output=f"{_text(tail)}\nstopped after {limit}")
    finally:
        _kill_group(process)
    return CheckResult(command=command, exit=code, output=_text(tail))


async def _drain(process: asyncio.subprocess.Process, tail: bytearray) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(65536):
        tail += chunk
        del tail[: -2 * KEPT]


def _kill_group(process: asyncio.subprocess.Process) -> None:
    """End whatever the command left behind; its group is its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(tail: bytearray) -> str:
    return redact(sanitize(bytes(tail).decode("utf-8", "replace")))[-KEPT:].strip()


async def check_plans(gate: Judge, phase: PhaseView, limit: timedelta) -> tuple[TaskCheck, ...]:
    """Run the checks of the phase's executed plans, each command once."""
    results: dict[str, CheckResult] = {}
    found: list[TaskCheck] = []
    for plan, task, command in _commands(phase):
        if command not in results:
            results[command] = await check(gate, command, phase.project, limit)
        found.append(TaskCheck(plan=plan, task=task, result=results[command]))
    return tuple(found)


def _commands(phase: PhaseView) -> Iterator[tuple[str, int, str]]:
    for plan in phase.plans:
        for task in plan.tasks:
            if plan.summary and task.check:
                yield plan.id, task.number, task.check
