"""A whole run in its own processes: a defect is found, closed and reviewed again; a kill repeats nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGE = HERE.parent
pytestmark = pytest.mark.slow

# The rehearsal's planner closes a gap that says this with a note.
SCENARIO = """
[scenario]
description = "One proven finding and one with a wrong citation; the next review finds nothing"
phases = 1
question = false
gap = false

[[rule]]
when = { step = "security-review", round = 0 }
do = "answer"
times = 3

[[rule.value.findings]]
severity = "high"
cwe = "CWE-1059"
file = "README.md"
line = 1
quote = "# Greeter"
what = "NOTES.md has no note 1."
why = "Nobody can know what is safe."
property = "NOTES.md has note 1"
fix = "Add the note."

[[rule.value.findings]]
severity = "critical"
file = "README.md"
line = 1
quote = "eval(input())"
what = "Input is evaluated."
why = "Whoever writes the input runs code."
property = "No input is evaluated"
fix = "Do not."
"""


def installed(folder: Path) -> Path:
    """Return a folder that makes the package found by its entry point, as if pip had installed it."""
    info = folder / "gsd_plugin_security_review-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: gsd-plugin-security-review\nVersion: 0.1.0\n"
    )
    declared = (PACKAGE / "pyproject.toml").read_text().partition("[project.entry-points.gsd]\n")[2]
    [line] = re.findall(r'^(\w+) = "(\w+)"$', declared, re.MULTILINE)
    (info / "entry_points.txt").write_text(f"[gsd]\n{line[0]} = {line[1]}\n")
    return folder


def test_a_finding_is_closed_and_a_kill_repeats_no_review(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()

    def run(*command: str, code: int = 0) -> str:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(
            [str(installed(tmp_path / "site")), str(PACKAGE / "src"), str(HERE), *filter(None, sys.path)]
        ),
        "GSD_REHEARSAL_CLI": "false",
        "GSD_RUN_SANDBOX": "off",
        "KILLED_ONCE": str(tmp_path / "killed"),
    }
    for command in (["init", "-q"], ["config", "user.name", "T"], ["config", "user.email", "t@example.org"]):
        run("git", *command)
    (tmp_path / "idea.md").write_text("# Greeter\n\nA small program that greets people by name.\n")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    gsd = (sys.executable, "-m", "gsd_core", "-p", "killed_after_review")
    rehearsal = ("--agent", "rehearsal", "--script", str(tmp_path / "scenario.toml"))

    run(*gsd, "run", str(tmp_path / "idea.md"), *rehearsal, "--yes", code=-signal.SIGKILL)
    run(*gsd, "resume", "--yes")

    facts = [json.loads(line) for line in run(*gsd, "log", "--json").splitlines()]
    completed = [fact["step"] for fact in facts if fact["kind"] == "step.completed"]
    assert completed[-9:] == [
        *("1/verify", "1/security-review", "1/debug/r1", "1/plan/r1", "1/execute/01-02"),
        *("1/verify/r1", "1/security-review/r1", "1/complete", "audit/v1.0"),
    ]
    # Two complaints about the wrong citation, and no call after the kill.
    opened = [fact["step"] for fact in facts if fact["kind"] == "agent.opened"]
    assert (opened.count("1/security-review"), opened.count("1/security-review/r1")) == (3, 1)

    versions = run("git", "log", "--format=%H", "--", ".planning/phases/*/01-SECURITY.md").split()
    [last, first] = [
        run("git", "show", f"{sha}:.planning/phases/01-greetings/01-SECURITY.md") for sha in versions
    ]
    assert "status: issues_found\n" in first
    assert "findings: 1\nblocking: 1\nunproven: 1\n" in first
    assert "status: clean\n" in last
    assert "- `NOTES.md`" in last, "what the gap round changed is reviewed as well"
    verdict = run("git", "show", f"{versions[1]}:.planning/phases/01-greetings/01-VERIFICATION.md")
    assert 'about: "security:README.md:CWE-1059"' in verdict
    assert "found_by: security_review" in verdict
    assert "No input is evaluated" not in verdict
