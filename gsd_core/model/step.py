"""Steps: what is asked of an executor, what it returns, and what it may do meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from attrs import field, frozen

from gsd_core.planning.changes import Change
from gsd_core.planning.model import PhaseView, Plan, Planning, Task

from .agent import AgentResult, AgentTask
from .checks import CheckResult
from .gap import GapReport
from .ids import StepKind
from .question import Answer, Inquiry

Profile: TypeAlias = Literal["quality", "balanced", "budget"]
Depth: TypeAlias = Literal["quick", "standard", "comprehensive"]


@frozen(kw_only=True)
class Idea:
    """The idea document; *sha256* in hex is its identity."""

    name: str
    text: str
    sha256: str


@frozen(kw_only=True)
class StepRequest:
    """One attempt at one step; *id* and *run* are its identity, *attempt* (from 1) is stamped by the core.

    *project* is the project's root, *tree* the folder to work in (the same unless a workspace
    plugin made one). *report* is what detectors found (verify) or the gaps to plan for
    (plan, later rounds). *tasks_done* are the numbers of the plan's tasks that are committed.
    *now* is when the attempt began (aware UTC): the only clock a step needs; *began* is when the
    first attempt did, unless that is unknown.
    """

    id: str
    run: str
    kind: StepKind
    project: Path
    tree: Path
    attempt: int = 1
    phase: PhaseView | None = None
    plan: Plan | None = None
    round: int = 0
    idea: Idea | None = None
    report: GapReport | None = None
    tasks_done: tuple[int, ...] = ()
    profile: Profile = "balanced"
    depth: Depth = "standard"
    model: str = ""
    planning: Planning = field(factory=Planning)
    now: datetime
    began: datetime | None = None


@frozen(kw_only=True)
class FileWrite:
    """A whole file that the step owns; *path* is relative to the project's root."""

    path: str
    text: str


@frozen(kw_only=True)
class Done:
    """The step did what it was for."""


@frozen(kw_only=True)
class Verified:
    """A verify step's verdict; it passes only if the *report* does."""

    report: GapReport


Outcome: TypeAlias = Done | Verified


@frozen(kw_only=True)
class StepResult:
    """What a step produced; the core writes it. *subject* is the commit's first line."""

    subject: str
    outcome: Outcome = field(factory=Done)
    files: tuple[FileWrite, ...] = ()
    changes: tuple[Change, ...] = ()


@frozen(kw_only=True)
class TaskCommit:
    """What became of a task: its *commit*, or why there is none (*problem*, for the agent to mend).

    *paths* are what the commit changed, *created* those of them that are new, *at* is when it was made.
    """

    commit: str = ""
    paths: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    at: datetime | None = None
    check: CheckResult | None = None
    problem: str = ""


Accept: TypeAlias = Callable[[AgentResult], Sequence[str]]
Functions: TypeAlias = Mapping[str, Callable[[Mapping[str, Any]], Awaitable[str]]]


class StepHost(Protocol):
    """What a step may do; every call is recorded before its result is used.

    Calls are keyed: asked again after a crash, the answer is the record.
    """

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """Have an agent do *task*; *key* names the call within the step (``plan``, ``revise-1``).

        *accept* returns complaints about the answer (none: it is fine). They go back into the
        same conversation, at most twice; then the call is ``Permanent``ly rejected.
        *functions* are the implementations of ``task.functions``.
        """
        ...

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """Ask a human (or whoever answers); an answer for each question, in their order.

        Does not return if nobody can answer: the step is parked and entered again later.
        """
        ...

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str]) -> TaskCommit:
        """Run the task's check; if it passes, commit what changed with the task's trailers.

        A task that is committed already returns its commit. *paths* are what the agent says it
        changed; the core stages what did change.
        """
        ...

    async def check(self, command: str) -> CheckResult:
        """Run a command in the tree, through the permission gate."""
        ...


class RunStep(Protocol):
    """The rest of the chain around a step."""

    def __call__(self, step: StepRequest, /) -> Awaitable[StepResult]: ...
