"""Checks of the set-up: the tokens, the channel, and who may answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from gsd_core import ConfigError, Finding

from .settings import APP_TOKEN, BOT_TOKEN, SlackSettings, tokens
from .thread import error_code, library_log

TIMEOUT = 5


def examine(settings: SlackSettings) -> Iterator[Finding]:
    """Yield a finding for each part of the set-up; nothing is posted."""
    try:
        bot_token, app_token = tokens()
    except ConfigError as error:
        yield Finding(name="slack tokens", ok=False, message=str(error), fix=error.hint)
        return
    client: Any = WebClient(token=bot_token, base_url=settings.api_url, timeout=TIMEOUT, logger=library_log)
    fixes = {
        "channel_not_found": "set slack.channel to the channel's id, and invite the app to a private channel",
        "missing_scope": "add the scopes of the app manifest in the README, and install the app again",
    }

    def check(name: str, method: str, fix: str, **arguments: Any) -> tuple[Finding, dict[str, Any]]:
        try:
            data: Any = client.api_call(method, **arguments).data
        except (SlackApiError, OSError) as error:
            code = error_code(error) or type(error).__name__
            return Finding(name=name, ok=False, message=f"{method}: {code}", fix=fixes.get(code, fix)), {}
        return Finding(name=name, ok=True, message=f"{method} succeeded"), data

    finding, _ = check("slack bot token", "auth.test", f"set {BOT_TOKEN} to the app's bot token")
    yield finding
    if not finding.ok:
        return
    finding, _ = check(
        "slack app token",
        "apps.connections.open",
        f"set {APP_TOKEN} to an app-level token with the scope connections:write, and enable Socket Mode",
        headers={"Authorization": f"Bearer {app_token}"},
    )
    yield finding
    about = {"channel": settings.channel}
    finding, data = check("slack channel", "conversations.info", "check slack.channel", params=about)
    channel: dict[str, Any] = data.get("channel") or {}
    if finding.ok and not channel.get("is_member"):
        name, fix = "slack channel", "invite the app: /invite @gsd in the channel"
        finding = Finding(name=name, ok=False, message="the app is not a member of the channel", fix=fix)
    yield finding
    for user in settings.users:
        finding, _ = check(f"slack user {user}", "users.info", "check slack.users", params={"user": user})
        yield finding
    if not settings.users:
        message = "slack.users is empty: questions are shown, and nobody can answer them in Slack"
        yield Finding(name="slack users", ok=True, message=message)
