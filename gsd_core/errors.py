"""Errors, named after what the caller should do about them. :mod:`gsd_core.exit_codes` has their exit codes.

::

    GsdError                      every error of gsd; its ``hint`` says how to fix it (exit 1)
      StepError                   an attempt failed; the error reaches the core unchanged
        Transient                 try again, no earlier than ``until`` if that is set (exit 75)
          Interference            what only the run may change was changed while an agent worked (exit 1)
          Outage                  a service does not answer: keep trying for a while
          Postponed               a policy lets the next agent call wait (exit 75)
        Permanent                 do not try again
          Credentials             log in first (exit 4)
          Exhausted               a budget or a usage limit is used up (exit 5)
          RejectedAnswer          an agent's answer is still invalid after all complaints
        Parked                    a human has to answer first, then the core runs the step again (exit 3)
      PluginError                 a plugin broke its contract: report it, never retry
        PluginRefused             the machine refused what a plugin needs (exit 2)
      UserError                   the user has to change something first (exit 2)
        ConfigError               settings, flags, or the set of installed plugins
        IdeaError                 the idea document
        ProjectError              the project's folder or repository
        PlanningError             a planning file; names the file and the line
        NotFound                  something that was named does not exist: a session, a question, a commit
        Conflict                  the present state forbids it, such as an answer to an answered question
        Locked                    another run is active in the project
        NoSandbox                 no sandbox works, and the run needs one (exit 4)
        CannotNotify              notifications cannot be sent as the user wants (exit 4)
        Untrusted                 the project wants something that its user has not trusted
        MachineError              the machine refuses: disk full or read-only, limits, permissions
      JournalError                the journal cannot be read or written (exit 2)
        Fenced                    a newer process has taken over the run (exit 1)
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from datetime import datetime
from typing import Any


class GsdError(Exception):
    """The base class. Errors can be pickled with all their attributes, for any signature of ``__init__``."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(cls: type[GsdError], args: tuple[Any, ...], attributes: dict[str, Any]) -> GsdError:
    # Pickle would call the class with `args`, which may not be the arguments of its `__init__`.
    error = cls.__new__(cls, *args)
    error.__dict__.update(attributes)
    return error


class StepError(GsdError):
    """An attempt at a step failed; the core sets ``plugin`` to the plugin that raised it."""

    plugin: str = ""


class Transient(StepError):
    """Trying again may help; if *until* (aware, UTC) is given, not before then."""

    def __init__(self, message: str, until: datetime | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.until = until


class Interference(Transient):
    """While an agent worked, something changed that only the run may change; it has been undone.

    Another attempt is told about it, so trying again may help.
    """


class Outage(Transient):
    """A service that the step needs does not answer, or says that it is overloaded.

    It will answer again, and a failed try costs nothing; so the wait may take many more tries than
    for another transient failure.
    """


class Postponed(Transient):
    """A policy lets an agent call wait until *until*; nothing has failed, and nothing was spent."""


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
    """The *questions* (ids) cannot be answered now. Once they are answered, the core runs the step again."""

    def __init__(self, message: str, questions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.questions = questions


class PluginError(GsdError):
    """A plugin's implementation of *hook* failed in a way that its contract does not allow.

    *cause_text* describes the cause; unlike ``__cause__``, it survives pickling.
    """

    def __init__(self, plugin: str, hook: str, cause_text: str) -> None:
        super().__init__(cause_text, hint=f"run with -p no:{plugin} to continue without it")
        self.plugin = plugin
        self.hook = hook
        self.cause_text = cause_text

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} failed in {self.hook}: {self.cause_text}"


class PluginRefused(PluginError):
    """The operating system refused what a plugin needs, such as space on a disk. The plugin is not to blame.

    *hint* says what to do about it.
    """

    def __init__(self, plugin: str, hook: str, cause_text: str, hint: str = "") -> None:
        super().__init__(plugin, hook, cause_text)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.cause_text} (in plugin {self.plugin!r})"


class UserError(GsdError):
    """The user has to change something before a run can continue."""


class ConfigError(UserError):
    """A setting is invalid, or asks for something that is not installed."""


class IdeaError(UserError):
    """The idea document cannot be used."""


class ProjectError(UserError):
    """The project's folder or its repository is in a state that a run cannot work with."""


class NotFound(UserError):
    """What the user named does not exist: a session, a question, a phase, a file, or a commit."""


class Conflict(UserError):
    """The present state forbids what the user asked for; it may have been possible a moment ago.

    Such as stopping a session that has ended, or answering a question that is answered.
    """


class Locked(UserError):
    """Another run is active in this project."""


class NoSandbox(UserError):
    """No sandbox works on this machine, and the settings require one or the run has used one so far."""


class CannotNotify(UserError):
    """Notifications cannot be sent to where the user wants them."""


class Untrusted(UserError):
    """The project has plugins, settings or commands that its user has not trusted."""


class MachineError(UserError):
    """The operating system refused what gsd needs, such as space on a disk; see :func:`machine_error`."""


class PlanningError(UserError):
    """A planning file is invalid: *path*, and *line* (from 1; 0 if unknown)."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.line = line

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.args[0]}" if where else str(self.args[0])


class JournalError(GsdError):
    """The journal cannot be read or written."""


class Fenced(JournalError):
    """A newer process has taken over this run; this one must not write any more."""


_NO_TEMPORARY = "No usable temporary directory"  # tempfile.gettempdir, about several folders
NO_TEMPORARY_HINT = "set TMPDIR to a folder that can be written to, then run gsd resume"
_ADVICE_FOR_A_PATH = "check the path and what is there, then run gsd resume"
_ADVICE: Mapping[int, str] = {
    errno.EROFS: "make the file system writable, then run gsd resume",
    errno.ENOSPC: "free some disk space, then run gsd resume",
    errno.EDQUOT: "free some of your disk quota, then run gsd resume",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), then run gsd resume",
    errno.EACCES: "check who owns it and who may write to it, then run gsd resume",
    errno.EPERM: "check who owns it and who may write to it, then run gsd resume",
    errno.EMFILE: "raise the limit on open files (ulimit -n), then run gsd resume",
    errno.ENFILE: "the machine has too many open files: end other programs, then run gsd resume",
    errno.EAGAIN: "raise the limit on processes (ulimit -u) or end some, then run gsd resume",
    errno.ENOMEM: "end other programs to free some memory, then run gsd resume",
    errno.EIO: "check the disk, then run gsd resume",
    errno.ESTALE: "mount the file system again, then run gsd resume",
}
_ABOUT_A_PATH = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP),
    *(errno.ENAMETOOLONG, errno.ETXTBSY, errno.ENXIO),
)


def machine_error(error: BaseException) -> MachineError | None:
    """Return *error* as a :class:`MachineError` that names the path; ``None`` if the machine is not to blame.

    It is if the operating system ran out of something, forbids something, or does not find a path.
    """
    if isinstance(error, MemoryError):
        return MachineError("out of memory", hint=_ADVICE[errno.ENOMEM])
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return MachineError("cannot start a thread", hint=_ADVICE[errno.EAGAIN])
    if not isinstance(error, OSError) or error.errno is None:
        return None
    path = error.filename2 or error.filename
    if error.errno == errno.ENOENT and not path and (error.strerror or "").startswith(_NO_TEMPORARY):
        return MachineError(f"{error.strerror}", hint=NO_TEMPORARY_HINT)
    hint = _ADVICE_FOR_A_PATH if path and error.errno in _ABOUT_A_PATH else _ADVICE.get(error.errno)
    if hint is None:
        return None
    where = f"{str(path)!r}: " if isinstance(path, str | bytes) or hasattr(path, "__fspath__") else ""
    return MachineError(f"{where}{error.strerror or error}", hint=hint)


def plugin_refusal(error: BaseException) -> MachineError | None:
    """Return what the machine refused the code of a plugin; ``None`` if the plugin itself is to blame.

    A missing file, or a pipe that is not ready, is the mistake of the code that did not expect it. For an
    error that the plugin judged itself (``Permanent``), only shortages count.
    """
    judged = type(error) is Permanent
    cause = error.__cause__ if judged else error
    if isinstance(cause, OSError):
        forbidden = cause.errno in (errno.EACCES, errno.EPERM)
        if cause.errno in _ABOUT_A_PATH and cause.filename:
            return None
        if forbidden and (judged or not cause.filename):
            return None
        if cause.errno == errno.EAGAIN and not _is_from_fork(cause):
            return None
    trouble = machine_error(cause) if cause else None
    return MachineError(str(error), hint=trouble.hint) if trouble and judged else trouble


def _is_from_fork(error: OSError) -> bool:
    """Whether a process could not be started; a socket that is not ready raises the same error."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_code.co_filename.endswith("/subprocess.py")
