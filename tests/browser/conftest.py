"""A real Chromium, and a real ``gsd serve`` with sessions that rehearse; each module has its own of both."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.dashboard import Dashboard, Page, no_state, sessions_ended
from tests.web.test_serve import serve

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Read here, because the tests have no variables of gsd.
IS_REQUIRED = bool(os.environ.get("CI") or os.environ.get("GSD_REQUIRE_BROWSER"))


@pytest.fixture(scope="session")
def chromium() -> Generator[Browser]:
    """Return the browser that is installed; Playwright's own is never downloaded."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        why = f"none of {', '.join(BROWSERS)} is installed"
        pytest.fail(why) if IS_REQUIRED else pytest.skip(why)
    with sync_playwright() as playwright:
        # Without /dev/shm, which is small in containers.
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def dashboard(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Dashboard]:
    """Return a server without sessions."""
    base = tmp_path_factory.mktemp("dashboard")
    with no_state(base), serve(base) as server, sessions_ended():
        yield Dashboard(browser=chromium, server=server, base=base)


@pytest.fixture
def page(dashboard: Dashboard) -> Generator[Page]:
    """Return a page that has the server's token, on the list of runs."""
    with dashboard.opened() as page:
        yield page


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return an empty folder for a project."""
    folder = tmp_path / "greeter"
    folder.mkdir()
    return folder
