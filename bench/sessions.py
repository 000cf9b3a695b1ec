"""How soon a question in a journal reaches those who watch sessions: ``Harness.changes``.

``python -m bench.sessions [SESSIONS] [QUESTIONS]`` makes that many sessions (50), each with a project of its
own, writes that many questions (200) into their journals, and prints how late they were published. Every
question has to be on every screen within 250 ms.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from gsd_core import Inquiry, Option, Question, boot_id, process_start
from gsd_core.codec import unstructure
from gsd_core.git import data_directory
from gsd_core.journal.store import Journal
from gsd_plugins.sessions.following import Harness
from gsd_plugins.sessions.registry import Registry


def main(sessions: int = 50, questions: int = 200) -> None:
    """Write, follow, and print the delays."""
    with TemporaryDirectory() as folder:
        os.environ["GSD_STATE_DIR"] = str(Path(folder) / "state")
        journals = [_project(Path(folder) / f"p{number}") for number in range(sessions)]
        cpu = time.process_time()
        began = time.monotonic()
        delays = sorted(asyncio.run(_follow(journals, questions)))
        load = (time.process_time() - cpu) / (time.monotonic() - began)
        for journal in journals:
            journal.close()
    p50, p99 = delays[len(delays) // 2], delays[int(len(delays) * 0.99)]
    print(f"{sessions} sessions, {len(delays)} questions: p50 {p50:.0f} ms, p99 {p99:.0f} ms, {load:.0%} CPU")


def _project(root: Path) -> Journal:
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    with Registry() as registry:
        session = registry.add(project=root, folder=root, command=["run", "idea.md"]).id
        own = {"runner": os.getpid(), "runner_started": process_start(os.getpid()), "boot": boot_id()}
        registry.update(session, state="running", slot=1, **own)
    directory = data_directory(root)
    assert directory is not None
    directory.mkdir(parents=True, exist_ok=True)
    journal = Journal.open(directory / "journal.db", clock=lambda: datetime.now(UTC))
    journal.append("run.started", {"idea": None, "workflow": "native", "base": {}}, run="r")
    return journal


async def _follow(journals: list[Journal], questions: int) -> list[float]:
    """Return the delays in milliseconds."""
    asked: dict[str, float] = {}
    delays: list[float] = []
    async with Harness() as harness:
        number = harness.changes.number
        for count in range(questions):
            name = f"q-{count}"
            question = Question(id=name, text="Which?", options=(Option(label="a"), Option(label="b")))
            inquiry = unstructure(Inquiry(kind="decision", step="init", questions=(question,)))
            # Not in step with the polling.
            await asyncio.sleep(0.013 * (count % 11))
            asked[name] = time.monotonic()
            journals[count % len(journals)].append(
                "question.asked", {"inquiry": inquiry, "occasion": name}, run="r", step="init"
            )
            while name in asked:
                number = await harness.changes.wait(number, 5)
                for change in harness.changes.after(number - 1)[0]:
                    if change.event and change.event.name == "question.asked":
                        names = [str(one["id"]) for one in change.event.data["inquiry"]["questions"]]
                        now = time.monotonic()
                        delays += [(now - asked.pop(one)) * 1000 for one in names if one in asked]
    return delays


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
