"""The terminal of one run: shows its events, and asks its questions.

``rich`` is imported by :mod:`.output` and :mod:`.live_view`, and those only when a run opens the
terminal: every ``gsd`` command loads this plugin, and most of them show no run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import attrs

from gsd_core import Answer, Event, Inquiry, Notice, PhaseView, PlanningError, Question, RunInfo, UserError

from .lines import Level, Line, glyphs_for, lines_of, visible
from .prompt import MORE, Readable, can_read, discard_typed, pages_of, parse_line, prompt_lines, read_line

if TYPE_CHECKING:
    from .output import LineOutput

REFRESH_SECONDS = 0.25
ASK_DELAY_SECONDS = 0.1
"""How long other channels (a policy, a file) may take to answer before the human is asked."""
FREQUENT_EVENTS = ("agent.activity", "cost.changed")
"""Events that are shown at the next refresh: there may be hundreds per second."""


def _now() -> datetime:
    return datetime.now(UTC)


@attrs.define(eq=False)
class TerminalSession:
    """Shows events and asks questions for one run; does neither until it is opened."""

    clock: Callable[[], datetime] = _now
    ask_delay: float = ASK_DELAY_SECONDS
    _run: RunInfo | None = attrs.field(default=None, init=False)
    _output: LineOutput | None = attrs.field(default=None, init=False)
    _stdin: Readable = attrs.field(default=sys.stdin, init=False)
    _err: TextIO = attrs.field(default=sys.stderr, init=False)
    _asking: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _prompted: set[str] = attrs.field(factory=set[str], init=False)

    @asynccontextmanager
    async def open(
        self,
        run: RunInfo,
        *,
        out: TextIO | None = None,
        err: TextIO | None = None,
        stdin: Readable | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> AsyncGenerator[TerminalSession]:
        """Use the streams until the context ends."""
        self._run, self._err, self._stdin = run, err or sys.stderr, stdin or sys.stdin
        self._output = self._choose_output(run, out or sys.stdout, environ)
        refreshing = asyncio.create_task(self._refresh(), name="terminal:refresh")
        try:
            yield self
        finally:
            refreshing.cancel()
            await asyncio.wait([refreshing])
            self._output.close()

    def _choose_output(self, run: RunInfo, out: TextIO, environ: Mapping[str, str]) -> LineOutput:
        from .live_view import LiveView
        from .output import JsonOutput, LineOutput

        if run.output == "stream-json":
            return JsonOutput(out, self._err)
        level = Level.QUIET if run.verbosity < 0 else Level.VERBOSE if run.verbosity else Level.LOG
        dumb = environ.get("TERM", "dumb") in ("dumb", "unknown", "")
        if self._err.isatty() and run.verbosity >= 0 and not dumb:
            return LiveView(self._err, level, self.clock, run.command)
        return LineOutput(self._err, level)

    async def _refresh(self) -> None:
        """Keep the elapsed time of the live view current, until the terminal is gone."""
        with suppress(OSError):
            while self._output:
                await asyncio.sleep(REFRESH_SECONDS)
                self._output.refresh()

    async def show(self, event: Event) -> None:
        """Show an event."""
        if self._output is None or self._run is None:
            return
        self._output.event(event)
        created = event.name == "step.completed" and event.data.get("kind") == "init"
        if event.name == "run.opened" or created:
            self._output.roadmap(await asyncio.to_thread(_read_roadmap, self._run.project))
        if event.name == "question.asked" and self._can_ask():
            lines: list[Line] = []  # the prompt shows the question in full
        elif event.name == "question.answered" and self._answered_elsewhere(event):
            lines = [
                Line("answer", "answered elsewhere", style="yellow"),
                *lines_of(event, self._run.command),
            ]
        else:
            lines = lines_of(event, self._run.command)
        for line in lines:
            self._output.line(line)
        if event.name not in FREQUENT_EVENTS:
            self._output.refresh()

    def _answered_elsewhere(self, event: Event) -> bool:
        return event.data.get("question") in self._prompted and event.data.get("via") != "terminal"

    def notify(self, notice: Notice) -> None:
        """Ring the bell when a human should look, and print a crash of gsd, which has no event."""
        if self._output is None:
            return
        if notice.type in ("question", "complete", "error", "crash"):
            self._output.bell()
        # The one of an earlier process is a warning, and the event "recovered" shows it.
        if notice.type == "crash" and notice.level == "error":
            self._output.line(Line("failed", f"{notice.title}: {notice.body}", Level.QUIET, "bold red"))

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Ask the first question of *inquiry*; ``None`` if no one can answer here, or input ends.

        One question at a time: each answer is recorded before the next question is shown.
        """
        if self._output is None or not self._can_ask():
            return None
        await asyncio.sleep(self.ask_delay)
        async with self._asking:
            with self._output.paused():
                answer = await self._prompt(inquiry, inquiry.questions[0])
        return [answer] if answer else None

    def _can_ask(self) -> bool:
        run = self._run
        return run is not None and run.interactive and not run.no_input and can_read(self._stdin)

    async def _prompt(self, inquiry: Inquiry, question: Question) -> Answer | None:
        from .output import print_styled

        self._prompted.add(question.id)
        # What was typed before the question was shown is not an answer to it.
        discard_typed(self._stdin)
        lines = prompt_lines(inquiry, question, glyphs_for(self._err))
        if inquiry.kind == "permission":
            *before, last = pages_of(lines, *shutil.get_terminal_size())
            for page in before:
                print_styled(self._err, [*page, [(MORE, "dim")]])
                if await self._read() is None:
                    return None
                # An Enter too many must not decide about what is not shown yet.
                discard_typed(self._stdin)
            lines = iter(last)
        print_styled(self._err, lines)
        while (typed := await self._read()) is not None:
            try:
                return parse_line(question, typed)
            except UserError as error:
                print_styled(self._err, [[(f"invalid answer: {visible(str(error))}", "")]])
        return None

    async def _read(self) -> str | None:
        self._err.write("> ")
        self._err.flush()
        try:
            return await read_line(self._stdin)
        except asyncio.CancelledError:
            # Answered elsewhere: a half-typed line must not reach the next question, or the shell.
            discard_typed(self._stdin)
            self._err.write("\n")
            raise


def _read_roadmap(project: Path) -> tuple[PhaseView, ...]:
    """Return the phases of the roadmap; none if it cannot be read, which the run itself reports."""
    from gsd_core.planning.survey import read_planning

    try:
        return read_planning(project).phases
    except (PlanningError, OSError):
        return ()
