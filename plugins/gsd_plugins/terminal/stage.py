"""One run's terminal: what is shown on it, and who may type."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from attrs import Factory, define, field

from gsd_core import Answer, Event, Inquiry, Notice, PlanningError, Question, RunInfo

from .board import Board, after, with_roadmap
from .glyphs import glyphs_for
from .keyboard import Readable, forget_typed, may_read, read_line
from .lines import Line, Weight, lines_of

if TYPE_CHECKING:
    from gsd_core.planning.model import PhaseView

    from .sinks import Sink

TICK_SECONDS = 0.25
PATIENCE_SECONDS = 0.1
"""How long others (a policy, a file) have to answer before a human is bothered."""
FREQUENT = ("agent.activity", "cost.changed")
"""Events that wait for the next tick: there may be hundreds in a second."""


def _now() -> datetime:
    return datetime.now(UTC)


@define(eq=False)
class Stage:
    """Shows events and asks questions, for one run; before it is opened it does neither."""

    clock: Callable[[], datetime] = _now
    patience: float = PATIENCE_SECONDS
    _run: RunInfo | None = field(default=None, init=False)
    _sink: Sink | None = field(default=None, init=False)
    _stdin: Readable = field(default=sys.stdin, init=False)
    _err: TextIO = field(default=sys.stderr, init=False)
    _board: Board = field(factory=Board, init=False)
    _asking: asyncio.Lock = field(default=Factory(asyncio.Lock), init=False)
    _prompted: set[str] = field(factory=set[str], init=False)

    @asynccontextmanager
    async def open(
        self,
        run: RunInfo,
        *,
        out: TextIO | None = None,
        err: TextIO | None = None,
        stdin: Readable | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> AsyncGenerator[Stage]:
        """Own the streams while inside."""
        from .sinks import sink_for

        self._run, self._err, self._stdin = run, err or sys.stderr, stdin or sys.stdin
        self._sink = sink_for(run, out or sys.stdout, self._err, environ)
        ticking = asyncio.create_task(self._tick(), name="terminal:tick")
        try:
            yield self
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])
            self._sink.close()

    async def show(self, event: Event) -> None:
        """Show an event."""
        if self._sink is None:
            return
        self._board = after(self._board, event)
        if _changes_roadmap(event):
            self._board = with_roadmap(self._board, await self._roadmap())
        self._sink.event(event)
        for line in self._lines(event):
            self._sink.line(line)
        if event.name not in FREQUENT:
            self._sink.board(self._board, self.clock())

    def notice(self, notice: Notice) -> None:
        """Call for a human where one can hear it; a crash has no event."""
        if self._sink is None:
            return
        if notice.type in ("question", "complete", "error", "crash"):
            self._sink.bell()
        if notice.type == "crash":
            self._sink.line(Line("bad", f"{notice.title}: {notice.body}", Weight.ESSENTIAL, "bold red"))

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Ask the first question of *inquiry*; ``None`` if nobody can or wants to answer here.

        One at a time: each answer is recorded before the next question is shown.
        """
        if not self._may_ask() or self._sink is None:
            return None
        await asyncio.sleep(self.patience)
        async with self._asking:
            with self._sink.paused():
                answer = await self._prompt(inquiry, inquiry.questions[0])
        return [answer] if answer else None

    def _may_ask(self) -> bool:
        run = self._run
        return run is not None and run.interactive and not run.no_input and may_read(self._stdin)

    async def _prompt(self, inquiry: Inquiry, question: Question) -> Answer | None:
        from .prompt import answer_from, question_texts

        self._prompted.add(question.id)
        forget_typed(self._stdin)
        self._print(*question_texts(inquiry, question, glyphs_for(self._err)))
        while (words := await self._read()) is not None:
            answer = answer_from(question, words)
            if isinstance(answer, Answer):
                return answer
            self._print(f"not an answer: {answer}")
        return None

    async def _read(self) -> str | None:
        """Read a line after a sign that it is awaited; if that is cancelled, forget what was typed."""
        self._err.write("> ")
        self._err.flush()
        try:
            return await read_line(self._stdin)
        except asyncio.CancelledError:
            forget_typed(self._stdin)
            self._err.write("\n")
            raise

    def _print(self, *texts: object) -> None:
        from .sinks import console_on

        console = console_on(self._err)
        for text in texts:
            console.print(text, soft_wrap=True)

    def _lines(self, event: Event) -> list[Line]:
        """Return the lines for *event*; what the prompt shows in full needs none."""
        if event.name == "question.asked" and self._may_ask():
            return []
        if event.name == "question.answered" and self._was_elsewhere(event):
            return [Line("answer", "answered elsewhere", style="yellow"), *lines_of(event)]
        return list(lines_of(event))

    def _was_elsewhere(self, event: Event) -> bool:
        return event.data.get("question") in self._prompted and event.data.get("via") != "terminal"

    async def _tick(self) -> None:
        """Keep the time on the board going, until nobody can see it any more."""
        with suppress(OSError):
            while self._sink:
                await asyncio.sleep(TICK_SECONDS)
                self._sink.board(self._board, self.clock())

    async def _roadmap(self) -> tuple[PhaseView, ...]:
        return await asyncio.to_thread(_phases, self._run.project) if self._run else ()


def _changes_roadmap(event: Event) -> bool:
    return event.name == "run.opened" or (event.name == "step.completed" and event.data.get("kind") == "init")


def _phases(project: Path) -> tuple[PhaseView, ...]:
    """Return the phases of the roadmap; none if it cannot be read, which is for others to say."""
    from gsd_core.planning.survey import read_planning

    try:
        return read_planning(project).phases
    except (PlanningError, OSError):
        return ()
