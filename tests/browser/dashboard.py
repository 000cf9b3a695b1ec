"""What the browser tests share: a server with real sessions, and pages that may not report any error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

from gsd_plugins.sessions import host
from tests.e2e.project import EXAMPLE
from tests.web.test_serve import Server

__all__ = ["Dashboard", "Page", "expect", "no_state", "sessions_ended", "until"]

SCENARIOS = EXAMPLE.parent / "rehearsal"
REHEARSAL = {"CLI": "0", "PHASES": "1", "QUESTION": "1", "GAP": "0", "OVERLOADED": "0"}
LOAD_MS = 20_000
RUN_MS = 120_000
expect.set_options(timeout=LOAD_MS)


@contextmanager
def no_state(base: Path) -> Generator[None]:
    """Give gsd empty folders below *base*, and let its rehearsals run in seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GSD_")]:
            patch.delenv(name)
        patch.setenv("GSD_STATE_DIR", str(base / "state"))
        patch.setenv("GSD_CONFIG", str(base / "no-config.toml"))
        patch.setenv("GSD_SANDBOX_CACHES", "false")
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        for name, value in REHEARSAL.items():
            patch.setenv(f"GSD_REHEARSAL_{name}", value)
        yield


@contextmanager
def sessions_ended() -> Generator[None]:
    """Stop the sessions that run when the context ends."""
    yield
    for session in host.list_sessions(everything=False):
        host.stop_session(session.id)
    until(lambda: not host.list_sessions(everything=False))


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until *condition* is true."""
    latest = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < latest, f"not within {seconds:.0f} s"
        time.sleep(0.02)


@attrs.define(kw_only=True)
class Dashboard:
    """A running server; *base* is the folder of its state."""

    browser: Browser
    server: Server
    base: Path

    def url(self, path: str = "/") -> str:
        """Return the URL of a page, such as ``/s/s1``, with the token."""
        return f"http://127.0.0.1:{self.server.port}/#{path}&token={self.server.token}"

    @contextmanager
    def opened(self, path: str = "/", *, errors_expected: bool = False, **options: Any) -> Generator[Page]:
        """Open a page in a window of its own; at the end, no error may have been reported in it.

        *options* are those of Playwright's ``Browser.new_context``.
        """
        chosen: dict[str, Any] = {"reduced_motion": "reduce", **options}
        context = self.browser.new_context(**chosen)
        context.set_default_timeout(LOAD_MS)
        page = context.new_page()
        errors: list[str] = []
        page.on("console", lambda message: errors.extend(_problem(message)))
        page.on("pageerror", lambda error: errors.append(str(error)))
        try:
            page.goto(self.url(path))
            expect(page.get_by_role("main")).to_be_visible()
            yield page
        finally:
            context.close()
        assert errors_expected or errors == []

    def start(self, project: Path, *options: str) -> str:
        """Start ``gsd run --bg`` with the rehearsal in *project*, and return the session."""
        command = [sys.executable, "-m", "gsd_core", "run", str(EXAMPLE), "--agent", "rehearsal", "-C"]
        command += [str(project), *options, "--bg"]
        before = {session.id for session in host.list_sessions()}
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        (found,) = {session.id for session in host.list_sessions()} - before
        return found

    def get(self, path: str) -> Any:
        """Return what the interface returns for *path*."""
        status, data = self.server.request("GET", f"/api/v1{path}")
        assert status == 200, data
        return data

    def answer(self, session: str, question: str, words: str) -> None:
        """Answer a question without the page."""
        path = f"/api/v1/sessions/{session}/questions/{question}/answer"
        status, data = self.server.request("PUT", path, {"words": words})
        assert status == 200, data

    def watching(self) -> Dashboard:
        """Return the same server with the token that may only watch."""
        kept = json.loads((self.base / "state" / "serve" / f"{self.server.port}.json").read_text())
        server = attrs.evolve(self.server, token=kept["read"])
        return attrs.evolve(self, server=server)

    def question(self, session: str) -> dict[str, Any]:
        """Wait for a question of the session that nobody has answered, and return it."""
        found: list[dict[str, Any]] = []

        def is_asked() -> bool:
            asked = self.get(f"/sessions/{session}/questions")["questions"]
            found[:] = [one for one in asked if not one["answer_given"]]
            return bool(found)

        until(is_asked, RUN_MS / 1000)
        return found[0]


def _problem(message: ConsoleMessage) -> list[str]:
    # Violations of the policy for contents are errors of the console.
    if message.type not in ("error", "warning"):
        return []
    return [f"{message.type}: {message.text} ({message.location.get('url', '')})"]


def link(page: Page, name: str) -> Locator:
    """Return the tab of a run with this name."""
    return page.get_by_role("navigation", name="views of the run").get_by_role("link", name=name)


Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
