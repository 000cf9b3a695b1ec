"""``gsd answer``: answer an open question from anywhere."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click
from rich_click import RichCommand

from gsd_core.errors import UserError
from gsd_core.model.question import Answer, Question, refusal
from gsd_core.views.status import SCHEMA_VERSION, find_question, open_questions

from .global_options import global_options, global_options_of
from .output import json_flag, print_json, print_line

if TYPE_CHECKING:
    from .project import ProjectState


@click.command("answer", cls=RichCommand)
@global_options
@json_flag
@click.argument("question_id", metavar="ID")
@click.argument("words", nargs=-1, metavar="[CHOICE or TEXT]...")
@click.pass_context
def command(ctx: click.Context, question_id: str, words: tuple[str, ...], as_json: bool) -> None:
    """Answer the question ID: by an option's label or number, or in your own words.

    Several options, where the question allows them, are separated by commas.
    """
    from gsd_core.journal.codec import unstructure
    from gsd_core.journal.inbox import put

    from .project import journal_path, load

    reading = load(global_options_of(ctx))
    question = _open_question(reading, question_id)
    answer = parse_answer(question, " ".join(words))
    put(journal_path(reading.root), "answer", unstructure(answer), by=answer.by)
    _confirm(reading, question, answer, as_json)


def parse_answer(question: Question, words: str) -> Answer:
    """Return what *words* mean as an answer to *question*; raise ``UserError`` if they do not fit."""
    chosen = _chosen(question, words)
    text = "" if chosen else words.strip()
    answer = Answer(question=question.id, chosen=chosen, text=text, by=getpass.getuser())
    if why := refusal(question, answer):
        raise UserError(f"not an answer to {question.id}: {why}", hint=_choices(question))
    return answer


def _chosen(question: Question, words: str) -> tuple[str, ...]:
    """Return the labels that *words* name, whole or, if several may be chosen, part by part."""
    if label := _label(question, words):
        return (label,)
    labels = [_label(question, part) for part in words.split(",")] if question.multiple else []
    return tuple(dict.fromkeys(labels)) if labels and all(labels) else ()


def _label(question: Question, word: str) -> str:
    word = word.strip().casefold()
    numbered = {str(n): option.label for n, option in enumerate(question.options, 1)}
    named = {option.label.casefold(): option.label for option in question.options}
    return named.get(word) or numbered.get(word, "")


def _choices(question: Question) -> str:
    options = ", ".join(f"{n} ({option.label})" for n, option in enumerate(question.options, 1))
    own = "your own words" if question.free_text else ""
    return "say " + " or ".join(part for part in (options, own) if part)


def _open_question(reading: ProjectState, question_id: str) -> Question:
    found = find_question(reading.state, question_id)
    if found is None:
        known = ", ".join(asked.question.id for asked in open_questions(reading.state)) or "none"
        raise UserError(f"no question {question_id!r} in this project", hint=f"open questions: {known}")
    record, question = found
    if answer := record.answers.get(question_id):
        by = answer.by or answer.via or answer.how
        raise UserError(f"{question_id} is already answered: {answer.words} (by {by})", hint="gsd questions")
    if record.withdrawn:
        raise UserError(f"{question_id} is not open any more", hint="gsd questions")
    if question_id in reading.given:
        message = f"{question_id} is already answered; no run has taken the answer yet"
        raise UserError(message, hint="gsd resume takes it")
    return question


def _confirm(reading: ProjectState, question: Question, answer: Answer, as_json: bool) -> None:
    holder = reading.holder
    if as_json:
        taken_by = holder.pid if holder else None
        found = {"question": question.id, "words": answer.words, "taken_by": taken_by}
        print_json({"schema_version": SCHEMA_VERSION, **found})
        return
    after = f"the run (pid {holder.pid}) takes it now" if holder else "gsd resume will take it"
    print_line(f"answered {question.id}: {answer.words}; {after}")
