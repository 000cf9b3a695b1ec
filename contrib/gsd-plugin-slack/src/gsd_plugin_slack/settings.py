"""The settings, section ``slack``; the tokens are in the environment."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import attrs

from gsd_core import ConfigError, setting

if TYPE_CHECKING:
    from .session import SlackSession

BOT_TOKEN = "SLACK_BOT_TOKEN"
APP_TOKEN = "SLACK_APP_TOKEN"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@attrs.frozen(kw_only=True)
class SlackSettings:
    """Where a run is shown, and who may answer there.

    *channel* is a channel's id (``C…``); without one, the plugin does nothing. *users* are the ids (``U…``)
    of the people who may answer; without any, questions are only shown. *mention*: whether a question
    mentions them, which notifies them. *progress*: what the thread shows: each task, each phase, or only
    questions and the end. *wait*: how long a question waits for Slack before the run looks for another way,
    and ends if there is none; without a value it waits until somebody answers. *api_url* is the address of
    Slack's Web API.
    """

    channel: str = setting("", help="id of the Slack channel to show runs in")
    # Who answers gives consent, and who receives the tokens can answer: the project may not choose either.
    users: tuple[str, ...] = setting((), help="ids of the Slack users who may answer", consent=True)
    mention: bool = setting(True, harmless=True)
    progress: Literal["tasks", "phases", "none"] = setting("tasks", harmless=True)
    wait: timedelta | None = setting(None)
    api_url: str = setting("https://slack.com/api/", consent=True)

    # A run's state, here because two runs may share a process. `Any`, because the type is not imported here.
    _sessions: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse names instead of ids, and an address to which the tokens would be sent unencrypted."""
        for name in (self.channel, *self.users):
            if name and not name.isalnum():
                raise ValueError(f"expected the id of a channel or a user, such as C0123ABCDEF, got {name!r}")
        address = urlsplit(self.api_url)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in LOOPBACK):
            raise ValueError(f"expected an https address, got {self.api_url!r}")

    @property
    def session(self) -> SlackSession | None:
        """The session of the run, if one is open."""
        return self._sessions[-1] if self._sessions else None

    def keep(self, session: SlackSession | None) -> None:
        """Make *session* the run's own; ``None`` forgets it."""
        self._sessions[:] = [session] if session else []


def tokens() -> tuple[str, str]:
    """Return the bot token and the app-level token; raise ``ConfigError`` if one is missing or mixed up."""
    found: list[str] = []
    for name, prefix in ((BOT_TOKEN, "xoxb-"), (APP_TOKEN, "xapp-")):
        token = os.environ.get(name, "").strip()
        if not token.startswith(prefix):
            problem = f"does not begin with {prefix}" if token else "is not set"
            raise ConfigError(f"slack: {name} {problem}", hint=f"set {name}, or unset slack.channel")
        found.append(token)
    return found[0], found[1]
