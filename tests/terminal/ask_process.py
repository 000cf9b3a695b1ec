"""A process that asks one question at its terminal, and prints the result as JSON.

The answer is read from the keyboard; SIGUSR1 means that the question was answered elsewhere.
The first argument may be ``permission``, ``no-input`` or ``plain``.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import termios
from pathlib import Path

import attrs

from gsd_core import Inquiry, Option, Question, RunInfo
from gsd_plugins.terminal.session import TerminalSession
from tests.terminal.pseudo_terminal import DATABASE, event

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
    """Ask, and print the answer."""
    run = RunInfo(id="r-1", project=Path("/nowhere"), interactive=True, no_input=mode == "no-input")
    run = attrs.evolve(run, plain=mode == "plain")
    before = termios.tcgetattr(0)
    inquiry = PERMISSION if mode == "permission" else Inquiry(step="1/plan", questions=(DATABASE,))
    async with TerminalSession().open(run) as session:
        await session.show(event("step.started", "1/plan", kind="plan"))
        asking = asyncio.create_task(session.ask(inquiry))
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, asking.cancel)
        (answers,) = await asyncio.gather(asking, return_exceptions=True)
        if isinstance(answers, asyncio.CancelledError):
            answered = event("question.answered", question="q-1", words="SQLite", by="ada", via="inbox")
            await session.show(answered)
    found = [answer.words for answer in answers] if isinstance(answers, list) else None
    same = termios.tcgetattr(0) == before
    print("RESULT", json.dumps({"words": found, "same": same}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "ask"))
