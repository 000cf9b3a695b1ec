"""Events and notices for subscribers and people, when a human has to decide and when a run resumes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from attrs import define, field

from gsd_core import Event, Gap, Permanent, PhaseView, RunStep, StepRequest, StepResult, implements
from gsd_core.hookspecs import gsd_find_gaps, gsd_on_event, gsd_wrap_step
from gsd_core.machine.facts import Record
from gsd_core.machine.state import Options, State
from gsd_core.run.notifications import notice_of
from gsd_core.run.publishing import work_so_far
from gsd_core.testing import RecordingNotifier, ScriptedHuman

from . import harness as h


@define(eq=False)
class Watcher:
    """Keeps the events that it receives."""

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


def test_events_of_a_failed_step_and_a_skipped_phase_have_the_error_and_who_decided(tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_the_event_of_remaining_gaps_names_what_they_are_about(tmp_path: Path) -> None:
    root, watcher = h.repository(tmp_path / "project"), Watcher()

    asked = h.request(
        root, h.one_phase(), given=h.idea(), watcher=watcher, never=Never(), options=Options(gap_rounds=0)
    )
    end = h.do(asked)

    assert end.exit == 6
    assert [event.data for event in watcher.of("gap.escalated")] == [{"phase": "1", "gaps": ["flight"]}]


@pytest.mark.slow
def test_a_question_that_a_policy_answers_at_once_is_not_notified(tmp_path: Path) -> None:
    root, notifier = h.repository(tmp_path / "project"), RecordingNotifier()

    end = h.do(h.request(root, h.one_phase(question=True), given=h.idea(), notifier=notifier))

    assert (end.outcome, len(h.asked(root))) == ("done", 1)
    assert {notice.type for notice in notifier.notices} == {"progress", "complete"}


@pytest.mark.slow
def test_a_question_that_nobody_answers_is_notified_with_the_command_that_answers_it(tmp_path: Path) -> None:
    root, notifier = h.repository(tmp_path / "project"), RecordingNotifier()

    h.do(h.request(root, h.one_phase(question=True), given=h.idea(), yes=False, notifier=notifier))

    [question] = h.asked(root)
    [notice] = [notice for notice in notifier.notices if notice.type == "question"]
    assert "1/execute/01-01 is waiting for an answer" in notice.title
    assert (notice.question, notice.answer_with) == (question, f"gsd -C {root} answer {question} CHOICE")


def test_the_notice_of_a_crash_lists_the_restarted_steps() -> None:
    recovered = Event(
        seq=7,
        name="recovered",
        at=datetime(2026, 1, 2, tzinfo=UTC),
        run="r-1",
        data={"processes": 1, "locks": 0, "lost": ["1/execute/01-01"]},
    )

    notice = notice_of(recovered, State(), "demo")

    assert notice is not None
    # An error ended the earlier process; that this one continues is not one.
    assert (notice.title, notice.level) == ("demo: resumed after a crash", "warning")
    assert "Restarting plan 01-01." in notice.body


@pytest.mark.slow
def test_a_resumed_run_says_what_its_earlier_processes_did(tmp_path: Path) -> None:
    root, watcher = h.repository(tmp_path / "project"), Watcher()
    asked = h.one_phase(question=True)
    stopped = h.do(h.request(root, asked, given=h.idea(), yes=False, watcher=watcher))
    spent = watcher.of("cost.changed")

    h.do(h.request(root, asked, watcher=watcher))

    first, second = watcher.of("run.opened")
    so_far = second.data["so_far"]
    assert stopped.outcome == "blocked"
    assert "so_far" not in first.data
    assert so_far["calls"] == len(spent) > 0
    assert so_far["tokens"] == sum(event.data["tokens"] for event in spent)
    assert so_far["seconds"] >= 0


def test_the_time_between_processes_does_not_count_and_that_of_a_killed_one_does() -> None:
    def fact(seconds: int, kind: str, step: str = "", **data: object) -> Record:
        at = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=seconds)
        return Record(seq=seconds, run="r-1", epoch=1, at=at, kind=kind, v=1, step=step, attempt=1, data=data)

    facts = [
        fact(1, "run.opened"),
        fact(11, "run.closed"),
        fact(1000, "run.opened"),
        fact(1005, "task.committed", "1/execute/01-01", task="01-01/1"),
        fact(9000, "run.opened"),
    ]

    assert work_so_far(facts, 9000)["seconds"] == 10 + 5
    assert work_so_far(facts, 9000)["tasks"] == {"1/execute/01-01": ["01-01/1"]}
    assert work_so_far(facts, 1000)["seconds"] == 10
