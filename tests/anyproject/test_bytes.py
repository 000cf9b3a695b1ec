"""Changes to real planning files touch what is meant, and nothing else: byte for byte."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from gsd_core import AddDecisions, Change, ListPlans, MapRequirement, SetPosition, TickPhase, TickPlan
from gsd_core.planning.edit import apply_changes
from gsd_core.planning.model import Planning
from gsd_core.planning.survey import read_planning
from tests.anyproject.corpus import each_project, needs_corpus

pytestmark = needs_corpus
FORMS = {"as it is": ("\n", ""), "CRLF": ("\r\n", ""), "BOM": ("\n", "\ufeff")}


def changes_of(planning: Planning) -> list[Change]:
    found: list[Change] = []
    for phase in planning.phases:
        found += [
            ListPlans(phase=phase.number, plans=(("98", "more"),)),
            TickPlan(phase=phase.number, plan="98"),
            TickPhase(phase=phase.number, date="2026-01-31"),
            AddDecisions(phase=phase.number, decisions=("a decision",)),
            SetPosition(
                phase=phase.number, phases=9, name="N", plan=1, plans=2, status="S", percent=50,
                date="2026-01-31", activity="A",
            ),
        ]  # fmt: skip
    for requirement in planning.requirements[:5]:
        found.append(MapRequirement(requirement=requirement.id, phase="1", status="Complete"))
    return found


def texts(project: Path, form: str) -> dict[str, str]:
    """The shared files, with the line ends and the mark of a form."""
    end, mark = FORMS[form]
    names = ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md")
    paths = [project / ".planning" / name for name in names if (project / ".planning" / name).exists()]
    plain = {path.name: path.read_bytes().decode() for path in paths}
    if end == "\r\n":
        plain = {name: text.replace("\r\n", "\n").replace("\n", end) for name, text in plain.items()}
    return {name: mark + text for name, text in plain.items()}


def touched(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines that are gone, and those that have come."""
    changes = [line for line in unified_diff(old, new, n=0, lineterm="") if line[:3] not in ("---", "+++")]
    return [line for line in changes if line[0] == "-"], [line for line in changes if line[0] == "+"]


@each_project
@pytest.mark.parametrize("form", FORMS)
def test_each_change_leaves_all_other_lines_as_they_were(project: Path, form: str) -> None:
    before = texts(project, form)
    for change in changes_of(read_planning(project)):
        if isinstance(change, MapRequirement) and "REQUIREMENTS.md" not in before:
            continue
        after = before | apply_changes(before, [change])

        for name, text in before.items():
            old, new = text.split("\n"), after[name].split("\n")
            gone, come = touched(old, new)
            assert len(gone) <= 8
            assert len(come) <= len(gone) + 4
            assert {line[-1:] == "\r" for line in new[:-1]} <= {line[-1:] == "\r" for line in old[:-1]}
            assert after[name].startswith(FORMS[form][1])
        before = after


@each_project
@pytest.mark.parametrize("form", FORMS)
def test_no_change_gives_the_file_back(project: Path, form: str) -> None:
    assert apply_changes(texts(project, form), []) == {}
