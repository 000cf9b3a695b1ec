"""Measure how fast changes reach many readers of ``gsd serve``, and how much memory it needs.

A real server follows real sessions: journals to which another process appends events. Each reader has a
WebSocket with all sessions. The latency of a change is the time from its entry in the journal to its arrival
at the reader; the two clocks are the same. A gap in the numbers that a reader sees is a defect.

    python bench/window.py --sessions 50 --readers 200 --rate 200 --seconds 20
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

READERS_PER_PROCESS = 50
WARM_UP_SECONDS = 2.0


def main() -> None:
    """Run the benchmark and print its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--rate", type=int, default=200, help="events a second, in all sessions together")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gsd-window-") as folder:
        os.environ["GSD_STATE_DIR"] = str(Path(folder) / "state")
        projects = add_sessions(Path(folder), options.sessions)
        print(json.dumps(measure(projects, options), indent=2))


def add_sessions(folder: Path, count: int) -> list[Path]:
    """Make *count* projects with journals and sessions that this process seems to run."""
    from gsd_core import boot_id, start_time
    from gsd_plugins.sessions.registry import Registry

    projects: list[Path] = []
    for number in range(count):
        project = folder / f"project-{number}"
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        (project / ".git" / "gsd").mkdir()
        projects.append(project)
        with Registry() as registry:
            session = registry.add(project=project, folder=project, command=["run", "idea.md"])
            registry.update(
                session.id,
                state="running",
                slot=number + 1,
                runner=os.getpid(),
                runner_started=start_time(os.getpid()) or "",
                pid=os.getpid(),
                pid_started=start_time(os.getpid()) or "",
                boot=boot_id(),
            )
    return projects


def measure(projects: list[Path], options: argparse.Namespace) -> dict[str, Any]:
    """Serve, read and write at once, and return the figures."""
    journals = [open_journal(project) for project in projects]
    command = [sys.executable, "-m", "gsd_core", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    try:
        url = server.stdout.readline().strip()
        idle = memory_of(server.pid)
        end = time.time() + WARM_UP_SECONDS + options.seconds
        counts = split(options.readers, READERS_PER_PROCESS)
        with multiprocessing.Pool(len(counts)) as pool:
            jobs = [pool.apply_async(read_in_process, (url, count, end + 5)) for count in counts]
            time.sleep(WARM_UP_SECONDS)
            before = cpu_of(server.pid)
            written = write(journals, options.rate, options.seconds)
            used = cpu_of(server.pid) - before
            peak = memory_of(server.pid)
            found = [job.get() for job in jobs]
    finally:
        server.terminate()
        server.wait(10)
    delays = sorted(delay for one in found for delay in one["delays"])
    received = sum(one["received"] for one in found)
    return {
        "sessions": len(projects),
        "readers": options.readers,
        "events_per_second": round(written / options.seconds, 1),
        "written": written,
        "deliveries": received,
        "deliveries_per_second": round(received / options.seconds),
        "complete": received == written * options.readers,
        "gaps": sum(one["gaps"] for one in found),
        "resynchronized": sum(one["resyncs"] for one in found),
        "milliseconds": {
            name: round(1000 * delays[min(len(delays) - 1, int(share * len(delays)))], 1)
            for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
        }
        if delays
        else None,
        "server_cpu_percent": round(100 * used / options.seconds),
        "server_megabytes": {"without_readers": idle, "at_the_end": peak},
        "processors": os.cpu_count(),
    }


def split(total: int, size: int) -> list[int]:
    """Return parts of at most *size* that sum up to *total*."""
    return [min(size, total - start) for start in range(0, total, size)]


def open_journal(project: Path) -> Any:
    """Return a journal with a run that has begun."""
    from gsd_core.journal.store import Journal

    journal = Journal.open(project / ".git" / "gsd" / "journal.db", clock=lambda: datetime.now(UTC))
    run = f"r-{project.name}"
    journal.append("run.started", {"idea": {"name": "idea.md", "sha256": ""}}, run=run)
    return journal, run


def write(journals: list[Any], rate: int, seconds: float) -> int:
    """Append events at *rate* a second for some *seconds*, one after the other to all journals."""
    began = time.monotonic()
    total = int(rate * seconds)
    for number in range(total):
        journal, run = journals[number % len(journals)]
        data = {"kind": "text", "text": f"editing module_{number}.py", "sent": time.time()}
        journal.append("agent.activity", data, run=run, step="1/execute/01-01")
        if (early := began + (number + 1) / rate - time.monotonic()) > 0:
            time.sleep(early)
    return total


def read_in_process(url: str, count: int, until: float) -> dict[str, Any]:
    """Read with *count* connections until the time *until*."""
    return asyncio.run(read_all(url, count, until))


async def read_all(url: str, count: int, until: float) -> dict[str, Any]:
    """Read with *count* connections at once."""
    found: dict[str, Any] = {"delays": [], "received": 0, "gaps": 0, "resyncs": 0}
    await asyncio.gather(*(read(url, until, found) for _ in range(count)))
    return found


async def read(url: str, until: float, found: dict[str, Any]) -> None:
    """Read with one connection, and add what it sees to *found*."""
    from websockets.asyncio.client import connect
    from websockets.typing import Subprotocol

    base, _, token = url.partition("/#token=")
    protocols = [Subprotocol("gsd.v1"), Subprotocol(f"gsd.token.{token}")]
    address = f"{base.replace('http', 'ws', 1)}/api/v1/ws"
    async with connect(address, subprotocols=protocols, compression=None) as socket:
        hello = json.loads(await socket.recv())["hello"]
        after = hello["number"]
        await socket.send(json.dumps({"subscribe": {"session": "*", "after": after}}))
        while (left := until - time.time()) > 0:
            try:
                message = json.loads(await asyncio.wait_for(socket.recv(), left))
            except TimeoutError:
                return
            now = time.time()
            if message.get("resync"):
                found["resyncs"] += 1
                after = message["number"]
            for change in message.get("frame", ()):
                found["gaps"] += change["number"] != after + 1
                after = change["number"]
                sent = change.get("event", {}).get("data", {}).get("sent")
                if sent is not None:
                    found["received"] += 1
                    found["delays"].append(now - sent)


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    import psutil

    return round(psutil.Process(pid).memory_info().rss / 1e6, 1)


def cpu_of(pid: int) -> float:
    """Return the processor time of a process in seconds."""
    import psutil

    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
