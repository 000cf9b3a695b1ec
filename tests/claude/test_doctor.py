"""The check of Claude Code for ``gsd doctor``."""

from __future__ import annotations

import json
import time

import pytest

from gsd_core import bind_settings
from gsd_plugins.claude import ClaudeSettings, credentials
from tests.claude.harness import Harness


def environment(harness: Harness, **variables: str) -> dict[str, str]:
    """Return an environment without a login."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(harness.home), **variables}


def test_a_missing_login_is_reported_with_ways_to_fix_it(harness: Harness) -> None:
    start = time.monotonic()
    finding = credentials(environment(harness))

    assert (finding.name, finding.ok) == ("claude", False)
    assert "not logged in" in finding.message
    assert all(fix in finding.fix for fix in ("auth login", "ANTHROPIC_API_KEY", "--agent rehearsal"))
    assert time.monotonic() - start < 5


def test_a_login_is_found(harness: Harness) -> None:
    (harness.home / ".claude").mkdir()
    tokens = {"accessToken": "sk-ant-oat01-x", "refreshToken": "sk-ant-ort01-x", "expiresAt": 4102444800000}
    login = json.dumps({"claudeAiOauth": {**tokens, "scopes": ["user:inference", "user:profile"]}})
    (harness.home / ".claude" / ".credentials.json").write_text(login)

    # The default limit is too short for a busy machine.
    assert credentials(environment(harness), seconds=30).ok


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"])
def test_credentials_in_the_environment_are_found(harness: Harness, name: str) -> None:
    finding = credentials(environment(harness, **{name: "1"}))

    assert finding.ok
    assert name in finding.message


@pytest.mark.parametrize(("name", "value"), [("ANTHROPIC_API_KEY", ""), ("CLAUDE_CODE_USE_VERTEX", "0")])
def test_empty_credentials_do_not_count(harness: Harness, name: str, value: str) -> None:
    assert not credentials(environment(harness, **{name: value})).ok


def test_a_cli_that_hangs_is_not_waited_for(harness: Harness) -> None:
    cli = harness.home / "slow"
    cli.write_text("#!/bin/sh\nexec sleep 60\n")
    cli.chmod(0o755)
    with bind_settings({ClaudeSettings: ClaudeSettings(cli_path=str(cli))}):
        finding = credentials(environment(harness), seconds=0.2)

    assert not finding.ok
    assert "did not answer" in finding.message


def test_a_missing_cli_is_named(harness: Harness) -> None:
    with bind_settings({ClaudeSettings: ClaudeSettings(cli_path="no-such-claude")}):
        finding = credentials(environment(harness))

    assert not finding.ok
    assert "no-such-claude" in finding.message
