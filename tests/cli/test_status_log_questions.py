"""Commands that only read: status, log, questions. They work without a run and write nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from gsd_core.journal.lock import ProjectLock
from gsd_core.journal.store import Journal
from tests.cli.bench import BEGAN, DATABASE, EVIL, Bench, call, said


@pytest.mark.parametrize("command", ["status", "log", "questions"])
def test_without_a_run_commands_report_that_and_write_nothing(bench: Bench, command: str) -> None:
    before = sorted(bench.root.rglob("*"))

    result = call(command, "-C", bench.root)

    assert result.exit_code == 0
    assert command == "log" or "no run yet" in result.stdout
    assert sorted(bench.root.rglob("*")) == before


def test_without_a_repository_there_is_no_run(tmp_path: Path) -> None:
    assert said("status", "-C", tmp_path)["status"] == "none"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    result = call("status", "-C", tmp_path / "nowhere")

    assert result.exit_code == 2
    assert result.stderr.startswith("error: no folder")


@pytest.mark.parametrize("before", [True, False])
def test_the_project_can_be_named_before_or_after_the_command(bench: Bench, before: bool) -> None:
    bench.start()
    where = ("-C", bench.root)

    found = said(*where, "status") if before else said("status", *where)

    assert found["run"] == "r-1"


def test_status_shows_an_active_run(bench: Bench) -> None:
    bench.start()
    bench.work()
    with ProjectLock(bench.root / ".git" / "gsd"):
        found = said("status", "-C", bench.root)

    assert found["schema_version"] == 1
    assert found["status"] == "running"
    assert found["owner"]["pid"] > 0
    assert found["agent"] == "fake"
    assert found["current_step"]["id"] == "2/execute/02-02"
    assert found["waits_for"] == "2/execute/02-02"
    assert found["cost"] == {"dollars": "0.42", "tokens": 1234, "calls": 1, "basis": "reported"}
    assert [(p["number"], p["status"]) for p in found["phases"]] == [
        ("1", "completed"),
        ("2", "in_progress"),
        ("3", "pending"),
    ]
    assert found["phases"][1]["steps"] == {
        "discuss": "completed",
        "plan": "completed",
        "execute": "in_progress",
        "verify": "pending",
    }


def test_status_shows_an_interrupted_run(bench: Bench) -> None:
    bench.start()
    bench.work()

    result = call("status", "-C", bench.root)

    assert "interrupted" in result.stdout
    assert f"continue with: gsd -C {bench.root} resume" in result.stdout


def test_status_shows_how_a_run_ended(bench: Bench) -> None:
    bench.start()
    bench.close("gaps", 6, "gaps remain: 02-01:T1")

    found = said("status", "-C", bench.root)

    assert (found["status"], found["exit"], found["reason"]) == ("gaps", 6, "gaps remain: 02-01:T1")


def test_status_shows_each_open_question_with_the_command_that_answers_it(bench: Bench) -> None:
    bench.start()
    bench.ask()

    shown = call("status", "-C", bench.root).stdout

    assert "? 2/execute/02-02: Which database?" in shown
    assert f"gsd -C {bench.root} answer q-1 CHOICE" in shown
    assert "waiting for an answer to q-1" in shown


def test_only_the_last_run_is_shown(bench: Bench) -> None:
    bench.start()
    bench.close()
    bench.run = "r-2"
    bench.start()

    assert said("status", "-C", bench.root)["run"] == "r-2"


def test_questions_are_shown_in_full(bench: Bench) -> None:
    bench.start()
    bench.ask()

    assert call("questions", "-C", bench.root).stdout.splitlines() == [
        "q-1  Database  (decision, 2/execute/02-02)",
        "Which database?",
        "reason: the plan leaves it open",
        "  1. SQLite (recommended): one file",
        "  2. PostgreSQL",
        f"answer with: gsd -C {bench.root} answer q-1 CHOICE",
        "",
    ]


def test_questions_as_json_have_their_options(bench: Bench) -> None:
    bench.start()
    bench.ask()

    found = said("questions", "-C", bench.root)

    assert (found["schema_version"], found["run"]) == (1, "r-1")
    assert found["questions"][0]["options"][0] == {
        "number": 1,
        "label": "SQLite",
        "description": "one file",
        "recommended": True,
    }
    assert found["questions"][0]["answer_given"] is False


def test_an_answered_question_is_no_longer_open(bench: Bench) -> None:
    bench.start()
    bench.ask()
    bench.fact("question.answered", answer={"question": DATABASE.id, "chosen": ["SQLite"], "how": "human"})

    assert said("questions", "-C", bench.root)["questions"] == []


def test_the_log_as_json_has_an_object_on_each_line(bench: Bench) -> None:
    bench.start()

    lines = [json.loads(line) for line in call("log", "--json", "-C", bench.root).stdout.splitlines()]

    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert {line["schema_version"] for line in lines} == {1}
    assert lines[0]["data"]["idea"]["name"] == "idea.md"


def test_after_is_a_cursor_and_since_is_a_time(bench: Bench) -> None:
    bench.start()

    def seqs(*args: str) -> list[int]:
        shown = call("log", "--json", "-C", bench.root, *args).stdout
        return [json.loads(line)["seq"] for line in shown.splitlines()]

    assert seqs("--after", "2") == [3]
    assert seqs("--since", BEGAN.replace(second=7).isoformat()) == [2, 3]
    assert seqs("--since", "10m") == []
    assert seqs("--after", "3") == []


def test_an_invalid_time_is_an_error_with_examples(bench: Bench) -> None:
    result = call("log", "-C", bench.root, "--since", "yesterday")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == "error: not a time: 'yesterday'"
    assert "10m" in result.stderr


def test_follow_ends_when_the_run_does(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.start()

    def instead_of_sleeping(seconds: float) -> None:
        bench.close()

    monkeypatch.setattr("time.sleep", instead_of_sleeping)

    shown = call("log", "--follow", "-C", bench.root).stdout

    assert "done, exit code 0: 3 phases complete" in shown.splitlines()[-1]


def test_text_from_others_cannot_control_the_terminal(bench: Bench) -> None:
    bench.start()
    bench.fact("attempt.started", "2/plan", kind="plan", phase="2", plan="", executor=EVIL)
    bench.fact("step.failed", "2/plan", error={"kind": EVIL, "message": EVIL, "hint": EVIL})
    bench.ask(*[type(DATABASE)(id="q-9", text=EVIL, header=EVIL, options=DATABASE.options)], step="2/plan")
    bench.fact("novel.kind", EVIL, anything=EVIL)
    bench.close("failed", 1, EVIL)

    for args in (["status"], ["log"], ["questions"], ["log", "--json"], ["status", "--json"]):
        result = call(*args, "-C", bench.root)
        assert result.exit_code == 0, result.stderr
        assert "\x1b" not in result.stdout
        assert "\u202e" not in result.stdout


def test_a_damaged_journal_is_reported(bench: Bench) -> None:
    bench.start()
    bench.journal.write_bytes(b"not a database, but long enough to be looked at" * 100)

    result = call("status", "-C", bench.root)

    assert result.exit_code == 2
    assert "is damaged" in result.stderr
    assert "hint: " in result.stderr


def test_a_journal_can_be_read_while_it_is_written(bench: Bench) -> None:
    bench.start()
    with Journal.open(bench.journal, clock=lambda: BEGAN) as journal:
        journal.append("question.withdrawn", {"key": "none"}, run="r-1")

        assert said("status", "-C", bench.root)["run"] == "r-1"


def test_a_step_whose_process_is_gone_is_not_running(bench: Bench) -> None:
    bench.start()
    bench.work()

    assert "step 2/execute/02-02: interrupted" in call("status", "-C", bench.root).stdout
    assert said("status", "-C", bench.root)["current_step"]["status"] == "interrupted"
    with ProjectLock(bench.root / ".git" / "gsd"):
        assert "step 2/execute/02-02: running" in call("status", "-C", bench.root).stdout


def test_the_answer_commands_in_json_name_the_project(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.start()
    bench.ask()

    for command in ("status", "questions"):
        [question] = said(command, "-C", bench.root)["questions"]
        assert question["answer_with"] == f"gsd -C {bench.root} answer q-1 CHOICE"
    monkeypatch.chdir(bench.root)
    assert said("questions")["questions"][0]["answer_with"] == "gsd answer q-1 CHOICE"


def test_a_journal_of_a_newer_gsd_is_named_before_any_advice(bench: Bench) -> None:
    bench.start()
    with sqlite3.connect(bench.journal) as database:
        database.execute("UPDATE event SET v = 2 WHERE kind = 'run.opened'")
    database.close()
    for command in ("next", "status"):
        said = call("-C", bench.root, command)
        assert "upgrade gsd-core" in said.stdout + said.stderr
        assert "gsd resume" not in said.stdout + said.stderr
    found = call("-C", bench.root, "health")
    assert found.exit_code == 1
    assert "E103" in found.stdout
