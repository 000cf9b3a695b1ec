"""A run on the page from its start to its end, over reloads, lost connections and a server that is killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, ViewportSize

from tests.browser.dashboard import RUN_MS, Dashboard, Page, expect, link, no_state, sessions_ended
from tests.e2e.project import EXAMPLE
from tests.web.test_serve import URL, serve

pytestmark = pytest.mark.browser

DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)


def events(dashboard: Dashboard, session: str, name: str) -> list[dict[str, Any]]:
    """Return the events of a session with this name."""
    found: list[dict[str, Any]] = dashboard.get(f"/sessions/{session}/events?name={name}&last=1000")["events"]
    return found


def session_of(page: Page) -> str:
    """Return the session in the address."""
    found = re.search(r"#/s/([^/]+)", page.url)
    assert found, page.url
    return found[1]


def test_a_run_is_started_answered_and_watched_to_its_end(
    dashboard: Dashboard, page: Page, project: Path
) -> None:
    page.get_by_role("link", name="Start a run").click()
    page.get_by_label("Project folder").fill(str(project))
    page.get_by_label("Idea", exact=True).fill(EXAMPLE.read_text("utf-8"))
    page.get_by_text("Options", exact=True).click()
    page.get_by_label("Agent").select_option("rehearsal")
    page.get_by_label("Phases").fill("1")
    page.get_by_role("button", name="Start", exact=True).click()

    expect(page.get_by_role("heading", level=1, name=project.name)).to_be_visible()
    session = session_of(page)
    card = page.get_by_role("article", name="Ending")
    expect(card).to_be_visible(timeout=RUN_MS)
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    expect(page.get_by_label("1 open")).to_be_visible()
    expect(page.get_by_role("main").get_by_text("waits for you", exact=True).first).to_be_visible()

    # A reload in the middle shows the same.
    before = page.get_by_role("main").inner_text()
    page.reload()
    expect(card).to_be_visible()
    for line in ("Phase 1: plan", "Phase 1: execute 01-01", "Greetings"):
        assert line in before
        expect(page.get_by_role("main")).to_contain_text(line)

    card.get_by_role("radio", name="Smile").check()
    card.get_by_role("button", name="Answer").click()
    expect(card).to_have_count(0)
    expect(page.get_by_role("listitem").filter(has_text="How should each greeting end?")).to_contain_text(
        "Smile"
    )
    page.reload()
    header = page.locator("header").filter(has=page.get_by_role("heading", level=1))
    expect(header.get_by_text("completed", exact=True)).to_be_visible(timeout=RUN_MS)
    expect(page).not_to_have_title(re.compile(r"^\("))
    assert [one["data"]["words"] for one in events(dashboard, session, "question.answered")] == ["Smile"]

    # Every commit of a task and every step is on the page, and what the terminal printed is replayed.
    steps = {one["step"] for one in events(dashboard, session, "step.completed")}
    assert len(steps) > 4
    for step in steps:
        expect(page.get_by_role("main").get_by_title(step, exact=True).first).to_be_visible()
    link(page, "Log").click()
    expect(page.get_by_label("log", exact=True)).to_contain_text("done: 1 phase complete")
    link(page, "Terminal").click()
    expect(page.locator(".xterm-rows")).to_contain_text("done: 1 phase complete")
    link(page, "Evidence").click()
    expect(page.get_by_role("main")).to_contain_text("CORE-01")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove from the list?").click()
    expect(page.get_by_role("heading", level=1, name="Runs")).to_be_visible()
    expect(page.locator(f"a[href='#/s/{session}']")).to_have_count(0)


PANEL = """
from gsd_core import Panel, implements
from gsd_core.hookspecs import gsd_panels

@implements(gsd_panels)
def panels(project):
    yield Panel(
        name="size",
        title="Size",
        text="of **" + project.name + "** <img src=x onerror=alert(1)>",
        figures={"Files": str(len([*project.glob("*.md")])), "Lines": "120"},
        columns=("file", "lines"),
        rows=(("greeter/guests.py", "80"), ("greeter/cli.py", "40")),
    )
"""
BROKEN_PANEL = """
from gsd_core import implements
from gsd_core.hookspecs import gsd_panels

@implements(gsd_panels)
def panels(project):
    raise RuntimeError("the scale is broken")
"""


def test_the_panel_of_a_plugin_is_on_the_page_of_a_run_and_so_is_the_error_of_another_one(
    chromium: Browser, tmp_path: Path
) -> None:
    plugins, project = tmp_path / "plugins", tmp_path / "greeter"
    plugins.mkdir()
    project.mkdir()
    (plugins / "size.py").write_text(PANEL)
    (plugins / "scale.py").write_text(BROKEN_PANEL)
    arguments = ("--port", "0", "--plugins-dir", str(plugins))
    with no_state(tmp_path), sessions_ended(), serve(tmp_path, *arguments) as server:
        dashboard = Dashboard(browser=chromium, server=server, base=tmp_path)
        session = dashboard.start(project, "--yes")
        for size in (DESKTOP, PHONE):
            with dashboard.opened(f"/s/{session}", viewport=size) as page:
                panel = page.get_by_role("region", name="Size", exact=True)
                expect(panel.get_by_role("heading", name="Size")).to_contain_text("size")
                expect(panel.get_by_text("greeter", exact=True)).to_be_visible()
                expect(panel.locator("img")).to_have_count(0)
                expect(panel.get_by_role("definition").nth(1)).to_have_text("120")
                rows = panel.get_by_role("table").get_by_role("row")
                expect(rows).to_have_text(["filelines", "greeter/guests.py80", "greeter/cli.py40"])
                expect(page.get_by_text("the scale is broken")).to_be_visible()


def test_a_link_opened_in_a_new_tab_does_not_ask_for_the_token_again(
    dashboard: Dashboard, project: Path
) -> None:
    session = dashboard.start(project, "--yes")
    address = f"http://127.0.0.1:{dashboard.server.port}/#/s/{session}"
    with dashboard.opened("/") as page:
        with page.context.expect_page() as opened:
            page.get_by_role("main").locator(f"a[href='#/s/{session}']").click(modifiers=["Control"])
        for tab in (opened.value, page.context.new_page()):
            # Ctrl and a click, and the address alone, as a link in a notification has it.
            if tab is not opened.value:
                tab.goto(address)
            expect(tab.get_by_role("heading", level=1, name=project.name)).to_be_visible()
            expect(tab.get_by_text("connected", exact=True)).to_be_visible()
            expect(tab.get_by_label("The address that")).to_have_count(0)
            assert tab.url == address
    # Another person's browser has no token.
    other = dashboard.browser.new_context()
    stranger = other.new_page()
    stranger.goto(address)
    expect(stranger.get_by_label("The address that")).to_be_visible()
    expect(stranger.get_by_role("heading", level=1, name=project.name)).to_have_count(0)
    other.close()


def test_a_run_in_the_foreground_is_watched_and_answered_on_its_own_page(
    dashboard: Dashboard, project: Path
) -> None:
    with foreground(dashboard, project) as page:
        page.get_by_role("article", name="Ending").get_by_role("radio", name="Period").check()
        page.get_by_role("button", name="Answer").click()
        expect(page.get_by_role("article")).to_have_count(0)
        # The page ends with the run, and says so.
        expect(page.get_by_text("Disconnected")).to_be_visible(timeout=RUN_MS)


@contextmanager
def foreground(dashboard: Dashboard, project: Path) -> Generator[Page]:
    """Start ``gsd run --web`` without an answer at its terminal, and open its page."""
    command = [
        sys.executable,
        "-m",
        "gsd_core",
        "run",
        str(EXAMPLE),
        "--agent",
        "rehearsal",
        "-C",
        str(project),
    ]
    process = subprocess.Popen(
        [*command, "--web", "--web-port", "0", "--no-input"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GSD_WAIT_FOR_ANSWERS": "5m"},
    )
    assert process.stderr
    context = dashboard.browser.new_context()
    try:
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line, "it ended without a page"
            found = URL.search(line)
        page = context.new_page()
        page.goto(found[0])
        page.get_by_role("main").get_by_role("link").filter(has_text=project.name).last.click()
        expect(page.get_by_role("article", name="Ending")).to_be_visible(timeout=RUN_MS)
        yield page
        assert process.wait(RUN_MS / 1000) == 0
    finally:
        context.close()
        process.kill()
        process.wait()
        process.stderr.close()


@attrs.define(kw_only=True)
class Relay:
    """Passes connections on to a port, as a tunnel does; it can be cut and repaired."""

    target: int
    port: int = 0
    _listener: socket.socket | None = None
    _open: list[socket.socket] = attrs.field(factory=list[socket.socket])

    def repair(self) -> None:
        """Listen, always on the same port."""
        listener = self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        if self._listener:
            # Closing alone does not wake the thread that waits for a connection.
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self._open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
    source.close()


def free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@pytest.fixture
def relay() -> Generator[Relay]:
    """Return a relay to a port that is still free."""
    relay = Relay(target=free_port())
    relay.repair()
    yield relay
    relay.cut()


def test_a_page_comes_back_after_a_break_and_a_killed_server_and_misses_nothing(
    chromium: Browser, relay: Relay, tmp_path: Path
) -> None:
    (tmp_path / "greeter").mkdir()
    arguments = ("--port", str(relay.target), "--public-url", f"http://127.0.0.1:{relay.port}")
    with no_state(tmp_path), sessions_ended(), ExitStack() as stack:
        server = stack.enter_context(serve(tmp_path, *arguments))
        # The server prints the public URL, which is the relay's.
        assert server.port == relay.port
        tunnel = Dashboard(browser=chromium, server=server, base=tmp_path)
        dashboard = attrs.evolve(tunnel, server=attrs.evolve(server, port=relay.target))
        session = dashboard.start(tmp_path / "greeter")
        page = stack.enter_context(tunnel.opened(f"/s/{session}", errors_expected=True))
        expect(page.get_by_text("connected", exact=True)).to_be_visible()
        question = dashboard.question(session)
        card = page.get_by_role("article", name=question["header"])
        expect(card).to_be_visible()

        # The connection breaks, and the question is answered elsewhere meanwhile.
        relay.cut()
        expect(page.get_by_role("alert")).to_contain_text("Disconnected")
        expect(page.get_by_role("alert")).to_contain_text("the runs continue")
        dashboard.answer(session, question["id"], "2")
        expect(card).to_be_visible()
        relay.repair()
        expect(page.get_by_text("connected", exact=True)).to_be_visible()
        expect(page.get_by_text("Disconnected")).to_have_count(0)
        expect(card).to_have_count(0)
        expect(page.get_by_role("listitem").filter(has_text=question["text"])).to_contain_text("Period")

        # The server is killed; the run ends without it. Another one on the same port has another token.
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        expect(page.get_by_role("alert")).to_contain_text("Disconnected")
        expect(page.get_by_role("heading", level=1, name="greeter")).to_be_visible()
        again = stack.enter_context(serve(tmp_path, *arguments))
        assert again.token != server.token
        expect(page.get_by_role("alert")).to_contain_text("The server was started again", timeout=30_000)
        page.get_by_label("The address that").fill(f"http://127.0.0.1:{relay.port}/#token={again.token}")
        page.get_by_role("button", name="Open").click()

        # It is where it was, and knows everything.
        header = page.locator("header").filter(has=page.get_by_role("heading", level=1, name="greeter"))
        expect(header.get_by_text("completed", exact=True)).to_be_visible(timeout=RUN_MS)
        assert session_of(page) == session
        restarted = attrs.evolve(dashboard, server=attrs.evolve(again, port=relay.target))
        for step in {one["step"] for one in events(restarted, session, "step.completed")}:
            expect(page.get_by_role("main").get_by_title(step, exact=True).first).to_be_visible()
