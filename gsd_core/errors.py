"""What can go wrong, named by what the caller should do about it.

::

    GsdError                      every error of ours; carries a ``hint``: the way out
      StepError                   a plugin says why its attempt failed; reaches the core unchanged
        Transient                 try again, not before ``until``
        Permanent                 do not try again
          Credentials             log in first (exit 4)
          Exhausted               a budget or limit is used up (exit 5)
          RejectedAnswer          an agent's answer is still invalid after all complaints
        Parked                    a human has to answer first: the core enters the step again
      PluginError                 a plugin broke its contract: report it, never retry
      UserError                   the user has to change something first (exit 2)
        ConfigError               settings, flags, or what is installed
        IdeaError                 the idea document
        ProjectError              the project's folder or repository
        PlanningError             a planning file: where, at which line
        Locked                    another run holds the project
      JournalError                the journal cannot be read or written
        Fenced                    a newer process has taken the run over
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any


class GsdError(Exception):
    """The root; its data and its text survive pickling, whatever ``__init__`` takes."""

    hint: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.args, self.__dict__)


def _revive(kind: type[GsdError], args: tuple[Any, ...], state: dict[str, Any]) -> GsdError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class StepError(GsdError):
    """Why an attempt failed, in the plugin's words; the core notes ``plugin``."""

    plugin: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Transient(StepError):
    """Trying again may help, at *until* (aware UTC) at the earliest."""

    def __init__(self, message: str, until: datetime | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.until = until


class Permanent(StepError):
    """Trying again cannot help."""


class Credentials(Permanent):
    """The agent has no valid credentials."""


class Exhausted(Permanent):
    """A budget or a usage limit is used up."""


class RejectedAnswer(Permanent):
    """An agent's answer is still invalid after all complaints; *value* is what it answered last."""

    def __init__(self, message: str, value: Any = None) -> None:
        super().__init__(message)
        self.value = value


class Parked(StepError):
    """Nobody can answer *questions* (ids) now; the step is entered again when they are answered."""

    def __init__(self, message: str, questions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.questions = questions


class PluginError(GsdError):
    """A plugin's implementation of a hook broke; *cause_text* outlives ``__cause__``."""

    def __init__(self, plugin: str, hook: str, cause_text: str) -> None:
        super().__init__(plugin, hook, cause_text)
        self.plugin = plugin
        self.hook = hook
        self.cause_text = cause_text
        self.hint = f"run with -p no:{plugin} to go on without it"

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} failed in {self.hook}: {self.cause_text}"


class UserError(GsdError):
    """Something that the user has to change before a run makes sense."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(UserError):
    """What the settings ask for and what is installed do not fit."""


class IdeaError(UserError):
    """The idea document cannot be used."""


class ProjectError(UserError):
    """The project's folder or its repository is not in a state to work in."""


class Locked(UserError):
    """Another process is running on this project."""


class PlanningError(UserError):
    """A planning file cannot be read: *path*, *line* (1-based; 0 if unknown)."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.line = line

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.args[0]}" if where else str(self.args[0])


class JournalError(GsdError):
    """The journal cannot be read or written."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Fenced(JournalError):
    """A newer process has taken this run over; this one must stop writing."""


class ExitCode(IntEnum):
    """The exit codes of ``gsd``; nothing else defines one."""

    OK = 0
    FAILED = 1
    USAGE = 2
    QUESTION = 3
    CREDENTIALS = 4
    EXHAUSTED = 5
    GAPS = 6
    TRANSIENT = 75  # EX_TEMPFAIL of sysexits.h: schedulers know it as "try again later"
    INTERRUPTED = 130  # 128 + SIGINT
    TERMINATED = 143  # 128 + SIGTERM


EXIT_CODE_MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "every phase in range is complete and verified "
    "(or verification was skipped; the summary says so)",
    ExitCode.FAILED: "a step failed permanently, or gsd itself failed",
    ExitCode.USAGE: "something has to be fixed first: the command line, the settings, the idea, "
    "or the project; or another run is active in the project",
    ExitCode.QUESTION: "a question is open, and nobody could answer it",
    ExitCode.CREDENTIALS: "the agent has no valid credentials, or its checks failed",
    ExitCode.EXHAUSTED: "the budget or a usage limit is exhausted",
    ExitCode.GAPS: "gaps remain, or a phase was skipped",
    ExitCode.TRANSIENT: "a transient failure persisted; try again later",
    ExitCode.INTERRUPTED: "stopped by SIGINT or by `gsd stop`",
    ExitCode.TERMINATED: "stopped by SIGTERM",
}

_EXIT_CODES: Mapping[type[GsdError], ExitCode] = {
    UserError: ExitCode.USAGE,
    Credentials: ExitCode.CREDENTIALS,
    Exhausted: ExitCode.EXHAUSTED,
    Transient: ExitCode.TRANSIENT,
}


def error_kind(error: BaseException) -> str:
    """Return the name of the nearest class of this module: what the journal keeps of an error.

    A plugin may derive its own classes; readers of the journal know only ours.
    """
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ in (__name__, "builtins"))


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of an error that ends a run."""
    return next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), ExitCode.FAILED)


def exit_code_of_kind(kind: str, *, limited: bool = False) -> ExitCode:
    """Return the exit code for the name of an error class, as the journal keeps it.

    *limited*: the failure says when to try again, as a usage limit does; then waiting is the user's
    decision, and the limit counts as exhausted.
    """
    cls = globals().get(kind)
    if not (isinstance(cls, type) and issubclass(cls, GsdError)):
        return ExitCode.FAILED
    if limited and issubclass(cls, Transient):
        return ExitCode.EXHAUSTED
    return next((code for base, code in _EXIT_CODES.items() if issubclass(cls, base)), ExitCode.FAILED)
