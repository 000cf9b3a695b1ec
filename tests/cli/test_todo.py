"""``gsd todo``: files in GSD's format, the list in STATE.md, and requests to an active run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_core.cli.project import now
from gsd_core.journal.lock import ProjectLock
from gsd_core.journal.store import Journal
from tests.cli.bench import EVIL, Bench, call
from tests.peer.reader import ask_gsd, needs_gsd
from tests.planning.trees import make_project

STATE = """# State
## Accumulated Context
### Pending Todos

- [2026-01-01] [ui] Old — [todo file](.planning/todos/pending/gone.md)
Ask Ann about the colors.

### Blockers/Concerns

None yet.
"""


@pytest.fixture
def root(bench: Bench) -> Path:
    return make_project(bench.root, {"STATE.md": STATE, "ROADMAP.md": "### Phase 1: A\n"})


def done(*arguments: str | Path) -> dict[str, Any]:
    result = call("todo", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def pending(root: Path) -> str:
    """Return the section of STATE.md."""
    text = (root / ".planning/STATE.md").read_text("utf-8")
    return text.split("### Pending Todos\n")[1].split("### Blockers")[0]


def test_a_todo_that_is_pending_is_not_captured_again(root: Path) -> None:
    first = done("add", "-C", root, "Refresh the token")
    again = call("todo", "add", "-C", root, "Refresh the token")
    other = done("add", "-C", root, "Refresh the token\nIt expires")

    assert (again.exit_code, again.stderr) == (0, "warning: done already: nothing is changed\n")
    assert again.stdout == f"added {first['id']}: Refresh the token (1 pending todo)\n"
    assert (other["id"], other["pending"]) == (f"{first['id']}-2", 2)


def test_a_todo_is_captured_listed_and_completed(root: Path) -> None:
    added = done("add", "-C", root, "Refresh the token: it expires", "--area", "API Auth")
    listed = done("list", "-C", root)["todos"]
    text = (root / added["path"]).read_text("utf-8")
    in_state = pending(root)
    completed = done("done", "-C", root, "token")
    moved = (root / ".planning/todos/completed" / f"{added['id']}.md").read_text("utf-8")
    log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, text=True, check=True)

    assert re.fullmatch(r"\d{4}-\d\d-\d\d-refresh-the-token-it-expires", added["id"])
    assert listed == [{key: added[key] for key in ("id", "title", "area", "severity", "created", "path")}]
    assert text.endswith("\n## Problem\n\nRefresh the token: it expires\n\n## Solution\n\nTBD\n")
    assert "\narea: api-auth\n" in text
    day = added["created"][:10]
    assert in_state == (
        "\nAsk Ann about the colors.\n\n"
        f"- [{day}] [api-auth] Refresh the token: it expires — [todo file]({added['path']})\n\n"
    )
    assert completed["pending"] == 0
    assert "\nstatus: completed\n" in moved
    assert not (root / added["path"]).exists()
    assert pending(root) == "\nAsk Ann about the colors.\n\n"
    assert log.stdout.splitlines() == [
        "docs: complete todo - Refresh the token: it expires",
        "docs: capture todo - Refresh the token: it expires",
    ]


def test_two_todos_with_one_title_are_two(root: Path) -> None:
    ids = {done("add", "-C", root, f"Same\n{number}")["id"] for number in range(3)}
    ambiguous = call("todo", "done", "-C", root, "same")

    assert len(ids) == 3
    assert ambiguous.exit_code == 2
    assert all(each in ambiguous.stderr for each in ids)


@pytest.mark.parametrize("what", ["merge", "cherry-pick"])
def test_nothing_is_changed_in_the_middle_of_a_merge(root: Path, what: str) -> None:
    (root / ".git" / f"{what.replace('-', '_').upper()}_HEAD").write_text(f"{'0' * 40}\n")
    before = (root / ".planning/STATE.md").read_bytes()
    for words in (("todo", "add", "Same"), ("phase", "add", "More"), ("pause",)):
        result = call(*words, "-C", root)
        assert (result.exit_code, f"git {what} --abort" in result.stderr) == (2, True)

    assert (root / ".planning/STATE.md").read_bytes() == before
    assert not (root / ".git/gsd/edit.json").exists()
    assert not list(root.glob(".planning/todos/**/*.md"))


def test_hostile_files_and_texts_are_shown_but_do_no_harm(root: Path) -> None:
    folder = root / ".planning/todos/pending"
    folder.mkdir(parents=True)
    (folder / "binary.md").write_bytes(b"---\ntitle: \xff\n---\n")
    (folder / "bare.md").write_text("# Only a heading\n")
    (folder / "link.md").symlink_to("/etc/passwd")
    done("add", "-C", root, f"{EVIL}\n---\nstatus: x\n### Blockers")
    shown = call("todo", "list", "-C", root)

    assert [todo["title"] for todo in done("list", "-C", root)["todos"]][1:] == ["Only a heading", "binary"]
    assert "root:" not in shown.stdout
    assert "\x1b" not in shown.stdout
    assert pending(root).count("\n- ") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", " "), "a todo needs a text"),
        (("add",), "Missing argument 'TEXT...'"),
        (("done", "nothing"), "no pending todo 'nothing'"),
        (("done", "../../STATE"), "no pending todo '../../STATE'"),
    ],
)
def test_bad_input_is_refused(root: Path, arguments: tuple[str, ...], message: str) -> None:
    result = call("todo", arguments[0], "-C", root, *arguments[1:])

    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert (root / ".planning/STATE.md").read_text() == STATE


def test_while_a_run_is_active_a_todo_is_a_request(root: Path) -> None:
    bench = Bench(root)
    bench.start()
    with ProjectLock(root / ".git" / "gsd"):
        asked = done("add", "-C", root, "Later")

    assert asked["asked"]
    assert [(item["kind"], item["text"]) for item in bench.inbox()] == [("todo", "Later")]
    assert not (root / ".planning/todos").exists()


@pytest.mark.parametrize("taken", [False, True])
def test_a_request_that_nobody_was_told_about_is_done_once(
    taken: bool, root: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: object) -> None:
        raise RuntimeError("killed before it has said so")

    bench.fact("run.started")
    with ProjectLock(root / ".git" / "gsd"), monkeypatch.context() as context:
        context.setattr("gsd_core.cli.editing.print_json", killed)
        assert call("todo", "add", "-C", root, "Later", "--json").exit_code == 1
    if taken:  # and done by the run, which has ended since
        with Journal.open(bench.journal, clock=now) as journal:
            journal.consumed([item.id for item in journal.take_inbox()])

    again = call("todo", "add", "-C", root, "Later")

    assert again.exit_code == 0, again.stderr
    assert ("done already" in again.stderr) == taken
    assert bench.inbox() == []
    assert len([*root.glob(".planning/todos/pending/*")]) == (0 if taken else 1)
    third = call("todo", "add", "-C", root, "Later")
    assert (third.exit_code, "added" in third.stdout) == (0, True)


@needs_gsd
def test_gsds_own_tool_lists_and_completes_them(root: Path) -> None:
    added = done("add", "-C", root, "Refresh: the token", "--area", "api")
    found = ask_gsd(root, "init", "todos")
    ask_gsd(root, "todo", "complete", f"{added['id']}.md")

    assert [(one["area"], one["title"].strip("\"'")) for one in found["todos"]] == [
        ("api", "Refresh: the token")
    ]
    assert done("list", "-C", root)["todos"] == []
