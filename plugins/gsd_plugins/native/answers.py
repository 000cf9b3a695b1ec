"""The agents' answers as classes, their JSON schemas, and the conversion from JSON.

Field names are the keys that the agents use, and the prompts explain them. A field without a default is
required; ``metadata["key"]`` gives the JSON key where that is not a valid Python name. Allowed types:
strings, integers, ``Literal`` choices, tuples, and attrs classes of these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import attrs

from gsd_core import AgentFunction, AgentResult, BadArtifact, Severity
from gsd_core.planning.model import TaskType
from gsd_core.planning.research import Confidence, Topic

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
VerdictStatus: TypeAlias = Literal["holds", "fails", "uncertain", "human"]


@attrs.frozen(kw_only=True)
class RequirementAnswer:
    """A requirement; *statements* are those of the idea that it comes from.

    *reason* is why it has none, or why it leaves out or changes a fact of one, named by its id.
    """

    id: str
    category: str
    text: str
    statements: tuple[str, ...]
    reason: str = ""


@attrs.frozen(kw_only=True)
class Exclusion:
    """A feature that is out of scope."""

    feature: str
    reason: str
    statements: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Constraint:
    """A constraint that the idea sets."""

    type: str
    what: str
    why: str
    statements: tuple[str, ...]


@attrs.frozen(kw_only=True)
class PhaseAnswer:
    """A phase of the roadmap; its number is its position in the list."""

    name: str
    goal: str
    depends_on: tuple[str, ...]
    requirements: tuple[str, ...]
    criteria: tuple[str, ...]


@attrs.frozen(kw_only=True)
class RoadmapAnswer:
    """The roadmapper's answer: requirements and phases; *context* are the statements that ask for nothing."""

    name: str
    summary: str
    core_value: str
    requirements: tuple[RequirementAnswer, ...]
    later: tuple[RequirementAnswer, ...]
    out_of_scope: tuple[Exclusion, ...]
    constraints: tuple[Constraint, ...]
    context: tuple[str, ...]
    phases: tuple[PhaseAnswer, ...]


@attrs.frozen(kw_only=True)
class TruthAnswer:
    """Something that must be true; it serves requirements and success criteria of the phase, by their ids."""

    text: str
    serves: tuple[str, ...]


@attrs.frozen(kw_only=True)
class ArtifactAnswer:
    """A file that must exist."""

    path: str
    provides: str
    min_lines: int = 0
    contains: str = ""
    exports: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class LinkAnswer:
    """A connection between two files: one uses the other."""

    source: str = attrs.field(metadata={"key": "from"})
    target: str = attrs.field(metadata={"key": "to"})
    via: str
    pattern: str = ""


@attrs.frozen(kw_only=True)
class OptionAnswer:
    """An option of a ``checkpoint:decision``."""

    name: str
    pros: str = ""
    cons: str = ""


@attrs.frozen(kw_only=True)
class TaskAnswer:
    """One task of a plan; *behavior* is what the tests of a test-driven feature describe."""

    name: str
    type: TaskType = "auto"
    files: tuple[str, ...]
    action: str
    verify: str
    check: str = ""
    done: str
    behavior: str = ""
    options: tuple[OptionAnswer, ...] = ()


@attrs.frozen(kw_only=True)
class PlanAnswer:
    """One plan; ``depends_on`` lists plans of the same answer, counted from 1.

    A plan of type ``tdd`` has one task: its feature.
    """

    name: str
    type: Literal["execute", "tdd"] = "execute"
    objective: str
    depends_on: tuple[int, ...]
    files_modified: tuple[str, ...]
    requirements: tuple[str, ...]
    truths: tuple[TruthAnswer, ...]
    artifacts: tuple[ArtifactAnswer, ...]
    key_links: tuple[LinkAnswer, ...]
    tasks: tuple[TaskAnswer, ...]


@attrs.frozen(kw_only=True)
class PlansAnswer:
    """The planner's answer: the plans of a phase or of a gap round."""

    plans: tuple[PlanAnswer, ...]


@attrs.frozen(kw_only=True)
class DocumentAnswer:
    """A document about the existing code: *name* is that of its file."""

    name: str
    text: str


@attrs.frozen(kw_only=True)
class DocumentsAnswer:
    """The answer of a codebase mapper."""

    documents: tuple[DocumentAnswer, ...]


@attrs.frozen(kw_only=True)
class ReportAnswer:
    """The executor's final answer. It has no status: whether a plan is done is decided by its commits.

    *summary* is one sentence on what there is now; an answer without it is valid. *deferred* is work that
    does not belong to the plan and is left for later.
    """

    summary: str = ""
    deviations: tuple[str, ...]
    decisions: tuple[str, ...]
    issues: tuple[str, ...]
    deferred: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Citation:
    """Where a verdict can be looked up: lines *first* to *last* of a file, or a command and its exit code.

    *case* is the test case of the command that shows it, if it runs any.
    """

    file: str = ""
    first: int = 0
    last: int = 0
    command: str = ""
    exit: int = 0
    case: str = ""


@attrs.frozen(kw_only=True)
class VerdictAnswer:
    """The verdict on one requirement, success criterion or truth."""

    id: str
    status: VerdictStatus
    evidence: str
    reason: str
    missing: tuple[str, ...]
    citations: tuple[Citation, ...] = ()


@attrs.frozen(kw_only=True)
class FindingAnswer:
    """A defect that the verifier was not asked about."""

    severity: Severity
    problem: str
    where: str = ""
    fix: str = ""


@attrs.frozen(kw_only=True)
class VerdictsAnswer:
    """The verifier's answer: a verdict on each id, and what else it found."""

    verdicts: tuple[VerdictAnswer, ...]
    findings: tuple[FindingAnswer, ...] = ()


@attrs.frozen(kw_only=True)
class ClaimAnswer:
    """Something that the researcher found out; *sources* are numbers of its sources, counted from 1."""

    topic: Topic
    name: str
    text: str
    sources: tuple[int, ...]


@attrs.frozen(kw_only=True)
class SourceAnswer:
    """A page that supports claims of the researcher."""

    url: str
    supports: str
    confidence: Confidence


@attrs.frozen(kw_only=True)
class ResearchAnswer:
    """The researcher's answer."""

    summary: str
    claims: tuple[ClaimAnswer, ...]
    sources: tuple[SourceAnswer, ...]
    questions: tuple[str, ...]
    confidence: Confidence


@attrs.frozen(kw_only=True)
class PlanIssueAnswer:
    """What the reviewer of plans objects to in the plan with that id."""

    plan: str
    severity: Literal["blocker", "warning"]
    problem: str
    fix: str = ""


@attrs.frozen(kw_only=True)
class PlanIssuesAnswer:
    """The answer of the reviewer of plans."""

    issues: tuple[PlanIssueAnswer, ...]


@attrs.frozen(kw_only=True)
class RunCommand:
    """The arguments of ``run_command``."""

    command: str


@attrs.frozen(kw_only=True)
class TaskDone:
    """The arguments of ``task_done``; *dispute* is why the task's check is wrong, if it is."""

    task: int
    files: tuple[str, ...]
    note: str
    dispute: str = ""


@attrs.frozen(kw_only=True)
class NeedAuthentication:
    """The arguments of ``need_authentication``: who refused, in which words, and what a person must do."""

    service: str
    message: str
    action: str


@attrs.frozen(kw_only=True)
class AskArchitecture:
    """The arguments of ``ask_architecture``: the *change* and why, and ways to make it, the best first."""

    change: str
    options: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class CheckAnswer:
    """The planner's decision about a task's check; the same command means that it is kept."""

    check: str
    reason: str


@attrs.frozen(kw_only=True)
class ChoiceAnswer:
    """An option of a question about a phase; *description* says what it means for the user."""

    label: str
    description: str


@attrs.frozen(kw_only=True)
class GrayAreaAnswer:
    """Something that the idea leaves open; *recommended* is the number of an option, counted from 1.

    *statements* are the ids of the idea's statements that it is about.
    """

    area: str
    question: str
    why: str
    options: tuple[ChoiceAnswer, ...]
    recommended: int
    statements: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class DiscussionAnswer:
    """The discusser's answer: what to ask, and what the phase is about."""

    questions: tuple[GrayAreaAnswer, ...]
    in_scope: tuple[str, ...]
    out_of_scope: tuple[str, ...]
    deferred: tuple[str, ...]
    discretion: tuple[str, ...]


@attrs.frozen(kw_only=True)
class ClueAnswer:
    """One thing that a debugger examined: what it *checked*, what it *found*, and what that means."""

    checked: str
    found: str
    implication: str


@attrs.frozen(kw_only=True)
class DiagnosisAnswer:
    """The diagnosis of one *gap* (its key); an empty *root_cause* means that it was not found."""

    gap: str
    actual: str
    reproduction: str
    clues: tuple[ClueAnswer, ...]
    root_cause: str
    files: tuple[BadArtifact, ...]
    fix: str


@attrs.frozen(kw_only=True)
class DiagnosesAnswer:
    """The debugger's answer: one diagnosis for each gap."""

    diagnoses: tuple[DiagnosisAnswer, ...]


class InvalidAnswer(ValueError):
    """A value that does not have the required structure; *problems* name each field, for the agent."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def parse_answer(kind: type[T], value: object) -> T:
    """Return *value*, as decoded from JSON, as an instance of *kind*.

    Raises :class:`InvalidAnswer` with all problems at once, since each retry costs money. Types are
    not coerced. Unknown keys are ignored: they do no harm, and are not worth another retry.
    """
    problems: list[str] = []
    answer = _structure(kind, value, "", problems)
    if problems:
        raise InvalidAnswer(tuple(problems))
    return cast("T", answer)


def validate_answer(kind: type, value: object) -> tuple[str, ...]:
    """Return what is wrong with *value* as an instance of *kind*; empty if it is valid."""
    try:
        parse_answer(kind, value)
    except InvalidAnswer as error:
        return error.problems
    return ()


def acceptance(
    kind: type[T], problems: Callable[[T], Iterable[str]], doubts: Callable[[T], Iterable[str]] = lambda _: ()
) -> Callable[[AgentResult], Sequence[str]]:
    """Return the check of an agent's answer: that it is valid as *kind*, and has no *problems*.

    The first answer is also sent back for its *doubts*; the agent decides whether they are right.
    """

    def accept(result: AgentResult) -> Sequence[str]:
        try:
            answer = parse_answer(kind, result.value)
        except InvalidAnswer as error:
            return error.problems
        return (*problems(answer), *(() if result.sent_back else doubts(answer)))

    return accept


def handler(
    kind: type[T], reply: Callable[[T], Awaitable[str]]
) -> Callable[[Mapping[str, Any]], Awaitable[str]]:
    """Return the function behind an agent's tool: it parses the arguments as *kind* for *reply*."""

    async def handle(arguments: Mapping[str, Any]) -> str:
        try:
            call = parse_answer(kind, arguments)
        except InvalidAnswer as error:
            return f"Not valid: {error}"
        return await reply(call)

    return handle


def _structure(hint: Any, value: Any, path: str, problems: list[str]) -> Any:
    """Return *value* as the type *hint*, or append to *problems*; the result is then meaningless."""
    # Not cattrs, because it coerces (`str(3)`, `int(True)`, a string to a tuple of characters): to
    # prevent that, every one of these types would need its own structure hook.
    expected = ""
    if get_origin(hint) is tuple:
        if isinstance(value, list | tuple):
            items = enumerate(cast("list[Any]", value))
            return tuple(_structure(get_args(hint)[0], x, f"{path}[{n}]", problems) for n, x in items)
        expected = "an array"
    elif get_origin(hint) is Literal:
        if value not in get_args(hint):
            expected = f"one of {', '.join(get_args(hint))}"
    elif hint in (str, int):
        # An exact comparison, because `True` is an instance of `int`.
        if type(value) is not hint:
            expected = "a string" if hint is str else "an integer"
    elif isinstance(value, Mapping):
        return _structure_object(hint, cast("Mapping[str, Any]", value), path, problems)
    else:
        expected = "an object"
    if expected:
        problems.append(f"{path or 'the answer'}: expected {expected}, got {value!r:.80}")
    return value


def _structure_object(kind: type, value: Mapping[str, Any], path: str, problems: list[str]) -> Any:
    before = len(problems)
    arguments: dict[str, Any] = {}
    for key, hint, field in _fields(kind):
        key_path = f"{path}.{key}" if path else key
        if key in value:
            arguments[field.name] = _structure(hint, value[key], key_path, problems)
        elif field.default is attrs.NOTHING:
            problems.append(f"{key_path} is missing")
    return kind(**arguments) if len(problems) == before else None


def schema_of(kind: type) -> Json:
    """Return the JSON schema of an answer's class."""
    fields = tuple(_fields(kind))
    return {
        "type": "object",
        "properties": {key: _schema(hint) for key, hint, _ in fields},
        "required": [key for key, _, field in fields if field.default is attrs.NOTHING],
        "additionalProperties": False,
    }


def _schema(hint: Any) -> Json:
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if hint in (str, int):
        return {"type": "string" if hint is str else "integer"}
    return schema_of(hint)


def _fields(kind: type) -> Iterator[tuple[str, Any, attrs.Attribute[Any]]]:
    """Yield the JSON key, the type and the attribute of each field."""
    hints = get_type_hints(kind)
    for field in attrs.fields(cast("type[attrs.AttrsInstance]", kind)):
        yield field.metadata.get("key", field.name), hints[field.name], field


TASK_DONE = AgentFunction(
    name="task_done",
    description="Check and commit a finished task; returns the result.",
    schema=schema_of(TaskDone),
)

NEED_AUTHENTICATION = AgentFunction(
    name="need_authentication",
    description="Have a person log in or provide a key; returns once that is done.",
    schema=schema_of(NeedAuthentication),
)

ASK_ARCHITECTURE = AgentFunction(
    name="ask_architecture",
    description="Have a person decide about a change of the architecture.",
    schema=schema_of(AskArchitecture),
)

RUN_COMMAND = AgentFunction(
    name="run_command",
    description="Run a shell command in a fresh checkout of the committed project; returns the exit code "
    "and the end of the output. What it changes is discarded.",
    schema=schema_of(RunCommand),
)
