"""Writes a phase's CONTEXT.md and a plan's SUMMARY.md in the shapes of v1.20.5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import PurePosixPath

from gsd_core.model.ids import padded

from .frontmatter import frontmatter
from .markdown import inline, title
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
    """Return the SUMMARY of a plan; *commits* are (name of the task, hash), *duration* if it is known."""
    number = plan.id.rpartition("-")[2]
    folder = PurePosixPath(plan.path).parent.name or padded(plan.phase)
    head = frontmatter(
        {
            "phase": folder,
            "plan": number,
            "subsystem": inline(plan.name) or "implementation",
            "tags": [],
            "provides": accomplishments,
            "key-files": {"created": created, "modified": modified},
            "key-decisions": decisions,
            "requirements-completed": plan.requirements,
            "duration": _minutes(duration),
            "completed": date,
        }
    )
    parts = [
        f"# Phase {plan.phase} Plan {number}: {title(plan.name)} Summary",
        f"**{title(accomplishments[0] if accomplishments else plan.name)}**",
        f"## Performance\n\n- **Duration:** {_spoken(duration)}\n- **Completed:** {inline(date)}\n"
        f"- **Tasks:** {len(commits)}\n- **Files modified:** {len({*created, *modified})}",
        f"## Accomplishments\n{_bullets(accomplishments) or '- None'}",
        "## Task Commits\n\nEach task was committed atomically:\n\n" + "\n".join(_commits(commits)),
        f"## Files Created/Modified\n{_files(created, 'created')}{_files(modified, 'modified')}".rstrip(),
        f"## Decisions Made\n{_bullets(decisions) or 'None - followed plan as specified'}",
        f"## Deviations from Plan\n\n{_bullets(deviations) or 'None - plan executed exactly as written'}",
        f"## Issues Encountered\n{_bullets(issues) or 'None'}",
        f"## User Setup Required\n\n{_bullets(_by_hand(plan)) or 'None - the plan asks for none.'}",
        f"## Next Phase Readiness\n{_readiness(issues)}",
        f"---\n*Phase: {inline(folder)}*\n*Completed: {inline(date)}*",
    ]
    return head + "\n" + "\n\n".join(parts) + "\n"


def _by_hand(plan: Plan) -> list[str]:
    return [task.name for task in plan.tasks if task.type == "checkpoint:human-action"]


def _readiness(issues: Sequence[str]) -> str:
    left = ", and the issues above are left" if any(issue.strip() for issue in issues) else ""
    return f"Every task is done{left}."


def _minutes(duration: timedelta | None) -> str:
    if duration is None:
        return "unknown"
    minutes = round(duration / timedelta(minutes=1))
    return f"{minutes}min" if minutes else "<1min"


def _spoken(duration: timedelta | None) -> str:
    if duration is None:
        return "unknown"
    hours, minutes = divmod(round(duration / timedelta(minutes=1)), 60)
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes} min" if minutes else "less than a minute"


def _commits(commits: Sequence[tuple[str, str]]) -> Iterator[str]:
    for number, (name, sha) in enumerate(commits, start=1):
        yield f"{number}. **Task {number}: {title(name)}** - `{inline(sha)[:7]}`"


def _files(paths: Sequence[str], what: str) -> str:
    return "".join(f"- `{inline(path)}` - {what}\n" for path in paths)


def _bullets(texts: Sequence[str]) -> str:
    return "\n".join(f"- {inline(text)}" for text in texts if text.strip())
