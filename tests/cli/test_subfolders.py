"""Two projects in one repository, each with runs of its own, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gsd_core
from gsd_core.journal.store import Journal
from tests.run.harness import now
from tests.terminal.pseudo_terminal import on_a_terminal

HOME = Path(gsd_core.__file__).parents[1]
FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")
SMALL = {"GSD_FAKE_PHASES": "1", "GSD_FAKE_GAP": "false", "GSD_FAKE_OVERLOADED": "false"}
LIMIT = 180


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two projects' folders, and files of the user that are committed, changed and new."""
    root = tmp_path / "repository"
    for name, title in (("a", "A greeter"), ("b", "A farewell")):
        folder = root / "packages" / name
        folder.mkdir(parents=True)
        (folder / "idea.md").write_text(f"# {title}\n\nIt speaks to people by name.\n")
    (root / "README.md").write_text("1\n")
    (root / "staged.txt").write_text("1\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "base")
    (root / "README.md").write_text("the user's change\n")
    (root / "packages" / "notes.txt").write_text("the user's new file\n")
    (root / "staged.txt").write_text("2\n")
    git(root, "add", "staged.txt")
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def start(folder: Path, *args: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gsd_core", *args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | SMALL | {"PYTHONPATH": f"{HOME}:{HOME / 'plugins'}"} | environment,
    )


def gsd(folder: Path, *args: str, **environment: str) -> str:
    process = start(folder, *args, **environment)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err
    return out


def status(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(gsd(folder, "status", "--json"))
    return found


def journal_of(root: Path, name: str) -> Path:
    [found] = (root / ".git" / "gsd" / "projects").glob(f"packages-{name}-*/journal.db")
    return found


def tasks_of(root: Path, name: str) -> list[str]:
    """Return the commits of the project's tasks, as its journal has them."""
    with Journal.open(journal_of(root, name), clock=now, writable=False) as journal:
        facts = list(journal.events(facts_only=True))
    assert len({fact.run for fact in facts}) == 1
    return [fact.data["commit"] for fact in facts if fact.kind == "task.committed"]


def check_done(root: Path, name: str) -> None:
    """Check that the project is complete and that its commits contain its own files only."""
    folder = root / "packages" / name
    assert status(folder)["status"] == "done"
    assert (folder / ".planning" / "ROADMAP.md").is_file()
    [run] = set(re.findall(r"GSD-Run: (\S+)", git(root, "log", f"--grep=GSD-Project: packages/{name}")))
    assert run == status(folder)["run"]
    commits = git(root, "log", "--format=%H", f"--grep=GSD-Run: {run}").split()
    assert len(commits) > 5
    assert set(tasks_of(root, name)) <= set(commits)
    for commit in commits:
        changed = git(root, "show", "--format=", "--name-only", commit).splitlines()
        assert [path for path in changed if not path.startswith(f"packages/{name}/")] == []
    # Every task is committed once, although the two projects have tasks of the same names.
    steps = git(root, "log", "--format=%(trailers:key=GSD-Step)%(trailers:key=GSD-Task)", f"--grep={run}")
    found = [step for step in steps.split("\n\n") if "GSD-Task" in step]
    assert len(found) == len(set(found)) == len(tasks_of(root, name))


def check_the_users_files(root: Path) -> None:
    assert git(root, "status", "--porcelain").splitlines() == [
        "M README.md",
        "M  staged.txt",
        "?? packages/notes.txt",
    ]
    assert (root / "README.md").read_text() == "the user's change\n"
    assert not (root / ".planning").exists()
    assert not (root / ".git" / "gsd" / "journal.db").exists()
    assert list((root / ".git").glob("**/*.lock")) == []


@pytest.mark.long
def test_two_projects_of_a_repository_are_built_one_after_the_other(repository: Path) -> None:
    a, b = (repository / "packages" / name for name in ("a", "b"))
    gsd(a, "run", "idea.md", *FAKE, "--yes")
    check_done(repository, "a")
    before = git(repository, "log", "-1", "--format=%H", "--", "packages/a")
    assert status(b)["run"] in (None, "")
    # -C names the folder as well as the working directory does.
    gsd(repository, "-C", "packages/b", "run", str(b / "idea.md"), *FAKE, "--yes")

    check_done(repository, "a")
    check_done(repository, "b")
    assert git(repository, "log", "-1", "--format=%H", "--", "packages/a") == before
    assert json.loads(gsd(a, "health", "--json"))["status"] == "healthy"
    check_the_users_files(repository)


@pytest.mark.slow
def test_two_projects_of_a_repository_are_built_at_the_same_time(repository: Path) -> None:
    folders = [repository / "packages" / name for name in ("a", "b")]
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsleep 0.3\n")
    hook.chmod(0o755)
    runs = [start(folder, "run", "idea.md", *FAKE, "--yes") for folder in folders]
    ends = [(run.communicate(timeout=LIMIT)[1], run.returncode) for run in runs]

    assert [code for _, code in ends] == [0, 0], ends
    for folder in folders:
        check_done(repository, folder.name)
    check_the_users_files(repository)


@pytest.mark.slow
def test_a_killed_run_is_resumed_while_another_project_of_the_repository_waits(repository: Path) -> None:
    a, b = (repository / "packages" / name for name in ("a", "b"))
    environment = SMALL | {"NO_COLOR": "1", "GSD_BUDGET_MAX_TURNS": "10000"}
    with on_a_terminal("gsd_core", "run", str(b / "idea.md"), "-C", str(b), *FAKE, **environment) as waiting:
        waiting.until("\n> ")
        run = start(a, "run", "idea.md", *FAKE, "--yes")
        while not list(a.glob(".planning/**/*-PLAN.md")):
            assert run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.communicate()
        (b / "draft.txt").write_text("b's work\n")
        gsd(a, "resume", *FAKE[:2], "--yes")
        assert (b / "draft.txt").read_text() == "b's work\n"
        (b / "draft.txt").unlink()
        waiting.type("1\n")
        waiting.until("done: 1 phase complete")

    for name in ("a", "b"):
        check_done(repository, name)
    check_the_users_files(repository)


@pytest.mark.slow
def test_changes_elsewhere_in_the_repository_do_not_count_as_the_projects(repository: Path) -> None:
    a = repository / "packages" / "a"
    (repository / "packages" / "b" / "idea.md").write_text("changed\n")
    gsd(a, "run", "idea.md", *FAKE, "--yes", "--dry-run")
    (a / "idea.md").write_text("# A greeter\n\nIt greets.\n")
    run = start(a, "run", "idea.md", *FAKE, "--yes")
    _, err = run.communicate(timeout=LIMIT)

    assert run.returncode == 2
    assert "idea.md" in err
    assert "README.md" not in err


def test_a_project_that_its_repository_ignores_is_refused(repository: Path) -> None:
    (repository / ".gitignore").write_text("scratch/\n")
    folder = repository / "scratch"
    folder.mkdir()
    (folder / "idea.md").write_text("# A greeter\n")
    run = start(folder, "run", "idea.md", *FAKE, "--yes")
    _, err = run.communicate(timeout=LIMIT)

    assert run.returncode == 2
    assert "ignored" in err
    assert "git init" in err
    assert not (repository / ".git" / "gsd").exists()


@pytest.mark.slow
@pytest.mark.parametrize("there", [False, True], ids=["new", "empty"])
def test_a_folder_that_its_repository_ignores_becomes_a_repository(repository: Path, there: bool) -> None:
    (repository / ".gitignore").write_text("/demo/\n")
    if there:
        (repository / "demo").mkdir()
    idea = repository / "packages" / "a" / "idea.md"

    gsd(repository, "-C", "demo", "run", str(idea), *FAKE, "--yes")

    assert (repository / "demo" / ".git").is_dir()
    assert not (repository / ".git" / "gsd").exists()


@pytest.mark.slow
def test_a_new_folder_in_a_repository_belongs_to_it(repository: Path) -> None:
    idea = repository / "packages" / "a" / "idea.md"
    gsd(repository, "-C", "packages/new", "run", str(idea), *FAKE, "--yes", "--dry-run")
    assert not (repository / "packages" / "new").exists()

    gsd(repository, "-C", "packages/new", "run", str(idea), *FAKE, "--yes")

    assert not (repository / "packages" / "new" / ".git").exists()
    assert "packages/new/.planning/ROADMAP.md" in git(repository, "ls-files").splitlines()
    check_the_users_files(repository)


@pytest.mark.slow
def test_a_new_folder_that_the_repository_ignores_becomes_a_repository(repository: Path) -> None:
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text("scratch/\n")
    idea = repository / "packages" / "a" / "idea.md"

    gsd(repository, "-C", "scratch/new", "run", str(idea), *FAKE, "--yes")

    assert (repository / "scratch" / "new" / ".git").is_dir()
    assert git(repository, "rev-list", "--count", "HEAD") == "1"


def test_a_new_folder_is_not_left_behind_by_a_run_that_cannot_start(repository: Path) -> None:
    run = start(repository, "-C", "packages/new", "run", "no-such-idea.md", *FAKE, "--yes")

    assert run.wait(LIMIT) == 2
    run.communicate()
    assert not (repository / "packages" / "new").exists()
