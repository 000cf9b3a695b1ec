"""Plans that are executed side by side: the graph and the lanes, alive, with a question, and after a kill."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.browser.dashboard import RUN_MS, Dashboard, Page, expect

pytestmark = pytest.mark.browser

SCENARIO = """
[scenario]
wide = true

[[rule]]
when = { plan = "01-03" }
do = "question"
text = "Which mark ends a greeting?"
options = ["Period", "Smile"]

[[rule]]
when = { plan = "01-04" }
do = "slow"
duration = "20m"
"""


def shown(page: Page, region: str, plan: str, state: str) -> None:
    """Check that *plan* is in that state in the region, in words."""
    of_plan = page.get_by_role("region", name=region).get_by_role("link", name=re.compile(f"^{plan} "))
    expect(of_plan.last).to_have_accessible_name(re.compile(f"^{plan} [^:]+: {state}"), timeout=RUN_MS)


def test_several_plans_are_in_the_graph_and_in_lanes_and_none_is_in_progress_after_a_kill(
    dashboard: Dashboard, project: Path, tmp_path: Path
) -> None:
    script = tmp_path / "scenario.toml"
    script.write_text(SCENARIO)
    options = ("--script", str(script), "--workspace", "worktree", "--depth", "comprehensive")
    session = dashboard.start(project, *options)
    with dashboard.opened(f"/s/{session}", viewport={"width": 390, "height": 844}) as page:
        for plan, state in (("01-02", "done"), ("01-03", "waits for an answer"), ("01-04", "running")):
            shown(page, "graph of dependencies", plan, state)
        shown(page, "graph of dependencies", "01-06", "pending, waits for .*01-03, 01-04")
        shown(page, "Side by side", "01-02", "completed; at work from .* being merged from")
        shown(page, "Side by side", "01-03", "waits for an answer; at work from .* waits for an answer from")
        shown(page, "Side by side", "01-04", "running; at work from")
        # The page itself is not wider than the phone.
        assert page.evaluate("document.documentElement.scrollWidth") == 390

        asks = page.get_by_role("region", name="Side by side").get_by_role("link", name=re.compile("^01-03"))
        asks.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/phase/1$"))
        shown(page, "plans of phase 1", "01-04", "running")

        os.kill(dashboard.get(f"/sessions/{session}")["session"]["pid"], signal.SIGKILL)
        shown(page, "plans of phase 1", "01-04", "interrupted")
        shown(page, "plans of phase 1", "01-03", "waits for an answer")
        shown(page, "Side by side", "01-04", "interrupted")
        expect(page.get_by_role("main")).not_to_contain_text(re.compile("in progress|running"))
        page.get_by_role("link", name="All phases").click()
        expect(page.get_by_role("heading", name="Phases")).to_be_visible()
        expect(page.get_by_role("main")).not_to_contain_text(re.compile("in progress|running"))
        expect(page.get_by_role("img", name="in progress")).to_have_count(0)
