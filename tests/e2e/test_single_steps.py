"""One step alone: each command for one step, beside a lifecycle that waits for an answer."""

from __future__ import annotations

import pytest

from gsd_core.exit_codes import ExitCode
from tests.e2e.project import EXAMPLE, FAKE, REHEARSAL, Project, defects, gate, no_problems
from tests.run.harness import git, trailed

ALONE = {
    ("verify", "1"): ("1/verify", ".planning/phases/01-greetings/01-VERIFICATION.md"),
    ("discuss", "2", "the exit codes"): ("2/discuss", ".planning/phases/02-command-line/02-CONTEXT.md"),
    ("quick", "Add", "a note"): ("quick/001-add-a-note", ".planning/quick/001-add-a-note/001-SUMMARY.md"),
    ("quick", "--full", "Add more"): (
        "quick/002-add-more",
        ".planning/quick/002-add-more/002-VERIFICATION.md",
    ),
    ("map",): ("survey", ".planning/codebase/TESTING.md"),
    ("debug", "It hangs"): ("debug/it-hangs", ".planning/debug/it-hangs.md"),
}
"""Command lines, each with its step and a file that it writes."""
SAID = {
    "verify": "verdict: ",
    "discuss": "decisions: ",
    "quick": "result: ",
    "map": "concerns: ",
    "debug": "root cause: ",
}
"""How the summary of the result begins, by command."""


@pytest.mark.slow
def test_single_steps_leave_a_parked_run_where_it_is_and_survive_a_kill(project: Project) -> None:
    project.create()
    project.environment = no_problems(PHASES="2", QUESTION="1")
    parked = project.gsd("run", EXAMPLE, *FAKE, "--no-input")
    before = project.json("status")
    planned = project.gsd("plan", "2", *FAKE[:2], "--yes")
    waiting = project.json("questions")["questions"]

    waits = gate(project)
    waits.close()
    started = project.start("execute", "1", *FAKE[:2], "--yes")
    assert started.until(waits.reached.exists)
    meanwhile = project.gsd("quick", "Add a note", *FAKE[:2], "--yes")
    started.kill(group=True)
    waits.open()
    executed = project.gsd("execute", "1", *FAKE[:2], "--yes")

    assert (parked.exit, planned.exit, executed.exit) == (3, 0, 0), executed.err
    assert meanwhile.exit == ExitCode.USAGE
    assert "another gsd is running on this project: pid" in meanwhile.err
    for command, (step, file) in ALONE.items():
        head = git(project.root, "rev-parse", "HEAD").strip()
        # One of them with the real command-line client, which has to leave the run's agent as it was.
        agent = (*REHEARSAL, "--here") if "debug" in command else FAKE[:2]
        ended = project.gsd(*command, *agent, "--yes")

        assert ended.exit == 0, f"{command}: {ended.err}"
        assert f"wrote {file}\n" in ended.out
        assert f"\n{SAID[command[0]]}" in ended.out
        assert project.facts("step.completed")[-1].step == step
        assert file in git(project.root, "diff", "--name-only", head).split()
        assert git(project.root, "status", "--porcelain") == ""
    after, due = project.json("status"), project.json("next")
    again = project.gsd("execute", "1", *FAKE[:2], "--yes")
    resumed = project.gsd("resume", *FAKE[:2], "--yes")
    finished = project.gsd("plan", "2", *FAKE[:2], "--yes")

    assert [question["step"] for question in waiting] == ["1/execute/01-01"]
    assert {key: after[key] for key in ("run", "status", "exit", "reason", "agent")} == {
        key: before[key] for key in ("run", "status", "exit", "reason", "agent")
    }
    assert due["step"] == "1/complete"
    assert (resumed.exit, project.json("status")["status"]) == (0, "done"), resumed.err
    for refused, what in ((again, "phase 1 is executed already"), (finished, "phase 2 is planned already")):
        assert (refused.exit, what in refused.err, "hint: " in refused.err) == (2, True, True), refused.err
    assert trailed(project.root).count(("1/execute/01-01", "01-01/1")) == 1
    assert list(defects(project)) == []
