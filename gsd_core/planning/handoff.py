"""Handoffs: where work was paused, for whoever continues it. And the signal that another tool waits.

``.planning/HANDOFF.json`` and ``.continue-here.md`` (in the phase's folder, else in ``.planning``) are what
``pause-work`` of gsd-core 1.14 writes; v1.20.5 has only the second. Both are used once: GSD deletes them when
the work has been resumed. ``WAITING.json`` (in ``.planning`` or ``.gsd``) says that GSD waits for an answer.
Any tool may have written them, so nothing in them is trusted: they are shown, and given to agents as data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import FileRefused, kind_below, list_below, read_below
from gsd_core.model.ids import normal_phase
from gsd_core.sanitize import first_line, safe_file

from .edits import COPIES, Edit, Operation, removing, writing
from .frontmatter import read_frontmatter, scalar
from .markdown import document, inline, paragraphs, prose, read_text
from .phases import PHASES

HANDOFF = ".planning/HANDOFF.json"
CONTINUE = ".continue-here.md"
WAITING = (".gsd/WAITING.json", ".planning/WAITING.json")
MAX_BYTES = 200_000
MAX_QUESTION = 200
_PARTS = ("current_state", "completed_work", "remaining_work", "decisions_made", "blockers", "context")
_NUMBER = re.compile(r"\d+[A-Za-z]?(?:\.\d+)*")


@attrs.frozen(kw_only=True)
class Handoff:
    """Where the work was paused: *paths* are its files, *text* all that they say.

    *phase* is empty if they name none. *blockers* include what a human has to do first, and jobs that
    were running. *flaws* are files
    that cannot be read as what they should be. The texts are as they are in the files, with all their lines.
    """

    paths: tuple[str, ...]
    text: str
    phase: str = ""
    task: str = ""
    next_action: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class TaskState:
    """A task of the plan that was paused; *commit* is empty if it is not done."""

    number: int
    name: str
    commit: str = ""


@attrs.frozen(kw_only=True)
class Pause:
    """What a new handoff says; *plan* and the tasks are empty if no plan was being executed."""

    phase: str
    name: str
    directory: str
    plan: str
    tasks: tuple[TaskState, ...]
    next_action: str
    notes: str
    questions: tuple[str, ...]
    uncommitted: tuple[str, ...]
    at: str


def read_handoff(root: Path) -> Handoff | None:
    """Return the project's handoff; ``None`` if there is none."""
    entries = list_below(root, PHASES) if kind_below(root, PHASES) == "folder" else ()
    folders = [".planning", *(f"{PHASES}/{one.name}" for one in entries if one.kind == "folder")]
    possible = [HANDOFF, *(f"{folder}/{CONTINUE}" for folder in folders)]
    paths = [path for path in possible if kind_below(root, path) == "file"]
    if not paths:
        return None
    texts: list[str] = []
    flaws: list[str] = []
    data: dict[str, Any] = {}
    phase = next_action = ""
    for path in paths:
        try:
            text = read_text(root, path)
            if path == HANDOFF:
                loaded = json.loads(text)
                if not isinstance(loaded, dict):
                    raise ValueError("not an object")
                data = cast("dict[str, Any]", loaded)
            else:
                fields = read_frontmatter(text, path=path)
                phase = phase or fields.text("phase")
                element = re.search(r"<next_action>(.*?)</next_action>", text, re.DOTALL)
                next_action = next_action or (element[1] if element else "")
        except (OSError, ValueError, RecursionError, PlanningError) as error:
            flaws.append(f"{path} cannot be read: {error}")
            continue
        texts.append(f"{path}:\n{text[:MAX_BYTES].strip()}")
    number = _NUMBER.search(str(data.get("phase") or phase or ""))
    task, total = data.get("task"), data.get("total_tasks")
    return Handoff(
        paths=tuple(paths),
        text="\n\n".join(texts),
        phase=normal_phase(number[0]) if number else "",
        task=f"task {task} of {total}" if isinstance(task, int) and isinstance(total, int) and total else "",
        next_action=_text(data.get("next_action")) or _text(next_action),
        notes=_text(data.get("context_notes")),
        blockers=tuple(_blockers(data)),
        flaws=tuple(flaws),
    )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _blockers(data: dict[str, Any]) -> Iterator[str]:
    for key, field in (("blockers", "description"), ("human_actions_pending", "action")):
        items: object = data.get(key)
        for item in cast("list[object]", items)[:50] if isinstance(items, list) else ():
            said = cast("dict[str, object]", item).get(field) if isinstance(item, dict) else item
            if text := _text(said):
                yield text
    jobs: object = data.get("async_jobs")
    for job in cast("list[object]", jobs)[:50] if isinstance(jobs, list) else ():
        # GSD says to look at them first: what they make may be taken for missing work.
        about = cast("dict[str, object]", job) if isinstance(job, dict) else {}
        if name := _text(about.get("job_id")) or _text(about.get("manifest")):
            yield f"the job {name} was {_text(about.get('status')) or 'started'}: look at its result"


def waiting_for(root: Path, folder: str = ".planning") -> str:
    """Return the question that another tool waits for an answer to; empty if none does.

    *folder* is ``.planning``, or that of a workstream.
    """
    for path in dict.fromkeys([f"{folder}/WAITING.json", *WAITING]):
        try:
            data: Any = json.loads(read_below(root, path, limit=MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            found = cast("dict[str, object]", data)
            if found.get("status") == "waiting":
                return _text(found.get("question")) or "a decision"
    return ""


def render_handoff(pause: Pause) -> dict[str, str]:
    """Return the files of a handoff, by path."""
    done = [task for task in pause.tasks if task.commit]
    left = [task for task in pause.tasks if not task.commit]
    data = {
        "version": "1.0",
        "timestamp": pause.at,
        "phase": pause.phase,
        "phase_name": pause.name,
        "phase_dir": pause.directory,
        "plan": pause.plan or None,
        "task": left[0].number if left else len(pause.tasks),
        "total_tasks": len(pause.tasks),
        "status": "paused",
        "completed_tasks": [
            {"id": one.number, "name": one.name, "status": "done", "commit": one.commit[:9]} for one in done
        ],
        "remaining_tasks": [{"id": one.number, "name": one.name, "status": "not_started"} for one in left],
        "blockers": [],
        "async_jobs": [],
        "human_actions_pending": [
            {"action": question, "context": "the run asked", "blocking": True} for question in pause.questions
        ],
        "decisions": [],
        "uncommitted_files": list(pause.uncommitted[:50]),
        "next_action": pause.next_action,
        "context_notes": pause.notes,
    }
    return {
        HANDOFF: json.dumps(data, indent=2, ensure_ascii=False) + "\n",
        f"{pause.directory or '.planning'}/{CONTINUE}": _continue_here(pause, done, left),
    }


def plan_handoff(root: Path, pause: Pause) -> Edit:
    """Plan to write a handoff; nothing if the last one says the same."""
    done = sum(bool(task.commit) for task in pause.tasks)
    where = pause.directory.rpartition("/")[2] or "project"
    subject = f"wip: {where} paused" + (f" at {done}/{len(pause.tasks)}" if pause.tasks else "")
    files = render_handoff(pause)
    with suppress(OSError, ValueError, LookupError, TypeError):
        at = str(json.loads(read_below(root, HANDOFF))["timestamp"])
        earlier = render_handoff(attrs.evolve(pause, at=at))
        if all(read_below(root, path) == safe_file(text).encode() for path, text in earlier.items()):
            files = earlier
    operations = [one for path, text in files.items() for one in writing(root, path, safe_file(text))]
    about = {
        "phase": pause.phase or None,
        "plan": pause.plan or None,
        "next_action": pause.next_action,
        "files": list(files),
    }
    return Edit(subject=subject, operations=tuple(operations), about=about)


def plan_consumption(root: Path, handoff: Handoff, run: str) -> Edit:
    """Plan to remove a handoff that *run* has used; a copy is kept.

    What cannot be read was not used, and stays.
    """
    operations: list[Operation] = []
    for path in handoff.paths:
        with suppress(FileRefused):
            read_below(root, path)
            operations.append(removing(root, path, f"{COPIES}/{run}/{path.removeprefix('.planning/')}"))
    return Edit(subject="docs: resume from handoff", operations=tuple(operations))


def _asked(question: str) -> str:
    """Return a question as an item of a list: its first line, and where the rest is."""
    line = first_line(question, MAX_QUESTION)
    return f"- {inline(line)}{' (read all of it with: gsd questions)' if line.endswith('…') else ''}"


def _continue_here(pause: Pause, done: Sequence[TaskState], left: Sequence[TaskState]) -> str:
    about = f"plan {pause.plan} of phase {pause.phase}" if pause.plan else f"phase {pause.phase}"
    name = pause.directory.rpartition("/")[2] or pause.phase
    state = f"Paused in {about}." if pause.phase else "Paused."
    if pause.uncommitted:
        state += f" Uncommitted: {', '.join(map(inline, pause.uncommitted[:50]))}."
    texts = {
        "current_state": state,
        "completed_work": "\n".join(f"- Task {one.number}: {inline(one.name)} - Done" for one in done),
        "remaining_work": "\n".join(f"- Task {one.number}: {inline(one.name)}" for one in left),
        "blockers": "\n".join(map(_asked, pause.questions)),
        "context": paragraphs(pause.notes),
    }
    front = [
        f"context: {'phase' if pause.phase else 'default'}",
        f"phase: {scalar(name)}",
        f"task: {left[0].number if left else len(pause.tasks)}",
        f"total_tasks: {len(pause.tasks)}",
        f"status: {'blocked' if pause.questions else 'in_progress'}",
        f"last_updated: {pause.at}",
    ]
    parts = [f"<{part}>\n{texts.get(part) or 'None.'}\n</{part}>" for part in _PARTS]
    action = f"<next_action>\nStart with: {prose(inline(pause.next_action))}\n</next_action>"
    return document(["\n".join(["---", *front, "---"]), *parts, action])
