"""An agent's host in memory: it permits, answers and replies by functions, and remembers what it was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from gsd_core.model.agent import Activity, Allow, Deny, Permission, ToolUse
from gsd_core.model.question import Answer, Question
from gsd_core.model.usage import Usage


def allow(use: ToolUse) -> Permission:
    """Permit every use."""
    return Allow()


def no_human(use: ToolUse, reason: str) -> Permission:
    """Deny what a human would have to confirm."""
    return Deny(reason=f"nobody is here to say yes: {reason}")


def recommended(question: Question) -> Answer:
    """Answer with the recommended option, else the first one, else with ``yes``."""
    ordered = sorted(question.options, key=lambda option: not option.recommended)
    if not ordered:
        return Answer(question=question.id, text="yes", by="test")
    return Answer(question=question.id, chosen=(ordered[0].label,), by="test")


def done(function: str, arguments: Mapping[str, Any]) -> str:
    """Reply to a call as the core does for a task that is committed."""
    return f"Task {arguments['task']} is committed (abc1234)." if function == "task_done" else "ok"


@define(kw_only=True)
class FakeAgentHost:
    """A :class:`gsd_core.AgentHost`; look at *uses*, *calls*, *activities* … afterwards.

    *policy* permits, *confirms* plays the human who is asked about a tool, *answers* the one who is
    asked a question, *replies* the task's functions.
    """

    policy: Callable[[ToolUse], Permission] = allow
    confirms: Callable[[ToolUse, str], Permission] = no_human
    answers: Callable[[Question], Answer] = recommended
    replies: Callable[[str, Mapping[str, Any]], str] = done
    environment: Mapping[str, str] = field(
        factory=lambda: {"GSD_RUN": "r-test", "GSD_STEP": "1/execute/01-01"}
    )
    uses: list[ToolUse] = field(factory=list[ToolUse], init=False)
    confirmed: list[tuple[ToolUse, str]] = field(factory=list[tuple[ToolUse, str]], init=False)
    questions: list[Question] = field(factory=list[Question], init=False)
    calls: list[tuple[str, Mapping[str, Any]]] = field(
        factory=list[tuple[str, Mapping[str, Any]]], init=False
    )
    activities: list[Activity] = field(factory=list[Activity], init=False)
    usages: list[Usage] = field(factory=list[Usage], init=False)
    pids: list[int] = field(factory=list[int], init=False)

    async def permit(self, use: ToolUse) -> Permission:
        """Say what the policy says."""
        self.uses.append(use)
        return self.policy(use)

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """Say what the human says."""
        self.confirmed.append((use, reason))
        return self.confirms(use, reason)

    async def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Answer each question."""
        self.questions.extend(questions)
        return [self.answers(question) for question in questions]

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """Reply as the task's function."""
        self.calls.append((function, arguments))
        return self.replies(function, arguments)

    async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
        """Remember the activity and the turn's use."""
        self.activities.append(activity)
        if usage is not None:
            self.usages.append(usage)

    def started(self, pid: int) -> None:
        """Remember the process."""
        self.pids.append(pid)
