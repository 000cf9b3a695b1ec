"""Questions on the page: how soon they are there, who may answer, and what the others see."""

from __future__ import annotations

import statistics
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.browser.dashboard import Dashboard, Page, expect, until

pytestmark = pytest.mark.browser

MEASURED = 24
QUESTIONS = MEASURED + 8
LIMIT_MS = 250.0

RULE = """
[[rule]]
when = {{ plan = "01-01", task = 1 }}
do = "question"
text = "Where are the guests of room {number} kept?"
header = "Room {number}"
options = ["In a text file", "In SQLite"]
"""

# The time at which the link to a question is in the document, by the question's id.
OBSERVE = """
window.seen = {};
const look = () => {
  for (const link of document.querySelectorAll('a[href^="#/q/"]')) {
    const id = link.getAttribute("href").slice(4);
    window.seen[id] ??= Date.now();
  }
};
new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
"""


@pytest.fixture(scope="module")
def asking(dashboard: Dashboard, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a session whose run asks one question after the other."""
    base = tmp_path_factory.mktemp("asking")
    script = base / "questions.toml"
    rules = "".join(RULE.format(number=number) for number in range(1, QUESTIONS + 1))
    script.write_text(f'[scenario]\ndescription = "Asks a lot"\n{rules}')
    (base / "hotel").mkdir()
    return dashboard.start(base / "hotel", "--script", str(script))


def answered(dashboard: Dashboard, session: str, question: str) -> dict[str, Any]:
    """Wait until the run has an answer to *question*, and return it."""
    found: list[dict[str, Any]] = []

    def is_taken() -> bool:
        given = dashboard.get(f"/sessions/{session}/questions")["answered"]
        found[:] = [one for one in given if one["id"] == question]
        return bool(found)

    until(is_taken)
    return found[0]


def test_a_question_is_on_the_page_within_a_quarter_of_a_second(
    dashboard: Dashboard, asking: str, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    dashboard.question(asking)
    with dashboard.opened("/q") as page:
        expect(page.get_by_role("article")).to_have_count(1)
        page.evaluate(OBSERVE)
        delays: list[float] = []
        before = dashboard.question(asking)["id"]
        dashboard.answer(asking, before, "1")
        while len(delays) < MEASURED:
            asked = dashboard.question(asking)
            # Not for a moment is a question open again that has an answer.
            assert asked["id"] != before
            page.wait_for_function("id => window.seen[id]", arg=asked["id"])
            at = datetime.fromisoformat(asked["asked_at"]).timestamp() * 1000
            delays.append(page.evaluate("id => window.seen[id]", asked["id"]) - at)
            before = asked["id"]
            dashboard.answer(asking, before, "1")

    quantiles = statistics.quantiles(delays, n=100, method="inclusive")
    p50, p99 = quantiles[49], quantiles[98]
    record_property("p50_ms", round(p50))
    record_property("p99_ms", round(p99))
    with capsys.disabled():
        print(f"\n{len(delays)} questions on the page after {p50:.0f} ms (p50), {p99:.0f} ms (p99)")
    # Of a machine with other work, only the median says something about gsd.
    assert min(delays) > 0
    assert p50 < LIMIT_MS


def test_of_two_pages_that_answer_at_once_one_wins_and_the_other_shows_the_answer(
    dashboard: Dashboard, asking: str
) -> None:
    asked = dashboard.question(asking)
    path = f"/q/{asked['id']}"
    # A refused answer is an error on the browser's console, whichever page gets it.
    with (
        dashboard.opened(path, errors_expected=True) as first,
        dashboard.opened(path, errors_expected=True) as second,
    ):
        first.get_by_role("radio", name="In a text file").check()
        second.get_by_role("radio", name="In SQLite").check()
        # Both at the same time by the clock that the two pages share.
        press = """async at => {
          await new Promise(resolve => setTimeout(resolve, at - Date.now()));
          document.querySelector("form button[type=submit]").click();
        }"""
        at = first.evaluate("Date.now() + 400")
        for page in (first, second):
            page.evaluate(f"at => void ({press})(at)", at)
        taken = answered(dashboard, asking, asked["id"])

        winner, loser = (first, second) if "text file" in taken["words"] else (second, first)
        for page in (first, second):
            shown = page.get_by_role("listitem").filter(has_text=asked["text"])
            expect(shown).to_contain_text(taken["words"])
            expect(shown).to_contain_text(taken["by"])
        expect(loser.get_by_text(f"already answered: {taken['words']} (by {taken['by']})")).to_be_visible()
        expect(winner.get_by_text("already answered")).to_have_count(0)
    events = dashboard.get(f"/sessions/{asking}/events?name=question.answered&last=1000")["events"]
    assert [one["data"]["words"] for one in events if one["data"]["question"] == asked["id"]] == [
        taken["words"]
    ]


def test_a_link_to_a_question_opens_it_ready_for_an_answer_by_key(dashboard: Dashboard, asking: str) -> None:
    asked = dashboard.question(asking)
    # As from a notification: in a new tab, which does not have the token yet.
    with dashboard.opened(f"/q/{asked['id']}") as page:
        card = page.get_by_role("article", name=asked["header"])
        expect(card).to_be_focused()
        expect(card).to_contain_text(asked["text"])
        assert page.url.endswith(f"/#/q/{asked['id']}")
        page.keyboard.press("2")
        expect(page.get_by_role("radio", name="In SQLite")).to_be_checked()
        page.keyboard.press("Enter")
        taken = answered(dashboard, asking, asked["id"])
        assert taken["words"] == "In SQLite"
        expect(page.get_by_text("In SQLite")).to_be_visible()


def test_without_the_token_a_link_asks_for_it_and_then_shows_the_question(
    dashboard: Dashboard, asking: str
) -> None:
    asked = dashboard.question(asking)
    context = dashboard.browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{dashboard.server.port}/#/q/{asked['id']}")
    page.get_by_label("The address that").fill(dashboard.url())
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("article", name=asked["header"])).to_be_visible()
    context.close()


def test_with_the_token_for_watching_nobody_answers_or_stops(dashboard: Dashboard, asking: str) -> None:
    asked = dashboard.question(asking)
    watching = dashboard.watching()
    with watching.opened(f"/q/{asked['id']}") as page:
        expect(page.get_by_role("article", name=asked["header"])).to_be_visible()
        expect(page.get_by_role("radio", name="In SQLite")).to_be_disabled()
        expect(page.get_by_text("may only watch")).to_be_visible()
        page.goto(f"http://127.0.0.1:{dashboard.server.port}/#/s/{asking}")
        expect(page.get_by_role("button", name="Stop")).to_be_disabled()


def has_visible_focus(page: Page) -> bool:
    """Whether the focused element has an outline, a shadow or a border that shows the focus."""
    return bool(
        page.evaluate(
            """() => {
              const element = document.activeElement;
              if (!element || element === document.body) return false;
              const looks = one => {
                const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
                return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
              };
              return looks(element) || looks(element.closest("label") ?? element);
            }"""
        )
    )


def test_everything_is_done_with_the_keyboard_and_the_focus_is_visible(
    dashboard: Dashboard, asking: str, page: Page
) -> None:
    asked = dashboard.question(asking)
    press = page.keyboard.press
    press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    # Every stop of the Tab key can be seen.
    seen: list[str] = []
    press("Tab")
    while page.evaluate("document.activeElement !== document.body"):
        seen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
        assert has_visible_focus(page), seen[-1]
        assert seen.count(seen[0]) == 1
        press("Tab")
    assert len(seen) >= 8

    press("g")
    press("r")
    run = page.locator("main").get_by_role("link").filter(has_text="hotel")
    expect(run.first).to_be_visible()
    press("j")
    assert has_visible_focus(page)
    while asking not in (page.evaluate("document.activeElement.getAttribute('href')") or ""):
        press("j")
    press("Enter")
    card = page.get_by_role("article", name=asked["header"])
    expect(card).to_be_visible()
    press("j")
    expect(card).to_be_focused()
    assert has_visible_focus(page)
    press("1")
    press("ArrowDown")
    expect(page.get_by_role("radio", name="In SQLite")).to_be_checked()
    assert has_visible_focus(page)
    press("Enter")
    assert answered(dashboard, asking, asked["id"])["words"] == "In SQLite"

    for name in ("Evidence", "Events", "Log"):
        page.keyboard.press("Escape")
        press("]")
        tabs = page.get_by_role("navigation", name="views of the run")
        expect(tabs.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")


def test_a_run_is_stopped_with_the_keyboard(dashboard: Dashboard, project: Path) -> None:
    session = dashboard.start(project)
    with dashboard.opened(f"/s/{session}") as page:
        stop = page.get_by_role("button", name="Stop")
        expect(stop).to_be_visible()
        page.get_by_role("main").focus()
        while not stop.evaluate("element => element === document.activeElement"):
            page.keyboard.press("Tab")
        assert has_visible_focus(page)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Stop the run?")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("header").get_by_text("stopped", exact=True)).to_be_visible(timeout=60_000)
