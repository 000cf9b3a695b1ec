"""The rules of a scenario file: when a rule applies, and what then happens.

The classes are the file's format: their fields are its keys, and the table in the documentation is generated
from their docstrings and their fields' help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import attrs

from gsd_core import Option, Question, normal_phase

from .plans import MISSING_NOTE, Json

ROLES = (
    *("roadmapper", "codebase-mapper", "discusser", "researcher", "planner", "checker", "executor"),
    *("verifier", "debugger", "reviewer"),
)
"""The roles of the built-in agents; plugins may add others."""


def key(help: str, default: Any = attrs.NOTHING) -> Any:  # noqa: A002 - click's own word
    """Declare a key of a scenario file; without a default it is required."""
    if callable(default):
        return attrs.field(factory=default, metadata={"help": help})
    return attrs.field(default=default, metadata={"help": help})


@attrs.frozen(kw_only=True)
class Moment:
    """A point in a rehearsal where something may happen: the model is about to act.

    *call* counts the times that the agent was called for the step: the first call, a retry, an answer that
    was sent back. *task* is the number of the task that the executor works on, 0 if it has none left.
    """

    step: str
    phase: str
    plan: str
    round: int
    role: str
    call: int
    task: int = 0


@attrs.frozen(kw_only=True)
class When:
    """Where a rule applies; a key that is left out matches everything."""

    step: str = key("kind of step, such as `plan`, `execute` or `verify`", "")
    phase: str = key("number of the phase", "")
    plan: str = key("id of the plan, such as `01-02`", "")
    round: int | None = key("round of planning or verification: 0, then one for each gap round", None)
    role: str = key(f"role of the agent: {', '.join(f'`{role}`' for role in ROLES)}", "")
    task: int | None = key("number of the task that the executor works on", None)
    call: int | None = key("number of the agent's call in this step; retries and complaints count", None)

    def matches(self, moment: Moment) -> bool:
        """Whether a rule applies at *moment*."""
        phase = normal_phase(self.phase) if self.phase else ""
        wanted = attrs.asdict(attrs.evolve(self, phase=phase))
        return all(value in (None, "", getattr(moment, name)) for name, value in wanted.items())


@attrs.frozen(kw_only=True)
class _Once:
    times: ClassVar[int] = 1
    """How often a rule applies that does not say it; 0 is every time."""


@attrs.frozen(kw_only=True)
class ApiError(_Once):
    """The API refuses the request, as in an outage, or because the login is invalid (401)."""

    name: ClassVar[str] = "error"
    status: int = key("HTTP status from 400 to 599: 401, 429, 500, 529 …")
    message: str = key("the error's text", "")
    retry_after: timedelta | None = key("how long the API asks to wait", None)

    def __attrs_post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise ValueError(f"status: expected a status from 400 to 599, got {self.status}")

    @property
    def type(self) -> str:
        """The API's name for the error."""
        default = "invalid_request_error" if self.status < 500 else "api_error"
        return _ERROR_TYPES.get(self.status, default)

    @property
    def text(self) -> str:
        """The error's text."""
        return self.message or f"the scenario refuses this request ({self.type})"


# https://docs.claude.com/en/api/errors
_ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@attrs.frozen(kw_only=True)
class Disconnect(_Once):
    """The connection breaks in the middle of the model's message."""

    name: ClassVar[str] = "disconnect"


@attrs.frozen(kw_only=True)
class UsageLimit(_Once):
    """The account's usage limit is reached; it is lifted after a while."""

    name: ClassVar[str] = "usage limit"
    resets_in: timedelta = key("how long until the limit is lifted, counted from the refused request")


@attrs.frozen(kw_only=True)
class Hang(_Once):
    """The model does not answer."""

    name: ClassVar[str] = "hang"
    duration: timedelta = key("after this time it answers nevertheless", timedelta(hours=24))


@attrs.frozen(kw_only=True)
class Slow:
    """Each message of the model takes a while."""

    name: ClassVar[str] = "slow"
    times: ClassVar[int] = 0
    duration: timedelta = key("how long a message takes")


@attrs.frozen(kw_only=True)
class Cost:
    """Each message of the model costs something."""

    name: ClassVar[str] = "cost"
    times: ClassVar[int] = 0
    dollars: Decimal = key("dollars for a message; the real CLI gets as many input tokens", Decimal(0))
    input_tokens: int = key("tokens of the input", 0)
    output_tokens: int = key("tokens of the output", 0)

    def __attrs_post_init__(self) -> None:
        if self.dollars and (self.input_tokens or self.output_tokens):
            raise ValueError("dollars and tokens cannot be combined: the price follows from the tokens")
        if min(self.input_tokens, self.output_tokens) < 0:
            raise ValueError("tokens: expected at least 0")


@attrs.frozen(kw_only=True)
class Lie(_Once):
    """The model claims work that it did not do.

    An executor reports its task as done without a change, or all of them with `unreported`; a verifier
    confirms everything and cites files that it has not read.
    """

    name: ClassVar[str] = "lie"
    how: Literal["unchanged", "unreported"] = key(
        "`unchanged`: it calls `task_done` without having changed a file; "
        "`unreported`: it ends, and says that all is done",
        "unchanged",
    )
    says: str = key("the claim", "Done as planned, and every check passes")


@attrs.frozen(kw_only=True)
class StayingGap(_Once):
    """The verifier finds that something does not hold.

    The plan that closes the gap adds a note to NOTES.md.
    """

    name: ClassVar[str] = "gap"
    about: str = key("id of a requirement, criterion or truth that the verifier judges; else the first", "")
    reason: str = key("what the verifier says about it", "It does not work yet")


@attrs.frozen(kw_only=True)
class UserQuestion(_Once):
    """The model asks the user a question, with AskUserQuestion."""

    name: ClassVar[str] = "question"
    text: str = key("the question")
    header: str = key("its title, at most 12 characters", "Question")
    options: tuple[str, ...] = key("two to four options; the first one is recommended, and its label says so")
    multiple: bool = key("whether several options may be chosen", False)

    def __attrs_post_init__(self) -> None:
        if not 2 <= len(self.options) <= 4:
            raise ValueError(f"options: expected 2 to 4 options, got {len(self.options)}")
        if len(set(self.options)) < len(self.options):
            raise ValueError("options: an option is listed twice")

    @property
    def question(self) -> Question:
        """The question as a value."""
        first, *others = self.options
        # Claude Code's tool has no field for a recommendation, so models write it into the label.
        options = (
            Option(label=f"{first} (Recommended)", recommended=True),
            *(Option(label=label) for label in others),
        )
        return Question(text=self.text, header=self.header, options=options, multiple=self.multiple)


@attrs.frozen(kw_only=True)
class Architecture(_Once):
    """The executor asks whether the architecture may be changed, with `ask_architecture`."""

    name: ClassVar[str] = "architecture"
    text: str = key("the change, and why the plan needs it")
    options: tuple[str, ...] = key("ways to make the change; without any, it is made or not", ())


@attrs.frozen(kw_only=True)
class WrongAnswer(_Once):
    """The model gives this answer instead of its own; by default one that does not match the schema."""

    name: ClassVar[str] = "answer"
    value: dict[str, Any] = key("the answer, as a table", dict)


@attrs.frozen(kw_only=True)
class ToolRequest(_Once):
    """The model tries to use a tool, such as a dangerous command. If it is refused, the summary says so.

    The fast agent asks whether it may, and executes nothing.
    """

    name: ClassVar[str] = "tool"
    tool: str = key("name of the tool", "Bash")
    input: dict[str, Any] = key('its arguments, such as `{ command = "sudo reboot" }`')


@attrs.frozen(kw_only=True)
class Checkpoint(_Once):
    """The planner adds a task for a person at the end of its last plan, such as a login or a check by eye."""

    name: ClassVar[str] = "checkpoint"
    kind: Literal["human-verify", "decision", "human-action"] = key(
        "what the person does: `human-verify` looks, `decision` chooses, `human-action` does something that "
        "an agent cannot, such as a login",
        "human-verify",
    )
    text: str = key("what to look at, to decide or to do")
    options: tuple[str, ...] = key("the options of a decision", ())

    def __attrs_post_init__(self) -> None:
        if (self.kind == "decision") != bool(self.options):
            raise ValueError(f"options: a decision needs them, and nothing else has any, got {self.options}")

    def to_json(self) -> Json:
        """Return the task as a planner answers it."""
        return {
            "name": self.text[:60],
            "type": f"checkpoint:{self.kind}",
            "files": [],
            "action": self.text,
            "verify": "",
            "done": "A person has answered",
            "options": [{"name": option} for option in self.options],
        }


Effect: TypeAlias = (
    ApiError
    | Disconnect
    | UsageLimit
    | Hang
    | Slow
    | Cost
    | Lie
    | StayingGap
    | UserQuestion
    | Architecture
    | WrongAnswer
    | ToolRequest
    | Checkpoint
)
EFFECTS: Mapping[str, type[Effect]] = {kind.name: kind for kind in get_args(Effect)}
"""The effects by the value of ``do``."""


@attrs.frozen(kw_only=True)
class Rule:
    """One rule; *number* counts the rules of the file from 1. *times* 0 means every time."""

    number: int
    when: When
    effect: Effect
    times: int

    def __attrs_post_init__(self) -> None:
        if self.times < 0:
            raise ValueError(f"times: expected at least 0, got {self.times}")
        if not self.times and isinstance(self.effect, ToolRequest | UserQuestion | Architecture):
            raise ValueError(f"times: {self.effect.name!r} needs a number: the model would do nothing else")

    def __str__(self) -> str:
        return f"rule {self.number} ({self.effect.name})"


def fail_verdict(verdicts: Sequence[Json], gap: StayingGap, number: int) -> None:
    """Make the verdict that *gap* is about fail; *number* tells the notes of several gaps apart."""
    note = MISSING_NOTE.format(number)
    failed = {"status": "fails", "reason": f"{gap.reason} ({note})", "missing": [note], "citations": []}
    for verdict in verdicts:
        if gap.about in ("", verdict["id"]):
            verdict |= failed
            return
