"""Workstreams of gsd-core: read by the commands that show a project, and refused by those that work on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gsd_core.cli.workstream import VARIABLE
from tests.cli.bench import Bench, call, said
from tests.peer.reader import ask_gsd, needs_gsd
from tests.planning.trees import make_project, plan_text

ROADMAP = """# Roadmap

- [x] **Phase 1: Card** - cards work
- [ ] **Phase 2: Refund** - refunds work

### Phase 1: Card
### Phase 2: Refund
**Depends on**: Phase 1
"""
FILES = {
    "PROJECT.md": "# Shop\n",
    "workstreams/payments/ROADMAP.md": ROADMAP,
    "workstreams/payments/STATE.md": "---\nworkstream: payments\n---\n\n## Decisions\n\n- Use cents\n",
    "workstreams/payments/phases/01-card/01-01-PLAN.md": plan_text(),
    "workstreams/payments/phases/01-card/01-01-SUMMARY.md": "---\nphase: 01\n---\n\n**Cards are charged**\n",
    "workstreams/payments/phases/02-refund/02-CONTEXT.md": "c",
    "workstreams/search/ROADMAP.md": "# Roadmap\n\n### Phase 1: Index\n",
    "active-workstream": "payments\n",
}


@pytest.fixture
def root(bench: Bench) -> Path:
    return make_project(bench.root, FILES)


def names(root: Path, *arguments: str) -> list[str]:
    return [phase["name"] for phase in said("phases", "-C", root, *arguments)["phases"]]


def test_the_active_workstream_is_read_and_another_one_can_be_chosen(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = said("progress", "-C", root)
    due = said("next", "-C", root)

    assert names(root) == ["Card", "Refund"]
    assert (progress["project"], progress["phases_complete"]) == ("Shop", 1)
    assert progress["plans"] == {"total": 1, "done": 1}
    assert progress["decisions"] == ["Use cents"]
    assert [summary["text"] for summary in progress["recent"]] == ["Cards are charged"]
    assert (due["step"], due["command"]) == ("2/plan", 'claude "/gsd:workstreams resume payments"')
    assert names(root, "--workstream", "search") == names(root, "--ws", "search") == ["Index"]
    monkeypatch.setenv(VARIABLE, "search")
    assert names(root) == ["Index"]
    assert names(root, "--workstream", "payments") == ["Card", "Refund"]
    assert said("next", "-C", root)["step"] == "1/discuss"


def test_status_shows_how_far_each_workstream_is(root: Path) -> None:
    (root / ".planning/workstreams/broken").mkdir()
    (root / ".planning/workstreams/broken/ROADMAP.md").write_bytes(b"\xff\xfe")
    shown = call("status", "-C", root)

    assert shown.exit_code == 0, shown.stderr
    assert "workstream payments (active): 1 of 2 phases complete" in shown.stdout
    assert "workstream search: 0 of 1 phase complete" in shown.stdout
    assert "workstream broken: .planning/workstreams/broken/ROADMAP.md" in shown.stdout
    assert "this is the workstream 'payments'; a run of gsd works on .planning itself only" in shown.stderr
    listed = {one["name"]: one for one in said("status", "-C", root)["workstreams"]}
    assert listed["payments"] == {
        "name": "payments",
        "active": True,
        "phases": 2,
        "complete": 1,
        "error": None,
    }
    assert listed["broken"]["error"]


@pytest.mark.parametrize("name", ["nothing", "../payments", "..", "a/../payments", "-x", " . "])
def test_a_name_that_is_none_is_refused(root: Path, name: str) -> None:
    for command in ("status", "progress", "phases", "next"):
        result = call(command, f"--workstream={name}", "-C", root)
        assert result.exit_code == 2
        assert "no workstream" in result.stderr
        assert "the project has payments, search" in result.stderr


def test_a_workstream_that_is_a_link_out_of_the_project_is_not_read(root: Path, tmp_path: Path) -> None:
    shutil.move(root / ".planning/workstreams/search", tmp_path / "elsewhere")
    (root / ".planning/workstreams/search").symlink_to(tmp_path / "elsewhere")

    assert "no workstream 'search'" in call("phases", "--ws", "search", "-C", root).stderr
    assert "search" not in call("status", "-C", root).stdout


def test_a_run_is_refused_with_the_command_that_continues_the_workstream(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume = 'claude "/gsd:workstreams resume payments"'
    for arguments in (("run",), ("plan", "2"), ("quick", "Fix it"), ("run", "--workstream", "payments")):
        result = call(arguments[0], "-C", root, *arguments[1:])
        assert (result.exit_code, resume in result.stderr) == (2, True), (arguments, result.stderr)
    (root / ".planning/active-workstream").unlink()
    monkeypatch.setenv(VARIABLE, "payments")
    result = call("run", "-C", root)
    assert (result.exit_code, resume in result.stderr) == (2, True), result.stderr
    assert not (root / ".git/gsd/journal.db").exists()


def test_without_a_choice_the_workstreams_are_named(root: Path) -> None:
    (root / ".planning/active-workstream").unlink()

    assert (
        "there are workstreams: payments, search (choose one with --workstream)"
        in call("phases", "-C", root).stdout
    )
    assert "there are workstreams: payments, search" in call("next", "-C", root).stdout


@needs_gsd
def test_a_project_that_gsd_moves_into_workstreams_is_read_like_gsd_reads_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in (
        "TTY",
        "SSH_TTY",
        "TMUX_PANE",
        "TERM_SESSION_ID",
        "CLAUDE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
    ):
        monkeypatch.delenv(key, raising=False)
    root = make_project(bench.root, {"ROADMAP.md": ROADMAP, "phases/01-card/01-01-PLAN.md": plan_text()})
    created = ask_gsd(root, "workstream", "create", "search", "--migrate-name", "payments")
    listed = {one["name"]: one for one in ask_gsd(root, "workstream", "list")["workstreams"]}

    ask_gsd(root, "state", "signal-waiting", "--type", "decision_point", "--question", "Red or blue?")
    assert "waits for an answer: Red or blue?" in call("status", "-C", root).stderr
    assert created["migration"]["workstream"] == "payments"
    assert names(root) == []  # the new one is active, and has no roadmap yet
    assert names(root, "--ws", "payments") == ["Card", "Refund"]
    ours = {one["name"]: one["active"] for one in said("status", "-C", root)["workstreams"]}
    assert ours == dict.fromkeys(listed, False) | {"search": True}
