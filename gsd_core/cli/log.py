"""``gsd log``: shows what was done, step by step."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import attrs
import click
from rich.console import Console
from rich.text import Text

from gsd_core.errors import NotFound, UserError
from gsd_core.own_process import data_output
from gsd_core.programs import find_program
from gsd_core.sanitize import one_line, safe_data, safe_text

from .global_options import global_options_of, gsd_command
from .output import console, json_flag, print_line, shown_signs, styled, wrapped_text

if TYPE_CHECKING:
    from gsd_core.machine.facts import Record
    from gsd_core.views.story import Entry

T = TypeVar("T")

POLL_SECONDS = 0.25
MAX_TEXT = 2000
NARROW = 60
"""Below this width, times have no seconds."""
KINDS = (
    *("run", "step", "task", "question", "gap", "failure", "agent", "activity", "notification", "change"),
    "other",
)
SIGNS = {"done": "✓", "failed": "✗", "question": "?", "answer": "→", "wait": "…", "note": "·"}
STYLES = {
    "done": "green",
    "failed": "red",
    "question": "bold",
    "answer": "cyan",
    "wait": "yellow",
    "note": "",
}


@gsd_command(
    "log",
    "gsd log -n 20",
    "gsd log --follow",
    "gsd log --kind failure --since 1h",
    "gsd log --phase 2 --kind activity",
    last=json_flag,
)
@click.option("--follow", "-f", is_flag=True, help="keep printing what is new until the run ends")
@click.option("--phase", default="", metavar="PHASE", help="only this phase")
@click.option(
    "--step", default="", metavar="STEP", help="only this step, such as 1/plan, or these, such as verify"
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="only these (repeatable)")
@click.option(
    "--since", default="", metavar="TIME", help="only what is newer than TIME, or a duration like 10m"
)
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="N", help="only records after number N"
)
@click.option(
    "-n", "count", type=click.IntRange(min=0), default=None, metavar="N", help="only the last N entries"
)
@click.option("--prompts", is_flag=True, help="what agents were asked, in full, instead of what was done")
@click.option("--no-pager", is_flag=True, help="print everything at once, without a pager")
def command(
    ctx: click.Context,
    follow: bool,
    phase: str,
    step: str,
    kinds: tuple[str, ...],
    since: str,
    after: int,
    count: int | None,
    prompts: bool,
    no_pager: bool,
    as_json: bool,
) -> None:
    """Show what was done, step by step.

    The log contains all runs of the project. At a terminal it is shown with a pager: GSD_PAGER, PAGER, or
    less. What agents did in detail is shown only with --kind activity. With --json each line is a JSON
    object, one for each record of the journal; records have numbers, which you can pass to --after.

    With --prompts, it shows for each call of an agent what the model got: the system prompt, the prompt, the
    functions and the schema of the answer. What Claude Code adds itself is not among it.
    """
    from gsd_core.machine.facts import PROMPT
    from gsd_core.machine.history import phase_of
    from gsd_core.model.ids import normal_phase
    from gsd_core.views.log import parse_since
    from gsd_core.views.story import Narrator, kind_of

    from .project import now, project_root

    root = project_root(global_options_of(ctx))
    _refuse_unknown(root, normal_phase(phase), step)
    number, oldest = normal_phase(phase), parse_since(since, now()) if since else None

    def is_prompt(record: Record) -> bool:
        return record.kind == "agent.activity" and record.data.get("kind") == PROMPT

    def accepts(record: Record, kind: str) -> bool:
        return (
            record.seq > after
            and (is_prompt(record) if prompts else as_json or not is_prompt(record))
            and (oldest is None or record.at >= oldest)
            and (not number or phase_of(record.step) == number)
            and (not step or _is_part(record.step, step))
            and (not kinds or kind in kinds)
        )

    def accepted(record: Record) -> Record | None:
        return record if accepts(record, kind_of(record)) else None

    with suppress(KeyboardInterrupt):
        if as_json:
            _read(root, accepted, print_record, follow=follow, count=count, after=after)
            return
        if prompts:
            found = True  # also if the reader closes the pager early
            with paged(wanted=not (no_pager or follow), project=root) as stream:
                write = partial(_print_prompt, console(stream))
                found = _read(root, accepted, write, follow=follow, count=count)
            if not found and not follow:
                print_line("no prompt in the log matches")
            return
        narrator, is_empty = Narrator(), False  # also if the reader closes the pager early

        def choose(record: Record) -> Entry | None:
            # All records, because an entry may need what came before the first one that is shown.
            entry = narrator.entry(record)
            return entry if entry and accepts(record, entry.kind) else None

        with paged(wanted=not (no_pager or follow), project=root) as stream:
            printer = _Printer(console(stream))
            # Details are shown on request: there are many more of them than of everything else.
            facts_only = "activity" not in kinds
            _read(root, choose, printer.show, follow=follow, count=count, facts_only=facts_only)
            is_empty = printer.is_unused
        if is_empty and not follow:
            if after or oldest or number or step or kinds or count == 0:
                print_line("nothing in the log matches")
            else:
                print_line("no run yet in this project, so no log")


def _is_part(step: str, wanted: str) -> bool:
    """Whether *step* is *wanted* or below it, or of the kind *wanted*."""
    from gsd_core.model.ids import StepId

    with suppress(ValueError):
        if StepId.parse(step).kind == wanted:
            return True
    return step == wanted or step.startswith(f"{wanted}/")


def _refuse_unknown(root: Path, phase: str, step: str) -> None:
    """Raise an error that says what exists if neither the log nor the project has the *phase* or *step*."""
    from gsd_core.machine.history import phase_of
    from gsd_core.model.ids import StepId
    from gsd_core.planning.survey import survey
    from gsd_core.views.story import STEP_WORDS

    from .project import open_journal

    if not (phase or step):
        return
    try:
        named = StepId.parse(step) if step else None
    except ValueError as error:
        hint = "name a step like 1/plan, 1/execute/01-02 or init, or a kind of steps like verify"
        raise UserError(f"not a step: {step!r}", hint=hint) from error
    with open_journal(root) as journal:
        recorded = {record.step for record in journal.events(facts_only=True)}
    # A phase that was removed, or archived with its milestone, is still in the log.
    for number in filter(None, (phase, named.phase if named else "")):
        if number not in map(phase_of, recorded):
            survey(root).view(number)
    if named and named.kind not in STEP_WORDS and not any(_is_part(one, named.kind) for one in recorded):
        known = ", ".join(sorted(STEP_WORDS))
        raise NotFound(f"no steps of the kind {named.kind!r} in the log", hint=f"kinds of steps: {known}")


def print_record(record: Record) -> None:
    """Print *record* as JSON on one line."""
    from gsd_core.views.log import log_json

    click.echo(json.dumps(safe_data(log_json(record))), file=data_output())


def _print_prompt(to: Console, record: Record) -> None:
    """Print what an agent was asked, below a line that names the step, the role and the call."""
    role, key, text = (str(record.data.get(name) or "") for name in ("tool", "key", "text"))
    title = f"{record.at.astimezone():%H:%M:%S}  {record.step}  {role}" + f" ({key})" * (key != role)
    to.print(styled(one_line(title, MAX_TEXT), "bold underline"), soft_wrap=True)
    to.print(styled(safe_text(text), ""), soft_wrap=True)
    to.print()


def _read(
    root: Path,
    choose: Callable[[Record], T | None],
    show: Callable[[T], None],
    *,
    follow: bool,
    count: int | None,
    after: int = 0,
    facts_only: bool = False,
) -> bool:
    """Show what *choose* makes of the records after number *after*; return whether that is anything.

    Of what exists, only the last *count* items are shown; *follow* continues with what is new.
    """
    from .project import open_journal

    last: deque[T] = deque(maxlen=count)
    take = show if count is None else last.append
    is_new = found = False
    while True:
        with open_journal(root) as journal:
            for record in journal.events(after=after, facts_only=facts_only):
                after = record.seq
                if (item := choose(record)) is not None:
                    found = True
                    take(item)
                # The active run, or the next one.
                if is_new and record.kind == "run.closed":
                    return found
        for item in last:
            show(item)
        last.clear()
        if not follow:
            return found
        if is_new:
            time.sleep(POLL_SECONDS)
        take, is_new = show, True


@attrs.define
class _Printer:
    """Prints entries below the day, the run and the step that they belong to."""

    console: Console
    _day: date | None = attrs.field(default=None, init=False)
    _run: str = attrs.field(default="", init=False)
    _step: str = attrs.field(default="", init=False)

    @property
    def is_unused(self) -> bool:
        """Whether nothing was printed."""
        return self._day is None

    def show(self, entry: Entry) -> None:
        """Print *entry*."""
        at = entry.at.astimezone()
        if at.date() != self._day or entry.run != self._run:
            if not self.is_unused:
                self._print(Text())
            day = f"{at:%A, %d %B %Y}" if at.date() != self._day else ""
            name = entry.text if entry.heading and not entry.step else f"run {entry.run}"
            title = ", ".join(filter(None, [one_line(day, 60), one_line(name, MAX_TEXT)]))
            self._wrapped(Text(), styled(title, "bold underline"))
            self._day, self._run, self._step = at.date(), entry.run, ""
        if entry.step != self._step or (entry.heading and entry.step):
            self._step_title(entry)
        if entry.heading:
            return
        narrow = self.console.width < NARROW
        time = f"{at:%H:%M}" if narrow else f"{at:%H:%M:%S}"
        sign = shown_signs(SIGNS)[entry.sign]
        lead = Text.assemble("  ", (time, "dim"), "  ", (f"{sign} ", STYLES[entry.sign]))
        style = STYLES[entry.sign] if entry.sign in ("failed", "question", "answer") else ""
        if entry.kind in ("agent", "activity") and entry.sign == "note":
            style = "dim"
        self._wrapped(lead, styled(one_line(entry.text, MAX_TEXT), style))
        for detail in entry.details:
            self._wrapped(Text(" " * lead.cell_len), styled(one_line(detail, MAX_TEXT), "dim"))

    def _step_title(self, entry: Entry) -> None:
        from gsd_core.views.story import step_words

        self._step = entry.step
        self._print(Text())
        if entry.step:
            words = entry.text if entry.heading else step_words(entry.step)
            title = styled(one_line(entry.step, 100), "bold")
            self._wrapped(Text(), title.append_text(styled(f"  {one_line(words, MAX_TEXT)}", "dim")))

    def _wrapped(self, lead: Text, text: Text) -> None:
        """Print *text* behind *lead*; at a terminal, further lines begin below its first character."""
        if not self.console.is_terminal:
            self._print(Text.assemble(lead, text))
            return
        # The words of an item of a list begin below each other.
        hang = "  " if text.plain.startswith("- ") else ""
        for row in wrapped_text(text, self.console.width - lead.cell_len, hang):
            self._print(Text.assemble(lead, row))
            lead = Text(" " * lead.cell_len)

    def _print(self, line: Text) -> None:
        self.console.print(line, soft_wrap=True)


DEFAULT = "less"
LESS = "FRX"
"""Ends at once if all fits on a screen, shows colors, and leaves the text on the screen."""


@contextmanager
def paged(*, wanted: bool, project: Path) -> Generator[IO[str]]:
    """Provide the stream to print on: a pager's input if stdout is a terminal, else stdout.

    The pager is that of ``GSD_PAGER``, ``PAGER``, or ``less``; an empty one, or ``cat``, means none. The
    repository of *project* cannot bring its own ``less``. A reader who closes the pager ends the output,
    which is not an error.
    """
    process = _start(project) if wanted and sys.stdout.isatty() else None
    if process is None:
        yield sys.stdout
        return
    assert process.stdin is not None
    try:
        with suppress(BrokenPipeError):
            yield process.stdin
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        # Ctrl-C is for the pager, which has the terminal; without waiting, the shell would take it back.
        while process.poll() is None:
            with suppress(KeyboardInterrupt):
                process.wait()


def _start(project: Path) -> subprocess.Popen[str] | None:
    named = os.environ.get("GSD_PAGER", os.environ.get("PAGER", DEFAULT))
    try:
        words = shlex.split(named)
    except ValueError:
        click.echo(f"warning: not a command line, so there is no pager: {named!r}", err=True)
        return None
    if not words or words == ["cat"]:
        return None
    program = find_program(words[0], project)
    if program is None:
        return None
    environment = {**os.environ, "LESS": os.environ.get("LESS", LESS), "LV": os.environ.get("LV", "-c")}
    with suppress(OSError):
        return subprocess.Popen(
            [str(program), *words[1:]],
            stdin=subprocess.PIPE,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    return None
