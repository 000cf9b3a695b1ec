"""How the journal behaves when agents print much: its size, and how fast a run can be read from it.

``python -m bench.activity [MEGABYTES]`` records that much activity text (50 by default) in one run.
"""

from __future__ import annotations

import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from gsd_core.journal.store import Journal
from gsd_core.run.last_run import read_last_run

TEXT = 400
"""The length to which a run clips each note."""


def main(megabytes: int = 50) -> None:
    """Write, read, and print what it took."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        began = time.monotonic()
        with Journal.open(path, clock=lambda: datetime.now(UTC)) as journal:
            journal.append("run.started", {"idea": None, "workflow": "native", "base": {}}, run="r")
            for number in range(megabytes * 10**6 // TEXT):
                journal.activity("agent.activity", {"text": f"{number:<{TEXT}}"}, run="r")
                if number % 500 == 0:
                    journal.append("timer.fired", {}, run="other")
            journal.flush()
            written = time.monotonic() - began
            size = sum(file.stat().st_size for file in path.parent.iterdir())
        began = time.monotonic()
        with Journal.open(path, clock=lambda: datetime.now(UTC), writable=False) as journal:
            read_last_run(journal)
            opened = time.monotonic() - began
            shown = sum(1 for _ in journal.events())
            listed = time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{megabytes} MB of activity written in {written:.1f} s")
    print(f"journal {size / 1e6:.1f} MB, {shown} records kept; memory at most {memory} MB")
    print(f"read for status and resume in {opened * 1000:.0f} ms, for the log in {listed * 1000:.0f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
