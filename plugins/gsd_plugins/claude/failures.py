"""What went wrong, in the core's words: what to do about it.

The API's error types: https://docs.claude.com/en/api/errors
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gsd_core import Credentials, Exhausted, Permanent, StepError, Transient

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKError, ResultMessage

LOG_IN = "log in with `claude auth login`, set ANTHROPIC_API_KEY, or rehearse with --agent rehearsal"
_TRY_AGAIN = {408, 409, 425, 429}
_CLASSES = {"authentication_failed": 401, "billing_error": 402, "rate_limit": 429, "invalid_request": 400}


class WrongStart(Exception):
    """The conversation that was to begin is there already, or the one to resume is not."""


def wrong_start(text: str, *, resume: bool) -> bool:
    """Whether the CLI's *text* says that the conversation has to be opened the other way."""
    return ("No conversation found" if resume else "is already in use") in text


def of_status(status: int | None, text: str, until: datetime | None = None) -> StepError:
    """Return the error for an HTTP *status* of the API; no status is a connection that failed."""
    if status in (401, 403):
        return Credentials(f"the API refuses the credentials: {text}", hint=LOG_IN)
    if status == 402:
        return Exhausted(f"the account cannot pay: {text}", hint="see the account's billing page")
    if status is None or status >= 500 or status in _TRY_AGAIN:
        return Transient(text, until)
    return Permanent(text, hint="the request itself is at fault: check model and prompt")


def of_result(result: ResultMessage, error_class: str, until: datetime | None) -> StepError:
    """Return the error for a *result* that is one; *error_class* is what the last message was marked with."""
    text = "; ".join(result.errors or []) or result.result or result.subtype
    status = result.api_error_status or _CLASSES.get(error_class)
    return of_status(status, text, until)


def of_retry(status: int | None, error: str) -> StepError | None:
    """Return why not to let the CLI repeat a request, if so: it would do so for minutes with a bad key."""
    return of_status(status, error) if status in (401, 403) else None


def of_process(error: ClaudeSDKError, *, begun: bool) -> StepError:
    """Return the error for a process that ended or broke without a result; *begun*: it had begun to work."""
    code = getattr(error, "exit_code", None)
    refused = isinstance(code, int) and 0 < code < 128 and not begun
    if refused:
        return Permanent(str(error), hint="see what the CLI says; claude.cli_path may name an unfit version")
    return Transient(f"the agent's process broke off: {error}")


def reset_time(resets_at: int | None) -> datetime | None:
    """Return when a usage limit ends, from Unix seconds."""
    return datetime.fromtimestamp(resets_at, UTC) if resets_at else None
