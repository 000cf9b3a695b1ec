"""Which environment variables and settings reach an agent and its commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gsd_core import Deny, bind_settings
from gsd_core.testing import FakeAgentHost
from gsd_plugins.claude import ClaudeSettings
from tests.claude.harness import Harness, by_turn, says, uses

PRINT_ENVIRONMENTS = "env; tr '\\0' '\\n' < /proc/$PPID/environ"


def output_of(harness: Harness, command: str) -> str:
    """Have the agent run *command* and return its output."""
    script = by_turn(uses("Bash", command=command), says("x"))
    _, requests = harness.run(script, tools=("Bash",), writable=True)
    return requests[-1].last


def test_other_variables_do_not_reach_the_agent(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "hush")
    monkeypatch.setenv("LC_GSD_TEST", "kept")
    environment = output_of(harness, PRINT_ENVIRONMENTS)

    assert "DEPLOY_TOKEN" not in environment
    assert "hush" not in environment
    assert "LC_GSD_TEST=kept" in environment


def test_the_api_key_does_not_reach_the_agents_commands(harness: Harness) -> None:
    script = by_turn(uses("Bash", command=PRINT_ENVIRONMENTS), says("x"))
    _, requests = harness.run(script, tools=("Bash",), writable=True)

    assert requests[0].headers["x-api-key"] == "sk-test"
    assert "sk-test" not in requests[-1].last


def test_the_api_key_reaches_the_commands_if_the_settings_name_it(harness: Harness) -> None:
    with bind_settings({ClaudeSettings: ClaudeSettings(environment=("ANTHROPIC_API_KEY",))}):
        environment = output_of(harness, PRINT_ENVIRONMENTS)

    assert "ANTHROPIC_API_KEY=sk-test" in environment


def test_every_command_has_the_runs_variables(harness: Harness) -> None:
    assert "GSD_RUN=r-test" in output_of(harness, "env")


def test_variables_named_in_the_settings_reach_the_agent(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    with bind_settings({ClaudeSettings: ClaudeSettings(environment=("JAVA_*",))}):
        environment = output_of(harness, "env")

    assert "JAVA_HOME=/opt/java" in environment


def test_commands_run_in_the_shell_that_policies_read(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "zsh"
    other.write_text('#!/bin/sh\necho another shell\nexec bash "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("SHELL", str(other))
    output = output_of(harness, "echo it is ${BASH_VERSION:+bash}")

    assert "it is bash" in output
    assert "another shell" not in output


def add_project_settings(harness: Harness) -> None:
    folder = harness.tree / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello to $ARGUMENTS.")
    (harness.tree / "CLAUDE.md").write_text("Rule one: be brief.")


def test_the_projects_claude_settings_are_not_loaded(harness: Harness) -> None:
    add_project_settings(harness)
    _, requests = harness.run(by_turn(says("x")), prompt="/greet Ann")

    assert requests[0].prompt == "/greet Ann"
    assert "Rule one" not in str(requests[0].body)


def test_the_projects_slash_commands_work_with_user_settings(harness: Harness) -> None:
    add_project_settings(harness)
    _, requests = harness.run(by_turn(says("x")), prompt="/greet Ann", user_settings=True)

    assert "Say hello to Ann." in str(requests[0].messages)


def test_the_projects_settings_cannot_override_the_policies(harness: Harness) -> None:
    add_project_settings(harness)
    (harness.tree / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
    host = FakeAgentHost(policy=lambda use: Deny(reason="no"))
    script = by_turn(uses("Bash", command="touch made"), says("x"))
    harness.run(script, host, tools=("Bash",), user_settings=True, writable=True)

    assert not (harness.tree / "made").exists()


def test_importing_the_plugin_does_not_load_the_sdk() -> None:
    code = "import sys, gsd_plugins.claude; print({'claude_agent_sdk', 'mcp', 'anyio'} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=True
    )

    assert printed.stdout.decode().strip() == "set()"
