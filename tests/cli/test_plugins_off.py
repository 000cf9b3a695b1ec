"""Plugins that the setting ``plugins.off`` leaves out, and what says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_core.settings import user_config
from tests.cli.bench import Bench, call, said, trust_everything

FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--yes", "--sandbox", "off")


@pytest.fixture
def idea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in (("PHASES", "1"), ("GAP", "0"), ("OVERLOADED", "0")):
        monkeypatch.setenv(f"GSD_FAKE_{name}", value)
    path = tmp_path / "idea.md"
    path.write_text("# Greeter\n\nGreets.\n")
    return path


def turn_off(*names: str) -> None:
    user_config().parent.mkdir(parents=True, exist_ok=True)
    user_config().write_text(f"[plugins]\noff = {json.dumps(names)}\n")


def gsd(*args: str | Path) -> str:
    """Return what ``gsd`` prints on standard output, in a process of its own."""
    command = [sys.executable, "-m", "gsd_core", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


def state_of(name: str, *args: str | Path) -> tuple[str, str]:
    [found] = [row for row in said("plugins", *args)["plugins"] if row["name"] == name]
    return found["status"], found["reason"]


@pytest.mark.slow
def test_a_detector_that_is_off_is_named_in_the_last_line_and_in_the_json(tmp_path: Path, idea: Path) -> None:
    turn_off("uat")
    assert state_of("uat") == ("blocked", f"plugins.off ({user_config()})")
    assert state_of("uat", "-p", "uat")[0] == "active"
    assert ["uat"] in [
        one["value"] for one in said("settings", "show", "plugins", "-C", tmp_path)["settings"]
    ]

    assert "; without the detector uat" in gsd("run", idea, "-C", tmp_path / "new", *FAKE).splitlines()[-1]
    user_config().unlink()
    # An earlier process of the run was without it.
    again = gsd("resume", "-C", tmp_path / "new", *FAKE, "--output-format", "json")
    assert "without the detector uat" in json.loads(again)["notes"]
    turn_off("uat")
    assert "without the detectors uat" in call("gaps", "1", "-C", tmp_path / "new").stdout
    only = said("gaps", "1", "-C", tmp_path / "new", "--only", "must_haves")
    assert only["without"] == ["history", "uat"]


def test_what_a_run_needs_cannot_be_turned_off(tmp_path: Path, idea: Path) -> None:
    for name, options in (("claude", ()), ("native", ("--agent", "rehearsal"))):
        turn_off(name)
        result = call("run", idea, "-C", tmp_path / "new", *options)
        assert result.exit_code == 2
        assert f"{name!r} is turned off: plugins.off ({user_config()})" in result.stderr
        assert not (tmp_path / "new").exists()
        by_flag = call("run", idea, "-C", tmp_path / "new", *options, "-p", f"no:{name}")
        assert f"{name!r} is turned off: -p no:{name}" in by_flag.stderr


def test_a_project_turns_off_nothing_until_it_is_trusted(bench: Bench, idea: Path) -> None:
    (bench.root / "gsd.toml").write_text('[plugins]\noff = ["must_haves", "slack", "must_have"]\n')
    run = ("run", idea, "-C", bench.root, "--agent", "rehearsal", "--no-input")
    refused = call(*run)
    assert refused.exit_code == 2, refused.stderr
    assert "plugins.off" in refused.stderr
    dry = call(*run, "--dry-run")
    assert "must_haves blocked" not in dry.stdout

    trust_everything(bench.root)
    dry = call(*run, "--dry-run")
    assert "plugin: must_haves blocked (plugins.off (gsd.toml))" in dry.stdout
    assert "plugins.off has 'must_have', which is not a plugin; did you mean 'must_haves'?" in dry.stderr
    assert "'slack'" not in dry.stderr
