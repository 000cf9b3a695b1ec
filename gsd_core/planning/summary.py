"""SUMMARY.md: writes the results of a plan.

Source: the summaries of GSD v1.20.5, whose validator requires the keys ``phase``, ``plan``,
``subsystem``, ``tags``, ``duration`` and ``completed``. Nothing here reads a summary's content; that the
file exists means that its plan was executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import PurePosixPath

from gsd_core.model.ids import padded

from .frontmatter import render_frontmatter
from .markdown import bullets, document, inline, title
from .model import Plan


def render_summary(
    plan: Plan,
    *,
    date: str,
    duration: timedelta | None,
    commits: Sequence[tuple[str, str]],
    created: Sequence[str],
    modified: Sequence[str],
    accomplishments: Sequence[str],
    decisions: Sequence[str],
    deviations: Sequence[str],
    issues: Sequence[str],
) -> str:
    """Return the text of a plan's SUMMARY.md.

    *commits* are pairs of a task's name and its commit's hash; *duration* is ``None`` if it is unknown;
    *created* and *modified* are paths.
    """
    number = plan.id.rpartition("-")[2]
    folder = PurePosixPath(plan.path).parent.name or padded(plan.phase)
    head = render_frontmatter(
        {
            "phase": folder,
            "plan": number,
            "subsystem": inline(plan.name) or "implementation",
            "tags": [],
            "provides": accomplishments,
            "key-files": {"created": created, "modified": modified},
            "key-decisions": decisions,
            "requirements-completed": plan.requirements,
            "duration": _short_duration(duration),
            "completed": date,
        }
    )
    task_commits = [
        f"{number}. **Task {number}: {title(name)}** - `{inline(sha)[:7]}`"
        for number, (name, sha) in enumerate(commits, start=1)
    ]
    files = [
        *(f"- `{inline(path)}` - created" for path in created),
        *(f"- `{inline(path)}` - modified" for path in modified),
    ]
    setup = [task.name for task in plan.tasks if task.type == "checkpoint:human-action"]
    unresolved = "; see the issues above" if any(issue.strip() for issue in issues) else ""
    parts = [
        f"# Phase {plan.phase} Plan {number}: {title(plan.name)} Summary",
        f"**{title(accomplishments[0] if accomplishments else plan.name)}**",
        f"## Performance\n\n- **Duration:** {_long_duration(duration)}\n- **Completed:** {inline(date)}\n"
        f"- **Tasks:** {len(commits)}\n- **Files modified:** {len({*created, *modified})}",
        f"## Accomplishments\n{bullets(accomplishments) or '- None'}",
        "\n".join(["## Task Commits\n\nEach task was committed atomically:\n", *task_commits]),
        "\n".join(["## Files Created/Modified", *files]),
        f"## Decisions Made\n{bullets(decisions) or 'None - followed plan as specified'}",
        f"## Deviations from Plan\n\n{bullets(deviations) or 'None - plan executed exactly as written'}",
        f"## Issues Encountered\n{bullets(issues) or 'None'}",
        f"## User Setup Required\n\n{bullets(setup) or 'None - the plan has no manual steps'}",
        f"## Next Phase Readiness\nAll tasks are done{unresolved}.",
        f"---\n*Phase: {inline(folder)}*\n*Completed: {inline(date)}*",
    ]
    return f"{head}\n{document(parts)}"


def _short_duration(duration: timedelta | None) -> str:
    if duration is None:
        return "unknown"
    minutes = round(duration / timedelta(minutes=1))
    return f"{minutes}min" if minutes else "<1min"


def _long_duration(duration: timedelta | None) -> str:
    if duration is None:
        return "unknown"
    hours, minutes = divmod(round(duration / timedelta(minutes=1)), 60)
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes} min" if minutes else "less than a minute"
