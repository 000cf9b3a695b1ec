"""What the facts tell beside the machine's state: commits, errors, money, and who worked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from gsd_core.ids import StepId
from gsd_core.machine.state import Fact, Failure
from gsd_core.usage import Usage

Structure: TypeAlias = Callable[[Any, type[Any]], Any]


@frozen(kw_only=True)
class ErrorSeen:
    """An attempt or a step that failed, and why."""

    at: datetime
    step: str
    failure: Failure


@frozen(kw_only=True)
class History:
    """What was done so far; *commits* by phase, those without a phase under ``""``, oldest first.

    *typed* are the settings of the command line that the run goes on with, by section.
    """

    run: str = ""
    agents: tuple[str, ...] = ()
    version: str = ""
    pid: int = 0
    typed: Mapping[str, Mapping[str, Any]] = field(factory=dict[str, Mapping[str, Any]])
    usage: Usage = field(factory=Usage)
    calls: int = 0
    commits: Mapping[str, tuple[str, ...]] = field(factory=dict[str, tuple[str, ...]])
    errors: tuple[ErrorSeen, ...] = ()


def tell(history: History, facts: Iterable[Fact], structure: Structure) -> History:
    """Return *history* after *facts*; those of another run than the first one's are passed over."""
    for fact in facts:
        handler = _HANDLERS.get(fact.kind)
        if handler and (not history.run or fact.run == history.run):
            history = evolve(handler(history, fact, structure), run=fact.run)
    return history


def phase_of(step: str) -> str:
    """Return the phase that a step's id names; empty if it names none or is none."""
    try:
        return StepId.parse(step).phase
    except ValueError:
        return ""


def _opened(history: History, fact: Fact, _: Structure) -> History:
    said = fact.data
    return evolve(
        history,
        pid=said.get("pid") or 0,
        version=said.get("version") or "",
        agents=tuple(said.get("agent") or ()),
        typed=said.get("typed") or history.typed,
    )


def _agent_closed(history: History, fact: Fact, structure: Structure) -> History:
    used = fact.data.get("usage")
    usage = history.usage + structure(used, Usage) if used else history.usage
    return evolve(history, usage=usage, calls=history.calls + 1)


def _committed(history: History, fact: Fact, _: Structure) -> History:
    commit = fact.data.get("commit") or ""
    phase = phase_of(fact.step)
    known = history.commits.get(phase, ())
    if not commit or commit in known:
        return history
    return evolve(history, commits={**history.commits, phase: (*known, commit)})


def _failed(history: History, fact: Fact, structure: Structure) -> History:
    error = ErrorSeen(at=fact.at, step=fact.step, failure=structure(fact.data["error"], Failure))
    return evolve(history, errors=(*history.errors, error))


_HANDLERS: dict[str, Callable[[History, Fact, Structure], History]] = {
    "run.opened": _opened,
    "agent.closed": _agent_closed,
    "task.committed": _committed,
    "step.completed": _committed,
    "attempt.failed": _failed,
    "step.failed": _failed,
}
