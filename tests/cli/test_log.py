"""``gsd log`` for people: what was done, by step, in words, with filters and a pager."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.cli.bench import DATABASE, EVIL, Bench, call

STEP = "2/execute/02-02"


def worked(bench: Bench) -> Bench:
    """Record a run with a task, a question with its answer, a gap, a failure and its end."""
    bench.start()
    bench.fact("attempt.started", STEP, kind="execute", phase="2", plan="02-02")
    bench.fact("agent.opened", STEP, key="execute", role="executor", model="opus")
    bench.fact("agent.activity", STEP, key="execute", kind="tool", tool="mcp__gsd__task_done", text="task 1")
    check = {"command": "pytest -q", "exit": 0}
    about: dict[str, Any] = {
        "task": "02-02/1",
        "name": "Store notes",
        "commit": "abcdef0123456",
        "paths": ["a.py", "b.py"],
    }
    bench.fact("task.committed", STEP, **about, check=check)
    bench.ask()
    chosen = {"chosen": ["SQLite"], "how": "policy", "by": "--yes", "via": "yolo"}
    bench.fact("question.answered", STEP, answer={"question": DATABASE.id, **chosen})
    usage = {"input_tokens": 1000, "output_tokens": 234, "dollars": "0.42", "basis": "reported"}
    bench.fact("agent.closed", STEP, key="execute", ended="done", usage=usage)
    bench.fact("step.completed", STEP, commit="0123456789abc", subject="docs(02-02): complete plan")
    bench.fact("attempt.started", "2/verify", kind="verify", phase="2")
    gaps = [{"truth": "Notes are kept", "reason": "store.py is a stub"}]
    bench.fact("step.result", "2/verify", result={"outcome": {"type": "Verified", "report": {"gaps": gaps}}})
    bench.fact(
        "step.failed", "2/verify", error={"kind": "Permanent", "message": "no login", "hint": "log in"}
    )
    bench.close("failed", 1, "no login")
    return bench


def log(bench: Bench, *args: str) -> str:
    result = call("log", "-C", bench.root, *args)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_log_tells_each_step_in_words(bench: Bench) -> None:
    lines = [line[12:] if line.startswith("  ") else line for line in log(worked(bench)).splitlines()]

    assert lines[0].endswith(", 02 January 2026, run r-1 of idea.md")
    assert lines[1:] == [
        "· started (gsd 0.1.0, agent: fake, sandbox: none (unknown reason))",
        "",
        "2/execute/02-02  phase 2: execute plan 02-02",
        "✓ task 1: Store notes (abcdef012, 2 files)",
        "  check passed: pytest -q",
        "? Which database? (q-1)",
        "  reason: the plan leaves it open",
        "  1. SQLite",
        "  2. PostgreSQL",
        "→ SQLite (assumed, by --yes; q-1)",
        "· agent (executor): opus, 5 s, 1,234 tokens, $0.42",
        "✓ docs(02-02): complete plan (012345678, 7 s, $0.42)",
        "",
        "2/verify  phase 2: verify",
        "✗ 1 gap found",
        "  - Notes are kept: store.py is a stub",
        "✗ the step failed: no login",
        "  hint: log in",
        "",
        "✗ failed, exit code 1: no login (1 commit, $0.42, 14 s since the run began)",
    ]


def test_no_internal_name_is_in_the_log(bench: Bench) -> None:
    shown = log(worked(bench), "--kind", "activity", "--kind", "agent", "--kind", "run", "--kind", "step")

    assert "task_done: task 1" in shown
    assert "mcp__" not in shown
    assert "{" not in shown
    for kind in ("attempt.started", "run.opened", "agent.closed", "step.completed"):
        assert kind not in shown


@pytest.mark.parametrize(
    ("args", "shown", "hidden"),
    [
        (["--phase", "2"], "task 1", "started (gsd"),
        (["--phase", "02"], "task 1", "started (gsd"),
        (["--phase", "2", "--step", "audit"], "", "task 1"),
        (["--step", "2/verify"], "1 gap found", "task 1"),
        (["--step", "verify"], "1 gap found", "task 1"),
        (["--step", "2/execute"], "task 1", "1 gap found"),
        (["--kind", "question"], "→ SQLite", "task 1"),
        (["--kind", "gap", "--kind", "failure"], "1 gap found", "→ SQLite"),
        (["-n", "1"], "failed, exit code 1", "1 gap found"),
        (["--since", "1d"], "", "task 1"),
        (["--after", "11"], "1 gap found", "task 1"),
    ],
)
def test_filters_limit_what_is_shown(bench: Bench, args: list[str], shown: str, hidden: str) -> None:
    text = log(worked(bench), *args)

    assert shown in text
    assert hidden not in text


def test_filters_limit_the_records_in_json(bench: Bench) -> None:
    def kinds(*args: str) -> list[str]:
        return [json.loads(line)["kind"] for line in log(worked_once, "--json", *args).splitlines()]

    worked_once = worked(bench)

    assert len(kinds()) == 15
    assert kinds("--kind", "question") == ["question.asked", "question.answered"]
    assert kinds("--step", "2/verify", "-n", "2") == ["step.result", "step.failed"]
    assert kinds("--kind", "other") == ["project.observed"]


def test_the_prompts_of_agents_are_shown_in_full_only_if_asked_for(bench: Bench) -> None:
    worked(bench)
    text = "[System]\nYou plan.\n\n[Prompt]\nPlan phase 2.\x1b[31m"
    bench.fact("agent.activity", "2/plan", key="revise-1", kind="prompt", tool="planner", text=text)

    shown = log(bench, "--prompts").splitlines()
    assert shown[0].endswith("2/plan planner (revise-1)")
    assert shown[1:] == ["[System]", "You plan.", "", "[Prompt]", "Plan phase 2.", ""]
    assert log(bench, "--prompts", "--step", STEP) == "no prompt in the log matches\n"
    [record] = map(json.loads, log(bench, "--prompts", "--json").splitlines())
    assert record["data"]["text"].startswith("[System]")
    for args in ((), ("--kind", "activity")):
        assert "You plan." not in log(bench, *args)
    assert "You plan." in log(bench, "--json")  # which has all records of the journal


def test_a_duration_counts_from_the_start_even_if_that_is_not_shown(bench: Bench) -> None:
    assert "complete plan (012345678, 7 s, $0.42)" in log(worked(bench), "--after", "10")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--step", "2/Plan/x/y/z"], "not a step: '2/Plan/x/y/z'"),
        (["--kind", "task.committed"], "Invalid value for '--kind'"),
        (["-n", "-1"], "Invalid value for '-n'"),
    ],
)
def test_an_invalid_filter_is_a_usage_error(bench: Bench, args: list[str], message: str) -> None:
    result = call("log", "-C", bench.root, *args)

    assert result.exit_code == 2
    assert message in result.stderr


def test_records_of_another_version_are_left_out_and_do_no_harm(bench: Bench) -> None:
    bench.start()
    bench.fact("novel.kind", STEP, surprise=EVIL)
    bench.fact("task.committed", STEP, nothing="known")
    bench.fact("question.answered", STEP, answer="a text")
    bench.fact("timer.set", STEP, until="soon")

    assert log(bench).count("\n") == 2
    assert len(log(bench, "--json").splitlines()) == 7


def at_a_terminal(bench: Bench, *args: str, columns: int, **environment: str) -> tuple[int, str]:
    """Run ``gsd log`` with a terminal as its standard output, and return its exit code and the output."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color"} | environment
    environ.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "gsd_core", "log", "-C", str(bench.root), *args], stdout=slave, env=environ
    )
    os.close(slave)
    text = b""
    try:
        while part := os.read(master, 65536):
            text += part
    except OSError:
        pass  # the terminal has no other end any more
    os.close(master)
    return process.wait(), text.decode().replace("\r\n", "\n")


def test_a_pager_shows_the_log_at_a_terminal_only(bench: Bench, tmp_path: Path) -> None:
    pager = tmp_path / "my pager"
    pager.write_text("#!/bin/sh\nsed 's/^/PAGED /'\n")
    pager.chmod(0o755)
    worked(bench)
    named = {"GSD_PAGER": f"'{pager}' -x", "PAGER": "false", "NO_COLOR": "1"}

    code, paged = at_a_terminal(bench, columns=40, **named)
    _, plain = at_a_terminal(bench, "--no-pager", columns=40, **named)

    assert code == 0
    assert "✓ task 1: Store notes" in paged
    assert all(line.startswith("PAGED") for line in paged.splitlines())
    assert [line.removeprefix("PAGED ") for line in paged.splitlines()] == plain.splitlines()
    assert max(map(len, plain.splitlines())) <= 40
    assert "\x1b" not in plain


def test_a_pager_of_the_repository_is_not_used(bench: Bench) -> None:
    worked(bench)
    less = bench.root / "bin" / "less"
    less.parent.mkdir()
    less.write_text("#!/bin/sh\nsed 's/^/STOLEN /'\n")
    less.chmod(0o755)
    path = os.pathsep.join([str(less.parent), os.environ["PATH"]])

    code, shown = at_a_terminal(bench, columns=80, PATH=path, GSD_PAGER="less")

    assert code == 0
    assert "Store notes" in shown
    assert "STOLEN" not in shown


def test_a_pager_that_is_closed_early_is_not_an_error(bench: Bench) -> None:
    worked(bench)

    code, _ = at_a_terminal(bench, columns=80, GSD_PAGER="true")

    assert code == 0


def test_an_empty_log_says_why(bench: Bench) -> None:
    before = log(bench)
    worked(bench)

    assert before == "no run yet in this project, so no log\n"
    assert log(bench, "--step", "audit") == "nothing in the log matches\n"
    assert log(bench, "--step", "audit", "--json") == ""


@pytest.mark.parametrize("more", [[], ["--json"], ["--follow"]])
def test_a_phase_or_step_that_does_not_exist_is_an_error_that_says_what_exists(
    bench: Bench, more: list[str]
) -> None:
    plan = bench.root / ".planning"
    plan.mkdir(exist_ok=True)
    (plan / "ROADMAP.md").write_text("# Roadmap\n\n## Phases\n\n### Phase 1: Notes\n**Goal**: Notes\n")
    worked(bench)
    gone = log(bench, "--phase", "2")  # not in the roadmap any more
    for wrong in (["--phase", "77"], ["--step", "77/plan"], ["--step", "nonsense"], ["--step", "1/nonsense"]):
        result = call("log", "-C", bench.root, *wrong, *more)

        assert result.exit_code == 2
        known = "the project has 1" if "77" in " ".join(wrong) else "discuss, "
        assert known in (result.stdout if "--json" in more else result.stderr)

    assert "task 1" in gone
    assert log(bench, "--phase", "1") == "nothing in the log matches\n"
