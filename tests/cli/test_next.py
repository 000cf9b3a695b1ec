"""``gsd next``: the step that is due, in projects with and without a run."""

from __future__ import annotations

import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_core.journal.lock import ProjectLock
from gsd_core.model.ids import StepId
from tests.cli.bench import EVIL, Bench, call, repository, said
from tests.planning.trees import each_corpus_project, each_project, gsd_report, make_project, plan_text

ROADMAP = """# Roadmap

- [x] **Phase 1: Core** - it works
- [ ] **Phase 2: More** - it does more
- [ ] **Phase 5: Other** - independent

### Phase 1: Core
**Depends on**: Nothing
### Phase 2: More
**Depends on**: Phase 1
### Phase 5: Other
**Depends on**: Nothing
"""
GAPS = """---
status: gaps_found
score: 8/9 must-haves verified
gaps:
  - truth: It lasts
    status: failed
    reason: it does not
---
"""
CORE = {
    "ROADMAP.md": ROADMAP,
    "phases/01-core/01-01-PLAN.md": plan_text(),
    "phases/01-core/01-01-SUMMARY.md": "done",
    "phases/01-core/01-CONTEXT.md": "c",
    "phases/02-more/02-01-PLAN.md": plan_text(),
    "phases/02-more/02-01-SUMMARY.md": "done",
    "phases/02-more/02-CONTEXT.md": "c",
    "phases/02-more/02-VERIFICATION.md": GAPS,
    "phases/05-other/05-CONTEXT.md": "c",
    "phases/05-other/05-02-PLAN.md": plan_text(),
    "phases/05-other/05-03-PLAN.md": plan_text(),
    "phases/05-other/05-04-PLAN.md": plan_text(depends_on='["05-03"]'),
}


def shown(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = said("next", "-C", root)
    return found


def test_the_json_has_exactly_these_fields(tmp_path: Path) -> None:
    make_project(tmp_path, CORE)

    assert shown(tmp_path) == {
        "schema_version": 1,
        "step": "2/plan/r1",
        "kind": "plan",
        "phase": "2",
        "plan": None,
        "reason": "gaps found: 1 of 9",
        "command": f"gsd -C {tmp_path} run --phases 2",
        "question": None,
        "ready": ["2/plan/r1", "5/execute/05-02", "5/execute/05-03"],
    }


def test_a_plan_is_named_and_a_dependent_one_is_not_ready(tmp_path: Path) -> None:
    done = {
        "ROADMAP.md": ROADMAP.replace("[ ] **Phase 2", "[x] **Phase 2"),
        "phases/02-more/02-VERIFICATION.md": "---\nstatus: passed\n---\n",
    }
    make_project(tmp_path, CORE | done)
    found = shown(tmp_path)

    assert (found["step"], found["kind"], found["plan"]) == ("5/execute/05-02", "execute", "05-02")
    assert found["ready"] == ["5/execute/05-02", "5/execute/05-03"]
    assert "0 of 3 plans" in found["reason"]


@pytest.mark.parametrize(
    ("files", "step", "words"),
    [
        ({"phases/01-core/01-01-PLAN.md": None}, "1/plan", "no plan exists"),
        ({}, "1/verify", "not verified yet"),
        ({"phases/01-core/01-VERIFICATION.md": "---\nstatus: passed\n---\n"}, "1/complete", "passed"),
        (
            {"phases/01-core/01-VERIFICATION.md": "---\nstatus: excellent\n---\n"},
            "1/verify",
            "no verdict that can be read",
        ),
        (
            {
                "phases/01-core/01-VERIFICATION.md": (
                    "---\nstatus: human_needed\n"
                    "human_verification:\n  - test: Look\n    expected: Nice\n---\n"
                )
            },
            "1/verify",
            "1 check left",
        ),
        (
            {"ROADMAP.md": "### Phase 1: Core\nPlans:\n- [x] 01-01-PLAN.md — a\n- [ ] 01-02-PLAN.md — b\n"},
            "1/plan",
            "1 of 2 plans not written yet: 01-02",
        ),
    ],
)
def test_each_kind_of_step_has_its_reason(
    tmp_path: Path, files: dict[str, str | None], step: str, words: str
) -> None:
    core = {name: text for name, text in CORE.items() if "01-" in name} | {
        "ROADMAP.md": "### Phase 1: Core\n"
    }
    make_project(tmp_path, {name: text for name, text in (core | files).items() if text is not None})
    found = shown(tmp_path)

    assert (found["step"], found["phase"]) == (step, "1")
    assert words in found["reason"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"ROADMAP.md": "## ✅ v1.0 A\n## ✅ v1.2 B\n"}, "v1.2 is shipped: no milestone is in progress"),
        (
            {"PROJECT.md": "# A\n", "milestones/v1.0-ROADMAP.md": "# v1.0\n### Phase 1: A\n"},
            "v1.0 is shipped: no milestone is in progress",
        ),
        ({"ROADMAP.md": "## ✅ v1.0 A\n## 🚧 v1.1 B\n"}, "v1.1 has no phases yet"),
        ({"PROJECT.md": "# A\n", "STATE.md": "x"}, "there is PROJECT.md and STATE.md, but no ROADMAP.md"),
        ({"ROADMAP.md": "- [x] **Phase 1: A** - a\n"}, "1 phase complete"),
    ],
)
def test_with_nothing_due_the_step_is_null_and_the_reason_says_why(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    make_project(tmp_path, files)

    is_complete = reason == "1 phase complete"
    complete = f"gsd -C {tmp_path} milestone complete"
    assert shown(tmp_path) == {
        "schema_version": 1,
        "step": None,
        "kind": None,
        "phase": None,
        "plan": None,
        "reason": reason,
        "command": None,
        "question": None,
        "ready": [],
    }
    more = f"archive the milestone with: {complete}\n" if is_complete else ""
    if reason.endswith("no milestone is in progress"):
        more = f"start the next milestone with: gsd -C {tmp_path} run IDEA\n"
    assert call("next", "-C", tmp_path).stdout == f"nothing is due: {reason}\n{more}"
    # The other commands that show what is due say the same.
    for other in ("status", "progress"):
        assert call(other, "-C", tmp_path).stdout.endswith(f"nothing is due: {reason}\n{more}")


def test_a_wrong_setting_has_the_name_and_the_way_out_that_its_file_gives_it(tmp_path: Path) -> None:
    root = make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n", "config.json": '{"granularity": "xx"}'})

    result = call("next", "-C", root)
    settings = call("settings", "show", "-C", root)

    assert ".planning/config.json: granularity: expected one of" in result.stderr
    hint = next(line for line in settings.stderr.splitlines() if line.startswith("hint: "))
    assert hint in result.stderr.splitlines()


def test_the_settings_of_the_project_count(tmp_path: Path) -> None:
    make_project(tmp_path, {"ROADMAP.md": "### Phase 1: A\n### Phase 2: B\n"})
    assert shown(tmp_path)["step"] == "1/discuss"

    (tmp_path / "gsd.toml").write_text('[run]\nskip_discuss = true\nphases = "2"\n[unknown_plugin]\na = 1\n')

    assert shown(tmp_path)["ready"] == ["2/discuss"]


@pytest.mark.parametrize("profile", ["inherit", "adaptive"])
def test_every_model_profile_of_gsd_is_known(tmp_path: Path, profile: str) -> None:
    files = {"ROADMAP.md": "### Phase 1: A\n", "config.json": f'{{"model_profile": "{profile}"}}'}
    make_project(tmp_path, files)

    assert shown(tmp_path)["phase"] == "1"


@pytest.mark.parametrize(
    ("number", "command"), [("2.1", "run --phases 2.1"), ("12A", "run --phases 12A"), ("2-01", "run")]
)
def test_the_command_selects_the_phase_if_a_range_can_name_it(
    tmp_path: Path, number: str, command: str
) -> None:
    make_project(tmp_path, {"ROADMAP.md": f"### Phase {number}: A\n"})

    assert shown(tmp_path)["command"] == f"gsd -C {tmp_path} {command}"


def test_text_output_is_short_and_lists_what_is_ready(tmp_path: Path) -> None:
    make_project(tmp_path, CORE)
    lines = call("next", "-C", tmp_path).stdout.splitlines()

    assert lines == [
        "2/plan/r1: gaps found: 1 of 9",
        f"continue with: gsd -C {tmp_path} run --phases 2",
        "ready: 2/plan/r1, 5/execute/05-02, 5/execute/05-03",
    ]


@pytest.mark.parametrize(
    "files",
    [
        None,
        {"ROADMAP.md": "Nothing here.\n"},
        {"ROADMAP.md": b"\xff\xfe\xff"},
        {"ROADMAP.md": "### Phase 1: A\n", "config.json": "{"},
    ],
)
def test_bad_input_is_an_error_with_a_hint(tmp_path: Path, files: dict[str, str | bytes] | None) -> None:
    if files:
        make_project(tmp_path, files)
    result = call("next", "-C", tmp_path)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("hint: ")


@pytest.mark.parametrize(
    "command", [("next",), ("phases",), ("plans", "1"), ("gaps", "1"), ("requirements",)]
)
def test_without_a_project_every_command_gives_the_same_error(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    result = call(*command, "-C", tmp_path)

    assert result.exit_code == 2
    assert result.stderr == (
        f"error: no project here: '{tmp_path}' has no .planning folder\n"
        f"hint: start one with: gsd -C {tmp_path} run IDEA\n"
    )


# With a run


@pytest.fixture
def planned(bench: Bench) -> Bench:
    make_project(
        bench.root,
        {
            "ROADMAP.md": ROADMAP,
            "phases/02-more/02-CONTEXT.md": "c",
            "phases/02-more/02-01-PLAN.md": plan_text(),
            "phases/02-more/02-01-SUMMARY.md": "done",
            "phases/02-more/02-02-PLAN.md": plan_text(),
        },
    )
    bench.start()
    return bench


def test_an_unfinished_run_is_resumed(planned: Bench) -> None:
    found = shown(planned.root)

    assert (found["step"], found["command"]) == ("2/execute/02-02", f"gsd -C {planned.root} resume")
    assert "1 of 2 plans executed" in found["reason"]


@pytest.mark.parametrize("command", ["next", "status", "progress"])
def test_the_command_loads_the_plugins_that_this_one_has(
    command: str, planned: Bench, tmp_path: Path
) -> None:
    base = ("-C", planned.root, "-p", "no:uat", "--plugins-dir", tmp_path)

    assert f"gsd {' '.join(map(str, base))} resume" in call(*base, command).stdout


def test_an_interrupted_attempt_is_named_so(planned: Bench) -> None:
    planned.work()
    found = shown(planned.root)

    assert found["step"] == "2/execute/02-02"
    assert "interrupted" in found["reason"]


def test_a_step_that_runs_now_is_not_started_twice(planned: Bench) -> None:
    planned.work()
    with ProjectLock(planned.root / ".git" / "gsd"):
        found = shown(planned.root)

    assert (found["step"], found["ready"]) == ("2/execute/02-02", ["2/execute/02-02"])
    assert "running now" in found["reason"]
    assert found["command"] == f"gsd -C {planned.root} status"


def test_a_parked_step_says_what_it_waits_for_and_how_to_answer(planned: Bench) -> None:
    planned.work()
    planned.ask()
    planned.fact("attempt.lost", "2/execute/02-02", questions=["q-1"])
    planned.close("blocked", 4, "waiting for an answer")
    found = shown(planned.root)

    assert found["step"] == "2/execute/02-02"
    assert "Which database?" in found["reason"]
    assert found["command"] == f"gsd -C {planned.root} answer q-1 CHOICE"

    assert call("answer", "q-1", "1", "-C", planned.root).exit_code == 0
    found = shown(planned.root)

    assert (found["step"], found["command"]) == ("2/execute/02-02", f"gsd -C {planned.root} resume")


def test_a_failed_step_is_due_again_and_its_failure_is_shown(planned: Bench) -> None:
    planned.work()
    error = {"kind": "Permanent", "message": "the tests fail", "hint": ""}
    planned.fact("step.failed", "2/execute/02-02", error=error)
    planned.close("failed", 1, "the tests fail")
    found = shown(planned.root)

    assert found["step"] == "2/execute/02-02"
    assert "the tests fail" in found["reason"]
    assert "5/discuss" in found["ready"]


def test_after_a_finished_run_the_files_decide_and_its_options_are_kept(planned: Bench) -> None:
    planned.close()
    found = shown(planned.root)

    # `gsd run` would not have its agent: after a rehearsal it would begin to cost something.
    assert (found["step"], found["command"]) == (
        "2/execute/02-02",
        f"gsd -C {planned.root} resume --phases 2",
    )


def test_a_journal_of_a_newer_gsd_is_refused_by_commands_that_write(planned: Bench) -> None:
    planned.close()
    with sqlite3.connect(planned.journal) as database:
        database.execute("UPDATE event SET v = 2 WHERE kind = 'run.opened'")
    database.close()

    def files() -> list[str]:
        return sorted(path.name for path in (planned.root / ".planning").rglob("*"))

    before = files()
    for words in (("todo", "add", "x"), ("phase", "add", "x"), ("pause",), ("health", "--repair", "--yes")):
        refused = call("-C", planned.root, *words)
        assert (int(refused.exit_code), "upgrade gsd-core" in refused.stderr) == (2, True), words
    assert files() == before


def test_phases_are_not_changed_in_a_milestone_that_is_half_archived(planned: Bench) -> None:
    planned.fact("step.asked", "close/v1.0", text="gsd milestone complete")
    make_project(
        planned.root, {"ROADMAP.md": "# Roadmap\n\n- \u2705 **v1.0 First** - Phases 1-5 (shipped)\n"}
    )

    for words in (("phase", "add", "x"), ("phase", "insert", "2", "x"), ("phase", "remove", "5")):
        refused = call("-C", planned.root, *words)
        assert f"finish it with: gsd -C {planned.root} milestone complete" in refused.stderr, words


@pytest.mark.parametrize("begun", [False, True])
def test_a_milestone_counts_as_completed_before_only_if_nothing_of_it_is_left(
    planned: Bench, begun: bool
) -> None:
    shipped = "## Milestones\n\n- \u2705 **v1.0 First** — Phases 1-2 (shipped 2026-01-31)\n\n## Phases\n\n"
    shipped += "<details>\n<summary>\u2705 v1.0 First (Phases 1-2) — SHIPPED 2026-01-31</summary>\n\n"
    shipped += "- [x] Phase 1: Core\n- [x] Phase 2: More\n\n</details>\n"
    make_project(planned.root, {"ROADMAP.md": shipped})
    if begun:
        planned.fact("attempt.started", "close/v1.0", kind="close", phase="", plan="", executor="native")
    said = call("-C", planned.root, "milestone", "complete")

    assert said.exit_code == (2 if begun else 0), said.stderr
    assert "it was done before" in said.stdout or begun
    assert f"finish it with: gsd -C {planned.root} resume" in said.stderr or not begun


def test_nothing_is_written(planned: Bench) -> None:
    def files() -> dict[Path, bytes]:
        # SQLite has its own files beside the journal while it is read.
        return {
            path: path.read_bytes()
            for path in planned.root.rglob("*")
            if path.is_file() and "-" not in path.suffix
        }

    before = files()
    call("next", "-C", planned.root)

    assert files() == before


def test_a_hostile_project_cannot_control_the_terminal(tmp_path: Path) -> None:
    root = repository(tmp_path / "p")
    make_project(root, {"ROADMAP.md": f"### Phase 1: {EVIL}\nPlans:\n- [ ] 01-01-PLAN.md — {EVIL}\n"})
    make_project(root, {"phases/01-x/01-01-PLAN.md": f"---\n{EVIL}: [\n---\n", "STATE.md": EVIL})

    for output in ((), ("--json",)):
        result = call("next", "-C", root, *output)
        assert "\x1b" not in result.stdout + result.stderr
        assert "\u202e" not in result.stdout + result.stderr


TABLE = "\n| Phase | Milestone | Plans Complete | Status | Completed |\n|-|-|-|-|-|\n"
NEXT_ROW = "| 2. More | v1.0 | 0/1 | Not started | - |\n"
COMPLETE_IN = {
    "checkbox": ("- [x] **Phase 1: Core** - a\n", "", ""),
    "heading": ("", " ✓ COMPLETE (2026-01-31)", ""),
    "status": ("", "\n**Status**: ✅ Complete (2026-02-06)", ""),
    "table": ("", "", TABLE + "| 1. Core | v1.0 | 1/1 | ✅ **Complete** | 2026-01-31 |\n" + NEXT_ROW),
    "shifted row, open checkbox": (
        "- [ ] **Phase 1: Core** - a\n",
        "",
        TABLE + "| 1. Core | 1/1 | Complete | 2026-01-31 | - |\n",
    ),
    "position": ("", "", "Phase: 1 of 2 (Core) — COMPLETE\nStatus: Ready to plan\n"),
    "state": ("", "", "Phase: 1 of 2 (Core)\nStatus: Phase complete\n"),
}


@pytest.mark.parametrize("place", COMPLETE_IN)
def test_a_phase_that_any_place_calls_complete_is_not_verified_again_and_blocks_nothing(
    tmp_path: Path, place: str
) -> None:
    entry, title, rest = COMPLETE_IN[place]
    table, state = (rest, "") if rest.startswith("\n|") else ("", rest)
    sections = f"### Phase 1: Core{title}\n\n### Phase 2: More\n**Depends on**: Phase 1\n{table}"
    files = {
        "ROADMAP.md": f"# Roadmap\n\n{entry}\n{sections}",
        "STATE.md": f"# State\n\n## Current Position\n\n{state}",
        "phases/01-core/01-01-PLAN.md": plan_text(),
        "phases/01-core/01-01-SUMMARY.md": "done",
    }
    root = make_project(repository(tmp_path / "p"), files)
    assert shown(root)["step"] == "2/discuss"
    progress = call("progress", "-C", root).stdout
    assert "1 of 2 phases complete" in progress

    make_project(root, {"phases/01-core/01-02-PLAN.md": plan_text()})
    found = shown(root)
    assert found["step"] == "1/execute/01-02"
    assert "marked as complete" in found["reason"]
    assert "2/discuss" in found["ready"]


# Real projects

DIFFERENT_PHASE = {
    "PloganNV__gsd-town": "phase 6 is complete in the progress table; GSD reads checkboxes only",
    "PolySpade__ecom-system-master": "phase 1 is ticked; GSD takes a plan without summary for work",
    "Poom5741__mm-bot": "phase 2 has passed its verification and only lacks its check mark",
    "mirkanu__gsd-dashboard": "phase 18.1 is complete in the progress table; GSD reads checkboxes only",
    "Pouryaak__LokulMem": "phase 4 is ticked; GSD takes its missing summary for work",
    "Praciller__stockrush-go": "a table of STATE.md says that all phases are complete",
    "PromptPartner__bexio-mcp-server": "all phases are ticked; GSD takes an empty folder for work",
}
"""Projects whose due phase is not the one that GSD's tool names first."""


@each_project
def test_the_answer_is_consistent_in_every_project(project: Path) -> None:
    found = shown(project)

    assert found["reason"]
    if found["step"] is None:
        assert (found["kind"], found["phase"], found["command"], found["ready"]) == (None, None, None, [])
        return
    assert found["ready"][0] == found["step"]
    assert len(set(found["ready"])) == len(found["ready"])
    open_phases = {one["number"] for one in said("phases", "-C", project)["phases"] if not one["complete"]}
    for step in map(StepId.parse, found["ready"]):
        assert step.phase in open_phases
        assert step.kind != "execute" or step.detail in {
            plan["id"]
            for plan in said("plans", step.phase, "-C", project)["plans"]
            if not plan["has_summary"]
        }
    assert found["phase"] == StepId.parse(found["step"]).phase


@each_corpus_project
def test_the_due_phase_is_the_one_that_gsd_names_first_except_where_explained(project: Path) -> None:
    roadmap = gsd_report(project)["roadmap"]
    theirs = roadmap.get("current_phase") or roadmap.get("next_phase")
    ours = shown(project)["phase"]

    assert (ours == theirs) is (project.name not in DIFFERENT_PHASE)


def test_what_a_closed_milestone_no_longer_has_is_explained_with_the_way_on(tmp_path: Path) -> None:
    shipped = "# Roadmap\n\n## Milestones\n\n- ✅ **v1.0 Old** — Phases 1-1 (shipped 2026-01-01)\n"
    make_project(tmp_path, {"ROADMAP.md": shipped, "milestones/v1.0-REQUIREMENTS.md": "# Requirements\n"})

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    added = call("phase", "add", "More", "-C", tmp_path)
    removed = call("phase", "remove", "1", "-C", tmp_path)
    traced = call("requirements", "-C", tmp_path)

    assert (added.exit_code, removed.exit_code, traced.exit_code) == (2, 2, 0)
    assert f"start the next milestone with: gsd -C {tmp_path} run IDEA" in added.stderr
    assert "there is no roadmap" not in removed.stderr
    assert "milestones/v1.0-REQUIREMENTS.md" in traced.stdout
