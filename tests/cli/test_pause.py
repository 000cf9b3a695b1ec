"""``gsd pause``, and what ``gsd status`` and ``gsd next`` say about what other tools left behind."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gsd_core import Question
from gsd_core.journal.lock import ProjectLock
from gsd_core.planning.handoff import read_handoff, waiting_for
from tests.cli.bench import DATABASE, EVIL, Bench, call
from tests.peer.reader import ask_gsd, needs_gsd
from tests.planning.trees import make_project, plan_text

FILES = {
    "ROADMAP.md": "### Phase 1: Core\n**Goal**: It works\n### Phase 2: More\n",
    "phases/01-core/01-CONTEXT.md": "c",
    "phases/01-core/01-01-PLAN.md": plan_text(),
}
UPSTREAM = {
    "version": "1.0",
    "phase": "02",
    "phase_name": "More",
    "plan": 1,
    "task": 3,
    "total_tasks": 7,
    "status": "paused",
    "blockers": [{"description": "The API is down", "type": "external", "workaround": ""}],
    "human_actions_pending": [{"action": "Buy a key", "context": "x", "blocking": True}],
    "async_jobs": [{"manifest": ".planning/async-jobs/a.json", "job_id": "train-7", "status": "running"}],
    "next_action": "Write the parser",
    "context_notes": f"It is {EVIL} late",
}
CONTINUE = """---
context: phase
phase: 02-more
task: 3
total_tasks: 7
status: in_progress
---

# BLOCKING CONSTRAINTS

<current_state>
In the middle.
</current_state>

<next_action>
Start with: the parser
</next_action>
"""


@pytest.fixture
def root(bench: Bench) -> Path:
    return make_project(bench.root, FILES)


def test_a_pause_writes_what_is_due_and_commits_only_that(root: Path) -> None:
    (root / "mine.txt").write_text("mine")
    result = call("pause", "-C", root, "the", "parser", "is", "slow", "--json")
    assert result.exit_code == 0, result.stderr
    paused = json.loads(result.stdout)
    data = json.loads((root / ".planning/HANDOFF.json").read_text())
    text = (root / ".planning/phases/01-core/.continue-here.md").read_text()
    show = subprocess.run(
        ["git", "show", "--format=%s", "--name-only"], cwd=root, capture_output=True, text=True, check=True
    )
    found = read_handoff(root)

    assert (paused["phase"], paused["plan"], paused["stopped"]) == ("1", "01-01", None)
    assert (data["status"], data["total_tasks"], data["phase_dir"]) == (
        "paused",
        1,
        ".planning/phases/01-core",
    )
    assert data["remaining_tasks"] == [{"id": 1, "name": "Do it", "status": "not_started"}]
    assert "mine.txt" in data["uncommitted_files"]
    assert data["context_notes"] == "the parser is slow"
    assert "\nphase: 01-core\n" in text
    assert show.stdout.split() == [
        *("wip:", "01-core", "paused", "at", "0/1"),
        *(".planning/HANDOFF.json", ".planning/phases/01-core/.continue-here.md"),
    ]
    assert found is not None
    assert (found.phase, found.task, found.notes) == ("1", "task 1 of 1", "the parser is slow")
    assert found.next_action == data["next_action"]
    # No process is at work when this is read, and whoever reads it may be anywhere.
    assert data["next_action"].endswith("continue with: gsd run --phases 1")

    assert call("pause", "-C", root).exit_code == 0
    again = read_handoff(root)
    assert again is not None
    assert again.notes == "the parser is slow"

    head = _head(root)
    repeated = call("pause", "-C", root)
    assert (repeated.exit_code, repeated.stderr) == (0, "warning: done already: nothing is changed\n")
    assert _head(root) == head


def _head(root: Path) -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("command", ["status", "next", "progress"])
def test_what_a_pause_left_to_do_works_as_it_is_printed(root: Path, command: str) -> None:
    assert call("pause", "-C", root).exit_code == 0

    noted = next(line for line in call(command, "-C", root).stderr.splitlines() if "to do next" in line)

    assert noted.endswith(f"continue with: gsd -C {root} run --phases 1")


@pytest.mark.parametrize("command", ["status", "next"])
def test_what_gsds_own_tools_left_is_shown(root: Path, command: str) -> None:
    (root / ".planning/HANDOFF.json").write_text(json.dumps(UPSTREAM))
    folder = root / ".planning/phases/02-more"
    folder.mkdir()
    (folder / ".continue-here.md").write_text(CONTINUE)
    waiting: dict[str, object] = {
        "status": "waiting",
        "type": "decision_point",
        "question": "Red or blue?",
        "options": [],
    }
    (root / ".planning/WAITING.json").write_text(json.dumps(waiting))
    result = call(command, "-C", root)

    assert result.exit_code == 0, result.stderr
    for said in (
        "another tool waits for an answer: Red or blue?",
        "work was paused in phase 2, task 3 of 7",
        "before it continues: The API is down",
        "before it continues: Buy a key",
        "before it continues: the job train-7 was running: look at its result",
        "to do next: Write the parser",
    ):
        assert f"warning: {said}" in result.stderr
    assert "\x1b" not in result.stderr


@needs_gsd
@pytest.mark.parametrize("command", ["status", "next", "progress"])
def test_a_signal_that_gsds_own_tool_wrote_is_shown_until_it_takes_it_back(root: Path, command: str) -> None:
    signal = (
        "--type",
        "decision_point",
        "--question",
        "Red or blue?",
        "--options",
        "red|blue",
        "--phase",
        "1",
    )
    written = ask_gsd(root, "state", "signal-waiting", *signal)
    shown = call(command, "-C", root)
    ask_gsd(root, "state", "signal-resume")

    assert written["signaled"]
    assert "another tool waits for an answer: Red or blue?" in shown.stderr
    assert "waits for an answer" not in call(command, "-C", root).stderr


def test_an_old_handoff_without_json_is_read(root: Path) -> None:
    (root / ".planning/phases/01-core/.continue-here.md").write_text(CONTINUE)
    found = read_handoff(root)

    assert found is not None
    assert (found.phase, found.next_action) == ("2", "Start with: the parser")


BROKEN = (
    b"",
    b"[1]",
    b'"x"',
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"phase": [1], "task": "x", "blockers": {"a": 1}, "next_action": 7, "human_actions_pending": [1]}',
    b'{"phase": null, "blockers": [[], null, {"description": 3}]}',
    b" " * 300_000,
)


def test_a_broken_handoff_harms_nothing(root: Path) -> None:
    for content in BROKEN:
        for name in ("HANDOFF.json", "WAITING.json", "phases/01-core/.continue-here.md"):
            (root / ".planning" / name).write_bytes(content)
        found = read_handoff(root)
        assert found is not None
        assert len(found.paths) == 2
        assert waiting_for(root) == ""

    assert call("next", "-C", root).exit_code == 0
    assert "work was paused" in call("status", "-C", root).stderr


def test_links_and_pipes_in_place_of_a_handoff_are_not_read(root: Path) -> None:
    (root / ".planning/HANDOFF.json").symlink_to("/etc/passwd")
    os.mkfifo(root / ".planning/WAITING.json")
    os.mkfifo(root / ".planning/phases/01-core/.continue-here.md")

    assert read_handoff(root) is None
    assert "warning" not in call("status", "-C", root).stderr


def test_a_pause_needs_a_project(tmp_path: Path) -> None:
    assert "no project here" in call("pause", "-C", tmp_path).stderr


def test_an_earlier_note_stays_whole_and_cannot_control_the_terminal(root: Path) -> None:
    note = f"{'long ' * 100}end{EVIL}"
    (root / ".planning/HANDOFF.json").write_text(json.dumps({"phase": "1", "context_notes": note}))

    assert call("pause", "-C", root).exit_code == 0

    kept = json.loads((root / ".planning/HANDOFF.json").read_text())["context_notes"]
    assert kept.startswith("long " * 100 + "end")
    assert "\x1b" not in kept
    shown = [line for line in call("status", "-C", root).stderr.splitlines() if "noted:" in line]
    assert len(shown) == 1
    assert len(shown[0]) < 350
    assert shown[0].endswith("…")


def test_a_question_of_several_lines_is_a_task_for_a_person_with_its_first_line(bench: Bench) -> None:
    make_project(bench.root, FILES)
    bench.start()
    lines = Question(id="q-1", text="Which of these?\n- a bus\n- a tram", options=DATABASE.options)
    bench.ask(lines, step="1/execute/01-01")

    assert call("pause", "-C", bench.root).exit_code == 0

    text = (bench.root / ".planning/phases/01-core/.continue-here.md").read_text()
    assert "- Which of these? … (read all of it with: gsd questions)" in text
    assert "a tram" not in text
    shown = call("next", "-C", bench.root).stderr
    assert "before it continues: Which of these? …" in shown


def test_a_pause_names_the_question_that_the_run_waits_for(bench: Bench) -> None:
    make_project(bench.root, FILES)
    bench.start()
    bench.work()
    bench.ask()
    lock = ProjectLock(bench.root / ".git" / "gsd")
    lock.acquire()

    def end_when_asked() -> None:
        while not bench.inbox():
            time.sleep(0.02)
        lock.release()

    run = threading.Thread(target=end_when_asked)
    run.start()
    result = call("pause", "-C", bench.root)
    run.join()

    assert result.exit_code == 0, result.stderr
    assert "2/execute/02-02 waits for an answer to q-1" in result.stderr
    assert "finished" not in result.stderr
    assert [item["kind"] for item in bench.inbox()] == ["stop"]
