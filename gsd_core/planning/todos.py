"""Todos: ``.planning/todos/pending/DATE-SLUG.md``, moved to ``completed/`` when they are done.

The format is that of GSD (v1.20.5, with the fields that gsd-core 1.14 added). STATE.md lists the pending ones
under ``### Pending Todos``, one line each, as gsd-core renders them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import kind_below, list_below
from gsd_core.model.ids import slug
from gsd_core.sanitize import safe_text
from gsd_core.serializer import Serializer

from .edits import Edit, removing, writing
from .frontmatter import read_frontmatter, scalar
from .markdown import Lines, clean, inline, read_text
from .state import NOTHING, PENDING_TODOS, section_lines

FOLDER = ".planning/todos"
PENDING = f"{FOLDER}/pending"
STATE = ".planning/STATE.md"
AREA = "general"
MAX_TITLE = 100
MAX_BULLET = 240
_OURS = re.compile(r"^- .*\[todo file\]\([^)]*\)")


@attrs.frozen(kw_only=True)
class Todo:
    """A pending todo; *id* is its file's name without ``.md``, *created* the text of that field."""

    id: str
    title: str
    area: str = AREA
    created: str = ""
    severity: str = ""

    @property
    def path(self) -> str:
        """The path of its file in the project."""
        return f"{PENDING}/{self.id}.md"


TODO = Serializer(Todo, "id title area severity? created? path")


def pending_todos(root: Path) -> tuple[Todo, ...]:
    """Return the pending todos, oldest first; one that cannot be read has its id as title."""
    return tuple(_read(root, name.removesuffix(".md")) for name in markdown_files(root, PENDING))


def markdown_files(root: Path, folder: str) -> list[str]:
    """Return the names of the Markdown files in a folder, sorted."""
    entries = list_below(root, folder)
    return sorted(entry.name for entry in entries if entry.kind == "file" and entry.name.endswith(".md"))


def _read(root: Path, name: str) -> Todo:
    todo = Todo(id=name, title=name)
    try:
        text = read_text(root, todo.path)
        fields = read_frontmatter(text, path=todo.path)
    except PlanningError:
        return todo
    heading = re.search(r"^#\s+(.+)$", text, re.MULTILINE)
    return attrs.evolve(
        todo,
        title=fields.text("title") or (heading[1] if heading else name),
        area=fields.text("area") or AREA,
        created=fields.text("created"),
        severity=fields.text("severity"),
    )


def new_todo(root: Path, text: str, *, area: str, at: datetime) -> tuple[Todo, str]:
    """Return a todo that says *text*, and the text of its file; the same again if its file is there already.

    The first line is the title, or its beginning if it is long.
    """
    text = clean(text).strip()
    first = inline(text.split("\n")[0])
    if not re.search(r"\w", first):
        raise PlanningError("a todo needs a text", path=FOLDER, hint="say what is to be done")
    title = first if len(first) <= MAX_TITLE else f"{first[: MAX_TITLE - 1].rstrip()}…"
    area = slug(area) if area else AREA
    created = at.isoformat(timespec="milliseconds")
    # A line of dashes would end the frontmatter of a reader that looks for it anywhere.
    body = re.sub(r"^---", r"\\---", text, flags=re.MULTILINE)
    file = (
        f"---\ncreated: {created}\ntitle: {scalar(title)}\narea: {area}\nfiles: []\n---\n\n"
        f"## Problem\n\n{body}\n\n## Solution\n\nTBD\n"
    )
    base = f"{at.date().isoformat()}-{slug(title)}"
    names = (base if number == 1 else f"{base}-{number}" for number in count(1))
    name = next(name for name in names if not _taken(root, name, file))
    return Todo(id=name, title=title, area=area, created=created), file


def _taken(root: Path, name: str, file: str) -> bool:
    folders = [f"{FOLDER}/{folder}/{name}.md" for folder in ("pending", "completed", "done")]
    exists = [path for path in folders if (root / path).exists() or (root / path).is_symlink()]
    if exists == folders[:1] and kind_below(root, folders[0]) == "file":
        return read_text(root, folders[0]) != file
    return bool(exists)


def find_todo(root: Path, wanted: str) -> Todo:
    """Return the pending todo with that id, or the only one whose id or title contains it."""
    todos = pending_todos(root)
    name = wanted.strip().removesuffix(".md")
    by_id = [todo for todo in todos if todo.id == name]
    by_words = [todo for todo in todos if name and name.lower() in f"{todo.id} {todo.title}".lower()]
    for same in (by_id, by_words):
        if len(same) == 1:
            return same[0]
        if same:
            ids = ", ".join(todo.id for todo in same[:10])
            raise PlanningError(f"{wanted!r} is more than one todo", path=FOLDER, hint=f"name one of: {ids}")
    raise PlanningError(f"no pending todo {wanted!r}", path=FOLDER, hint="list them with: gsd todo list")


def completed_text(text: str, date: str) -> str:
    """Return the file of a todo with the fields that GSD sets when it is done."""
    fields = {"completed": date, "status": "completed"}
    lines = Lines.of(text)
    end = next((at for at in range(1, len(lines)) if lines[at].strip() == "---"), 0)
    if lines[0].strip() != "---" or not end:
        return f"---\ncompleted: {date}\nstatus: completed\n---\n\n{text}"
    for at in range(1, end):
        key = lines[at].partition(":")[0]
        if key in fields:
            lines[at] = f"{key}: {fields.pop(key)}"
    lines.insert(end, [f"{key}: {value}" for key, value in fields.items()])
    return str(lines)


def list_in_state(text: str, todos: Sequence[Todo]) -> str:
    """Return STATE.md with the pending *todos* in its section; lines that are not about a file stay."""
    lines = Lines.of(text)
    section = section_lines(lines, PENDING_TODOS)
    if section is None:
        return text
    start, end = section
    end_of_text = lines.before_blank(start, end)
    old = [lines[at] for at in range(start, end_of_text)]
    kept = [line for line in old if not (_OURS.match(line) or NOTHING.match(line.strip()))]
    while kept and not kept[0].strip():
        kept.pop(0)
    while kept and not kept[-1].strip():
        kept.pop()
    apart = [""] if kept and todos and not kept[-1].startswith("- ") else []
    body = [*kept, *apart, *map(_bullet, todos)] or ["None yet."]
    after = [""] if end_of_text == end < len(lines) else []
    carriage = "\r" if lines.lines[0].endswith("\r") else ""
    lines.lines[start:end_of_text] = [line + carriage for line in ["", *body, *after]]
    return str(lines)


def _bullet(todo: Todo) -> str:
    day = todo.created[:10] or "unknown"
    link = f"[todo file]({todo.path})"
    title = inline(todo.title)
    over = len(f"- [{day}] [{todo.area}] {title} — {link}") - MAX_BULLET
    if over > 0:
        title = f"{title[: max(15, len(title) - over - 1)]}…"
    return f"- [{day}] [{inline(todo.area)}] {title} — {link}"


def plan_todo(root: Path, asked: Mapping[str, Any], *, at: datetime) -> Edit:
    """Plan to add a todo (``text``, ``area``), or to complete one (``done``); STATE.md lists what is left.

    Nothing is left to do if a pending todo says the same.
    """
    left = list(pending_todos(root))
    if done := str(asked.get("done") or ""):
        todo, subject = find_todo(root, done), "complete"
        left.remove(todo)
        target = f"{FOLDER}/completed/{todo.id}.md"
        text = completed_text(read_text(root, todo.path), at.date().isoformat())
        operations = [*writing(root, target, text), removing(root, todo.path)]
    else:
        text = safe_text(str(asked.get("text") or ""))
        todo, file = new_todo(root, text, area=str(asked.get("area") or ""), at=at)
        for one in left:
            same = file.replace(f"created: {todo.created}", f"created: {one.created}")
            if one.title == todo.title and read_text(root, one.path) == same:
                return Edit(subject="", operations=(), about={**TODO.dump(one), "pending": len(left)})
        left = sorted([*left, todo], key=lambda one: one.id)
        operations, subject = [*writing(root, todo.path, file)], "capture"
    if (root / STATE).exists():
        operations += writing(root, STATE, list_in_state(read_text(root, STATE), left))
    about = {**TODO.dump(todo), "pending": len(left)}
    return Edit(subject=f"docs: {subject} todo - {todo.title}", operations=tuple(operations), about=about)
