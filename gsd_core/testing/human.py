"""A human who has made up their mind beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from gsd_core.hookspecs import gsd_answer
from gsd_core.markers import implements
from gsd_core.model.question import Answer, Inquiry, Question

Reply: TypeAlias = str | Sequence[str]


@attrs.define(eq=False)
class ScriptedHuman:
    """A plugin that answers a question by the first key that its text, header or id holds.

    A reply is the label of an option, several labels, or words. What no key fits is left open;
    *asked* are the questions that came, in their order.
    """

    answers: Mapping[str, Reply]
    asked: list[Question] = attrs.field(init=False, factory=list[Question])

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Answer what the script knows."""
        self.asked.extend(inquiry.questions)
        found = [(question, self._reply(question)) for question in inquiry.questions]
        return [_answer(question, reply) for question, reply in found if reply is not None] or None

    def _reply(self, question: Question) -> Reply | None:
        texts = (question.text, question.header, question.id)
        return next(
            (reply for key, reply in self.answers.items() if any(key in text for text in texts)), None
        )


def _answer(question: Question, reply: Reply) -> Answer:
    if not isinstance(reply, str):
        return Answer(question=question.id, chosen=tuple(reply), by="script")
    if reply in {option.label for option in question.options}:
        return Answer(question=question.id, chosen=(reply,), by="script")
    return Answer(question=question.id, text=reply, by="script")
