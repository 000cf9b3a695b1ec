"""A milestone is audited and closed, and another idea starts the next one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from attrs import define, evolve

from gsd_core.errors import IdeaError, ProjectError
from gsd_core.exit_codes import ExitCode
from gsd_core.journal.store import Journal
from gsd_core.machine.state import Options, State
from gsd_core.planning.audit import read_audit
from gsd_core.planning.frontmatter import Value, as_maps
from gsd_core.planning.requirements import parse_requirements
from gsd_core.planning.survey import read_planning, survey
from gsd_core.planning.traceability import count_verified
from gsd_core.run.last_run import read_last_run
from gsd_core.run.runtime import RunEnd, RunRequest
from gsd_core.run.tracing import trace_all
from gsd_core.views.status import current_step, open_questions
from gsd_plugins.rehearsal import FakeAgent, Scenario
from tests.peer.reader import ask_gsd, needs_gsd

from . import harness as h
from .test_crash import Crash, Fuse, with_crash

pytestmark = pytest.mark.slow

IDEA_2 = "# Greeter two\n\nGreet people in French too.\n"
CLOSE = {"close/v1.0": "gsd milestone complete"}
AUDIT = {"audit/v1.0": "gsd milestone audit"}


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose only phase is complete, and whose milestone was audited."""
    root = h.repository(tmp_path_factory.mktemp("complete") / "project")
    end = h.do(h.request(root, h.one_phase(), given=h.idea()))
    assert (end.outcome, end.exit) == ("done", 0)
    return root


@pytest.fixture
def project(complete: Path, tmp_path: Path) -> Path:
    """A copy of the complete project."""
    return Path(shutil.copytree(complete, tmp_path / "project", symlinks=True))


def second() -> FakeAgent:
    return FakeAgent(Scenario(IDEA_2, phases=1, question=False, gap=False, overloaded=False))


def asked(root: Path, steps: dict[str, str], *, yes: bool = True) -> RunRequest:
    given = h.request(root, h.one_phase(), yes=yes)
    return evolve(given, asked=steps, options=Options(only_asked=True))


def next_idea(root: Path) -> RunRequest:
    return h.request(root, second(), given=h.idea(IDEA_2))


def planning_file(root: Path, name: str) -> str:
    return (root / ".planning" / name).read_text()


def commit(root: Path, name: str, text: str) -> None:
    (root / ".planning" / name).write_text(text)
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", f"edit {name}")


def last_gaps(end: RunEnd) -> tuple[str, int]:
    return end.outcome, end.exit


# The audit


def test_the_audit_comes_once_when_all_phases_are_complete(complete: Path) -> None:
    assert h.trailed(complete)[-1] == ("audit/v1.0", "")
    head = read_audit(complete, "v1.0")
    assert (head.text("status"), head.get("scores")) == (
        "passed",
        {"requirements": "3/3", "phases": "1/1", "integration": "not checked", "flows": "not checked"},
    )
    before = h.git(complete, "rev-parse", "HEAD")

    end = h.do(h.request(complete, h.one_phase()))

    assert (end.outcome, h.git(complete, "rev-parse", "HEAD")) == ("done", before)


def test_a_run_that_finds_everything_complete_audits_nothing(project: Path) -> None:
    (project / ".planning/v1.0-MILESTONE-AUDIT.md").unlink()
    h.git(project, "commit", "-qam", "remove the audit")
    h.journal(project).unlink()

    end = h.do(h.request(project, h.one_phase()))

    assert end.outcome == "done"
    assert not (project / ".planning/v1.0-MILESTONE-AUDIT.md").exists()


def with_orphan(root: Path, identity: str = "EXTRA-01") -> None:
    text = planning_file(root, "REQUIREMENTS.md")
    line = f"- [ ] **{identity}**: User can undo the last entry\n\n## v2 Requirements"
    commit(root, "REQUIREMENTS.md", text.replace("## v2 Requirements", line))


def test_a_requirement_without_a_phase_gets_one_and_then_is_a_question(project: Path) -> None:
    with_orphan(project)

    end = h.do(h.request(project, h.one_phase()))

    assert last_gaps(end) == ("done", 0)
    [phase] = [one for one in read_planning(project).phases if one.number == "2"]
    assert (phase.requirements, phase.depends_on, phase.ticked) == (("EXTRA-01",), ("1",), True)
    assert phase.criteria == ("User can undo the last entry",)
    head = read_audit(project, "v1.0")
    assert (head.text("status"), head.texts("gap_phases")) == ("passed", ("2",))
    steps = [step for step, _ in h.trailed(project)]
    assert [step for step in steps if step.startswith("audit")] == [
        "audit/v1.0",
        "audit/v1.0",
        "audit/v1.0/r1",
    ]

    with_orphan(project, "EXTRA-02")
    end = h.do(h.request(project, h.one_phase()))

    # --yes takes the recommended answer, which nobody gave: the gap stays one.
    assert last_gaps(end) == ("gaps", ExitCode.GAPS)
    assert "3" not in [one.number for one in read_planning(project).phases]
    end = h.do(h.request(project, h.one_phase()))
    assert last_gaps(end) == ("gaps", ExitCode.GAPS), "resuming does not turn it into success"


def test_an_audit_that_is_asked_for_reports_gaps_and_adds_nothing(project: Path) -> None:
    with_orphan(project)

    end = h.do(asked(project, AUDIT))

    assert last_gaps(end) == ("gaps", ExitCode.GAPS)
    head = read_audit(project, "v1.0")
    gaps = as_maps(cast("dict[str, Value]", head.get("gaps"))["requirements"])
    assert [(gap["id"], gap["status"]) for gap in gaps] == [("EXTRA-01", "orphaned")]
    assert head.text("status") == "gaps_found"
    assert [one.number for one in read_planning(project).phases] == ["1"]


def test_phases_that_were_not_verified_are_in_the_audit(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), options=Options(skip_verify=True)))

    assert last_gaps(end) == ("done", 0)
    text = planning_file(root, "v1.0-MILESTONE-AUDIT.md")
    head = read_audit(root, "v1.0")
    assert head.text("status") == "tech_debt"
    assert as_maps(cast("dict[str, Value]", head.get("gaps"))["requirements"]) == ()
    assert "Not verified" in str(head.get("tech_debt"))
    assert count_verified(asyncio.run(trace_all(root))) == 0
    assert "has no verification that covers its work" in text
    assert "phase 1 is not verified" in text


# Closing


def tree(root: Path) -> dict[str, str]:
    paths = [path for path in h.git(root, "ls-tree", "-rz", "--name-only", "HEAD").split("\0") if path]
    return {path: (root / path).read_text() for path in paths} | {
        "status": h.git(root, "status", "--porcelain")
    }


def test_closing_archives_the_milestone_and_tags_it(project: Path) -> None:
    (project / ".planning/phases/01-greetings/shot.png").write_bytes(b"\x89PNG\xff\x00")
    h.git(project, "add", "-A")
    h.git(project, "commit", "-qm", "a picture")
    roadmap, files = planning_file(project, "ROADMAP.md"), set(tree_paths(project))

    end = h.do(asked(project, CLOSE))

    assert last_gaps(end) == ("done", 0)
    assert h.git(project, "rev-parse", "v1.0^{commit}") == h.git(project, "rev-parse", "HEAD")
    assert h.git(project, "cat-file", "-t", "v1.0").strip() == "tag"
    assert h.git(project, "status", "--porcelain") == ""
    now = set(tree_paths(project))
    assert {path.replace("milestones/v1.0-phases", "phases") for path in now} >= {
        path for path in files if "/phases/" in path
    }
    assert not any(path.startswith(".planning/phases/") for path in now)
    assert planning_file(project, "milestones/v1.0-ROADMAP.md") == roadmap
    assert {".planning/REQUIREMENTS.md", ".planning/v1.0-MILESTONE-AUDIT.md"}.isdisjoint(now)
    assert ".planning/milestones/v1.0-MILESTONE-AUDIT.md" in now
    archived = parse_requirements(planning_file(project, "milestones/v1.0-REQUIREMENTS.md"))
    assert [one.id for one in archived if one.done] == ["CORE-01", "CORE-02", "DOC-01"]
    assert "## v1.0 Greeter (Shipped: " in planning_file(project, "MILESTONES.md")
    assert "- ✓ User can see a greeting for each guest — v1.0" in planning_file(project, "PROJECT.md")
    assert "Awaiting next milestone" in planning_file(project, "STATE.md")
    found = survey(project)
    assert [(m.version, m.shipped) for m in found.milestones] == [("v1.0", True)]
    [phase] = found.phases(every=True)
    assert (phase.number, phase.complete, phase.status) == ("1", True, "complete")

    with pytest.raises(ProjectError, match="no milestone is in progress"):
        h.do(h.request(project, h.one_phase()))
    with pytest.raises(IdeaError, match="is the idea of the last milestone"):
        h.do(h.request(project, h.one_phase(), given=h.idea()))


def test_a_roadmap_that_is_kept_in_milestones_is_continued_and_closed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = FakeAgent(Scenario(h.IDEA, phases=2, question=False, gap=False, overloaded=False))
    h.do(h.request(root, agent, given=h.idea(), options=Options(phases=("1",))))
    planning = root / ".planning"
    (planning / "milestones").mkdir()
    (planning / "ROADMAP.md").rename(planning / "milestones/v1.0-ROADMAP.md")
    index = "# Milestones\n\n- **v1.0 Greeter** (in progress): [roadmap](milestones/v1.0-ROADMAP.md)\n"
    commit(root, "ROADMAP.md", index)

    assert h.do(h.request(root, agent)).exit == 0
    assert planning_file(root, "ROADMAP.md") == index
    assert "- [x] **Phase 2: " in planning_file(root, "milestones/v1.0-ROADMAP.md")
    before = planning_file(root, "milestones/v1.0-ROADMAP.md")
    assert last_gaps(h.do(asked(root, CLOSE))) == ("done", 0)
    assert planning_file(root, "milestones/v1.0-ROADMAP.md") == before
    assert [(m.version, m.shipped) for m in survey(root).milestones] == [("v1.0", True)]

    assert h.do(next_idea(root)).exit == 0
    assert [(m.version, m.shipped) for m in survey(root).milestones] == [("v1.0", True), ("v1.1", False)]


def tree_paths(root: Path) -> list[str]:
    return [path for path in h.git(root, "ls-tree", "-rz", "--name-only", "HEAD").split("\0") if path]


def test_a_tag_that_exists_is_not_moved_and_create_tag_is_honored(project: Path) -> None:
    h.git(project, "tag", "v1.0", "HEAD~3")
    before = h.git(project, "rev-parse", "v1.0")

    end = h.do(asked(project, CLOSE))

    assert (end.outcome, h.git(project, "rev-parse", "v1.0")) == ("done", before)
    [fact] = [fact for fact in h.facts(project, "step.completed") if fact.step == "close/v1.0"]
    assert fact.data["tag"] == ""


@pytest.mark.parametrize(
    ("words", "config", "tagged"),
    [("gsd milestone complete", False, False), ("with a tag", False, True), ("without a tag", True, False)],
)
def test_whether_there_is_a_tag(project: Path, words: str, config: bool, tagged: bool) -> None:
    text = planning_file(project, "config.json").replace(
        "{", f'{{"git": {{"create_tag": {str(config).lower()}}},', 1
    )
    commit(project, "config.json", text)

    h.do(asked(project, {"close/v1.0": words}))

    assert bool(h.git(project, "tag")) == tagged


def test_a_milestone_with_an_open_phase_or_with_gaps_is_kept_open(project: Path) -> None:
    with_orphan(project)
    before = tree(project)

    end = h.do(asked(project, CLOSE))

    assert last_gaps(end) == ("gaps", ExitCode.GAPS)
    assert h.facts(project, "step.completed")[-1].data["subject"] == "v1.0 is kept open"
    assert tree(project) == before
    assert open_questions(state_of(project)) == (), "a person decided, and nothing failed"

    text = planning_file(project, "ROADMAP.md")
    commit(project, "ROADMAP.md", text + "\n### Phase 2: More\n")
    end = h.do(evolve(asked(project, CLOSE), command=("once more",)))
    assert end.exit == ExitCode.FAILED
    assert "phase 2 is not complete" in end.reason


def test_who_keeps_a_milestone_open_is_asked_again_only_when_they_ask_for_it(project: Path) -> None:
    with_orphan(project)
    closing = h.request(project, h.one_phase(), run={"close_milestone": True, "audit": False})

    end = h.do(closing)

    assert last_gaps(end) == ("gaps", ExitCode.GAPS)
    assert len(h.facts(project, "question.asked")) == 1
    assert h.do(closing).exit == ExitCode.GAPS
    assert len(h.facts(project, "question.asked")) == 1
    assert h.do(asked(project, CLOSE, yes=False)).exit == ExitCode.QUESTION
    [question] = open_questions(state_of(project))
    h.answer(project, question.question.id, "Close it")
    assert h.do(asked(project, CLOSE, yes=False)).exit == ExitCode.OK
    assert not read_planning(project).phases


def test_what_kept_a_milestone_open_is_no_gap_once_a_run_has_done_it(project: Path) -> None:
    with_orphan(project)
    assert h.do(asked(project, CLOSE)).exit == ExitCode.GAPS

    end = h.do(h.request(project, h.one_phase()))

    assert last_gaps(end) == ("done", ExitCode.OK), end.reason
    assert read_audit(project, "v1.0").text("status") == "passed"


def test_open_items_are_named_and_listed_and_closing_twice_changes_nothing(project: Path) -> None:
    (project / ".planning/debug").mkdir()
    (project / ".planning/todos/pending").mkdir(parents=True)
    (project / ".planning/debug/slow-start.md").write_text("---\nstatus: investigating\n---\n")
    commit(project, "todos/pending/2026-01-01-docs.md", "---\ntitle: Write the docs\n---\n")

    end = h.do(asked(project, CLOSE))

    assert last_gaps(end) == ("done", 0), "open items alone keep no milestone open"
    [question] = h.facts(project, "question.asked")[-1].data["inquiry"]["questions"]
    for item in ("Debug session slow-start: investigating", "Todo: Write the docs"):
        assert item in question["text"]
        assert f"- {item}" in planning_file(project, "MILESTONES.md")
    assert (project / ".planning/debug/slow-start.md").exists(), "they stay where they are"
    before = tree(project)

    again = h.do(asked(project, CLOSE))

    assert (again.outcome, again.reason) == ("done", "close/v1.0 complete")
    assert tree(project) == before


def test_a_milestone_without_requirements_is_closed(project: Path) -> None:
    (project / ".planning/REQUIREMENTS.md").unlink()
    h.git(project, "commit", "-qam", "no requirements")

    end = h.do(asked(project, CLOSE))

    assert last_gaps(end) == ("done", 0)
    assert not (project / ".planning/milestones/v1.0-REQUIREMENTS.md").exists()


def test_uncommitted_changes_are_refused_and_something_in_the_way_is_named(project: Path) -> None:
    text = planning_file(project, "REQUIREMENTS.md")
    (project / ".planning/REQUIREMENTS.md").write_text(text + "\nmine\n")
    with pytest.raises(ProjectError, match="uncommitted changes"):
        h.do(asked(project, CLOSE))
    (project / ".planning/REQUIREMENTS.md").write_text(text)

    blocker = project / ".planning/milestones/v1.0-phases/01-greetings"
    blocker.mkdir(parents=True)
    end = h.do(asked(project, CLOSE))
    assert "is in the way" in end.reason
    blocker.rmdir()
    assert h.do(h.request(project, h.one_phase())).outcome == "done"
    assert (blocker / "01-01-PLAN.md").exists()


def crash_points(project: Path, tmp_path: Path, make: Callable[[Path], RunRequest]) -> list[str]:
    root, fuse = Path(shutil.copytree(project, tmp_path / "reference", symlinks=True)), Fuse()
    h.do(with_crash(make(root), fuse))
    return fuse.points


def test_a_kill_anywhere_while_a_milestone_is_closed_ends_in_the_same_tree(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", h.BEGAN.isoformat())
    points = crash_points(project, tmp_path, lambda root: asked(root, CLOSE))
    expected = tree(tmp_path / "reference")
    first = next(i for i, point in enumerate(points) if point.startswith("before writing"))
    assert any("moving" in point for point in points)
    assert any("removing" in point for point in points)
    assert any("tag v1.0" in point for point in points)

    last = next(i for i, point in enumerate(points) if point.startswith("before run.closed"))
    for number in range(first, last + 1, 3):
        root = Path(shutil.copytree(project, tmp_path / f"at-{number}", symlinks=True))
        with pytest.raises(Crash):
            h.do(with_crash(asked(root, CLOSE), Fuse(limit=number)))
        end = h.do(with_crash(h.request(root, h.one_phase()), Fuse()))
        assert last_gaps(end) == ("done", 0), (points[number], end)
        assert tree(root) == expected, points[number]
        assert h.git(root, "rev-parse", "v1.0^{commit}") == h.git(root, "rev-parse", "HEAD"), points[number]
        shutil.rmtree(root)


def test_what_a_person_changed_in_a_removed_file_is_saved(project: Path) -> None:
    with pytest.raises(Crash):
        h.do(with_crash(asked(project, CLOSE), crash_before("before removing")))
    path = project / ".planning/REQUIREMENTS.md"
    path.write_text("# a note that is nowhere else\n")

    end = h.do(h.request(project, h.one_phase()))

    assert (end.outcome, path.exists()) == ("done", False)
    [ref] = h.git(project, "for-each-ref", "--format=%(refname)", "refs/gsd").splitlines()
    assert "nowhere else" in h.git(project, "show", f"{ref}:.planning/REQUIREMENTS.md")


@define
class _Before(Fuse):
    """Ends the process at the first point whose name begins with *begins*."""

    begins: str = ""

    def __call__(self, point: str) -> None:
        if point.startswith(self.begins):
            raise Crash(point)
        self.points.append(point)


def crash_before(begins: str) -> Fuse:
    return _Before(begins=begins)


# The next milestone


def test_another_idea_closes_the_finished_milestone_and_starts_the_next_one(project: Path) -> None:
    runs = {fact.run for fact in h.facts(project)}

    end = h.do(next_idea(project))

    assert last_gaps(end) == ("done", 0)
    assert end.run not in runs
    assert runs <= {fact.run for fact in h.facts(project)}, "the journal keeps the earlier run"
    planning = read_planning(project)
    assert (planning.milestone, [one.number for one in planning.phases]) == ("v1.1", ["2"])
    assert [one.id for one in planning.requirements if one.version == "v1"] == [
        "CORE-03",
        "CORE-04",
        "DOC-02",
    ]
    assert "Greet people in French too" in planning_file(project, "IDEA.md")
    assert "greets people by name" in planning_file(project, "milestones/v1.0-IDEA.md")
    assert "## Current Milestone: v1.1" in planning_file(project, "PROJECT.md")
    assert [(m.version, m.shipped) for m in survey(project).milestones] == [("v1.0", True), ("v1.1", False)]
    assert end.notes == ("it ran without a sandbox",)
    steps = [step for step, _ in h.trailed(project)]
    at = steps.index("close/v1.0")
    assert steps[at : at + 2] == ["close/v1.0", "init"]
    assert steps[-1] == "audit/v1.1"

    assert h.do(asked(project, {"close/v1.1": "x"})).outcome == "done"
    assert [(m.version, m.shipped) for m in survey(project).milestones] == [("v1.0", True), ("v1.1", True)]
    assert planning_file(project, "MILESTONES.md").index("## v1.1") < planning_file(
        project, "MILESTONES.md"
    ).index("## v1.0")
    roadmap = planning_file(project, "ROADMAP.md")
    assert roadmap.count("<details>") == 2


def test_a_kill_between_two_milestones_loses_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", h.BEGAN.isoformat())
    h.do(asked(project, CLOSE))
    points = planned(project, tmp_path / "reference")
    expected = tree(tmp_path / "reference")
    assert points[-1].startswith("after step.completed init")

    for number in range(1, len(points), 6):
        root = Path(shutil.copytree(project, tmp_path / f"at-{number}", symlinks=True))
        with pytest.raises(Crash):
            h.do(with_crash(next_idea(root), Fuse(limit=number)))
        with pytest.raises(Crash):
            h.do(with_crash(next_idea(root), crash_before("before attempt.started 2/")))
        assert tree(root) == expected, points[number]
        shutil.rmtree(root)


def planned(project: Path, root: Path) -> list[str]:
    """Start the next milestone in a copy of the project until its phases are planned; return the points."""
    shutil.copytree(project, root, symlinks=True)
    fuse = crash_before("before attempt.started 2/")
    with pytest.raises(Crash):
        h.do(with_crash(next_idea(root), fuse))
    last = max(at for at, point in enumerate(fuse.points) if point == "after step.completed init")
    return fuse.points[: last + 1]


@needs_gsd
def test_gsd_reads_a_closed_milestone_and_the_one_after_it(project: Path) -> None:
    h.do(asked(project, CLOSE))
    closed = ask_gsd(project, "roadmap", "analyze")
    assert (closed["phase_count"], closed["missing_phase_details"]) == (0, None)
    assert ask_gsd(project, "validate", "consistency")["errors"] == []
    assert ask_gsd(project, "state", "json")["last_activity_desc"] == "Milestone v1.0 completed and archived"
    h.git(project, "checkout", "-q", ".")  # the tool rewrites config.json in its own form
    with pytest.raises(Crash):
        h.do(with_crash(next_idea(project), crash_before("before attempt.started 2/")))

    found = ask_gsd(project, "roadmap", "analyze")

    assert [(m["version"], m["heading"]) for m in found["milestones"]] == [
        ("v1.1", "🚧 v1.1 Greeter two (In Progress)")
    ]
    assert [(phase["number"], phase["disk_status"]) for phase in found["phases"]] == [("2", "no_directory")]
    assert ask_gsd(project, "state", "json")["milestone"] == "v1.1"


# What is no longer needed


def with_open_item(root: Path) -> None:
    (root / ".planning/todos/pending").mkdir(parents=True)
    commit(root, "todos/pending/2026-01-01-docs.md", "---\ntitle: Write the docs\n---\n")


def state_of(root: Path) -> State:
    with Journal.open(h.journal(root), clock=h.now, writable=False) as journal:
        return read_last_run(journal).state


def test_the_question_of_a_milestone_is_withdrawn_once_nobody_wants_it_closed(project: Path) -> None:
    with_open_item(project)
    closing = {"close_milestone": True}
    end = h.do(h.request(project, h.one_phase(), yes=False, run=closing))
    assert (end.outcome, end.exit) == ("blocked", ExitCode.QUESTION)
    assert [asked.step for asked in open_questions(state_of(project))] == ["close/v1.0"]

    end = h.do(h.request(project, h.one_phase(), yes=False))

    assert last_gaps(end) == ("done", 0)
    [withdrawn] = h.facts(project, "question.withdrawn")
    assert (withdrawn.step, withdrawn.data["reason"]) == ("close/v1.0", "close is no longer due")
    state = state_of(project)
    assert (open_questions(state), current_step(state)) == ((), None)

    end = h.do(h.request(project, h.one_phase(), yes=False, run=closing))
    assert end.outcome == "blocked", "with the setting on again, the question is asked again"
    assert [asked.step for asked in open_questions(state_of(project))] == ["close/v1.0"]


def test_an_audit_that_was_asked_for_is_dropped_once_its_milestone_is_closed(project: Path) -> None:
    run = state_of(project).run
    with Journal.open(h.journal(project), clock=h.now) as journal:
        journal.raise_epoch(run)
        journal.append("step.asked", {"text": "gsd milestone audit"}, run=run, step="audit/v1.0")
    assert list(state_of(project).asked) == ["audit/v1.0"]

    end = h.do(asked(project, CLOSE))

    assert last_gaps(end) == ("done", 0)
    [dropped] = h.facts(project, "step.withdrawn")
    assert (dropped.step, dropped.data["reason"]) == ("audit/v1.0", "milestone v1.0 is no longer in progress")
    assert not state_of(project).asked
