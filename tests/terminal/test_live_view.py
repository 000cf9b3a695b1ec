"""The live view does not erase what others wrote while it was removed."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pytest

from gsd_plugins.terminal.lines import Level
from gsd_plugins.terminal.live_state import LiveState, StepRow
from gsd_plugins.terminal.live_view import LiveView

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
UP = "\x1b[4A"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_what_was_written_while_the_view_was_removed_is_not_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    view = LiveView(stream, Level.LOG, lambda: NOW)
    questions = {"q-1": "Which?", "q-2": "Why?"}
    view.state = LiveState(steps={"1/plan": StepRow(id="1/plan")}, questions=questions)
    view.refresh()
    view.state = LiveState(steps={"1/plan": StepRow(id="1/plan", activity="thinks")}, questions=questions)
    view.refresh()
    assert UP in stream.getvalue(), "it redraws its own lines"

    with view.paused():
        stream.write("typed here")
    view.close()

    _, _, after = stream.getvalue().partition("typed here")
    assert UP not in after.partition("1/plan")[0]
