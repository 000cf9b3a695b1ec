"""Events and questions for tests of the terminal, and a pseudo-terminal with a process on it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import define

import gsd_core
from gsd_core import Event, EventName, Inquiry, Option, Question

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOME = Path(gsd_core.__file__).parents[1]
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J[red]bold[/red]\u202egpj.exe\x9b31m"
"""A clipboard write, a clear-screen, markup, a bidi override, an 8-bit colour."""

DATABASE = Question(
    id="q-1",
    text="Which database?",
    header="Database",
    options=(
        Option(label="SQLite", description="one file", recommended=True),
        Option(label="PostgreSQL", description="a server"),
    ),
)


def event(name: EventName, step: str = "", /, *, after: int = 0, **data: Any) -> Event:
    """Return an event that happened *after* seconds into the run."""
    at = BEGAN + timedelta(seconds=after)
    return Event(seq=after + 1, name=name, at=at, run="r-1", step=step, data=data)


def asked(*questions: Question, kind: str = "decision") -> Event:
    """Return the event that *questions* were asked."""
    asked_questions = [
        {"id": q.id, "text": q.text, "header": q.header, "options": [{"label": o.label} for o in q.options]}
        for q in questions
    ]
    return event("question.asked", "1/plan", key="q-1", inquiry={"kind": kind, "questions": asked_questions})


def inquiry(*questions: Question, **more: Any) -> Inquiry:
    """Return an inquiry about *questions*."""
    return Inquiry(step="1/plan", questions=questions or (DATABASE,), **more)


@define
class Screen:
    """The screen and the keyboard of a process's terminal."""

    process: subprocess.Popen[bytes]
    terminal: int
    seen: str = ""

    def until(self, words: str, seconds: float = 20) -> str:
        """Read until *words* appear that were not read before; return everything read."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            ready, _, _ = select.select([self.terminal], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{words!r} did not appear; the screen: {self.seen!r}"
            self.seen += self._read(words)
        before, _, self.seen = self.seen.partition(words)
        return before + words

    def type(self, text: str) -> None:
        """Type *text* at the keyboard."""
        os.write(self.terminal, text.encode())

    def ended(self) -> int:
        """Wait for the process to end, and return its exit code."""
        with suppress(AssertionError):
            while True:
                self.seen += self._read("more")
        return self.process.wait(timeout=20)

    def _read(self, words: str) -> str:
        try:
            return os.read(self.terminal, 65_536).decode("utf-8", "replace")
        except OSError:
            # Linux fails the read when the last process on the terminal has ended.
            raise AssertionError(f"the process ended before {words!r}; the screen: {self.seen!r}") from None


@contextmanager
def on_a_terminal(*command: str, **environment: str) -> Generator[Screen]:
    """Run Python with *command* as the foreground process of a new terminal, 80 columns wide."""
    terminal, slave = pty.openpty()
    arguments = [sys.executable, "-c", _FOREGROUND, *command]
    try:
        process = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=_environment() | environment,
        )
        os.close(slave)
        try:
            yield Screen(process, terminal)
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(terminal)


_FOREGROUND = """
import fcntl, runpy, struct, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
sys.argv = sys.argv[1:]
run = runpy.run_path if sys.argv[0].endswith(".py") else runpy.run_module
run(sys.argv[0], run_name="__main__")
"""


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not re.match("GSD_(?!STATE_DIR)|NO_COLOR|FORCE_COLOR", name)
    }
    return kept | {
        "PYTHONPATH": f"{HOME}:{HOME / 'plugins'}",
        "TERM": "xterm-256color",
        "PYTHONIOENCODING": "utf-8",
    }


def json_after(text: str) -> Any:
    """Return the JSON at the end of *text*."""
    return json.loads(text[text.index("{") :].strip())
