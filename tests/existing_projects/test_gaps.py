"""``gsd gaps``: the verdict on disk, the detectors' findings, and plan commands on request."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bench import call, repository
from tests.cli.bench import said as json_of
from tests.planning.trees import make_project, plan_text

MUST_HAVES = 'must_haves:\n  truths: ["It works"]\n  artifacts:\n    - path: made.py\n      provides: "it"\n'
VERDICT = """\
---
phase: 01-a
verified: 2026-01-31T00:00:00Z
status: {status}
score: 0/1 must-haves verified
gaps:
  - truth: "It works"
    status: partial
    reason: "half of it is missing"
    artifacts:
      - path: "a.py"
        issue: "a stub"
    missing: ["the other half"]
---
"""
ON_DISK = {
    "truth": "It works",
    "about": None,
    "status": "partial",
    "reason": "half of it is missing",
    "artifacts": [{"path": "a.py", "issue": "a stub"}],
    "missing": ["the other half"],
    "found_by": "",
}
DETECTOR = """\
from gsd_core import Gap, implements
from gsd_core.hookspecs import gsd_find_gaps

@implements(gsd_find_gaps)
async def find(phase):
    {body}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "project")
    verify = "<verify><automated>touch ran</automated></verify>"
    check = f'<tasks><task type="auto"><name>X</name>{verify}</task></tasks>'
    return make_project(
        root,
        {
            "ROADMAP.md": "### Phase 1: A\n",
            "phases/01-a/01-01-PLAN.md": plan_text(frontmatter=MUST_HAVES, body=check),
            "phases/01-a/01-01-SUMMARY.md": "done",
        },
    )


def write_verdict(root: Path, status: str = "gaps_found") -> None:
    make_project(root, {"phases/01-a/01-VERIFICATION.md": VERDICT.format(status=status)})


def write_detector(folder: Path, body: str) -> tuple[str, ...]:
    folder.mkdir(exist_ok=True)
    (folder / "finder.py").write_text(DETECTOR.format(body=body))
    return ("--plugins-dir", str(folder))


def commit(root: Path, path: str, message: str) -> None:
    subprocess.run(["git", "add", path], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", message], cwd=root, check=True)


def test_without_a_verification_the_status_is_missing(root: Path) -> None:
    shown = json_of("gaps", "1", "-C", root, "--read-only")

    assert shown == {"schema_version": 1, "status": "missing", "gaps": [], "complete": True, "without": []}
    assert (
        "no gaps known; verify the phase with: gsd verify 1"
        in call("gaps", "1", "-C", root, "--read-only").stdout
    )


@pytest.mark.parametrize("status", ["passed", "gaps_found", "human_needed"])
def test_the_verdict_on_disk_is_reported(root: Path, status: str) -> None:
    write_verdict(root, status)

    shown = json_of("gaps", "1", "-C", root, "--read-only")

    assert (shown["status"], shown["gaps"]) == (status, [ON_DISK])


def test_an_unknown_verdict_counts_as_missing(root: Path) -> None:
    write_verdict(root, "mostly fine")

    assert json_of("gaps", "1", "-C", root, "--read-only")["status"] == "missing"


def test_a_verdict_older_than_a_summary_is_stale(root: Path) -> None:
    write_verdict(root, "passed")
    commit(root, ".planning/phases/01-a/01-VERIFICATION.md", "verify")
    commit(root, ".planning/phases/01-a/01-01-SUMMARY.md", "more")

    assert json_of("gaps", "1", "-C", root, "--read-only")["status"] == "stale"


def test_detectors_examine_the_current_tree(root: Path) -> None:
    write_verdict(root)

    shown = json_of("gaps", "1", "-C", root)

    assert shown["gaps"][0] == ON_DISK
    assert [(gap["found_by"], gap["missing"]) for gap in shown["gaps"][1:]] == [("must_haves", ["made.py"])]
    (root / "made.py").write_text("print('it')\n" * 3)
    commit(root, "made.py", "made")
    assert json_of("gaps", "1", "-C", root)["gaps"] == [ON_DISK]


def test_a_promised_file_that_is_not_in_the_last_commit_is_a_gap_that_says_why(root: Path) -> None:
    (root / "made.py").write_text("print('it')\n" * 3)
    [untracked] = json_of("gaps", "1", "-C", root)["gaps"]
    (root / ".gitignore").write_text("made.*\n")
    [ignored] = json_of("gaps", "1", "-C", root)["gaps"]

    assert (untracked["artifacts"][0]["path"], untracked["found_by"]) == ("made.py", "gsd")
    assert "untracked" in untracked["reason"]
    assert ".gitignore:1: made.*" in ignored["reason"]


def test_a_detector_gets_what_git_says_about_the_tree(root: Path, tmp_path: Path) -> None:
    (root / "made.py").write_text("print('it')\n" * 3)
    (root / ".gitignore").write_text("made.*\n")
    commit(root, ".gitignore", "rules")
    body = (
        "h = phase.history; top = sorted(f for f in h.files if '/' not in f); "
        "said = [top, 'made.py' in h.changed, h.ignored, h.nested, len(h.commits)]; "
        "return [Gap(truth='T', reason=repr(said))]"
    )
    finder = write_detector(tmp_path / "plugins", body)

    shown = json_of("gaps", "1", "-C", root, *finder)

    [said] = [gap["reason"] for gap in shown["gaps"] if gap["found_by"] == "finder"]
    count = len(subprocess.check_output(["git", "rev-list", "HEAD"], cwd=root).split())
    assert said == repr([[".gitignore"], False, ("made.py",), (), count])


def test_plans_older_than_requirements_and_numbered_decisions_owe_neither(root: Path) -> None:
    path = root / ".planning/phases/01-a/01-01-PLAN.md"
    (root / "made.py").write_text("print('it')\n" * 3)
    decided = "<decisions>\n### A\n- **D-01:** One file\n- **D-02:** One line\n</decisions>\n"
    files = {
        "ROADMAP.md": "### Phase 1: A\n**Requirements**: CORE-02\n",
        "phases/01-a/01-CONTEXT.md": decided,
    }
    make_project(root, files)
    commit(root, ".", "all")
    stated = json_of("gaps", "1", "-C", root)["gaps"]
    text = path.read_text().replace("requirements: [CORE-01]\n", "")
    path.write_text(text)
    old = json_of("gaps", "1", "-C", root)["gaps"]
    path.write_text(f"{text}\n<notes>as D-01 says</notes>\n")
    numbered = json_of("gaps", "1", "-C", root)["gaps"]
    path.write_text("---\nphase: 1\nplan: 01\nrequirements: [CORE-02]\n---\n## Objective\n")
    without_truths = json_of("gaps", "1", "-C", root)["gaps"]

    about = [
        [gap["about"] for gap in gaps if gap["found_by"] == "coverage"]
        for gaps in (stated, old, numbered, without_truths)
    ]
    assert about == [["CORE-02"], [], ["D-02"], []]


def test_detectors_judge_what_the_phase_promised_and_not_what_was_there_or_removed_later(root: Path) -> None:
    old = "class Server:\n    def resize(self, size):\n        raise NotImplementedError('not yet')\n"
    (root / "made.py").write_text(old)
    commit(root, "made.py", "before")
    new = old + "\n    def start(self, port):\n        return port + 1\n"
    (root / "made.py").write_text(new)
    (root / "gone.py").write_text("def show(a):\n    return a + 1\n")
    commit(root, ".", "feat(01-01): start")
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True
    ).stdout.strip()
    must = (
        MUST_HAVES
        + "    - path: gone.py\n      provides: it\n  key_links:\n    - from: gone.py\n      to: made.py\n"
    )
    plan = plan_text(frontmatter=must)
    summary = f"---\nphase: 1\n---\n## Task Commits\n\n1. `{done[:9]}`\n"
    name = "phases/01-a/01-01-PLAN.md"
    make_project(root, {name: plan, "phases/01-a/01-01-SUMMARY.md": summary})
    commit(root, ".", "docs(01): plan")

    def found() -> list[tuple[str, str]]:
        gaps = json_of("gaps", "1", "-C", root)["gaps"]
        return [(gap["about"], gap["reason"]) for gap in gaps if gap["found_by"] == "must_haves"]

    (root / "gone.py").unlink()
    commit(root, ".", "a person removes it")
    assert [about for about, _ in found()] == ["gone.py", "gone.py -> made.py"], "not a phase's commit"
    subprocess.run(["git", "commit", "-q", "--amend", "-m", "refactor(02-03): drop it"], cwd=root, check=True)
    assert found() == []
    make_project(root, {name: plan.replace("Do it", "Let resize() work")})
    [(about, reason)] = found()
    assert (about, "Server.resize() is not implemented" in reason) == ("made.py", True)


def test_a_plugin_s_detector_runs_and_is_named(root: Path, tmp_path: Path) -> None:
    finder = write_detector(tmp_path / "plugins", 'return [Gap(truth="T", reason="R")]')

    shown = json_of("gaps", "1", "-C", root, *finder)

    assert [gap["truth"] for gap in shown["gaps"] if gap["found_by"] == "finder"] == ["T"]
    assert shown["complete"] is True


@pytest.mark.parametrize("body", ['raise RuntimeError("no")', "return 7", "return [7]"])
def test_a_failing_detector_makes_the_result_incomplete(root: Path, tmp_path: Path, body: str) -> None:
    result = call("gaps", "1", "-C", root, "--json", *write_detector(tmp_path / "plugins", body))

    assert result.exit_code == 0
    assert '"complete": false' in result.stdout
    assert "finder" in result.stderr


def test_read_only_runs_no_detector(root: Path, tmp_path: Path) -> None:
    finder = write_detector(tmp_path / "plugins", 'open("asked", "w"); return []')

    assert json_of("gaps", "1", "-C", root, "--read-only", *finder)["complete"] is True
    assert not Path("asked").exists()


def test_plan_commands_run_only_with_run_checks(root: Path) -> None:
    json_of("gaps", "1", "-C", root)
    assert not (root / "ran").exists()

    json_of("gaps", "1", "-C", root, "--run-checks", "--trust")
    assert (root / "ran").exists()


@pytest.mark.parametrize(
    ("command", "reason", "status"),
    [
        ("seq 3; false", "exited with 1", "failed"),
        ("echo collected 0 items; echo no tests ran in 0.1s", "ran no tests", "failed"),
        ("npm publish", "the command was denied or timed out", "unverified"),
    ],
)
def test_a_check_that_fails_is_a_gap_with_any_choice_of_detectors(
    root: Path, command: str, reason: str, status: str
) -> None:
    path = root / ".planning/phases/01-a/01-01-PLAN.md"
    path.write_text(path.read_text().replace("touch ran", command))
    commit(root, ".planning", "plan")

    shown = json_of("gaps", "1", "-C", root, "--run-checks", "--trust", "-p", "no:must_haves")

    [gap] = [gap for gap in shown["gaps"] if gap["found_by"] == "checks"]
    assert (gap["reason"], gap["status"]) == (reason, status)
    assert command in gap["truth"]


def test_a_command_that_a_policy_denies_does_not_run(root: Path, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "strict.py").write_text(
        "from gsd_core import Deny, implements\nfrom gsd_core.hookspecs import gsd_permit_tool\n"
        "@implements(gsd_permit_tool)\nasync def permit(use):\n    return Deny(reason='not here')\n"
    )

    result = call("gaps", "1", "-C", root, "--run-checks", "--trust", "--plugins-dir", tmp_path / "plugins")

    assert result.exit_code == 0
    assert "touch ran" in result.stderr
    assert not (root / "ran").exists()


def test_without_a_terminal_a_command_that_needs_consent_does_not_run(root: Path) -> None:
    path = root / ".planning/phases/01-a/01-01-PLAN.md"
    path.write_text(path.read_text().replace("touch ran", "npm publish"))

    assert "npm publish" in call("gaps", "1", "-C", root, "--run-checks", "--trust").stderr


def test_read_only_and_run_checks_exclude_each_other(root: Path) -> None:
    assert call("gaps", "1", "-C", root, "--read-only", "--run-checks").exit_code == 2


def test_gaps_writes_nothing(root: Path) -> None:
    write_verdict(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    json_of("gaps", "1", "-C", root)

    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_gaps_works_without_a_git_repository(tmp_path: Path) -> None:
    make_project(tmp_path, {"phases/01-a/01-01-PLAN.md": plan_text(frontmatter=MUST_HAVES)})

    assert json_of("gaps", "1", "-C", tmp_path)["status"] == "missing"


def test_only_one_detector_is_asked_and_shown(root: Path, tmp_path: Path) -> None:
    write_verdict(root, "gaps_found")
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    found = "return [Gap(truth='Mine', reason=', '.join(phase.changed_files), about='mine.txt')]"
    (plugins / "mine.py").write_text(DETECTOR.format(body=found))
    (plugins / "other.py").write_text(DETECTOR.format(body="raise RuntimeError('asked')"))

    shown = json_of("--plugins-dir", plugins, "gaps", "1", "-C", root, "--only", "mine")

    assert [(gap["truth"], gap["about"], gap["found_by"]) for gap in shown["gaps"]] == [
        ("Mine", "mine.txt", "mine")
    ]
    assert shown["complete"]
    wrong = call("--plugins-dir", plugins, "gaps", "1", "-C", root, "--only", "mein")
    assert (wrong.exit_code, "did you mean 'mine'?" in wrong.stderr) == (2, True)
    assert call("gaps", "1", "-C", root, "--watch", "--run-checks").exit_code == 2


def test_a_detector_s_gap_is_shown_although_the_core_has_one_about_the_same_path(
    root: Path, tmp_path: Path
) -> None:
    (root / "made.py").write_text("print('it')\n" * 3)
    gap = "return [Gap(truth='Mine', reason='mine', about='made.py')]"
    finder = write_detector(tmp_path / "plugins", gap)

    alone = json_of("gaps", "1", "-C", root, "--only", "finder", *finder)["gaps"]
    merged = json_of("gaps", "1", "-C", root, *finder)["gaps"]

    assert [(gap["truth"], gap["found_by"]) for gap in alone] == [("Mine", "finder")]
    about = [gap["found_by"] for gap in merged if gap["about"] == "made.py"]
    assert about == ["gsd, finder"]


@pytest.mark.slow
def test_a_watched_detector_is_asked_again_after_each_change(root: Path, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    detector = plugins / "mine.py"
    detector.write_text(DETECTOR.format(body="return [Gap(truth='First', reason='a')]"))
    command = [sys.executable, "-m", "gsd_core", "--plugins-dir", str(plugins), "-C", str(root)]
    with subprocess.Popen(
        [*command, "gaps", "1", "--only", "mine", "--watch"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        seen = iter(process.stdout.readline, "")
        assert any("failed: First" in line for line in seen)
        detector.write_text(DETECTOR.format(body="return [Gap(truth='Second', reason='b')]"))
        assert any("changed: mine.py" in line for line in seen)
        assert any("failed: Second" in line for line in seen)
        (root / "new.txt").write_text("x")
        assert any("changed: new.txt" in line for line in seen)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_detector_that_is_not_loaded_is_named_with_the_reason(root: Path) -> None:
    plugins = root / ".gsd" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "mine.py").write_text(DETECTOR.format(body="return []"))

    untrusted = call("gaps", "1", "-C", root, "--only", "mine")
    (plugins / "mine.py").write_text("def (")
    broken = call("gaps", "1", "-C", root, "--only", "mine", "--trust")

    assert (untrusted.exit_code, broken.exit_code) == (2, 2)
    assert "not trusted" in untrusted.stderr
    assert "or pass --trust" in untrusted.stderr
    assert "SyntaxError" in broken.stderr


@pytest.mark.slow
def test_a_watched_detector_of_a_trusted_project_stays_trusted(root: Path) -> None:
    plugins = root / ".gsd" / "plugins"
    plugins.mkdir(parents=True)
    detector = plugins / "mine.py"
    detector.write_text(DETECTOR.format(body="return [Gap(truth='First', reason='a')]"))
    command = [sys.executable, "-m", "gsd_core", "-C", str(root), "gaps", "1", "--only", "mine"]
    with subprocess.Popen([*command, "--watch", "--trust"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = iter(process.stdout.readline, "")
        assert any("failed: First" in line for line in seen)
        detector.write_text(DETECTOR.format(body="return [Gap(truth='Second', reason='b')]"))
        assert any("failed: Second" in line for line in seen)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
