"""Budgets of real runs with a command that prints its tokens but no price, or neither."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parents[1] / "src"
NAME = "gsd_plugin_command_agent"
COMMAND = """\
import json, sys
sys.stdin.read()
open({counter!r}, "a").write("x")
print(json.dumps({{"text": "no JSON", "usage": {{"in": {tokens}, "out": 5}}}}))
"""


def gsd(
    tmp_path: Path, *arguments: str, tokens: str = "400", output: str = "json"
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "idea.md").write_text("# Ledger\n\nShared costs of a flat.\n")
    script = tmp_path / "command.py"
    script.write_text(COMMAND.format(counter=str(tmp_path / "runs"), tokens=tokens))
    prefix = f"GSD_{NAME.upper()}_"
    variables = {
        "PYTHONPATH": os.pathsep.join([str(SOURCES), *filter(None, sys.path)]),
        "GSD_STATE_DIR": str(tmp_path / "state"),
        "GIT_AUTHOR_NAME": "T",
        "GIT_COMMITTER_NAME": "T",
        "EMAIL": "t@example.org",
        f"{prefix}COMMAND": f"{sys.executable},{script}",
        f"{prefix}OUTPUT": output,
    }
    if output == "json":
        keys = {"ANSWER_KEY": "text", "INPUT_TOKENS_KEY": "usage.in", "OUTPUT_TOKENS_KEY": "usage.out"}
        variables |= {prefix + key: path for key, path in keys.items()}
    command = [sys.executable, "-m", "gsd_core", "-C", str(tmp_path / "project"), *arguments]
    command += ["-p", NAME] if arguments[0] == "run" else []
    return subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def run(tmp_path: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    base = ("run", "idea.md", "--agent", NAME, "--yes", "--sandbox", "off")
    return gsd(tmp_path, *base, *arguments, **more)


def runs(tmp_path: Path) -> int:
    counter = tmp_path / "runs"
    return len(counter.read_text()) if counter.exists() else 0


@pytest.mark.parametrize(
    ("output", "flag", "unit"),
    [("json", "--max-budget-usd", "dollars"), ("text", "--max-budget-tokens", "tokens")],
)
def test_a_budget_that_the_agent_cannot_keep_is_refused_at_the_start(
    tmp_path: Path, output: str, flag: str, unit: str
) -> None:
    done = run(tmp_path, flag, "1", output=output)

    assert done.returncode == 2, done.stderr
    assert f"does not say that it reports how many {unit} it uses" in done.stderr
    assert "hint: limit its turns: --max-budget-turns N" in done.stderr
    assert (runs(tmp_path), (tmp_path / "project").exists()) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "flags", "most"),
    [
        ("json", ("--max-budget-tokens", "1000"), 2),
        ("json", ("--max-budget-usd", "1", "--max-budget-tokens", "1000"), 2),
        ("text", ("--max-budget-turns", "2"), 2),
    ],
)
def test_a_budget_in_what_the_agent_reports_is_kept(
    tmp_path: Path, output: str, flags: tuple[str, ...], most: int
) -> None:
    done = run(tmp_path, *flags, output=output)

    cost = json.loads(gsd(tmp_path, "cost", "--json").stdout)
    assert done.returncode == 5, done.stderr
    assert runs(tmp_path) <= most
    assert cost["total"]["turns"] == runs(tmp_path)
    assert cost["total"]["dollars"] is None
    if output == "json":
        assert cost["total"]["tokens"]["total"] == 405 * runs(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["-5", "float('nan')", "1e300"])
def test_tokens_that_are_no_number_end_the_call(tmp_path: Path, tokens: str) -> None:
    done = run(tmp_path, "--max-budget-tokens", "1000", tokens=tokens)

    assert done.returncode == 1, done.stderr
    assert runs(tmp_path) == 1


@pytest.mark.slow
def test_without_a_limit_a_run_says_so_and_never_asks(tmp_path: Path) -> None:
    done = run(tmp_path, output="text")

    assert "warning: nothing limits what this run may use" in done.stderr
    assert "gsd's own prompts take less than 12,000 tokens a phase (bench/prompt_cost.py)" in done.stderr
