"""The settings, section ``github``; the token is in the environment."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import attrs

from gsd_core import ConfigError, setting

TOKEN = "GITHUB_TOKEN"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ISSUE = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9_.-]+)#([1-9][0-9]{0,9})")


@attrs.frozen(kw_only=True)
class Issue:
    """An issue by its repository and number."""

    owner: str
    repo: str
    number: int

    @classmethod
    def parse(cls, text: str) -> Issue:
        """Return the issue in ``OWNER/REPO#N``; raise ``ValueError`` for anything else."""
        match = _ISSUE.fullmatch(text)
        if match is None or match[2] in (".", ".."):
            raise ValueError(f"expected OWNER/REPO#NUMBER, got {text!r}")
        return cls(owner=match[1], repo=match[2], number=int(match[3]))

    def __str__(self) -> str:
        """Return ``OWNER/REPO#N``."""
        return f"{self.owner}/{self.repo}#{self.number}"

    @property
    def path(self) -> str:
        """The path of the repository in the API."""
        return f"/repos/{self.owner}/{self.repo}"


@attrs.frozen(kw_only=True)
class GitHubSettings:
    """The issue that a run works on, and who may answer there.

    *issue* (``OWNER/REPO#N``) is where a run asks its questions; ``gsd github run`` sets it. *users* are the
    logins of the people who may answer, and whose issues ``gsd github watch`` takes. *label* marks the issues
    for it. *poll* is the time between two looks for new comments. *api_url* is the address of the API.
    """

    issue: str = setting("", flag="--github-issue", help="ask questions in this issue", consent=True)
    # Who answers gives consent, and who receives the token can write: the project may choose neither.
    users: tuple[str, ...] = setting((), help="logins of the GitHub users who may answer", consent=True)
    label: str = setting("gsd")
    poll: timedelta = setting(timedelta(seconds=15))
    api_url: str = setting("https://api.github.com", consent=True)
    # A run's state, here because two runs may share a process. `Any`, because the type is not imported here.
    _channels: list[Any] = attrs.field(factory=list[Any], init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse an invalid issue, and an address to which the token would be sent unencrypted."""
        if self.issue:
            Issue.parse(self.issue)
        address = urlsplit(self.api_url)
        if address.scheme != "https" and not (address.scheme == "http" and address.hostname in LOOPBACK):
            raise ValueError(f"expected an https address, got {self.api_url!r}")

    @property
    def channel(self) -> Any:
        """The channel of the run, if one is open."""
        return self._channels[-1] if self._channels else None

    def keep(self, channel: object) -> None:
        """Make *channel* the run's own; ``None`` forgets it."""
        self._channels[:] = [channel] if channel is not None else []

    def may_answer(self, login: str) -> bool:
        """Whether the user *login* may answer."""
        return login.casefold() in {user.casefold() for user in self.users}


def token() -> str:
    """Return the token; raise ``ConfigError`` if it is missing."""
    found = os.environ.get(TOKEN, "").strip()
    if not found:
        raise ConfigError(f"github: {TOKEN} is not set", hint=f"set {TOKEN} to a token for the repository")
    return found
