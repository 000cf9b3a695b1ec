"""What a later process of a run takes over: the first one's flags, and answers given in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gsd_core
from tests.cli.bench import said

HOME = Path(gsd_core.__file__).parents[1]
FAKE = ("-p", "gsd_plugins.rehearsal.fake")
SMALL = {"GSD_FAKE_PHASES": "1", "GSD_FAKE_GAP": "false", "GSD_FAKE_OVERLOADED": "false"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project whose run waits for an answer."""
    idea = tmp_path / "idea.md"
    idea.write_text("# A greeter\n\nIt greets people by name.\n")
    root = tmp_path / "new"
    flags = ("--no-input", "--model", "haiku", "--max-budget-usd", "5")
    assert _gsd("run", idea, "-C", root, *FAKE, "--agent", "fake", *flags).returncode == 3
    return root


def _gsd(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gsd_core", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
        env=os.environ | SMALL | {"PYTHONPATH": f"{HOME}:{HOME / 'plugins'}"} | environment,
    )


def _settings(project: Path, verb: str, *flags: str) -> list[str]:
    shown = _gsd(verb, "-C", project, *FAKE, "--dry-run", *flags)
    assert shown.returncode == 0, shown.stderr
    lines = (shown.stdout + shown.stderr).splitlines()
    return [line for line in lines if "run.model" in line or "budget.max_usd" in line or "run.agent" in line]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["run", "resume"])
def test_a_continued_run_keeps_its_limits_and_models(project: Path, verb: str) -> None:
    assert _settings(project, verb) == [
        "setting: run.agent = fake (the run so far)",
        "setting: run.model = haiku (the run so far)",
        "setting: budget.max_usd = 5 (the run so far)",
    ]


@pytest.mark.slow
def test_a_new_flag_overrides_the_earlier_one(project: Path) -> None:
    assert "setting: budget.max_usd = 7 (command line)" in _settings(
        project, "resume", "--max-budget-usd", "7"
    )


@pytest.mark.slow
def test_consent_holds_for_one_process_only(project: Path) -> None:
    done = _gsd("resume", "-C", project, *FAKE, "--no-input", "--yes")
    again = _gsd("resume", "-C", project, *FAKE, "--dry-run")

    assert done.returncode == 0
    assert "yolo" not in "".join(line for line in again.stdout.splitlines() if line.startswith("setting"))


@pytest.mark.slow
def test_an_answer_given_while_no_run_is_active_skips_a_step(tmp_path: Path) -> None:
    idea, root = tmp_path / "idea.md", tmp_path / "new"
    idea.write_text("# A greeter\n")
    broken = tmp_path / "plugins"
    broken.mkdir()
    (broken / "broken.py").write_text(
        "from gsd_core import Permanent, implements\n"
        "from gsd_core.hookspecs import gsd_wrap_step\n\n\n"
        "@implements(gsd_wrap_step)\n"
        "async def broken(step, call_next):\n"
        "    if step.kind == 'plan':\n"
        "        raise Permanent('no plans today')\n"
        "    return await call_next(step)\n"
    )
    plugins = ("--plugins-dir", broken, *FAKE)
    first = _gsd("run", idea, "-C", root, *plugins, "--agent", "fake", "--no-input")
    [question] = said("questions", "-C", root)["questions"]

    answered = _gsd("answer", question["id"], "Skip", "-C", root)
    second = _gsd("resume", "-C", root, *plugins, "--no-input")

    assert (first.returncode, answered.returncode, second.returncode) == (1, 0, 6), second.stderr
    assert "skipped, not done: phase 1" in second.stdout


@pytest.mark.slow
def test_a_quiet_run_prints_how_it_ended(project: Path) -> None:
    done = _gsd("resume", "-C", project, *FAKE, "--yes", "-q")

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("done: 1 phase complete (")
    assert "✓" not in done.stdout + done.stderr
