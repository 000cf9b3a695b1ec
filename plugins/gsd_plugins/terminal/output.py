"""Output without a live view: lines of text, or lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.text import Text

from gsd_core import Event, PhaseView, safe_data

from .lines import Level, Line, Segments, glyphs_for, visible

SCHEMA_VERSION = 1


class LineOutput:
    """Prints lines up to a level, each unwrapped; the base class of the other outputs."""

    def __init__(self, stream: TextIO, level: Level) -> None:
        self.stream = stream
        self.console = console_on(stream)
        self.glyphs = glyphs_for(stream)
        self.level = level
        self._held_back: list[Line] | None = None

    def event(self, event: Event) -> None:
        """Process an event; an output of lines gets its lines instead."""

    def roadmap(self, phases: Iterable[PhaseView]) -> None:
        """Process the phases of the roadmap; only the live view shows them."""

    def refresh(self) -> None:
        """Update what changes with time; only the live view does."""

    def hide(self) -> None:
        """Remove what is redrawn in place, and draw nothing until :meth:`show`; only the live view does."""

    def show(self) -> None:
        """Draw again; only the live view does."""

    def write_above(self, text: str) -> None:
        """Write whole lines that others have written, above what is redrawn in place."""
        self.stream.write(text)
        self.stream.flush()

    def bell(self) -> None:
        """Ring the bell; only the live view does, because someone is watching it."""

    def close(self) -> None:
        """Leave the terminal as it was."""

    def line(self, line: Line) -> None:
        """Print a line, or hold it back while paused."""
        if line.level > self.level:
            return
        if self._held_back is not None:
            self._held_back.append(line)
            return
        prefix = f"{self.glyphs[line.glyph]} " if line.glyph else "    "
        self._print(prefix, visible(line.text).rstrip(), line.style)

    def _print(self, prefix: str, text: str, style: str) -> None:
        """Print *text*, which is safe, after *prefix*; here unwrapped, because programs may read it."""
        indented = text.replace("\n", "\n    ")
        self.console.print(Text(prefix + indented, style=style), soft_wrap=True)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to a prompt; lines are held back until the context ends."""
        self._held_back = []
        try:
            yield
        finally:
            lines, self._held_back = self._held_back, None
            for line in lines:
                self.line(line)


class JsonOutput(LineOutput):
    """Writes every event to *out* as a line of JSON, and nothing to the terminal on *stream*."""

    def __init__(self, out: TextIO, stream: TextIO) -> None:
        super().__init__(stream, Level.QUIET)
        self._out: TextIO | None = out

    def event(self, event: Event) -> None:
        """Write an event; a closed pipe ends the output, but not the run."""
        if self._out is None:
            return
        data = {
            "schema_version": SCHEMA_VERSION,
            "seq": event.seq,
            "name": event.name,
            "at": event.at.isoformat(),
            "run": event.run,
            "step": event.step or None,
            "data": dict(event.data),
        }
        try:
            self._out.write(json.dumps(safe_data(data), default=str) + "\n")
            self._out.flush()
        except BrokenPipeError:
            self._out = None

    def line(self, line: Line) -> None:
        """Print nothing: every line repeats an event, which is written in full."""


def print_styled(stream: TextIO, lines: Iterable[Segments], width: int = 0) -> list[int]:
    """Print lines that consist of texts with their styles; with *width*, wrapped between words.

    Return the length in cells of each line as it was printed.
    """
    console = console_on(stream)
    printed: list[int] = []
    for line in lines:
        text = Text.assemble(*line)
        for row in text.wrap(console, width - 1) if width > 1 and text else [text]:
            console.print(row, soft_wrap=True)
            printed += [part.cell_len for part in row.split("\n", allow_blank=True)]
    return printed


def console_on(stream: TextIO) -> Console:
    """Return a console that prints text as it is, without markup.

    NO_COLOR wins over FORCE_COLOR, and also over the colors that rich would detect.
    """
    no_color = bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=no_color,
        force_terminal=stream.isatty() if no_color else None,
        color_system=None if no_color else "auto",
    )
