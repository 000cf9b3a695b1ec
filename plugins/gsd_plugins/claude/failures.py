"""Failures of Claude Code as the core's errors, and the check for ``gsd doctor``.

The API's error types: https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gsd_core import Credentials, Exhausted, Finding, Outage, Permanent, StepError, Transient, settings_of

from .cli import KEY_VARIABLES, ClaudeSettings, allowed_variables, chosen_cloud, cli_version, find_cli

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKError, ResultMessage

LOGIN_HINT = "log in with `{cli} auth login`, set ANTHROPIC_API_KEY, or rehearse with --agent rehearsal"

_TRANSIENT_STATUSES = {408, 409, 425, 429}
_STATUS_OF_ERROR = {
    "authentication_failed": 401,
    "billing_error": 402,
    "rate_limit": 429,
    "invalid_request": 400,
    "model_not_found": 404,
    "server_error": 500,
    "overloaded": 529,
}

_NO_CONNECTION = re.compile(
    r"ECONN(REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|E(HOST|NET)(UNREACH|DOWN)|ETIMEDOUT|EPIPE"
    r"|socket hang up|socket connection was closed|fetch failed|[Cc]onnection error|[Uu]nable to connect"
    r"|[Rr]equest timed out|overloaded_error|(API Error:? *\(?|HTTP )(5\d\d|429)\b"
)
"""How the CLI and its runtime report an outage in words, where they give no status."""


class WrongStart(Exception):
    """The conversation to start already exists, or the one to resume does not."""


def api_error(status: int | None, text: str, until: datetime | None = None) -> StepError:
    """Return the error for an HTTP *status* of the API; ``None`` is a failed connection.

    A usage limit says *until* when it holds. Every other failure that time heals is an outage, for which
    *until* may name the earliest time of the next try.
    """
    if status in (401, 403):
        return Credentials(f"the API rejected the credentials: {text}", hint=LOGIN_HINT.format(cli="claude"))
    if status == 402:
        hint = "check the billing page of the account"
        return Exhausted(f"the account cannot be billed: {text}", hint=hint)
    if status == 429 and until is not None:
        return Transient(text, until)
    if status is None or status >= 500 or status in _TRANSIENT_STATUSES:
        return Outage(text, until)
    return Permanent(text, hint="the API rejected the request itself: check the model and the prompt")


def result_error(
    result: ResultMessage, message_error: str, until: datetime | None, retry_after: timedelta | None = None
) -> StepError:
    """Return the error for a failed *result*; *message_error* is the last message's error name.

    *until* is when the usage limit ends, *retry_after* how long the last retry was to wait.
    """
    text = "; ".join(result.errors or []) or result.result or result.subtype
    status = result.api_error_status or _STATUS_OF_ERROR.get(message_error)
    if message_error == "billing_error":
        # The status of "Credit balance is too low" is 400, like that of any invalid request.
        status = 402
    if status is None and not _NO_CONNECTION.search(text) and message_error in ("", "unknown"):
        return Transient(text, until)
    error = api_error(status, text, until)
    if isinstance(error, Outage) and error.until is None and retry_after:
        error.until = datetime.now(UTC) + retry_after
    return error


def process_error(error: ClaudeSDKError, *, started: bool) -> StepError:
    """Return the error for a process that ended without a result.

    A process that exits with an error code before it has *started* the conversation rejected its
    arguments, and will reject them again. Everything else may be temporary.
    """
    code = getattr(error, "exit_code", None)
    output = getattr(error, "stderr", None) or ""
    if _NO_CONNECTION.search(f"{error} {output}"):
        return Outage(f"the agent's process ended, because the API did not answer: {error}")
    if isinstance(code, int) and 0 < code < 128 and not started:
        hint = "see the CLI's message; claude.cli_path may point to an unsupported version"
        return Permanent(str(error), hint=hint)
    return Transient(f"the agent's process ended unexpectedly: {error}")


def installed() -> Finding:
    """Say which CLI is used, and its version; it is not started."""
    try:
        cli = find_cli(settings_of(ClaudeSettings).cli_path)
    except Permanent as error:
        return Finding(name="claude CLI", ok=False, message=str(error), fix=error.hint)
    message = f"{cli_version(cli) or 'version unknown'} ({cli})"
    # The dollars only if the price of the model is known; if not, the first turn says so.
    return Finding(name="claude CLI", ok=True, message=message, reports=("dollars", "tokens", "turns"))


def credentials(environment: Mapping[str, str] | None = None, *, seconds: float = 4.0) -> Finding:
    """Check that the CLI can log in, with *environment* instead of this process's if given.

    Sends no request to a model, and takes at most *seconds*.
    """
    environment = os.environ if environment is None else environment
    settings = settings_of(ClaudeSettings)
    try:
        cli = find_cli(settings.cli_path)
    except Permanent as error:
        return Finding(name="claude", ok=False, message=str(error), fix=error.hint)
    found = chosen_cloud(environment) or next((name for name in KEY_VARIABLES if environment.get(name)), "")
    if found:
        return Finding(name="claude", ok=True, message=f"credentials from {found}")

    # No variable is set, but the CLI may know a login (keychain, credentials file). Ask it: 0.6 s.
    login = LOGIN_HINT.format(cli=cli)
    try:
        process = subprocess.run(
            [cli, "auth", "status"],
            env=allowed_variables(environment, settings.environment),
            # Not in the project, whose own settings may name programs to run.
            cwd="/",
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"`{cli.name} auth status` did not answer within {seconds:g} s"
        return Finding(name="claude", ok=False, message=message, fix=login)
    except OSError as error:
        message = f"cannot run {str(cli)!r}: {error}"
        return Finding(name="claude", ok=False, message=message, fix="set claude.cli_path")
    status: dict[str, Any] = {}
    with suppress(TypeError, ValueError):
        status = dict(json.loads(process.stdout))
    if process.returncode == 0 and status.get("loggedIn"):
        return Finding(name="claude", ok=True, message=f"logged in ({status.get('authMethod', 'unknown')})")
    return Finding(name="claude", ok=False, message="Claude Code is not logged in", fix=login)
