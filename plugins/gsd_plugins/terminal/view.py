"""The live view: a few lines at the bottom of the terminal, each cut to its width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from .board import Board, PhaseLine
from .glyphs import visible

BESIDES = 6
"""Lines that are no phases, and room for the scroll-back above."""

STYLES = {"completed": "green", "in_progress": "cyan", "skipped": "yellow", "pending": "dim"}


class View:
    """Renders the board that was set last, as it is at the moment of rendering."""

    def __init__(self, glyphs: Mapping[str, str]) -> None:
        self.board = Board()
        self.now: datetime | None = None
        self._glyphs = glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self._lines(max(console.size.height - BESIDES, 1)))

    def _lines(self, phases: int) -> Iterator[Text]:
        yield from self._phases(phases)
        if self.board.step:
            yield self._step()
        for question, text in list(self.board.questions.items())[:2]:
            yield _line(f"{self._glyphs['asks']} {text}  gsd answer {question}", "bold yellow")
        yield _line(cost_text(self.board), "dim")

    def _phases(self, room: int) -> Iterator[Text]:
        """Yield as many phases as there is room for, around the one in progress."""
        shown = list(self.board.phases.values())
        busy = [at for at, phase in enumerate(shown) if phase.state == "in_progress"]
        done = sum(phase.state != "pending" for phase in shown)
        focus = busy[0] if busy else done
        first = max(0, min(focus - room // 2, len(shown) - room))
        for phase in shown[first : first + room]:
            yield self._phase(phase)
        if len(shown) > room:
            yield _line(f"  {done} of {len(shown)} phases done or begun", "dim")

    def _phase(self, phase: PhaseLine) -> Text:
        return _line(f"{self._glyphs[phase.state]} {phase.number}  {phase.name}", STYLES[phase.state])

    def _step(self) -> Text:
        elapsed = elapsed_text(self.board.since, self.now)
        line = _line(f"{self._glyphs['begin']} {self.board.step}  {elapsed}  ", "bold cyan")
        return line.append_text(_line(self.board.activity, "not bold dim"))

    def set(self, board: Board, now: datetime) -> None:
        """Show *board* from now on."""
        self.board, self.now = board, now


def elapsed_text(since: datetime | None, now: datetime | None) -> str:
    """Return the time between two moments as ``m:ss`` or ``h:mm:ss``."""
    if since is None or now is None:
        return ""
    minutes, seconds = divmod(max(int((now - since).total_seconds()), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def cost_text(board: Board) -> str:
    """Return what the run used so far in this process, in words."""
    dollars = "" if board.dollars is None else f"${board.dollars:.2f}, "
    tokens = f"{board.tokens / 1000:.1f}k" if board.tokens >= 1000 else str(board.tokens)
    return f"{dollars}{tokens} tokens, {board.calls} agent calls"


def _line(text: str, style: str) -> Text:
    one = visible(text).replace("\n", " ").replace("\t", " ")
    return Text(one, style=style, no_wrap=True, overflow="ellipsis")
