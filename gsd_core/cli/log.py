"""``gsd log``: shows what was done, step by step."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs
import click
from rich.console import Console
from rich.text import Text

from gsd_core.errors import NotFound, UserError
from gsd_core.own_process import data_output
from gsd_core.sanitize import one_line, safe_data

from .global_options import global_options_of, gsd_command
from .output import console, json_flag, print_line, shown_signs, styled, wrapped_text
from .pager import paged

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


@attrs.frozen(kw_only=True)
class _Filter:
    """What to show: each field that is not empty limits it."""

    after: int = 0
    since: datetime | None = None
    phase: str = ""
    step: str = ""
    kinds: tuple[str, ...] = ()

    def accepts(self, record: Record, kind: str) -> bool:
        """Whether to show *record*; *kind* is what it is called among :data:`KINDS`."""
        from gsd_core.machine.history import phase_of

        return (
            record.seq > self.after
            and (self.since is None or record.at >= self.since)
            and (not self.phase or phase_of(record.step) == self.phase)
            and (not self.step or _is_part(record.step, self.step))
            and (not self.kinds or kind in self.kinds)
        )


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
    no_pager: bool,
    as_json: bool,
) -> None:
    """Show what was done, step by step.

    The log contains all runs of the project. At a terminal it is shown with a pager: GSD_PAGER, PAGER, or
    less. What agents did in detail is shown only with --kind activity. With --json each line is a JSON
    object, one for each record of the journal; records have numbers, which you can pass to --after.
    """
    from gsd_core.model.ids import normal_phase
    from gsd_core.views.log import parse_since

    from .project import now, project_root

    root = project_root(global_options_of(ctx))
    _refuse_unknown(root, normal_phase(phase), step)
    wanted = _Filter(
        after=after,
        since=parse_since(since, now()) if since else None,
        phase=normal_phase(phase),
        step=step,
        kinds=kinds,
    )
    journal = _Journal(root=root, follow=follow, count=count)
    with suppress(KeyboardInterrupt):
        if as_json:
            _print_json(journal, wanted)
            return
        is_empty = False  # also if the reader closes the pager early
        with paged(wanted=not (no_pager or follow), project=journal.root) as stream:
            is_empty = _print_text(journal, wanted, _Printer(console(stream)))
        if is_empty and not follow:
            is_filtered = wanted != _Filter() or count == 0
            print_line(
                "nothing in the log matches" if is_filtered else "no run yet in this project, so no log"
            )


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


def _print_json(journal: _Journal, wanted: _Filter) -> None:
    from gsd_core.views.story import kind_of

    def choose(record: Record) -> Record | None:
        return record if wanted.accepts(record, kind_of(record)) else None

    journal.read(choose, print_record, after=wanted.after)


def print_record(record: Record) -> None:
    """Print *record* as JSON on one line."""
    from gsd_core.views.log import log_json

    click.echo(json.dumps(safe_data(log_json(record))), file=data_output())


def _print_text(journal: _Journal, wanted: _Filter, printer: _Printer) -> bool:
    """Print the entries that are *wanted*; return whether there was none."""
    from gsd_core.views.story import Narrator

    narrator = Narrator()
    # Details are shown on request: there are many more of them than of everything else.
    detailed = "activity" in wanted.kinds

    def choose(record: Record) -> Entry | None:
        # All records, because an entry may need what came before the first one that is shown.
        entry = narrator.entry(record)
        return entry if entry and wanted.accepts(record, entry.kind) else None

    journal.read(choose, printer.show, facts_only=not detailed)
    return printer.is_unused


@attrs.frozen(kw_only=True)
class _Journal:
    """The project's journal; *count* limits what is shown of what exists, *follow* continues after that."""

    root: Path
    follow: bool
    count: int | None

    def read(
        self,
        choose: Callable[[Record], T | None],
        show: Callable[[T], None],
        *,
        after: int = 0,
        facts_only: bool = False,
    ) -> None:
        """Show what *choose* makes of the records after number *after*."""
        last: deque[T] = deque(maxlen=self.count)
        keep_or_show = show if self.count is None else last.append
        for record in self._records(after, facts_only):
            after = record.seq
            if (item := choose(record)) is not None:
                keep_or_show(item)
        for item in last:
            show(item)
        while self.follow:
            for record in self._records(after, facts_only):
                after = record.seq
                if (item := choose(record)) is not None:
                    show(item)
                # The active run, or the next one.
                if record.kind == "run.closed":
                    return
            time.sleep(POLL_SECONDS)

    def _records(self, after: int, facts_only: bool) -> Iterator[Record]:
        from .project import open_journal

        with open_journal(self.root) as journal:
            yield from journal.events(after=after, facts_only=facts_only)


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
        if not entry.step:
            self._print(Text())
            return
        words = entry.text if entry.heading else step_words(entry.step)
        self._print(Text())
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
