"""The user's own login to Claude Code, for the proxy: where it is stored, only Claude Code knows.

It may be in a file, in a keychain, or be a key from the console, and it is renewed every few hours. So Claude
Code itself is started outside of the sandbox, without any tool, and makes one request to an address on
loopback, which goes no further. It renews the login before that if it has to.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import attrs

from .cli import proxy_variables, unattended_variables
from .proxy import Access, credentials_sent

START_SECONDS = 60.0
RENEW_SECONDS = 10.0
"""After a renewal, all requests of that time get its result."""


@attrs.define(kw_only=True, eq=False)
class Login:
    """The login that *cli* has with *environment*."""

    cli: Path
    environment: Mapping[str, str] = attrs.field(factory=dict[str, str])
    _sent: Mapping[str, str] = attrs.field(factory=dict[str, str])
    _at: float = 0.0
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def credentials(self, renewed: bool) -> Mapping[str, str]:
        """Return the headers with which Claude Code logs in, *renewed* if it can; empty without a login.

        Blocks: starting Claude Code takes a second.
        """
        with self._lock:
            if not self._sent or (renewed and time.monotonic() - self._at > RENEW_SECONDS):
                self._sent, self._at = credentials_sent(self._start), time.monotonic()
            return self._sent

    def _start(self, url: str) -> None:
        inherited = {**self.environment, **unattended_variables(0)}
        options = ("--setting-sources=", "--strict-mcp-config", "--tools", "", "--no-session-persistence")
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [self.cli, "--print", *options, "--system-prompt", "none", "hello"],
                env={**inherited, **proxy_variables(inherited, url)},
                # Not in the project, whose own settings may name programs to run.
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                start_new_session=True,
                timeout=START_SECONDS,
                check=False,
            )


@cache
def _login(cli: Path, home: str, folder: str) -> Login:
    return Login(cli=cli)


def login_access(cli: Path, access: Access, environment: Mapping[str, str]) -> Access | None:
    """Return *access* with the login that *cli* has with *environment*; ``None`` without one."""
    login = _login(cli, environment.get("HOME", ""), environment.get("CLAUDE_CONFIG_DIR", ""))
    login.environment = environment
    sent = login.credentials(False)
    return attrs.evolve(access, credentials=login.credentials, is_key="x-api-key" in sent) if sent else None
