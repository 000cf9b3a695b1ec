"""The live view: the state of a run in a few lines at the bottom of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Literal, TextIO, TypeAlias

import attrs
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from gsd_core import Event, PhaseView, counted

from .activity import activity_text
from .lines import Level, Line, visible
from .output import LineOutput

PhaseState: TypeAlias = Literal["pending", "in_progress", "completed", "skipped"]

PHASE_STYLES = {"completed": "green", "in_progress": "cyan", "skipped": "yellow", "pending": "dim"}
OTHER_LINES = 6
"""Lines that do not show phases, and some space for the scroll-back above the view."""
MAX_QUESTIONS = 2


@attrs.frozen(kw_only=True)
class PhaseRow:
    """One phase of the roadmap."""

    number: str
    name: str = ""
    state: PhaseState = "pending"


@attrs.frozen(kw_only=True)
class LiveState:
    """What the view shows of a run.

    *command* is how the user calls gsd. *step* has been running since *since*. *dollars* is ``None``
    while no cost is known. *questions* are the open ones, their texts by id.
    """

    command: str = "gsd"
    phases: Mapping[str, PhaseRow] = attrs.field(factory=dict[str, PhaseRow])
    step: str = ""
    since: datetime | None = None
    activity: str = ""
    dollars: Decimal | None = None
    tokens: int = 0
    calls: int = 0
    questions: Mapping[str, str] = attrs.field(factory=dict[str, str])


def after_event(state: LiveState, event: Event) -> LiveState:
    """Return the state after *event*."""
    data = event.data
    match event.name:
        case "phase.started":
            return _with_phase(state, event, "in_progress")
        case "phase.completed":
            return _with_phase(state, event, "completed")
        case "phase.skipped":
            return _with_phase(state, event, "skipped")
        case "step.started":
            return attrs.evolve(state, step=event.step, since=event.at, activity="")
        case "step.waiting":
            # The view counts from now on, and the line above it says until when.
            return attrs.evolve(
                state, step=event.step, since=event.at, activity=f"waiting: {data.get('why') or ''}"
            )
        case "step.completed" | "step.failed" | "step.skipped" if event.step == state.step:
            return attrs.evolve(state, step="", since=None, activity="")
        # What the agent does stays until it does something else: the result is for the agent.
        case "agent.activity" if data.get("kind") != "result":
            return attrs.evolve(state, activity=activity_text(event) or state.activity)
        case "cost.changed":
            dollars = state.dollars
            if data.get("dollars") is not None:
                dollars = (dollars or Decimal(0)) + Decimal(str(data["dollars"]))
            tokens = state.tokens + int(data.get("tokens") or 0)
            calls = state.calls + int(data.get("calls") or 0)
            return attrs.evolve(state, dollars=dollars, tokens=tokens, calls=calls)
        case "question.asked":
            asked = {str(q["id"]): str(q.get("header") or q["text"]) for q in data["inquiry"]["questions"]}
            return attrs.evolve(state, questions={**state.questions, **asked})
        case "question.answered":
            left = {key: text for key, text in state.questions.items() if key != data["question"]}
            return attrs.evolve(state, questions=left)
        case _:
            return state


def _with_phase(state: LiveState, event: Event, phase_state: PhaseState) -> LiveState:
    number = str(event.data["number"])
    known = state.phases.get(number, PhaseRow(number=number))
    row = attrs.evolve(known, name=str(event.data.get("name") or known.name), state=phase_state)
    return attrs.evolve(state, phases={**state.phases, number: row})


def with_roadmap(state: LiveState, phases: Iterable[PhaseView]) -> LiveState:
    """Return the state with the phases of the roadmap; states known from events take precedence."""
    rows: dict[str, PhaseRow] = {}
    for phase in phases:
        phase_state: PhaseState = "completed" if phase.ticked else "pending"
        if known := state.phases.get(phase.number):
            phase_state = known.state
        rows[phase.number] = PhaseRow(number=phase.number, name=phase.name, state=phase_state)
    return attrs.evolve(state, phases=rows | {n: row for n, row in state.phases.items() if n not in rows})


class LiveView(LineOutput):
    """Prints lines, and below them a view of the state that is redrawn in place.

    rich's own refresh thread is off: the session refreshes the view from the event loop.
    """

    wraps_lines = True

    def __init__(
        self, stream: TextIO, level: Level, clock: Callable[[], datetime], command: str = "gsd"
    ) -> None:
        super().__init__(stream, level)
        self.state = LiveState(command=command)
        self._stream = stream
        self._clock = clock
        self._live = self._start()

    def _start(self) -> Live:
        live = Live(
            self,
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        live.start()
        return live

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*render(self.state, self.glyphs, console.size.height, self._clock()))

    def event(self, event: Event) -> None:
        """Update the state."""
        self.state = after_event(self.state, event)

    def roadmap(self, phases: Iterable[PhaseView]) -> None:
        """Show the phases of the roadmap."""
        self.state = with_roadmap(self.state, phases)

    def refresh(self) -> None:
        """Redraw the view."""
        if self._live.is_started:
            self._live.refresh()

    def line(self, line: Line) -> None:
        """Print a line above the view, unless the view shows the same."""
        if line.level is not Level.LOG:
            super().line(line)

    def bell(self) -> None:
        """Ring the bell."""
        self._stream.write("\a")
        self._stream.flush()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Remove the view, and show it again when the context ends."""
        self._live.stop()
        try:
            with super().paused():
                yield
        finally:
            # A new Live: the old one would erase as many lines as it had drawn, and in their place
            # there is now the prompt.
            self._live = self._start()

    def close(self) -> None:
        """Remove the view and show the cursor."""
        self._live.stop()


def render(state: LiveState, glyphs: Mapping[str, str], height: int, now: datetime | None) -> Iterator[Text]:
    """Yield the lines of the view for a terminal with *height* lines; each is cut to its width."""
    yield from _phase_lines(list(state.phases.values()), glyphs, max(height - OTHER_LINES, 1))
    if state.step:
        step = _cut(f"{glyphs['step']} {state.step}  {elapsed_text(state.since, now)}  ", "bold cyan")
        yield step.append_text(_cut(state.activity, "not bold dim"))
    for question, text in list(state.questions.items())[:MAX_QUESTIONS]:
        yield _cut(f"{glyphs['question']} {text}  {state.command} answer {question}", "bold yellow")
    yield _cut(cost_text(state), "dim")


def _phase_lines(phases: list[PhaseRow], glyphs: Mapping[str, str], limit: int) -> Iterator[Text]:
    """Yield at most *limit* phases, those around the one in progress, and how many there are."""
    started = sum(phase.state != "pending" for phase in phases)
    focus = next((n for n, phase in enumerate(phases) if phase.state == "in_progress"), started)
    first = max(0, min(focus - limit // 2, len(phases) - limit))
    for phase in phases[first : first + limit]:
        yield _cut(f"{glyphs[phase.state]} {phase.number}  {phase.name}", PHASE_STYLES[phase.state])
    if len(phases) > limit:
        yield _cut(f"  {started} of {len(phases)} phases started or done", "dim")


def _cut(text: str, style: str) -> Text:
    one_line = visible(text).replace("\n", " ").replace("\t", " ")
    return Text(one_line, style=style, no_wrap=True, overflow="ellipsis")


def elapsed_text(since: datetime | None, now: datetime | None) -> str:
    """Return the time between two moments as ``m:ss`` or ``h:mm:ss``."""
    if since is None or now is None:
        return ""
    minutes, seconds = divmod(max(int((now - since).total_seconds()), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def cost_text(state: LiveState) -> str:
    """Return what the run has used so far in this process."""
    dollars = "" if state.dollars is None else f"${state.dollars:.2f}, "
    tokens = f"{state.tokens / 1000:.1f}k" if state.tokens >= 1000 else str(state.tokens)
    return f"{dollars}{tokens} tokens, {counted(state.calls, 'agent call')}"
