"""Folds for readers, from facts to what is shown and written down."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gsd_core import Inquiry, Option, Question, UserError
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.schema import Record
from gsd_core.machine.fold import fold
from gsd_core.machine.state import Options, PhaseSeen, PlanSeen, Seen, State
from gsd_core.views.log import log_line, parse_since
from gsd_core.views.phases import PhaseRow, percent, phase_rows
from gsd_core.views.state_file import file_status, state_file
from gsd_core.views.status import History, tell

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
QUESTION = Question(id="q-1", text="Which?", options=(Option(label="This"), Option(label="That")))


class Story:
    """Facts in the order in which they are told, a second apart."""

    def __init__(self) -> None:
        self.facts: list[Record] = []

    def fact(self, kind: str, step: str = "", /, *, attempt: int = 1, **data: Any) -> Story:
        """Tell one more."""
        seq = len(self.facts) + 1
        at = BEGAN + timedelta(seconds=seq)
        self.facts.append(
            Record(seq=seq, run="r-1", epoch=1, at=at, kind=kind, v=1, step=step, attempt=attempt, data=data)
        )
        return self

    def seen(self, *phases: PhaseSeen) -> Story:
        """Tell what lies on disk."""
        return self.fact("project.observed", **unstructure(Seen(phases=phases)))

    @property
    def state(self) -> State:
        """The machine's state."""
        return fold(State(), self.facts, structure)

    @property
    def history(self) -> History:
        """What else is known."""
        return tell(History(), self.facts, structure)


def _begun(options: Options | None = None) -> Story:
    story = Story().fact("run.started", idea={"name": "idea.md", "sha256": "ab"})
    return story.fact("run.opened", pid=1, options=unstructure(options or Options()), agent=["fake"])


def _file(story: Story) -> dict[str, Any]:
    content = state_file(story.state, story.history)
    assert json.loads(json.dumps(content)) == content
    return content


def _plans(*done: bool) -> tuple[PlanSeen, ...]:
    return tuple(PlanSeen(id=f"01-{n:02d}", summary=summary) for n, summary in enumerate(done, 1))


def _row(story: Story) -> PhaseRow:
    (row,) = phase_rows(story.state)
    return row


def test_before_the_first_run_the_file_is_idle_and_empty() -> None:
    content = state_file(State(), History())

    assert (content["status"], content["phases"], content["started_at"]) == ("idle", [], None)


def test_the_file_tells_of_phase_and_step() -> None:
    story = _begun().seen(PhaseSeen(number="1", name="Core", context=True, plans=_plans(False)))
    story.fact("attempt.started", "1/execute/01-01", kind="execute", phase="1", plan="01-01")
    story.fact("task.committed", "1/execute/01-01", task="01-01/1", commit="abc", paths=["a"])

    content = _file(story)

    assert (content["status"], content["current_phase"], content["current_step"]) == (
        "running", "1", "1/execute/01-01",
    )  # fmt: skip
    (phase,) = content["phases"]
    assert (phase["status"], phase["commits"]) == ("in_progress", ["abc"])
    assert phase["steps"] == {
        "discuss": "completed", "plan": "completed", "execute": "in_progress", "verify": "pending",
    }  # fmt: skip


def test_the_same_commit_is_told_once() -> None:
    story = _begun().seen(PhaseSeen(number="1"))
    for commit in ("abc", "abc", "", "def"):
        story.fact("task.committed", "1/execute/01-01", task="01-01/1", commit=commit, paths=[])

    assert story.history.commits == {"1": ("abc", "def")}


def test_an_open_question_waits_for_a_human() -> None:
    story = _begun()
    story.fact("question.asked", "1/plan", inquiry=unstructure(Inquiry(step="1/plan", questions=(QUESTION,))))

    content = _file(story)

    assert content["status"] == "waiting_for_human"
    assert [question["id"] for question in content["pending_questions"]] == ["q-1"]


def test_the_history_of_errors_is_cut_to_500_characters_each() -> None:
    story = _begun().fact("attempt.started", "1/plan", kind="plan", phase="1")
    story.fact("attempt.failed", "1/plan", error={"kind": "Transient", "message": "x" * 900, "hint": ""})

    (error,) = _file(story)["error_history"]

    assert (error["phase"], error["step"], error["kind"], len(error["message"])) == (
        "1",
        "plan",
        "Transient",
        500,
    )


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("done", "complete"), ("failed", "error"), ("gaps", "error"), ("budget", "error"),
        ("blocked", "error"), ("stopped", "idle"),
    ],
)  # fmt: skip
def test_each_end_has_its_word(outcome: str, status: str) -> None:
    story = _begun().fact("run.closed", outcome=outcome, exit=0, reason="")

    assert file_status(story.state) == status


def test_a_phase_without_verification_reaches_100_percent() -> None:
    options = Options(skip_verify=True, skip_discuss=True)
    story = _begun(options).seen(PhaseSeen(number="1", plans=_plans(True, True)))

    row = _row(story)

    assert (row.steps["discuss"], row.steps["verify"]) == ("skipped", "skipped")
    assert percent((row,)) == 100


def test_a_phase_that_was_done_elsewhere_is_completed_whatever_its_files() -> None:
    row = _row(_begun().seen(PhaseSeen(number="1", ticked=True)))

    assert (row.status, row.done) == ("completed", 4)


def test_gaps_are_no_verification_that_is_done() -> None:
    phase = PhaseSeen(number="1", context=True, plans=_plans(True), verdict="gaps_found", gaps=("a",))

    assert _row(_begun().seen(phase)).steps["verify"] == "in_progress"


def test_a_verdict_older_than_a_summary_is_no_verification_that_is_done() -> None:
    phase = PhaseSeen(number="1", context=True, plans=_plans(True), verdict="passed", stale=True)

    assert _row(_begun().seen(phase)).steps["verify"] == "in_progress"


def test_a_failed_step_makes_its_phase_failed() -> None:
    story = _begun().seen(PhaseSeen(number="1")).fact("attempt.started", "1/plan", kind="plan", phase="1")
    story.fact("step.failed", "1/plan", error={"kind": "Permanent", "message": "no", "hint": ""})

    row = _row(story)

    assert (row.status, row.steps["plan"]) == ("failed", "failed")


def test_phases_outside_the_range_do_not_count() -> None:
    story = _begun(Options(phases=("1",), skip_verify=True, skip_discuss=True))
    story.seen(PhaseSeen(number="1", plans=_plans(True)), PhaseSeen(number="2"))

    rows = phase_rows(story.state)

    assert [row.wanted for row in rows] == [True, False]
    assert percent(rows) == 100


def test_phases_are_ordered_part_by_part() -> None:
    story = _begun().seen(*(PhaseSeen(number=number) for number in ("10", "2.10", "2", "2.9", "1")))

    assert [row.number for row in phase_rows(story.state)] == ["1", "2", "2.9", "2.10", "10"]


def test_usage_is_that_of_all_calls_the_lost_ones_too() -> None:
    story = _begun()
    for ended, dollars in (("done", "0.10"), ("lost", "0.05")):
        usage = {"input_tokens": 10, "dollars": dollars, "basis": "priced"}
        story.fact("agent.closed", "1/plan", key="plan", ended=ended, usage=usage)

    history = story.history

    assert (str(history.usage.dollars), history.usage.input_tokens, history.calls) == ("0.15", 20, 2)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("90s", BEGAN - timedelta(seconds=90)),
        ("10m", BEGAN - timedelta(minutes=10)),
        ("2h", BEGAN - timedelta(hours=2)),
        ("1d", BEGAN - timedelta(days=1)),
        ("2026-01-02T03:00:00+00:00", datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("2026-01-02T03:00:00Z", datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("2026-01-02T03:00", datetime(2026, 1, 2, 3).astimezone()),
    ],
)
def test_since_is_a_time_or_a_duration(text: str, time: datetime) -> None:
    assert parse_since(text, BEGAN) == time


@pytest.mark.parametrize("text", ["", "10", "m", "-5m", "tomorrow", "2026-13-01"])
def test_since_is_nothing_else(text: str) -> None:
    with pytest.raises(UserError, match="not a time"):
        parse_since(text, BEGAN)


def test_a_record_that_is_not_as_expected_is_shown_as_it_is() -> None:
    story = Story().fact("run.closed", surprise=1).fact("unheard.of", words="yes")

    assert '{"surprise": 1}' in log_line(story.facts[0])
    assert '{"words": "yes"}' in log_line(story.facts[1])


def test_a_record_is_one_line_whatever_it_says() -> None:
    story = Story().fact("agent.activity", "1/plan", tool="Bash", text="one\ntwo\r\nthree")

    assert log_line(story.facts[0]).splitlines()[1:] == []
