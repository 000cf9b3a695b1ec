"""A handoff is context for the next plan or execution, and is removed when that is done, as GSD does it."""

from __future__ import annotations

from gsd_core.model.ids import EXECUTE, PLAN, StepId
from gsd_core.planning.handoff import plan_consumption, read_handoff

from .edits import edit_in_run
from .runtime import Run

DOCUMENT = "HANDOFF"
"""The name of a handoff among the documents that steps are given."""


async def consume_handoff(run: Run, step: str) -> None:
    """Remove the handoff if *step*, which is complete, has used it; a copy is kept beside the journal."""
    if StepId.parse(step).kind not in (PLAN, EXECUTE) or DOCUMENT not in run.planning.documents:
        return
    if handoff := read_handoff(run.root):
        await edit_in_run(run, plan_consumption(run.root, handoff, run.id))
