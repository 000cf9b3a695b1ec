"""``gsd demo``: a rehearsal in a folder of its own, and what it says about itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gsd_plugins.rehearsal import example_idea
from tests.cli.bench import call
from tests.e2e.project import REHEARSAL, Project, defects
from tests.run.harness import git

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_idea_of_the_demo_is_the_example() -> None:
    assert example_idea() == (EXAMPLES / "greeter.md").read_text("utf-8")


@pytest.mark.parametrize("kind", ["file", "folder with a file", "link to a folder with a file"])
def test_a_demo_never_uses_a_folder_with_anything_in_it(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".hidden").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(folder)
    chosen = {"file": "file", "folder with a file": "folder", "link to a folder with a file": "link"}[kind]

    result = call("demo", tmp_path / chosen)

    assert result.exit_code == 2
    assert "name a folder that is empty or does not exist" in result.stderr
    assert [path.name for path in folder.iterdir()] == [".hidden"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_demo_needs_one_folder_and_its_plugin(tmp_path: Path) -> None:
    two = call("-C", tmp_path / "one", "demo", tmp_path / "two")
    without = call("demo", tmp_path / "new", "-p", "no:rehearsal")
    impossible = call("demo", tmp_path / ("x" * 300))

    assert (two.exit_code, without.exit_code, impossible.exit_code) == (2, 2, 2)
    assert "pass only one of them" in two.stderr
    assert "leave out -p no:rehearsal" in without.stderr
    assert "cannot create the demo's folder" in impossible.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_demo_builds_what_it_says_in_its_own_repository_and_tells_what_is_real(tmp_path: Path) -> None:
    project = Project(tmp_path / "base")
    project.base.mkdir()
    project.create()
    (project.root / "notes.txt").write_text("mine")
    before = git(project.root, "rev-parse", "HEAD") if git(project.root, "branch", "--list").strip() else ""
    project.environment = {"GSD_REHEARSAL_CLI": "false"}

    done = project.gsd("demo", "try me", "--yes")
    folder = project.root / "try me"
    commands = [line.strip() for line in done.out.splitlines() if line.startswith("  python3 -m greeter ")]
    tried = [
        subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout
        for line in commands
    ]

    assert done.exit == 0, done.err
    assert done.out.count("scripted: the model's words, and the agent: rehearsal.cli is off") == 1
    assert done.out.count("no account, no request to a model, no cost") == 1
    assert f"cd '{folder}'" in done.out
    assert "this was a rehearsal: the model's answers came from a script" in done.out
    assert "does not build" not in done.err
    assert len(commands) == 2
    assert tried[0].startswith("Hello, Alan")
    assert tried[1] == tried[0]
    subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=folder, capture_output=True, check=True)
    # The repository around it has no commit of the demo.
    if before:
        assert git(project.root, "rev-parse", "HEAD") == before
    assert not (project.root / ".git" / "gsd").exists()
    assert call("demo", folder).exit_code == 2
    # The history of a real run: of its three phases, only the last could have been forecast.
    dry = project.gsd("run", "-C", "try me", *REHEARSAL, "--dry-run", "--output-format", "json")
    forecast = dry.lines[0]["forecast"]
    assert (forecast["phases"], forecast["steps"]["discuss"], forecast["steps"]["execute"]) == ([], 3, 5)
    [earlier] = forecast["earlier"]
    assert earlier["phase"] == "3"
    assert earlier["took"] > 0
    assert earlier["within"] == (earlier["seconds"]["low"] <= earlier["took"] <= earlier["seconds"]["high"])
    assert forecast["words"][-1].startswith(f"{int(earlier['within'])} of 1 earlier forecast ")


@pytest.mark.slow
def test_a_parallel_demo_executes_plans_side_by_side_and_has_the_work_of_all(tmp_path: Path) -> None:
    project = Project(tmp_path / "base")
    project.base.mkdir()
    project.environment = {"GSD_REHEARSAL_CLI": "false"}
    ran = project.gsd("demo", "--parallel", "--yes", str(project.root))

    assert ran.exit == 0, ran.out + ran.err
    kinds = [(fact.kind, fact.step) for fact in project.facts("attempt.started", "step.completed")]
    first = kinds.index(("step.completed", "1/execute/01-01")) + 1
    expected = {("attempt.started", f"1/execute/01-0{number}") for number in (2, 3, 4, 5)}
    assert {*kinds[first : first + 4]} == expected
    assert list(defects(project)) == ["not clean: ?? greeter.md\n"]  # the idea is the user's
    assert len(git(project.root, "worktree", "list").splitlines()) == 1
    assert (project.root / "NOTES.md").read_text().count("is there") == 2
    told = ran.out.partition("4 plans were executed at once")[2]
    assert told.count("conflicts with what others did meanwhile") == told.count(": Merge with ") == 2
    assert "How should each greeting end?" in told
