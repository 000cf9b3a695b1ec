"""complete, which needs no agent; and step kinds that the plugin does not handle."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gsd_core import (
    MapRequirement,
    PhaseView,
    Plan,
    Planning,
    Requirement,
    SetPosition,
    StepRequest,
    StepResult,
    TickPhase,
)
from gsd_core.testing.fakes import FakeHost
from gsd_plugins import native

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PLAN = Plan(id="02.1-01", phase="2.1", summary="S.md")
PHASE = PhaseView(
    number="2.1",
    name="Fix it",
    project=Path("/p"),
    goal="Fixed",
    requirements=("A-01", "A-02"),
    plans=(PLAN,),
)


def run(kind: str, *others: PhaseView, complete: tuple[str, ...] = (), **planning: Any) -> StepResult | None:
    step = StepRequest(
        id=f"2.1/{kind}",
        run="r-1",
        kind=kind,
        project=Path("/p"),
        tree=Path("/p"),
        now=NOW,
        phase=PHASE,
        planning=Planning(phases=(*others, PHASE), **planning),
        complete=complete,
    )
    return asyncio.run(native.execute_step(step, FakeHost()))


def test_requirements_missing_from_requirements_md_do_not_block_completion() -> None:
    result = run("complete", requirements=(Requirement(id="A-02", text="It works"),))
    assert result is not None

    mapped = [change.requirement for change in result.changes if isinstance(change, MapRequirement)]
    assert mapped == ["A-02"]


def test_completing_a_phase_ticks_it_last() -> None:
    result = run(
        "complete", requirements=(Requirement(id="A-01", text="a"), Requirement(id="A-02", text="b"))
    )
    assert result is not None

    assert result.subject == "docs(phase-02.1): complete phase execution"
    assert result.changes[:2] == (
        MapRequirement(requirement="A-01", phase="2.1", status="Complete"),
        MapRequirement(requirement="A-02", phase="2.1", status="Complete"),
    )
    assert result.changes[-1] == TickPhase(phase="2.1", date="2026-01-31")


def test_the_status_shows_whether_phases_are_left() -> None:
    def status_with(*others: PhaseView, complete: str = "") -> str:
        result = run("complete", *others, complete=tuple(complete))
        assert result is not None
        position = result.changes[-2]
        assert isinstance(position, SetPosition)
        # The core counts when it applies the change.
        assert (position.phases, position.percent, position.done) == (None, None, None)
        return position.status

    left = PhaseView(number="3", name="Later", project=Path("/p"), listed=("03-01",))
    done = PhaseView(number="1", name="Earlier", project=Path("/p"), ticked=True)

    assert status_with(left) == "Ready to plan"
    assert status_with(done, complete="1") == "All phases complete"
    # A check mark alone is a claim.
    assert status_with(done) == "Ready to plan"


def test_other_step_kinds_are_left_to_other_plugins() -> None:
    kinds: tuple[str, ...] = ("security-review", "no-such-kind")

    assert [run(kind) for kind in kinds] == [None, None]
