"""What every command says in every situation: status, next, progress, questions and phases never disagree."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gsd_core import Inquiry, Option, Question
from gsd_core.codec import unstructure
from gsd_core.journal.lock import ProjectLock
from gsd_core.machine.state import DueStep, Options, PhaseSnapshot, PlanSnapshot, Snapshot
from tests.cli.bench import Bench, call, said, trust_everything
from tests.planning.trees import make_project, plan_text

ROADMAP = "- [ ] **Phase 1: Core** - a\n- [ ] **Phase 2: More** - b\n### Phase 1: Core\n### Phase 2: More\n"
IDEA = {"IDEA.md": "# Night Bus\n\nIt shows buses.\n"}
PLANNED: dict[str, str | bytes] = {
    "PROJECT.md": "# Night Bus\n",
    "ROADMAP.md": ROADMAP,
    "phases/01-core/01-CONTEXT.md": "c",
    "phases/01-core/01-01-PLAN.md": plan_text(),
    "phases/01-core/01-02-PLAN.md": plan_text(),
}
EXECUTED = PLANNED | {"phases/01-core/01-01-SUMMARY.md": "done", "phases/01-core/01-02-SUMMARY.md": "done"}
VERIFIED = EXECUTED | {"phases/01-core/01-VERIFICATION.md": "---\nstatus: passed\n---\n"}
DONE_ROADMAP = "- [x] **Phase 1: Core** - a\n### Phase 1: Core\n"
COMPLETE = {**VERIFIED, "ROADMAP.md": DONE_ROADMAP}
CLOSED = {"PROJECT.md": "# Night Bus\n", "ROADMAP.md": "## ✅ v1.0 Night\n"}
LISTED = Question(id="q-1", text="Which of these?\n\n- a bus\n- a tram\n", options=(Option(label="Bus"),))
CLOSE = Question(id="q-2", text="Close v1.0?", options=(Option(label="Close it"),))
PLUGIN = """
from gsd_core import StepType, implements
from gsd_core.hookspecs import gsd_steps


@implements(gsd_steps)
def steps():
    yield StepType(kind="inspect", before="complete", due=lambda now: True, title="Look at it twice")
"""
STEP = "1/execute/01-01"


def started(bench: Bench, *, asked: str = "") -> None:
    bench.fact("run.started", idea={"name": "idea.md", "text": "", "sha256": "ab"})
    opened(bench, asked=asked)


def opened(bench: Bench, *, asked: str = "") -> None:
    options = unstructure(Options(only_asked=bool(asked)))
    bench.fact("run.opened", pid=1, version="0.1.0", agent=["fake"], options=options)
    if asked:
        bench.fact("step.asked", asked, text="words")


def works(bench: Bench) -> None:
    started(bench)
    bench.fact("attempt.started", STEP, kind="execute", phase="1", plan="01-01")


def waits(bench: Bench) -> None:
    works(bench)
    bench.ask(LISTED, step=STEP)
    bench.fact("attempt.lost", STEP, questions=["q-1"])
    bench.close("blocked", 3, f"{STEP} is waiting for an answer: gsd -C elsewhere answer q-1 CHOICE")


def waits_now(bench: Bench) -> None:
    works(bench)
    bench.ask(LISTED, step=STEP)


def stopped(bench: Bench) -> None:
    started(bench)
    bench.close("stopped", 130, "on request")


def failed(bench: Bench) -> None:
    works(bench)
    bench.fact("step.failed", STEP, error={"kind": "Permanent", "message": "no compiler", "hint": ""})
    bench.close("failed", 1, f"{STEP}: no compiler")


def finished(bench: Bench) -> None:
    started(bench)
    bench.close("done", 0, "1 phase complete")


def closing(bench: Bench) -> None:
    """A milestone whose close was asked about; the setting for that is off now."""
    started(bench)
    phase = PhaseSnapshot(number="1", ticked=True, plans=(PlanSnapshot(id="01-01", summary=True),))
    seen = Snapshot(milestone="v1.0", phases=(phase,), due=(DueStep(kind="close", before="end"),))
    bench.fact("project.observed", **unstructure(seen))
    bench.fact("attempt.started", "close/v1.0", kind="close", phase="", plan="")
    inquiry = Inquiry(step="close/v1.0", questions=(CLOSE,))
    bench.fact("question.asked", "close/v1.0", inquiry=unstructure(inquiry), occasion="1")
    bench.fact("attempt.lost", "close/v1.0", questions=["q-2"])
    bench.close("blocked", 3, "close/v1.0 is waiting for an answer: gsd answer q-2 CHOICE")


def one_step(bench: Bench) -> None:
    """A survey that failed, and then one that did not."""
    started(bench, asked="survey")
    bench.close("failed", 1, "survey: no model")
    opened(bench, asked="survey")
    bench.fact("attempt.started", "survey", kind="survey", phase="", plan="")
    bench.fact("step.completed", "survey", commit="abc", paths=[])
    bench.close("done", 0, "survey done")


def step_after_run(bench: Bench) -> None:
    finished(bench)
    opened(bench, asked="quick/001-x")
    bench.close("failed", 1, "quick/001-x: no model")


def nothing(_: Bench) -> None:
    pass


def plugin(bench: Bench) -> None:
    folder = bench.root / ".gsd" / "plugins"
    folder.mkdir(parents=True)
    (folder / "inspect_twice.py").write_text(PLUGIN)
    trust_everything(bench.root)


# name: files, journal, active process, status of the run, next step, open questions, complete, executed plans
Situation = tuple[dict[str, Any], Callable[[Bench], None], bool, str, str | None, list[str], int, int]
SITUATIONS: dict[str, Situation] = {
    "idea only": (IDEA, nothing, False, "none", "init", [], 0, 0),
    "planned by another tool": (PLANNED, nothing, False, "none", STEP, [], 0, 0),
    "running": (PLANNED, works, True, "running", STEP, [], 0, 0),
    "running and waiting": (PLANNED, waits_now, True, "running", STEP, ["q-1"], 0, 0),
    "waiting": (PLANNED, waits, False, "blocked", STEP, ["q-1"], 0, 0),
    "killed": (PLANNED, works, False, "interrupted", STEP, [], 0, 0),
    "stopped": (EXECUTED, stopped, False, "stopped", "1/verify", [], 0, 2),
    "failed": (PLANNED, failed, False, "failed", STEP, [], 0, 0),
    "complete": (COMPLETE, finished, False, "done", None, [], 1, 2),
    "phase added": (
        {**COMPLETE, "ROADMAP.md": f"{DONE_ROADMAP}### Phase 2: More\n"},
        *(finished, False, "done", "2/discuss", [], 1, 2),
    ),
    "close no longer wanted": (COMPLETE, closing, False, "blocked", None, [], 1, 2),
    "milestone closed": (CLOSED, finished, False, "done", None, [], 0, 0),
    "close asked, closed by another tool": (CLOSED, closing, False, "blocked", None, [], 0, 0),
    "single step": (PLANNED, one_step, False, "none", STEP, [], 0, 0),
    "single step after a run": (COMPLETE, step_after_run, False, "done", "quick/001-x", [], 1, 2),
    "plugin's step due": (VERIFIED, plugin, False, "none", "1/inspect", [], 0, 2),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_all_commands_agree(bench: Bench, name: str) -> None:
    files, journal, active, run_status, step, questions, complete, executed = SITUATIONS[name]
    make_project(bench.root, files)
    journal(bench)
    with ProjectLock(bench.root / ".git" / "gsd") if active else nullcontext():
        status, due, progress, asked, phases = (
            said(command, "-C", bench.root)
            for command in ("status", "next", "progress", "questions", "phases")
        )
        texts = {
            command: call(command, "-C", bench.root).stdout for command in ("status", "next", "progress")
        }

    assert (status["status"], due["step"]) == (run_status, step)
    assert status["next"] == progress["next"] == due
    assert (
        [one["id"] for one in status["questions"]] == [one["id"] for one in asked["questions"]] == questions
    )
    for found in (status, progress):
        assert found["plans"]["done"] == executed
        assert found["phases_complete"] == complete == sum(one["complete"] for one in phases["phases"])
        assert found["phases_total"] == len(phases["phases"])
    assert status["progress"] == status["percent"] == progress["percent"]
    if phases["phases"]:
        measure = next(line for line in texts["progress"].splitlines() if " complete; " in line)
        assert measure in texts["status"].splitlines()
    if step is None:
        assert (due["command"], status["waits_for"]) == (
            None,
            "gsd resume" if run_status == "blocked" else None,
        )
        assert "nothing is due" in texts["status"]
        assert "continue with" not in texts["status"]
    elif not active:
        assert due["command"] in texts["status"]
    assert "elsewhere" not in texts["status"], "the command of the folder where the run was started"
    if questions:
        for text in texts.values():
            if "Which of these?" in text:
                assert "Which of these? …" in text
                assert "- a bus" not in text
                assert f"gsd -C {bench.root} questions" in text
        assert "- a tram" in call("questions", "-C", bench.root).stdout


def test_a_single_step_is_not_the_state_of_the_project(bench: Bench) -> None:
    make_project(bench.root, PLANNED)
    one_step(bench)
    found = said("status", "-C", bench.root)

    assert (found["exit"], found["reason"]) == (None, "")
    assert found["single_steps"] == {"outcome": "done", "exit": 0, "reason": "survey done"}
    assert "exit code 1" not in call("status", "-C", bench.root).stdout


def test_the_state_of_the_run_stays_after_a_failed_single_step(bench: Bench) -> None:
    make_project(bench.root, COMPLETE)
    step_after_run(bench)
    found = said("status", "-C", bench.root)

    assert (found["exit"], found["reason"]) == (0, "1 phase complete")
    assert found["single_steps"]["exit"] == 1


def test_the_step_of_a_plugin_is_described_and_is_among_the_steps_of_its_phase(bench: Bench) -> None:
    make_project(bench.root, VERIFIED)
    plugin(bench)
    [phase, _] = said("status", "-C", bench.root)["phases"]

    assert "Look at it twice" in said("next", "-C", bench.root)["reason"]
    assert list(phase["steps"]) == ["discuss", "plan", "execute", "verify", "inspect"]
    assert phase["steps"]["inspect"] == "pending"


def test_a_plugin_that_is_not_trusted_is_named_and_not_loaded(bench: Bench) -> None:
    make_project(bench.root, VERIFIED)
    folder = bench.root / ".gsd" / "plugins"
    folder.mkdir(parents=True)
    (folder / "evil.py").write_text("raise SystemExit('loaded')\n")

    for command in ("status", "next", "progress"):
        result = call(command, "-C", bench.root)
        assert result.exit_code == 0
        assert "'evil' is not trusted" in result.stderr
        assert "2/discuss" in result.stdout


def test_without_a_project_there_is_no_status_and_the_other_commands_say_so(tmp_path: Path) -> None:
    assert said("status", "-C", tmp_path)["next"] is None
    assert "gsd -C" in call("status", "-C", tmp_path).stdout
    for command in ("next", "progress", "phases"):
        assert call(command, "-C", tmp_path).exit_code == 2


def test_a_project_that_cannot_be_read_has_a_status_with_a_warning(bench: Bench) -> None:
    make_project(bench.root, {**PLANNED, "ROADMAP.md": b"\xff\xfe\xff"})
    bench.start()
    result = call("status", "-C", bench.root)

    assert result.exit_code == 0
    assert "cannot be found out" in result.stderr
    assert "r-1" in result.stdout
