"""PLAN.md: reads and writes a plan, its must-haves and its tasks.

Source: the plans of GSD v1.20.5 (the shape that is written) and gsd-core 1.10. The frontmatter has the
keys ``phase``, ``plan``, ``type``, ``wave``, ``depends_on``, ``files_modified``, ``autonomous``,
``requirements``, ``must_haves`` and perhaps ``gap_closure``. The body consists of elements:
``<objective>``, ``<context>``, ``<tasks>``, ``<verification>``, ``<success_criteria>`` and ``<output>``.
A ``<task type="auto">`` contains ``<name>``, ``<files>``, ``<action>``, ``<verify>`` and ``<done>``; the
other types are checkpoints, with additional elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from gsd_core.errors import PlanningError
from gsd_core.model.ids import padded

from .frontmatter import (
    Node,
    Value,
    as_list,
    as_map,
    as_maps,
    as_text,
    as_texts,
    read_frontmatter,
    render_frontmatter,
)
from .markdown import Element, clean, elements, escape, inline, named, prose, unescape, without
from .model import Artifact, KeyLink, MustHaves, Plan, Task, TaskType, Truth
from .numbers import TOKEN

MAX_TASKS = 300
TASK_PARTS = ("name", "files", "action", "verify", "done")
"""The elements of a task that have a field of :class:`Task`; all others are its ``details``."""

_NO_DEPENDENCY = ("none", "nothing", "n/a", "null", "-", "—", "[]")


def parse_plan(text: str, *, path: str, phase: str) -> Plan:
    """Read the PLAN.md at *path*, a plan of *phase*; raise :class:`PlanningError` if it is invalid."""
    head = read_frontmatter(text, path=path)
    identity = plan_id(path, phase, head.text("plan"))
    tasks = _read_tasks(head.body)
    if len(tasks) > MAX_TASKS:
        hint = "split the plan: two or three tasks each"
        raise PlanningError(f"has more than {MAX_TASKS} tasks", path=path, line=1, hint=hint)
    return Plan(
        id=identity,
        phase=phase,
        name=head.text("name"),
        objective=next((element.text for element in named(head.body, "objective")), ""),
        type=head.text("type") or "execute",
        wave=_number(head.text("wave")) or 1,
        depends_on=tuple(
            full_plan_id(name, phase)
            for name in head.texts("depends_on", "depends-on")
            if name.lower() not in _NO_DEPENDENCY
        ),
        files_modified=head.texts("files_modified", "files-modified"),
        autonomous=head.text("autonomous").lower() not in ("false", "no"),
        requirements=head.texts("requirements"),
        must_haves=_read_must_haves(as_map(head.get("must_haves", "must-haves")), identity),
        tasks=tasks,
        gap_closure=head.text("gap_closure", "gap-closure").lower() == "true",
        path=path,
        text=text,
    )


# Ids

_FILE_NAME = re.compile(r"(?:(.+)-)?PLAN\.md", re.IGNORECASE)
# The later layout: plans/PLAN-03-name.md
_NESTED_NAME = re.compile(r"(?:.*-)?PLAN-(\d{1,9}[a-z]?)(?:-.*)?\.md", re.IGNORECASE)
# Some plans are named after their creation time, `2026-01-31-…` or `20260131-0930`; the date is not a phase.
_DATE = re.compile(r"(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:\D|$)")


def plan_id(path: str, phase: str, number: str = "") -> str:
    """Return the id of the plan at *path*, from its file name.

    A bare ``PLAN.md`` has the *number* that its frontmatter states, else 01.
    """
    name = PurePosixPath(path).name
    match = _FILE_NAME.fullmatch(name)
    if match and match[1]:
        return full_plan_id(match[1], phase)
    nested = _NESTED_NAME.fullmatch(name)
    return full_plan_id(nested[1] if nested else number or "01", phase)


def full_plan_id(text: str, phase: str) -> str:
    """Return a plan's full id: ``01-03`` for any of ``3``, ``01-03``, ``1-3`` and ``01-03-PLAN.md``."""
    text = re.sub(r"-PLAN(\.md)?$", "", text.strip(), flags=re.IGNORECASE)
    if re.fullmatch(r"\d{1,4}", text):
        return f"{padded(phase)}-{int(text):02d}"
    match = re.fullmatch(rf"({TOKEN})-(\d{{1,4}})([A-Za-z]?)", text)
    if not match or _DATE.match(text):
        return text
    return f"{padded(match[1])}-{int(match[2]):02d}{match[3]}"


def _number(text: str) -> int:
    """Return a number, or 0 if *text* is not one."""
    return int(text) if re.fullmatch(r"\d{1,6}", text) else 0


# Reading must-haves


def _read_must_haves(values: dict[str, Value], plan: str) -> MustHaves:
    truths = [text for value in as_list(values.get("truths", "")) if (text := _truth(value))]
    return MustHaves(
        truths=tuple(Truth(id=f"{plan}:T{i}", text=text) for i, text in enumerate(truths, start=1)),
        artifacts=tuple(
            artifact for value in as_list(values.get("artifacts", "")) if (artifact := _artifact(value)).path
        ),
        key_links=tuple(
            KeyLink(
                source=as_text(item.get("from", "")),
                target=as_text(item.get("to", "")),
                via=as_text(item.get("via", "")),
                pattern=as_text(item.get("pattern", "")),
            )
            for item in as_maps(values.get("key_links", values.get("key-links", "")))
        ),
    )


def _truth(value: Value) -> str:
    """Return a truth's text; later versions write ``{truth: …, verification: backstop}``."""
    stated = as_map(value)
    name = next((name for name in ("truth", "statement", "text") if name in stated), "")
    return as_text(stated[name]) if name else as_text(value)


def _artifact(value: Value) -> Artifact:
    """Return an artifact; one that is not a map is only a path."""
    item = value if isinstance(value, dict) else {"path": value}
    contains = item.get("contains", "")
    return Artifact(
        path=as_text(item.get("path", "")),
        provides=as_text(item.get("provides", "")),
        min_lines=_number(as_text(item.get("min_lines", ""))),
        exports=as_texts(item.get("exports", "")),
        contains=as_text(contains[0] if isinstance(contains, list) and contains else contains),
    )


# Reading tasks: elements

_TASK_PREFIX = re.compile(r"\s*Task\s+[\d.]+\s*[:.—–-]\s*", re.IGNORECASE)
# `src/a.py (new)`: what happens to the file is not part of its path.
_FILE_REMARK = re.compile(
    r"\s\((?:new|creat|modif|updat|edit|delet|remov|read|exist|extend|append)[^()]*\)$", re.I
)
_TYPES: dict[str, TaskType] = {
    "checkpoint:decision": "checkpoint:decision",
    "checkpoint:human-action": "checkpoint:human-action",
    "checkpoint:user": "checkpoint:human-action",
    "manual": "checkpoint:human-action",
}


def _read_tasks(body: str) -> tuple[Task, ...]:
    """Return a plan's tasks: its ``<task>`` elements, or if it has none, its ``## Task 1: NAME`` sections.

    If there is a ``<tasks>`` element, only its content counts: other parts may quote tasks.
    """
    groups = [element.inside for element in named(body, "tasks")] or [body]
    found = islice((task for group in groups for task in named(group, "task")), MAX_TASKS + 1)
    tasks = tuple(_task_of_element(number, element) for number, element in enumerate(found, start=1))
    return tasks or _task_sections("\n".join(groups))


def _task_of_element(number: int, element: Element) -> Task:
    parts: dict[str, Element] = {}
    for part in elements(element.inside):
        parts.setdefault(part.name, part)
    texts = {name: part.text for name, part in parts.items()}
    verify, check = _read_verify(parts.get("verify"))
    return Task(
        number=number,
        name=_TASK_PREFIX.sub("", texts.get("name", ""), count=1).strip(),
        type=_task_type(element.attributes.get("type", "")),
        files=_read_files(texts.get("files", "")),
        action=texts.get("action", ""),
        verify=verify,
        check=check,
        done=texts.get("done", ""),
        details={name: text for name, text in texts.items() if text and name not in TASK_PARTS},
    )


def _task_type(text: str) -> TaskType:
    """Return a task's type; a checkpoint of an unknown kind waits for a person too."""
    kind = text.strip().lower()
    other: TaskType = "checkpoint:human-verify" if kind.startswith("checkpoint") else "auto"
    return _TYPES.get(kind, other)


def _read_verify(element: Element | None) -> tuple[str, str]:
    """Return the text of ``<verify>``, and the command in its ``<automated>`` element."""
    if element is None:
        return "", ""
    check = " && ".join(part.text for part in named(element.inside, "automated") if part.text)
    return unescape(without(element.inside, "automated"), "verify").strip(), check


def _read_files(text: str) -> tuple[str, ...]:
    paths = (_FILE_REMARK.sub("", part.strip(" -`\t")).strip("` \t") for part in re.split(r"[,\n]", text))
    return tuple(path.replace("&#44;", ",") for path in paths if path)


# Reading tasks: sections of markdown, `## Task 1: NAME`, with or without fields below the heading

_TASK_HEADING = re.compile(
    r"^ {0,3}(#{2,5})\s*Task\s+\d{1,4}[\d.]{0,9}[A-Za-z]?\s*(?:[:.)—–-]\s*(.*))?$", re.IGNORECASE
)
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s")
_FIELD = re.compile(
    r"^\s*(?:[-*]\s+)?\*\*(Files?|Action|Verify|Verification|Done)[^*]{0,40}\*\*:?\s*(.*)$", re.IGNORECASE
)
_FIELD_NAMES = {"file": "files", "verification": "verify"}
_QUOTED_PATH = re.compile(r"`([^`\s]+)`")


def _task_sections(body: str) -> tuple[Task, ...]:
    """Return the tasks that are written as headings; a heading in a code fence is text.

    A task ends at the next heading of the same or a higher level.
    """
    found: list[tuple[str, list[str]]] = []
    level, fenced = 0, False
    for line in map(str.rstrip, body.split("\n")):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        task = None if fenced else _TASK_HEADING.match(line)
        heading = None if fenced else _HEADING.match(line)
        if task:
            level = len(task[1])
            found.append((task[2] or "", []))
        elif heading and len(heading[1]) <= level:
            level = 0
        elif level:
            found[-1][1].append(line)
    return tuple(_task_of_section(number, *section) for number, section in enumerate(found, start=1))


def _task_of_section(number: int, name: str, lines: Sequence[str]) -> Task:
    fields = _read_fields(lines)
    listed = fields.get("files", "")
    files = _QUOTED_PATH.findall(listed) or re.split(r"[,\n]", listed)
    return Task(
        number=number,
        name=prose(name),
        # An item that contains a space is a remark, not a path.
        files=tuple(path for file in files if (path := file.strip(" -*\t")) and " " not in path),
        action=fields.get("action") or "\n".join(lines).strip(),
        verify=fields.get("verify", ""),
        done=fields.get("done", ""),
    )


def _read_fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the fields (``**Files**: …``) of a task; each ends at the next field or at a blank line."""
    fields: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if field := _FIELD.match(line):
            name = field[1].lower()
            current = fields[_FIELD_NAMES.get(name, name)] = [field[2]]
        elif not line.strip():
            current = None
        elif current is not None:
            current.append(line)
    return {name: "\n".join(text).strip() for name, text in fields.items()}


# Writing

_ELEMENT_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def render_plan(plan: Plan) -> str:
    """Return the text of a plan's PLAN.md; :func:`parse_plan` reads the same values from it."""
    path = PurePosixPath(plan.path or f"{plan.id}-PLAN.md")
    summary = path.with_name(re.sub(r"PLAN(?=\.md$)", "SUMMARY", path.name))
    head: dict[str, Node] = {
        "phase": path.parent.name or padded(plan.phase),
        "plan": plan.id.rpartition("-")[2],
        **({"name": plan.name} if plan.name else {}),
        "type": plan.type,
        "wave": plan.wave,
        "depends_on": plan.depends_on,
        "files_modified": plan.files_modified,
        "autonomous": plan.autonomous,
        **({"gap_closure": True} if plan.gap_closure else {}),
        "requirements": plan.requirements,
        "must_haves": _must_haves_node(plan.must_haves),
    }
    checks = dict.fromkeys(f"[ ] `{task.check}`" for task in plan.tasks if task.check)
    parts = [
        _block("objective", plan.objective),
        "<context>\n@.planning/PROJECT.md\n@.planning/ROADMAP.md\n</context>",
        "\n\n".join(["<tasks>", *map(_render_task, plan.tasks), "</tasks>"]),
        *([_list("verification", checks)] if checks else []),
        _list("success_criteria", [truth.text for truth in plan.must_haves.truths]),
        _block("output", f"The plan's summary: `{inline(str(summary))}`"),
    ]
    return render_frontmatter(head) + "\n" + "\n\n".join(parts) + "\n"


def _must_haves_node(must_haves: MustHaves) -> Node:
    artifacts: list[dict[str, Node]] = [
        {
            "path": artifact.path,
            "provides": artifact.provides,
            "min_lines": artifact.min_lines,
            "exports": artifact.exports,
            "contains": artifact.contains,
        }
        for artifact in must_haves.artifacts
    ]
    links = [
        {"from": link.source, "to": link.target, "via": link.via, "pattern": link.pattern}
        for link in must_haves.key_links
    ]
    return {
        "truths": [truth.text for truth in must_haves.truths],
        "artifacts": [{key: value for key, value in node.items() if value} for node in artifacts],
        "key_links": [
            {key: value for key, value in node.items() if value or key in ("from", "to")} for node in links
        ],
    }


def _render_task(task: Task) -> str:
    gate = ' gate="blocking"' if task.type.startswith("checkpoint") else ""
    lines = [f'<task type="{task.type}"{gate}>', *(f"  {line}" for line in _task_parts(task)), "</task>"]
    return "\n".join(lines)


def _task_parts(task: Task) -> Iterator[str]:
    yield _element("name", f"Task {task.number}: {' '.join(clean(task.name).split())}")
    if task.files:
        # Readers split the list at its commas, so that a comma in a path has to be escaped.
        yield _element(
            "files", ", ".join(" ".join(path.split()).replace(",", "&#44;") for path in task.files)
        )
    if task.action:
        yield _element("action", task.action)
    if task.verify or task.check:
        check = f"\n    {_element('automated', task.check)}\n  " if task.check else ""
        yield f"<verify>{_escaped('verify', task.verify)}{check}</verify>"
    if task.done:
        yield _element("done", task.done)
    for name, text in task.details.items():
        # The names come from a model: only those that open no other part may become an element.
        if _ELEMENT_NAME.fullmatch(name) and name not in (*TASK_PARTS, "task", "tasks"):
            yield _element(name, text)


def _element(name: str, text: str) -> str:
    return f"<{name}>{_escaped(name, text)}</{name}>"


def _block(name: str, text: str) -> str:
    return f"<{name}>\n{_escaped(name, text)}\n</{name}>"


def _list(name: str, items: Iterable[str]) -> str:
    return _block(name, "\n".join(f"- {' '.join(item.split())}" for item in items))


def _escaped(name: str, text: str) -> str:
    return escape(clean(text), name)
