"""``gsd status``: where the run stands."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text
from rich_click import RichCommand

from gsd_core.sanitize import one_line
from gsd_core.views.phases import PhaseRow, percent
from gsd_core.views.status import Status, answer_command, cost_json, status_json, status_of

from .global_options import global_options, global_options_of
from .output import can_show, json_flag, print_json, print_line, styled

MARKS = {"completed": "✓", "in_progress": "▸", "failed": "✗", "skipped": "-", "pending": "·"}
ASCII = {"completed": "+", "in_progress": ">", "failed": "x", "skipped": "-", "pending": "."}
STYLES = {"completed": "green", "in_progress": "cyan", "failed": "red", "skipped": "dim", "pending": "dim"}
NOTHING = "no run yet in this project; start one with: gsd run IDEA"


@click.command("status", cls=RichCommand)
@global_options
@json_flag
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show where the run stands: phases, the current step, open questions, cost."""
    from .project import load

    reading = load(global_options_of(ctx))
    status = status_of(reading.state, reading.history, reading.holder, reading.given)
    if as_json:
        print_json(status_json(status))
        return
    for line in _lines(status):
        print_line(line)


def _lines(status: Status) -> Iterator[str | Text]:
    if status.standing == "none":
        yield NOTHING
        return
    yield _headline(status)
    if status.reason:
        yield f"  {one_line(status.reason, 300)}"
    if status.holder:
        yield f"  held by pid {status.holder.pid} on {status.holder.host} since {status.holder.since}"
    yield from _phases(status)
    yield from _current(status)
    yield from _questions(status)
    yield _cost(status)
    if status.waits_for:
        yield f"waits for {status.waits_for}"


def _headline(status: Status) -> Text:
    idea = f" of {status.idea}" if status.idea else ""
    exit_code = "" if status.exit is None else f", exit {status.exit}"
    line = styled(status.standing, "bold")
    return line.append_text(styled(f"  run {status.run}{idea}{exit_code}, {percent(status.phases)} % done"))


def _phases(status: Status) -> Iterator[Text]:
    wide = max((len(row.number) for row in status.phases), default=0)
    for row in status.phases:
        line = Text(f"  {_marks()[row.status]} ", style=STYLES[row.status])
        line.append_text(styled(f"{row.number:<{wide}}  {one_line(row.name, 60)}"))
        line.append_text(styled(_details(row), "dim"))
        yield line


def _marks() -> dict[str, str]:
    return MARKS if can_show("".join(MARKS.values())) else ASCII


def _details(row: PhaseRow) -> str:
    if not row.wanted:
        return "  (not in range)"
    if row.status in ("completed", "pending"):
        return ""
    marks = _marks()
    steps = " ".join(f"{name} {marks[status]}" for name, status in row.steps.items())
    plans = f", {row.plans_done}/{row.plans} plans" if row.plans else ""
    rounds = f", gap round {row.gap_rounds}" if row.gap_rounds else ""
    return f"  ({steps}{plans}{rounds})"


def _current(status: Status) -> Iterator[str]:
    if step := status.current:
        until = f" until {step.until.isoformat(timespec='seconds')}" if step.until else ""
        yield f"step {step.id}: {step.status}{until}, attempt {step.attempt}"


def _questions(status: Status) -> Iterator[str]:
    for asked in status.questions:
        yield f"? {one_line(asked.question.text, 120)}"
        given = asked.question.id in status.given
        yield (
            "  answered; gsd resume takes it" if given else f"  answer with: {answer_command(asked.question)}"
        )


def _cost(status: Status) -> str:
    cost = cost_json(status.usage, status.calls)
    dollars = f"${cost['dollars']}" if cost["dollars"] is not None else "unknown cost"
    return f"{dollars}, {cost['tokens']} tokens, {cost['calls']} agent calls"
