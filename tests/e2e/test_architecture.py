"""Rule 4 of the deviation rules: the executor asks before it changes the architecture (scenario files)."""

from __future__ import annotations

import pytest

from tests.e2e.project import EXAMPLE, Project

pytestmark = pytest.mark.slow
CHANGE = "Entries need an index, which the plan does not have"
SCRIPT = f"""
[[rule]]
when = {{ plan = "01-01", task = 2 }}
do = "architecture"
text = "{CHANGE}"
options = ["SQLite", "A second file"]
"""


def begin(project: Project, *arguments: str) -> tuple[int, str]:
    project.create()
    script = project.base / "architecture.toml"
    script.write_text(SCRIPT)
    run = ("run", EXAMPLE, "--agent", "rehearsal", "--script", script)
    done = project.gsd(*run, *arguments)
    return done.exit, done.err


def summary(project: Project) -> str:
    [path] = project.root.glob(".planning/phases/*/01-01-SUMMARY.md")
    return path.read_text("utf-8")


REAL = pytest.param("true", id="real", marks=pytest.mark.long)


@pytest.mark.parametrize("cli", [pytest.param("false", id="fast"), REAL])
def test_a_change_of_the_architecture_waits_for_a_person_and_the_work_continues(
    project: Project, cli: str
) -> None:
    project.environment = {"GSD_REHEARSAL_CLI": cli, "GSD_SANDBOX": "off", "GSD_RETRY_WAIT": "0.05"}
    code, said = begin(project, "--no-input")

    assert code == 3, said
    assert CHANGE in said
    # The tasks before are kept, and nothing of the change is made.
    assert [fact.data["task"] for fact in project.facts("task.committed")] == ["01-01/1"]
    [asked] = [
        question
        for fact in project.facts("question.asked")
        for question in fact.data["inquiry"]["questions"]
        if question["header"] == "Architecture"
    ]
    assert project.gsd("answer", asked["id"], "SQLite").exit == 0
    resumed = project.gsd("resume", "--no-input")

    assert resumed.exit == 0, resumed.err
    assert f"[Rule 4] {CHANGE}: SQLite" in summary(project)
    assert f"[Rule 4] {CHANGE}: SQLite" in (project.root / ".planning" / "STATE.md").read_text("utf-8")
    committed = [fact.data["task"] for fact in project.facts("task.committed")]
    assert sorted(committed) == sorted(set(committed))
    assert committed[0] == "01-01/1"
    asked_again = [
        fact
        for fact in project.facts("question.asked")
        if fact.data["inquiry"]["questions"][0]["header"] == "Architecture"
    ]
    assert len(asked_again) == 1


def test_a_policy_that_answers_for_nobody_keeps_to_the_plan(project: Project) -> None:
    project.environment = {"GSD_REHEARSAL_CLI": "false", "GSD_SANDBOX": "off"}
    code, said = begin(project, "--yes")

    assert code == 0, said
    assert f"[Rule 4] {CHANGE}: Keep to the plan" in summary(project)
