"""Tasks that a plan writes as headings: ``## Task 1: NAME``, with or without fields below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gsd_core.planning.inline import prose
from gsd_core.planning.model import Task

_TASK = re.compile(
    r"^ {0,3}(#{2,5})\s*Task\s+\d{1,4}[\d.]{0,9}[A-Za-z]?\s*(?:[:.)—–-]\s*(.*))?$", re.IGNORECASE
)
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s")
_FIELD = re.compile(
    r"^\s*(?:[-*]\s+)?\*\*(Files?|Action|Verify|Verification|Done)[^*]{0,40}\*\*:?\s*(.*)$", re.IGNORECASE
)
_FILE = re.compile(r"`([^`\s]+)`")
_NAMES = {"file": "files", "verification": "verify"}


def prose_tasks(body: str) -> tuple[Task, ...]:
    """Return the tasks of a plan without elements; what stands in a code fence is text."""
    return tuple(
        _task(number, name, lines)
        for number, (name, lines) in enumerate(_sections(body.split("\n")), start=1)
    )


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each task; a heading of its level or above ends it."""
    name, level, inside, fenced = "", 0, list[str](), False
    for line in lines:
        line = line.rstrip()
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        task = None if fenced else _TASK.match(line)
        heading = None if fenced else _HEADING.match(line)
        if level and (task or (heading and len(heading[1]) <= level)):
            yield name, inside
            level = 0
        if task:
            name, level, inside = task[2] or "", len(task[1]), []
        elif level:
            inside.append(line)
    if level:
        yield name, inside


def _task(number: int, name: str, lines: Sequence[str]) -> Task:
    fields = dict(_fields(lines))
    files = _FILE.findall(fields.get("files", "")) or re.split(r"[,\n]", fields.get("files", ""))
    return Task(
        number=number,
        name=prose(name),
        files=tuple(path for file in files if (path := file.strip(" -*\t")) and " " not in path),
        action=fields.get("action") or "\n".join(lines).strip(),
        verify=fields.get("verify", ""),
        done=fields.get("done", ""),
    )


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a task; one goes on until the next, or to an empty line."""
    name, text = "", list[str]()
    for line in [*lines, ""]:
        field = _FIELD.match(line)
        if name and (field or not line.strip()):
            yield name, "\n".join(text).strip()
            name = ""
        if field:
            label = field[1].lower()
            name, text = _NAMES.get(label, label), [field[2]]
        elif name:
            text.append(line)
