"""The terminal of a session on the page: its pixels, its text, its size and its keys."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gsd_plugins.sessions import host
from tests.browser.dashboard import Dashboard, expect
from tests.sessions.test_adversaries import ended, plugins, printed, probe
from tests.sessions.test_adversaries import until as until_session

pytestmark = pytest.mark.browser
__all__ = ["plugins"]

# Returns the share of the pixels that are brighter than the background can be.
BRIGHT = """async url => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, image.width, image.height);
  let bright = 0;
  for (let at = 0; at < data.length; at += 4) if (data[at + 1] > 150) bright += 1;
  return bright / (data.length / 4);
}"""


def bright_share(browser: Browser, png: bytes) -> float:
    """Return the share of bright pixels in an image."""
    page = browser.new_page()
    share: float = page.evaluate(BRIGHT, "data:image/png;base64," + base64.b64encode(png).decode())
    page.close()
    return share


def test_the_terminal_shows_text_takes_keys_and_has_the_size_of_the_page(
    dashboard: Dashboard, plugins: Path
) -> None:
    session = probe(plugins, "size")
    until_session(session, printed(session, b"ready"))
    with dashboard.opened(f"/s/{session}/terminal", viewport={"width": 1280, "height": 900}) as page:
        rows = page.locator(".xterm-rows")
        expect(rows).to_contain_text("ready")

        # Until somebody types here, the page watches: no key and no size reaches the session.
        page.keyboard.type("zzz")
        page.get_by_role("button", name="Type here").click()
        first = until_size(session, 1)
        page.keyboard.type("héllo ✓")
        expect(rows).to_contain_text("héllo ✓")
        until_session(session, printed(session, "héllo ✓".encode()))
        assert b"zzz" not in host.output_of(session).data

        page.set_viewport_size({"width": 700, "height": 700})
        narrow = until_size(session, 2)
        assert narrow[0] < first[0]
        assert narrow[1] < first[1]
        expect(rows).to_contain_text(f"columns={narrow[0]}, lines={narrow[1]}")
        page.set_viewport_size({"width": 1280, "height": 900})
        expect(rows).to_contain_text("héllo ✓")

        # What one sees, and not only what is in the document: text is bright on a dark ground.
        share = bright_share(dashboard.browser, page.locator(".xterm-screen").screenshot())
        assert 0.0005 < share < 0.5

        page.keyboard.press("Control+Escape")
        expect(page.get_by_text("Watching")).to_be_visible()
        page.keyboard.type("zzz")
        page.reload()
        expect(rows).to_contain_text("héllo ✓")
        assert b"zzz" not in host.output_of(session).data

        page.get_by_role("button", name="Type here").click()
        page.keyboard.press("Control+c")
        expect(page.get_by_text("The session has ended")).to_be_visible()
    until_session(session, ended)


def until_size(session: str, number: int) -> tuple[int, int]:
    """Return the columns and rows that the session printed last, once it was resized *number* times."""
    sizes: list[tuple[int, int]] = []

    def is_resized(_: object) -> bool:
        text = host.output_of(session).data.decode("utf-8", "replace")
        found = re.findall(r"columns=(\d+), lines=(\d+)", text)
        sizes[:] = [(int(columns), int(lines)) for columns, lines in found]
        return len(dict.fromkeys(sizes)) >= number

    until_session(session, is_resized)
    return sizes[-1]


def test_what_a_session_prints_changes_neither_the_page_nor_its_title(
    dashboard: Dashboard, plugins: Path
) -> None:
    session = probe(plugins, "hostile")
    until_session(session, ended)
    with dashboard.opened(f"/s/{session}/terminal") as page:
        expect(page.locator(".xterm-rows")).to_contain_text("red")
        assert "owned" not in page.title()
        assert not page.get_by_text("owned").count()
