"""PLAN.md: reads and writes a plan, its must-haves and its tasks.

Source: the plans of GSD v1.20.5 (the shape that is written) and gsd-core 1.10. The frontmatter has the
keys ``phase``, ``plan``, ``type``, ``wave``, ``depends_on``, ``files_modified``, ``autonomous``,
``requirements``, ``must_haves`` and perhaps ``gap_closure``. ``must_haves`` has a key that GSD does not have,
``serves``: for each of its truths, the requirements and success criteria that it serves (``CORE-01,
01:C2``, or ``-`` for none). The body consists of elements:
``<objective>``, ``<context>``, ``<tasks>``, ``<verification>``, ``<success_criteria>`` and ``<output>``.
A ``<task type="auto">`` contains ``<name>``, ``<files>``, ``<action>``, ``<verify>`` and ``<done>``; the
other types are checkpoints, with additional elements. One with ``tdd="true"`` has a ``<behavior>`` as well.
A plan of ``type: tdd`` has a ``<feature>`` in their place, with ``<name>``, ``<files>``, ``<behavior>`` and
``<implementation>``. :mod:`.plan_tasks` reads them, and the tasks of plans that have no such elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import attrs

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
from .markdown import clean, escape, inline, named, without
from .model import Artifact, KeyLink, MustHaves, Plan, Task, Truth
from .numbers import TOKEN
from .plan_tasks import HUMAN_CHECK, MAX_TASKS, TASK_PARTS, feature_of, parts_of, read_tasks, render_command

_NO_DEPENDENCY = ("none", "nothing", "n/a", "null", "-", "—", "[]")


def parse_plan(text: str, *, path: str, phase: str) -> Plan:
    """Read the PLAN.md at *path*, a plan of *phase*; raise :class:`PlanningError` if it is invalid."""
    head = read_frontmatter(text, path=path)
    identity = plan_id(path, phase, head.text("plan"))
    must_haves = _read_must_haves(as_map(head.get("must_haves", "must-haves")), identity)
    files = head.texts("files_modified", "files-modified")
    name = head.text("name", "title")
    promises = [truth.text for truth in must_haves.truths]
    needed = [plan for plan in head.texts("depends_on", "depends-on") if plan.lower() not in _NO_DEPENDENCY]
    tasks = read_tasks(head.body, name=name or f"Plan {identity}", files=files, promises=promises)
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
        depends_on=tuple(full_plan_id(plan, phase) for plan in needed),
        files_modified=files,
        autonomous=head.text("autonomous").lower() not in ("false", "no"),
        requirements=head.texts("requirements"),
        lists_requirements="requirements" in head.values,
        must_haves=must_haves,
        tasks=tasks,
        gap_closure=head.text("gap_closure", "gap-closure").lower() == "true",
        path=path,
        text=text,
        flaws=head.flaws,
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

_SEPARATOR = re.compile(r"[\s,]+")


def _read_must_haves(values: dict[str, Value], plan: str) -> MustHaves:
    listed = as_list(values.get("truths", ""))
    stated = as_list(values.get("serves", ""))
    serves: list[list[str]] = [_SEPARATOR.split(as_text(value)) for value in stated]
    # After an edit by hand, the two lists may no longer match, and a wrong link is worse than none.
    aligned = serves if len(serves) == len(listed) else [[""]] * len(listed)
    truths = [(text, ids) for value, ids in zip(listed, aligned, strict=True) if (text := _truth(value))]
    return MustHaves(
        truths=tuple(
            Truth(id=f"{plan}:T{i}", text=text, serves=tuple(name for name in ids if name not in ("", "-")))
            for i, (text, ids) in enumerate(truths, start=1)
        ),
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
        _tasks(plan),
        *([_list("verification", checks)] if checks else []),
        _list("success_criteria", [truth.text for truth in plan.must_haves.truths]),
        _block("output", f"The plan's summary: `{inline(str(summary))}`"),
    ]
    return render_frontmatter(head) + "\n" + "\n\n".join(parts) + "\n"


def plan_body(plan: Plan) -> str:
    """Return the text of the plan's file without its frontmatter."""
    return read_frontmatter(plan.text, path=plan.path).body


def with_checks(plan: Plan, checks: Mapping[int, str]) -> str:
    """Return the text of *plan* with the checks of some tasks, by their numbers, replaced.

    Everything else stays as it is, byte for byte. A task without an ``<automated>`` element has no check
    that could be replaced, and keeps none.
    """
    # What is read has no carriage returns, so they are put back at the end.
    text = plan.text.removeprefix("\ufeff").replace("\r\n", "\n")
    at = len(text) - len(plan_body(plan))
    groups = [element.inside for element in named(text[at:], "tasks")] or [text[at:]]
    found = [task.inside for group in groups for task in named(group, "task")]
    if not found and plan.tasks and plan.tasks[0].cycle:
        found = [feature.inside for feature in named(text[at:], "feature")]
    for part, inside in zip(parts_of(plan.tasks), found, strict=False):
        # The tasks of a cycle are one element, with one check.
        check = next((checks[task.number] for task in part if task.number in checks), None)
        start = text.index(inside, at)
        new = inside if check is None else _with_check(inside, check)
        text, at = text[:start] + new + text[start + len(inside) :], start + len(new)
        if new != inside:
            # The list that render_plan writes repeats the checks.
            listed, now = f"\n- [ ] `{part[0].check}`\n", f"\n- [ ] `{check}`\n"
            text = text[:at] + text[at:].replace(listed, now)
    mark = "\ufeff" if plan.text.startswith("\ufeff") else ""
    return mark + (text.replace("\n", "\r\n") if "\r\n" in plan.text else text)


def _with_check(task: str, check: str) -> str:
    """Return the inside of a task with *check* in place of its commands."""
    verify = next(named(task, "verify"), None)
    commands = list(named(verify.inside, "automated")) if verify else []
    if verify is None or not commands:
        return task
    # Several elements are one check, joined by `&&`: the first one becomes the whole.
    one = verify.inside.replace(commands[0].inside, render_command(check), 1)
    first, close, rest = one.partition("</automated>")
    return task.replace(verify.inside, first + close + without(rest, "automated"), 1)


def _must_haves_node(must_haves: MustHaves) -> Node:
    artifacts = [attrs.asdict(artifact, recurse=False) for artifact in must_haves.artifacts]
    links = [
        {"from": link.source, "to": link.target, "via": link.via, "pattern": link.pattern}
        for link in must_haves.key_links
    ]
    # An empty item would be lost, and with it which truth an item belongs to.
    serves = [", ".join(truth.serves) or "-" for truth in must_haves.truths if truth.text.strip()]
    return {
        "truths": [truth.text for truth in must_haves.truths],
        "artifacts": [{key: value for key, value in node.items() if value} for node in artifacts],
        "key_links": [
            {key: value for key, value in node.items() if value or key in ("from", "to")} for node in links
        ],
        # Last, and only text: the readers of GSD look for the other keys with patterns.
        **({"serves": serves} if any(truth.serves for truth in must_haves.truths) else {}),
    }


def _tasks(plan: Plan) -> str:
    """Return the plan's tasks as elements; those of a test-driven cycle as the one that they come from."""
    parts = list(parts_of(plan.tasks))
    if plan.type == "tdd" and parts and all(len(part) == 3 for part in parts):
        # GSD has no check here, only in <verification>; this one can be read and replaced without doubt.
        return "\n\n".join(_render_task("feature", feature_of(part[0], part[1]), 0) for part in parts)
    found = [_render_part(part, number) for number, part in enumerate(parts, start=1)]
    return "\n\n".join(["<tasks>", *found, "</tasks>"])


def _render_part(part: tuple[Task, ...], number: int) -> str:
    if len(part) == 1:
        gate = ' gate="blocking"' if part[0].type.startswith("checkpoint") else ""
        return _render_task("task", part[0], number, f' type="{part[0].type}"{gate}')
    feature, green = feature_of(part[0], part[1]), part[1]
    details = {name: text for name, text in feature.details.items() if name != "implementation"}
    # A task may say what it does in its behavior only.
    action = green.action if "implementation" in green.details else ""
    task = attrs.evolve(feature, action=action, details=details)
    return _render_task("task", task, number, ' type="auto" tdd="true"')


def _render_task(name: str, task: Task, number: int, attributes: str = "") -> str:
    lines = (f"  {line}" for line in _task_parts(task, number))
    return "\n".join([f"<{name}{attributes}>", *lines, f"</{name}>"])


def _task_parts(task: Task, number: int) -> Iterator[str]:
    label = f"Task {number}: " if number else ""
    yield _element("name", f"{label}{' '.join(clean(task.name).split())}")
    if task.files:
        # Readers split the list at its commas, so that a comma in a path has to be escaped.
        paths = (" ".join(path.split()).replace(",", "&#44;") for path in task.files)
        yield _element("files", ", ".join(paths))
    if task.action:
        yield _element("action", task.action)
    human = task.details.get(HUMAN_CHECK, "")
    if task.verify or task.check or human:
        command = render_command(clean(task.check))
        check = f"\n    <automated>{command}</automated>\n  " if task.check else ""
        yield f"<verify>{_escaped('verify', task.verify)}{human}{check}</verify>"
    if task.done:
        yield _element("done", task.done)
    for name, text in task.details.items():
        # The names come from a model: only those that open no other part may become an element.
        if _ELEMENT_NAME.fullmatch(name) and name not in (*TASK_PARTS, HUMAN_CHECK, "task", "tasks"):
            yield _element(name, text)


def _element(name: str, text: str) -> str:
    return f"<{name}>{_escaped(name, text)}</{name}>"


def _block(name: str, text: str) -> str:
    return f"<{name}>\n{_escaped(name, text)}\n</{name}>"


def _list(name: str, items: Iterable[str]) -> str:
    return _block(name, "\n".join(f"- {' '.join(item.split())}" for item in items))


def _escaped(name: str, text: str) -> str:
    return escape(clean(text), name)
