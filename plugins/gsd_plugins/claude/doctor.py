"""Whether Claude Code is there and logged in, found out without asking a model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from gsd_core import Finding, Permanent, settings_of

from .cli import find_cli
from .environment import allowed
from .settings import ClaudeSettings

_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_SWITCHES = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
_OFF = ("", "0", "false", "no", "off")


def credentials(environment: Mapping[str, str] | None = None, *, seconds: float = 4.0) -> Finding:
    """Find out whether the CLI can log in with *environment* (ours); takes at most *seconds*."""
    known = os.environ if environment is None else environment
    settings = settings_of(ClaudeSettings)
    try:
        cli = find_cli(settings.cli_path)
    except Permanent as error:
        return Finding(name="claude", ok=False, message=str(error), fix=error.hint)
    if named := _named(known):
        return Finding(name="claude", ok=True, message=f"credentials by {named}")
    return _status(cli, allowed(known, settings.environment), seconds)


def _named(environment: Mapping[str, str]) -> str:
    keys = (name for name in _KEYS if environment.get(name))
    switches = (name for name in _SWITCHES if environment.get(name, "").strip().lower() not in _OFF)
    return next((*keys, *switches).__iter__(), "")


def _status(cli: Path, environment: Mapping[str, str], seconds: float) -> Finding:
    try:
        asked = subprocess.run(
            [cli, "auth", "status"], env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return _not_logged_in(f"{cli.name} auth status did not answer in {seconds:g} s", cli)
    except OSError as error:
        return Finding(
            name="claude", ok=False, message=f"cannot run {str(cli)!r}: {error}", fix="set claude.cli_path"
        )
    status = _parsed(asked.stdout)
    if asked.returncode == 0 and status.get("loggedIn"):
        return Finding(name="claude", ok=True, message=f"logged in ({status.get('authMethod', 'unknown')})")
    return _not_logged_in("Claude Code is not logged in", cli)


def _parsed(output: bytes) -> Mapping[str, Any]:
    try:
        status = json.loads(output)
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", status) if isinstance(status, dict) else {}


def _not_logged_in(message: str, cli: Path) -> Finding:
    fix = f"log in with `{cli} auth login`, set ANTHROPIC_API_KEY, or rehearse with --agent rehearsal"
    return Finding(name="claude", ok=False, message=message, fix=fix)
