"""``gsd questions``: what waits for a human."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.text import Text
from rich_click import RichCommand

from gsd_core.model.question import Asked, Option
from gsd_core.views.status import SCHEMA_VERSION, answer_command, open_questions, question_json

from .global_options import global_options, global_options_of
from .output import json_flag, print_json, print_line, styled


@click.command("questions", cls=RichCommand)
@global_options
@json_flag
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the open questions, each with the command that answers it."""
    from .project import load

    reading = load(global_options_of(ctx))
    asked = open_questions(reading.state)
    if as_json:
        run = reading.state.run or None
        found = [question_json(one, reading.given) for one in asked]
        print_json({"schema_version": SCHEMA_VERSION, "run": run, "questions": found})
        return
    if not asked:
        print_line("no open questions" if reading.state.run else "no run yet, so no questions")
    for one in asked:
        for line in question_lines(one):
            print_line(line)
        if one.question.id in reading.given:
            print_line("answered already; gsd resume takes the answer")
        print_line()


def question_lines(asked: Asked) -> Iterator[str | Text]:
    """Yield a question as it is shown: nothing of it is cut."""
    question = asked.question
    about = ", ".join(part for part in (asked.kind, asked.step) if part)
    yield styled(question.id, "bold").append_text(styled(f"  {question.header or about}  ({about})"))
    yield question.text
    if asked.reason:
        yield f"reason: {asked.reason}"
    for number, option in enumerate(question.options, 1):
        yield _option(number, option)
    yield f"answer with: {answer_command(question)}"


def _option(number: int, option: Option) -> str:
    recommended = " (recommended)" if option.recommended else ""
    description = f": {option.description}" if option.description else ""
    return f"  {number}. {option.label}{recommended}{description}"
