"""A handoff is context for the next plan or execution, and is removed when that is done, as GSD does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gsd_core.files import FileRefused, read_below, remove_below, write_below
from gsd_core.git import Git
from gsd_core.model.ids import EXECUTE, PLAN, StepId
from gsd_core.planning.handoff import read_handoff
from gsd_core.sanitize import safe_file, safe_text

from .phase_edits import REMOVED
from .runtime import Run

DOCUMENT = "HANDOFF"
"""The name of a handoff among the documents that steps are given."""


async def consume_handoff(run: Run, step: str) -> None:
    """Remove the handoff if *step*, which is complete, has used it; a copy is kept beside the journal."""
    if StepId.parse(step).kind not in (PLAN, EXECUTE) or DOCUMENT not in run.planning.documents:
        return
    handoff = read_handoff(run.root)
    if handoff is None:
        return
    directory = run.journal.path.parent
    for path in handoff.paths:
        kept = f"{REMOVED}/{run.id}/{path.removeprefix('.planning/')}"
        try:
            data = read_below(run.root, path)
        except FileRefused:
            continue  # it could not be read, so it was not used either
        write_below(directory, kept, data, mode=0o600)
        remove_below(run.root, path)
    if run.settings.commit_docs:
        await run.effects.commit(handoff.paths, "docs: resume from handoff", {}, verify=False)


async def write_handoff(root: Path, files: Mapping[str, str], subject: str, *, git: Git, docs: bool) -> str:
    """Write a handoff and commit it if *docs*; return the commit, empty if there is none."""
    for path, text in files.items():
        write_below(root, path, safe_file(text).encode())
    if not docs:
        return ""
    return await git.commit(list(files), safe_text(subject, multiline=False), trailers={}, verify=False)
