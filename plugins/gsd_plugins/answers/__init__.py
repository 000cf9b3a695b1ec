"""Answers from a file or from standard input: ``--answers FILE|-``.

A file maps questions to answers, in JSON or TOML. A question is named by its id, its text, its
header, or a regular expression between slashes that is searched in its text; an answer is an
option's label, words of one's own, a list of labels, or ``{"chosen": […], "text": "…"}``::

    {"Which database?": "PostgreSQL", "/deploy .* staging/": ["No"], "q-0a1b2c3d4e": "as discussed"}

JSON lines, in a file or on standard input (``-``), hold one answer each and are used in their
order: ``{"question": "Which database?", "chosen": ["PostgreSQL"], "text": ""}``. A line of
standard input is used up by its answer. Whoever wrote them is a human, so they may answer what
no policy may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from attrs import field, frozen

from gsd_core import Answer, Inquiry, implements, setting, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_settings

from .entries import Entry, answer_of, fits, read_file
from .stdin import StandardInput


@frozen(kw_only=True)
class AnswersSettings:
    """Where answers come from: a file's path, ``-`` for standard input, or nowhere."""

    answers: str = setting("", flag="--answers", help="answer questions from this file, or - for stdin")
    _stdin: StandardInput = field(factory=StandardInput, init=False, eq=False, repr=False)

    @property
    def stdin(self) -> StandardInput:
        """The run's one reader of standard input."""
        return self._stdin


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute ``--answers``."""
    yield AnswersSettings


@implements(gsd_answer)
async def look_up(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer what the file answers; wait for lines only on standard input."""
    settings = settings_of(AnswersSettings)
    if not settings.answers:
        return None
    if settings.answers == "-":
        return await settings.stdin.answers(inquiry)
    entries = await asyncio.to_thread(read_file, settings.answers)
    return _found(inquiry, entries) or None


def _found(inquiry: Inquiry, entries: Sequence[Entry]) -> list[Answer]:
    pairs = ((q, next((e for e in entries if fits(e, q)), None)) for q in inquiry.questions)
    return [answer_of(entry, question) for question, entry in pairs if entry]
