"""Every page, in both themes and at several widths: accessible, without errors, no wider than the window."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import attrs
import pytest
from playwright.sync_api import ViewportSize

from tests.browser.dashboard import RUN_MS, SCENARIOS, THEMES, Dashboard, Page, expect, until

pytestmark = pytest.mark.browser

AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
GRAVE = ("serious", "critical")
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
HEIGHT = 900
NARROW, MIDDLE, WIDE = 360, 768, 2560
PAGES = {
    "runs": "/",
    "start a run": "/new",
    "questions": "/q",
    "question": "/q/{question}",
    "plugins": "/plugins",
    "overview": "/s/{done}",
    "phase": "/s/{done}/phase/1",
    "evidence": "/s/{done}/evidence",
    "events": "/s/{done}/history",
    "log": "/s/{done}/log",
    "terminal": "/s/{done}/terminal",
    "cost": "/s/{done}/cost",
    "overview that waits": "/s/{waiting}",
    "overview with gaps": "/s/{failed}",
    "phase with gaps": "/s/{failed}/phase/1",
    "evidence with gaps": "/s/{failed}/evidence",
    "no such page": "/nothing",
    "no such run": "/s/s99",
}


@attrs.frozen(kw_only=True)
class Shown:
    """Sessions in every state: one is done, one failed with gaps, and one waits for an answer."""

    dashboard: Dashboard
    done: str
    failed: str
    waiting: str
    question: str

    def path(self, name: str) -> str:
        """Return the path of a page."""
        return PAGES[name].format(
            done=self.done, failed=self.failed, waiting=self.waiting, question=self.question
        )


@pytest.fixture(scope="module")
def shown(dashboard: Dashboard, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Return a dashboard with something on every page."""
    base = tmp_path_factory.mktemp("projects")
    options = {
        "done": ("--yes", "--script", str(SCENARIOS / "closed-gap.toml")),
        "failed": ("--yes", "--no-input", "--script", str(SCENARIOS / "staying-gaps.toml")),
        "waiting": ("--script", str(SCENARIOS / "unanswered-question.toml")),
    }
    sessions: dict[str, str] = {}
    for name, words in options.items():
        (base / name).mkdir()
        sessions[name] = dashboard.start(base / name, *words)

    def states() -> Sequence[str]:
        return [dashboard.get(f"/sessions/{session}")["session"]["state"] for session in sessions.values()]

    until(lambda: states() == ["completed", "failed", "waiting_checkpoint"], RUN_MS / 1000)
    question = dashboard.question(sessions["waiting"])["id"]
    return Shown(dashboard=dashboard, **sessions, question=question)


def settled(page: Page) -> None:
    """Wait until the page has read what it shows."""
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("status", name="loading")).to_have_count(0)


def findings(page: Page) -> Sequence[str]:
    """Return what axe-core finds on the page, each with its rule and the elements."""
    # Not as a script of the page, which the policy for contents would refuse.
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert found["passes"], "axe-core has checked nothing"
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]}: {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_fits_and_reports_no_errors(name: str, shown: Shown) -> None:
    viewport: ViewportSize = {"width": 1280, "height": HEIGHT}
    with shown.dashboard.opened(shown.path(name), color_scheme="light", viewport=viewport) as page:
        settled(page)
        found: list[str] = []
        colors: set[str] = set()
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            found += [f"{theme}: {one}" for one in findings(page)]
            colors.add(page.evaluate(BACKGROUND))
        assert len(colors) == len(THEMES)
        found += overlaps(page)
        for width in (WIDE, MIDDLE, NARROW):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            settled(page)
            found += [*overflow(page), *overlaps(page)]
        found += [f"{NARROW} px: {one}" for one in findings(page)]
        assert found == []


OVERLAPS = """() => {
  const pieces = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    const isShown = parent.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
    if (!isShown || !node.data.trim()) continue;
    // The emulator draws cells of its own, and what is only for screen readers has no place.
    if (parent.closest(".xterm, .hidden, .skip, title, option, datalist, script, style")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      // The boxes of letters are higher than the letters, and those of close lines touch.
      const trim = rect.height * 0.22;
      const box = {left: rect.left, right: rect.right, top: rect.top + trim, bottom: rect.bottom - trim};
      for (let one = parent; one && one !== document.body; one = one.parentElement) {
        const style = getComputedStyle(one);
        if (style.overflowX === "visible" && style.overflowY === "visible") continue;
        const clip = one.getBoundingClientRect();
        box.left = Math.max(box.left, clip.left);
        box.right = Math.min(box.right, clip.right);
        box.top = Math.max(box.top, clip.top);
        box.bottom = Math.min(box.bottom, clip.bottom);
      }
      if (box.right - box.left > 1 && box.bottom - box.top > 1) pieces.push({node, ...box});
    }
  }
  pieces.sort((a, b) => a.top - b.top);
  const found = [];
  pieces.forEach((a, index) => {
    for (const b of pieces.slice(index + 1)) {
      if (b.top >= a.bottom) break;
      if (a.node === b.node) continue;
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - b.top;
      if (width > 1 && height > 1) found.push(`${innerWidth} px: "${a.node.data}" lies on "${b.node.data}"`);
    }
  });
  return [...new Set(found)].slice(0, 5);
}"""


def overlaps(page: Page) -> Sequence[str]:
    """Return which visible texts lie on each other."""
    return page.evaluate(OVERLAPS)  # type: ignore[no-any-return]


def test_texts_that_lie_on_each_other_are_found(shown: Shown) -> None:
    """The check of all pages would mean nothing if it found nothing."""
    with shown.dashboard.opened("/plugins") as page:
        settled(page)
        assert overlaps(page) == []
        page.evaluate("document.querySelector('main li p').style.marginTop = '-20px'")
        assert len(overlaps(page)) > 0


def overflow(page: Page) -> Sequence[str]:
    """Return what makes the page wider than the window."""
    return page.evaluate(  # type: ignore[no-any-return]
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) {
            const main = document.querySelector("main");
            if (!main || main.scrollWidth <= main.clientWidth) return [];
          }
          return [...document.querySelectorAll("body *")]
            .filter(one => one.getBoundingClientRect().right > width + 1)
            .slice(0, 5)
            .map(one => `wider than ${width} px: ` + one.outerHTML.slice(0, 200));
        }"""
    )


def test_on_a_phone_the_help_is_there_and_the_words_of_an_event_are_below_its_name(shown: Shown) -> None:
    viewport: ViewportSize = {"width": NARROW, "height": HEIGHT}
    with shown.dashboard.opened(f"/s/{shown.failed}/history", viewport=viewport) as page:
        event = page.get_by_role("region", name="events").get_by_role("button", name="process ended").last
        name, words = (event.locator(f".event-{part}").bounding_box() for part in ("name", "text"))
        assert name
        assert words
        assert words["y"] >= name["y"] + name["height"] - 1
        assert words["width"] > NARROW * 0.8
        page.get_by_role("button", name="keys").click()
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_on_a_phone_the_progress_of_all_runs_has_bars_of_the_same_length(shown: Shown) -> None:
    viewport: ViewportSize = {"width": NARROW, "height": HEIGHT}
    with shown.dashboard.opened("/", viewport=viewport) as page:
        bars = page.get_by_role("main").get_by_role("progressbar")
        expect(bars).to_have_count(3)
        boxes = [box for bar in bars.all() if (box := bar.bounding_box())]
        assert len({(round(box["x"]), round(box["width"])) for box in boxes}) == 1


def test_a_tab_with_the_focus_is_in_sight(shown: Shown) -> None:
    viewport: ViewportSize = {"width": NARROW, "height": HEIGHT}
    with shown.dashboard.opened(f"/s/{shown.done}", viewport=viewport) as page:
        tabs = page.get_by_role("navigation", name="views of the run")
        edges = tabs.bounding_box()
        assert edges
        tabs.get_by_role("link", name="Overview").focus()
        for name in ("Evidence", "Events", "Log", "Terminal", "Cost"):
            page.keyboard.press("Tab")
            tab = tabs.get_by_role("link", name=name)
            expect(tab).to_be_focused()
            box = tab.bounding_box()
            assert box
            assert edges["x"] - 1 <= box["x"]
            assert box["x"] + box["width"] <= edges["x"] + edges["width"] + 1


def test_nothing_moves_for_those_who_want_less_motion(shown: Shown) -> None:
    moving = "document.getAnimations().filter(one => one.playState === 'running').length"
    with shown.dashboard.opened(f"/s/{shown.waiting}", reduced_motion="reduce") as page:
        settled(page)
        assert page.evaluate(moving) == 0
        styles = page.evaluate(
            """() => [...document.querySelectorAll("*")].map(one => getComputedStyle(one)).filter(
                  one => one.animationName !== "none" || parseFloat(one.transitionDuration) > 0
                ).length"""
        )
        assert styles == 0


def test_the_policy_for_contents_is_in_force(shown: Shown) -> None:
    """The other tests look for its violations, which would mean nothing without it."""
    with shown.dashboard.opened("/", errors_expected=True) as page:
        refused = page.evaluate(
            """() => new Promise(resolve => {
              addEventListener("securitypolicyviolation", event => resolve(event.violatedDirective));
              const image = document.createElement("img");
              image.src = "http://127.0.0.1:1/x.png";
              document.body.append(image);
            })"""
        )
        assert refused.startswith("img-src")


def test_the_theme_is_kept_over_a_reload(shown: Shown) -> None:
    with shown.dashboard.opened("/", color_scheme="light") as page:
        light = page.evaluate(BACKGROUND)
        page.get_by_role("button", name="light or dark theme").click()
        dark = page.evaluate(BACKGROUND)
        assert dark != light
        page.reload()
        expect(page.get_by_role("main")).to_be_visible()
        assert page.evaluate(BACKGROUND) == dark
