"""Land a recorded result: the manifest first, the files, the marker last; one commit with trailers.

Every part can be done again: after a crash at any point, landing once more ends in the same tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from gsd_core.errors import GsdError, Permanent, PlanningError
from gsd_core.journal.codec import structure
from gsd_core.model.step import FileWrite, StepResult
from gsd_core.planning.changes import (
    AddDecisions,
    Change,
    ListPlans,
    MapRequirement,
    SetPosition,
    TickPhase,
    TickPlan,
)
from gsd_core.planning.edit import apply_changes
from gsd_core.protected import protected_part
from gsd_core.sanitize import clip, sanitize

from .observe import observe
from .runtime import Run
from .step import failure
from .tasks import trailers

SHARED = ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md")
_TARGETS: dict[type[Change], str] = {
    ListPlans: "ROADMAP.md",
    TickPlan: "ROADMAP.md",
    TickPhase: "ROADMAP.md",
    MapRequirement: "REQUIREMENTS.md",
    SetPosition: "STATE.md",
    AddDecisions: "STATE.md",
}


async def apply_result(run: Run, step: str) -> None:
    """Write what *step* returned and record that it is complete; what cannot be written fails the step."""
    record = run.step(step)
    [fact] = (f for f in run.journal.events(after=record.result - 1, run=run.id) if f.seq == record.result)
    result = structure(fact.data["result"], StepResult)
    try:
        written = _write(run, result)
        commit = await _commit(run, step, written, result.subject)
    except (GsdError, OSError) as exc:
        error = exc if isinstance(exc, GsdError) else Permanent(f"cannot write: {exc}")
        run.record("step.failed", {"error": failure(error)}, step=step, attempt=record.attempt)
        return
    await observe(run)
    data = {"commit": commit, "subject": result.subject, "gaps": fact.data.get("gaps"), "paths": written}
    run.record("step.completed", data, step=step, attempt=record.attempt)


def _write(run: Run, result: StepResult) -> list[str]:
    """Write manifest, files and marker in this order; return the paths."""
    for file in result.files:
        _refuse_outside(run.root, file.path)
    first = [change for change in result.changes if isinstance(change, ListPlans)]
    last = [change for change in result.changes if isinstance(change, TickPhase)]
    between = [change for change in result.changes if change not in first and change not in last]
    written = [*_change(run, first, result.files)]
    for file in result.files:
        run.effects.write(run.root / file.path, file.text)
        written.append(file.path)
    written += _change(run, between, ())
    written += _change(run, last, ())
    return list(dict.fromkeys(written))


def _change(run: Run, changes: Sequence[Change], files: Iterable[FileWrite]) -> Iterable[str]:
    """Apply *changes* to the shared files and return these, changed now or by a landing before a crash.

    A file that the step writes whole is not changed as well.
    """
    whole = {file.path for file in files}
    texts = {name: text for name in SHARED if (text := _read(run.root, name, whole)) is not None}
    changed = apply_changes(texts, changes) if changes else {}
    for name, text in changed.items():
        run.effects.write(run.root / ".planning" / name, text)
    return [f".planning/{_TARGETS[type(change)]}" for change in changes if _TARGETS[type(change)] in texts]


def _read(root: Path, name: str, whole: set[str]) -> str | None:
    path = root / ".planning" / name
    if f".planning/{name}" in whole or not path.exists():
        return None
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        hint = "save it as UTF-8, then go on with gsd resume"
        raise PlanningError("not UTF-8", path=f".planning/{name}", line=line, hint=hint) from exc


def _refuse_outside(root: Path, path: str) -> None:
    """Raise ``Permanent`` for a path that an executor must not write."""
    pure = PurePosixPath(path)
    denied = protected_part(path.removeprefix(".planning/"))
    inside = (root / path).resolve().is_relative_to(root.resolve())
    if pure.is_absolute() or ".." in pure.parts or denied or not inside:
        raise Permanent(f"a step may not write {path!r}", hint="the executor returned a path it must not own")


async def _commit(run: Run, step: str, written: Sequence[str], subject: str) -> str:
    """Commit what was written, once: a commit made just before a crash is found by its trailers."""
    keys = trailers(run, step)
    base = run.step(step).base_commit
    if found := await run.git.find(keys, since=base):
        return found
    paths = [path for path in written if await _is_committed(run, path)]
    text = clip(sanitize(subject, multiline=False), 120)
    return await run.effects.commit(paths, text, keys, verify=False) if paths else ""


async def _is_committed(run: Run, path: str) -> bool:
    if path.startswith(".planning/") and not run.settings.commit_docs:
        return False
    return not await run.git.is_ignored(path)
