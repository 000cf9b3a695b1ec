"""Errors, named after what the caller should do about them. :mod:`gsd_core.exit_codes` has their exit codes.

::

    GsdError                      every error of gsd; its ``hint`` says how to fix it (exit 1)
      StepError                   an attempt failed; the error reaches the core unchanged
        Transient                 try again, no earlier than ``until`` if that is set (exit 75)
        Permanent                 do not try again
          Credentials             log in first (exit 4)
          Exhausted               a budget or a usage limit is used up (exit 5)
          RejectedAnswer          an agent's answer is still invalid after all complaints
        Parked                    a human has to answer first, then the core runs the step again (exit 3)
      PluginError                 a plugin broke its contract: report it, never retry
      UserError                   the user has to change something first (exit 2)
        ConfigError               settings, flags, or the set of installed plugins
        IdeaError                 the idea document
        ProjectError              the project's folder or repository
        PlanningError             a planning file; names the file and the line
        Locked                    another run is active in the project
      JournalError                the journal cannot be read or written
        Fenced                    a newer process has taken over the run
"""

from __future__ import annotations

from datetime import datetime
from typing import Any


class GsdError(Exception):
    """The base class. Errors can be pickled with all their attributes, for any signature of ``__init__``."""

    hint: str = ""

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

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Transient(StepError):
    """Trying again may help; if *until* (aware, UTC) is given, not before then."""

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
    """The *questions* (ids) cannot be answered now. Once they are answered, the core runs the step again."""

    def __init__(self, message: str, questions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.questions = questions


class PluginError(GsdError):
    """A plugin's implementation of *hook* failed in a way that its contract does not allow.

    *cause_text* describes the cause; unlike ``__cause__``, it survives pickling.
    """

    def __init__(self, plugin: str, hook: str, cause_text: str) -> None:
        super().__init__(plugin, hook, cause_text)
        self.plugin = plugin
        self.hook = hook
        self.cause_text = cause_text
        self.hint = f"run with -p no:{plugin} to continue without it"

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} failed in {self.hook}: {self.cause_text}"


class UserError(GsdError):
    """The user has to change something before a run can continue."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(UserError):
    """A setting is invalid, or asks for something that is not installed."""


class IdeaError(UserError):
    """The idea document cannot be used."""


class ProjectError(UserError):
    """The project's folder or its repository is in a state that a run cannot work with."""


class Locked(UserError):
    """Another run is active in this project."""


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

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Fenced(JournalError):
    """A newer process has taken over this run; this one must not write any more."""
