"""A process with a live view at its terminal; it asks on SIGUSR1, and a thread of it warns on SIGUSR2.

The arguments are the pid file and the file for the answer.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import attrs

from gsd_core import Event, Inquiry, RunInfo
from gsd_plugins.terminal.session import TerminalSession
from tests.terminal.pseudo_terminal import DATABASE, event

EVENTS = (
    event("run.opened", version="0.1.0", agent=["rehearsal"]),
    event("phase.started", "1/plan", number="1", name="A phase whose name needs more than forty columns"),
    event("step.started", "1/plan", kind="plan", phase="1"),
    event("agent.activity", "1/plan", kind="tool", tool="Bash", text="pytest " + "tests/of/it " * 20),
)


WARNING = "a warning that needs more than one line of forty columns " * 3


def warn() -> None:
    """Log a warning, as a library does that knows nothing of the view."""
    threading.Thread(target=logging.getLogger("a_library").warning, args=[f"{WARNING}and ends"]).start()


def now(one: Event) -> Event:
    return attrs.evolve(one, at=datetime.now(UTC))


async def main(pid: Path) -> str:
    """Show a run until its question is answered, and return the answer."""
    run = RunInfo(id="r-1", project=Path("/nowhere"), interactive=True)
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, asked.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, warn)
    async with TerminalSession().open(run) as session:
        for one in EVENTS:
            await session.show(now(one))
        await asyncio.to_thread(pid.write_text, str(os.getpid()))
        await asked.wait()
        answers = await session.ask(Inquiry(step="1/plan", questions=(DATABASE,)))
        await session.show(now(event("step.completed", "1/plan", subject="a line that stays")))
    return answers[0].words if answers else "left open"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(asyncio.run(main(Path(sys.argv[1]))))
