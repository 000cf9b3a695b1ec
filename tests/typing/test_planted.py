"""Both type checkers report every planted mistake, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = Path(__file__).with_name("planted_mistakes.py")

pytestmark = pytest.mark.slow


def run(*command: str) -> str:
    """Return the checker's output; skip if it is not installed, except in CI."""
    if shutil.which(command[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"no {command[0]}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def planted() -> set[int]:
    lines = PLANTED.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if "# planted:" in line}


def test_there_are_mistakes_to_find() -> None:
    assert len(planted()) == 26


def test_mypy_reports_the_planted_mistakes_and_nothing_else() -> None:
    out = run("mypy", "--strict", "--no-error-summary", "--hide-error-context", str(PLANTED))
    found = re.findall(rf"{PLANTED.name}:(\d+): error:", out)
    assert {int(line) for line in found} == planted()


def test_pyright_reports_the_planted_mistakes_and_nothing_else(tmp_path: Path) -> None:
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(_pyright_settings(tmp_path)), encoding="utf-8")
    report: dict[str, Any] = json.loads(run("pyright", "--outputjson", "-p", str(config)))
    errors = [found for found in report["generalDiagnostics"] if found["severity"] == "error"]
    assert {found["range"]["start"]["line"] + 1 for found in errors} == planted()


def _pyright_settings(start: Path) -> dict[str, Any]:
    """The project's own settings leave the file out."""
    return {
        "include": [os.path.relpath(PLANTED, start)],
        "extraPaths": [os.path.relpath(ROOT, start)],
        "typeCheckingMode": "strict",
    }
