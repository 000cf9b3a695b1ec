"""The live view: the state of a run in a few lines at the bottom of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TextIO

from rich.cells import cell_len
from rich.text import Text

from gsd_core import Event, PhaseView, counted, dollars_text

from .lines import Level, Line, visible
from .live_state import STEPS, LiveState, PhaseRow, StepRow, after_event, with_roadmap
from .output import LineOutput
from .screen import BottomBlock

MAX_LINES = 8
"""The view never takes more lines than this, and at most half of a low terminal."""
MAX_QUESTIONS = 2
ROOMY = 12
"""From this many rows on, there is an empty line above the view."""
WIDE = 100
"""From this width on, a step and what its agent does share a line.

The view is not wider than this: a terminal that gets narrower wraps longer lines, and what it moves into the
scroll-back then cannot be erased any more.
"""
SPELLED_OUT = 64
"""From this width on, the names of a phase's steps are shown, not only their signs."""
PHASE_STYLES = {"completed": "green", "in_progress": "cyan", "skipped": "yellow", "pending": "dim"}


class LiveView(LineOutput):
    """Prints lines, and below them a view of the state that is redrawn in place.

    The session refreshes it from the event loop. *keys* are the keys that work, with what they do, *cap* is
    the most that the run may cost, and *ended* says why no run is active, until an event says otherwise.
    """

    def __init__(
        self,
        stream: TextIO,
        level: Level,
        clock: Callable[[], datetime],
        command: str = "gsd",
        keys: Sequence[tuple[str, str]] = (),
        cap: Decimal | None = None,
        ended: str = "",
    ) -> None:
        super().__init__(stream, level)
        self.state = LiveState(command=command, cap=cap, ended=ended)
        self._keys = keys
        self._clock = clock
        self.block = BottomBlock(stream, self.console)
        self._shown = True

    def event(self, event: Event) -> None:
        """Update the state."""
        self.state = after_event(self.state, event)

    def roadmap(self, phases: Iterable[PhaseView]) -> None:
        """Show the phases of the roadmap."""
        self.state = with_roadmap(self.state, phases)

    def refresh(self) -> None:
        """Redraw the view."""
        if self._shown and self._held_back is None:
            size = self.block.size()
            width = min(size.columns, WIDE)
            lines = render(self.state, self.glyphs, width, size.lines, self._clock(), self._keys)
            # An empty line separates it from the lines that stay.
            self.block.draw([*([Text()] if size.lines >= ROOMY else []), *lines], width=width)

    def line(self, line: Line) -> None:
        """Print a line above the view, unless the view shows the same."""
        if line.level is not Level.LOG:
            super().line(line)

    def write_above(self, text: str) -> None:
        """Write *text*, which is whole lines, in place of the view, which the next refresh draws below."""
        with self.block.lock:
            self.block.remove()
            super().write_above(text)

    def bell(self) -> None:
        """Ring the bell."""
        super().write_above("\a")

    def hide(self) -> None:
        """Remove the view, for example because the terminal is about to belong to another process."""
        self.block.remove()
        self._shown = False

    def show(self) -> None:
        """Show the view again, below whatever was written since."""
        self._shown = True
        self.block.forget()
        self.refresh()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Remove the view, and show it again when the context ends."""
        self.block.remove()
        with super().paused():
            yield
        self.block.forget()

    def close(self) -> None:
        """Remove the view and show the cursor."""
        self.hide()

    def _print(self, prefix: str, text: str, style: str) -> None:
        """Print a line between the view's lines, wrapped between words and indented below its sign."""
        self.block.remove()
        width = self.block.size().columns
        indent = cell_len(prefix)
        if width < 2 * indent:
            prefix, indent, text = "", 0, prefix + text
        # Further rows begin below the first word, also of an item of a list.
        prefix += text[: len(text) - len(text.lstrip())]
        text, indent = text.lstrip(), cell_len(prefix)
        hang = 2 if text.startswith("- ") else 0
        rows = Text(text, style=style).wrap(self.console, max(width - indent - hang - 1, 10))
        for number, row in enumerate(rows):
            row.rstrip()
            lead = Text(prefix if number == 0 else " " * (indent + hang), style=style)
            self.console.print(lead.append_text(row), soft_wrap=True)


def render(
    state: LiveState,
    glyphs: Mapping[str, str],
    width: int,
    height: int,
    now: datetime,
    keys: Sequence[tuple[str, str]] = (),
) -> list[Text]:
    """Return the lines of the view for a terminal of *width* columns and *height* rows.

    What fits least matters least: of the phases those around the current one stay, then the steps.
    """
    room = max(min(MAX_LINES, height // 2), 2)
    steps = [line for step in state.steps.values() for line in _step_lines(state, step, glyphs, width, now)]
    questions = list(_question_lines(state, glyphs, width))
    status = _status_line(state, glyphs, width, now, keys)
    # At least the first line of a step, and one phase.
    most = max(room - 1 - len(questions) - 1, 1)
    if len(steps) > most:
        more = Text(f"  and {len(state.steps) - most + 1} more steps", style="dim")
        steps = [*steps[: most - 1], more] if len(state.steps) > 1 and most > 1 else steps[:most]
    left = room - 1 - len(steps) - len(questions)
    phases = list(_phase_lines(state, glyphs, width, left)) if left > 0 else []
    return [*phases, *steps, *questions[: max(room - 1 - len(steps), 0)], status]


def _phase_lines(state: LiveState, glyphs: Mapping[str, str], width: int, limit: int) -> Iterator[Text]:
    """Yield at most *limit* lines: the phases around the one in progress, and how many there are."""
    phases = list(state.phases.values())
    done = sum(phase.state in ("completed", "skipped") for phase in phases)
    focus = next((n for n, phase in enumerate(phases) if phase.state == "in_progress"), done)
    some = len(phases) > limit and limit > 1
    shown = limit - 1 if some else limit
    first = max(0, min(focus - (shown - 1) // 2, len(phases) - shown))
    numbers = max((cell_len(phase.number) for phase in phases), default=0)
    window = phases[first : first + shown]
    names = max((cell_len(visible(phase.name)) for phase in window), default=0)
    for phase in window:
        yield _phase_line(state, phase, glyphs, width, numbers, names)
    if some:
        yield Text(f"  {done} of {len(phases)} phases complete", style="dim")


def _phase_line(
    state: LiveState, phase: PhaseRow, glyphs: Mapping[str, str], width: int, numbers: int, names: int
) -> Text:
    style = PHASE_STYLES[phase.state]
    # Not as the style of the whole line: what follows has styles of its own.
    line = Text(end="").append(f"{glyphs[phase.state]} ", style)
    name = _plain(phase.name)
    own_style = f"bold {style}" if phase.state == "in_progress" else style
    line.append(f"{phase.number:<{numbers}}  {name}", own_style)
    if phase.state != "in_progress":
        return line
    board = _steps_of_phase(state, phase, glyphs, spelled_out=width >= SPELLED_OUT)
    room = width - 1 - board.cell_len - 2
    if room < 12 and width >= SPELLED_OUT:
        board = _steps_of_phase(state, phase, glyphs, spelled_out=False)
        room = width - 1 - board.cell_len - 2
    line.truncate(room, overflow="ellipsis")
    # The steps begin in one column, at most as far to the right as the longest name needs.
    line.append(" " * max(2, min(numbers + 4 + names, room) - line.cell_len + 2))
    return line.append_text(board)


def _steps_of_phase(
    state: LiveState, phase: PhaseRow, glyphs: Mapping[str, str], *, spelled_out: bool
) -> Text:
    board = Text()
    done = sum(plan.done for plan in phase.plans.values())
    for number, kind in enumerate(STEPS):
        step_state = state.step_state(phase, kind)
        style = PHASE_STYLES[step_state]
        if not spelled_out:
            board.append(glyphs[step_state], style)
            continue
        count = f" {done}/{len(phase.plans)}" if kind == "execute" and len(phase.plans) > 1 else ""
        separator = "  " if number else ""
        board.append(f"{separator}{glyphs[step_state]} {kind}{count}", style)
    return board


def _step_lines(
    state: LiveState, step: StepRow, glyphs: Mapping[str, str], width: int, now: datetime
) -> Iterator[Text]:
    """Yield one line for a step, or two if it is the only one and the terminal is not wide."""
    number, count, name = state.task_position(step)
    line = Text(end="").append(f"{glyphs['step']} ", "cyan").append(_plain(step.id), "bold cyan")
    line.append(f"  {duration_text(now - step.since) if step.since else ''}", "dim")
    if number > count:
        line.append(f"  {count} of {count} tasks done")
    elif number:
        line.append(f"  task {number} of {count}")
        line.append(f": {_plain(name)}" if width >= SPELLED_OUT else "", "dim")
    activity = _plain(step.activity)
    if width >= WIDE or len(state.steps) > 1:
        yield line.append(f"  {glyphs['bar']} {activity}" if activity else "", "dim")
        return
    yield line
    if activity:
        yield Text(f"  {activity}", style="dim")


def _question_lines(state: LiveState, glyphs: Mapping[str, str], width: int) -> Iterator[Text]:
    for question, text in list(state.questions.items())[:MAX_QUESTIONS]:
        line = Text().append(f"{glyphs['question']} ", "bold yellow").append(_plain(text), "bold")
        line.truncate(max(width - cell_len(question) - 3, 8), overflow="ellipsis")
        line.append("  ")
        # Half a command is of no use; the whole one is above.
        whole = f"{state.command} answer {question}"
        yield line.append(whole if line.cell_len + cell_len(whole) < width else question)


def _status_line(
    state: LiveState, glyphs: Mapping[str, str], width: int, now: datetime, keys: Sequence[tuple[str, str]]
) -> Text:
    """Return time, cost, model and keys; what does not fit is left out, from the least important on."""
    if not state.opened and state.ended:
        line = Text(f"{glyphs['waiting']} no run is active", style="dim")
        line.append(f" ({_plain(state.ended)})" if width >= SPELLED_OUT else "", "dim")
        parts: list[tuple[int, str]] = [(1, cost_text(state))]
    else:
        line = Text(duration_text(state.elapsed(now)))
        calls = counted(state.calls, "agent call") if state.calls else ""
        tokens = f"{tokens_text(state.tokens)} tokens" if state.tokens else ""
        parts = [(1, cost_text(state)), (4, tokens), (6, calls), (3, _plain(state.model))]
    # How to leave is never left out.
    parts += [(0 if number == 0 else 5, f"{key} {what}") for number, (key, what) in enumerate(keys)]
    separator = f" {glyphs['bar']} "
    left: list[tuple[int, str]] = []
    used = line.cell_len
    for rank, text in sorted(((rank, text) for rank, text in parts if text), key=lambda part: part[0]):
        if used + cell_len(separator + text) <= width - 1:
            left.append((rank, text))
            used += cell_len(separator + text)
    for part in parts:
        if part in left:
            line.append(separator + part[1], "" if part[0] == 1 else "dim")
    return line


def _plain(text: str) -> str:
    return visible(text).replace("\n", " ").replace("\t", " ")


def duration_text(time: timedelta) -> str:
    """Return a duration as ``m:ss`` or ``h:mm:ss``."""
    minutes, seconds = divmod(max(int(time.total_seconds()), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def cost_text(state: LiveState) -> str:
    """Return what the run has cost so far, and the most that it may cost."""
    if state.dollars is None:
        return f"unknown cost of {dollars_text(state.cap)}" if state.cap is not None and state.calls else ""
    return dollars_text(state.dollars) + (f" of {dollars_text(state.cap)}" if state.cap is not None else "")


def tokens_text(tokens: int) -> str:
    """Return a number of tokens, such as ``950``, ``1.5k`` or ``2.3M``."""
    for size, unit in ((1_000_000, "M"), (1000, "k")):
        if tokens >= size:
            return f"{tokens / size:.1f}{unit}"
    return str(tokens)
