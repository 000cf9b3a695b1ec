"""Failed calls: the error's class and hint, and that they fail fast."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest
from claude_agent_sdk import ProcessError

from gsd_core import Credentials, Exhausted, Outage, Permanent, StepError, Transient
from gsd_core.testing import FakeAgentHost
from gsd_plugins.claude import ClaudeSettings, run_claude
from gsd_plugins.claude.failures import process_error
from gsd_plugins.rehearsal.api import ApiRequest, Cut, Failure, Reply
from tests.claude.harness import Harness, activities, limited, says

OVERLOADED = Failure(529, "overloaded_error", "Overloaded")
SERVER_ERROR = Failure(500, "api_error", "Internal server error")


def in_order(*replies: Reply) -> Callable[[ApiRequest], Reply]:
    """Answer each request with the next of *replies*; the last one is repeated."""
    remaining = list(replies)
    return lambda request: remaining.pop(0) if len(remaining) > 1 else remaining[0]


def failure_of(harness: Harness, *replies: Reply, host: FakeAgentHost | None = None) -> StepError:
    with pytest.raises(StepError) as raised:
        harness.run(in_order(*replies), host)
    return raised.value


def test_an_overloaded_api_is_retried_and_the_retry_reported(harness: Harness) -> None:
    host = FakeAgentHost()
    result, requests = harness.run(in_order(OVERLOADED, says("done")), host)

    (retry,) = activities(host, "retry")
    assert "529" in retry.text
    assert "1 of 2" in retry.text
    assert (result.text, len(requests)) == ("done", 2)


def test_rejected_credentials_fail_the_call_immediately(harness: Harness) -> None:
    start = time.monotonic()
    error = failure_of(harness, Failure(401, "authentication_error", "invalid x-api-key"))

    assert isinstance(error, Credentials)
    assert "ANTHROPIC_API_KEY" in error.hint
    assert time.monotonic() - start < 10


def test_a_forbidden_request_is_a_credentials_error(harness: Harness) -> None:
    error = failure_of(harness, Failure(403, "permission_error", "not yours"))

    assert isinstance(error, Credentials)


def test_missing_credentials_are_a_credentials_error(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    home = {"HOME": str(harness.home), "CLAUDE_CONFIG_DIR": str(harness.home / "claude")}

    with pytest.raises(Credentials):
        asyncio.run(limited(run_claude(harness.task(), FakeAgentHost(), env=home)))


@pytest.mark.slow
def test_a_server_error_is_transient_after_the_clis_own_retries(harness: Harness) -> None:
    host = FakeAgentHost()
    error = failure_of(harness, SERVER_ERROR, host=host)

    assert isinstance(error, Outage)
    assert "500" in str(error)
    assert len(activities(host, "retry")) == 2


@pytest.mark.slow
def test_a_connection_that_is_cut_off_is_transient(harness: Harness) -> None:
    error = failure_of(harness, Cut(says("a long answer " * 100)))

    assert isinstance(error, Outage)


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{free}", "http://no-such-host.invalid"], ids=["refused", "no-name"]
)
def test_a_service_that_cannot_be_reached_is_an_outage(harness: Harness, url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        free = taken.getsockname()[1]

    with pytest.raises(Outage):
        harness.run(in_order(says("never")), env={"ANTHROPIC_BASE_URL": url.format(free=free)})


@pytest.mark.slow
def test_the_time_of_the_next_attempt_follows_the_header_retry_after(harness: Harness) -> None:
    before = datetime.now(UTC)
    error = failure_of(harness, attrs.evolve(OVERLOADED, headers={"retry-after": "3"}))

    assert isinstance(error, Outage)
    assert error.until is not None
    # The CLI has waited twice by then.
    assert error.until - before > timedelta(seconds=3 * 3)


def test_an_account_without_credit_is_exhausted(harness: Harness) -> None:
    text = "Your credit balance is too low to access the Anthropic API."
    error = failure_of(harness, Failure(400, "invalid_request_error", text))

    assert isinstance(error, Exhausted)


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("Error: connect ECONNREFUSED 127.0.0.1:443", Outage),
        ("TypeError: fetch failed", Outage),
        ("API Error: 529 overloaded_error", Outage),
        ("getaddrinfo EAI_AGAIN api.example", Outage),
        ("Segmentation fault", Transient),
        ("error: 5000 files were changed by 529 users", Transient),
    ],
)
def test_a_process_that_ends_because_of_an_outage_is_told_from_one_that_crashes(
    output: str, kind: type[Transient]
) -> None:
    error = process_error(ProcessError("the CLI exited", exit_code=1, stderr=output), started=True)

    assert type(error) is kind


def test_an_invalid_request_is_permanent(harness: Harness) -> None:
    error = failure_of(harness, Failure(400, "invalid_request_error", "max_tokens: too many"))

    assert isinstance(error, Permanent)
    assert not isinstance(error, Credentials | Exhausted)
    assert "max_tokens" in str(error)


@pytest.mark.slow
def test_an_unknown_model_is_permanent(harness: Harness) -> None:
    error = failure_of(harness, Failure(404, "not_found_error", "model: no-such-model"))

    assert isinstance(error, Permanent)


@pytest.mark.slow
def test_a_usage_limit_is_transient_and_has_its_end(harness: Harness) -> None:
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(ends.timestamp())),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    script = in_order(Failure(429, "rate_limit_error", "limit", headers))
    login = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-test"}

    with pytest.raises(Transient, match="limit") as raised:
        harness.run(script, env=login)
    assert raised.value.until == ends


def test_a_long_retry_after_is_not_waited_for(harness: Harness) -> None:
    start = time.monotonic()
    error = failure_of(harness, Failure(429, "rate_limit_error", "slow down", {"retry-after": "1800"}))

    assert isinstance(error, Transient)
    assert time.monotonic() - start < 10


def test_a_missing_cli_is_permanent_and_has_a_hint(harness: Harness) -> None:
    settings = ClaudeSettings(cli_path=str(harness.home / "claude"))

    with pytest.raises(Permanent, match=r"Claude Code CLI .* not found") as raised:
        asyncio.run(limited(run_claude(harness.task(), FakeAgentHost(), settings=settings)))
    assert "claude.cli_path" in raised.value.hint


def test_a_cli_that_rejects_its_arguments_is_permanent_and_quoted(harness: Harness) -> None:
    cli = harness.home / "old-claude"
    cli.write_text("#!/bin/sh\necho \"error: unknown option '--json-schema'\" >&2\nexit 1\n")
    cli.chmod(0o755)

    with pytest.raises(Permanent, match="unknown option"):
        asyncio.run(
            limited(run_claude(harness.task(), FakeAgentHost(), settings=ClaudeSettings(cli_path=str(cli))))
        )


def test_a_conversation_that_can_be_neither_started_nor_resumed_is_transient(harness: Harness) -> None:
    cli = harness.home / "confused-claude"
    cli.write_text("#!/bin/sh\necho 'No conversation found; it is already in use.' >&2\nexit 1\n")
    cli.chmod(0o755)
    settings = ClaudeSettings(cli_path=str(cli))

    with pytest.raises(Transient, match="neither started nor resumed"):
        asyncio.run(limited(run_claude(harness.task(), FakeAgentHost(), settings=settings)))


def test_a_missing_tree_is_permanent(harness: Harness) -> None:
    task = attrs.evolve(harness.task(), tree=Path("no-such-tree"))

    with pytest.raises(Permanent, match="no-such-tree"):
        asyncio.run(limited(run_claude(task, FakeAgentHost())))
