"""Why nothing happens: one row for each kind of state, and what waits in it for what, with the ways out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core.journal.lock import UNKNOWN, Owner
from gsd_core.machine.history import FailureRecord, History
from gsd_core.machine.state import Failure, Options, Queued, State
from gsd_core.planning.model import PhaseView, Plan, Planning, Verdict
from gsd_core.run.snapshot import snapshot_of
from gsd_core.views.why import Situation, Why
from tests.machine.test_decisions import LATER, NOON, Steps, inquiry, record

HOLDER = Owner(pid=7, host="here", since="now", command="gsd run")
FAILED = Failure(kind="Permanent", message="no")
ANSWERS = "gsd answer q-1 1, gsd answer q-1 2, gsd answer q-1 'YOUR ANSWER'"


def plans(phase: str, text: str) -> tuple[Plan, ...]:
    """Return plans: ``a<b`` depends on ``b``, ``*`` has a summary, and ``:x`` changes the file ``x``."""
    found: list[Plan] = []
    for word in text.split():
        rest, _, file = word.rstrip("*").partition(":")
        name, _, after = rest.partition("<")
        summary = "s" if word.endswith("*") else ""
        about: Any = {
            "depends_on": tuple(filter(None, [after])),
            "files_modified": tuple(filter(None, [file])),
        }
        found.append(Plan(id=name, phase=phase, summary=summary, wave=1 + bool(after), **about))
    return tuple(found)


def phase(number: str, text: str = "", **more: Any) -> PhaseView:
    about: Any = {"context": "c" if text else "", "plans": plans(number, text), **more}
    return PhaseView(project=Path("p"), number=number, name="P", **about)


ONE = (phase("1", "a b<a c<b"),)
TWO = (phase("1", "a* b"), phase("2", depends_on=("1",)))
RUNNING = record("1/execute/a", "running", attempt=1)
PLANNED = record("1/plan")
OPEN = {"run": "r", "lifecycle": Options()}
LIVE: Any = {"holder": HOLDER}
BUDGET = {"budget": {"max_usd": "5"}}

ROWS: Mapping[str, tuple[tuple[PhaseView, ...], Mapping[str, Any], Mapping[str, Any], list[str]]] = {
    "no run": (
        ONE,
        {},
        {},
        [
            "project run [gsd run --phases 1]",
            "1/execute/a run [gsd run --phases 1]",
            "1/execute/b plans 1/execute/a [gsd run --phases 1]",
            "1/execute/c plans 1/execute/b [gsd run --phases 1]",
            "1/verify plans 1/execute/a 1/execute/b 1/execute/c [gsd run --phases 1]",
        ],
    ),
    "a plan is running": (
        TWO,
        {**OPEN, "steps": record("1/execute/b", "running", attempt=1)},
        LIVE,
        ["1/verify plans 1/execute/b []", "phase 2 phases phase 1 []"],
    ),
    "another plan changes the same file": (
        (phase("1", "a:x.py b:x.py"),),
        {**OPEN, "steps": RUNNING},
        {**LIVE, "capacity": 3},
        ["1/execute/b files 1/execute/a []", "1/verify plans 1/execute/a 1/execute/b []"],
    ),
    "no slot is free": (
        (phase("1", "a b c*"),),
        {**OPEN, "steps": RUNNING},
        {**LIVE, "more_slots": "--max-parallel 2"},
        [
            "1/execute/b slot 1/execute/a [gsd resume --max-parallel 2]",
            "1/verify plans 1/execute/a 1/execute/b [gsd resume --max-parallel 2]",
        ],
    ),
    "all slots of the machine are taken": (
        (phase("1", "a b c*"),),
        {
            **OPEN,
            "steps": RUNNING,
            "queued": {"1/execute/b": Queued(at=NOON, why="others", hint="stop one")},
        },
        {**LIVE, "capacity": 3},
        [
            "1/execute/b slot [stop one] since 12",
            "1/verify plans 1/execute/a 1/execute/b [stop one]",
        ],
    ),
    "a question, with a process": (
        TWO,
        {**OPEN, "steps": record("1/execute/b", "parked", attempt=1), "inquiries": inquiry("1/execute/b")},
        LIVE,
        [
            f"1/execute/b question [{ANSWERS}] since 12",
            f"1/verify plans 1/execute/b [{ANSWERS}]",
            f"phase 2 phases phase 1 [{ANSWERS}]",
        ],
    ),
    "a question of a step that is at work, which has the only slot": (
        (phase("1", "a b"),),
        {**OPEN, "steps": RUNNING, "inquiries": inquiry("1/execute/a")},
        LIVE,
        [
            f"1/execute/a question [{ANSWERS}] since 12",
            "1/execute/b slot 1/execute/a [gsd resume ]",
            f"1/verify plans 1/execute/a 1/execute/b [{ANSWERS}, gsd resume ]",
        ],
    ),
    "a question, without one": (
        TWO,
        {**OPEN, "steps": record("1/execute/b", "parked", attempt=1), "inquiries": inquiry("1/execute/b")},
        {},
        [
            "project run [gsd resume]",
            f"1/execute/b question [{ANSWERS}, gsd resume] since 12",
            f"1/verify plans 1/execute/b [{ANSWERS}, gsd resume]",
            f"phase 2 phases phase 1 [{ANSWERS}, gsd resume]",
        ],
    ),
    "an answer is given, and no process has taken it": (
        (phase("1", "a"),),
        {**OPEN, "steps": record("1/execute/a", "parked", attempt=1), "inquiries": inquiry("1/execute/a")},
        {"pending_answers": {"q-1": "Yes"}},
        [
            "project run [gsd resume]",
            "1/execute/a run [gsd resume]",
            "1/verify plans 1/execute/a [gsd resume]",
        ],
    ),
    "a timer": (
        (phase("1", "a* b"),),
        {**OPEN, "steps": record("1/execute/b", "waiting", attempt=1, until=LATER, failure=FAILED)},
        LIVE,
        ["1/execute/b timer [] until 13", "1/verify plans 1/execute/b []"],
    ),
    "a failed plan that others depend on, beside a running one": (
        (phase("1", "a b c<b"),),
        {**OPEN, "steps": {**RUNNING, **record("1/execute/b", "failed", failure=FAILED)}},
        {**LIVE, "capacity": 2, "errors": ("1/execute/b",)},
        [
            "1/execute/b failure 1/execute/a [] since 12",
            "1/execute/c plans 1/execute/b []",
            "1/verify plans 1/execute/a 1/execute/b 1/execute/c []",
        ],
    ),
    "a failed plan whose run has ended": (
        (phase("1", "a b<a"),),
        {
            **OPEN,
            "closed": "failed",
            "reason": "1/execute/a: no",
            "steps": record("1/execute/a", "failed", failure=FAILED),
            "inquiries": inquiry("1/execute/a", kind="escalation"),
        },
        {"errors": ("1/execute/a",)},
        [
            "project run [gsd log --kind failure, gsd resume]",
            f"1/execute/a question [{ANSWERS}, gsd resume] since 12",
            f"1/execute/b plans 1/execute/a [{ANSWERS}, gsd resume]",
            f"1/verify plans 1/execute/a 1/execute/b [{ANSWERS}, gsd resume]",
        ],
    ),
    "the budget is spent": (
        (phase("1", "a* b*"),),
        {**OPEN, "closed": "budget", "reason": "spent (raise --max-budget-usd and resume)"},
        {},
        ["project run [gsd cost --by step, gsd resume --max-budget-usd 10]", "1/verify run [gsd resume]"],
    ),
    "paused, and a start would be refused": (
        (phase("1", "a* b*"),),
        {**OPEN, "closed": "stopped", "reason": "paused on request"},
        {"obstacles": [("uncommitted changes", "commit them")]},
        ["project run [gsd resume]", "project obstacle [commit them]", "1/verify run [gsd resume]"],
    ),
    "gaps, and another process has the lock": (
        (phase("1", "a*", verdict=Verdict(path="v", status="passed")),),
        {**OPEN, "closed": "gaps"},
        {"holder": UNKNOWN},
        ["project process [gsd stop]", "1/complete run [gsd resume]"],
    ),
    "a phase that is not in the range": (
        TWO,
        {**OPEN, "options": Options(phases=("2",)), "lifecycle": Options(phases=("2",))},
        {},
        [
            "project run [change the roadmap or the range of phases]",
            "phase 1 range [gsd resume --phases 1]",
            "phase 2 phases phase 1 [gsd resume --phases 1]",
        ],
    ),
    "two phases that do not depend on each other": (
        (phase("1", "a* b"), phase("2", "d")),
        {**OPEN, "steps": record("1/execute/b", "running", attempt=1)},
        {**LIVE, "capacity": 2},
        [
            "1/verify plans 1/execute/b []",
            "2/execute/d turn 1/execute/b []",
            "2/verify plans 2/execute/d []",
        ],
    ),
    "a phase that was skipped": (
        TWO,
        {**OPEN, "skipped": ("1", "2")},
        {},
        ["project run []", "phase 1 range []", "phase 2 range []"],
    ),
    "a pause is asked for": (
        (phase("1", "a b"),),
        {**OPEN, "steps": RUNNING, "pause_asked": True},
        LIVE,
        [
            "project run []",
            "1/execute/b slot 1/execute/a [gsd resume ]",
            "1/verify plans 1/execute/a 1/execute/b [gsd resume ]",
        ],
    ),
    "everything is done": ((phase("1", "a*", ticked=True),), {}, {}, ["nothing: 1 phase complete"]),
}


def found(phases: tuple[PhaseView, ...], state: Mapping[str, Any], more: Mapping[str, Any]) -> Why:
    """Return why nothing happens in a project with these *phases*."""
    planning = Planning(phases=phases)
    errors = [FailureRecord(at=NOON, step=step, failure=FAILED) for step in more.get("errors", ())]
    steps: Steps = {**state.get("steps", {})}
    seen = snapshot_of(planning)
    about: dict[str, Any] = {**state, "steps": steps, "seen": seen}
    return Situation(
        state=State(**about),
        history=History(typed=BUDGET, errors=tuple(errors)),
        planning=planning,
        snapshot=seen,
        **{key: value for key, value in more.items() if key != "errors"},
    ).why()


def lines(result: Why) -> list[str]:
    """Return what waits, in short."""
    shown: list[str] = []
    for one in result.waiting:
        ways = ", ".join(way.command or way.about for way in one.ways)
        since = f" since {one.since:%H}" if one.since else ""
        until = f" until {one.until:%H}" if one.until else ""
        shown.append(" ".join([one.what, one.cause, *one.waits_for, f"[{ways}]"]) + since + until)
    return [*shown, *([f"nothing: {result.nothing}"] if result.nothing else [])]


@pytest.mark.parametrize("name", ROWS)
def test_what_waits_for_what(name: str) -> None:
    phases, state, more, expected = ROWS[name]

    assert lines(found(phases, state, more)) == expected


@pytest.mark.parametrize("name", ROWS)
def test_each_thing_that_is_not_done_is_running_or_waits_and_never_both(name: str) -> None:
    phases, state, more, _ = ROWS[name]
    result = found(phases, state, more)

    waiting = [one.what for one in result.waiting if one.what != "project"]
    assert len({*waiting}) == len(waiting)
    assert not {*waiting} & {*result.running, *result.done}
    wanted = [one for one in phases if one.number in (state.get("options", Options()).phases or one.number)]
    wanted = [one for one in wanted if one.number not in state.get("skipped", ())]
    executed = {f"{one.number}/execute/{plan.id}" for one in wanted for plan in one.plans}
    assert executed <= {*waiting, *result.running, *result.done}
    assert bool(result.waiting) != bool(result.nothing)


def test_plans_that_depend_on_each_other_in_a_circle_have_ways_too() -> None:
    [first, *others] = found((phase("1", "a<b b<a"),), OPEN, {}).waiting

    assert first.what == "project"
    assert all("gsd resume" in [way.command for way in one.ways] for one in others)


def test_a_step_that_is_due_in_a_live_run_says_that_it_begins_next() -> None:
    [waiting, _] = found((phase("1", "a"),), OPEN, LIVE).waiting

    assert (waiting.cause, waiting.reason) == ("turn", "it begins next")
    assert attrs.asdict(waiting)["ways"] == ()
