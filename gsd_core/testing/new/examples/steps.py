"""A step before a phase is completed: it records how long the phase's files are, and finds those too long.

Such a step is due until the file that it writes exists for the current verification.
What it finds is planned, executed and verified like any other gap, and then the step is due again.

Settings in `gsd.toml`:

    [my_plugin]
    max_lines = 400
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import attrs
from gsd_core import (
    FileWrite,
    Found,
    Gap,
    PhaseView,
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
    implements,
    padded,
    read_below,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_execute_step, gsd_settings, gsd_steps

KIND = "my-plugin"


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*max_lines*: how many lines a file may have."""

    max_lines: int = setting(400)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_steps)
def steps() -> Iterable[StepType]:
    """Add the step between verify and complete."""
    yield StepType(
        kind=KIND,
        before="complete",
        due=is_due,
        writes=("{phase}/{number}-LENGTHS.md",),
        title="Look for files that are too long",
    )


def is_due(now: StepSituation) -> bool:
    """Whether nothing was recorded for the phase's current verification."""
    if now.phase is None or now.phase.verdict is None:
        return False
    recorded = _read(now.phase, _path(now.phase)).splitlines()
    return not recorded or recorded[-1] != f"Verification: {now.phase.verdict.verified}"


@implements(gsd_execute_step)
async def look_at_lengths(step: StepRequest, host: StepHost) -> StepResult | None:
    """Handle this plugin's own steps; leave every other kind to the next executor."""
    if step.kind != KIND or step.phase is None:
        return None
    phase, limit = step.phase, settings_of(MyPluginSettings).max_lines
    paths = sorted({*phase.changed, *(path for plan in phase.plans for path in plan.files_modified)})
    # In a thread, because reading many files would block the run.
    texts = await asyncio.to_thread(lambda: {path: _read(phase, path) for path in paths})
    lengths = {path: text.count("\n") for path, text in texts.items()}
    lines = [f"- {path}: {count} lines" for path, count in lengths.items()]
    verified = phase.verdict.verified if phase.verdict else ""
    text = "\n".join(["# Lengths", "", *lines, "", f"Verification: {verified}", ""])
    return StepResult(
        subject=f"docs({padded(phase.number)}): record the lengths of files",
        files=(FileWrite(path=_path(phase), text=text),),
        outcome=Found(
            gaps=tuple(
                # Identified by the path, so that it is the same gap while the file changes.
                Gap(truth=f"{path} has at most {limit} lines", reason=f"it has {count}", about=path)
                for path, count in lengths.items()
                if count > limit
            )
        ),
    )


def _path(phase: PhaseView) -> str:
    return f"{phase.directory}/{padded(phase.number)}-LENGTHS.md"


def _read(phase: PhaseView, path: str) -> str:
    try:
        return read_below(phase.project, path).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
