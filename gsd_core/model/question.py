"""Questions to a human, and the answers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from attrs import field, frozen

InquiryKind: TypeAlias = Literal["decision", "checkpoint", "permission", "escalation"]
AnsweredHow: TypeAlias = Literal["human", "file", "policy", "timeout"]


@frozen(kw_only=True)
class Option:
    """One choice; ``recommended`` is what ``--yes`` takes."""

    label: str
    description: str = ""
    recommended: bool = False


@frozen(kw_only=True)
class Question:
    """Something that has to be decided; *id* is stamped by the core (:func:`gsd_core.model.ids.question_id`).

    *multiple*: several options may be chosen. *free_text*: words of one's own will do.
    *human_only*: no policy may answer it (a human action).
    """

    text: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    free_text: bool = True
    human_only: bool = False
    id: str = ""


@frozen(kw_only=True)
class Inquiry:
    """Questions asked together, by *step*; *reason* says what waits for them."""

    kind: InquiryKind = "decision"
    step: str = ""
    questions: tuple[Question, ...]
    reason: str = ""


@frozen(kw_only=True)
class Answer:
    """A reply to the question with the id *question*.

    *chosen* holds labels of its options. *how* says who decided; *via* (the plugin or command)
    and *at* are stamped by the core.
    """

    question: str
    chosen: tuple[str, ...] = ()
    text: str = ""
    by: str = ""
    how: AnsweredHow = "human"
    via: str = ""
    at: datetime | None = None

    @property
    def words(self) -> str:
        """The answer as one text: what was chosen, and what was written."""
        return ", ".join([*self.chosen, *([self.text] if self.text else [])])


def refusal(question: Question, answer: Answer) -> str:
    """Say why *answer* does not fit *question*; empty if it does."""
    labels = {option.label for option in question.options}
    if answer.question != question.id:
        return f"answers {answer.question!r}, not {question.id!r}"
    if unknown := [label for label in answer.chosen if label not in labels]:
        return f"no option {unknown[0]!r}; options: {', '.join(map(repr, sorted(labels))) or 'none'}"
    if len(answer.chosen) > 1 and not question.multiple:
        return "one option only"
    if answer.text and not question.free_text:
        return "choose one of the options"
    if not answer.chosen and not answer.text.strip():
        return "an empty answer"
    return ""


@frozen(kw_only=True)
class Asked:
    """An open question with what is needed to show and answer it."""

    question: Question
    kind: InquiryKind
    step: str
    reason: str = ""
    at: datetime | None = None
    occasion: str = field(default="")
