"""A step for GSD: an agent reviews the code of a phase for security defects before it is completed.

:mod:`.scope` decides which files are reviewed, :mod:`.review` asks the agent, :mod:`.findings` checks what it
cites, and :mod:`.report` writes and reads ``SECURITY.md``.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from gsd_core import (
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_execute_step, gsd_settings, gsd_steps

from .findings import Severity
from .report import reviewed_verification
from .review import review

KIND = "security-review"


@attrs.frozen(kw_only=True)
class SecurityReviewSettings:
    """What is reviewed, and which findings keep a phase from being completed.

    *blocking*: the severities that become gaps. *skip*: patterns of paths that are not reviewed, such as
    ``tests/*``; a ``*`` also matches ``/``. *model*: the reviewer's model, by default that of the run.
    *files_per_call*: how many files one agent call reviews at most.
    """

    blocking: tuple[Severity, ...] = setting(("critical", "high", "medium"))
    skip: tuple[str, ...] = setting(())
    model: str = setting("")
    files_per_call: int = setting(20)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings section ``security_review``."""
    yield SecurityReviewSettings


@implements(gsd_steps)
def steps() -> Iterable[StepType]:
    """Contribute the step between verify and complete."""
    yield StepType(
        kind=KIND,
        before="complete",
        due=is_due,
        writes=("{phase}/{number}-SECURITY.md",),
        title="Review the phase's code for security defects",
    )


def is_due(now: StepSituation) -> bool:
    """Whether the phase's current verification was not reviewed yet.

    SECURITY.md names the verification that it belongs to, so a run that has lost its journal knows it too.
    The steps of this run count as well: two verifications in the same second have the same timestamp.
    """
    if now.phase is None or now.phase.verdict is None:
        return False
    kinds = [step.kind for step in now.completed if step.kind in ("verify", KIND)]
    if KIND in kinds and kinds[-1] == "verify":
        return True
    return reviewed_verification(now.phase) != now.phase.verdict.verified


@implements(gsd_execute_step)
async def execute(step: StepRequest, host: StepHost) -> StepResult | None:
    """Do the plugin's own steps; leave all others to the next executor."""
    if step.kind != KIND or step.phase is None:
        return None
    configured = settings_of(SecurityReviewSettings)
    return await review(
        step,
        step.phase,
        host,
        blocking=configured.blocking,
        skip=configured.skip,
        model=configured.model,
        files_per_call=max(1, configured.files_per_call),
    )
