"""A rehearsal keeps away from the work of others: it does not start in it, and overwrites none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core import Permanent
from gsd_plugins.rehearsal.own_files import OwnFiles
from gsd_plugins.rehearsal.product import FileEdit
from tests.cli.bench import call
from tests.e2e.project import EXAMPLE, Project
from tests.run.harness import git

QUICK = {"GSD_REHEARSAL_CLI": "false", "GSD_REHEARSAL_GAP": "false", "GSD_REHEARSAL_OVERLOADED": "false"}
ARGUMENTS = ("--agent", "rehearsal", "--yes")
MINE = "mine\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    found.create()
    found.environment = QUICK | {"GSD_REHEARSAL_PHASES": "1", "GSD_REHEARSAL_QUESTION": "false"}
    return found


def commit(project: Project, path: str, subject: str = "My work") -> None:
    file = project.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(MINE)
    git(project.root, "add", "-A")
    git(project.root, "-c", "user.name=x", "-c", "user.email=x@y.example", "commit", "-qm", subject)


@pytest.mark.slow
def test_a_rehearsal_does_not_start_among_commits_of_others(project: Project) -> None:
    commit(project, "src/app.py", "My \x1b[2Jwork")
    head = git(project.root, "rev-parse", "HEAD")

    refused = project.gsd("run", EXAMPLE, *ARGUMENTS)
    shown = project.gsd("run", EXAMPLE, *ARGUMENTS, "--dry-run")

    assert refused.exit == 2
    assert "has commits that no rehearsal made" in refused.err
    assert "pass --here to rehearse in this one" in refused.err
    assert "`gsd demo`" in refused.err
    assert "\x1b" not in refused.err + shown.err
    assert shown.exit == 0
    assert "warning: a rehearsal would not start here" in shown.err
    assert git(project.root, "rev-parse", "HEAD") == head
    assert not (project.root / ".git" / "gsd" / "journal.db").exists()


@pytest.mark.slow
def test_a_rehearsal_does_not_start_among_files_of_others_and_a_project_cannot_allow_it(
    project: Project,
) -> None:
    (project.root / "thesis.tex").write_text(MINE)
    refused = project.gsd("run", EXAMPLE, *ARGUMENTS)
    (project.root / "gsd.toml").write_text("[rehearsal]\nhere = true\n")
    forbidden = project.gsd("run", EXAMPLE, *ARGUMENTS)

    assert (refused.exit, forbidden.exit) == (2, 2)
    assert "has files that no rehearsal made: thesis.tex" in refused.err
    assert "consent cannot come from the project's files" in forbidden.err


@pytest.mark.slow
def test_a_rehearsal_continues_after_edits_of_the_plan_but_not_after_other_work(project: Project) -> None:
    done = project.gsd("run", EXAMPLE, *ARGUMENTS)
    commit(project, ".planning/notes.md")
    again = project.gsd("run", *ARGUMENTS)
    commit(project, "app.py")
    refused = project.gsd("quick", "a small task", *ARGUMENTS)

    assert done.exit == 0, done.err
    assert "that no rehearsal made" not in again.err
    assert refused.exit == 2
    assert "has commits that no rehearsal made" in refused.err


@pytest.mark.slow
def test_with_here_it_works_beside_the_work_of_others_and_says_what_it_does_not_build(
    project: Project,
) -> None:
    commit(project, "src/app.py")
    idea = project.base / "idea.md"
    idea.write_text("# Moon base\n\nBuild a base on the moon.\n")

    done = project.gsd("run", str(idea), *ARGUMENTS, "--here")
    summary = (project.root / ".planning/PROJECT.md").read_text("utf-8")

    assert done.exit == 0, done.err
    assert "does not build what the idea says" in done.err
    assert "the code does not do what the idea says" in done.out.splitlines()[-1]
    assert "not the one that the idea asks for" in summary
    assert (project.root / "src/app.py").read_text() == MINE
    status = project.json("status")
    assert "does not do what the idea says" in str(status)


@pytest.mark.parametrize("path", ["README.md", "tests/test_guests.py", "greeter/guests.py", "greeter"])
@pytest.mark.slow
def test_it_never_overwrites_a_file_that_it_did_not_make(project: Project, path: str) -> None:
    commit(project, path)
    head = git(project.root, "rev-parse", "HEAD")

    done = project.gsd("run", EXAMPLE, *ARGUMENTS, "--here")

    assert done.exit == 1
    assert path in done.out.splitlines()[-2] + done.out.splitlines()[-1]
    assert "it did not make" in done.err
    assert (project.root / path).read_text() == MINE
    assert git(project.root, "rev-parse", "HEAD") == head


def edit(path: str = "greeter/guests.py", content: str = "theirs\n") -> FileEdit:
    return FileEdit(path=path, content=content)


def test_its_own_files_are_recognized_by_another_process(tmp_path: Path) -> None:
    record = tmp_path / "git" / "files.json"
    project = tmp_path / "project"
    OwnFiles(project=project, record=record).claim([edit()])
    (project / "greeter").mkdir(parents=True)
    (project / "greeter/guests.py").write_text("half of it")

    OwnFiles(project=project, record=record).claim([edit()])
    with pytest.raises(Permanent, match=r"'greeter/guests\.py'"):
        OwnFiles(project=project, record=tmp_path / "lost.json").check([edit()])
    record.write_text("{not json")
    with pytest.raises(Permanent):
        OwnFiles(project=project, record=record).check([edit()])


def test_a_link_is_never_followed_even_if_its_name_is_the_rehearsals_own(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    project.mkdir()
    own = OwnFiles(project=project, record=tmp_path / "files.json")
    own.claim([edit(), edit("README.md")])
    (project / "greeter").symlink_to(outside)
    (project / "README.md").symlink_to(tmp_path / "missing")

    for path in ("greeter/guests.py", "README.md"):
        with pytest.raises(Permanent):
            own.check([edit(path)])


def test_lines_may_be_added_to_a_file_of_others_and_a_file_with_the_same_content_may_stay(
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitignore").write_text("node_modules/\n")
    (tmp_path / "same.py").write_text("theirs\n")
    added = FileEdit(path=".gitignore", content="__pycache__/\n", append=True)

    OwnFiles(project=tmp_path, record=None).claim([added, edit("same.py")])


def test_the_flag_is_documented() -> None:
    assert "--here" in call("run", "--help").output
