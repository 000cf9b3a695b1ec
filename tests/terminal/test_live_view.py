"""The live view keeps off what others wrote while it was away."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pytest

from gsd_plugins.terminal.board import Board
from gsd_plugins.terminal.lines import Weight
from gsd_plugins.terminal.sinks import LiveView

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
UP = "\x1b[1A"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_what_was_written_while_it_was_away_is_not_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    view = LiveView(stream, Weight.PLAIN)
    board = Board(step="1/plan", questions={"q-1": "Which?", "q-2": "Why?"})
    view.board(board, NOW)
    view.board(board, NOW)
    assert UP in stream.getvalue(), "it moves over its own lines"

    with view.paused():
        stream.write("typed here")
    view.close()

    _, _, after = stream.getvalue().partition("typed here")
    assert UP not in after.partition("1/plan")[0]
