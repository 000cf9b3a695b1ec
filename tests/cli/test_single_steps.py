"""``gsd plan`` and ``gsd execute``: what is missing for the step is said before anything is started."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.journal.store import Journal
from gsd_core.machine.state import Options
from gsd_core.run.edits import keep_asked
from gsd_core.run.last_run import read_last_run
from gsd_core.settings import journals_folder
from gsd_core.trust import KnownJournals
from tests.cli.bench import call
from tests.run import harness as h

VERDICT = "---\nphase: 01-greetings\nverified: 2026-01-02\nstatus: {}\nscore: 1/2\n---\n\n# Verification\n"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two phases whose plans were made by asked steps."""
    root = h.repository(tmp_path_factory.mktemp("planned") / "project")
    agent = h.one_phase(phases=2)
    h.do(h.request(root, agent, given=h.idea(), options=Options(phases=())))
    asked = h.request(root, agent, options=Options(only_asked=True))
    end = h.do(evolve(asked, asked={"1/plan": "", "2/plan": ""}))
    assert end.outcome == "done", end.reason
    return root


def folder(root: Path) -> Path:
    [found] = (root / ".planning" / "phases").glob("01-*")
    return found


def without_plan(root: Path) -> None:
    for file in folder(root).glob("*-PLAN.md"):
        file.unlink()


def executed(root: Path) -> None:
    for plan in folder(root).glob("*-PLAN.md"):
        plan.with_name(plan.name.replace("PLAN", "SUMMARY")).write_text("# Done\n")


def first_executed(root: Path) -> None:
    (folder(root) / "01-01-SUMMARY.md").write_text("# Done\n")


def with_code(root: Path) -> None:
    (root / "code.py").write_text("x = 1\n")
    h.git(root, "add", "code.py")
    h.git(root, "commit", "-qm", "code")


def passed(root: Path) -> None:
    executed(root)
    (folder(root) / "01-VERIFICATION.md").write_text(VERDICT.format("passed"))


@pytest.mark.parametrize(
    ("arguments", "change", "error"),
    [
        (["plan", "7"], None, "phase '7' does not exist; the project has 1, 2\nhint: list the phases"),
        (["execute", "../1"], None, "phase '../1' does not exist"),
        (["plan", "1"], None, "phase 1 is planned already: 01-01, 01-02\nhint: execute them with: gsd"),
        (
            ["plan", "1"],
            executed,
            "phase 1 is planned already: 01-01, 01-02\nhint: plan what is missing with: gsd",
        ),
        (["plan", "1", "--gaps"], None, "phase 1 was not verified"),
        (["plan", "1", "--gaps"], passed, "the last verification of phase 1 found no gaps"),
        (["execute", "1"], executed, "phase 1 is executed already: 01-01, 01-02\nhint: verify it with: gsd"),
        (["milestone", "complete"], None, "v1.0 cannot be completed: phases 1, 2 are not complete\nhint: "),
        (["execute", "2"], None, "phase 2 depends on phase 1, which is not executed\nhint: gsd"),
        (["execute", "1"], without_plan, "phase 1 has no plans\nhint: gsd"),
        (["execute", "1", "--plan", "01-07"], None, "phase 1 has no plan '01-07', but 01-01, 01-02\nhint: "),
        (["execute", "1", "--plan", "01-02"], None, "plan 01-02 depends on plans that are not executed: "),
        (["execute", "1", "--plan", "01-01"], first_executed, "plan 01-01 is executed already\nhint: "),
    ],
)
def test_a_step_that_cannot_be_done_is_refused_with_the_command_that_helps(
    planned: Path, tmp_path: Path, arguments: list[str], change: Callable[[Path], None] | None, error: str
) -> None:
    root = tmp_path / "project"
    shutil.copytree(planned, root)
    if change:
        change(root)
    before = len(h.facts(root))

    names = 2 if arguments[0] == "milestone" else 1
    result = call(*arguments[:names], "-C", root, *arguments[names:])

    assert result.exit_code == 2
    assert error in result.stderr
    assert "hint: " in result.stderr
    assert len(h.facts(root)) == before


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    result = call("execute", "1", "-C", tmp_path)

    assert (result.exit_code, "has no .planning folder" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "change", "sentence"),
    [
        (["discuss", "1", "the colors"], None, "first: settle what is open about phase 1, "),
        (["discuss", "1", "the colors"], None, "(1/discuss), because you asked for it: the colors\n"),
        (["execute", "1"], None, "first: execute plan 01-01 of phase 1, "),
        (["execute", "1"], None, "then: execute plan 01-02 of phase 1, "),
        (["execute", "1", "--plan", "01-02"], first_executed, "first: execute plan 01-02 of phase 1, "),
        (["verify", "1"], passed, "first: verify phase 1, "),
        (["verify", "1"], passed, "(1/verify), because you asked for it\n"),
        (
            ["quick", "Add a note"],
            None,
            "first: do a small task outside of the roadmap (quick/001-add-a-note)",
        ),
        (["debug", "It hangs"], None, "(debug/it-hangs), because you asked for it: It hangs\n"),
        (["map"], with_code, "first: describe the existing code (survey), because you asked for it\n"),
        (["milestone", "audit"], None, "(audit/v1.0), because you asked for it"),
        (["exec", "hello"], None, "because you asked for it: hello\n"),
        (["run"], None, "first: execute plan 01-01 of phase 1, "),
        (["run"], None, "then execute, verify and complete phase 1, "),
        (["run", "--only", "1", "--skip-verify"], None, "then execute and complete phase 1, "),
    ],
)
def test_a_dry_run_says_in_a_sentence_what_would_happen_and_writes_nothing(
    planned: Path, tmp_path: Path, arguments: list[str], change: Callable[[Path], None] | None, sentence: str
) -> None:
    root = tmp_path / "project"
    shutil.copytree(planned, root)
    if change:
        change(root)
    before = len(h.facts(root))

    result = call(*arguments, "-C", root, "--agent", "rehearsal", "--dry-run", "--allow-dirty")

    assert result.exit_code == 0, result.stderr
    assert sentence in result.stdout
    assert "no roadmap" not in result.stdout
    assert len(h.facts(root)) == before


def test_a_dry_run_of_a_new_idea_surveys_existing_code_first(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    for number in range(6):
        (root / f"part{number}.py").write_text("x = 1\n")
    h.git(root, "add", ".")
    (tmp_path / "idea.md").write_text("# A tool\n\nIt prints x.\n")

    result = call("run", tmp_path / "idea.md", "-C", root, "--agent", "rehearsal", "--dry-run", "--here")

    assert "first: describe the existing code (survey), because the project has code" in result.stdout
    assert "then discuss, plan, execute, verify and complete each phase" in result.stdout


def test_a_command_that_was_killed_before_it_said_so_reports_what_it_has_done(
    planned: Path, tmp_path: Path
) -> None:
    root = tmp_path / "project"
    shutil.copytree(planned, root)
    with Journal.open(root / ".git" / "gsd" / "journal.db", clock=h.now) as journal:
        run = read_last_run(journal).id
        KnownJournals(journals_folder()).add(journal, root, h.now())
    keep_asked(root / ".git" / "gsd", ("plan", "1", "False"), run, ["1/plan"])
    command = ("plan", "-C", root, "01", "-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--yes")
    again = call(*command, "--no-input")
    deliberate = call(*command)

    assert (again.exit_code, "has done: 1/plan" in again.stderr) == (0, True), again.output
    assert (deliberate.exit_code, "is planned already" in deliberate.stderr) == (2, True)
