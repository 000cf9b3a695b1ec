"""The checks of plans and roadmaps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_core import Artifact, MustHaves, PhaseView, Plan, PlannedPhase, Requirement, Task, Truth
from gsd_core.planning.check import (
    check_plans,
    check_roadmap,
    check_serves,
    invalid_path_reason,
)
from gsd_core.planning.must_haves import served_by
from gsd_core.planning.plan import parse_plan, render_plan
from gsd_core.planning.waves import cycle, waves

PHASE = PhaseView(number="1", name="X", project=Path())
TASK = Task(number=1, name="Do", files=("a.py",), action="do", check="true", done="done")
PLAN = Plan(
    id="01-01",
    phase="1",
    requirements=("A-01",),
    files_modified=("a.py",),
    tasks=(TASK,),
    must_haves=MustHaves(
        truths=(Truth(id="01-01:T1", text="it is"),), artifacts=(Artifact(path="a.py", provides="it"),)
    ),
)
OTHER = attrs.evolve(PLAN, id="01-02", files_modified=("b.py",), tasks=(attrs.evolve(TASK, files=("b.py",)),))


def issues_of(*plans: Plan, requirements: tuple[str, ...] = ("A-01",), phase: PhaseView = PHASE) -> list[str]:
    """Return each issue as severity, dimension and plan."""
    issues = check_plans(phase, plans, requirements)
    return [f"{issue.severity} {issue.dimension} {issue.plan}".strip() for issue in issues]


def tasks(count: int, files: int = 1) -> tuple[Task, ...]:
    return tuple(
        attrs.evolve(TASK, number=n, files=tuple(f"f{i}.py" for i in range(files)))
        for n in range(1, count + 1)
    )


def test_good_plans_have_no_issues() -> None:
    assert issues_of(PLAN, OTHER) == []


@pytest.mark.parametrize(
    ("changes", "issue"),
    [
        ({"requirements": ()}, "blocker requirement_coverage"),
        ({"requirements": ("A-01", "B-09")}, "warning requirement_coverage 01-01"),
        ({"tasks": ()}, "blocker task_completeness 01-01"),
        ({"tasks": (attrs.evolve(TASK, done=""),)}, "blocker task_completeness 01-01"),
        ({"tasks": (attrs.evolve(TASK, check="", verify=""),)}, "blocker task_completeness 01-01"),
        ({"tasks": (attrs.evolve(TASK, name=""),)}, "blocker task_completeness 01-01"),
        ({"tasks": tasks(4)}, "warning scope_sanity 01-01"),
        ({"tasks": tasks(5)}, "blocker scope_sanity 01-01"),
        ({"tasks": tasks(1, files=15)}, "blocker scope_sanity 01-01"),
        ({"must_haves": MustHaves(artifacts=PLAN.must_haves.artifacts)}, "blocker must_haves 01-01"),
        ({"must_haves": MustHaves(truths=PLAN.must_haves.truths)}, "warning must_haves 01-01"),
        ({"depends_on": ("01-09",)}, "blocker dependency_correctness 01-01"),
        ({"wave": 3}, "warning dependency_correctness 01-01"),
        ({"files_modified": ("../a.py",)}, "blocker paths 01-01"),
        ({"files_modified": (".git/hooks/x",)}, "blocker paths 01-01"),
    ],
)
def test_each_defect_of_a_plan_is_found(changes: dict[str, Any], issue: str) -> None:
    assert issues_of(attrs.evolve(PLAN, **changes)) == [issue]


def test_a_checkpoint_needs_no_files() -> None:
    checkpoint = Task(number=2, name="Look", type="checkpoint:human-verify", details={"what-built": "a page"})

    assert issues_of(attrs.evolve(PLAN, tasks=(TASK, checkpoint))) == []


def test_plans_of_the_same_wave_may_not_share_a_file() -> None:
    assert issues_of(PLAN, attrs.evolve(OTHER, files_modified=("a.py",))) == ["blocker file_overlap 01-02"]


def test_plans_that_depend_on_each_other_are_found() -> None:
    one = attrs.evolve(PLAN, depends_on=("01-02",), wave=2)
    other = attrs.evolve(OTHER, depends_on=("01-01",), wave=3)

    assert issues_of(one, other)[0] == "blocker dependency_correctness 01-01"


def test_a_plan_needs_a_later_wave_than_its_dependencies() -> None:
    assert issues_of(PLAN, attrs.evolve(OTHER, depends_on=("01-01",))) == [
        "blocker dependency_correctness 01-02"
    ]
    assert issues_of(PLAN, attrs.evolve(OTHER, depends_on=("01-01",), wave=2)) == []


def test_a_plan_may_depend_on_a_plan_of_an_earlier_round() -> None:
    phase = attrs.evolve(PHASE, plans=(PLAN,))
    later = attrs.evolve(OTHER, requirements=(), depends_on=("01-01",), wave=2)

    assert issues_of(later, phase=phase) == []


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/x", "~/x", "a/../../b", "C:\\x", "..\\x", "", "a\nb"),
        *(
            ".planning/STATE.md",
            ".GIT/config",
            "sub/.git/x",
            ".claude/x.json",
            "gsd.toml",
            "docs/gsd.toml",
            ".gsd/plugins/x.py",
        ),
    ],
)
def test_protected_and_outside_paths_are_refused(path: str) -> None:
    assert invalid_path_reason(path)


@pytest.mark.parametrize("path", ["a.py", "src/.gitignore", "docs/gsd.md", ".github/x.yml", "a..b", "x~"])
def test_ordinary_paths_are_accepted(path: str) -> None:
    assert invalid_path_reason(path) == ""


FIRST = PlannedPhase(number="1", name="A", goal="a", requirements=("A-01",), criteria=("x",))
SECOND = attrs.evolve(FIRST, number="2", requirements=("A-02",), depends_on=("1",))
REQUIREMENTS = (Requirement(id="A-01", text="one"), Requirement(id="A-02", text="two"))


def test_a_good_roadmap_has_no_issues() -> None:
    assert (
        check_roadmap((FIRST, SECOND), (*REQUIREMENTS, Requirement(id="L-01", text="x", version="v2"))) == ()
    )


@pytest.mark.parametrize(
    ("phases", "requirements", "mentioned"),
    [
        ((), REQUIREMENTS, ()),
        ((FIRST,), REQUIREMENTS, ("A-02",)),
        (
            (FIRST, attrs.evolve(SECOND, requirements=("A-01", "A-02"))),
            REQUIREMENTS,
            ("A-01", "1", "2"),
        ),
        ((FIRST, SECOND), REQUIREMENTS[:1], ("phase 2", "A-02")),
        ((FIRST, attrs.evolve(SECOND, depends_on=("3",))), REQUIREMENTS, ("phase 2", "3")),
        (
            (attrs.evolve(FIRST, depends_on=("2",)), SECOND),
            REQUIREMENTS,
            ("1 → 2 → 1",),
        ),
        ((FIRST, attrs.evolve(SECOND, number="1", depends_on=())), REQUIREMENTS, ("1",)),
        ((FIRST, SECOND), (*REQUIREMENTS, REQUIREMENTS[0]), ("A-01",)),
        ((FIRST, attrs.evolve(SECOND, goal=" ")), REQUIREMENTS, ("phase 2", "goal")),
        ((FIRST, attrs.evolve(SECOND, criteria=())), REQUIREMENTS, ("phase 2", "criteria")),
    ],
)
def test_each_defect_of_a_roadmap_is_found(
    phases: tuple[PlannedPhase, ...], requirements: tuple[Requirement, ...], mentioned: tuple[str, ...]
) -> None:
    [issue] = check_roadmap(phases, requirements)

    assert [word for word in mentioned if word not in issue.description] == []


def test_a_malformed_requirement_id_is_found() -> None:
    odd = (attrs.evolve(FIRST, requirements=("auth 1",)),)

    assert [issue.dimension for issue in check_roadmap(odd, (Requirement(id="auth 1", text="x"),))] == ["ids"]


names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.lists(names, max_size=3))


@given(graphs)
def test_every_node_has_a_wave_or_the_graph_has_a_cycle(graph: dict[str, list[str]]) -> None:
    placed, cycle_found = waves(graph), cycle(graph)

    assert (set(placed) == set(graph)) == (cycle_found == ())
    for key, wave in placed.items():
        assert wave == 1 + max((placed[name] for name in graph[key] if name in graph), default=0)
    for node, following in pairwise(cycle_found):
        assert following in graph[node]
    assert cycle_found[:1] == cycle_found[-1:]


# What truths serve

SERVED = attrs.evolve(PHASE, requirements=("A-01",), criteria=("It is", "It stays"))


def with_truths(*serves: tuple[str, ...]) -> Plan:
    truths = tuple(
        Truth(id=f"01-01:T{number}", text="it is", serves=names) for number, names in enumerate(serves, 1)
    )
    return attrs.evolve(PLAN, must_haves=attrs.evolve(PLAN.must_haves, truths=truths))


@pytest.mark.parametrize(
    ("plan", "complete", "problems"),
    [
        (with_truths(("A-01", "01:C1"), ("01:C2",)), True, []),
        (with_truths(("A-01", "01:C1")), True, ["no truth serves criterion 01:C2: It stays"]),
        (with_truths(("A-01", "01:C1")), False, []),
        (with_truths(("01:C1", "01:C2")), True, ["no truth serves requirement A-01"]),
        (with_truths(("A-01", "01:C1", "01:C2", "01:C3")), True, ["truth 1 serves '01:C3', which"]),
        (with_truths(("A-01", "1:C1")), False, ["truth 1 serves '1:C1', which"]),
        (with_truths(("A-01",), ()), False, ["truth 2 serves nothing: it is"]),
        # As other tools write it: the truths count for the plan's requirements.
        (PLAN, True, ["truth 1 serves nothing: it is"]),
    ],
)
def test_truths_serve_every_requirement_and_criterion(
    plan: Plan, complete: bool, problems: list[str]
) -> None:
    found = [issue.description for issue in check_serves(SERVED, [plan], complete=complete)]

    assert len(found) == len(problems)
    assert [
        problem for problem, text in zip(problems, found, strict=True) if not text.startswith(problem)
    ] == []


def test_a_plan_edited_by_hand_whose_truths_no_longer_match_serves_its_requirements() -> None:
    plan = with_truths(("A-01", "01:C1"), ("01:C2",))
    text = render_plan(attrs.evolve(plan, path="01-01-PLAN.md"))
    edited = text.replace('    - "it is"\n', '    - "it is"\n    - "it is more"\n', 1)
    read = parse_plan(edited, path="01-01-PLAN.md", phase="1")

    assert [
        truth.serves for truth in parse_plan(text, path="01-01-PLAN.md", phase="1").must_haves.truths
    ] == [
        ("A-01", "01:C1"),
        ("01:C2",),
    ]
    assert [truth.text for truth in read.must_haves.truths] == ["it is", "it is more", "it is"]
    assert [served_by(read, truth) for truth in read.must_haves.truths] == [("A-01",)] * 3
