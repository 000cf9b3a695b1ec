"""Errors as messages and exit codes; no other module turns them into either."""

from __future__ import annotations

import json
import os
import tempfile
import traceback
from contextlib import suppress

import attrs
import click

from gsd_core.errors import GsdError, MachineError, machine_error
from gsd_core.exit_codes import ExitCode, exit_code
from gsd_core.own_process import data_output
from gsd_core.sanitize import safe_text
from gsd_core.serializer import SCHEMA_VERSION

from .commands import with_global_options
from .global_options import GlobalOptions


def report_failure(
    error: BaseException, options: GlobalOptions | None = None, *, as_json: bool = False
) -> int:
    """Write what went wrong to stderr and return the exit code.

    The commands that a hint mentions get the user's global *options*. With *as_json*, stdout also gets the
    error as a JSON object on one line.
    """
    options = options or GlobalOptions()
    # Python 3.11 replaces the Ctrl+C that interrupts the definition of a class in an imported module.
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    match error:
        case BrokenPipeError():
            # The reader of our output, such as `head`, is gone. That is not an error.
            return ExitCode.OK
        case click.Abort() | KeyboardInterrupt():
            how = "\n".join(getattr(error.__cause__ or error, "__notes__", ()))
            with suppress(OSError):
                click.echo(f"interrupted\n{how}".strip(), err=True)
            failure = _Failure(kind="Interrupted", code=ExitCode.INTERRUPTED, message="interrupted", hint=how)
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=as_json)
            about = f"{error.ctx.command_path} needs a command" if error.ctx else "a command is missing"
            failure = _Failure(kind="UsageError", code=ExitCode.USAGE, message=about)
        case _:
            failure = _failure_of(error, options)
            from .output import print_labeled  # loads rich, which a command that succeeds may not need

            for name, text in (("error", failure.message), ("cause", failure.cause), ("hint", failure.hint)):
                if text:
                    # Without anybody to tell, the exit code still says it.
                    with suppress(OSError):
                        print_labeled(name, safe_text(text))
    if as_json:
        texts = {"message": failure.message, "cause": failure.cause, "hint": failure.hint}
        fields = {"kind": failure.kind} | {name: safe_text(text) for name, text in texts.items()}
        # The error may be that stdout cannot be written to.
        with suppress(OSError):
            line = json.dumps({"schema_version": SCHEMA_VERSION, "error": fields, "exit": failure.code})
            click.echo(line, file=data_output())
    return failure.code


@attrs.frozen(kw_only=True)
class _Failure:
    """What is said about an error; *kind* is its class, or click's."""

    kind: str
    code: int
    message: str
    cause: str = ""
    hint: str = ""


def _failure_of(error: BaseException, options: GlobalOptions) -> _Failure:
    kind = type(error).__name__
    match error:
        case SystemExit():
            # gsd's commands return their codes: only a callback of a plugin gets here.
            last = traceback.extract_tb(error.__traceback__)[-1]
            return _Failure(
                kind="SystemExit",
                code=ExitCode.FAILED,
                message=f"a plugin ended the command before it was done: {kind}({error})",
                cause=f"raised at {last.filename}:{last.lineno} in {last.name}",
                hint="run without that plugin: -p no:NAME (see gsd plugins)",
            )
        case click.ClickException():
            # click writes the choices of an argument on several lines.
            message = " ".join(error.format_message().split())
            if not isinstance(error, click.UsageError):
                return _Failure(kind=type(error).__name__, code=ExitCode.USAGE, message=message)
            hint = f"{error.ctx.command_path if error.ctx else 'gsd'} --help"
            # Its subclasses are click's business.
            return _Failure(kind="UsageError", code=ExitCode.USAGE, message=message, hint=hint)
        case OSError() | MemoryError() | RuntimeError() if trouble := _machine_error(error):
            return _failure_of(trouble, options)
        case GsdError():
            # The first cause that says more than the error does.
            cause = error.__cause__
            while cause is not None and (not str(cause) or str(cause) in str(error)):
                cause = cause.__cause__
            said = str(cause) if isinstance(cause, GsdError) else ""
            hint = with_global_options(error.hint, options)
            return _Failure(kind=kind, code=exit_code(error), message=str(error), cause=said, hint=hint)
        case _:
            return _Failure(
                kind=kind,
                code=ExitCode.FAILED,
                message=f"{kind}: {error}" if str(error) else kind,
                cause="this is a bug in gsd or in a plugin; everything recorded so far is kept",
                hint=f"full traceback: {_save_traceback(error)}",
            )


def _machine_error(error: BaseException) -> MachineError | None:
    """Return what the machine refused; if it was our output, say so, because its errors name no path."""
    try:
        data_output().flush()
    except OSError as unwritten:
        # What could not be written is still in the stream's buffer, so writing it fails again.
        if isinstance(error, OSError) and unwritten.errno == error.errno:
            hint = "send it somewhere else, or free some space there"
            return MachineError(f"cannot write to standard output: {error.strerror}", hint=hint)
    return machine_error(error)


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
