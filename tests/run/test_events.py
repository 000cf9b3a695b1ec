"""What watchers are told when a human has to decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import define, field

from gsd_core import Event, Gap, Permanent, PhaseView, RunStep, StepRequest, StepResult, implements
from gsd_core.hookspecs import gsd_find_gaps, gsd_on_event, gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.testing import ScriptedHuman

from . import harness as h


@define(eq=False)
class Watcher:
    """Keeps what it is told."""

    events: list[Event] = field(factory=list[Event])

    @implements(gsd_on_event)
    async def watch(self, event: Event) -> None:
        self.events.append(event)

    def of(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]


class NoPlans:
    @implements(gsd_wrap_step)
    async def refuse(self, step: StepRequest, call_next: RunStep) -> StepResult:
        if step.kind == "plan":
            raise Permanent("no plans today", hint="come back tomorrow")
        return await call_next(step)


class Never:
    @implements(gsd_find_gaps)
    async def find(self, phase: PhaseView) -> Sequence[Gap]:
        return [Gap(truth="It can fly", reason="it cannot", about="flight")]


def test_a_failed_step_is_told_with_its_error_and_a_skipped_phase_with_who_said_so(tmp_path: Path) -> None:
    root, watcher = h.repository(tmp_path / "project"), Watcher()
    human = ScriptedHuman({"What now?": "Skip"})

    end = h.do(
        h.request(root, h.one_phase(), given=h.idea(), watcher=watcher, human=human, no_plans=NoPlans())
    )

    [escalated], [step], [phase] = (
        watcher.of(name) for name in ("error.escalated", "step.skipped", "phase.skipped")
    )
    assert end.exit == 6
    assert (escalated.step, escalated.data["phase"]) == ("1/plan", "1")
    assert (escalated.data["error"]["kind"], escalated.data["error"]["message"]) == (
        "Permanent",
        "no plans today",
    )
    assert (step.step, step.data["by"]) == ("1/plan", "script")
    assert phase.data == {"number": "1", "reason": "Skip"}


def test_gaps_that_remain_are_told_by_what_they_are_about(tmp_path: Path) -> None:
    root, watcher = h.repository(tmp_path / "project"), Watcher()

    asked = h.request(
        root, h.one_phase(), given=h.idea(), watcher=watcher, never=Never(), options=Options(gap_rounds=0)
    )
    end = h.do(asked)

    assert end.exit == 6
    assert [event.data for event in watcher.of("gap.escalated")] == [{"phase": "1", "gaps": ["flight"]}]
