"""``gsd questions``: lists the questions that wait for a human."""

from __future__ import annotations

from contextlib import suppress

import attrs
import click

from gsd_core.errors import GsdError
from gsd_core.model.question import answer_command
from gsd_core.views.status import open_questions, question_json

from .commands import base_command
from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, styled


@gsd_command("questions", "gsd questions", "gsd questions --json", last=json_flag)
def command(ctx: click.Context, as_json: bool) -> None:
    """List the open questions, each with the command that answers it."""
    from .background import after_answer
    from .project import load

    options = global_options_of(ctx)
    project = load(options)
    state = project.state
    # With the files as they are now: a question may need no answer any more.
    if open_questions(state) and not project.holder and (project.root / ".planning").is_dir():
        from .current import read_current

        # What is wrong with the files, the next run reports; the questions are readable without it.
        with suppress(GsdError):
            state = attrs.evolve(state, seen=read_current(ctx, project).snapshot)
    questions = open_questions(state)
    if as_json:
        data = [question_json(asked, project.pending_answers, base_command(options)) for asked in questions]
        print_json({"run": project.state.run or None, "questions": data})
        return
    if not questions:
        print_line("no open questions" if project.state.run else "no run yet, so no questions")
    for asked in questions:
        question = asked.question
        about = ", ".join(part for part in (asked.kind, asked.step) if part)
        title = styled(question.id, "bold")
        print_line(title.append_text(styled(f"  {question.header or about}  ({about})")))
        print_line(question.text)  # all of it: a cut text could hide what a human agrees to
        if asked.reason:
            print_line(f"reason: {asked.reason}")
        for number, option in enumerate(question.options, 1):
            description = f": {option.description}" if option.description else ""
            print_line(f"  {number}. {option.label}{option.recommended_note}{description}")
        print_line(f"answer with: {answer_command(question, base_command(options))}")
        if asked.question.id in project.pending_answers:
            print_line(f"answered; {after_answer(ctx, project)}")
        print_line()
