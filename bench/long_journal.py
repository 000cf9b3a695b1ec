"""Measure what reading commands cost in a project whose journal has 100,000 facts.

Run ``python bench/long_journal.py [FACTS]`` where gsd is installed; it takes about a minute. A rehearsed run
gives the facts: those of its first phase are copied, as further phases, until there are so many. Each
command runs once before it is measured, and then three times; the figures are those of the fastest run.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from gsd_core.journal.store import Journal
from gsd_core.run.last_run import keep_run, read_last_run

GSD = (sys.executable, "-P", "-m", "gsd_core")
COMMANDS = (
    ("status",),
    ("next",),
    ("progress",),
    ("cost",),
    ("questions",),
    ("log", "-n", "20"),
    ("report",),
)
ROUNDS = 3
LIMIT_SECONDS, LIMIT_MEGABYTES = 0.5, 100


def rehearse(project: Path) -> None:
    """Rehearse a run."""
    idea = Path(__file__).parents[1] / "examples" / "greeter.md"
    run = (*GSD, "run", str(idea), "--agent", "rehearsal", "-C", str(project), "--yes")
    subprocess.run(run, check=True, capture_output=True)


def lengthen(journal: Path, facts: int) -> int:
    """Copy the facts of the first phase until the journal has so many; return how many it has."""
    columns = "run, epoch, at, kind, v, step, attempt, data"
    with closing(sqlite3.connect(journal)) as database:
        (last,) = database.execute("SELECT max(seq) FROM event").fetchone()
        (end,) = database.execute("SELECT min(seq) FROM event WHERE kind = 'run.closed'").fetchone()
        tail = database.execute(f"SELECT {columns} FROM event WHERE seq >= ? ORDER BY seq", (end,)).fetchall()
        own = "step LIKE '1/%' AND kind NOT IN ('agent.activity', 'question.asked', 'question.answered')"
        phase = database.execute(f"SELECT {columns} FROM event WHERE {own} ORDER BY seq").fetchall()
        database.execute("DELETE FROM event WHERE seq >= ?", (end,))
        database.execute("DROP TABLE IF EXISTS kept")
        number, insert = 1000, f"INSERT INTO event({columns}) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"
        while last < facts:
            number += 1
            rows = [(*row[:5], f"{number}{row[5][1:]}", *row[6:]) for row in phase]
            database.executemany(insert, rows)
            last += len(rows)
        database.commit()
        keep(journal)
        database.executemany(insert, [*phase, *tail])
        database.commit()
    return int(last)


def keep(path: Path) -> None:
    """Let the journal keep its state, as a run does at least every 500 facts."""
    with Journal.open(path, clock=lambda: datetime.now(UTC)) as journal:
        last = read_last_run(journal)
        keep_run(journal, last.seq, last.state, last.history)


def measure(project: Path, command: tuple[str, ...]) -> tuple[float, float]:
    """Return the processor time in seconds, and the most memory in megabytes, of a command."""
    best: list[tuple[float, float]] = []
    for _ in range(ROUNDS + 1):
        with Path(os.devnull).open("wb") as nowhere:
            process = subprocess.Popen((*GSD, "-C", str(project), *command), stdout=nowhere, stderr=nowhere)
            _, code, used = os.wait4(process.pid, 0)
        if code:
            raise SystemExit(f"gsd {' '.join(command)} ended with {os.waitstatus_to_exitcode(code)}")
        best.append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))
    return min(best[1:])


def main() -> int:
    """Print a line for each command; return 1 if ``status`` costs more than its limits."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short", Path(folder) / "long"
        rehearse(short)
        shutil.copytree(short, long, symlinks=True)
        facts = lengthen(long / ".git" / "gsd" / "journal.db", wanted)
        print(f"{facts} facts; in parentheses: the same command with the journal of the rehearsal")
        exceeded = False
        for command in COMMANDS:
            (seconds, megabytes), (few, little) = measure(long, command), measure(short, command)
            print(
                f"gsd {' '.join(command):<12} {seconds:6.2f} s ({few:.2f}) of processor time, "
                f"{megabytes:5.0f} MB ({little:.0f})",
                flush=True,
            )
            exceeded |= command == ("status",) and (seconds > LIMIT_SECONDS or megabytes > LIMIT_MEGABYTES)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
