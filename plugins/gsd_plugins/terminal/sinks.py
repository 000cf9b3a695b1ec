"""Where a run is shown: a live view, lines, or JSON; each has the terminal to itself."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gsd_core import Event, RunInfo

from .board import Board
from .glyphs import glyphs_for, visible
from .lines import Line, Weight
from .view import View

SCHEMA_VERSION = 1


class Sink(Protocol):
    """Shows a run."""

    def event(self, event: Event) -> None:
        """Show an event as it is."""

    def line(self, line: Line) -> None:
        """Show a line that an event is worth."""

    def board(self, board: Board, now: datetime) -> None:
        """Show how the run stands."""

    def bell(self) -> None:
        """Call a human who looks elsewhere."""

    def paused(self) -> AbstractContextManager[None]:
        """Leave the terminal to someone else for a while; lines wait until then."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""


class Lines:
    """Append-only lines, each as long as it is."""

    _wraps = False

    def __init__(self, stream: TextIO, most: Weight) -> None:
        self.console = console_on(stream)
        self._most = most
        self._glyphs = glyphs_for(stream)
        self._waiting: list[Line] = []
        self._is_paused = False

    def event(self, event: Event) -> None:
        """Events are shown by their lines."""

    def line(self, line: Line) -> None:
        """Print a line, or keep it while paused."""
        if line.weight > self._most:
            return
        if self._is_paused:
            self._waiting.append(line)
        else:
            self.console.print(self._text(line), soft_wrap=not self._wraps)

    def board(self, board: Board, now: datetime) -> None:
        """There is no board."""

    def bell(self) -> None:
        """Nobody is there to hear it."""

    @contextmanager
    def paused(self) -> Generator[None]:
        """Keep lines back."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False
            waiting, self._waiting = self._waiting, []
            for line in waiting:
                self.line(line)

    def close(self) -> None:
        """Nothing to undo."""

    def _text(self, line: Line) -> Text:
        indent = "    " if not line.mark else f"{self._glyphs[line.mark]} "
        return Text(indent + visible(line.text).replace("\n", "\n    ").rstrip(), style=line.style)


class LiveView(Lines):
    """Lines above, and below them the board, drawn anew; no thread, the loop's ticks refresh it."""

    _wraps = True

    def __init__(self, stream: TextIO, most: Weight) -> None:
        super().__init__(stream, most)
        self._stream = stream
        self._view = View(self._glyphs)
        self._live = self._started()

    def _started(self) -> Live:
        live = Live(
            self._view, console=self.console, auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False, vertical_overflow="crop",
        )  # fmt: skip
        live.start()
        return live

    def line(self, line: Line) -> None:
        """Print a line above the board; a step that begins is on the board already."""
        if line.weight is not Weight.PLAIN:
            super().line(line)

    def board(self, board: Board, now: datetime) -> None:
        """Draw the board."""
        self._view.set(board, now)
        if self._live.is_started:
            self._live.refresh()

    def bell(self) -> None:
        """Ring."""
        self._stream.write("\a")
        self._stream.flush()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Take the board away, and put it back."""
        self._live.stop()
        try:
            with super().paused():
                yield
        finally:
            # A new one: the old one would erase as many lines as it had, and these are others' now.
            self._live = self._started()

    def close(self) -> None:
        """Take the board away; the cursor is shown again."""
        self._live.stop()


class JsonLines(Lines):
    """Every event as one line of JSON on *out*; on *stream* only what is essential."""

    def __init__(self, out: TextIO, stream: TextIO) -> None:
        super().__init__(stream, Weight.ESSENTIAL)
        self._out: TextIO | None = out

    def event(self, event: Event) -> None:
        """Write an event; when nobody reads any more, write no more."""
        if self._out is None:
            return
        try:
            self._out.write(json.dumps(event_json(event), default=str) + "\n")
            self._out.flush()
        except BrokenPipeError:
            self._out = None

    def line(self, line: Line) -> None:
        """Whoever reads events needs no lines."""


def event_json(event: Event) -> dict[str, object]:
    """Return *event* as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "seq": event.seq,
        "name": event.name,
        "at": event.at.isoformat(),
        "run": event.run,
        "step": event.step or None,
        "data": dict(event.data),
    }


def sink_for(run: RunInfo, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> Sink:
    """Return what shows *run* best on these streams."""
    if run.output == "stream-json":
        return JsonLines(out, err)
    most = Weight.ESSENTIAL if run.verbosity < 0 else Weight.VERBOSE if run.verbosity else Weight.PLAIN
    live = err.isatty() and run.verbosity >= 0 and environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
    return LiveView(err, most) if live else Lines(err, most)


def console_on(stream: TextIO) -> Console:
    """Return a console on *stream*; NO_COLOR beats FORCE_COLOR, and also colours that rich would guess."""
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream, highlight=False, markup=False, emoji=False, no_color=plain,
        force_terminal=stream.isatty() if plain else None, color_system=None if plain else "auto",
    )  # fmt: skip
