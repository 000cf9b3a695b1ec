"""``gsd phase``: the commits that it makes, what it refuses, and a kill in the middle."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_core.codec import unstructure
from gsd_core.journal.lock import ProjectLock
from gsd_core.planning.edits import Edit, apply_edit
from gsd_core.planning.phase_edit import plan_addition
from gsd_core.run.edits import LOG, StoredEdit
from tests.cli.bench import Bench, call
from tests.planning.test_phase_edit import FILES, content, phases, removal
from tests.planning.trees import make_project


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(bench: Bench) -> Path:
    """Return a project with committed planning files and a dirty file of the user."""
    make_project(bench.root, FILES)
    git(bench.root, "add", ".")
    git(bench.root, "commit", "-qm", "begin")
    (bench.root / "mine.txt").write_text("mine")
    git(bench.root, "add", "mine.txt")
    return bench.root


def done(*arguments: str | Path) -> dict[str, Any]:
    result = call("phase", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_each_edit_is_one_commit_of_the_planning_files_only(root: Path) -> None:
    added = done("add", "-C", root, "Export", "to", "PDF", "--goal", "It prints")
    inserted = done("insert", "-C", root, "02", "Hot fix")
    removed = done("remove", "-C", root, "2.1")
    log = git(root, "log", "--format=%s").splitlines()

    assert (added["phase"], added["folder"]) == ("5", ".planning/phases/05-export-to-pdf")
    assert (inserted["phase"], removed["phase"]) == ("2.1", "2.1")
    assert log == [
        "docs: remove phase 2.1 Hot fix",
        "docs: insert phase 2.1 Hot fix",
        "docs: add phase 5 Export to PDF",
        "begin",
    ]
    assert git(root, "status", "--short") == "A  mine.txt\n"
    assert phases(root)["5"] == ("Export to PDF", ("4",))
    assert removed["commit"] == git(root, "rev-parse", "HEAD").strip()


def test_what_is_not_committed_is_kept_beside_the_journal(root: Path) -> None:
    (root / ".planning/phases/02-middle/02-CONTEXT.md").write_text("changed, not committed")
    (root / ".planning/phases/02-middle/draft.md").write_text("new")
    removed = done("remove", "-C", root, "2")
    copy = Path(removed["copy"])

    assert (copy / "02-CONTEXT.md").read_text() == "changed, not committed"
    assert (copy / "draft.md").read_text() == "new"
    assert removed["renumbered"] == {"3": "2", "4": "3"}


@pytest.mark.parametrize("config", ['{"planning": {"commit_docs": false}}', '{"commit_docs": false}'])
def test_nothing_is_committed_if_the_project_says_so(root: Path, config: str) -> None:
    (root / ".planning/config.json").write_text(config)
    added = done("add", "-C", root, "Export")

    assert added["commit"] is None
    assert git(root, "log", "--format=%s") == "begin\n"
    assert "5" in phases(root)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("add",), 2, "Missing argument 'NAME...'"),
        (("add", ""), 2, "cannot have a phase named ''"),
        (("insert", "9", "New"), 2, "phase '9' does not exist; the project has 1, 2"),
        (("insert", "two", "New"), 2, "not a phase number: 'two'"),
        (("remove", "../1"), 2, "not a phase number: '../1'"),
        (("remove", "9"), 2, "phase '9' does not exist; the project has 1, 2"),
        (("remove", "1"), 2, "phase 1 has executed work"),
        (("remove",), 2, "Missing argument 'PHASE'"),
    ],
)
def test_bad_input_changes_nothing(root: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    before = content(root)
    result = call("phase", arguments[0], "-C", root, *arguments[1:])

    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert content(root) == before
    assert git(root, "log", "--format=%s") == "begin\n"


def test_a_folder_without_a_project_or_a_repository_is_refused(tmp_path: Path) -> None:
    assert "no project here" in call("phase", "add", "-C", tmp_path, "New").stderr
    make_project(tmp_path, FILES)
    before = content(tmp_path)
    assert "is in no git repository" in call("phase", "add", "-C", tmp_path, "New").stderr
    assert content(tmp_path) == before


def interrupted(root: Path, edit: Edit, *command: str, applied: bool = False) -> Path:
    """Leave what a command leaves that is killed after it has begun, or after it has written its files."""
    directory = root / ".git" / "gsd"
    directory.mkdir(exist_ok=True)
    base = git(root, "rev-parse", "HEAD").strip()
    stored = StoredEdit(
        edit=edit, id="1a2b", owner="", commits=True, base=base, command=command, applied=applied
    )
    if applied:
        apply_edit(root, edit, directory)
    (directory / LOG).write_text(json.dumps(unstructure(stored)))
    return directory / LOG


@pytest.mark.parametrize("applied", [False, True])
def test_the_same_command_finishes_one_that_was_interrupted_and_adds_nothing(
    root: Path, applied: bool
) -> None:
    log = interrupted(root, plan_addition(root, "Export"), "phase", "add", "Export", applied=applied)
    again = call("phase", "add", "-C", root, "Export")

    assert (again.exit_code, "added phase 5: Export" in again.stdout) == (0, True), again.stderr
    assert "is finished now" in again.stderr
    assert [*phases(root)] == ["1", "2", "3", "4", "5"]
    assert git(root, "log", "--format=%s") == "docs: add phase 5 Export\nbegin\n"
    assert not log.exists()


@pytest.mark.parametrize("words", [("add", "Export"), ("insert", "2", "Hot fix")], ids=["add", "insert"])
def test_the_same_phase_is_added_once_until_somebody_has_worked_on_it(
    root: Path, words: tuple[str, ...]
) -> None:
    first = done(words[0], "-C", root, *words[1:])
    again = call("phase", words[0], "-C", root, *words[1:])
    head = git(root, "rev-parse", "--short", "HEAD")
    (root / first["folder"] / "notes.md").write_text("later")
    other = done(words[0], "-C", root, *words[1:])

    assert (again.exit_code, again.stderr) == (0, "warning: done already: nothing is changed\n")
    assert f"added phase {first['phase']}: {words[-1]}" in again.stdout
    assert first["commit"].startswith(head.strip())
    assert (first["phase"], other["phase"]) in [("5", "6"), ("2.1", "2.2")]


def test_an_edit_that_git_took_back_before_its_commit_is_made_again(root: Path) -> None:
    interrupted(root, plan_addition(root, "Export"), "phase", "add", "Export", applied=True)
    git(root, "add", "-A")
    git(root, "reset", "-q", "--hard")
    again = call("phase", "add", "-C", root, "Export")

    assert "added phase 5: Export" in again.stdout
    assert [*phases(root)] == ["1", "2", "3", "4", "5"]
    assert git(root, "log", "--format=%s") == "docs: add phase 5 Export\nbegin\n"


def test_a_commit_that_was_made_before_the_kill_is_found(root: Path) -> None:
    log = interrupted(root, plan_addition(root, "Export"), "phase", "add", "Export", applied=True)
    git(root, "commit", "-qm", "docs: add phase 5 Export\n\nGSD-Edit: 1a2b", ".planning/ROADMAP.md")
    # What another tool writes after that is its own.
    (root / ".planning/STATE.md").write_text("# State\n")
    other = call("todo", "add", "-C", root, "Look")

    assert other.exit_code == 0, other.stderr
    assert "finished first: add phase 5 Export" in other.stderr
    subjects = git(root, "log", "--format=%s").splitlines()
    assert subjects == ["docs: capture todo - Look", "docs: add phase 5 Export", "begin"]
    assert not log.exists()


def test_the_reading_commands_name_the_one_that_finishes_it(root: Path) -> None:
    log = interrupted(root, removal(root, "2"), "phase", "remove", "2")
    os.rename(root / ".planning/phases/03-more", root / ".planning/phases/02-more")  # noqa: PTH104
    named = json.loads(call("next", "-C", root, "--json").stdout)["command"]
    health = json.loads(call("health", "-C", root, "--json").stdout)

    assert named.endswith(" phase remove 2")
    assert f"finish it with: {named}" in call("status", "-C", root).stdout
    assert [one["fix"] for one in health["warnings"] if one["code"] == "W102"] == ["gsd phase remove 2"]
    assert log.exists()
    assert call("phase", "remove", "2", "-C", root).exit_code == 0
    assert json.loads(call("next", "-C", root, "--json").stdout)["command"] != named


def test_a_stored_edit_cannot_lead_out_of_the_planning_files(root: Path) -> None:
    log = interrupted(root, plan_addition(root, "Export"), "phase", "add", "Export")
    log.write_text(log.read_text().replace(".planning/ROADMAP.md", ".git/hooks/pre-commit"))
    result = call("todo", "add", "-C", root, "Look")

    assert (result.exit_code, "cannot be read" in result.stderr) == (2, True), result.stderr
    assert not (root / ".git/hooks/pre-commit").exists()
    assert "cannot be read" in call("status", "-C", root).stdout


def test_an_edit_that_was_interrupted_is_finished_first(root: Path) -> None:
    log = interrupted(root, removal(root, "2"))
    os.rename(root / ".planning/phases/03-more", root / ".planning/phases/02-more")  # noqa: PTH104
    result = call("phase", "add", "-C", root, "Export")

    assert result.exit_code == 0, result.stderr
    assert "finished first: remove phase 2" in result.stderr
    assert [*phases(root)] == ["1", "2", "3", "4"]
    assert phases(root)["4"] == ("Export", ("3",))
    assert git(root, "log", "--format=%s").splitlines()[:2] == [
        "docs: add phase 4 Export",
        "docs: remove phase 2 Middle",
    ]
    assert not log.exists()


def test_a_damaged_record_of_an_edit_is_named(root: Path) -> None:
    directory = root / ".git" / "gsd"
    directory.mkdir(exist_ok=True)
    (directory / LOG).write_text('{"what": "remove"}')
    result = call("phase", "add", "-C", root, "Export")

    assert result.exit_code == 2
    assert str(directory / LOG) in result.stderr
    assert "5" not in phases(root)


def test_a_phase_that_the_unfinished_run_worked_on_keeps_its_number(root: Path) -> None:
    bench = Bench(root)
    bench.start()
    bench.fact("attempt.started", "3/plan", kind="plan", phase="3", executor="native")
    bench.fact("attempt.started", "7/plan", kind="plan", phase="7", executor="native")
    refused = call("phase", "remove", "-C", root, "2")
    kept = call("phase", "remove", "-C", root, "2", "--keep-numbers")

    assert refused.exit_code == 2
    assert "the unfinished run has worked on phase 3" in refused.stderr
    assert kept.exit_code == 0, kept.stderr
    assert [*phases(root)] == ["1", "3", "4"]
    assert done("add", "-C", root, "New")["phase"] == "8"


def test_while_a_run_is_active_adding_is_a_request_and_removing_is_refused(root: Path) -> None:
    bench = Bench(root)
    bench.start()
    before = content(root)
    with ProjectLock(root / ".git" / "gsd", command="gsd run"):
        removed = call("phase", "remove", "-C", root, "4")
        added = call("phase", "add", "-C", root, "Export", "--goal", "It prints")
        bad = call("phase", "insert", "-C", root, "9", "Export")

    assert removed.exit_code != 0
    assert f"pid {os.getpid()}" in removed.stderr
    assert added.exit_code == 0, added.stderr
    assert bad.exit_code == 2
    assert [(item["kind"], item["name"], item["goal"]) for item in bench.inbox()] == [
        ("phase", "Export", "It prints")
    ]
    assert content(root) == before


def test_a_project_with_an_active_workstream_is_not_taken_for_another_one(root: Path) -> None:
    folder = root / ".planning/workstreams/payments"
    folder.mkdir(parents=True)
    (root / ".planning/active-workstream").write_text("payments\n")
    before = content(root)
    for arguments in (("phase", "add", "New"), ("plans", "1"), ("gaps", "1"), ("run", "--no-input")):
        result = call(arguments[0], *arguments[1:], "-C", root)
        assert (result.exit_code, "the workstream 'payments' is active" in result.stderr) == (2, True), (
            arguments,
            result.stderr,
        )
    assert content(root) == before
    folder.rmdir()
    assert call("phases", "-C", root).exit_code == 0
