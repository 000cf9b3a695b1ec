"""Measure the dashboard in a real browser, with a project of 200 plans and a journal of 100,000 events.

The page is opened several times in Chromium against a real ``gsd serve``. *usable* is the time from the start
of the navigation until the phases and the steps of the run are on the screen, *complete* until all events are
known. For each interaction, *paint* is the time from the input to the next picture (the browser's own Event
Timing), and *content* until what was asked for is there. Times are in milliseconds.

    python -m bench.page
    python -m bench.page --plans 20 --events 2000 --sessions 6 --lines 5000 --loads 3
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from bench.page_data import Made

WATCH = """
window.bench = {long: [], inputs: [], usable: 0};
new PerformanceObserver((list) => list.getEntries().forEach((one) => bench.long.push(one.duration)))
  .observe({type: "longtask", buffered: true});
new PerformanceObserver((list) => list.getEntries().forEach((one) => bench.inputs.push(one.duration)))
  .observe({type: "event", durationThreshold: 16, buffered: true});
const look = () => {
  const ready = document.querySelector(".phase-card") && document.querySelector("table.steps tbody tr");
  if (ready) bench.usable = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
"""Runs in the page before its own scripts."""
LIMITS = {"usable": 1000, "paint": 100, "kilobytes": 250}


def main() -> None:
    """Make the data, measure and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--loads", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gsd-page-", ignore_cleanup_errors=True) as folder:
        os.environ["GSD_STATE_DIR"] = str(Path(folder) / "state")
        from bench.page_data import make, stop

        made = make(
            Path(folder),
            plans=options.plans,
            events=options.events,
            sessions=options.sessions,
            lines=options.lines,
        )
        try:
            with served() as (url, pid):
                print(json.dumps(measure(url, pid, made, options.loads), indent=2))
        finally:
            stop(made)


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """Start ``gsd serve`` and yield its address with the token, and its process id."""
    command = [sys.executable, "-m", "gsd_core", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    try:
        yield server.stdout.readline().strip(), server.pid
    finally:
        server.terminate()
        server.wait(10)


def measure(url: str, pid: int, made: Made, loads: int) -> dict[str, Any]:
    """Open the pages and return the figures."""
    from playwright.sync_api import sync_playwright

    base = url.partition("#")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
        page.set_default_timeout(60_000)
        page.add_init_script(WATCH)
        page.goto(url)
        page.get_by_role("heading", name="Runs").wait_for()
        transferred = first_load(page, base)
        run = f"{base}#/s/{made.large}"
        first = load(page, run)
        found = [load(page, run) for _ in range(loads)]
        interactions = interact(page, base, made)
        memory = heap(page)
        browser.close()
    usable = statistics.median(one["usable"] for one in found)
    paints = [one["paint"] for one in interactions.values()]
    kilobytes = round(transferred["bytes"] / 1000, 1)
    return {
        "first_load": {**transferred, "kilobytes": kilobytes},
        "usable": {"first": first["usable"], "median": usable, "all": [one["usable"] for one in found]},
        "complete_median": statistics.median(one["complete"] for one in found),
        "long_tasks": {
            "count_median": statistics.median(one["long"] for one in found),
            "longest": max(one["longest"] for one in found),
        },
        "interactions": interactions,
        "page_megabytes": memory,
        "server_megabytes": server_memory(pid),
        "processors": os.cpu_count(),
        "within_limits": {
            "usable": usable <= LIMITS["usable"],
            "paint": max(paints) <= LIMITS["paint"],
            "kilobytes": kilobytes <= LIMITS["kilobytes"],
        },
    }


def chromium() -> str:
    """Return the path of the system's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("no chromium: install it with the system's package manager")
    return path


def first_load(page: Page, base: str) -> dict[str, Any]:
    """Return what a first load of the list of runs transfers; the bytes are those on the wire."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    files: dict[str, str] = {}
    sizes: dict[str, int] = {}

    def responded(event: dict[str, Any]) -> None:
        files[event["requestId"]] = event["response"]["url"]

    def finished(event: dict[str, Any]) -> None:
        sizes[event["requestId"]] = int(event["encodedDataLength"])

    session.on("Network.responseReceived", responded)
    session.on("Network.loadingFinished", finished)
    page.goto(f"{base}#/")
    page.reload()
    page.locator(".run-row").first.wait_for()
    page.wait_for_timeout(500)
    session.detach()
    own = {key: size for key, size in sizes.items() if "/api/" not in files.get(key, "")}
    return {
        "bytes": sum(own.values()),
        "files": len(own),
        "data_bytes": sum(sizes.values()) - sum(own.values()),
    }


def load(page: Page, address: str) -> dict[str, float]:
    """Load the page of a run anew and return how long it took."""
    page.goto(address)
    page.reload()
    page.wait_for_function("bench.usable > 0")
    page.wait_for_function("!document.querySelector('.skeleton, [aria-busy=true]')")
    complete: float = page.evaluate("performance.now()")
    found: dict[str, float] = page.evaluate(
        "({usable: bench.usable, long: bench.long.length, longest: Math.max(0, ...bench.long)})"
    )
    return {**found, "complete": complete}


def interact(page: Page, base: str, made: Made) -> dict[str, Any]:
    """Use the page as a person does and return the time of each interaction."""
    found: dict[str, Any] = {}

    def take(name: str, act: Any, ready: str) -> None:
        page.evaluate("bench.inputs.length = 0; bench.long.length = 0")
        began = time.perf_counter()
        act()
        page.locator(ready).first.wait_for()
        content = (time.perf_counter() - began) * 1000
        page.wait_for_timeout(600)
        paint, longest = page.evaluate("[Math.max(0, ...bench.inputs), Math.max(0, ...bench.long)]")
        found[name] = {"paint": paint, "content": round(content), "longest_task": longest}

    tabs = page.get_by_role("navigation", name="views of the run")

    def tab(name: str) -> None:
        tabs.get_by_role("link", name=name, exact=True).click()

    search = page.get_by_role("searchbox")
    take("open a phase", lambda: page.locator(".phase-card").nth(4).click(), ".phase-head")
    take("back to the overview", lambda: tab("Overview"), ".phase-card")
    take("evidence", lambda: tab("Evidence"), ".requirement")
    take("events", lambda: tab("Events"), ".event")
    take("search the events", lambda: search.press_sequentially("commit", delay=60), ".event")
    take("filter the events", lambda: page.locator(".chip").nth(1).click(), ".event")
    take("cost", lambda: tab("Cost"), ".chart")
    take("log", lambda: tab("Log"), ".log-line")
    page.wait_for_function("!document.querySelector('[aria-busy=true]')")
    take("search the log", lambda: search.press_sequentially("error", delay=60), ".log-line")
    take("clear the search", lambda: search.fill(""), ".log-line")
    take("filter the log", lambda: page.locator(".chip").first.click(), ".log-line")
    take("list of runs", lambda: page.get_by_role("link", name="Runs", exact=True).click(), ".run-row")
    take("another run", lambda: page.locator(f"a[href='#/s/{made.gaps}']").last.click(), ".phase-card")
    return found


def heap(page: Page) -> float:
    """Return the size of the page's heap in megabytes, after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    return round(used / 1e6, 1)


def server_memory(pid: int) -> float:
    """Return the resident memory of the server in megabytes."""
    import psutil

    return round(psutil.Process(pid).memory_info().rss / 1e6, 1)


if __name__ == "__main__":
    main()
