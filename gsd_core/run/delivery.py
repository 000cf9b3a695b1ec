"""Delivered means committed: compares the promised files with the last commit, for gaps and detectors.

The core does this itself and not a detector: it needs git, and no plugin may be able to leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path, PurePath, PurePosixPath

from attrs import evolve

from gsd_core.git import Git, git_common_dir
from gsd_core.model.gap import BadArtifact, Gap
from gsd_core.model.ids import normal_phase
from gsd_core.planning.changed_files import listed_in
from gsd_core.planning.model import PhaseView, Plan
from gsd_core.planning.numbers import NUMBER
from gsd_core.protected_paths import is_secret_name, protected_part

FOUND_BY = "gsd"
"""The finder of the gaps that the core itself finds."""
MAX_COMPARED = 300
"""How many files are compared with those before the phase."""
LEFT_OUT = ("__pycache__", "node_modules", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache")
"""Folders of generated files, which no commit of a run takes."""


def promised(plan: Plan) -> tuple[str, ...]:
    """Return the paths that *plan* lists: its files, its artifacts, and the files of its tasks.

    Protected paths and files with secrets are left out, because a task never commits them.
    """
    return tuple(dict.fromkeys(path for path in listed_in(plan) if is_committable(path)))


def is_committable(path: str) -> bool:
    """Whether a commit of a run may contain *path*: not if it is protected or usually contains secrets."""
    name = PurePosixPath(path).name
    return bool(name) and not protected_part(path) and not is_secret_name(name)


def may_commit(path: str) -> bool:
    """Whether a task may commit a file that has changed: not if it is protected, generated or a secret."""
    return is_committable(path) and not _is_generated(path)


def needs_consent(path: str) -> bool:
    """Whether a task may commit *path* only if a person agrees, because of its name."""
    return is_secret_name(PurePosixPath(path).name) and not protected_part(path) and not _is_generated(path)


def _is_generated(path: str) -> bool:
    # In lower case, because the file systems of macOS ignore case.
    return any(part.lower() in LEFT_OUT for part in PurePosixPath(path).parts)


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Whether *path* is one of *folders* or below one of them; all are relative to the project."""
    pure = PurePosixPath(path)
    return any(pure.is_relative_to(PurePosixPath(folder)) for folder in folders)


def relative_to(root: Path, path: str | PurePath) -> str:
    """Return *path* relative to *root* as POSIX text, or unchanged if it is not below it.

    Agents name files in both ways.
    """
    pure = PurePath(path)
    if pure.is_absolute():
        for base in (root, root.resolve()):
            if pure.is_relative_to(base):
                pure = pure.relative_to(base)
                break
    return PurePosixPath(pure.as_posix()).as_posix()


def nested_projects(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders below *root* above *paths* that are other projects, with a ``.planning/``."""
    folders = {parent for path in paths for parent in PurePosixPath(path).parents if parent.name}
    return tuple(sorted(str(folder) for folder in folders if (root / folder / ".planning").is_dir()))


async def find_undelivered(git: Git, phase: PhaseView, elsewhere: Collection[str] = ()) -> tuple[Gap, ...]:
    """Return a gap for each file that an executed plan lists and that is not in the last commit as it is.

    A listed file that does not exist, on disk or in the commit, is not a gap here: a plan may name a file
    that turned out not to be needed. If it must exist, an artifact says so, and a detector checks that.
    The plans *elsewhere* were executed in other work trees: what differs here from their commits is a
    person's, and no agent could commit it from there.
    """
    done = [plan for plan in phase.plans if plan.summary and plan.id not in elsewhere]
    plans = {path: plan.id for plan in done for path in promised(plan)}
    if not plans:
        return ()
    return tuple(
        Gap(
            truth=f"{found.path} is in the last commit as it is on disk",
            reason=f"{found.path}: {found.reason}",
            about=found.path,
            artifacts=(BadArtifact(path=found.path, issue=found.reason),),
            missing=(f"a commit that contains {found.path}",),
            found_by=FOUND_BY,
        )
        for found in await git.uncommitted(plans)
    )


async def with_history(git: Git, phase: PhaseView) -> PhaseView:
    """Return the phase with what git says about its tree; unchanged if that is in no repository."""
    if git_common_dir(phase.project) is None:
        return phase
    paths = list(dict.fromkeys(path for plan in phase.plans for path in promised(plan)))
    facts = await git.tree_facts(paths)
    own = [sha for commits in phase.commits.values() for sha in commits if sha in facts.commits]
    start = await git.before(own) if own else ""
    missing = [path for path in paths if path not in facts.files]
    removed = await git.removed_since(start, missing) if start else {}
    known = dict.fromkeys([*paths, *phase.changed])
    kept = [path for path in known if path in facts.files and start][:MAX_COMPARED]
    history = evolve(
        facts,
        before={path: text for path in kept if (text := await git.text_at(path, start))},
        removed={
            path: f"{sha[:7]} {subject}"
            for path, (sha, step, subject) in removed.items()
            if sha not in own and _phase_of(step, subject) not in ("", phase.number)
        },
    )
    return evolve(phase, history=history)


def _phase_of(step: str, subject: str) -> str:
    """Return the phase of a commit, by our trailer or by GSD's subjects (``feat(09-01): …``), if any."""
    match = re.match(rf"(?:phase[- ]?)?({NUMBER})(?:-\d+\w?)?\)", subject.partition("(")[2], re.IGNORECASE)
    return step.partition("/")[0] if "/" in step else normal_phase(match[1]) if match else ""
