"""The README's example: a rehearsal on a machine where git has no user name and email."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, FAKE, REHEARSAL, Project, defects, no_problems
from tests.run.harness import git


@pytest.mark.slow
def test_a_rehearsal_creates_its_own_repository_and_costs_nothing(project: Project) -> None:
    project.environment = no_problems() | {"GSD_LIMITS_ABLATION": "10m"}
    done = project.gsd("run", EXAMPLE, *REHEARSAL, "-C", "project", "--yes")

    assert done.exit == 0, done.err
    rows = project.json("requirements")["requirements"]
    cases = {
        case["name"]: case["fails_without"] for row in rows for one in row["checks"] for case in one["cases"]
    }
    parsing = "tests.test_guests.GuestsTest.test_a_line_without_a_language_is_rejected"
    assert cases[parsing] == "greeter/guests.py: parse"
    assert not any(without.startswith("nothing") for without in cases.values())
    assert set(git(project.root, "log", "--format=%an <%ae>").splitlines()) == {
        "GSD rehearsal <rehearsal@localhost>"
    }
    assert list(defects(project)) == []
    assert "user." not in git(project.root, "config", "--local", "--list")
    again = project.gsd("milestone", "complete", "--yes")
    assert again.exit == 0, again.err
    assert (project.json("status")["status"], project.json("status")["cost"]["dollars"]) == ("done", "0")
    assert ", $0, run r-" in done.out


def test_other_agents_do_not_get_a_made_up_identity(project: Project) -> None:
    done = project.gsd("run", EXAMPLE, *FAKE, "-C", "project", "--yes")

    assert done.exit == 2
    assert "git does not know" in done.err
    assert "git config --global user.name" in done.err
    assert not project.root.exists()


def test_an_existing_repository_does_not_get_a_made_up_identity(project: Project) -> None:
    subprocess.run(["git", "init", "-q", project.root], check=True)
    done = project.gsd("run", EXAMPLE, *REHEARSAL, "--yes")

    assert done.exit == 2
    assert "git does not know" in done.err
    assert git(project.root, "config", "--local", "--list").find("user.") == -1


@pytest.mark.slow
def test_an_identity_that_git_knows_is_used(project: Project) -> None:
    names = [f"GIT_{role}_{key}" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")]
    project.environment = no_problems() | dict.fromkeys(names, "x@y.example")
    done = project.gsd("run", EXAMPLE, *FAKE, "-C", "project", "--yes")

    assert done.exit == 0, done.err
    assert set(git(project.root, "log", "--format=%ae").splitlines()) == {"x@y.example"}


def content(root: Path) -> list[str]:
    """Return subjects, paths and code of a project."""
    subjects = git(root, "log", "--format=%s").splitlines()
    code = [git(root, "show", f"HEAD:{path}") for path in git(root, "ls-files", "*.py").splitlines()]
    return [*subjects, *git(root, "ls-files").splitlines(), *code]


@pytest.mark.slow
def test_the_example_takes_a_minute_and_a_half_at_most_and_is_the_same_twice(tmp_path: Path) -> None:
    made: list[list[str]] = []
    for name in ("one", "two"):
        project = Project(tmp_path / name)
        project.base.mkdir()
        done = project.gsd("run", EXAMPLE, *REHEARSAL, "-C", "project", "--yes", "--seed", "7")
        assert done.exit == 0, done.err
        assert done.seconds < 90
        assert list(defects(project)) == []
        made.append(content(project.root))

    assert made[0] == made[1]


@pytest.mark.slow
def test_quiet_and_verbose_show_as_much_as_their_help_says(project: Project) -> None:
    project.environment = no_problems() | {"GSD_REHEARSAL_CLI": "false"}
    flags: list[list[str]] = [["-q"], [], ["-v"], ["-vv"]]
    lines: list[int] = []
    for number, flag in enumerate(flags):
        done = project.gsd(
            "run", EXAMPLE, *REHEARSAL, "-C", f"project-{number}", "--only", "1", "--yes", *flag
        )
        assert done.exit == 0, done.err
        lines.append(len((done.out + done.err).splitlines()))
        if flag == ["-q"]:
            [last] = done.out.splitlines()
            assert last.startswith("done: ")
            before = done.err.splitlines()
            assert [line for line in before if line and not line.startswith(("?", " ", "warning: "))] == []

    assert lines == sorted(set(lines)), lines
