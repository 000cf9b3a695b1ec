"""Settings of the agent: the section ``claude`` of ``gsd.toml``."""

from __future__ import annotations

from attrs import frozen

from gsd_core import setting


@frozen(kw_only=True)
class ClaudeSettings:
    """*cli_path*: a Claude Code CLI to use in place of the SDK's own.

    *max_retries*: how often the CLI repeats a failed request by itself; the step is retried after that.
    *environment*: names of further variables that an agent and its commands may see (``JAVA_HOME``);
    ``NAME_*`` is a prefix. ``ANTHROPIC_API_KEY`` reaches the CLI anyway, its commands only if named here.
    """

    cli_path: str = setting("", help="a Claude Code CLI to use in place of the bundled one")
    max_retries: int = setting(2, help="how often the CLI repeats a failed request")
    environment: tuple[str, ...] = setting((), help="further environment variables that agents may see")
