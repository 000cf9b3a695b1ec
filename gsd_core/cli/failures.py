"""Errors as text and exit codes; nowhere else are they turned into either."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path

import click

from gsd_core.errors import Credentials, Exhausted, GsdError, Transient, UserError
from gsd_core.sanitize import sanitize

BUG = "this is a bug in gsd or in a plugin; nothing that was recorded is lost"


def tell_failure(error: BaseException) -> int:
    """Write what went wrong to stderr and return the exit code; ``SystemExit`` passes."""
    match error:
        case SystemExit():
            raise error
        case click.Abort() | KeyboardInterrupt():
            _write("interrupted")
            return 130
        case click.UsageError():
            _tell(error.format_message(), hint=_usage(error))
            return 2
        case click.ClickException():
            _tell(error.format_message())
            return 2
        case BrokenPipeError():
            _forget_stdout()
            return 0
        case GsdError():
            _tell(str(error), cause=_cause(error), hint=error.hint)
            return exit_code(error)
        case _:
            _tell(_bug(error), cause=BUG, hint=f"the whole story: {_save(error)}")
            return 1


def exit_code(error: BaseException) -> int:
    """Return the exit code that an error which ends a run has."""
    codes = ((UserError, 2), (Credentials, 4), (Exhausted, 5), (Transient, 75))
    return next((code for kind, code in codes if isinstance(error, kind)), 1)


def _tell(message: str, *, cause: str = "", hint: str = "") -> None:
    for name, text in (("error", message), ("cause", cause), ("hint", hint)):
        if text:
            _write(f"{name}: {sanitize(text)}")


def _write(line: str) -> None:
    click.echo(line, err=True)


def _cause(error: GsdError) -> str:
    """Return the first cause that says something new."""
    cause = error.__cause__
    while cause is not None and (not str(cause) or str(cause) in str(error)):
        cause = cause.__cause__
    return str(cause) if isinstance(cause, GsdError) else ""


def _usage(error: click.UsageError) -> str:
    return f"{error.ctx.command_path} --help" if error.ctx else "gsd --help"


def _bug(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _save(error: BaseException) -> str:
    handle, name = tempfile.mkstemp(prefix="gsd-crash-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
    return str(Path(name))


def _forget_stdout() -> None:
    """Whoever read our output has gone: say nothing more, not even when Python flushes at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
