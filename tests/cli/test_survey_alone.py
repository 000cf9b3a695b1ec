"""``gsd map`` in a folder without a project: what it refuses, and what other commands say afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bench import Bench, call, said
from tests.run import harness as h

FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--no-input")


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_without_code_that_git_tracks_it_is_refused_and_nothing_is_written(
    bench: Bench, flags: list[str]
) -> None:
    (bench.root / "a.py").write_text("x = 1\n")
    (bench.root / "b.py").write_text("x = 1\n")

    result = call("map", "-C", bench.root, *FAKE, *flags)

    assert result.exit_code == 2
    assert f"git tracks no files in {bench.root}, so there is no code to describe" in result.stderr
    assert "hint: commit the code first: git add" in result.stderr
    assert not bench.journal.exists()


@pytest.mark.slow
def test_a_second_survey_without_a_change_says_so(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    (root / "a.py").write_text("def f():\n    return 1\n")
    h.git(root, "add", ".")
    h.git(root, "commit", "-qm", "Return one")

    command = [sys.executable, "-m", "gsd_core", "map", "-C", str(root), *FAKE]
    first, again = (subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(2))

    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "wrote .planning/codebase/STACK.md" in first.stdout
    assert "no change: .planning/codebase/STACK.md and 6 other files had the same content" in again.stdout
    assert "wrote " not in again.stdout
    assert h.facts(root, "step.completed")[-1].data["unchanged"] is True


def test_surveyed_code_without_a_project_is_a_healthy_start(bench: Bench) -> None:
    folder = bench.root / ".planning" / "codebase"
    folder.mkdir(parents=True)
    (folder / "STACK.md").write_text("# Technology Stack\n")

    shown = call("health", "-C", bench.root)
    found = said("health", "-C", bench.root)
    doctor = call("doctor", "-C", bench.root).stdout

    assert (shown.exit_code, found["status"], found["errors"]) == (0, "healthy", [])
    assert [one["code"] for one in found["info"]] == ["I101"]
    assert "the existing code is surveyed, and there is no project yet" in shown.stdout
    assert "planning: healthy: I101 the existing code is surveyed" in doctor

    (bench.root / ".planning" / "STATE.md").write_text("# State\n")
    assert said_status(bench) == "broken"


def said_status(bench: Bench) -> str:
    result = call("health", "-C", bench.root)
    assert result.exit_code == 1
    return result.stdout.split("\n", 1)[0]
