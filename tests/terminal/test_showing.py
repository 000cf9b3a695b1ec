"""How a run is shown: lines, the live view, JSON."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console
from rich.text import Text

from gsd_core import Event, Notice, RunInfo
from gsd_plugins.terminal.lines import ASCII, UNICODE, lines_of
from gsd_plugins.terminal.live_state import LiveState, after_event, with_roadmap
from gsd_plugins.terminal.live_view import render
from gsd_plugins.terminal.session import RUN_KEYS, TerminalSession
from tests.terminal.pseudo_terminal import BEGAN, DATABASE, EVIL, asked, event

RUN: tuple[Event, ...] = (
    event("run.opened", version="0.1.0", agent=["rehearsal"], resumed=False),
    event("phase.started", "1/plan", after=1, number="1", name="Foundation"),
    event("step.started", "1/plan", after=2, kind="plan", phase="1", attempt=1),
    event("agent.activity", "1/plan", after=3, kind="tool", tool="Bash", text="pytest -q"),
    event("cost.changed", "1/plan", after=4, dollars="0.25", tokens=1500, calls=1, basis="reported"),
    event("attempt.failed", "1/plan", after=5, error={"kind": "Transient", "message": "529", "hint": ""}),
    event("step.completed", "1/plan", after=6, kind="plan", commit="abcdef0123456", subject="docs(01): plan"),
    event("task.committed", "1/execute/01-01", after=7, task="01-01/1", name="Parse it", commit="123456789"),
    event("gap.found", "1/verify", after=8, phase="1", gaps=[{"truth": "It runs", "reason": "no main"}]),
    event("plugin.failed", after=9, plugin="slack", hook="gsd_notify", error="offline"),
    event("phase.completed", "1/complete", after=10, number="1", name="Foundation"),
    event("step.failed", "2/plan", after=11, error={"kind": "Permanent", "message": "no", "hint": "log in"}),
)


class Log(io.StringIO):
    """A stream that goes to a file."""

    encoding = "utf-8"


class Tty(Log):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def _show(
    events: Sequence[Event], err: io.StringIO, *, environ: dict[str, str] | None = None, **run: Any
) -> str:
    out = io.StringIO()

    async def show() -> None:
        info = RunInfo(id="r-1", project=Path("/nowhere"), **run)
        session = TerminalSession(clock=lambda: BEGAN)
        async with session.open(info, out=out, err=err, environ=environ or {}):
            for one in events:
                await session.show(one)

    asyncio.run(show())
    return out.getvalue()


def _lines(events: Sequence[Event], **run: Any) -> list[str]:
    err = Log()
    assert _show(events, err, **run) == ""
    return [line.strip() for line in err.getvalue().splitlines()]


def test_a_run_is_shown_line_by_line() -> None:
    opened, *lines = _lines(RUN)

    assert opened.startswith("• run r-1 started")
    assert "gsd 0.1.0" in opened
    assert "rehearsal" in opened
    assert lines == [
        "● phase 1: Foundation",
        "▸ 1/plan",
        "✗ 1/plan attempt failed: 529",
        "✓ 1/plan  abcdef012 docs(01): plan",
        "✓ task 01-01/1  123456789 Parse it",
        "✗ 1 gap in phase 1",
        "- It runs: no main",
        "✗ plugin slack failed in gsd_notify: offline",
        "✓ phase 1 complete: Foundation",
        "✗ 2/plan failed: no",
        "hint: log in",
    ]


def test_a_resumed_run_shows_what_it_recovered_from_a_crash() -> None:
    opened, recovered = _lines(
        [
            event("run.opened", version="0.1.0", agent=["rehearsal"], resumed=True),
            event("recovered", processes=2, locks=0, lost=["1/execute/01-01"]),
        ]
    )

    assert "r-1 resumed" in opened
    assert "2 processes" in recovered
    assert "1/execute/01-01" in recovered
    assert "lock" not in recovered


def test_quiet_shows_only_errors_and_questions() -> None:
    shown = _lines([*RUN, asked(DATABASE)], verbosity=-1)

    assert shown == [
        "✗ 2/plan failed: no",
        "hint: log in",
        "? 1/plan: Which database?",
        "1. SQLite",
        "2. PostgreSQL",
        "answer with: gsd answer q-1 …",
    ]


def test_a_stream_without_unicode_gets_ascii_glyphs() -> None:
    err = io.StringIO()

    _show(RUN, err)

    assert err.getvalue().isascii()


def test_each_v_shows_more_of_what_the_agent_does() -> None:
    result = event("agent.activity", "1/plan", kind="result", tool="Bash", text="3 passed")
    done = event("agent.activity", "1/plan", kind="result", tool="mcp__gsd__task_done", text="2 is done")
    says = event("agent.activity", "1/plan", kind="text", text="Now the tests.")
    events = [*RUN, result, done, says]

    normal, verbose, debug = (set(_lines(events, verbosity=level)) for level in range(3))

    assert verbose - normal == {"runs pytest -q"}
    assert debug - verbose == {"Bash: pytest -q", "result of Bash: 3 passed", "2 is done", "Now the tests."}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"kind": "tool", "tool": "Edit", "text": "src/app.py"}, "edits src/app.py"),
        ({"kind": "tool", "tool": "Grep", "text": "def main"}, "searches for def main"),
        ({"kind": "tool", "tool": "mcp__gsd__run_command", "text": "pytest"}, "runs pytest"),
        ({"kind": "tool", "tool": "mcp__gsd__task_done", "text": '{"task": 1}'}, "reports a finished task"),
        ({"kind": "tool", "tool": "AskUserQuestion", "text": '{"questions": []}'}, "asks a question"),
        ({"kind": "tool", "tool": "mcp__tracker__close", "text": '{"id": 7}'}, "uses close"),
        ({"kind": "tool", "tool": "Close", "text": "issue 7"}, "uses Close: issue 7"),
        ({"kind": "start", "text": "a-model"}, "starts (a-model)"),
        ({"kind": "text", "text": "…"}, "thinks"),
        ({"kind": "text", "text": "Now the tests."}, "Now the tests."),
        ({"kind": "retry", "text": "529: retry 1 of 3"}, "waits for the model: 529: retry 1 of 3"),
    ],
)
def test_the_view_says_in_words_what_the_agent_does(data: Mapping[str, Any], said: str) -> None:
    state = _state(event("step.started", "1/plan"), event("agent.activity", "1/plan", **data))

    assert state.steps["1/plan"].activity == said


def test_the_result_of_a_tool_does_not_replace_what_the_agent_does() -> None:
    ran = event("agent.activity", "1/plan", kind="tool", tool="Bash", text="pytest -q")
    result = event("agent.activity", "1/plan", kind="result", tool="Bash", text="3 passed")

    assert _state(event("step.started", "1/plan"), ran, result).steps["1/plan"].activity == "runs pytest -q"


def test_stream_json_puts_every_event_on_stdout_and_nothing_else() -> None:
    err = io.StringIO()

    out = _show(RUN, err, output="stream-json")

    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["name"] for line in lines] == [one.name for one in RUN]
    assert {line["schema_version"] for line in lines} == {1}
    assert lines[1] == {
        "schema_version": 1,
        "seq": 2,
        "name": "phase.started",
        "at": "2026-01-02T03:04:06+00:00",
        "run": "r-1",
        "step": "1/plan",
        "data": {"number": "1", "name": "Foundation"},
    }
    assert err.getvalue() == ""


def test_a_reader_that_goes_away_ends_the_stream_but_not_the_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    async def show() -> str:
        info = RunInfo(id="r-1", project=Path("/nowhere"), output="stream-json")
        async with TerminalSession().open(info, out=Gone(), err=io.StringIO()) as session:
            for one in RUN:
                await session.show(one)
        return "completed"

    assert asyncio.run(show()) == "completed"


@pytest.mark.parametrize("output", ["text", "stream-json"])
@pytest.mark.parametrize("tty", [True, False])
def test_untrusted_text_cannot_control_the_terminal(output: str, tty: bool) -> None:
    hostile = [
        event("phase.started", number="1", name=EVIL),
        event("step.started", "1/plan", kind="plan"),
        event("agent.activity", "1/plan", tool=EVIL, text=EVIL),
        event("step.failed", "1/plan", error={"message": EVIL, "hint": EVIL}),
        event("gap.found", phase="1", gaps=[{"truth": EVIL, "reason": EVIL}]),
        event("question.answered", question="q-1", words=EVIL, by=EVIL, via=EVIL),
        event("plugin.failed", plugin=EVIL, hook=EVIL, error=EVIL),
    ]
    err = Tty() if tty else io.StringIO()

    out = _show(hostile, err, output=output, environ={"TERM": "xterm"}, verbosity=1)

    shown = out + err.getvalue()
    assert not re.search(r"\x1b\]|\x1b\[2J|\x9b|\u202e|\x07", shown)
    assert "[red]bold[/red]" in shown


def test_no_color_wins_over_force_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    colored = io.StringIO()
    _show(RUN, colored)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = io.StringIO()
    _show(RUN, plain)

    assert "\x1b[" in colored.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_the_live_view_is_removed_at_the_end_and_the_cursor_is_shown() -> None:
    err = Tty()

    _show(RUN, err, environ={"TERM": "xterm"})

    shown = err.getvalue()
    assert "\x1b[?25l" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert "1500" not in _lines(RUN)
    assert "1.5k tokens" in shown


def test_a_dumb_terminal_gets_lines() -> None:
    err = Tty()

    _show(RUN, err, environ={"TERM": "dumb"})

    assert "\x1b[?25l" not in err.getvalue()


def test_a_crash_is_printed_and_the_bell_rings_on_a_terminal() -> None:
    err = Tty()

    async def notify() -> None:
        info = RunInfo(id="r-1", project=Path("/nowhere"))
        session = TerminalSession()
        async with session.open(info, out=io.StringIO(), err=err, environ={"TERM": "xterm"}):
            session.notify(Notice(key="k", type="crash", level="error", title="gsd ended", body="kill -9"))
            # The event "recovered" shows this one.
            session.notify(Notice(key="l", type="crash", level="warning", title="resumed after a crash"))

    asyncio.run(notify())

    assert "\a" in err.getvalue()
    assert "gsd ended: kill -9" in err.getvalue()
    assert "resumed after a crash" not in err.getvalue()


def _state(*events: Event) -> LiveState:
    state = LiveState()
    for one in events:
        state = after_event(state, one)
    return state


def _rendered(
    state: LiveState, width: int, glyphs: Mapping[str, str], height: int = 24, after: int = 60
) -> list[str]:
    now = BEGAN + timedelta(seconds=after)
    return [line.plain for line in render(state, glyphs, width, height, now, RUN_KEYS)]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_view_shows_phases_steps_activity_question_and_cost(glyphs: Mapping[str, str]) -> None:
    state = attrs.evolve(_state(*RUN[:5], asked(DATABASE)), cap=Decimal(5), model="a-model")

    phase, step, activity, question, status = _rendered(state, 80, glyphs)

    assert phase.startswith(f"{glyphs['in_progress']} 1  Foundation")
    assert f"{glyphs['in_progress']} plan" in phase
    assert f"{glyphs['pending']} execute" in phase
    assert step == f"{glyphs['step']} 1/plan  0:58"
    assert activity == "  runs pytest -q"
    assert question == "? Database  gsd answer q-1"
    assert status.startswith(f"1:00 {glyphs['bar']} $0.25 of $5.00 {glyphs['bar']}")
    assert "Ctrl-C stop" in status


def test_only_what_runs_has_the_color_of_what_runs() -> None:
    console = Console()
    phase, step, *_ = render(_state(*RUN[:4]), UNICODE, 80, 24, BEGAN + timedelta(seconds=60), RUN_KEYS)

    def color(line: Text, words: str) -> str | None:
        found = line.get_style_at_offset(console, line.plain.index(words)).color
        return found.name if found else None

    assert color(phase, "plan") == color(step, "1/plan") == "cyan"
    assert color(phase, "execute") is None
    assert color(step, "0:58") is None


def test_a_long_gap_is_indented_below_its_dash() -> None:
    gap = {"truth": "A guest is greeted " * 8, "reason": "no main"}
    err = Tty()

    _show([event("gap.found", "1/verify", phase="1", gaps=[gap])], err, environ={"TERM": "xterm"})

    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err.getvalue()).splitlines()
    rows = [row for row in shown if "greeted" in row]
    assert len(rows) > 1
    assert rows[0].startswith("    - ")
    assert all(row.startswith("      ") and row[6] != " " for row in rows[1:]), rows


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [5, 10, 24, 60])
def test_the_view_stays_low_and_always_shows_the_step(width: int, height: int) -> None:
    phases = [event("phase.started", number=str(n), name=f"Part {n} " + "of it " * 20) for n in range(1, 30)]
    several = [event("step.started", f"{n}/plan", kind="plan", phase=str(n)) for n in range(1, 12)]
    state = _state(*RUN[:1], *phases, *several, asked(DATABASE))

    shown = _rendered(state, width, UNICODE, height)

    assert len(shown) <= max(min(8, height // 2), 2)
    assert any("1/plan" in line for line in shown)


@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_narrow_view_says_how_to_leave_and_names_the_question_in_whole(width: int) -> None:
    state = attrs.evolve(
        _state(*RUN[:4], asked(DATABASE)), cap=Decimal(5), command="gsd -C a/rather/long/path"
    )

    shown = _rendered(state, width, UNICODE)

    assert "Ctrl-C stop" in shown[-1]
    assert any(line.startswith("? Database") and "q-1" in line and len(line) < width for line in shown)


def test_several_steps_at_once_have_a_line_each() -> None:
    started = [event("step.started", f"1/execute/01-0{n}", kind="execute", phase="1") for n in (1, 2)]
    does = event("agent.activity", "1/execute/01-02", kind="tool", tool="Edit", text="b.py")

    shown = _rendered(_state(*RUN[:2], *started, does), 80, UNICODE)

    assert [line.split()[1] for line in shown[1:3]] == ["1/execute/01-01", "1/execute/01-02"]
    assert shown[2].endswith("edits b.py")


def test_a_resumed_run_counts_on() -> None:
    so_far: dict[str, Any] = {"seconds": 3600.0, "dollars": "1.50", "tokens": 2000, "calls": 3, "tasks": {}}
    opened = event("run.opened", resumed=True, so_far=so_far)
    more = event("cost.changed", dollars="0.25", tokens=500, calls=1)

    [status] = _rendered(_state(opened, more), 80, UNICODE)

    assert status.startswith("1:01:00 │ $1.75 │ 2.5k tokens")


def test_pauses_between_the_processes_of_a_run_do_not_count() -> None:
    first = [event("run.opened", after=0), event("run.closed", after=60, outcome="stopped", reason="SIGINT")]
    killed = [event("run.opened", after=1000), event("step.started", "1/plan", after=1010)]

    state = _state(*first, *killed, event("run.opened", after=5000))

    assert state.elapsed(BEGAN + timedelta(seconds=5005)) == timedelta(seconds=60 + 10 + 5)


def test_an_answered_question_disappears_from_the_view() -> None:
    answered = event("question.answered", question="q-1", words="SQLite", via="inbox")

    assert _state(asked(DATABASE), answered).questions == {}


def test_an_answer_of_a_policy_names_the_option_and_not_the_plugin() -> None:
    answered = event("question.answered", question="q-1", words="A", how="policy", by="--yes", via="yolo")

    assert [line.text for line in lines_of(answered)] == ["q-1: A (--yes)"]


def test_costs_add_up_and_an_unknown_cost_changes_nothing() -> None:
    known = event("cost.changed", dollars="0.10", tokens=10, calls=1)
    unknown = event("cost.changed", dollars=None, tokens=5, calls=1)

    state = _state(known, unknown, known)

    assert (str(state.dollars), state.tokens, state.calls) == ("0.20", 25, 3)


def test_of_many_phases_those_around_the_current_one_are_shown() -> None:
    from gsd_core import PhaseView

    roadmap = [
        PhaseView(number=str(n), name=f"Part {n}", project=Path("/nowhere"), ticked=n < 20)
        for n in range(1, 41)
    ]
    state = with_roadmap(_state(event("phase.started", number="20", name="Part 20")), roadmap)

    shown = _rendered(state, 80, dict(UNICODE), height=16)

    assert any(line.startswith("▸ 20  Part 20") for line in shown)
    assert len(shown) == 8
    assert "19 of 40 phases" in shown[-2]
