"""Tasks that a plan writes as headings: ``## Task 1: NAME``, with or without fields below them.

Reads PLAN.md: its frontmatter and its tasks.

Writes PLAN.md; :func:`gsd_core.planning.plan.parse_plan` reads the same values back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from gsd_core.errors import PlanningError
from gsd_core.model.ids import padded

from .frontmatter import Node, Value, as_map, as_maps, as_text, as_texts, frontmatter, read_frontmatter
from .markdown import Element, clean, elements, escape, inline, named, prose, unescape, without
from .model import Artifact, KeyLink, MustHaves, Plan, Task, TaskType, Truth
from .numbers import TOKEN

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


MAX_TASKS = 300
TASK_PARTS = ("name", "files", "action", "verify", "done")

_FILE_NAME = re.compile(r"(?:(.+)-)?PLAN\.md", re.IGNORECASE)
_NESTED_NAME = re.compile(r"(?:.*-)?PLAN-(\d{1,9}[a-z]?)(?:-.*)?\.md", re.IGNORECASE)
_TASK_PREFIX = re.compile(r"\s*Task\s+[\d.]+\s*[:.—–-]\s*", re.IGNORECASE)
_REMARK = re.compile(
    r"\s\((?:new|creat|modif|updat|edit|delet|remov|read|exist|extend|append)[^()]*\)$", re.I
)
_TYPES: dict[str, TaskType] = {
    "checkpoint:decision": "checkpoint:decision",
    "checkpoint:human-action": "checkpoint:human-action",
    "checkpoint:user": "checkpoint:human-action",
    "manual": "checkpoint:human-action",
}
_NONE = ("none", "nothing", "n/a", "null", "-", "—", "[]")


def parse_plan(text: str, *, path: str, phase: str) -> Plan:
    """Read the plan of phase *phase* that lies at *path*; raise ``PlanningError`` if it is broken."""
    head = read_frontmatter(text, path=path)
    identity = plan_id(path, phase, head.text("plan"))
    wave = head.text("wave")
    return Plan(
        id=identity,
        phase=phase,
        name=head.text("name"),
        objective=_first(head.body, "objective"),
        type=head.text("type") or "execute",
        wave=_count(wave) or 1,
        depends_on=_dependencies(head.texts("depends_on", "depends-on"), phase),
        files_modified=head.texts("files_modified", "files-modified"),
        autonomous=head.text("autonomous").lower() not in ("false", "no"),
        requirements=head.texts("requirements"),
        must_haves=_must_haves(as_map(head.get("must_haves", "must-haves")), identity),
        tasks=_limited(read_tasks(head.body), path),
        gap_closure=head.text("gap_closure", "gap-closure").lower() == "true",
        path=path,
        text=text,
    )


def plan_id(path: str, phase: str, number: str = "") -> str:
    """Return the id of the plan at *path*: its file's name, else the phase and its *number*."""
    name = PurePosixPath(path).name
    match = _FILE_NAME.fullmatch(name)
    if match and match[1]:
        return full_plan_id(match[1], phase)
    nested = _NESTED_NAME.fullmatch(name)
    return full_plan_id(nested[1] if nested else number or "01", phase)


def full_plan_id(text: str, phase: str) -> str:
    """Return a plan's id in full: ``3``, ``01-03``, ``1-3`` and ``01-03-PLAN.md`` are ``01-03``."""
    text = re.sub(r"-PLAN(\.md)?$", "", text.strip(), flags=re.IGNORECASE)
    if re.fullmatch(r"\d{1,4}", text):
        return f"{padded(phase)}-{int(text):02d}"
    match = re.fullmatch(rf"({TOKEN})-(\d{{1,4}})([A-Za-z]?)", text)
    if not match or _is_date(text):
        return text
    return f"{padded(match[1])}-{int(match[2]):02d}{match[3]}"


def _is_date(text: str) -> bool:
    """Say whether a plan is named by the time it was made: ``2026-01-31-…``, ``20260131-0930``."""
    return re.match(r"(?:19|20)\d\d-?[01]\d-?[0-3]\d(?:\D|$)", text) is not None


def _dependencies(items: tuple[str, ...], phase: str) -> tuple[str, ...]:
    return tuple(full_plan_id(item, phase) for item in items if item.lower() not in _NONE)


def _count(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,6}", text) else 0


def _first(body: str, name: str) -> str:
    return next((element.text for element in named(body, name)), "")


def _limited(tasks: tuple[Task, ...], path: str) -> tuple[Task, ...]:
    if len(tasks) <= MAX_TASKS:
        return tasks
    hint = "divide the plan: two or three tasks each"
    raise PlanningError(f"has more than {MAX_TASKS} tasks", path=path, line=1, hint=hint)


def read_tasks(body: str) -> tuple[Task, ...]:
    """Return a plan's tasks: its ``<task>`` elements, or without any, its headings ``## Task 1: NAME``.

    Where there is an element for them, ``<tasks>``, what stands outside of it is no task.
    """
    groups = [element.inside for element in named(body, "tasks")] or [body]
    inside = islice((task for group in groups for task in named(group, "task")), MAX_TASKS + 1)
    found = tuple(_plans_task(i, element) for i, element in enumerate(inside, start=1))
    return found or prose_tasks("\n".join(groups))


def _plans_task(number: int, element: Element) -> Task:
    parts: dict[str, Element] = {}
    for part in elements(element.inside):
        parts.setdefault(part.name, part)
    texts = {name: part.text for name, part in parts.items()}
    verify, check = _verify(parts.get("verify"))
    return Task(
        number=number,
        name=_TASK_PREFIX.sub("", texts.get("name", ""), count=1).strip(),
        type=_type(element.attributes.get("type", "")),
        files=_files(texts.get("files", "")),
        action=texts.get("action", ""),
        verify=verify,
        check=check,
        done=texts.get("done", ""),
        details={name: text for name, text in texts.items() if text and name not in TASK_PARTS},
    )


def _type(text: str) -> TaskType:
    """Return a task's type; a checkpoint of a kind that is not known waits for a human too."""
    kind = text.strip().lower()
    other: TaskType = "checkpoint:human-verify" if kind.startswith("checkpoint") else "auto"
    return _TYPES.get(kind, other)


def _verify(element: Element | None) -> tuple[str, str]:
    """Return what to verify, and the command in it that proves it."""
    if element is None:
        return "", ""
    commands = named(element.inside, "automated")
    check = " && ".join(text for part in commands if (text := part.text))
    return unescape(without(element.inside, "automated"), "verify").strip(), check


def _files(text: str) -> tuple[str, ...]:
    paths = (_REMARK.sub("", part.strip(" -`\t")).strip("` \t") for part in re.split(r"[,\n]", text))
    return tuple(path.replace("&#44;", ",") for path in paths if path)


def _must_haves(values: dict[str, Value], plan: str) -> MustHaves:
    truths = _truths(values.get("truths", ""))
    return MustHaves(
        truths=tuple(Truth(id=f"{plan}:T{i}", text=text) for i, text in enumerate(truths, start=1)),
        artifacts=tuple(_artifact(item) for item in _entries(values.get("artifacts", ""), "path")),
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


def _truths(value: Value) -> list[str]:
    items = value if isinstance(value, list) else [value]
    texts = [_truth(item) for item in items]
    return [text for text in texts if text]


def _truth(value: Value) -> str:
    stated = as_map(value)
    name = next((name for name in ("truth", "statement", "text") if name in stated), "")
    return as_text(stated[name]) if name else as_text(value)


def _artifact(item: dict[str, Value]) -> Artifact:
    lines = as_text(item.get("min_lines", ""))
    contains = item.get("contains", "")
    return Artifact(
        path=as_text(item.get("path", "")),
        provides=as_text(item.get("provides", "")),
        min_lines=_count(lines),
        exports=as_texts(item.get("exports", "")),
        contains=as_text(contains[0] if isinstance(contains, list) and contains else contains),
    )


def _entries(value: Value, key: str) -> list[dict[str, Value]]:
    """Return the maps of a list; a bare text in it stands for its *key*."""
    items = value if isinstance(value, list) else [value]
    maps: list[dict[str, Value]] = [item if isinstance(item, dict) else {key: item} for item in items]
    return [item for item in maps if as_text(item.get(key, ""))]


_ELEMENT = re.compile(r"[a-z][a-z0-9_-]*")


def render_plan(plan: Plan) -> str:
    """Return the text of a plan's file in the shape of v1.20.5."""
    checks = dict.fromkeys(f"[ ] `{task.check}`" for task in plan.tasks if task.check)
    parts = [
        _element("objective", plan.objective),
        "<context>\n@.planning/PROJECT.md\n@.planning/ROADMAP.md\n</context>",
        "\n\n".join(["<tasks>", *map(_render_plan_task, plan.tasks), "</tasks>"]),
        *([_list("verification", list(checks))] if checks else []),
        _list("success_criteria", [truth.text for truth in plan.must_haves.truths]),
        _element("output", f"The plan's summary: `{_summary(plan)}`"),
    ]
    return frontmatter(_head(plan)) + "\n" + "\n\n".join(parts) + "\n"


def _head(plan: Plan) -> dict[str, Node]:
    return {
        "phase": _folder(plan),
        "plan": plan.id.rpartition("-")[2],
        **({"name": plan.name} if plan.name else {}),
        "type": plan.type,
        "wave": plan.wave,
        "depends_on": plan.depends_on,
        "files_modified": plan.files_modified,
        "autonomous": plan.autonomous,
        **({"gap_closure": True} if plan.gap_closure else {}),
        "requirements": plan.requirements,
        "must_haves": _render_plan_must_haves(plan.must_haves),
    }


def _folder(plan: Plan) -> str:
    folder = PurePosixPath(plan.path).parent.name
    return folder or padded(plan.phase)


def _summary(plan: Plan) -> str:
    path = PurePosixPath(plan.path or f"{plan.id}-PLAN.md")
    return inline(str(path.with_name(re.sub(r"PLAN(?=\.md$)", "SUMMARY", path.name))))


def _render_plan_must_haves(must: MustHaves) -> Node:
    return {
        "truths": [truth.text for truth in must.truths],
        "artifacts": [_render_plan_artifact(artifact) for artifact in must.artifacts],
        "key_links": [_link(link) for link in must.key_links],
    }


def _render_plan_artifact(artifact: Artifact) -> dict[str, Node]:
    values: dict[str, Node] = {
        "path": artifact.path,
        "provides": artifact.provides,
        "min_lines": artifact.min_lines,
        "exports": artifact.exports,
        "contains": artifact.contains,
    }
    return {key: value for key, value in values.items() if value}


def _link(link: KeyLink) -> dict[str, Node]:
    values: dict[str, Node] = {
        "from": link.source,
        "to": link.target,
        "via": link.via,
        "pattern": link.pattern,
    }
    return {key: value for key, value in values.items() if value or key in ("from", "to")}


def _render_plan_task(task: Task) -> str:
    gate = ' gate="blocking"' if task.type.startswith("checkpoint") else ""
    lines = [f'<task type="{task.type}"{gate}>', *(f"  {line}" for line in _parts(task)), "</task>"]
    return "\n".join(lines)


def _parts(task: Task) -> Iterator[str]:
    yield f"<name>{_escaped('name', f'Task {task.number}: {inline_name(task.name)}')}</name>"
    if task.files:
        paths = ", ".join(" ".join(path.split()).replace(",", "&#44;") for path in task.files)
        yield f"<files>{_escaped('files', paths)}</files>"
    if task.action:
        yield f"<action>{_escaped('action', task.action)}</action>"
    if task.verify or task.check:
        yield f"<verify>{_escaped('verify', task.verify)}{_automated(task.check)}</verify>"
    if task.done:
        yield f"<done>{_escaped('done', task.done)}</done>"
    for name, text in task.details.items():
        if _ELEMENT.fullmatch(name) and name not in (*TASK_PARTS, "task", "tasks"):
            yield f"<{name}>{_escaped(name, text)}</{name}>"


def inline_name(name: str) -> str:
    """Return a task's name on one line."""
    return " ".join(clean(name).split())


def _automated(check: str) -> str:
    return f"\n    <automated>{_escaped('automated', check)}</automated>\n  " if check else ""


def _escaped(element: str, text: str) -> str:
    return escape(clean(text), element)


def _element(name: str, text: str) -> str:
    return f"<{name}>\n{_escaped(name, text)}\n</{name}>"


def _list(name: str, items: list[str]) -> str:
    return _element(name, "\n".join(f"- {' '.join(item.split())}" for item in items))
