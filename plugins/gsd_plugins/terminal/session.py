"""The terminal of one run: shows its events, and asks its questions.

``rich`` is imported by :mod:`.output`, :mod:`.live_view` and :mod:`.menu`, and those only when a run opens
the terminal: every ``gsd`` command loads this plugin, and most of them show no run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import attrs

import gsd_core
from gsd_core import Answer, Event, Inquiry, Notice, PhaseView, PlanningError, Question, RunInfo, UserError

from .keyboard import Keyboard, Readable, can_read, discard_typed
from .lines import Level, Line, Segments, glyphs_for, level_of, lines_of, visible
from .prompt import MORE, pages_of, parse_line, prompt_lines, question_lines, read_line

if TYPE_CHECKING:
    from .menu import Menu
    from .output import LineOutput
    from .screen import BottomBlock

REFRESH_SECONDS = 0.25
ASK_DELAY_SECONDS = 0.1
"""How long other channels (a policy, a file) may take to answer before the human is asked."""
FREQUENT_EVENTS = ("agent.activity", "cost.changed")
"""Events that are shown at the next refresh: there may be hundreds per second."""
RUN_KEYS = (("Ctrl-C", "stop"), ("v", "details"))
WATCH_KEYS = (("q", "leave"), ("v", "details"))
DETAILS = (Level.LOG, Level.VERBOSE, Level.DEBUG)


@attrs.define(eq=False)
class TerminalSession:
    """Shows events and asks questions for one run; does neither until it is opened."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ask_delay: float = ASK_DELAY_SECONDS
    _run: RunInfo | None = attrs.field(default=None, init=False)
    _output: LineOutput | None = attrs.field(default=None, init=False)
    _stdin: Readable = attrs.field(default=sys.stdin, init=False)
    _err: TextIO = attrs.field(default=sys.stderr, init=False)
    _cap: Decimal | None = attrs.field(default=None, init=False)
    _keyboard: Keyboard | None = attrs.field(default=None, init=False)
    _asking: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _prompted: set[str] = attrs.field(factory=set[str], init=False)
    _left_open: set[str] = attrs.field(factory=set[str], init=False)
    _prompt_shown: _PromptOnScreen | None = attrs.field(default=None, init=False)
    _hidden: bool = attrs.field(default=False, init=False)
    _taken_at: float = attrs.field(default=float("-inf"), init=False)

    @asynccontextmanager
    async def open(
        self,
        run: RunInfo,
        *,
        cap: Decimal | None = None,
        out: TextIO | None = None,
        err: TextIO | None = None,
        stdin: Readable | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> AsyncGenerator[TerminalSession]:
        """Use the streams until the context ends; *cap* is the most that the run may cost."""
        # What a watcher shows is what was asked for, so it goes to stdout.
        shown_on = sys.stdout if run.watching else sys.stderr
        self._run, self._err, self._stdin, self._cap = run, err or shown_on, stdin or sys.stdin, cap
        self._output = self._choose_output(run, out or gsd_core.data_output(), environ)
        if self._is_interactive(run, environ) and run.output != "stream-json":
            self._keyboard = Keyboard(self._stdin, self._pressed)
        with self._terminal_signals(), self._lines_above_what_is_drawn():
            refreshing = asyncio.create_task(self._refresh(), name="terminal:refresh")
            try:
                yield self
            finally:
                refreshing.cancel()
                await asyncio.wait([refreshing])
                if self._keyboard:
                    self._keyboard.close()
                self._output.close()

    def _is_interactive(self, run: RunInfo, environ: Mapping[str, str]) -> bool:
        """Whether lines can be redrawn and single keys be read."""
        dumb = environ.get("TERM", "dumb") in ("dumb", "unknown", "")
        return self._err.isatty() and not dumb and not run.plain

    def _choose_output(self, run: RunInfo, out: TextIO, environ: Mapping[str, str]) -> LineOutput:
        from .live_view import LiveView
        from .output import JsonOutput, LineOutput

        if run.output == "stream-json":
            return JsonOutput(out, self._err)
        level = level_of(run.verbosity)
        if environ.get("GSD_SESSION") and run.verbosity >= 0:
            # What a session prints is stored and read later, so nothing is redrawn, and nothing is left out.
            return LineOutput(self._err, max(level, Level.VERBOSE))
        if self._is_interactive(run, environ) and run.verbosity >= 0:
            keys = WATCH_KEYS if run.watching else RUN_KEYS
            ended = "waiting for one to start" if run.watching else ""
            return LiveView(self._err, level, self.clock, run.command, keys, self._cap, ended)
        return LineOutput(self._err, level)

    # The terminal itself

    @contextmanager
    def _lines_above_what_is_drawn(self) -> Generator[None]:
        """Print what others write to standard error above the view or the menu."""
        from .screen import LinesAbove

        # Standard error may be a file while the view is on standard output.
        if not (self._keyboard and sys.stderr.isatty()):
            yield
            return
        lines = LinesAbove(sys.stderr, self._write_above)
        with redirect_stderr(lines):
            try:
                yield
            finally:
                lines.finish()

    def _write_above(self, text: str) -> None:
        """Write whole lines; called from any thread. The next refresh draws the view below them again."""
        if shown := self._prompt_shown:
            with shown.block.lock:
                shown.write_above(text)
        elif self._output:
            self._output.write_above(text)

    @contextmanager
    def _terminal_signals(self) -> Generator[None]:
        """Leave the terminal in order when the process is suspended, and redraw when it returns."""
        loop = asyncio.get_running_loop()
        handlers = {
            signal.SIGTSTP: self._suspend,
            signal.SIGCONT: self._returned,
            signal.SIGWINCH: self._redraw,
        }

        def handle(number: int, _: FrameType | None) -> None:
            # With handlers of the loop, Python would tell the loop of signals, and no longer the run, which
            # has to end even if its loop is blocked.
            loop.call_soon_threadsafe(handlers[signal.Signals(number)])

        before: dict[signal.Signals, Callable[..., object] | int | None] = {}
        if self._keyboard:
            for number in handlers:
                # Outside the main thread there are no signals to handle.
                with suppress(ValueError):
                    before[number] = signal.signal(number, handle)
        try:
            yield
        finally:
            for number, restored in before.items():
                signal.signal(number, restored)

    def _suspend(self) -> None:
        """Give the terminal back as it was, and stop; the shell continues here with ``fg``."""
        from .screen import BottomBlock

        if self._output:
            if self._prompt_shown:
                self._prompt_shown.leave()
            self._output.hide()
            BottomBlock(self._err, self._output.console).drain()
            if self._keyboard:
                self._keyboard.close()
            self._hidden = True
        suspend = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, suspend)

    def _returned(self) -> None:
        """Redraw after SIGCONT; a process that was stopped by force has not left the terminal before."""
        if self._hidden or asyncio.get_running_loop().time() - self._taken_at > 1:
            self._continued()

    def _continued(self) -> None:
        """Take the terminal again, unless the process runs in the background now."""
        if self._output is None or not self._is_foreground():
            return
        if self._keyboard and self._reads_keys():
            self._keyboard.close()
            self._keyboard.open()
        self._output.show()
        if self._prompt_shown:
            self._prompt_shown.begin()
        self._hidden, self._taken_at = False, asyncio.get_running_loop().time()

    def _reads_keys(self) -> bool:
        """Whether single keys are read now; the pages of a long permission are left with Enter, by line."""
        return self._prompt_shown is not None or not self._asking.locked()

    def _redraw(self) -> None:
        if self._prompt_shown and not self._hidden:
            self._prompt_shown.draw()
        elif self._output:
            self._output.refresh()

    def _is_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._err.fileno()) == os.getpgrp()
        except (AttributeError, OSError, ValueError):  # not our terminal, so there is no background
            return True

    async def _refresh(self) -> None:
        """Keep the elapsed time of the live view current, until the terminal is gone."""
        with suppress(OSError):
            while self._output:
                if self._keyboard and not self._is_foreground():
                    # In the background, for example after `bg`: the terminal belongs to the shell.
                    if not self._hidden:
                        self._output.hide()
                        self._hidden = True
                elif self._hidden:
                    self._continued()
                else:
                    if self._keyboard and self._reads_keys():
                        self._keyboard.open()
                    self._output.refresh()
                await asyncio.sleep(REFRESH_SECONDS)

    def _pressed(self, keys: list[str]) -> None:
        if self._prompt_shown:
            self._prompt_shown.press(keys)
            return
        for key in keys:
            if key == "q" and self._run and self._run.watching:
                os.kill(os.getpid(), signal.SIGINT)
            elif key == "v" and self._output and self._output.level in DETAILS:
                level = DETAILS[(DETAILS.index(self._output.level) + 1) % len(DETAILS)]
                self._output.level = level
                words = {Level.LOG: "off", Level.VERBOSE: "what the agent does"}
                text = words.get(level, "all tool calls and texts")
                self._output.line(Line("run", f"details: {text}", style="dim"))
                self._output.refresh()

    # Events

    async def show(self, event: Event) -> None:
        """Show an event."""
        output, run = self._output, self._run
        if output is None or run is None:
            return
        output.event(event)
        if event.seq < run.past:
            return
        # The files of a step are written when it is completed.
        if event.name in ("run.opened", "step.completed", "run.closed") or event.seq == run.past:
            output.roadmap(await asyncio.to_thread(_read_roadmap, run.project))
        for line in self._lines(event, run):
            output.line(line)
        if event.name not in FREQUENT_EVENTS and not self._hidden:
            output.refresh()

    def _lines(self, event: Event, run: RunInfo) -> list[Line]:
        if event.name == "question.asked" and self._can_ask():
            return []  # the prompt shows the question in full
        if event.name == "run.closed":
            if not run.watching:
                return []  # its own process prints it at the end
            outcome, reason = (str(event.data.get(key) or "") for key in ("outcome", "reason"))
            style = "bold green" if outcome == "done" else "yellow"
            return [Line("run", f"{outcome}: {reason}".rstrip(": "), Level.QUIET, style)]
        lines = lines_of(event, run.command)
        was_prompted = event.name == "question.answered" and event.data.get("question") in self._prompted
        if was_prompted and event.data.get("via") != "terminal":
            return [Line("answer", "answered elsewhere", style="yellow"), *lines]
        return lines

    def notify(self, notice: Notice) -> None:
        """Ring the bell when a human should look, and print a crash of gsd, which has no event."""
        if self._output is None:
            return
        if notice.type in ("question", "complete", "error", "crash"):
            self._output.bell()
        # The one of an earlier process is a warning, and the event "recovered" shows it.
        if notice.type == "crash" and notice.level == "error":
            self._output.line(Line("failed", f"{notice.title}: {notice.body}", Level.QUIET, "bold red"))

    # Questions

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Ask the first question of *inquiry*; ``None`` if nobody can answer here, or it is left open.

        One question at a time: each answer is recorded before the next question is shown.
        """
        if self._output is None or not self._can_ask():
            return None
        question = inquiry.questions[0]
        await asyncio.sleep(self.ask_delay)
        async with self._asking:
            if question.id in self._left_open:
                return None
            with self._output.paused():
                if self._keyboard and self._keyboard.open():
                    answer = await self._choose(inquiry, question, self._keyboard)
                else:
                    answer = await self._prompt(inquiry, question)
        return [answer] if answer else None

    def _can_ask(self) -> bool:
        run = self._run
        if run is None or not run.interactive or run.no_input:
            return False
        # While the process is suspended or in the background, the question waits for its return.
        return can_read(self._stdin) or self._hidden

    async def _choose(self, inquiry: Inquiry, question: Question, keyboard: Keyboard) -> Answer | None:
        """Ask with a menu."""
        from .menu import Menu
        from .screen import BottomBlock

        assert self._output is not None
        assert self._run is not None
        self._prompted.add(question.id)
        glyphs = glyphs_for(self._err)
        lines = list(question_lines(inquiry, question, glyphs))
        menu = Menu.of(question)
        if inquiry.kind == "permission":
            # What would scroll away must not be approved unseen.
            width, height = shutil.get_terminal_size()
            *before, lines = pages_of(lines, width, max(height - len(question.options) - 2, 4))
            if before:
                keyboard.close()
                if not await self._show_pages(before):
                    return None
        # What was typed before the question was shown is not an answer to it.
        discard_typed(self._stdin)
        keyboard.open()
        # A command is shown as it is, with all its spaces.
        wrapped = inquiry.kind != "permission"
        block = BottomBlock(self._err, self._output.console)
        finished = asyncio.get_running_loop().create_future()
        shown = _PromptOnScreen(block, menu, self._err, lines, glyphs, wrapped, finished)
        self._prompt_shown = shown
        try:
            shown.begin()
            menu = await shown.finished
        except asyncio.CancelledError:
            # Answered elsewhere: a half-typed line must not reach the next question, or the shell.
            discard_typed(self._stdin)
            raise
        finally:
            shown.block.remove()
            self._prompt_shown = None
        if menu.outcome in ("later", "ended"):
            self._left_open.add(question.id)
            text = f"left open; answer it later with: {self._run.command} answer {question.id} CHOICE"
            self._output.line(Line("question", text, Level.QUIET, "yellow"))
        return menu.answer

    async def _show_pages(self, pages: Iterable[list[Segments]]) -> bool:
        """Show pages, each until Enter is pressed; false if input ends."""
        from .output import print_styled

        for page in pages:
            print_styled(self._err, [*page, [(MORE, "dim")]])
            if await self._read() is None:
                return False
            # An Enter too many must not decide about what is not shown yet.
            discard_typed(self._stdin)
        return True

    async def _prompt(self, inquiry: Inquiry, question: Question) -> Answer | None:
        """Ask with lines of text, on a terminal that cannot redraw them."""
        from .output import print_styled

        self._prompted.add(question.id)
        discard_typed(self._stdin)
        lines = prompt_lines(inquiry, question, glyphs_for(self._err))
        if inquiry.kind == "permission":
            *before, last = pages_of(lines, *shutil.get_terminal_size())
            if not await self._show_pages(before):
                return None
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


@attrs.define(eq=False)
class _PromptOnScreen:
    """A menu on the screen: the question above, which stays, and the options below, which are redrawn."""

    block: BottomBlock
    menu: Menu
    _stream: TextIO
    _question: Sequence[Segments]
    _glyphs: Mapping[str, str]
    _is_wrapped: bool
    finished: asyncio.Future[Menu]
    _printed: list[int] = attrs.field(factory=list[int], init=False)

    def begin(self) -> None:
        """Print the question, and draw the options below it."""
        from .output import print_styled

        self.block.forget()
        width = self.block.size().columns if self._is_wrapped else 0
        self._printed = print_styled(self._stream, self._question, width=width)
        self.draw()

    def leave(self) -> None:
        """Remove the options, and the question too, which :meth:`begin` prints again.

        The question stays if it is no longer whole on the screen, or if other lines follow it.
        """
        self.block.remove_with(self._printed)

    def write_above(self, text: str) -> None:
        """Write whole lines between the question and the options."""
        self.block.remove()
        self._stream.write(text)
        self._printed = []
        self.draw()

    def draw(self) -> None:
        """Draw the options and the draft as they are now."""
        from .menu import render_menu

        size = self.block.size()
        lines, cursor = render_menu(self.menu, self._glyphs, size.columns, size.lines)
        self.block.draw(lines, cursor)

    def press(self, keys: Sequence[str]) -> None:
        """Process keys that were pressed."""
        if self.finished.done():
            return
        for key in keys:
            self.menu = self.menu.press(key)
        self.draw()
        if self.menu.outcome != "open":
            self.finished.set_result(self.menu)


def _read_roadmap(project: Path) -> tuple[PhaseView, ...]:
    """Return the phases of the roadmap; none if it cannot be read, which the run itself reports."""
    from gsd_core.planning.survey import read_planning

    try:
        return read_planning(project).phases
    except (PlanningError, OSError):
        return ()
