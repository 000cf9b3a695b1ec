"""A mistake in one planning file stays in that file; and milestones after their end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gsd_core.errors import ProjectError
from gsd_core.model.step import StepRequest
from gsd_core.planning.survey import flaws, read_planning
from gsd_core.run.step import require_readable_plans
from tests.cli.bench import BEGAN, call
from tests.cli.bench import said as json_of
from tests.planning.trees import make_project, plan_text

BROKEN: dict[str, str | bytes] = {
    "a list for keys": "---\njust words\n---\n<tasks></tasks>\n",
    "never closed": "---\nwave: 1\n",
    "a mistake in YAML": "---\na: 1\n- b\n---\n",
    "not UTF-8": b"---\nwave: 1\n---\n\xff\xfe",
}


def project(root: Path, **files: str | bytes) -> Path:
    tree: dict[str, str | bytes] = {
        "ROADMAP.md": "### Phase 1: A\n### Phase 2: B\n",
        "phases/01-a/01-CONTEXT.md": "c",
        "phases/01-a/01-01-PLAN.md": plan_text(),
        "phases/01-a/01-02-PLAN.md": plan_text(),
        "phases/02-b/02-01-PLAN.md": plan_text(),
    }
    return make_project(root, tree | files)


@pytest.mark.parametrize("what", BROKEN)
def test_a_plan_that_cannot_be_read_hides_no_other_plan(tmp_path: Path, what: str) -> None:
    root = project(tmp_path, **{"phases/01-a/01-02-PLAN.md": BROKEN[what]})

    first, second = read_planning(root).phases
    assert [(plan.id, bool(plan.unreadable), len(plan.tasks)) for plan in first.plans] == [
        ("01-01", False, 1),
        ("01-02", True, 0),
    ]
    assert [plan.unreadable for plan in second.plans] == [""]
    assert [plan["id"] for plan in json_of("plans", "1", "-C", root)["plans"]] == ["01-01", "01-02"]
    for command in (("plans", "1"), ("next",)):
        assert "warning: .planning/phases/01-a/01-02-PLAN.md:" in call(*command, "-C", root).stderr
    health = json.loads(call("health", "-C", root, "--json").stdout)
    [issue] = [one for one in health["warnings"] if one["code"] == "W101"]
    assert issue["path"] == ".planning/phases/01-a/01-02-PLAN.md"


def test_a_phase_is_neither_verified_nor_completed_on_a_plan_that_nobody_can_read(tmp_path: Path) -> None:
    root = project(tmp_path, **{"phases/01-a/01-02-PLAN.md": BROKEN["never closed"]})
    phase, _ = read_planning(root).phases

    def request(kind: str, plan: int | None = None) -> StepRequest:
        return StepRequest(
            id=f"1/{kind}",
            run="r",
            kind=kind,
            project=root,
            tree=root,
            phase=phase,
            plan=phase.plans[plan] if plan is not None else None,
            now=BEGAN,
        )

    for needs_it in (request("verify"), request("complete"), request("execute", 1)):
        with pytest.raises(ProjectError, match=r"01-02-PLAN\.md:1: the frontmatter is never closed"):
            require_readable_plans(needs_it)
    for does_not in (request("discuss"), request("plan"), request("execute", 0)):
        require_readable_plans(does_not)


def test_a_duplicate_key_is_a_warning_and_drops_no_promise(tmp_path: Path) -> None:
    twice = 'must_haves:\n  truths: ["A holds"]\nwave: 2\nmust_haves:\n  truths: ["B holds"]\n'
    root = project(tmp_path, **{"phases/01-a/01-02-PLAN.md": plan_text(frontmatter=twice)})

    [phase, _] = read_planning(root).phases
    [_, plan] = phase.plans
    assert [truth.text for truth in plan.must_haves.truths] == ["A holds", "B holds"]
    assert not plan.unreadable
    assert [line.partition(";")[0] for line in flaws([phase])] == [
        ".planning/phases/01-a/01-02-PLAN.md:9: duplicate key 'wave'",
        ".planning/phases/01-a/01-02-PLAN.md:10: duplicate key 'must_haves'",
        ".planning/phases/01-a/01-02-PLAN.md:11: duplicate key 'truths'",
    ]


def test_a_pattern_that_is_invalid_yaml_is_a_warning_that_says_how_it_is_read(tmp_path: Path) -> None:
    links = (
        "must_haves:\n  key_links:\n    - from: a.py\n      to: b.py\n"
        '      pattern: "b\\.run\\("\n'
        "    - from: a.py\n      to: c.py\n      pattern: 'c\\.run'\n"
    )
    root = project(tmp_path, **{"phases/01-a/01-02-PLAN.md": plan_text(frontmatter=links)})

    [phase, _] = read_planning(root).phases
    [warning] = flaws([phase])
    health = json.loads(call("health", "-C", root, "--json").stdout)
    [issue] = [one for one in health["warnings"] if one["code"] == "W101"]

    assert [link.pattern for link in phase.plans[1].must_haves.key_links] == [r"b\.run\(", r"c\.run"]
    assert "01-02-PLAN.md:" in warning
    assert r"pattern: 'b\.run\('" in warning.replace("\\\\", "\\")
    assert "single quotes" in json.dumps(issue)


@pytest.mark.parametrize(
    "order", ["status: gaps_found\nstatus: passed\n", "status: passed\nstatus: passed\n"]
)
def test_a_verdict_that_is_stated_twice_is_none(tmp_path: Path, order: str) -> None:
    root = project(tmp_path, **{"phases/01-a/01-VERIFICATION.md": f"---\n{order}---\n"})
    [phase, _] = read_planning(root).phases

    assert phase.verdict
    assert phase.verdict.status == "unknown"
    assert any("01-VERIFICATION.md:3: duplicate key 'status'" in line for line in flaws([phase]))


SHIPPED = (
    "# Roadmap\n\n- [x] **Phase 1: A** - a\n- [x] **Phase 2: B** - b\n\n### Phase 1: A\n### Phase 2: B\n"
)


@pytest.mark.parametrize("state", ["# S\n", "---\nmilestone: v1.0\n---\n# S\n"])
def test_after_the_end_of_a_first_milestone_each_phase_is_listed_once(tmp_path: Path, state: str) -> None:
    """GSD's `milestone complete` archives the roadmap and the folders, and leaves ROADMAP.md as it is."""
    files = {
        "ROADMAP.md": SHIPPED,
        "STATE.md": state,
        "milestones/v1.0-ROADMAP.md": SHIPPED,
        "milestones/v1.0-phases/01-a/01-01-PLAN.md": plan_text(),
        "milestones/v1.0-phases/01-a/01-01-SUMMARY.md": "done",
    }
    make_project(tmp_path, files)

    found = json_of("phases", "--all", "-C", tmp_path)["phases"]

    assert [(one["number"], one["milestone"], one["plans"]) for one in found] == [
        ("1", "v1.0", 1),
        ("2", "v1.0", 0),
    ]
    assert json_of("phases", "-C", tmp_path)["phases"] == found
    assert json_of("next", "-C", tmp_path)["reason"] == "v1.0 is shipped: no milestone is in progress"


def test_a_new_phase_after_an_archived_milestone_is_in_progress(tmp_path: Path) -> None:
    roadmap = SHIPPED.replace("\n### Phase 1", "- [ ] **Phase 3: C** - c\n\n### Phase 1", 1)
    make_project(tmp_path, {"ROADMAP.md": roadmap, "milestones/v1.0-ROADMAP.md": SHIPPED})

    assert json_of("next", "-C", tmp_path)["phase"] == "3"
    assert [one["number"] for one in json_of("phases", "--all", "-C", tmp_path)["phases"]] == ["1", "2", "3"]


@pytest.mark.parametrize("stated", ["v1.2", "v1.2.0"])
def test_the_milestone_that_the_state_names_comes_before_the_first_one(tmp_path: Path, stated: str) -> None:
    roadmap = "## v1.1 Later\n### Phase 3: C\n## v1.2 Now\n### Phase 4: D\n"
    make_project(tmp_path, {"ROADMAP.md": roadmap, "STATE.md": f"---\nmilestone: {stated}\n---\n"})

    assert [one["number"] for one in json_of("phases", "-C", tmp_path)["phases"]] == ["4"]
    assert json_of("next", "-C", tmp_path)["phase"] == "4"
