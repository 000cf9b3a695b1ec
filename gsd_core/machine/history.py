"""What a run has done so far, derived from the journal's facts: what commands show besides its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from gsd_core.model.ids import StepId
from gsd_core.model.usage import Usage

from . import facts
from .facts import Fact, Record, typed
from .state import Failure


@attrs.frozen(kw_only=True)
class FailingService:
    """A service that the last notifications did not reach: how many, since when, and the last reason."""

    service: str
    reason: str
    since: datetime
    count: int = 1


@attrs.frozen(kw_only=True)
class FailureRecord:
    """A failed attempt or step, and why it failed."""

    at: datetime
    step: str
    failure: Failure


@attrs.frozen(kw_only=True)
class History:
    """What a run has done so far.

    *commits* are grouped by phase, oldest first; those without a phase are under ``""``. *typed* are the
    flags that later processes of the run use too, by section. *sandbox* is the one that the last process
    used; if empty, *unconfined* says why. *branch* is the one that the last process worked on: empty if HEAD
    was detached, ``None`` if it is not recorded; *chosen* is the one that it was about to switch to. *usage*
    and *calls* are those of the agent calls that ended; *running* has those that did not, by
    :func:`call_id`, with what they have used so far. *failing* are the services that the last notification to
    them did not reach, by name.
    """

    run: str = ""
    agents: tuple[str, ...] = ()
    sandbox: str = ""
    unconfined: str = ""
    branch: str | None = None
    chosen: str = ""
    version: str = ""
    pid: int = 0
    typed: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict[str, Mapping[str, Any]])
    usage: Usage = attrs.field(factory=Usage)
    calls: int = 0
    running: Mapping[str, Usage] = attrs.field(factory=dict[str, Usage])
    commits: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    errors: tuple[FailureRecord, ...] = ()
    failing: Mapping[str, FailingService] = attrs.field(factory=dict[str, FailingService])


LIMITS = {f"--max-budget-{unit}": f"max_{unit}" for unit in ("usd", "tokens", "turns")}
"""The flags that limit a run, and their settings in the section ``budget``."""


def limits_of(history: History) -> dict[str, Decimal]:
    """Return what the run may use, by the flag that said so."""
    typed = history.typed.get("budget") or {}
    found = {flag: Decimal(str(typed[name])) for flag, name in LIMITS.items() if typed.get(name) is not None}
    if broken := [flag for flag, value in found.items() if not value.is_finite()]:
        raise ValueError(f"a limit that is no number: {', '.join(broken)}")
    return found


def fold_history(history: History, records: Iterable[Record]) -> History:
    """Return *history* after *records*; facts of other runs than the first one's are ignored."""
    fact: Fact
    for fact in typed(records, *_HANDLERS):
        if not history.run or fact.run == history.run:
            history = attrs.evolve(_HANDLERS[type(fact.data)](history, fact, fact.data), run=fact.run)
    return history


def phase_of(step: str) -> str:
    """Return the phase in the step id *step*; empty if it has none or is invalid."""
    try:
        return StepId.parse(step).phase
    except ValueError:
        return ""


def call_id(step: str, key: str) -> str:
    """Return what identifies an agent call of a step among those in progress."""
    return f"{step} {key}"


def _run_opened(history: History, _: Fact, data: facts.RunOpened) -> History:
    sandbox = data.sandbox or facts.UsedSandbox()
    opened = attrs.evolve(
        history,
        sandbox=sandbox.name,
        unconfined=sandbox.why,
        branch=history.branch if data.branch is None else data.branch,
        chosen="",
        pid=data.pid,
        version=data.version,
        # A single step may have had another agent: the lifecycle keeps its own.
        agents=history.agents if data.options.only_asked else data.agent,
        typed=data.typed or history.typed,
    )
    limits_of(opened)  # who folds facts reports those that cannot be read; who only shows them does not
    return opened


def _agent_opened(history: History, fact: Fact, data: facts.AgentOpened) -> History:
    call = call_id(fact.step, data.key)
    return attrs.evolve(history, running={**history.running, call: history.running.get(call, Usage())})


def _agent_turned(history: History, fact: Fact, data: facts.AgentActivity) -> History:
    call = call_id(fact.step, data.key)
    if data.usage is None or call not in history.running:
        return history
    return attrs.evolve(history, running={**history.running, call: data.usage + history.running[call]})


def _agent_closed(history: History, fact: Fact, data: facts.AgentClosed) -> History:
    running = dict(history.running)
    running.pop(call_id(fact.step, data.key), None)
    return attrs.evolve(history, usage=history.usage + data.usage, calls=history.calls + 1, running=running)


def _branch_chosen(history: History, _: Fact, data: facts.BranchChosen) -> History:
    return attrs.evolve(history, chosen=data.branch)


def _branch_switched(history: History, _: Fact, data: facts.BranchSwitched) -> History:
    return attrs.evolve(history, branch=data.branch, chosen="")


def _notice_sent(history: History, fact: Fact, data: facts.NoticeSent) -> History:
    failing = dict(history.failing)
    for delivery in data.deliveries:
        service, reason = delivery.service, delivery.reason
        known = failing.pop(service, None)
        if service and not delivery.ok:
            count, since = (known.count + 1, known.since) if known else (1, fact.at)
            failing[service] = FailingService(service=service, reason=reason, since=since, count=count)
    return attrs.evolve(history, failing=failing)


def _committed(history: History, fact: Fact, data: facts.TaskCommitted | facts.StepCompleted) -> History:
    phase = phase_of(fact.step)
    known = history.commits.get(phase, ())
    if not data.commit or data.commit in known:
        return history
    return attrs.evolve(history, commits={**history.commits, phase: (*known, data.commit)})


def _failed(history: History, fact: Fact, data: facts.AttemptFailed | facts.StepFailed) -> History:
    error = FailureRecord(at=fact.at, step=fact.step, failure=data.error)
    return attrs.evolve(history, errors=(*history.errors, error))


_HANDLERS: dict[type[object], Callable[[History, Fact, Any], History]] = {
    facts.RunOpened: _run_opened,
    facts.BranchChosen: _branch_chosen,
    facts.BranchSwitched: _branch_switched,
    facts.AgentOpened: _agent_opened,
    facts.AgentActivity: _agent_turned,
    facts.AgentClosed: _agent_closed,
    facts.NoticeSent: _notice_sent,
    facts.TaskCommitted: _committed,
    facts.StepCompleted: _committed,
    facts.AttemptFailed: _failed,
    facts.StepFailed: _failed,
}
