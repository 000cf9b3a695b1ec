"""A whole run with the command agent in a separate process, from an idea to verified commits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

HERE = Path(__file__).parent
NAME = "gsd_plugin_command_agent"
pytestmark = pytest.mark.slow


def run(*command: str, cwd: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_ends_verified_with_one_commit_per_task(tmp_path: Path) -> None:
    (tmp_path / "idea.md").write_text("# Ledger\n\nShared costs of a flat.\n")
    (tmp_path / "project").mkdir()
    for command in (["init", "-q"], ["config", "user.name", "T"], ["config", "user.email", "t@example.org"]):
        run("git", *command, cwd=tmp_path / "project")
    gsd = (sys.executable, "-m", "gsd_core", "-C", "project")
    variables = {
        "PYTHONPATH": os.pathsep.join([str(HERE.parent / "src"), *filter(None, sys.path)]),
        f"GSD_{NAME.upper()}_COMMAND": f"{sys.executable},{HERE / 'scenario_command.py'}",
        f"GSD_{NAME.upper()}_ENVIRONMENT": "PYTHONPATH",
        # In a sandbox, the command and what it imports have to be visible; packages may be links.
        f"GSD_{NAME.upper()}_FOLDERS": f"{HERE.parents[2]},{Path(attrs.__file__).resolve().parents[1]}",
    }

    run(*gsd, "run", "idea.md", "--yes", "-p", NAME, "--agent", NAME, cwd=tmp_path, **variables)

    log = run("git", "log", "--format=%(trailers:key=GSD-Task,valueonly)", cwd=tmp_path / "project")
    tasks = re.findall(r"\d\d-\d\d/\d", log)
    status = json.loads(run(*gsd, "status", "--json", cwd=tmp_path, **variables))
    assert len(tasks) == len(set(tasks)) >= 2
    assert status["status"] == "done"
