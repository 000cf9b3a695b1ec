"""The page tells the truth: about what died, what was only claimed, what somebody typed, and who was told."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gsd_plugins.sessions.registry import Registry
from tests.browser.dashboard import RUN_MS, SCENARIOS, Dashboard, expect, no_state, sessions_ended, until
from tests.web.asgi import ended_session
from tests.web.test_serve import serve

pytestmark = pytest.mark.browser

ASKING = ("--script", str(SCENARIOS / "unanswered-question.toml"))
DATA = Path(__file__).parents[1] / "data"
EVIL = "<img src=x onerror=alert(1)>"


def kill(session: str) -> None:
    """Kill the processes of a session, as the machine does when it is out of memory."""
    with Registry() as registry:
        row = registry.get(session)
    for pid in (row.runner, row.session.pid):
        os.kill(pid, signal.SIGKILL)


def test_a_killed_run_is_red_and_first_its_clocks_stand_still_and_two_clicks_resume_it_once(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    projects = [tmp_path / name for name in ("killed", "asking")]
    for project in projects:
        project.mkdir()
    killed, asking = (dashboard.start(project, *ASKING) for project in projects)
    for session in (killed, asking):
        dashboard.question(session)
    with dashboard.opened(f"/s/{killed}") as page:
        main, header = page.get_by_role("main"), page.locator(".run-head")
        expect(header.get_by_text("rehearsal", exact=True)).to_be_visible()
        expect(header.get_by_text(str(projects[0]), exact=True)).to_be_visible()
        expect(header.get_by_text(re.compile("^(main|master)$"))).to_be_visible()
        kill(killed)
        expect(header.get_by_text("failed", exact=True)).to_be_visible()
        expect(main.get_by_text("interrupted", exact=True).first).to_be_visible()
        expect(main.get_by_text("running", exact=True)).to_have_count(0)
        times = main.locator("time[datetime^=PT]")
        before = times.all_text_contents()
        page.wait_for_timeout(2500)
        assert times.all_text_contents() == before

        page.goto(dashboard.url("/"))
        rows = main.locator(".run-row .run-name strong")
        expect(rows.first).to_have_text("killed")
        failed = main.get_by_role("list", name="failed runs")
        above, below = failed.bounding_box(), main.get_by_role("list", name="open questions").bounding_box()
        assert above
        assert below
        assert above["y"] < below["y"]

        page.goto(dashboard.url(f"/s/{killed}"))
        # The answer may come when the reader is elsewhere: that page stays.
        header.get_by_role("button", name="Resume").dblclick()
        expect(header.get_by_role("button", name="Resuming")).to_be_disabled()
        page.get_by_role("link", name="Plugins").click()
        expect(page.get_by_text("Resumed as session")).to_be_visible(timeout=RUN_MS)
        assert page.url.endswith("#/plugins")
    sessions = dashboard.get("/sessions")["sessions"]
    assert [one["project"] for one in sessions].count(str(projects[0])) == 2
    [again] = [one for one in sessions if one["project"] == str(projects[0]) and one["id"] != killed]
    body = {"project": str(projects[0]), "resume": True}
    status, data = dashboard.server.request("POST", "/api/v1/sessions", body)
    assert status == 409
    assert f"session {again['id']}" in data["error"]["message"]


def test_what_an_imported_project_says_about_itself_is_a_claim(dashboard: Dashboard, tmp_path: Path) -> None:
    project = tmp_path / "imported"
    shutil.copytree(DATA / "seed-library", project)
    session = ended_session(project)
    with dashboard.opened(f"/s/{session}") as page:
        board = page.locator(".board")
        expect(board.get_by_text("claimed, not verified").first).to_be_visible()
        expect(board.get_by_role("img", name="completed")).to_have_count(0)


def test_a_draft_survives_a_reload_another_tab_and_a_server_that_keeps_its_token(
    chromium: Browser, tmp_path: Path
) -> None:
    (tmp_path / "hotel").mkdir()
    arguments = ("--port", "0", "--keep-token")
    with no_state(tmp_path), sessions_ended():
        with serve(tmp_path, *arguments) as server:
            dashboard = Dashboard(browser=chromium, server=server, base=tmp_path)
            session = dashboard.start(tmp_path / "hotel", *ASKING)
            dashboard.question(session)
            context = chromium.new_context()
            page = context.new_page()
            page.goto(dashboard.url(f"/s/{session}"))
            words = page.get_by_role("textbox", name="your own words")
            words.fill("In a shoe box")
            page.reload()
            expect(words).to_have_value("In a shoe box")
            page.get_by_role("link", name="Cost").click()
            page.get_by_role("link", name="Overview").click()
            expect(words).to_have_value("In a shoe box")
            page.goto(dashboard.url("/new"))
            page.get_by_role("textbox", name="Idea", exact=True).fill("# A better hotel")
        arguments = ("--port", str(server.port), "--keep-token")
        with serve(tmp_path, *arguments) as again:
            assert (again.port, again.token) == (server.port, server.token)
            page.reload()
            expect(page.get_by_role("textbox", name="Idea", exact=True)).to_have_value("# A better hotel")
            page.get_by_role("button", name="hotel").click()
            expect(page.get_by_label("Project folder")).to_have_value(str(tmp_path / "hotel"))
            page.goto(f"http://127.0.0.1:{again.port}/#/s/{session}")
            expect(words).to_have_value("In a shoe box")
            page.get_by_role("button", name="Answer").click()
            expect(page.get_by_role("article")).to_have_count(0)
            assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('draft.q-'))") == []
            context.close()
        with serve(tmp_path, "--port", str(server.port)) as other:
            assert other.token != server.token


def test_the_browser_tells_when_a_question_opens(dashboard: Dashboard, tmp_path: Path) -> None:
    (tmp_path / "hotel").mkdir()
    with dashboard.opened("/", permissions=["notifications"]) as page:
        bell = page.get_by_role("button", name="notify me of questions")
        expect(bell).to_have_attribute("aria-pressed", "false")
        bell.click()
        expect(bell).to_have_attribute("aria-pressed", "true")
        # Somebody looks at another page.
        page.evaluate("document.hasFocus = () => false")
        (tmp_path / "motel").mkdir()
        alone = dashboard.start(tmp_path / "motel", *ASKING, "--yes")
        path = f"/sessions/{alone}/questions"
        until(lambda: dashboard.get(path)["answered"], RUN_MS / 1000)
        [answered] = dashboard.get(path)["answered"]
        session = dashboard.start(tmp_path / "hotel", *ASKING)
        question = dashboard.question(session)

        def shown(question: str) -> list[list[str]]:
            found: list[list[str]] = page.evaluate(
                "navigator.serviceWorker.ready.then(async worker => "
                "(await worker.getNotifications()).map(one => [one.title, one.body, one.tag, one.data]))"
            )
            # Sessions of other tests may ask as well.
            return [one for one in found if one[2] == question]

        until(lambda: shown(question["id"]))
        [[title, body, tag, link]] = shown(question["id"])
        # What --yes answered at once is not worth a look.
        assert shown(answered["id"]) == []
        assert (title, body, link) == ("hotel asks", "Where are the guests kept?", f"#/q/{tag}")
        bell.click()
        expect(bell).to_have_attribute("aria-pressed", "false")


def test_the_whole_log_is_searched_although_only_its_end_is_loaded(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    lines = [f"line {number} of many, with some words to fill it" for number in range(20_000)]
    lines[7] = f"a needle {EVIL}"
    lines[-7] = "a second NEEDLE"
    session = ended_session(tmp_path / "long", "\r\n".join(lines).encode())
    with dashboard.opened(f"/s/{session}/log") as page:
        expect(page.get_by_text("the end of the output")).to_be_visible()
        page.get_by_label("search the log").fill("needle")
        expect(page.get_by_role("status").filter(has_text="In the whole output: 2 lines")).to_be_visible()
        log = page.get_by_label("log", exact=True)
        expect(log).to_contain_text(f"a needle {EVIL}")
        expect(log).to_contain_text("a second NEEDLE")
        expect(page.locator("img")).to_have_count(0)
