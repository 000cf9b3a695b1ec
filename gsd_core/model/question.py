"""Questions to a human, and the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, TypeAlias

import attrs

from gsd_core.errors import UserError

InquiryKind: TypeAlias = Literal["decision", "checkpoint", "permission", "escalation"]
AnsweredHow: TypeAlias = Literal["human", "file", "policy", "timeout"]

_NUMBER = re.compile(r"-?[0-9]{1,9}")
_ORDINALS = ("first", "second", "third", "fourth")
_NUMBERS = re.compile(r"\d+(?:\s*,\s*\d+)+")


@attrs.frozen(kw_only=True)
class Option:
    """One choice; ``--yes`` takes the *recommended* one."""

    label: str
    description: str = ""
    recommended: bool = False

    @property
    def in_full(self) -> str:
        """The label with the description, if any."""
        return f"{self.label}: {self.description}" if self.description.strip() else self.label

    @property
    def recommended_note(self) -> str:
        """The text to show after the label: some models write "(recommended)" into the label themselves."""
        return " (recommended)" if self.recommended and "(recommended)" not in self.label.casefold() else ""


@attrs.frozen(kw_only=True)
class Question:
    """Something that has to be decided; the core sets *id* (:func:`gsd_core.model.ids.question_id`).

    *multiple*: several options may be chosen. *free_text*: an answer in one's own words is accepted.
    *human_only*: no policy may answer it, because a human has to do something. *inspection*: a human has to
    look at something; the answer of a policy is then an assumption, and is counted as one.
    """

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    free_text: bool = True
    human_only: bool = False
    inspection: bool = False
    id: str = ""

    def find_label(self, words: str) -> str:
        """Return the label that *words* spell, ignoring case and spacing; empty if there is none."""
        wanted = _normalized(words)
        return next((option.label for option in self.options if _normalized(option.label) == wanted), "")

    def explain(self, answer: Answer) -> str:
        """Return the answer for somebody who does not see the options.

        Those that were chosen are given with their descriptions, and so are those that the free text speaks
        of by number ("2", "the second") or label.
        """
        full = {option.label: option.in_full for option in self.options}
        chosen = [full.get(label, label) for label in answer.chosen]
        text, named = _normalized(answer.text), list[str]()
        for number, option in enumerate(self.options, start=1):
            # A number before a noun is one of the answer itself: "at most 3 entries".
            names = rf"(?:option |number |#){number}|{number}(?:st|[nr]d|th)?(?! (?!but|and|or|with)\w)"
            names += f"|{re.escape(_normalized(option.label))}"
            # Not without "the": "newest first" names no option.
            names += "".join(f"|the {word}" for word in _ORDINALS[number - 1 : number])
            if re.search(rf"(?<!\w)(?:{names})(?!\w)", text):
                named.append(f"option {number} is {option.in_full!r}")
        return "; ".join([*chosen, *filter(None, [answer.text]), *named])


@attrs.frozen(kw_only=True)
class Inquiry:
    """Questions that *step* asks together; *reason* says what waits for the answers."""

    kind: InquiryKind = "decision"
    step: str = ""
    questions: tuple[Question, ...]
    reason: str = ""


@attrs.frozen(kw_only=True)
class Answer:
    """A reply to the question with the id *question*.

    *chosen* contains labels of its options. *how* is the kind of source, *by* the person or file. The core
    sets *via* (the plugin or command that passed it on) and *at*.
    """

    question: str
    chosen: tuple[str, ...] = ()
    text: str = ""
    by: str = ""
    how: AnsweredHow = "human"
    via: str = ""
    at: datetime | None = None

    @property
    def is_assumption(self) -> bool:
        """Whether nobody looked: a policy answered, or the time for an answer ran out."""
        return self.how in ("policy", "timeout")

    @property
    def who(self) -> str:
        """Who answered, else the channel, else the kind of source."""
        return self.by or self.via or self.how

    @property
    def words(self) -> str:
        """The answer as one text: the chosen labels, then the free text."""
        return ", ".join([*self.chosen, *([self.text] if self.text else [])])


def refusal(question: Question, answer: Answer) -> str:
    """Return why *answer* is not valid for *question*; empty if it is."""
    labels = {option.label for option in question.options}
    if answer.question != question.id:
        return f"answers {answer.question!r}, not {question.id!r}"
    if unknown := [label for label in answer.chosen if label not in labels]:
        return f"no option {unknown[0]!r}; options: {', '.join(map(repr, sorted(labels))) or 'none'}"
    if len(answer.chosen) > 1 and not question.multiple:
        return "only one option can be chosen"
    if answer.text and not question.free_text:
        return "choose one of the options"
    if not answer.chosen and not answer.text.strip():
        return "an empty answer"
    return ""


def parse_typed_answer(question: Question, typed: str) -> Answer:
    """Return the answer that a human *typed*; raise ``UserError`` if *question* does not accept it.

    An option is named by its number, counted from 1, or by its label; where several may be chosen, they
    are separated by commas. Anything else is an answer in one's own words.
    """
    typed = typed.strip()
    parts = [typed]
    if question.multiple and not question.find_label(typed):
        parts = [part.strip() for part in typed.split(",") if part.strip()]
    labels = [question.find_label(part) or _numbered_label(question, part) for part in parts]
    # A number that names no option is a typing error. "1, but without tests" is an answer in one's own words.
    unknown = [part for part, label in zip(parts, labels, strict=True) if not label]
    if question.options and unknown and all(map(_NUMBER.fullmatch, unknown)):
        valid = f"choose a number from 1 to {len(question.options)}"
        raise UserError(f"no option {unknown[0]}; {valid}", hint=_describe_choices(question))
    chosen = tuple(dict.fromkeys(labels)) if labels and all(labels) else ()
    if question.options and not question.multiple and _NUMBERS.fullmatch(typed):
        raise UserError("only one option can be chosen", hint=_describe_choices(question))
    answer = Answer(question=question.id, chosen=chosen, text="" if chosen else typed)
    if why := refusal(question, answer):
        raise UserError(why, hint=_describe_choices(question))
    return answer


def answer_command(question: Question, gsd: str = "gsd") -> str:
    """Return the command line that answers *question*, with a placeholder for the answer.

    *gsd* is how to call gsd for the project, such as ``gsd -C DIR``.
    """
    return f"{gsd} answer {question.id} {'CHOICE' if question.options else 'TEXT'}"


def answer_commands(question: Question, gsd: str = "gsd") -> Iterator[tuple[str, str]]:
    """Yield a command line for each answer to *question*, and the label of the answer."""
    for number, option in enumerate(question.options, 1):
        yield f"{gsd} answer {question.id} {number}", f"{option.label}{option.recommended_note}"
    if question.free_text:
        label = "in your own words" if question.options else "answer with"
        yield f"{gsd} answer {question.id} 'YOUR ANSWER'", label


def _numbered_label(question: Question, word: str) -> str:
    number = int(word) if _NUMBER.fullmatch(word) else 0
    return question.options[number - 1].label if 1 <= number <= len(question.options) else ""


def _describe_choices(question: Question) -> str:
    options = ", ".join(f"{number} ({option.label})" for number, option in enumerate(question.options, 1))
    own_words = "your own words" if question.free_text else ""
    return "answer with " + " or ".join(part for part in (options, own_words) if part)


def _normalized(text: str) -> str:
    return " ".join(text.split()).casefold()


@attrs.frozen(kw_only=True)
class Asked:
    """An open question, with everything that is needed to show and answer it."""

    question: Question
    kind: InquiryKind
    step: str
    reason: str = ""
    at: datetime | None = None
    occasion: str = ""
