"""Apply a step's recorded result: write its files, change the shared ones, and commit once.

The order makes it repeatable. The list of plans comes first and a phase's tick last, so that a phase
never seems more complete than its files are. After a crash at any point, applying the same result
again ends in the same tree and the same commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from gsd_core.errors import GsdError, Permanent, PlanningError
from gsd_core.files import read_below
from gsd_core.git import GitError
from gsd_core.journal.codec import structure
from gsd_core.model.step import StepResult
from gsd_core.planning.changes import (
    AddDecisions,
    AddQuickTask,
    Change,
    ListPlans,
    MapRequirement,
    SetPosition,
    TickPhase,
    TickPlan,
)
from gsd_core.planning.edit import apply_changes
from gsd_core.protected_paths import protected_part
from gsd_core.sanitize import clip, safe_text

from .runtime import Run
from .snapshot import observe, plan_digests
from .step import failure, resumable
from .tasks import trailers
from .work import require_branch

SHARED = ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md")
"""The files that several steps change. They edit none themselves: parallel writers would lose changes."""
MAX_LANDINGS = 3
"""How often a result is tried that does not fit the planning files.

They may be corrected by hand before the next start. If they were changed on purpose, the result will never
fit, and the run asks the usual question about a failed step.
"""
_TARGETS: dict[type[Change], str] = {
    ListPlans: "ROADMAP.md",
    TickPlan: "ROADMAP.md",
    TickPhase: "ROADMAP.md",
    MapRequirement: "REQUIREMENTS.md",
    SetPosition: "STATE.md",
    AddDecisions: "STATE.md",
    AddQuickTask: "STATE.md",
}


async def apply_result(run: Run, step: str) -> None:
    """Write what *step* returned and record that it is complete.

    If it cannot be written now, the recorded result stays, and the next start applies it: it is paid for.
    Raises ``ProjectError`` or ``PlanningError`` then, which ends the run. A result that can never be
    written fails the step.
    """
    record = run.step(step)
    fact = next(run.journal.events(after=record.result - 1, run=run.id))
    result = structure(fact.data["result"], StepResult)
    try:
        written = _write(run, result)
        commit = await _commit(run, step, written, result.subject)
    except (GitError, OSError) as exc:
        error = resumable(run, exc)
        run.record("landing.failed", {"error": failure(error)}, step=step, attempt=record.attempt)
        raise error from exc
    except GsdError as exc:
        tries = list(run.journal.events(after=record.result, run=run.id, kinds=["landing.failed"]))
        if isinstance(exc, PlanningError) and len(tries) < MAX_LANDINGS - 1:
            run.record("landing.failed", {"error": failure(exc)}, step=step, attempt=record.attempt)
            raise
        run.record("step.failed", {"error": failure(exc)}, step=step, attempt=record.attempt)
        return
    # The snapshot first: folding a completed verification takes from it which plans were covered.
    await observe(run)
    data = {"commit": commit, "subject": result.subject, "gaps": fact.data.get("gaps"), "paths": written}
    data["plans"] = plan_digests(run.planning, written)
    run.record("step.completed", data, step=step, attempt=record.attempt)


def _write(run: Run, result: StepResult) -> list[str]:
    """Write the list of plans, the files, the other changes and a phase's tick, and return the paths."""
    for file in result.files:
        _refuse_outside(run.root, file.path)
    first = [change for change in result.changes if isinstance(change, ListPlans)]
    last = [change for change in result.changes if isinstance(change, TickPhase)]
    between = [change for change in result.changes if change not in first and change not in last]
    written = _change(run, first, {file.path for file in result.files})
    for file in result.files:
        run.effects.write(run.root / file.path, file.text)
        written.append(file.path)
    written += _change(run, between)
    written += _change(run, last)
    return list(dict.fromkeys(written))


def _change(run: Run, changes: Sequence[Change], whole: Collection[str] = ()) -> list[str]:
    """Apply *changes* to the shared files, except those that the step replaces (*whole*); return the paths.

    They include files that were already changed before a crash, because the commit needs them too.
    """
    texts = {
        name: _read(run.root, path)
        for name in SHARED
        if (path := f".planning/{name}") not in whole and (run.root / path).exists()
    }
    changed = apply_changes(texts, changes) if changes else {}
    for name, text in changed.items():
        run.effects.write(run.root / ".planning" / name, text)
    return [f".planning/{_TARGETS[type(change)]}" for change in changes if _TARGETS[type(change)] in texts]


def _read(root: Path, path: str) -> str:
    data = read_below(root, path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        hint = "save it as UTF-8, then resume the run"
        raise PlanningError("not UTF-8", path=path, line=line, hint=hint) from exc


def _refuse_outside(root: Path, path: str) -> None:
    """Raise ``Permanent`` for a path that an executor must not write."""
    pure = PurePosixPath(path)
    denied = protected_part(path.removeprefix(".planning/"))
    # resolve() follows links: a link inside the project may point out of it.
    inside = (root / path).resolve().is_relative_to(root.resolve())
    if pure.is_absolute() or ".." in pure.parts or denied or not inside:
        raise Permanent(f"a step may not write {path!r}", hint="the executor returned a protected path")


async def _commit(run: Run, step: str, written: Sequence[str], subject: str) -> str:
    """Commit what was written, once: the trailers identify a commit made just before a crash."""
    keys = trailers(run, step)
    if found := await run.git.find(keys, since=run.step(step).base_commit):
        return found
    docs = run.settings.commit_docs
    paths = [path for path in written if docs or not path.startswith(".planning/")]
    ignored = await run.git.ignoring_rules(paths)
    paths = [path for path in paths if path not in ignored]
    text = clip(safe_text(subject, multiline=False), 120)
    await require_branch(run)
    return await run.effects.commit(paths, text, keys, verify=False) if paths else ""
