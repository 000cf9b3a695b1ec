"""The exit codes of ``gsd``, and which error ends a run with which of them. This is the only such table.

A class of errors has the exit code of its parent unless it has its own. That includes classes that plugins
derive.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from . import errors


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
    HUNG_UP = 129  # 128 + SIGHUP
    INTERRUPTED = 130  # 128 + SIGINT
    TERMINATED = 143  # 128 + SIGTERM


EXIT_CODE_MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "every phase in range is complete; the last line says what this run did not verify",
    ExitCode.FAILED: "a step failed permanently, or gsd itself failed",
    ExitCode.USAGE: "something has to be fixed first: the command line, the settings, the idea, "
    "the project, the journal, or the machine (a full disk); or another run is active in the project",
    ExitCode.QUESTION: "a question is open, and nobody could answer it",
    ExitCode.CREDENTIALS: "the agent has no valid credentials, its checks failed, no sandbox works "
    "and the run needs one, or notifications cannot be sent as the user wants",
    ExitCode.EXHAUSTED: "the budget or a usage limit is exhausted",
    ExitCode.GAPS: "gaps remain, or a phase was skipped",
    ExitCode.TRANSIENT: "a transient failure persisted; try again later",
    ExitCode.HUNG_UP: "stopped by SIGHUP: the terminal was closed",
    ExitCode.INTERRUPTED: "stopped by SIGINT or by `gsd stop`",
    ExitCode.TERMINATED: "stopped by SIGTERM",
}

_EXIT_CODES: Mapping[type, ExitCode] = {
    errors.GsdError: ExitCode.FAILED,
    errors.Transient: ExitCode.TRANSIENT,
    errors.Interference: ExitCode.FAILED,
    errors.Parked: ExitCode.QUESTION,
    errors.Credentials: ExitCode.CREDENTIALS,
    errors.Exhausted: ExitCode.EXHAUSTED,
    errors.PluginRefused: ExitCode.USAGE,
    errors.UserError: ExitCode.USAGE,
    errors.NoSandbox: ExitCode.CREDENTIALS,
    errors.CannotNotify: ExitCode.CREDENTIALS,
    errors.JournalError: ExitCode.USAGE,
    errors.Fenced: ExitCode.FAILED,
}
"""Of the classes of an error, the nearest one that is listed here decides."""


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of *error* if it ends a run."""
    return _exit_code_of(type(error))


def error_kind(error: BaseException) -> str:
    """Return the name under which the journal records the class of *error*.

    A plugin may derive its own classes, but a reader of the journal may not have that plugin. So this
    is the nearest class of :mod:`gsd_core.errors`, or else the nearest built-in one.
    """
    classes = [cls for cls in type(error).__mro__ if cls.__module__ in (errors.__name__, "builtins")]
    return next((cls for cls in classes if issubclass(cls, errors.GsdError)), classes[0]).__name__


def exit_code_of_kind(kind: str, *, limited: bool = False) -> ExitCode:
    """Return the exit code for an error that the journal recorded as *kind* (see :func:`error_kind`).

    *limited*: the error said when to try again, as a usage limit does. If the run ended without waiting until
    then, the limit counts as exhausted.
    """
    cls = getattr(errors, kind, None)
    if not (isinstance(cls, type) and issubclass(cls, errors.GsdError)):
        return ExitCode.FAILED
    if limited and issubclass(cls, errors.Transient) and not issubclass(cls, errors.Outage):
        return ExitCode.EXHAUSTED
    return _exit_code_of(cls)


def _exit_code_of(cls: type) -> ExitCode:
    return next((_EXIT_CODES[base] for base in cls.__mro__ if base in _EXIT_CODES), ExitCode.FAILED)
