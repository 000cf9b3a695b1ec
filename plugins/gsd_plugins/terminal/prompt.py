"""A question at the terminal: how it is shown, how a line is read, and what the line means."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from gsd_core import Answer, Inquiry, Question, parse_typed_answer

from .keyboard import Readable, read_typed
from .lines import Segments, visible

MAX_LINE_BYTES = 65_536
MAX_PART = 400
"""The longest part of a line that is shown at once, so that a page always fits."""
ROWS_OF_PROMPT = 2
MORE = "Press Enter to see more."
TITLES = {"permission": "permission", "escalation": "needs your decision", "checkpoint": "checkpoint"}


def prompt_lines(inquiry: Inquiry, question: Question, glyphs: Mapping[str, str]) -> Iterator[Segments]:
    """Yield the lines of the prompt; nothing is cut, so that no part of a command can hide."""
    yield from question_lines(inquiry, question, glyphs)
    for number, option in enumerate(question.options, 1):
        line = [(f"  {number}. {visible(option.label)}", "")]
        if option.recommended_note:
            line.append((option.recommended_note, "green"))
        if option.description:
            line.append((f"\n     {visible(option.description)}", "dim"))
        yield line
    yield [(_instructions(question), "dim")]


def question_lines(inquiry: Inquiry, question: Question, glyphs: Mapping[str, str]) -> Iterator[Segments]:
    """Yield the lines of the question itself, without its options."""
    title = visible(question.header) or TITLES.get(inquiry.kind, "question")
    about = ", ".join(part for part in (inquiry.kind, inquiry.step, question.id) if part)
    yield []
    # Colored text is hard to read in some themes, so only the sign has a color.
    yield [(f"{glyphs['question']} ", "bold yellow"), (title, "bold"), (f"  ({visible(about)})", "dim")]
    yield [(visible(question.text), "bold")]
    if inquiry.reason:
        yield [(f"reason: {visible(inquiry.reason)}", "")]


def pages_of(lines: Iterable[Segments], width: int, height: int) -> Iterator[list[Segments]]:
    """Yield *lines* a screen at a time, so that nothing scrolls away unseen.

    *width* and *height* are in characters; a line that is longer than *width* takes several rows.
    """
    page: list[Segments] = []
    used = 0
    for line in _single_lines(lines):
        rows = 1 + max(cell_count(line) - 1, 0) // max(width, 1)
        if page and used + rows > height - ROWS_OF_PROMPT:
            yield page
            page, used = [], 0
        page.append(line)
        used += rows
    if page:
        yield page


def _single_lines(lines: Iterable[Segments]) -> Iterator[Segments]:
    """Split lines at their newlines, and very long ones into parts."""
    for line in lines:
        current: Segments = []
        for text, style in line:
            for number, single in enumerate(text.split("\n")):
                if number:
                    yield current
                    current = []
                while len(single) > MAX_PART:
                    yield [*current, (single[:MAX_PART], style)]
                    current, single = [], single[MAX_PART:]
                current.append((single, style))
        yield current


def cell_count(line: Segments) -> int:
    """Return at least the number of columns that *line* takes; a wide character takes two."""
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for text, _ in line for c in text)


def _instructions(question: Question) -> str:
    if not question.options:
        return "Type your answer."
    choice = "numbers or names separated by commas" if question.multiple else "a number or a name"
    own = ", or your own answer" if question.free_text else ""
    recommended = ", ".join(recommended_labels(question))
    enter = f" Press Enter for: {visible(recommended)}" if recommended else ""
    return f"Type {choice}{own}.{enter}"


def parse_line(question: Question, typed: str) -> Answer:
    """Return the answer, for an empty line the recommended options; raise ``UserError`` if it is invalid."""
    if not typed.strip() and (recommended := recommended_labels(question)):
        return Answer(question=question.id, chosen=recommended)
    return parse_typed_answer(question, typed)


def recommended_labels(question: Question) -> tuple[str, ...]:
    """Return the options that an empty line chooses."""
    labels = tuple(option.label for option in question.options if option.recommended)
    return labels if question.multiple else labels[:1]


async def read_line(stdin: Readable) -> str | None:
    """Return the next line without its end; ``None`` at the end of input or if it cannot be read.

    The event loop waits, not a thread: a thread that reads a terminal cannot be cancelled, and the
    process could not exit until Enter is pressed.
    """
    loop = asyncio.get_running_loop()
    received = bytearray()
    complete: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        chunk = read_typed(stdin, MAX_LINE_BYTES)
        received.extend(chunk)
        if not complete.done() and (not chunk or b"\n" in chunk or len(received) > MAX_LINE_BYTES):
            complete.set_result(None)

    try:
        loop.add_reader(stdin.fileno(), readable)
    except (PermissionError, OSError, ValueError):  # a regular file, or closed
        return None
    try:
        await complete
    finally:
        loop.remove_reader(stdin.fileno())
    line, newline, _ = bytes(received).partition(b"\n")
    return line.decode("utf-8", "replace").rstrip("\r") if newline else None
