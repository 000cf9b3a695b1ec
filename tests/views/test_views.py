"""Views on the journal: the state file, the phases, the history and the log."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from gsd_core import Inquiry, Option, Question, UserError
from gsd_core.codec import unstructure
from gsd_core.machine.facts import Record
from gsd_core.machine.fold import fold
from gsd_core.machine.history import History, fold_history
from gsd_core.machine.state import Options, PhaseSnapshot, PlanSnapshot, Snapshot, State
from gsd_core.views.log import parse_since
from gsd_core.views.phases import PhaseRow, measure_of_snapshot, phase_rows
from gsd_core.views.state_file import file_status, state_file
from gsd_core.views.story import Narrator, log_line
from gsd_core.views.summary import summarize

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
QUESTION = Question(id="q-1", text="Which?", options=(Option(label="This"), Option(label="That")))


class Facts:
    """A journal's facts, one second apart."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, kind: str, step: str = "", /, *, attempt: int = 1, **data: Any) -> Facts:
        """Append a fact."""
        seq = len(self.records) + 1
        at = START + timedelta(seconds=seq)
        self.records.append(
            Record(seq=seq, run="r-1", epoch=1, at=at, kind=kind, v=1, step=step, attempt=attempt, data=data)
        )
        return self

    def observe(self, *phases: PhaseSnapshot) -> Facts:
        """Append what was found on disk."""
        return self.add("project.observed", **unstructure(Snapshot(phases=phases)))

    @property
    def state(self) -> State:
        """The state of the machine after these facts."""
        return fold(State(), self.records)

    @property
    def history(self) -> History:
        """The history that these facts make."""
        return fold_history(History(), self.records)


def _open_run(options: Options | None = None) -> Facts:
    facts = Facts().add("run.started", idea={"name": "idea.md", "text": "", "sha256": "ab"})
    return facts.add("run.opened", pid=1, options=unstructure(options or Options()), agent=["fake"])


def _state_file(facts: Facts) -> dict[str, Any]:
    content = state_file(facts.state, facts.history)
    assert json.loads(json.dumps(content)) == content
    return content


def _plans(*done: bool) -> tuple[PlanSnapshot, ...]:
    return tuple(PlanSnapshot(id=f"01-{n:02d}", summary=summary) for n, summary in enumerate(done, 1))


def _row(facts: Facts) -> PhaseRow:
    (row,) = phase_rows(facts.state)
    return row


def test_before_the_first_run_the_state_file_is_idle_and_empty() -> None:
    content = state_file(State(), History())

    assert (content["status"], content["phases"], content["started_at"]) == ("idle", [], None)


def test_the_state_file_names_the_current_phase_and_step() -> None:
    facts = _open_run().observe(PhaseSnapshot(number="1", name="Core", context=True, plans=_plans(False)))
    facts.add("attempt.started", "1/execute/01-01", kind="execute", phase="1", plan="01-01")
    facts.add("task.committed", "1/execute/01-01", task="01-01/1", commit="abc", paths=["a"])

    content = _state_file(facts)

    assert (content["status"], content["current_phase"], content["current_step"]) == (
        "running",
        "1",
        "1/execute/01-01",
    )
    (phase,) = content["phases"]
    assert (phase["status"], phase["commits"]) == ("in_progress", ["abc"])
    assert phase["steps"] == {
        "discuss": "completed",
        "plan": "completed",
        "execute": "in_progress",
        "verify": "pending",
    }


def test_each_commit_is_listed_once() -> None:
    facts = _open_run().observe(PhaseSnapshot(number="1"))
    for commit in ("abc", "abc", "", "def"):
        facts.add("task.committed", "1/execute/01-01", task="01-01/1", commit=commit, paths=[])

    assert facts.history.commits == {"1": ("abc", "def")}


def test_with_an_open_question_the_status_is_waiting_for_human() -> None:
    facts = _open_run()
    facts.add("question.asked", "1/plan", inquiry=unstructure(Inquiry(step="1/plan", questions=(QUESTION,))))

    content = _state_file(facts)

    assert content["status"] == "waiting_for_human"
    assert [question["id"] for question in content["pending_questions"]] == ["q-1"]


def test_error_messages_are_cut_to_500_characters() -> None:
    facts = _open_run().add("attempt.started", "1/plan", kind="plan", phase="1")
    facts.add("attempt.failed", "1/plan", error={"kind": "Transient", "message": "x" * 900, "hint": ""})

    (error,) = _state_file(facts)["error_history"]

    assert (error["phase"], error["step"], error["kind"], len(error["message"])) == (
        "1",
        "plan",
        "Transient",
        500,
    )


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("done", "complete"),
        ("failed", "error"),
        ("gaps", "error"),
        ("budget", "error"),
        ("blocked", "error"),
        ("stopped", "idle"),
    ],
)
def test_each_outcome_has_a_status(outcome: str, status: str) -> None:
    facts = _open_run().add("run.closed", outcome=outcome, exit=0, reason="")

    assert file_status(facts.state) == status


def test_a_phase_without_verification_has_no_step_left() -> None:
    options = Options(skip_verify=True, skip_discuss=True)
    facts = _open_run(options).observe(PhaseSnapshot(number="1", plans=_plans(True, True)))

    row = _row(facts)

    assert (row.steps["discuss"], row.steps["verify"]) == ("skipped", "skipped")
    assert (
        str(measure_of_snapshot(facts.state.seen)) == "0 of 1 phase complete; 2 of 2 written plans executed"
    )


def test_a_ticked_phase_is_completed_whatever_its_files() -> None:
    row = _row(_open_run().observe(PhaseSnapshot(number="1", ticked=True)))

    assert row.status == "completed"
    assert set(row.steps.values()) == {"skipped"}


def test_with_gaps_the_verification_is_in_progress() -> None:
    phase = PhaseSnapshot(number="1", context=True, plans=_plans(True), verdict="gaps_found", gaps=("a",))

    assert _row(_open_run().observe(phase)).steps["verify"] == "in_progress"


def test_with_a_stale_verdict_the_verification_is_in_progress() -> None:
    phase = PhaseSnapshot(number="1", context=True, plans=_plans(True), verdict="passed", stale=True)

    assert _row(_open_run().observe(phase)).steps["verify"] == "in_progress"


def test_a_failed_step_makes_its_phase_failed() -> None:
    facts = (
        _open_run()
        .observe(PhaseSnapshot(number="1"))
        .add("attempt.started", "1/plan", kind="plan", phase="1")
    )
    facts.add("step.failed", "1/plan", error={"kind": "Permanent", "message": "no", "hint": ""})

    row = _row(facts)

    assert (row.status, row.steps["plan"]) == ("failed", "failed")


def test_phases_outside_the_chosen_range_are_not_wanted() -> None:
    facts = _open_run(Options(phases=("1",), skip_verify=True, skip_discuss=True))
    facts.observe(PhaseSnapshot(number="1", plans=_plans(True)), PhaseSnapshot(number="2"))

    rows = phase_rows(facts.state)

    assert [row.wanted for row in rows] == [True, False]
    assert (
        str(measure_of_snapshot(facts.state.seen)) == "0 of 2 phases complete; 1 of 1 written plan executed"
    )


def test_phases_are_ordered_by_each_part_of_their_number() -> None:
    facts = _open_run().observe(*(PhaseSnapshot(number=number) for number in ("10", "2.10", "2", "2.9", "1")))

    assert [row.number for row in phase_rows(facts.state)] == ["1", "2", "2.9", "2.10", "10"]


def test_usage_includes_lost_calls() -> None:
    facts = _open_run()
    for ended, dollars in (("done", "0.10"), ("lost", "0.05")):
        usage = {"input_tokens": 10, "dollars": dollars, "basis": "priced"}
        facts.add("agent.closed", "1/plan", key="plan", ended=ended, usage=usage)

    history = facts.history

    assert (str(history.usage.dollars), history.usage.input_tokens, history.calls) == ("0.15", 20, 2)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("90s", START - timedelta(seconds=90)),
        ("10m", START - timedelta(minutes=10)),
        ("2h", START - timedelta(hours=2)),
        ("1d", START - timedelta(days=1)),
        ("2026-01-02T03:00:00+00:00", datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("2026-01-02T03:00:00Z", datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("2026-01-02T03:00", datetime(2026, 1, 2, 3).astimezone()),
    ],
)
def test_since_accepts_a_time_or_a_duration(text: str, time: datetime) -> None:
    assert parse_since(text, START) == time


@pytest.mark.parametrize("text", ["", "10", "m", "-5m", "tomorrow", "2026-13-01"])
def test_since_rejects_anything_else(text: str) -> None:
    with pytest.raises(UserError, match="time"):
        parse_since(text, START)


def test_a_record_that_cannot_be_understood_is_named() -> None:
    facts = Facts().add("run.closed", surprise=1).add("unheard.of", words="yes")

    assert [log_line(Narrator(), record).split()[2:] for record in facts.records] == [
        ["run.closed"],
        ["unheard.of"],
    ]


def test_a_record_with_other_contents_than_its_kind_has_does_not_end_the_story() -> None:
    facts = Facts().add("step.result", "1/plan", result={"outcome": 5}).add("notice.sent", key="")
    narrator = Narrator()

    assert [narrator.entry(record) for record in facts.records] == [None, None]


def test_a_record_is_always_one_line() -> None:
    facts = Facts().add("agent.activity", "1/plan", tool="Bash", text="one\ntwo\r\nthree")

    assert log_line(Narrator(), facts.records[0]).endswith("Bash: one two three")


def test_the_time_between_two_processes_is_no_part_of_the_time_that_a_step_took() -> None:
    facts = _open_run().add("attempt.started", "1/plan").add("agent.activity", "1/plan")
    facts.add("attempt.lost", "1/plan", why="killed").add("attempt.started", "1/plan", attempt=2)
    facts.add("step.completed", "1/plan", attempt=2)
    # A second process resumed the run after an hour.
    later = [attrs.evolve(one, epoch=2, at=one.at + timedelta(hours=1)) for one in facts.records[4:]]

    summary = summarize([*facts.records[:4], *later])

    assert [(step.status, step.attempts, step.took) for step in summary.steps] == [
        ("completed", 2, timedelta(seconds=1 + 1))
    ]
