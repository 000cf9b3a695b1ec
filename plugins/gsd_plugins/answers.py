"""Answers from a file or from standard input: ``--answers FILE|-``.

A file maps questions to answers, in JSON or TOML. A question is named by its id, its text, its
header, or a regular expression between slashes that is searched in its text. An answer is an
option's label, free text, a list of labels, or ``{"chosen": […], "text": "…"}``::

    {"Which database?": "PostgreSQL", "/deploy .* staging/": ["No"], "q-0a1b2c3d4e": "as discussed"}

JSON lines, in a file or on standard input (``-``), hold one answer each and are used in order:
``{"question": "Which database?", "chosen": ["PostgreSQL"], "text": ""}``. Each line of standard
input answers only one question. A human wrote these answers, so they may also answer questions
that no policy may. A check that asks a person to look at something has to be named by its id or text; by a
header or an expression, it is answered without anybody having looked, and counts as assumed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core import Answer, ConfigError, Inquiry, Question, implements, refusal, setting, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_settings

MAX_BYTES = 1_000_000
CHUNK_BYTES = 65_536

_EXPECTED = 'an answer is a string, a list of labels, or {"chosen": […], "text": "…"}'


@attrs.frozen(kw_only=True)
class AnswersSettings:
    """Where answers come from: a file's path, ``-`` for standard input, or nowhere."""

    answers: str = setting(
        "", flag="--answers", help="answer questions from this file, or - for stdin", consent=True
    )
    # The answers in the file as they were at the start, and the run's only reader of standard input.
    prepared: list[PreparedAnswer] = attrs.field(
        factory=lambda: list[PreparedAnswer](), init=False, eq=False, repr=False
    )
    stdin: StandardInput = attrs.field(factory=lambda: StandardInput(), init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Read the file, once: later, it could be missing, or an agent could have changed it."""
        if self.answers not in ("", "-"):
            try:
                self.prepared.extend(read_answers(self.answers))
            except ConfigError as error:
                raise ValueError(str(error).removeprefix("--answers ")) from error


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute ``--answers``."""
    yield AnswersSettings


@implements(gsd_answer)
async def look_up(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer the questions that the file answers; only standard input is waited for."""
    settings = settings_of(AnswersSettings)
    if not settings.answers:
        return None
    if settings.answers == "-":
        return await settings.stdin.answers(inquiry)
    found = [(question, _first_match(settings.prepared, question)) for question in inquiry.questions]
    return [match.answer(question) for question, match in found if match] or None


@attrs.frozen(kw_only=True)
class PreparedAnswer:
    """An answer and the question it is for.

    *question* is an id, a question's text or header, or the regular expression that *pattern* was compiled
    from. *source* is the file that holds it, *location* its place there, for error messages.
    """

    question: str
    pattern: re.Pattern[str] | None = None
    chosen: tuple[str, ...] = ()
    text: str = ""
    location: str
    source: str

    def matches(self, question: Question) -> bool:
        """Whether this answers *question*."""
        if self.pattern:
            return self.pattern.search(question.text) is not None
        named = _normalized(self.question)
        return self.question == question.id or named in map(_normalized, (question.text, question.header))

    def answer(self, question: Question) -> Answer:
        """Return the answer to *question*; raise ``ConfigError`` if the question does not accept it."""
        # Labels only, no numbers: the file was written before the options and their order were known.
        chosen = tuple(question.find_label(label) or label for label in self.chosen)
        text = self.text
        if not chosen and (label := question.find_label(text)):
            chosen, text = (label,), ""
        # Only who names the question knew what to look at; a pattern or a header answers any check.
        is_named = self.question == question.id or _normalized(self.question) == _normalized(question.text)
        looked = is_named or not question.inspection
        answer = Answer(
            question=question.id, chosen=chosen, text=text, by=self.source, how="file" if looked else "policy"
        )
        if problem := refusal(question, answer):
            options = ", ".join(option.label for option in question.options)
            hint = f"options: {options}" if options else ""
            raise ConfigError(f"{self.location}: invalid answer to {question.text!r}: {problem}", hint=hint)
        return answer


def _first_match(prepared: Iterable[PreparedAnswer], question: Question) -> PreparedAnswer | None:
    return next((answer for answer in prepared if answer.matches(question)), None)


def _normalized(text: str) -> str:
    return " ".join(text.split()).casefold()


def read_answers(name: str) -> list[PreparedAnswer]:
    """Read a file of answers; raise ``ConfigError`` with the line that is invalid."""
    path = Path(name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"--answers {name}: the file is larger than 1 MB")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"--answers {name}: the file is not UTF-8 text") from error
    except OSError as error:
        raise ConfigError(f"--answers {name}: {error.strerror}") from error
    if name.endswith(".toml"):
        try:
            return _parse_mapping(tomllib.loads(text), name)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name}: {error}") from error
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        return _parse_json_lines(text, name, error)
    mapping = _as_dict(document)
    if mapping is not None and not _is_entry(mapping):
        return _parse_mapping(mapping, name)
    entries = [document] if mapping is not None else _as_list(document)
    return [_parse_entry(entry, f"{name}, entry {number}", name) for number, entry in enumerate(entries, 1)]


def _parse_mapping(answers: dict[str, Any], name: str) -> list[PreparedAnswer]:
    found: list[PreparedAnswer] = []
    for question, value in answers.items():
        entry = _as_dict(value) or ({"chosen": value} if isinstance(value, list) else {"text": value})
        found.append(_parse_entry({**entry, "question": question}, f"{name}, {question!r}", name))
    return found


def _parse_json_lines(text: str, name: str, error: json.JSONDecodeError) -> list[PreparedAnswer]:
    """Parse JSON lines; *error* is the reason why the text is not a single JSON document."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        return []
    try:
        json.loads(lines[0][1])
    except json.JSONDecodeError:
        # Not JSON lines either: the error in the document as a whole names the line to correct.
        raise ConfigError(f"{name}, line {error.lineno}: {error.msg}") from error
    return [_parse_line(line, f"{name}, line {number}", name) for number, line in lines]


def _parse_line(line: str, location: str, source: str) -> PreparedAnswer:
    try:
        return _parse_entry(json.loads(line), location, source)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{location}: {error.msg}", hint="write one JSON object per line") from error


def _parse_entry(value: object, location: str, source: str) -> PreparedAnswer:
    entry = _as_dict(value)
    if entry is None or not _is_entry(entry):
        raise ConfigError(f'{location}: expected {{"question": …, "chosen": […], "text": …}}', hint=_EXPECTED)
    question, text = entry["question"], entry.get("text", "")
    chosen = _as_list(entry.get("chosen", []))
    if isinstance(text, bool | int | float):
        text = str(text).lower()  # JSON's spelling: true, not True
    if not all(isinstance(part, str) for part in (question, text, *chosen)):
        raise ConfigError(f"{location}: invalid answer", hint=_EXPECTED)
    if not question.strip():
        raise ConfigError(f"{location}: the question is empty", hint="name it by its id, text or header")
    pattern = None
    if len(question) > 2 and question.startswith("/") and question.endswith("/"):
        try:
            pattern = re.compile(question[1:-1], re.IGNORECASE)
        except re.error as error:
            message = f"{location}: {question!r} is not a valid regular expression: {error}"
            raise ConfigError(message) from error
    return PreparedAnswer(
        question=question, pattern=pattern, chosen=tuple(chosen), text=text, location=location, source=source
    )


def _is_entry(value: dict[str, Any]) -> bool:
    return "question" in value and value.keys() <= {"question", "chosen", "text"}


def _as_dict(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _as_list(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else [value]


@attrs.define(eq=False)
class StandardInput:
    """Reads JSON lines as they are needed, and keeps those that no question has used yet."""

    descriptor: int = 0
    _unused: list[PreparedAnswer] = attrs.field(factory=list[PreparedAnswer], init=False)
    _partial: bytes = attrs.field(default=b"", init=False)
    _line_count: int = attrs.field(default=0, init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _reading: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def answers(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Wait for a line that answers one of the questions; ``None`` when the input has ended."""
        while True:
            if found := self._take(inquiry):
                return found
            async with self._reading:
                # Another inquiry may have read our line while this one waited for the lock.
                if found := self._take(inquiry):
                    return found
                if self._ended:
                    return None
                self._parse(await self._read())

    def _take(self, inquiry: Inquiry) -> list[Answer]:
        answers: list[Answer] = []
        for question in inquiry.questions:
            if match := _first_match(self._unused, question):
                self._unused.remove(match)
                answers.append(match.answer(question))
        return answers

    async def _read(self) -> bytes:
        # The loop waits, not a thread: a thread that reads cannot be cancelled and would keep
        # the process from exiting.
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self.descriptor, ready.set)
        except (OSError, NotImplementedError):
            # A regular file or /dev/null cannot be waited for, but reading it does not block.
            return os.read(self.descriptor, CHUNK_BYTES)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self.descriptor)
        return os.read(self.descriptor, CHUNK_BYTES)

    def _parse(self, data: bytes) -> None:
        """Keep the answers of every complete line, then raise the first line's error, if any."""
        self._ended = not data
        *lines, self._partial = (self._partial + data).split(b"\n")
        if self._ended and self._partial:
            lines, self._partial = [*lines, self._partial], b""
        problems: list[Exception] = []
        for line in lines:
            self._line_count += 1
            try:
                if line.strip():
                    text = line.decode("utf-8", "replace")
                    self._unused.append(_parse_line(text, f"stdin, line {self._line_count}", "stdin"))
            except Exception as error:
                problems.append(error)
        if problems:
            raise problems[0]
