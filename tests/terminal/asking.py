"""A process that asks one question at its terminal, and prints what came of it as JSON.

``asking.py`` answers are read from the keyboard; ``asking.py elsewhere`` is told, by SIGUSR1,
that the question was answered elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import termios
from pathlib import Path

from gsd_core import Inquiry, Option, Question, RunInfo
from gsd_plugins.terminal.stage import Stage
from tests.terminal.plays import DATABASE, event

PERMISSION = Inquiry(
    kind="permission",
    step="1/execute/01-01",
    reason="it publishes",
    questions=(
        Question(
            id="q-2",
            text="Allow Bash?\nnpm publish && " + "x" * 300 + " # the end",
            options=(Option(label="Deny", recommended=True), Option(label="Allow")),
            free_text=False,
        ),
    ),
)


async def main(mode: str) -> None:
    """Ask, and say what was answered."""
    run = RunInfo(id="r-1", project=Path("/nowhere"), interactive=True, no_input=mode == "no-input")
    before = termios.tcgetattr(0)
    inquiry = PERMISSION if mode == "permission" else Inquiry(step="1/plan", questions=(DATABASE,))
    async with Stage().open(run) as stage:
        await stage.show(event("step.started", "1/plan", kind="plan"))
        asking = asyncio.create_task(stage.ask(inquiry))
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, asking.cancel)
        (answers,) = await asyncio.gather(asking, return_exceptions=True)
        if isinstance(answers, asyncio.CancelledError):
            told = event("question.answered", question="q-1", words="SQLite", by="ada", via="inbox")
            await stage.show(told)
    found = [answer.words for answer in answers] if isinstance(answers, list) else None
    same = termios.tcgetattr(0) == before
    print("RESULT", json.dumps({"words": found, "same": same}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "ask"))
