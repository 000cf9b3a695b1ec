"""Errors as messages and exit codes; no other module turns them into either."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from contextlib import suppress

import click

from gsd_core.errors import GsdError, MachineError, machine_error
from gsd_core.exit_codes import ExitCode, exit_code
from gsd_core.sanitize import safe_text

from .commands import with_global_options
from .global_options import GlobalOptions


def report_failure(error: BaseException, options: GlobalOptions | None = None) -> int:
    """Write what went wrong to stderr and return the exit code; ``SystemExit`` is raised again.

    The commands that a hint mentions get the user's global *options*.
    """
    options = options or GlobalOptions()
    match error:
        case SystemExit():
            raise error
        case click.Abort() | KeyboardInterrupt():
            with suppress(OSError):
                click.echo("interrupted", err=True)
            return ExitCode.INTERRUPTED
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message())
            return ExitCode.USAGE
        case click.UsageError():
            command = error.ctx.command_path if error.ctx else "gsd"
            _write(error.format_message(), hint=f"{command} --help")
            return ExitCode.USAGE
        case click.ClickException():
            _write(error.format_message())
            return ExitCode.USAGE
        case BrokenPipeError():
            # The reader of our output, such as `head`, is gone. That is not an error.
            return ExitCode.OK
        case OSError() | MemoryError() | RuntimeError() if trouble := _machine_error(error):
            _write(str(trouble), hint=with_global_options(trouble.hint, options))
            return exit_code(trouble)
        case GsdError():
            _write(str(error), cause=_cause(error), hint=with_global_options(error.hint, options))
            return exit_code(error)
        case _:
            _write(
                f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
                cause="this is a bug in gsd or in a plugin; everything recorded so far is kept",
                hint=f"full traceback: {_save_traceback(error)}",
            )
            return ExitCode.FAILED


def _machine_error(error: BaseException) -> MachineError | None:
    """Return what the machine refused; if it was our output, say so, because its errors name no path."""
    try:
        sys.stdout.flush()
    except OSError as unwritten:
        # What could not be written is still in the stream's buffer, so writing it fails again.
        if isinstance(error, OSError) and unwritten.errno == error.errno:
            hint = "send it somewhere else, or free some space there"
            return MachineError(f"cannot write to standard output: {error.strerror}", hint=hint)
    return machine_error(error)


def _write(message: str, *, cause: str = "", hint: str = "") -> None:
    for name, text in (("error", message), ("cause", cause), ("hint", hint)):
        if text:
            # Without anybody to tell, the exit code still says it.
            with suppress(OSError):
                click.echo(f"{name}: {safe_text(text)}", err=True)


def _cause(error: GsdError) -> str:
    """Return the first cause that says more than *error* does."""
    cause = error.__cause__
    while cause is not None and (not str(cause) or str(cause) in str(error)):
        cause = cause.__cause__
    return str(cause) if isinstance(cause, GsdError) else ""


def _save_traceback(error: BaseException) -> str:
    # Lines of source code and the texts of errors may contain secrets.
    text = safe_text("".join(traceback.format_exception(error)))
    try:
        handle, name = tempfile.mkstemp(prefix="gsd-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        return f"it cannot be saved ({problem.strerror}), so it follows\n{text}"
    return name
