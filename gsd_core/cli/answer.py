"""``gsd answer``: answers an open question, from any terminal."""

from __future__ import annotations

import getpass

import attrs
import click

from gsd_core.codec import unstructure
from gsd_core.errors import Conflict, NotFound, UserError
from gsd_core.model.question import parse_typed_answer
from gsd_core.views.status import find_question, open_questions

from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line


@gsd_command(
    "answer",
    "# Questions and their ids are listed by: gsd questions",
    "gsd answer q-1a2b 2",
    "gsd answer q-1a2b 'use PostgreSQL'",
)
@json_flag
@click.argument("question_id", metavar="ID")
@click.argument("words", nargs=-1, metavar="[CHOICE or TEXT]...")
def command(ctx: click.Context, question_id: str, words: tuple[str, ...], as_json: bool) -> None:
    """Answer the question ID.

    Choose an option by its number or label, or use your own words. If the question allows several options,
    separate them with commas. An answer that no run has used yet can be replaced.
    """
    from gsd_core.journal.inbox import put
    from gsd_core.processes import refuse_agents

    from .background import after_answer
    from .project import journal_path, load

    project = load(global_options_of(ctx))
    refuse_agents("answer a question", run_pid=project.holder.pid if project.holder else None)
    found = find_question(project.state, question_id)
    if found is None:
        known = ", ".join(asked.question.id for asked in open_questions(project.state)) or "none"
        raise NotFound(f"no question {question_id!r} in this project", hint=f"open questions: {known}")
    record, question = found
    hint = "list the open questions with: gsd questions"
    if given := record.answers.get(question_id):
        message = f"{question_id} is already answered: {given.words} (by {given.who})"
        raise Conflict(message, hint=hint)
    if record.withdrawn:
        raise Conflict(f"{question_id} is no longer open", hint=hint)
    try:
        answer = parse_typed_answer(question, " ".join(words))
    except UserError as error:
        raise UserError(f"invalid answer to {question.id}: {error}", hint=error.hint) from error
    answer = attrs.evolve(answer, by=getpass.getuser())
    if record.inquiry.kind == "permission" and not as_json:
        print_line(f"question: {question.text}")  # to its end: who permits it should have seen it
    next_step = after_answer(ctx, project)  # before: a session that waits for this answer takes it at once
    put(journal_path(project.root), "answer", unstructure(answer), by=answer.by)

    replaced = question.id in project.pending_answers
    holder = project.holder
    if as_json:
        taken_by = holder.pid if holder else None
        about = {"question": question.id, "words": answer.words}
        print_json({**about, "taken_by": taken_by, "replaced": replaced})
        return
    verb = "replaced the answer to" if replaced else "answered"
    print_line(f"{verb} {question.id}: {answer.words}; {next_step}")
