"""Writes PLAN.md; :func:`gsd_core.planning.plans.parse_plan` reads the same values back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from gsd_core.ids import padded
from gsd_core.planning.elements import escape
from gsd_core.planning.inline import clean, inline
from gsd_core.planning.model import Artifact, KeyLink, MustHaves, Plan, Task
from gsd_core.planning.plans import TASK_PARTS
from gsd_core.planning.quoting import Node, frontmatter

_ELEMENT = re.compile(r"[a-z][a-z0-9_-]*")


def render_plan(plan: Plan) -> str:
    """Return the text of a plan's file in the shape of v1.20.5."""
    checks = dict.fromkeys(f"[ ] `{task.check}`" for task in plan.tasks if task.check)
    parts = [
        _element("objective", plan.objective),
        "<context>\n@.planning/PROJECT.md\n@.planning/ROADMAP.md\n</context>",
        "\n\n".join(["<tasks>", *map(_task, plan.tasks), "</tasks>"]),
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
        "must_haves": _must_haves(plan.must_haves),
    }


def _folder(plan: Plan) -> str:
    folder = PurePosixPath(plan.path).parent.name
    return folder or padded(plan.phase)


def _summary(plan: Plan) -> str:
    path = PurePosixPath(plan.path or f"{plan.id}-PLAN.md")
    return inline(str(path.with_name(re.sub(r"PLAN(?=\.md$)", "SUMMARY", path.name))))


def _must_haves(must: MustHaves) -> Node:
    return {
        "truths": [truth.text for truth in must.truths],
        "artifacts": [_artifact(artifact) for artifact in must.artifacts],
        "key_links": [_link(link) for link in must.key_links],
    }


def _artifact(artifact: Artifact) -> dict[str, Node]:
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


def _task(task: Task) -> str:
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
