"""Steps: the request to an executor, its result, and what the executor may do while it works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import attrs

from gsd_core.planning.changes import Change
from gsd_core.planning.model import PhaseView, Plan, Planning, Task

from .agent import AgentResult, AgentTask
from .checks import CheckResult, ReplacedBecause, ReplacedCheck
from .gap import Gap, GapReport
from .question import Answer, Inquiry, Question

Profile: TypeAlias = Literal["quality", "balanced", "budget", "adaptive", "inherit"]
Depth: TypeAlias = Literal["quick", "standard", "comprehensive"]


@attrs.frozen(kw_only=True)
class Idea:
    """The idea document; *sha256* (hex) of its text identifies it."""

    name: str
    text: str
    sha256: str


@attrs.frozen(kw_only=True)
class DeferredTask:
    """A task (its number in the plan) that the executor gave up, and why.

    What it had changed (*paths*) was taken back, and is kept in the commit *ref*; empty if nothing was.
    """

    task: int
    name: str
    reason: str
    ref: str = ""
    paths: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class StepRequest:
    """One attempt at one step; the core counts *attempt* from 1.

    *project* is the root of the project, *tree* the folder to work in: the same, unless a workspace
    plugin created another one. *report* is what the detectors found (verify), or the gaps to plan for
    (plan, from the second round on). *tasks_done* are the numbers of the plan's committed tasks.
    *now* is the start of this attempt (aware, UTC); use it instead of the clock, so that a step can be
    repeated. *began* is the start of the first attempt, if known. *retries* is how many attempts failed
    for a transient reason since the step last got an agent's answer, and *waited* how long it has waited
    because of an outage since then.

    *files* are the paths that git tracks, at most 20,000, and *programs* the names of common build tools
    that are installed; both are only given to plan, execute and verify steps.
    *last_failure* says how the last attempt at this step ended, if it failed or was interrupted, and
    *left_behind* are the files that it left uncommitted. *replaced_checks* are the decisions about the
    plan's checks that earlier attempts recorded (:meth:`StepHost.replace_check`). *complete* are the numbers
    of the phases that count as complete, which a check mark in ROADMAP.md alone does not decide.
    *deferred* are the plan's tasks that earlier attempts deferred (:meth:`StepHost.defer_task`).
    *will_be_verified*: the run verifies the phase later, so that the step may leave gaps and checks to that.
    *skip_discuss*: the user wants no questions about the phase; a discuss step decides by itself.
    *detail* is the milestone's version, or the name of a step that the user asked for, with the user's words
    in *text*.
    """

    id: str
    run: str
    kind: str
    project: Path
    tree: Path
    attempt: int = 1
    phase: PhaseView | None = None
    plan: Plan | None = None
    detail: str = ""
    text: str = ""
    round: int = 0
    idea: Idea | None = None
    report: GapReport | None = None
    tasks_done: tuple[int, ...] = ()
    profile: Profile = "balanced"
    depth: Depth = "standard"
    model: str = ""
    planning: Planning = attrs.field(factory=Planning)
    now: datetime
    began: datetime | None = None
    files: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    last_failure: str = ""
    left_behind: tuple[str, ...] = ()
    replaced_checks: tuple[ReplacedCheck, ...] = ()
    complete: tuple[str, ...] = ()
    skip_discuss: bool = False
    deferred: tuple[DeferredTask, ...] = ()
    will_be_verified: bool = False
    retries: int = 0
    waited: timedelta = timedelta(0)


@attrs.frozen(kw_only=True)
class FileWrite:
    """A complete file that the step returns; *path* is relative to the root of the project."""

    path: str
    text: str


@attrs.frozen(kw_only=True)
class FileMove:
    """A file or folder in ``.planning/`` that the step moves; paths are relative to the project's root.

    Nothing may be at *target*. A folder is moved with everything in it.
    """

    path: str
    target: str


@attrs.frozen(kw_only=True)
class Tag:
    """An annotated tag that the step's commit gets, unless another commit already has it."""

    name: str
    message: str


@attrs.frozen(kw_only=True)
class Done:
    """The step succeeded."""


@attrs.frozen(kw_only=True)
class Verified:
    """The outcome of a verify step; the phase passes only if its *report* does."""

    report: GapReport


@attrs.frozen(kw_only=True)
class Found:
    """A step of a plugin's own kind found *gaps* in its phase; they are added to the phase's verdict.

    The phase is then planned again for them, as for the gaps of a verification. Gaps of a step before
    ``end``, which has no phase, are reported: the run does not end with ``done`` while its last one has some.
    """

    gaps: tuple[Gap, ...] = ()


Outcome: TypeAlias = Done | Verified | Found


@attrs.frozen(kw_only=True)
class StepResult:
    """What a step produced. The core writes and commits it; *subject* is the first line of the message.

    *moved* and *removed* (paths of files) are done after the *files* are written; only paths in
    ``.planning/`` can be. What was not committed of a removed file is saved first.
    """

    subject: str
    outcome: Outcome = attrs.field(factory=Done)
    files: tuple[FileWrite, ...] = ()
    changes: tuple[Change, ...] = ()
    moved: tuple[FileMove, ...] = ()
    removed: tuple[str, ...] = ()
    tag: Tag | None = None


@attrs.frozen(kw_only=True)
class TaskCommit:
    """The *commit* of a task, or the *problem* that prevented it, in words for the agent that has to fix it.

    *paths* are the files that the commit changed, *created* those of them that are new and *deleted* those
    that are gone (a renamed file is one of each). *at* is its time, *note* what the agent said it did.
    *left* are files that changed during the step and that no task has named: they are in no commit. *undone*
    is what the agents of the step did that only the run may do, such as commits of their own, and that was
    undone; only for a task that was committed before.
    """

    commit: str = ""
    paths: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    at: datetime | None = None
    note: str = ""
    check: CheckResult | None = None
    problem: str = ""
    left: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()


Accept: TypeAlias = Callable[[AgentResult], Sequence[str]]
Functions: TypeAlias = Mapping[str, Callable[[Mapping[str, Any]], Awaitable[str]]]


class StepHost(Protocol):
    """What an executor may ask of the core. Every result is recorded before the executor gets it.

    An attempt that starts again after a crash makes the same calls and gets the recorded results.
    """

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """Have an agent do *task*; *key* identifies the call within the step (``plan``, ``revise-1``).

        *accept* returns what is wrong with the result; nothing means it is accepted. The complaints go
        back into the same conversation, at most twice; then a fresh conversation is tried. If that does
        not help either, the call fails with ``Permanent``. After a restart the recorded answer is judged
        again, so what *accept* returns must follow from the result alone: one that complains only so often
        looks at ``AgentResult.sent_back``.
        *functions* implement ``task.functions``, by name.
        """
        ...

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """Ask a human, or a plugin that answers; return one answer for each question, in the same order.

        If nobody can answer now, it raises an exception that ends the attempt: do not catch it. The step
        runs again when there are answers.
        """
        ...

    def answered(self) -> Sequence[tuple[Question, Answer]]:
        """Return what was asked for this step so far and answered, also in earlier attempts, oldest first.

        These are checkpoints, and the questions of the step's agents, but no requests for permission, and
        nothing that the core asks by itself.
        """
        ...

    async def begin_plan(self, plan: Plan) -> StepRequest:
        """Make *plan* the plan of a step that has none, and return the step with it.

        It is recorded: later attempts get it in ``StepRequest.plan``, with the numbers of the tasks that are
        committed, and another plan that they pass is ignored. Call it in each attempt before the first task;
        it also asks about uncommitted files that the plan lists.
        """
        ...

    async def find_gaps(self, phase: PhaseView) -> tuple[PhaseView, GapReport]:
        """Run the checks of the executed plans of *phase*, and ask the detectors, as before a verification.

        Returns the phase with the results of the checks. It need not be a phase of the roadmap.
        """
        ...

    async def check_before(self, task: Task) -> CheckResult:
        """Run the task's check before anything is done for the task; the result is recorded once.

        A check that passes now proves nothing about the task. Call it right before the task is begun.
        """
        ...

    async def replace_check(self, task: Task, check: str, reason: str, because: ReplacedBecause) -> None:
        """Record that *check* is the task's check from now on, in later attempts too.

        *task* is the plan's task with the check that the PLAN contains. The same command again means that
        it is kept for *reason*. Later attempts find the decision in ``StepRequest.replaced_checks``.
        """
        ...

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str], note: str = "") -> TaskCommit:
        """Run the task's check; if it passes, commit what belongs to the task, with the task's trailers.

        If the task is committed already, return that commit. *paths* are the files that the agent says
        it changed. The core commits what changed of them, of the task's own files, and of what the agent
        wrote with a tool. Every file that is named has to end up in the commit; otherwise there is a problem.
        *note* says what was done: it becomes the body of the commit's message.
        """
        ...

    async def defer_task(self, task: Task, reason: str, paths: Sequence[str] = ()) -> DeferredTask:
        """Record that the executor gives *task* up, and take back what it changed; a copy is kept.

        *paths* are the files that the agent says it changed for it. Later attempts find it in
        ``StepRequest.deferred``, unless an attempt fails. Only do this if ``StepRequest.will_be_verified``.
        """
        ...

    async def check(self, command: str) -> CheckResult:
        """Run a command in the tree if the permission policies allow it."""
        ...

    async def run_command(self, command: str) -> CheckResult:
        """Run a command for an agent, in a throwaway checkout of HEAD, if the permission policies allow it.

        Called by a function of an agent's task, it is recorded in the agent's conversation:
        ``AgentResult.uses`` then has ``ToolRecord(tool="run_command", target=command, exit=…)``.
        """
        ...


@attrs.frozen(kw_only=True)
class CompletedStep:
    """A step that the run has completed, with its *kind* and the time (aware, UTC)."""

    id: str
    kind: str
    at: datetime


@attrs.frozen(kw_only=True)
class StepSituation:
    """What decides whether a step of a plugin's kind is due: what is on disk, and what the run did.

    *phase* is ``None`` for a step of the project or the milestone. *completed* are the completed steps of the
    phase, or of the whole run if there is no phase, in the order in which they were completed. *idea* is the
    text of the idea document, if the run has one. *files* are the paths that git tracks, at most 20,000, if
    the project has no phases yet. *audit* and *close*: whether the milestone is to be audited, and closed,
    once all its phases are complete. *workflow* is the plugin whose way of executing steps the user chose.
    """

    project: Path
    planning: Planning
    phase: PhaseView | None = None
    completed: tuple[CompletedStep, ...] = ()
    files: tuple[str, ...] = ()
    depth: Depth = "standard"
    idea: str = ""
    audit: bool = False
    close: bool = False
    workflow: str = "native"


def never_due(situation: StepSituation) -> bool:
    """Return that a step is not due: it runs only when the user asks for it."""
    return False


@attrs.frozen(kw_only=True)
class StepType:
    """A kind of steps that a plugin adds to the lifecycle.

    *before* is its place: the step comes right before the next step of that kind in each phase; before
    ``init``, once for a new project; before ``end``, when all phases of the milestone are complete. Empty: it
    runs only when the user asks for it. *due* says whether it is needed, and has to become false when the
    step is complete: it is asked each time the project is observed, so it has to be quick and must not
    change anything. *writes* are patterns of the files that the step may return, relative to the project's
    root; ``{phase}`` is the phase's folder, ``{number}`` its number as in file names. *title* says in a few
    words what the step does. *asks_agent*: whether it may ask an agent; if not, none has to be
    logged in for it.
    """

    kind: str
    before: Literal["", "init", "discuss", "plan", "execute", "verify", "complete", "end"] = ""
    due: Callable[[StepSituation], bool] = never_due
    writes: tuple[str, ...] = ()
    title: str = ""
    asks_agent: bool = True


class RunStep(Protocol):
    """The next wrapper around a step, or the step itself."""

    def __call__(self, step: StepRequest, /) -> Awaitable[StepResult]:
        """Run one attempt at *step*, and return its result."""
        ...
