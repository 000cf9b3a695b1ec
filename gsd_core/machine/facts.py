"""The facts of a run's journal: for each kind a class, whose fields are the keys of its JSON data.

A field with a default may be missing in the journals of earlier versions. Those that are :data:`OPTIONAL` are
not written while they are ``None``. A name that is a keyword of Python, or is taken, ends with ``_`` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeAlias, TypeVar, cast, dataclass_transform

import attrs

from gsd_core.codec import structure
from gsd_core.errors import JournalError
from gsd_core.model.agent import Conversation, ToolRecord
from gsd_core.model.checks import CheckResult, ReplacedCheck
from gsd_core.model.question import Answer, Inquiry
from gsd_core.model.step import DeferredTask, Idea
from gsd_core.model.usage import Usage
from gsd_core.model.work_unit import WorkUnit
from gsd_core.planning.model import Plan

from .state import Claims, Closing, Failure, Options, Snapshot

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

OPTIONAL = {"omit": True}
"""The metadata of a field that is missing in the JSON data while it is ``None``."""

KIND_OF: dict[type[Any], str] = {}
"""The kind of each class of facts, as the journal has it."""

_CLASS_OF: dict[str, type[Any]] = {}


def registered(kind: str) -> Callable[[type[T]], type[T]]:
    """Register a class as that of the facts of a *kind*."""

    def register(found: type[T]) -> type[T]:
        KIND_OF[found], _CLASS_OF[kind] = kind, found
        return found

    return register


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attrs.field,))
def fact(kind: str) -> Callable[[type[T]], type[T]]:
    """Make a class that of the facts of a *kind*: frozen, with keyword arguments only."""
    return lambda found: registered(kind)(attrs.frozen(kw_only=True)(found))


@attrs.frozen(kw_only=True)
class Recorded(Generic[T_co]):
    """One event; *seq* orders them and is a cursor: ``after=N`` means ``seq > N``.

    *epoch* counts the processes that opened the run; *v* is the version of the payload *data*: JSON data, or
    one of the classes below.
    """

    seq: int
    run: str
    epoch: int
    at: datetime
    kind: str
    v: int
    step: str
    attempt: int
    data: T_co


Record: TypeAlias = Recorded[Mapping[str, Any]]
Fact: TypeAlias = Recorded[object]


def typed(records: Iterable[Record], *kinds: type[T]) -> Iterator[Recorded[T]]:
    """Yield those of *records* that are of these *kinds*; raise ``JournalError`` if one cannot be read."""
    for record in records:
        if (kind := _CLASS_OF.get(record.kind)) in kinds:
            try:
                data: T = structure(record.data, kind)
            except JournalError as error:
                message = f"record {record.seq} of the journal, {record.kind}, cannot be read: {error}"
                raise JournalError(message, hint=error.hint) from error
            yield attrs.evolve(cast("Any", record), data=data)


# Runs


@attrs.frozen(kw_only=True)
class Base:
    """The commit and the uncommitted paths that a run began with."""

    commit: str | None = None
    dirty: tuple[str, ...] = ()


@fact("run.started")
class RunStarted:
    """A run began; *milestone* is the version of the one that it was started for."""

    idea: Idea | None = None
    workflow: str = ""
    base: Base = Base()
    journal_lost: bool = False
    milestone: str | None = attrs.field(default=None, metadata=OPTIONAL)


@attrs.frozen(kw_only=True)
class UsedSandbox:
    """The sandbox of a process; without one, the name is empty, and *why* says the reason."""

    name: str = ""
    why: str = ""


@fact("run.opened")
class RunOpened:
    """A process opened the run.

    *claims* are ``None`` in a version that believed all planning files, *branch* and *sandbox* in one that
    did not record them. *typed* are the settings given on the command line, by section, *trusted* the labels
    of what was trusted by digest, *answered* the steps that an interrupted process of the same command had
    done.
    """

    epoch: int = 0
    resumed: bool = False
    seed: int | None = None
    branch: str | None = None
    head: str = ""
    claims: Claims | None = None
    answered: tuple[str, ...] = ()
    pid: int = 0
    start: str | None = None
    boot: str = ""
    version: str = ""
    options: Options = Options()
    agent: tuple[str, ...] = ()
    sandbox: UsedSandbox | None = None
    typed: Mapping[str, Mapping[str, Any]] | None = None
    trusted: Mapping[str, str] | None = None
    plugins: tuple[Mapping[str, Any], ...] = ()
    left_out: tuple[str, ...] = ()


@registered("run.closed")
@attrs.frozen(kw_only=True)
class RunClosed(Closing):
    """A process left the run; *dollars* is empty if the cost is not known."""

    dollars: str = ""
    commits: int = 0


@fact("recovered")
class Recovered:
    """What an earlier process left: how many processes and locks, and the steps whose attempts it lost."""

    processes: int = 0
    locks: int = 0
    lost: tuple[str, ...] = ()
    crashed: bool = False


@fact("control.asked")
class ControlAsked:
    """Somebody asked the run to ``stop``, or to ``pause`` after the step in progress."""

    what: str
    by: str = ""
    via: str = ""


@fact("branch.chosen")
class BranchChosen:
    """The run is about to work on another branch, which begins at *start* if it is new."""

    branch: str
    from_: str = ""
    start: str = ""


@fact("branch.switched")
class BranchSwitched(BranchChosen):
    """The run works on another branch."""


@fact("plugin.failed")
class PluginFailed:
    """A plugin failed where the run can do without it."""

    plugin: str
    hook: str
    error: str


@fact("notice.begun")
class NoticeBegun:
    """A notification is about to be sent."""

    key: str
    type: str = ""


@attrs.frozen(kw_only=True)
class Delivered:
    """What became of a notification at a service; *plugin* sent it."""

    service: str = ""
    ok: bool = False
    reason: str = ""
    tries: int = 1
    plugin: str = ""


@fact("notice.sent")
class NoticeSent:
    """A notification was sent: to which services, and by which plugins without and with a failure."""

    key: str
    ok: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    deliveries: tuple[Delivered, ...] = ()


# Steps


@fact("step.asked")
class StepAsked:
    """The user asked for a step, with these words."""

    text: str = ""


@fact("step.withdrawn")
class StepWithdrawn:
    """A step that the user asked for cannot be done any more."""

    reason: str = ""


@fact("attempt.started")
class AttemptStarted:
    """An attempt at a step of that kind began.

    *found* has the fingerprints of the uncommitted paths (*dirty_before*); earlier versions had none. *tree*
    is the folder that it works in, if that is not the project's.
    """

    kind: str = ""
    phase: str = ""
    plan: str = ""
    round: int = 0
    for_gaps: bool = False
    executor: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    base_commit: str = ""
    dirty_before: tuple[str, ...] = ()
    found: Mapping[str, str] | None = None
    tree: str | None = attrs.field(default=None, metadata=OPTIONAL)


@attrs.frozen(kw_only=True)
class AttemptEnded:
    """What the end of an attempt says about its work.

    *left* has the fingerprints of the uncommitted paths, *written* the files that agents wrote with a tool;
    ``None`` if git failed, or the process was killed.
    """

    left: Mapping[str, str] | None = attrs.field(default=None, metadata=OPTIONAL)
    written: tuple[str, ...] | None = attrs.field(default=None, metadata=OPTIONAL)


@registered("attempt.lost")
@attrs.frozen(kw_only=True)
class AttemptLost(AttemptEnded):
    """An attempt ended without a result, and none of the agent's doing.

    *why* is ``stopped``, ``parked`` (then *questions* are those it waits for), ``postponed`` (a policy lets
    the next agent call wait) or the end of the process.
    *kept* is the ref that has the uncommitted work.
    """

    why: str = ""
    error: Failure | None = attrs.field(default=None, metadata=OPTIONAL)
    questions: tuple[str, ...] | None = attrs.field(default=None, metadata=OPTIONAL)
    kept: str | None = attrs.field(default=None, metadata=OPTIONAL)


@registered("attempt.failed")
@attrs.frozen(kw_only=True)
class AttemptFailed(AttemptEnded):
    """An attempt failed."""

    error: Failure


@fact("timer.set")
class TimerSet:
    """The step waits."""

    until: datetime
    why: str = ""


@fact("timer.fired")
class TimerFired:
    """The step waits no longer."""


@fact("step.queued")
class StepQueued:
    """The plan could start, but the run may have no more agents now; *hint* is what to do about it."""

    why: str = ""
    hint: str = ""


@fact("step.result")
class StepReturned:
    """What the executor returned, which is to be written and committed.

    *result* is a :class:`gsd_core.StepResult` as JSON data. It may be large, so who needs it structures it.
    *gaps* are their keys. *plans* has the SHA-256 of the PLANs that an agent of the step wrote, by path.
    *tip* is the last commit of the work tree, if that is not the project's own.
    """

    result: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    phase: str = ""
    gaps: tuple[str, ...] | None = attrs.field(default=None, metadata=OPTIONAL)
    failed_detectors: tuple[str, ...] | None = attrs.field(default=None, metadata=OPTIONAL)
    passed: bool | None = attrs.field(default=None, metadata=OPTIONAL)
    plans: Mapping[str, str] | None = attrs.field(default=None, metadata=OPTIONAL)
    tip: str | None = attrs.field(default=None, metadata=OPTIONAL)


@fact("unit.submitted")
class UnitSubmitted:
    """The plan is to be executed elsewhere, by the dispatcher of a *plugin*; *attempts* were made before."""

    unit: WorkUnit
    plugin: str
    attempts: int = 0


@fact("unit.ended")
class UnitEnded:
    """The work on a unit is over: its facts are in this journal. *problem* says why it has no result."""

    unit: str
    problem: str = ""


@fact("merge.failed")
class MergeFailed:
    """The step's commits, up to *ours*, conflict with those that its branch got meanwhile, up to *theirs*.

    Both changed the same lines of *paths*; or a *check* fails on the merge, with this *output*. The step is
    started over in its work tree, where its commits stay.
    """

    ours: str
    theirs: str
    paths: tuple[str, ...] = ()
    check: str = ""
    output: str = ""


@fact("landing.failed")
class LandingFailed:
    """The step's result could not be written or committed this time."""

    error: Failure


@fact("step.completed")
class StepCompleted:
    """The step's result is written and committed.

    *unchanged*: there was nothing to commit. *plans* has the SHA-256 of the PLANs that were written, by path.
    *tag* is empty if it exists at another commit.
    """

    commit: str | None = None
    subject: str = ""
    gaps: tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()
    unchanged: bool | None = attrs.field(default=None, metadata=OPTIONAL)
    plans: Mapping[str, str] | None = attrs.field(default=None, metadata=OPTIONAL)
    tag: str | None = attrs.field(default=None, metadata=OPTIONAL)


@fact("step.failed")
class StepFailed:
    """The step failed, and is not tried again by itself."""

    error: Failure


@fact("step.skipped")
class StepSkipped:
    """Earlier versions recorded so what an answer decides now."""

    dependents: tuple[str, ...] = ()
    reason: str = ""
    by: str = ""


# Tasks and files


@fact("plan.made")
class PlanMade:
    """The plan that a step made for itself."""

    plan: Plan


@fact("plan.edited")
class PlanEdited:
    """A PLAN that the run wrote was changed by hand."""

    plan: str
    path: str
    sha256: str
    before: str = ""


@fact("check.before")
class CheckedBefore:
    """The result of a task's check before the task; *sha256* is that of the command."""

    task: str
    sha256: str
    result: CheckResult


@registered("check.replaced")
@attrs.frozen(kw_only=True)
class CheckReplaced(ReplacedCheck):
    """The planner's decision about a check of *plan*."""

    plan: str


@fact("task.committing")
class TaskCommitting:
    """A task (``PLAN/NUMBER``) is about to be committed onto *parent*."""

    task: str
    parent: str = ""


@attrs.frozen(kw_only=True)
class CommittedCheck:
    """The check of a committed task; *sha256* is that of its output."""

    command: str = ""
    exit: int | None = None
    passed_before: bool = False
    sha256: str = ""


@fact("task.committed")
class TaskCommitted:
    """A task (``PLAN/NUMBER``) is committed; see :class:`gsd_core.TaskCommit`."""

    task: str
    name: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    note: str = ""
    at: datetime | None = None
    check: CommittedCheck | None = None


@registered("task.deferred")
@attrs.frozen(kw_only=True)
class TaskDeferred(DeferredTask):
    """A task of *plan* was given up."""

    plan: str


@fact("files.kept")
class FilesKept:
    """Uncommitted files were copied into the commit *ref*; *found* has their fingerprints."""

    ref: str
    paths: tuple[str, ...] = ()
    listed: bool = False
    found: Mapping[str, str] = attrs.field(factory=dict[str, str])


@fact("files.settled")
class FilesSettled:
    """What was decided about uncommitted files that a plan lists.

    *how*: they are ``committed``, or belong to the ``plan`` now.
    """

    paths: tuple[str, ...] = ()
    found: Mapping[str, str] = attrs.field(factory=dict[str, str])
    how: str = ""
    commit: str = ""


@fact("files.left")
class FilesLeft:
    """Files that stay uncommitted: left by a ``command``, or because they may have ``secrets``.

    Those of another work tree are *kept* in a ref, and no longer there.
    """

    paths: tuple[str, ...] = ()
    kept: str | None = attrs.field(default=None, metadata=OPTIONAL)
    found: Mapping[str, str] | None = attrs.field(default=None, metadata=OPTIONAL)
    why: str | None = attrs.field(default=None, metadata=OPTIONAL)


@fact("config.overlaid")
class ConfigOverlaid:
    """Values in ``config.json`` were replaced; *before* has a list of one for each, empty if it had none.

    *clean*: the file was committed.
    """

    put: Mapping[str, Any]
    before: Mapping[str, Any]
    clean: bool = False


@fact("config.restored")
class ConfigRestored:
    """The user's values are back."""

    keys: tuple[str, ...] = ()
    commit: str = ""


@fact("phase.added")
class PhaseAdded:
    """A phase was added on request, or not, because of *error*."""

    by: str = ""
    error: str = ""
    name: str = ""
    after: str = ""
    phase: str = ""
    commit: str = ""


@fact("todo.edited")
class TodoEdited:
    """A todo was ``added`` or ``done`` on request, or not, because of *error*."""

    by: str = ""
    error: str = ""
    todo: str = ""
    what: str = ""


# Agents


@fact("agent.opened")
class AgentOpened:
    """An agent call began; *reserved* is the most that it may cost, in dollars."""

    key: str
    conversation: Conversation | None = None
    model: str = ""
    role: str = ""
    prompt_sha256: str = ""
    reserved: Decimal | None = None
    owns_planning: bool | None = attrs.field(default=None, metadata=OPTIONAL)


@fact("agent.process")
class AgentProcess:
    """A process of the agent started."""

    key: str
    pid: int
    start: str | None = None


@fact("agent.used")
class AgentUsed:
    """An agent used a tool in a call that only reads."""

    key: str
    use: ToolRecord


PROMPT = "prompt"
"""The kind of an activity that is what the agent was asked, not what it does."""


@fact("agent.activity")
class AgentActivity:
    """What an agent does; with the *usage* of a turn, if one ended. It is no fact, and may be lost.

    One of the kind ``prompt`` is what the agent was asked, which only ``gsd log --prompts`` shows.
    """

    key: str = ""
    kind: str = ""
    tool: str = ""
    text: str = ""
    usage: Usage | None = attrs.field(default=None, metadata=OPTIONAL)


@fact("agent.closed")
class AgentClosed:
    """An agent call ended; *value* is its answer, a :class:`gsd_core.AgentResult` as JSON data."""

    key: str = ""
    ended: str = "done"
    usage: Usage = Usage()
    value: Mapping[str, Any] | None = attrs.field(default=None, metadata=OPTIONAL)


@attrs.frozen(kw_only=True)
class Mounted:
    """A path that a confined call can see; *writable*: and change."""

    path: str
    writable: bool = False


@fact("guard.confined")
class GuardConfined:
    """How many calls are in progress, and for each confined one what it can see."""

    calls: int = 0
    places: tuple[tuple[Mounted, ...], ...] = ()


@fact("guard.accepted")
class GuardAccepted:
    """Changes of protected files that were allowed; *owned*: by an agent that owns the planning."""

    paths: tuple[str, ...] = ()
    owned: bool = False


@fact("guard.found")
class GuardFound:
    """Changes of what only the run may change, which are undone; the ref *kept* has them."""

    what: tuple[str, ...] = ()
    mild: bool = False
    kept: str = ""


@fact("guard.undone")
class GuardUndone:
    """They are undone, but for these *problems*."""

    problems: tuple[str, ...] = ()


# Questions


@fact("question.asked")
class QuestionAsked:
    """Questions were asked; *occasion* tells inquiries with the same text apart."""

    inquiry: Inquiry
    occasion: str = ""


@fact("question.answered")
class QuestionAnswered:
    """A question was answered."""

    answer: Answer


@fact("question.withdrawn")
class QuestionWithdrawn:
    """An inquiry needs no answer any more; *key* is its :func:`inquiry_key`."""

    key: str
    reason: str | None = attrs.field(default=None, metadata=OPTIONAL)


@fact("answer.refused")
class AnswerRefused:
    """An answer that another process gave is not valid; it is as it was given."""

    answer: Mapping[str, Any]
    reason: str = ""


registered("project.observed")(Snapshot)
