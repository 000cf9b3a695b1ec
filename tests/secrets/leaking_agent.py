"""An agent for a real ``gsd run`` that emits every secret and every escape sequence in each channel.

It does the work of the fake agent, and adds its payload to all texts that only people read: activity,
questions, notes, plans, summaries, verdicts, errors of plugins, and log lines.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from gsd_core import (
    Activity,
    AgentHost,
    AgentResult,
    AgentTask,
    Answer,
    Event,
    Option,
    Outage,
    Permanent,
    Question,
    implements,
)
from gsd_core.hookspecs import gsd_on_event, gsd_run_agent
from gsd_plugins.rehearsal import FakeAgent, Scenario
from tests.e2e.project import EXAMPLE
from tests.sanitize.corpus import shapes
from tests.sanitize.sequences import SEQUENCES

ENVIRONMENT_SECRET = "correct-Horse7/battery=staple"
TEXT_KEYS = {
    *("summary", "core_value", "text", "what", "why", "feature", "action", "done", "objective"),
    *("evidence", "decisions", "issues", "deviations", "goal", "provides"),
}

fake = FakeAgent(Scenario(EXAMPLE.read_text("utf-8").strip() + "\n", phases=1, gap=False, overloaded=False))
down = list[int]()


def payloads() -> Iterator[str]:
    """Yield texts for ever: a few secrets and sequences at a time, so that no limit of length hides one."""
    secrets = [text for text, _ in shapes().values()] + [f"uses {ENVIRONMENT_SECRET}"]
    sequences = list(SEQUENCES.values())
    number = 0
    while True:
        some = [secrets[(number + offset) % len(secrets)] for offset in range(4)]
        escapes = [sequences[(number + offset) % len(sequences)] for offset in range(4)]
        # A sequence within the secret, too: the secret must not show once the sequence is gone.
        broken = f"{some[0][:9]}\x1b[0m\u200b{some[0][9:]}"
        yield "\n".join(["", *(a + b for a, b in zip(some, escapes, strict=True)), broken, ""])
        number += 4


PAYLOADS = payloads()


def loaded(value: Any, key: str = "") -> Any:
    """Return an answer with a payload in each of its texts."""
    if isinstance(value, Mapping):
        return {name: loaded(item, name) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [loaded(item, key) for item in cast("list[object]", value)]
    if isinstance(value, str) and value and key in TEXT_KEYS:
        return f"{value} {next(PAYLOADS)}"
    return value


class Host:
    """The agent's host, with payloads in what the agent sends."""

    def __init__(self, host: AgentHost) -> None:
        self._host = host

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    async def progress(self, activity: Activity, usage: Any = None) -> None:
        """Report the activity, then all payloads."""
        await self._host.progress(activity, usage)
        for _ in range(4):
            await self._host.progress(Activity(kind="text", text=next(PAYLOADS)))

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Ask the question, and one with payloads whose answer is used too."""
        options = (Option(label=f"Yes {next(PAYLOADS)}", description=next(PAYLOADS), recommended=True),)
        loud = Question(text=f"Sure? {next(PAYLOADS)}", header=next(PAYLOADS), options=options)
        await self._host.ask([loud])
        return await self._host.ask(questions)

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """Call the function with a payload in the note."""
        if "note" in arguments:
            arguments = {**arguments, "note": f"{arguments['note']} {next(PAYLOADS)}"}
        return await self._host.call(function, arguments)


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Do the task, loudly."""
    if os.environ.get("LEAKING_AGENT_FAILS"):
        raise Permanent(f"failed with {next(PAYLOADS)}", hint=f"use {next(PAYLOADS)}")
    if not down:
        down.append(1)
        raise Outage(f"overloaded {next(PAYLOADS)}")
    logging.getLogger("gsd_core.run.leak").warning("log line %s", next(PAYLOADS))
    result = await fake.run_agent(task, cast("AgentHost", Host(host)))
    assert result is not None
    return attrs.evolve(result, value=loaded(result.value))


@implements(gsd_on_event)
async def on_event(event: Event) -> None:
    """Fail, with a payload in the error."""
    if event.name == "step.completed":
        raise ValueError(f"broken {next(PAYLOADS)}")
