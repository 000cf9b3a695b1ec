"""``gsd why``: what waits for what, in real projects in each of the main states; nothing is written."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_core.journal.lock import ProjectLock
from tests.cli.bench import EVIL, Bench, call, said
from tests.planning.trees import make_project, plan_text

FILES = {
    "ROADMAP.md": (
        "- [ ] **Phase 1: Core** - a\n- [ ] **Phase 2: More** - b\n\n### Phase 1: Core\n"
        "### Phase 2: More\n**Depends on**: Phase 1\n"
    ),
    "phases/01-core/01-CONTEXT.md": "c",
    "phases/01-core/01-01-PLAN.md": plan_text(),
    "phases/01-core/01-02-PLAN.md": plan_text(depends_on='["01-01"]', wave=2),
}
STEP = "1/execute/01-01"
FAKE = ("-p", "gsd_plugins.rehearsal.fake")


@pytest.fixture
def planned(bench: Bench) -> Bench:
    make_project(bench.root, FILES)
    git(bench.root, "add", ".")
    git(bench.root, "commit", "-qm", "Plan")
    return bench


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def run(bench: Bench, **options: Any) -> None:
    """Record a run that executes the first plan, with an agent that needs no login."""
    bench.fact("run.started", idea={"name": "idea.md", "text": "…", "sha256": "ab12"})
    bench.fact("run.opened", pid=1, agent=["fake"], options={}, typed={"run": {"agent": ["fake"]}, **options})
    bench.fact("attempt.started", STEP, kind="execute", phase="1", plan="01-01")


def waiting(root: Path, *step: str) -> list[tuple[str, str, list[str]]]:
    """Return what waits, the cause, and the commands or words for the ways out."""
    found = said("why", *step, "-C", root, *FAKE)["waiting"]
    ways = [[way["command"] or way["about"] for way in one["ways"]] for one in found]
    return [(one["what"], one["cause"], each) for one, each in zip(found, ways, strict=True)]


def gsd(root: Path, rest: str) -> str:
    return f"gsd -C {root} -p gsd_plugins.rehearsal.fake {rest}"


def test_without_a_project_nothing_waits_and_the_way_to_start_one_is_said(tmp_path: Path) -> None:
    result = call("why", "-C", tmp_path)

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"nothing waits: no project here; start one with: gsd -C {tmp_path} run IDEA\n"


def test_before_a_run_and_with_a_login_that_is_missing(
    planned: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSD_AGENT", "nope")
    before = git(planned.root, "status", "--porcelain")
    found = waiting(planned.root)

    assert found[0] == ("project", "run", [gsd(planned.root, "run --phases 1")])
    assert found[1][:2] == ("project", "obstacle")
    assert "nope" in call("why", "-C", planned.root).stdout
    assert [one[:2] for one in found[2:]] == [
        (STEP, "run"),
        ("1/execute/01-02", "plans"),
        ("1/verify", "plans"),
        ("phase 2", "phases"),
    ]
    assert git(planned.root, "status", "--porcelain") == before
    assert not planned.journal.exists()


def test_a_live_run_and_one_that_was_killed(planned: Bench) -> None:
    run(planned)
    with ProjectLock(planned.root / ".git" / "gsd"):
        assert waiting(planned.root, "01-02") == [("1/execute/01-02", "plans", [])]
        assert call("why", STEP, "-C", planned.root).stdout == f"nothing waits: {STEP} is running\n"

    resume = [gsd(planned.root, "resume")]
    assert waiting(planned.root)[:2] == [("project", "run", resume), (STEP, "run", resume)]


def test_a_question_has_a_command_for_each_answer_and_the_text_says_each_way_once(planned: Bench) -> None:
    run(planned)
    planned.ask(step=STEP)
    planned.close("blocked", 3, "waiting for an answer")
    answers = [gsd(planned.root, f"answer q-1 {words}") for words in ("1", "2", "'YOUR ANSWER'")]

    assert waiting(planned.root, "1/execute/01-01") == [
        (STEP, "question", [*answers, gsd(planned.root, "resume")])
    ]
    shown = call("why", "-C", planned.root).stdout
    assert "answer q-1 1  (SQLite (recommended))\n" in shown
    assert shown.count("answer q-1 1") == 1


@pytest.mark.parametrize("unit", ["usd", "tokens", "turns"])
def test_a_run_that_ended_says_why_and_how_to_continue(planned: Bench, unit: str) -> None:
    run(planned, budget={"max_usd": "5", "max_tokens": 5, "max_turns": 5})
    planned.fact("attempt.lost", STEP, why="stopped")
    planned.close("budget", 5, f"5 is spent (raise --max-budget-{unit} and resume)")

    [first, *_] = waiting(planned.root)
    ways = [gsd(planned.root, way) for way in ("cost --by step", f"resume --max-budget-{unit} 10")]
    assert first == ("project", "run", ways)
    assert "budget: 5 is spent" in call("why", "-C", planned.root).stdout


@pytest.mark.slow
def test_what_a_start_would_refuse_is_named_as_the_start_does(planned: Bench) -> None:
    (planned.root / ".planning" / "ROADMAP.md").write_text(FILES["ROADMAP.md"] + "\n")
    (planned.root / "gsd.toml").write_text('[run]\nsandbox = "off"\n')

    refused = [one for one in waiting(planned.root) if one[1] == "obstacle"]
    hints = {hint for _, _, ways in refused for hint in ways}
    for command in (("run", "--allow-dirty"), ("run",)):
        said_by_run = call(*command, "-C", planned.root, *FAKE, "--agent", "fake")
        assert said_by_run.exit_code == 2
        assert any(hint in said_by_run.stderr for hint in hints), said_by_run.stderr
    assert any("--allow-dirty" in hint for hint in hints)


def test_another_process_that_holds_the_project_is_named(planned: Bench) -> None:
    run(planned)
    planned.close("stopped", 130, "on request")
    with ProjectLock(planned.root / ".git" / "gsd"):
        [first, *_] = waiting(planned.root)

    assert first == ("project", "process", [gsd(planned.root, "stop")])


def test_a_failure_and_what_agents_wrote_are_shown_without_control_characters(planned: Bench) -> None:
    run(planned)
    error = {"kind": "Permanent", "message": EVIL, "hint": "", "until": None}
    planned.fact("attempt.failed", STEP, error=error)
    planned.fact("timer.set", STEP, until="2099-01-02T03:04:05+00:00", why="later")
    with ProjectLock(planned.root / ".git" / "gsd"):
        found = said("why", STEP, "-C", planned.root)["waiting"]
        shown = call("why", "-C", planned.root).stdout

    assert [(one["cause"], one["until"]) for one in found] == [("timer", "2099-01-02T03:04:05+00:00")]
    assert "until 2099-01-02T03:04:05+00:00" in shown
    assert "\x1b" not in shown


def test_what_is_not_there_is_an_error_that_lists_what_is(planned: Bench) -> None:
    result = call("why", "9", "-C", planned.root)

    assert result.exit_code == 2
    assert "no step, plan or phase '9'" in result.stderr
    assert STEP in result.stderr
