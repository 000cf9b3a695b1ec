"""SUMMARY.md: writes the results of a plan, and reads what later plans should know.

Source: the summaries of GSD v1.20.5, whose validator requires the keys ``phase``, ``plan``,
``subsystem``, ``tags``, ``duration`` and ``completed``. Only decisions and issues are read back, for the
prompts of later plans; that the file exists means that its plan was executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.counts import counted, some_of
from gsd_core.model.ids import padded
from gsd_core.model.step import TaskCommit

from .changed_files import MAX_NAMED, unlisted_files, untouched_files
from .frontmatter import read_frontmatter, render_frontmatter
from .markdown import bullets, document, inline, prose, read_text, title
from .model import PhaseView, Plan, Planning
from .plan_tasks import parts_of

MAX_FILES = 300
"""How many files of each kind the frontmatter lists; the body has all of them."""
UNDONE, POSTPONED = "Deferred Tasks", "Checks at the End of the Phase"
"""The headings of two sections that GSD's summaries do not have."""


@attrs.frozen(kw_only=True)
class FileChanges:
    """The paths that a plan's commits, taken together, created, modified and deleted; sorted."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


def changes_of(commits: Iterable[TaskCommit]) -> FileChanges:
    """Return what *commits*, in their order, changed: a file that was created and then changed is new.

    A file that one commit creates and a later one deletes is in none of the lists.
    """
    created, modified, deleted = set[str](), set[str](), set[str]()
    for commit in commits:
        for path in commit.created:
            (modified if path in deleted else created).add(path)
            deleted.discard(path)
        for path in commit.deleted:
            if path in created:
                created.discard(path)
            else:
                modified.discard(path)
                deleted.add(path)
        modified |= {*commit.paths} - {*commit.created, *commit.deleted} - created
    return FileChanges(
        created=tuple(sorted(created)), modified=tuple(sorted(modified)), deleted=tuple(sorted(deleted))
    )


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
    deleted: Sequence[str] = (),
    one_liner: str = "",
    checks: Sequence[str] = (),
    deferred: Sequence[str] = (),
    logins: Sequence[str] = (),
    undone: Sequence[str] = (),
    postponed: Sequence[str] = (),
) -> str:
    """Return the text of a plan's SUMMARY.md.

    *commits* are pairs of a task's name and its commit's hash; *duration* is ``None`` if it is unknown;
    *created*, *modified* and *deleted* are paths. *accomplishments* say for each task what was done,
    *one_liner* what there is now as a whole. *deviations* are what the agent reports; where the files and the
    tasks are not those of the plan, that is added. *checks* is a line for each check that was run. *deferred*
    is work that was left for later, *logins* are those that a person was asked for. *undone* are tasks that
    the plan went on without, *postponed* the checkpoints that a person sees at the end of the phase; both are
    read back for the verification (:func:`tasks_listed`), by the number that each line begins with.
    """
    number = plan.id.rpartition("-")[2]
    folder = PurePosixPath(plan.path).parent.name or padded(plan.phase)
    changed = (*created, *modified, *deleted)
    deviations = (*deviations, *_deviations(plan, changed, undone))
    name = inline(plan.name or plan.objective.strip().partition("\n")[0]) or folder
    made = (*created, *modified)
    artifacts = [a for a in plan.must_haves.artifacts if a.provides and a.path.removeprefix("./") in made]
    head = render_frontmatter(
        {
            "phase": folder,
            "plan": number,
            "subsystem": name,
            # The technology, as far as it is known here.
            "tags": sorted({PurePosixPath(path).suffix[1:].lower() for path in made} - {""}),
            "provides": [f"{one.path}: {one.provides}" for one in artifacts] or accomplishments,
            "key-files": {
                "created": created[:MAX_FILES],
                "modified": modified[:MAX_FILES],
                **({"deleted": deleted[:MAX_FILES]} if deleted else {}),
            },
            "key-decisions": decisions,
            # With a task left out, the verification decides whether they are met.
            "requirements-completed": () if undone else plan.requirements,
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
        *(f"- `{inline(path)}` - deleted" for path in deleted),
    ]
    setup = [*(task.name for task in plan.tasks if task.type == "checkpoint:human-action"), *logins]
    left = f"{counted(len(undone), 'task is', 'tasks are')} not done, see above" if undone else ""
    unresolved = "; see the issues above" if any(issue.strip() for issue in issues) else ""
    parts = [
        f"# Phase {plan.phase} Plan {number}: {title(name)} Summary",
        f"**{title(one_liner.strip() or (accomplishments[0] if accomplishments else name))}**",
        f"## Performance\n\n- **Duration:** {_long_duration(duration)}\n- **Completed:** {inline(date)}\n"
        f"- **Tasks:** {_number_of_tasks(plan, [name for name, _ in commits])}\n"
        f"- **Files modified:** {len({*changed})}",
        f"## Accomplishments\n{bullets(accomplishments) or '- None'}",
        "\n".join(["## Task Commits\n\nEach task was committed atomically:\n", *task_commits]),
        "\n".join(["## Files Created/Modified", *(files or ["None"])]),
        f"## Checks\n\n{bullets(checks)}" if checks else "",
        f"## Decisions Made\n{bullets(decisions) or 'None - followed plan as specified'}",
        f"## Deviations from Plan\n\n{bullets(deviations) or 'None - plan executed exactly as written'}",
        f"## Issues Encountered\n{bullets(issues) or 'None'}",
        f"## Deferred Issues\n\n{bullets(deferred)}" if deferred else "",
        f"## {UNDONE}\n\n{bullets(undone)}" if undone else "",
        f"## {POSTPONED}\n\n{bullets(postponed)}" if postponed else "",
        f"## User Setup Required\n\n{bullets(setup) or 'None - the plan has no manual steps'}",
        f"## Next Phase Readiness\n{left or 'All tasks are done'}{unresolved}.",
        f"---\n*Phase: {inline(folder)}*\n*Completed: {inline(date)}*",
    ]
    return f"{head}\n{document(parts)}"


def _deviations(plan: Plan, changed: Sequence[str], undone: Sequence[str]) -> Iterator[str]:
    """Yield where what was done is not what *plan* says, whatever the agent reports."""
    yield from (line.partition(":")[0] for line in undone)
    if more := unlisted_files(changed, [plan]):
        yield f"Changed, although the plan does not list them: {some_of(more, MAX_NAMED)}"
    if left := untouched_files(plan, changed):
        yield f"Not changed, although the plan lists them: {some_of(left, MAX_NAMED)}"


def _number_of_tasks(plan: Plan, committed: Sequence[str]) -> int:
    """Return how many tasks the *committed* ones are; the commits of a test-driven feature are one task."""
    done = [sum(task.name in committed for task in part) for part in parts_of(plan.tasks)]
    return len(committed) - sum(count - 1 for count in done if count)


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


# Reading

_TASK = re.compile(r"^[ \t]*[-*][ \t]+Task (\d{1,4})\b(.*)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*][ \t]+(.*\S)", re.MULTILINE)


def with_notes(planning: Planning, root: Path) -> Planning:
    """Return *planning* with the decisions and open issues of the executed plans.

    They are read apart from the rest, because only prompts need them and projects have many summaries. The
    issues of a plan that went on without a task say why that failed. They are resolved once the phase passes.
    """
    phases: list[PhaseView] = []
    for phase in planning.phases:
        passed = phase.verdict is not None and phase.verdict.status == "passed" and not phase.verdict.stale
        plans = tuple(_with_notes(plan, root, passed) for plan in phase.plans)
        phases.append(attrs.evolve(phase, plans=plans))
    return attrs.evolve(planning, phases=tuple(phases))


def _with_notes(plan: Plan, root: Path, passed: bool) -> Plan:
    if not plan.summary:
        return plan
    try:
        text = read_text(root, plan.summary)
        decisions, issues = _notes(text, plan.summary)
        issues = () if passed and tasks_listed(text, UNDONE) else issues
    except PlanningError:
        # Other tools and people write summaries too; missing notes in a prompt do not justify a failure.
        return plan
    return attrs.evolve(plan, decisions=decisions, issues=issues)


@lru_cache(maxsize=512)
def _notes(text: str, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    head = read_frontmatter(text, path=path)
    issues = map(prose, _BULLET.findall(_section(head.body, "Issues Encountered")))
    decisions = tuple(map(prose, head.texts("key-decisions", "key_decisions")))
    return decisions, tuple(issue for issue in issues if issue.lower().rstrip(".") != "none")


def tasks_listed(text: str, heading: str) -> dict[int, str]:
    """Return what a SUMMARY.md says of each task that it lists under *heading*, such as :data:`UNDONE`."""
    return {int(number): said for number, said in _TASK.findall(_section(text, heading))}


def _section(text: str, heading: str) -> str:
    pattern = rf"^##[ \t]+{re.escape(heading)}[ \t]*\n(.*?)(?=^##[ \t]|^---|\Z)"
    found = re.search(pattern, text.replace("\r\n", "\n"), re.MULTILINE | re.DOTALL)
    return found[1] if found else ""
