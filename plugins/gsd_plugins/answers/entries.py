"""What a file of answers says, and which question an entry is for."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard, cast

from attrs import frozen

from gsd_core import Answer, ConfigError, Question, refusal

MAX_BYTES = 1_000_000

_FORM = 'an answer is a text, a list of labels, or {"chosen": […], "text": "…"}'


@frozen(kw_only=True)
class Entry:
    """One answer; *question* is an id, a text, a header or ``/regex/``; *where* it stands, for messages."""

    question: str
    chosen: tuple[str, ...] = ()
    text: str = ""
    where: str
    source: str


def read_file(name: str) -> tuple[Entry, ...]:
    """Read a file of answers; raise ``ConfigError`` naming the line that is wrong."""
    text = _text(name)
    if name.endswith(".toml"):
        return tuple(_from_map(_toml(text, name), name))
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        return tuple(_from_lines(text, name, error))
    answers = _map(whole)
    if answers is not None and not _is_line(answers):
        return tuple(_from_map(answers, name))
    items = [whole] if answers is not None else _list(whole)
    return tuple(_entry(item, f"{name}, entry {number}", name) for number, item in enumerate(items, 1))


def read_line(line: str, where: str, source: str) -> Entry:
    """Read one line of JSON; raise ``ConfigError`` if it is no answer."""
    try:
        return _entry(json.loads(line), where, source)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where}: {error.msg}", hint="write one JSON object on each line") from error


def fits(entry: Entry, question: Question) -> bool:
    """Whether the entry is for this question."""
    name = entry.question
    if len(name) > 2 and name.startswith("/") and name.endswith("/"):
        return _pattern(entry).search(question.text) is not None
    return name == question.id or _plain(name) in (_plain(question.text), _plain(question.header))


def answer_of(entry: Entry, question: Question) -> Answer:
    """Make the entry an answer to *question*; raise ``ConfigError`` if it does not fit its options."""
    labels = {_plain(option.label): option.label for option in question.options}
    chosen = tuple(labels.get(_plain(label), label) for label in entry.chosen)
    text = entry.text
    if not chosen and (label := labels.get(_plain(text))):
        chosen, text = (label,), ""
    answer = Answer(question=question.id, chosen=chosen, text=text, by=entry.source, how="file")
    if problem := refusal(question, answer):
        options = ", ".join(option.label for option in question.options)
        raise ConfigError(
            f"{entry.where}: does not answer {question.text!r}: {problem}",
            hint=f"options: {options}" if options else "",
        )
    return answer


def _text(name: str) -> str:
    path = Path(name)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"--answers {name}: larger than 1 MB")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"--answers {name}: not UTF-8 text") from error
    except OSError as error:
        raise ConfigError(f"--answers {name}: {error.strerror}") from error


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: {error}") from error


def _from_lines(text: str, name: str, whole: json.JSONDecodeError) -> Iterator[Entry]:
    """A document of several lines that is no JSON as a whole is JSON lines if its first line is JSON."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        return
    if not _is_json(lines[0][1]):
        raise ConfigError(f"{name}, line {whole.lineno}: {whole.msg}") from whole
    for number, line in lines:
        yield read_line(line, f"{name}, line {number}", name)


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def _is_line(value: Mapping[str, Any]) -> bool:
    return "question" in value and value.keys() <= {"question", "chosen", "text"}


def _from_map(answers: Mapping[str, Any], name: str) -> Iterator[Entry]:
    for question, value in answers.items():
        given = _map(value) or ({"chosen": value} if isinstance(value, list) else {"text": value})
        yield _entry({**given, "question": question}, f"{name}, {question!r}", name)


def _entry(value: Any, where: str, source: str) -> Entry:
    line = _map(value)
    if line is None or not _is_line(line):
        raise ConfigError(f'{where}: expected {{"question": …, "chosen": […], "text": …}}', hint=_FORM)
    chosen = line.get("chosen", [])
    labels = [chosen] if isinstance(chosen, str) else _list(chosen)
    text = line.get("text", "")
    if isinstance(text, bool | int | float):
        text = str(text).lower()
    if not all(isinstance(part, str) for part in (line["question"], text, *labels)):
        raise ConfigError(f"{where}: not an answer", hint=_FORM)
    if not line["question"].strip():
        raise ConfigError(f"{where}: names no question")
    entry = Entry(question=line["question"], chosen=tuple(labels), text=text, where=where, source=source)
    _pattern(entry)
    return entry


def _map(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if _is_list(value) else [value]


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _pattern(entry: Entry) -> re.Pattern[str]:
    name = entry.question
    slashed = len(name) > 2 and name.startswith("/") and name.endswith("/")
    try:
        return re.compile(name[1:-1] if slashed else re.escape(name), re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"{entry.where}: {name!r} is no regular expression: {error}") from error


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
