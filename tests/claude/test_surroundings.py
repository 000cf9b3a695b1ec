"""What an agent sees of our environment and of the user's settings, and what the doctor says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gsd_core import Deny, bind_settings
from gsd_plugins.claude import ClaudeSettings, credentials
from tests.claude.workbench import Bench, RecordingHost, in_turn, says, uses

LOOK = "env; tr '\\0' '\\n' < /proc/$PPID/environ"


def shown(bench: Bench, command: str) -> str:
    """What a command of the agent prints."""
    script = in_turn(uses("Bash", command=command), says("x"))
    _, requests = bench.run(script, tools=("Bash",), writable=True)
    return requests[-1].last


def test_a_secret_of_ours_is_not_the_agents(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "hush")
    monkeypatch.setenv("LC_GSD_TEST", "kept")
    environment = shown(bench, LOOK)

    assert "DEPLOY_TOKEN" not in environment
    assert "hush" not in environment
    assert "LC_GSD_TEST=kept" in environment


def test_the_models_key_is_not_seen_by_the_models_commands(bench: Bench) -> None:
    script = in_turn(uses("Bash", command=LOOK), says("x"))
    _, requests = bench.run(script, tools=("Bash",), writable=True)

    assert requests[0].headers["x-api-key"] == "sk-test"
    assert "sk-test" not in requests[-1].last


def test_the_models_key_is_seen_if_the_settings_say_so(bench: Bench) -> None:
    with bind_settings({ClaudeSettings: ClaudeSettings(environment=("ANTHROPIC_API_KEY",))}):
        environment = shown(bench, LOOK)

    assert "ANTHROPIC_API_KEY=sk-test" in environment


def test_every_command_carries_the_runs_mark(bench: Bench) -> None:
    assert "GSD_RUN=r-test" in shown(bench, "env")


def test_settings_let_an_agent_see_more(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/opt/java")
    with bind_settings({ClaudeSettings: ClaudeSettings(environment=("JAVA_*",))}):
        environment = shown(bench, "env")

    assert "JAVA_HOME=/opt/java" in environment


def commands_of(bench: Bench) -> Path:
    folder = bench.tree / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello to $ARGUMENTS.")
    (bench.tree / "CLAUDE.md").write_text("Rule one: be brief.")
    return folder


def test_settings_of_the_project_are_not_loaded(bench: Bench) -> None:
    commands_of(bench)
    _, requests = bench.run(in_turn(says("x")), prompt="/greet Ann")

    assert requests[0].prompt == "/greet Ann"
    assert "Rule one" not in str(requests[0].body)


def test_slash_commands_of_the_project_work_with_the_users_settings(bench: Bench) -> None:
    commands_of(bench)
    _, requests = bench.run(in_turn(says("x")), prompt="/greet Ann", user_settings=True)

    assert "Say hello to Ann." in str(requests[0].messages)


def test_the_gate_stands_though_the_projects_settings_allow_all(bench: Bench) -> None:
    commands_of(bench)
    (bench.tree / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
    host = RecordingHost(policy=lambda use: Deny(reason="no"))
    script = in_turn(uses("Bash", command="touch made"), says("x"))
    bench.run(script, host, tools=("Bash",), user_settings=True, writable=True)

    assert not (bench.tree / "made").exists()


def test_importing_the_plugin_does_not_load_the_sdk() -> None:
    code = "import sys, gsd_plugins.claude; print({'claude_agent_sdk', 'mcp', 'anyio'} & set(sys.modules))"
    printed = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=True
    )

    assert printed.stdout.decode().strip() == "set()"


def without_login(bench: Bench, **more: str) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(bench.home), **more}


def test_the_doctor_finds_that_nobody_is_logged_in(bench: Bench) -> None:
    began = time.monotonic()
    finding = credentials(without_login(bench))

    assert (finding.name, finding.ok) == ("claude", False)
    assert "not logged in" in finding.message
    assert all(way in finding.fix for way in ("auth login", "ANTHROPIC_API_KEY", "--agent rehearsal"))
    assert time.monotonic() - began < 5


def test_the_doctor_finds_a_login(bench: Bench) -> None:
    (bench.home / ".claude").mkdir()
    tokens = {"accessToken": "sk-ant-oat01-x", "refreshToken": "sk-ant-ort01-x", "expiresAt": 4102444800000}
    login = json.dumps({"claudeAiOauth": {**tokens, "scopes": ["user:inference", "user:profile"]}})
    (bench.home / ".claude" / ".credentials.json").write_text(login)

    assert credentials(without_login(bench)).ok


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"])
def test_the_doctor_takes_credentials_of_the_environment(bench: Bench, name: str) -> None:
    finding = credentials(without_login(bench, **{name: "1"}))

    assert finding.ok
    assert name in finding.message


@pytest.mark.parametrize(("name", "value"), [("ANTHROPIC_API_KEY", ""), ("CLAUDE_CODE_USE_VERTEX", "0")])
def test_the_doctor_takes_no_empty_credentials(bench: Bench, name: str, value: str) -> None:
    assert not credentials(without_login(bench, **{name: value})).ok


def test_the_doctor_does_not_wait_for_a_cli_that_hangs(bench: Bench) -> None:
    cli = bench.home / "slow"
    cli.write_text("#!/bin/sh\nexec sleep 60\n")
    cli.chmod(0o755)
    with bind_settings({ClaudeSettings: ClaudeSettings(cli_path=str(cli))}):
        finding = credentials(without_login(bench), seconds=0.2)

    assert not finding.ok
    assert "did not answer" in finding.message


def test_the_doctor_says_where_a_cli_is_missing(bench: Bench) -> None:
    with bind_settings({ClaudeSettings: ClaudeSettings(cli_path="no-such-claude")}):
        finding = credentials(without_login(bench))

    assert not finding.ok
    assert "no-such-claude" in finding.message
