"""``gsd completion`` and ``gsd help``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_core.cli.commands import COMMANDS
from gsd_core.exit_codes import ExitCode
from tests.cli.bench import call


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_the_shell(shell: str) -> None:
    done = call("completion", shell)

    assert done.exit_code == 0
    assert f"_GSD_COMPLETE={shell}_complete" in done.stdout


def test_a_shell_gets_the_commands_and_their_options() -> None:
    bash = shutil.which("bash")
    assert bash is not None
    gsd = Path(sys.executable).with_name("gsd")
    script = f"""
        eval "$({gsd} completion bash)"
        complete -p gsd >&2
        COMP_WORDS=(gsd st) COMP_CWORD=1
        _gsd_completion {gsd}; echo "${{COMPREPLY[@]}}"
        COMPREPLY=() COMP_WORDS=(gsd status --js) COMP_CWORD=2
        _gsd_completion {gsd}; echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    commands, options = done.stdout.splitlines()
    assert commands.split() == ["stop", "status"]
    assert options.split() == ["--json"]
    assert "_gsd_completion" in done.stderr


def test_an_unknown_shell_is_named_with_those_that_work() -> None:
    done = call("completion", "tcsh")

    assert done.exit_code == ExitCode.USAGE
    assert all(shell in done.stderr for shell in ("tcsh", "bash", "zsh", "fish"))


def test_help_is_that_of_the_command() -> None:
    assert call("help").stdout == call("--help").stdout
    assert call("help", "status").stdout == call("status", "--help").stdout
    assert call("help", "phase", "add").stdout == call("phase", "add", "--help").stdout


def test_help_about_a_topic_is_complete() -> None:
    codes = call("help", "exit-codes").stdout
    assert {line.split()[0] for line in codes.splitlines() if line[:7].strip()} == {
        str(int(c)) for c in ExitCode
    }
    assert "GSD_AGENT" in call("help", "environment").stdout


@pytest.mark.parametrize("words", [("nothing",), ("status", "more"), ("phase", "nothing")])
def test_help_about_something_unknown_is_an_error(words: tuple[str, ...]) -> None:
    done = call("help", *words)

    assert done.exit_code == ExitCode.USAGE
    assert words[-1] in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_is_in_the_help_of_gsd() -> None:
    shown = call("help").stdout
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert os.environ.get("_GSD_COMPLETE") is None
