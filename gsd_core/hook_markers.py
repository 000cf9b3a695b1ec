"""Decorators for hooks: one that declares a hook, and two that mark implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

import attrs
import pluggy

PROJECT = "gsd"

Mode: TypeAlias = Literal["collect", "pick", "race", "fan_out", "wrap", "subscribe"]
"""How the core calls a hook; see :mod:`gsd_core.plugins.calling`."""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])

_MODE, _STABILITY = f"{PROJECT}_mode", f"{PROJECT}_stability"
_hookspec = pluggy.HookspecMarker(PROJECT)

hookimpl = pluggy.HookimplMarker(PROJECT)
"""pluggy's own marker: mark a function that has the hook's name as its implementation.

Use :func:`implements` instead if you can: it takes the hook itself, so that a type checker compares the
signatures, and the function may have any name. Use this one if you prefer pluggy's conventions, if only
the hook's name is known, or for pluggy's other options, such as ``optionalhook=True`` for a hook that only
some versions of GSD have.
"""


Level: TypeAlias = Literal["provisional", "stable", "deprecated"]
"""What a plugin may rely on.

``stable``: it changes only by additions, unless it was deprecated for at least two minor releases before.
``provisional``: it may change in any minor release; the changelog says how. ``deprecated``: it still works,
a plugin that uses it is warned about, and it is going to be removed.
"""

PROVISIONAL = frozenset(
    {
        *("AgentFunction", "AgentHost", "AgentResult", "AgentTask", "Activity", "Conversation", "Ended"),
        *("Limits", "Role", "ToolRecord"),
        *("StepHost", "StepSituation", "StepType", "CompletedStep", "Found", "FileMove", "Tag"),
        *("DeferredTask", "ReplacedBecause", "ReplacedCheck", "TaskCommit"),
        *("ConfinedProcess", "Place", "SandboxUnavailable", "SandboxedCommand"),
        *("AddDecisions", "AddPhase", "AddQuickTask", "Change", "ListPlans", "MapRequirement"),
        *("Panel", "SetPosition", "TickPhase", "TickPlan"),
    }
)
"""The public names that may change in any minor release; see :data:`Level`."""


@attrs.frozen(kw_only=True)
class Stability:
    """The *level* of a hook; *instead* says what to use in place of a deprecated one, and until when."""

    level: Level = "stable"
    instead: str = ""


def hookspec(*, mode: Mode, level: Level = "stable", instead: str = "") -> Callable[[F], F]:
    """Mark a function as the specification of a hook that the core calls in that *mode*.

    Plugins that implement a hook of the *level* ``deprecated`` are reported, with the text *instead*.
    """
    if (level == "deprecated") != bool(instead):
        raise ValueError("a deprecated hook, and no other, says what to use instead")

    def mark(function: F) -> F:
        setattr(function, _MODE, mode)
        setattr(function, _STABILITY, Stability(level=level, instead=instead))
        return _hookspec(function)

    return mark


def stability_of(spec: Callable[..., Any]) -> Stability:
    """Return what a plugin may rely on about the hook *spec*."""
    return cast("Stability", getattr(spec, _STABILITY))


def mode_of(spec: Callable[..., Any]) -> Mode:
    """Return the mode that the hook *spec* declares."""
    return cast("Mode", getattr(spec, _MODE))


class Mark(Protocol[P, R]):
    """Accepts a function, or a method, with the spec's exact signature."""

    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[S, P], R], /) -> Callable[Concatenate[S, P], R]: ...
    def __call__(self, function: Any, /) -> Any:
        """Mark *function*."""


def implements(spec: Callable[P, R], *, tryfirst: bool = False, trylast: bool = False) -> Mark[P, R]:
    """Mark a function or method as an implementation of the hook *spec*.

    The function may have any name; a type checker compares its signature with the hook's. Plugins are
    called in the order of their names; *tryfirst* and *trylast* put one before or after the others.
    """
    name: str = getattr(spec, "__name__")  # noqa: B009 - a ParamSpec callable has no __name__ for type checkers

    def mark(function: Any, /) -> Any:
        return hookimpl(function, specname=name, tryfirst=tryfirst, trylast=trylast)

    return mark
