"""Make the pictures of the dashboard from real rehearsals: ``python -m docs.screenshots``.

A real ``gsd serve`` shows five projects: one is done after gaps, one waits for an answer, one works, one has
failed, and one executes plans side by side. Chromium takes each picture in both themes, and saves it as
WebP. Times and commit ids differ each time, so nothing compares the pictures; make them again when the pages
have changed, and look at them. It takes a few minutes, and needs Chromium and Playwright.

To look at every page at other widths, as PNG in a folder elsewhere::

    python -m docs.screenshots --into /tmp/pages --width 360 --width 768 --width 2560
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "how-to" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
DESKTOP, PHONE = (1280, 800), (390, 844)
MAX_BYTES = 2_000_000
"""Of all pictures together."""
PATIENCE = 300.0  # seconds
HOME = "/home/you"
"""Shown in place of the temporary folder."""

COST = """
[[rule]]
do = "cost"
dollars = 0.07
"""
SCENARIOS = {
    "greeter": f"""
[scenario]
description = "Two gaps, which are closed"
phases = 3
question = true
{COST}
[[rule]]
when = {{ step = "verify", phase = "1", round = 0 }}
do = "gap"
reason = "An empty line is not rejected"
""",
    "lobby": f"""
[scenario]
description = "A gap that stays"
{COST}
[[rule]]
when = {{ step = "verify" }}
do = "gap"
reason = "An empty line is not rejected"
times = 0
""",
    "doorbell": f"""
[scenario]
description = "The second phase takes a while"
phases = 3
{COST}
[[rule]]
when = {{ step = "execute", phase = "2" }}
do = "slow"
duration = "20m"
""",
    "reception": f"""
[scenario]
description = "A question"
phases = 2
question = true
{COST}
""",
    "banquet": f"""
[scenario]
description = "Plans side by side: one waits for an answer, two take a while"
wide = true
{COST}
[[rule]]
when = {{ plan = "01-03" }}
do = "question"
text = "Which mark ends a greeting?"
options = ["Period", "Smile"]

[[rule]]
when = {{ plan = "01-02" }}
do = "slow"
duration = "2s"

[[rule]]
when = {{ plan = "01-04", task = 1 }}
do = "slow"
duration = "20m"

[[rule]]
when = {{ plan = "01-05", task = 1 }}
do = "slow"
duration = "20m"
""",
}
"""What each project rehearses; the one that waits for an answer is the last that starts."""
OPTIONS = {
    "greeter": ("--yes",),
    "lobby": ("--yes", "--no-input"),
    "doorbell": ("--yes",),
    "reception": (),
    "banquet": ("--workspace", "worktree", "--depth", "comprehensive"),
}
STATES = {
    "greeter": "completed",
    "lobby": "failed",
    "doorbell": "running",
    "reception": "waiting_checkpoint",
    "banquet": "waiting_checkpoint",
}
WORKING = {"doorbell": "2/execute", "banquet": "1/execute/01-05"}
"""The steps that have to have begun."""

PANEL = '''
"""The size of the program."""

from gsd_core import Panel, implements
from gsd_core.hookspecs import gsd_panels


@implements(gsd_panels)
def largest_files(project):
    """Show the largest files."""
    found = [path for path in project.rglob("*.py") if not path.is_symlink()]
    lines = {str(path.relative_to(project)): path.read_text().count("\\n") for path in found}
    largest = sorted(lines.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    yield Panel(
        name="size",
        title="Size of the program",
        figures={"Files": str(len(lines)), "Lines": str(sum(lines.values()))},
        columns=("file", "lines"),
        rows=tuple((name, str(count)) for name, count in largest),
    )
'''


@frozen(kw_only=True)
class Picture:
    """One picture of the dashboard.

    *path* names sessions by their project. *route* is the page of ``src/lib/route.ts`` that it shows, if it
    is the picture of one. *prepare* brings the page into the state to show; *element* is all that is shown.
    """

    name: str
    path: str = "/"
    route: str = ""
    size: tuple[int, int] = DESKTOP
    prepare: Callable[[Page], object] | None = None
    element: str = ""
    held: str = ""
    """Requests to addresses with this in them are not answered."""
    has_token: bool = True
    is_settled: bool = True


def _open_help(page: Page) -> None:
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()


def _scroll_to_end(page: Page) -> None:
    # Panels are read only when their place is in sight.
    page.get_by_role("main").evaluate("main => main.scrollTo(0, main.scrollHeight)")


def _wait_for_terminals(page: Page) -> None:
    page.locator(".xterm-rows").first.wait_for()
    page.wait_for_timeout(1500)


PLANS = "section:has(> h2:text-is('Plans'))"
PICTURES = (
    Picture(name="runs", route="runs"),
    Picture(name="start", path="/new", route="new"),
    Picture(name="questions", path="/q", route="questions"),
    Picture(name="question", path="/q/{question}"),
    Picture(name="terminals", path="/terminals", route="terminals", prepare=_wait_for_terminals),
    Picture(name="plugins", path="/plugins", route="plugins"),
    Picture(name="run", path="/s/{doorbell}", route="run/overview"),
    Picture(name="run-waiting", path="/s/{reception}"),
    Picture(name="run-failed", path="/s/{lobby}"),
    Picture(name="plans", path="/s/{greeter}", element=PLANS),
    Picture(name="side-by-side", path="/s/{banquet}", element=PLANS),
    Picture(
        name="panel",
        path="/s/{greeter}",
        prepare=_scroll_to_end,
        element="section[aria-label='Size of the program']",
    ),
    Picture(name="phase", path="/s/{greeter}/phase/1", route="run/phase"),
    Picture(name="evidence", path="/s/{greeter}/evidence", route="run/evidence"),
    Picture(name="events", path="/s/{greeter}/history", route="run/history"),
    Picture(name="log", path="/s/{greeter}/log", route="run/log"),
    Picture(
        name="terminal", path="/s/{doorbell}/terminal", route="run/terminal", prepare=_wait_for_terminals
    ),
    Picture(name="cost", path="/s/{greeter}/cost", route="run/cost"),
    Picture(name="unknown", path="/nothing", route="unknown"),
    Picture(name="help", path="/", prepare=_open_help),
    Picture(name="loading", path="/s/{greeter}", held="/phases", is_settled=False),
    Picture(name="token", has_token=False),
    Picture(name="phone-runs", size=PHONE),
    Picture(name="phone-question", path="/q", size=PHONE),
    Picture(name="phone-run", path="/s/{doorbell}", size=PHONE),
    Picture(name="phone-side-by-side", path="/s/{banquet}", size=PHONE, element=PLANS),
    Picture(name="phone-cost", path="/s/{greeter}/cost", size=PHONE),
)
DISCONNECTED = Picture(name="disconnected", path="/s/{doorbell}", is_settled=False)
"""The last one: the server is killed for it."""


def shown_routes() -> frozenset[str]:
    """Return the pages of ``src/lib/route.ts`` of which there is a picture."""
    return frozenset(one.route for one in PICTURES if one.route)


def names() -> Sequence[str]:
    """Return the names of all files."""
    return [f"{one.name}-{theme}.webp" for one in (*PICTURES, DISCONNECTED) for theme in THEMES]


def main() -> None:
    """Rehearse in a temporary folder, and write the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--into", type=Path, default=FOLDER)
    parser.add_argument("--width", type=int, action="append", default=[])
    parser.add_argument("--only", action="append", default=[], help="name of a picture")
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gsd-pictures-", ignore_cleanup_errors=True) as folder:
        projects = Projects(base=Path(folder), environment=_environment(Path(folder)))
        with projects.rehearsed() as sessions, projects.served() as (address, server):
            question = _get(address, "/questions")["questions"][0]["id"]
            camera = Camera(
                into=options.into,
                base=str(projects.base),
                address=address,
                names={**sessions, "question": question},
                widths=options.width,
                only=options.only,
            )
            camera.take(server)
    if options.into == FOLDER:
        for extra in {path.name for path in FOLDER.iterdir()} - {*names()}:
            (FOLDER / extra).unlink()
        if (size := sum(path.stat().st_size for path in FOLDER.iterdir())) > MAX_BYTES:
            raise SystemExit(f"the pictures have {size} bytes, more than {MAX_BYTES}")


def _environment(base: Path) -> Mapping[str, str]:
    (base / "home").mkdir()
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("GSD_")},
        "HOME": str(base / "home"),
        "GSD_STATE_DIR": str(base / "state"),
        "GSD_CONFIG": str(base / "no-config.toml"),
        "GSD_SANDBOX_CACHES": "false",
        "GSD_REHEARSAL_CLI": "false",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
    }


@frozen(kw_only=True)
class Projects:
    """The projects and their server."""

    base: Path
    environment: Mapping[str, str]

    @contextmanager
    def rehearsed(self) -> Iterator[Mapping[str, str]]:
        """Start all runs, wait until each is in its state, and yield the sessions; stop them in the end."""
        try:
            for name, scenario in SCENARIOS.items():
                (self.base / name).mkdir()
                script = self.base / f"{name}.toml"
                script.write_text(scenario, encoding="utf-8")
                idea = self.base / "idea.md"
                idea.write_text((ROOT / "examples" / "greeter.md").read_text("utf-8"), encoding="utf-8")
                words = ["run", str(idea), "--agent", "rehearsal", "-C", str(self.base / name), "--bg"]
                self.gsd(*words, "--script", str(script), "--max-budget-usd", "8", *OPTIONS[name])
            yield self._sessions()
        finally:
            for session in json.loads(self.gsd("ps", "--all", "--json"))["sessions"]:
                if session["state"] not in ("completed", "failed", "stopped"):
                    self.gsd("stop", session["id"], check=False)

    def _sessions(self) -> Mapping[str, str]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            sessions = json.loads(self.gsd("ps", "--all", "--json"))["sessions"]
            found = {Path(one["project"]).name: one for one in sessions}
            works = (
                step in self.gsd("log", "-C", str(self.base / name), check=False)
                for name, step in WORKING.items()
            )
            if {name: one["state"] for name, one in found.items()} == STATES and all(works):
                return {name: one["id"] for name, one in found.items()}
            time.sleep(1)
        raise TimeoutError(f"the projects are not in their states: {found}")

    def gsd(self, *words: str, check: bool = True) -> str:
        """Run a command and return its output."""
        done = subprocess.run(
            [sys.executable, "-m", "gsd_core", *words],
            cwd=self.base,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=check,
        )
        return done.stdout

    @contextmanager
    def served(self) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """Start the server with a plugin that has a panel, and yield its address and its process."""
        plugins = self.base / "plugins"
        plugins.mkdir()
        (plugins / "size.py").write_text(PANEL, encoding="utf-8")
        command = [sys.executable, "-m", "gsd_core", "serve", "--port", "0", "--plugins-dir", str(plugins)]
        server = subprocess.Popen(
            command,
            cwd=self.base,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdout
        try:
            yield server.stdout.readline().strip(), server
        finally:
            server.kill()
            server.wait()


def _get(address: str, path: str) -> Any:
    url, _, token = address.partition("/#token=")
    request = urllib.request.Request(f"{url}/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


@frozen(kw_only=True)
class Camera:
    """Takes the pictures of a server."""

    into: Path
    base: str
    address: str
    names: Mapping[str, str]
    widths: Sequence[int]
    only: Sequence[str]

    def take(self, server: subprocess.Popen[str]) -> None:
        """Take all pictures, and kill the server for the last one."""
        from playwright.sync_api import sync_playwright

        path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
        if path is None:
            raise FileNotFoundError(f"none of {', '.join(BROWSERS)} is installed")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--disable-dev-shm-usage"])
            for picture in PICTURES:
                if not self.only or picture.name in self.only:
                    self._photograph(browser, picture)
            if not self.only or DISCONNECTED.name in self.only:
                self._photograph(browser, DISCONNECTED, server)
            browser.close()

    def _photograph(
        self, browser: Browser, picture: Picture, server: subprocess.Popen[str] | None = None
    ) -> None:
        size = {"width": picture.size[0], "height": picture.size[1]}
        context = browser.new_context(
            viewport={"width": size["width"], "height": size["height"]},
            device_scale_factor=1 if picture.size == DESKTOP else 2,
            reduced_motion="reduce",
            color_scheme="light",
            locale="en-US",
            timezone_id="UTC",
        )
        page = context.new_page()
        page.set_default_timeout(60_000)
        if picture.held:
            # In the browser: a request that this program holds would keep it from ending.
            page.add_init_script(HOLD % json.dumps(picture.held))
        base, _, token = self.address.partition("#token=")
        path = picture.path.format(**self.names)
        page.goto(f"{base}#{path}&token={token}" if picture.has_token else base)
        page.get_by_role("main").wait_for()
        if picture.is_settled:
            page.wait_for_load_state("networkidle")
        page.wait_for_timeout(800)
        page.wait_for_function(
            "settled => !settled || !document.querySelector('.skeleton, [aria-busy=true]')",
            arg=picture.is_settled,
        )
        if picture.prepare:
            picture.prepare(page)
        if server:
            server.kill()
            server.wait()
            page.get_by_role("alert").wait_for()
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            self._save(page, picture, theme, "")
            for width in self.widths:
                page.set_viewport_size({"width": width, "height": size["height"]})
                page.wait_for_timeout(300)
                self._save(page, picture, theme, f"-{width}")
            page.set_viewport_size({"width": size["width"], "height": size["height"]})
        context.close()

    def _save(self, page: Page, picture: Picture, theme: str, suffix: str) -> None:
        page.evaluate(HIDE_FOLDER, [self.base, HOME])
        shown = page.locator(picture.element).first if picture.element else page
        data = shown.screenshot(animations="disabled")
        name = f"{picture.name}-{theme}{suffix}"
        if self.into == FOLDER:
            (self.into / f"{name}.webp").write_bytes(_as_webp(page, data))
        else:
            (self.into / f"{name}.png").write_bytes(data)


HOLD = """
const send = window.fetch;
const never = new Promise(() => undefined);
window.fetch = (input, init) => (String(input).endsWith(%s) ? never : send(input, init));
"""
HIDE_FOLDER = """([folder, home]) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.data.includes(folder)) node.data = node.data.replaceAll(folder, home);
  }
}"""
ENCODE = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (one) => one.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.65).split(",")[1];
}"""
"""PNG is twice as large, and what Chromium makes without losses four times."""


def _as_webp(page: Page, png: bytes) -> bytes:
    return base64.b64decode(page.evaluate(ENCODE, base64.b64encode(png).decode()))


if __name__ == "__main__":
    main()
