"""Where a project stands, in GSD's terms: milestone, phases, percent, recent work, decisions, todos."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import phase_order
from gsd_core.planning.markdown import Lines, prose, read_text
from gsd_core.planning.model import Planning
from gsd_core.planning.state import DECISIONS, NOTHING, section_lines
from gsd_core.planning.survey import Measure, Survey, Surveyed, measure_of
from gsd_core.planning.todos import Todo
from gsd_core.serializer import Serializer

from .next import NEXT, Next, next_json
from .phases import PLAN_COUNTS
from .planning import PHASE

RECENT = 3
_BOLD_LINE = re.compile(r"^\*\*(?!.*:\*\*\s)(.+?)\*\*\s*$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*]|\d+[.)])\s+(.*)$")


@attrs.frozen(kw_only=True)
class Summary:
    """What an executed plan has done: the first bold line of its SUMMARY, as GSD's templates have it."""

    plan: str
    name: str
    text: str


@attrs.frozen(kw_only=True)
class ProjectProgress:
    """The progress of the milestone in progress, or of the last one.

    *recent* are the last executed plans, the latest first.
    """

    name: str
    survey: Survey
    phases: tuple[Surveyed, ...]
    measure: Measure
    recent: tuple[Summary, ...]
    decisions: tuple[str, ...]
    blockers: tuple[str, ...]
    todos: tuple[Todo, ...]
    next: Next


def progress_of(
    survey: Survey, planning: Planning, order: Mapping[str, int], todos: Sequence[Todo], due: Next
) -> ProjectProgress:
    """Return the progress; in *order*, files of later commits have larger numbers."""
    phases = survey.phases()
    state = Lines.of(planning.documents.get("STATE.md", ""))
    return ProjectProgress(
        name=planning.name,
        survey=survey,
        phases=phases,
        measure=measure_of(phases),
        recent=tuple(_recent(survey, planning, order)),
        decisions=_items(state, DECISIONS),
        blockers=_items(state, ("blockers/concerns", "blockers", "concerns")),
        todos=tuple(todos),
        next=due,
    )


def _recent(survey: Survey, planning: Planning, order: Mapping[str, int]) -> Iterator[Summary]:
    plans = [plan for phase in planning.phases for plan in phase.plans if plan.summary]
    # What is not committed yet is the latest.
    newest = max(order.values(), default=0) + 1
    plans.sort(key=lambda plan: (order.get(plan.summary, newest), phase_order(plan.phase), plan.id))
    for plan in reversed(plans[-RECENT:]):
        try:
            text = read_text(survey.root, plan.summary)
        except PlanningError:
            text = ""
        body = re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)
        line = _BOLD_LINE.search(body[:20_000])
        yield Summary(plan=plan.id, name=plan.name, text=prose(line[1]) if line else "")


def _items(lines: Lines, titles: Sequence[str]) -> tuple[str, ...]:
    """Return the items of a list in a section of STATE.md."""
    section = section_lines(lines, *titles) or (0, 0)
    items = [match[1] for at in range(*section) if (match := _ITEM.match(lines[at]))]
    return tuple(prose(item) for item in items if not NOTHING.match(item.strip()))


PROGRESS = Serializer(
    ProjectProgress,
    "project=name? milestone=survey.current? percent=measure.percent plans=measure "
    "phases_total=measure.phases phases_complete=measure.complete phases recent decisions blockers todos "
    "next",
    plans=PLAN_COUNTS,
    phases=PHASE,
    todos=Serializer(Todo, "id title area"),
    next=(NEXT.schema, lambda progress: next_json(progress.next)),
)
