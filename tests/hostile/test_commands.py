"""``gsd`` in repositories that somebody else made: nothing outside of them is run, read or written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.project import EXAMPLE, FAKE, no_problems
from tests.hostile.conftest import Scene
from tests.hostile.tricks import (
    CONTENTS,
    FILTERS,
    LAYOUTS,
    LINKS,
    PROGRAMS,
    Trick,
    filters,
    logs_elsewhere,
    phases_elsewhere,
    planning_folder_elsewhere,
    plant,
    state_file_elsewhere,
)
from tests.run.harness import git

READING: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("next",),
    ("requirements",),
    ("log",),
    ("phases",),
    ("plugins",),
    ("health",),
    ("gaps", "3"),
)
RUN = ("run", *FAKE, "--yes")


def read_everything(scene: Scene, commands: tuple[tuple[str, ...], ...] = READING) -> None:
    """Run the commands that only read."""
    (scene.at.outside / "ran").unlink(missing_ok=True)  # planting some tricks runs them
    for command in commands:
        scene.gsd(*command)


def name_of(trick: Trick) -> str:
    return trick.__name__


@pytest.mark.slow
def test_programs_of_all_kinds_at_once(scene: Scene) -> None:
    plant(scene.at, (*PROGRAMS, *FILTERS))
    git_dir = scene.at.root / ".git"
    (scene.at.root / "x.evil").write_text("x\n")

    read_everything(scene)

    assert list(scene.problems()) == []
    assert all(done.exit in (0, 1) for done in scene.outputs), [done.err for done in scene.outputs]
    assert git_dir.is_dir()


@pytest.mark.slow
def test_links_pipes_and_contents_at_once(scene: Scene) -> None:
    # Those two would hide the others.
    plant(scene.at, tuple(one for one in LINKS if one not in (planning_folder_elsewhere, phases_elsewhere)))
    plant(scene.at, CONTENTS[:1])
    read_everything(scene)
    scene.gsd(*RUN)

    assert list(scene.problems()) == []
    assert scene.outputs[-1].exit == 2


@pytest.mark.slow
# CI tries every fourth one, and all links and pipes at once; `nox -s long` tries the others.
@pytest.mark.parametrize(
    "trick",
    [
        pytest.param(one, id=name_of(one), marks=[pytest.mark.long] if number % 4 else [])
        for number, one in enumerate((*LINKS, *CONTENTS))
        if one not in (logs_elsewhere, state_file_elsewhere)
    ],
)
def test_each_bad_file(scene: Scene, trick: Trick) -> None:
    trick(scene.at)
    read_everything(scene, (("requirements",), ("gaps", "3")))
    scene.gsd(*RUN, limit=60, **no_problems())

    assert list(scene.problems()) == []
    assert max(done.seconds for done in scene.outputs[:-1]) < 20


@pytest.mark.slow
@pytest.mark.parametrize("trick", LAYOUTS, ids=name_of)
def test_each_repository_that_leads_elsewhere(scene: Scene, trick: Trick) -> None:
    trick(scene.at)
    before = scene.at.changes_outside()
    for command in (("status",), ("gaps", "3"), RUN):
        done = scene.gsd(*command)
        assert done.seconds < 15
        if command == ("status",) and "src" in trick.__name__:
            continue  # it starts no git that would read this file
        assert done.exit == 2, done.err
        assert done.err.startswith("error: ")
        assert "hint: " in done.err

    if (journal := scene.project.journal_file).is_symlink():
        journal.unlink()  # the teardown reads it
    assert scene.at.changes_outside() == before
    assert scene.at.ran == ""


@pytest.mark.slow
def test_a_whole_run_in_a_repository_full_of_programs(scene: Scene) -> None:
    """It works as if they were not there, and commits."""
    for path in git(scene.at.root, "ls-files", ".planning").splitlines():
        (scene.at.root / path).unlink()
    git(scene.at.root, "commit", "-qam", "no project yet")
    plant(scene.at, PROGRAMS)
    (scene.at.root / ".git" / "hooks").rename(scene.at.root / ".git" / "no-hooks")
    git(scene.at.root, "-c", "core.fsmonitor=false", "add", "-A", ".gitattributes", ".gitinclude")
    git(scene.at.root, "-c", "core.fsmonitor=false", "commit", "-qm", "tricks")
    (scene.at.outside / "ran").unlink(missing_ok=True)

    done = scene.gsd("run", EXAMPLE, *FAKE, "--yes", "--allow-dirty", limit=120, **no_problems())

    assert done.exit == 0, done.err
    assert list(scene.problems()) == []
    assert scene.project.facts("task.committed")


def test_a_run_refuses_to_commit_without_a_filter(scene: Scene) -> None:
    (scene.at.root / "x.evil").write_text("x\n")
    git(scene.at.root, "add", "-A")
    git(scene.at.root, "commit", "-qm", "x")
    filters(scene.at)

    done = scene.gsd(*RUN)

    assert done.exit == 2
    assert "filter.evil.clean = " in done.err
    assert "--trust" in done.err
    assert list(scene.problems()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["./tools/clean", "python3 clean.py", "cd tools && $PWD/clean.py", "cat <a.py"]
)
def test_a_filter_in_the_project_cannot_be_trusted(scene: Scene, command: str) -> None:
    """An agent could change it, and git runs it outside of any sandbox."""
    at = scene.at
    (at.root / "x.evil").write_text("x\n")
    (at.root / "clean.py").write_text(f"open({str(at.outside / 'ran')!r}, 'a').write('x')\n")
    git(at.root, "add", "-A")
    git(at.root, "commit", "-qm", "x")
    at.attributes("*.evil filter=evil")
    at.config("filter.evil.clean", command)

    listed = scene.project.json("trust", "--show")
    done = scene.gsd(*RUN, "--trust")

    assert [want for want in listed["wants"] if want["kind"] == "program"] == []
    assert done.exit == 2
    assert "filter.evil.clean" in done.err
    assert "git config --global" in done.err
    assert list(scene.problems()) == []


@pytest.mark.slow
def test_a_trusted_filter_runs_until_it_changes(scene: Scene) -> None:
    for path in git(scene.at.root, "ls-files", ".planning").splitlines():
        (scene.at.root / path).unlink()
    scene.at.attributes("tests/*.py filter=rot")
    git(scene.at.root, "add", "-A")
    git(scene.at.root, "commit", "-qm", "no project yet")
    for part in ("clean", "smudge"):
        scene.at.config(f"filter.rot.{part}", "tr A-Za-z N-ZA-Mn-za-m")
    scene.at.config("filter.rot.required", "true")
    given = ("run", EXAMPLE, *FAKE, "--yes", "--allow-dirty")

    refused = scene.gsd(*given)
    done = scene.gsd(*given, "--trust", limit=120, **no_problems())

    assert (refused.exit, done.exit) == (2, 0), done.err
    assert "filter.rot.smudge = tr A-Za-z N-ZA-Mn-za-m (.git/config)" in refused.err
    assert "vzcbeg havggrfg" in git(scene.at.root, "show", "HEAD:tests/test_guests.py")
    assert "import unittest" in (scene.at.root / "tests" / "test_guests.py").read_text()
    assert scene.project.json("trust", "--show")["trusted"] is True
    scene.at.config("filter.rot.clean", "tr b-z B-Z")
    assert scene.project.json("trust", "--show")["trusted"] is False


@pytest.mark.slow
@pytest.mark.parametrize("trick", [logs_elsewhere, state_file_elsewhere, phases_elsewhere], ids=name_of)
def test_a_run_writes_nothing_through_links(scene: Scene, trick: Callable[..., None]) -> None:
    for path in git(scene.at.root, "ls-files", ".planning").splitlines():
        (scene.at.root / path).unlink()
    git(scene.at.root, "commit", "-qam", "no project yet")
    trick(scene.at)

    scene.gsd("run", EXAMPLE, *FAKE, "--yes", "--allow-dirty", limit=120, **no_problems())

    assert list(scene.problems()) == []


@pytest.mark.slow
def test_what_a_run_writes_for_itself_is_private(scene: Scene) -> None:
    for path in git(scene.at.root, "ls-files", ".planning").splitlines():
        (scene.at.root / path).unlink()
    git(scene.at.root, "commit", "-qam", "no project yet")

    done = scene.gsd("run", EXAMPLE, *FAKE, "--yes", limit=120, **no_problems())

    assert done.exit == 0, done.err
    own = [scene.at.root / ".git" / "gsd", scene.at.root / ".planning" / "autopilot"]
    files = [
        path for folder in own for path in folder.rglob("*") if path.is_file() and path.name != ".gitignore"
    ]
    assert len(files) > 5
    assert [path for path in files if path.stat().st_mode & 0o077] == []
    assert own[0].stat().st_mode & 0o077 == 0
