"""The live view and the menu in a real terminal with a real shell: resized, suspended, continued."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from attrs import define

from tests.terminal.pseudo_terminal import HOME
from tests.terminal.show_process import WARNING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
]
SHOWING = Path(__file__).with_name("show_process.py")
LIMIT = 60
"""Seconds until something that has to appear counts as missing."""


@define
class Tmux:
    """A tmux server of its own with one window, in which bash runs."""

    socket: Path

    def __call__(self, *args: str) -> str:
        """Run a tmux command and return its output."""
        command = ["tmux", "-S", str(self.socket), "-f", os.devnull, *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def start(self, columns: int, rows: int) -> None:
        """Start bash in a window of that size."""
        shell = shlex.join(["env", "PS1=READY ", f"PYTHONPATH={HOME}:{HOME / 'plugins'}", "bash", "--norc"])
        self("new-session", "-d", "-x", str(columns), "-y", str(rows), shell)

    def type(self, *keys: str) -> None:
        """Press keys, by their names in tmux; other texts are typed."""
        self("send-keys", *keys)

    def resize(self, columns: int, rows: int = 24) -> None:
        """Change the size of the window."""
        self("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> list[str]:
        """Return the lines on the screen and above it, without empty ones."""
        return [line.rstrip() for line in self("capture-pane", "-p", "-S", "-").splitlines() if line.strip()]

    def until(self, holds: Callable[[list[str]], bool]) -> list[str]:
        """Return the screen as soon as it is as it should be."""
        end = time.monotonic() + LIMIT
        while not holds(screen := self.screen()):
            assert time.monotonic() < end, "the screen:\n" + "\n".join(screen)
            time.sleep(0.1)
        return screen


@pytest.fixture
def tmux(tmp_path: Path) -> Generator[Tmux]:
    server = Tmux(tmp_path / "tmux")
    yield server
    subprocess.run(["tmux", "-S", str(server.socket), "kill-server"], check=False, capture_output=True)


def views(screen: list[str]) -> int:
    """Return how often the last line of the view is on the screen."""
    return sum("Ctrl-C stop" in line or "│ Ctrl-C" in line for line in screen)


def steps(screen: list[str]) -> int:
    return sum(line.startswith("▸ 1/plan") for line in screen)


def prompts(screen: list[str]) -> int:
    return sum(f"{line} ".startswith("> ") for line in screen)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_resizing_and_suspending_leave_no_debris_and_keep_the_draft(tmux: Tmux, columns: int) -> None:
    pid, answer = tmux.socket.with_name("pid"), tmux.socket.with_name("answer")
    tmux.start(columns, 24)
    tmux.type(shlex.join([sys.executable, str(SHOWING), str(pid), str(answer)]), "Enter")
    tmux.until(lambda screen: pid.exists() and (views(screen), steps(screen)) == (1, 1))

    # What is typed while nothing is asked does not appear.
    tmux.type("typed-too-early", "Enter")
    for other in (33, 100, 60, columns):
        tmux.resize(other)
        screen = tmux.until(lambda screen: (views(screen), steps(screen)) == (1, 1))
    assert not any("typed-too-early" in line for line in screen)

    tmux.type("C-z")
    screen = tmux.until(lambda screen: views(screen) == 0 and "READY" in screen[-1])
    tmux.type("stty -a | grep -wo -e '-*echo'; fg", "Enter")
    screen = tmux.until(lambda screen: views(screen) == 1)
    assert "echo" in screen

    os.kill(int(pid.read_text()), signal.SIGUSR1)
    tmux.until(lambda screen: prompts(screen) == 1 and views(screen) == 0)
    tmux.type("a draft of my own words, which is longer than forty columns")
    tmux.until(lambda screen: "columns" in screen[-1])
    tmux.type("C-z")
    tmux.until(lambda screen: prompts(screen) == 0)
    tmux.type("fg", "Enter")
    screen = tmux.until(lambda screen: prompts(screen) == 1 and "columns" in screen[-1])
    assert sum("SQLite" in line for line in screen) == 1
    assert sum("Which database?" in line for line in screen) == 1

    tmux.type("!", "Enter")
    tmux.until(lambda _: answer.exists())
    assert answer.read_text() == "a draft of my own words, which is longer than forty columns!"
    screen = tmux.until(lambda screen: screen[-1].startswith("READY"))
    assert (views(screen), prompts(screen)) == (0, 0)
    assert any("a line that stays" in line for line in screen)


def test_escape_leaves_the_question_open_and_says_how_to_answer_it(tmux: Tmux) -> None:
    pid, answer = tmux.socket.with_name("pid"), tmux.socket.with_name("answer")
    tmux.start(80, 24)
    tmux.type(shlex.join([sys.executable, str(SHOWING), str(pid), str(answer)]), "Enter")
    tmux.until(lambda screen: views(screen) == 1 and pid.exists())
    os.kill(int(pid.read_text()), signal.SIGUSR1)
    tmux.until(lambda screen: prompts(screen) == 1)

    tmux.type("Escape")

    tmux.until(lambda _: answer.exists())
    assert answer.read_text() == "left open"
    assert any("gsd answer q-1 CHOICE" in line for line in tmux.screen())


@pytest.mark.parametrize("columns", [40, 80])
def test_a_warning_from_a_thread_is_whole_and_above_the_view_and_the_menu(tmux: Tmux, columns: int) -> None:
    pid, answer = tmux.socket.with_name("pid"), tmux.socket.with_name("answer")
    tmux.start(columns, 24)
    tmux.type(shlex.join([sys.executable, str(SHOWING), str(pid), str(answer)]), "Enter")
    tmux.until(lambda screen: (views(screen), steps(screen)) == (1, 1) and pid.exists())
    process = int(pid.read_text())

    os.kill(process, signal.SIGUSR2)
    tmux.until(lambda screen: warnings(screen) == 1 and views(screen) == 1)
    os.kill(process, signal.SIGUSR2)
    screen = tmux.until(lambda screen: warnings(screen) == 2 and views(screen) == 1)
    assert steps(screen) == 1

    os.kill(process, signal.SIGUSR1)
    tmux.until(lambda screen: prompts(screen) == 1 and views(screen) == 0)
    tmux.type("a draft")
    os.kill(process, signal.SIGUSR2)
    screen = tmux.until(lambda screen: warnings(screen) == 3 and screen[-1] == "> a draft")
    assert sum("SQLite" in line for line in screen) == 1
    tmux.type("Enter")
    tmux.until(lambda _: answer.exists())
    assert answer.read_text() == "a draft"


def warnings(screen: list[str]) -> int:
    """Return how many warnings are on the screen as a whole; the terminal broke them anywhere."""
    text = "".join("".join(screen).split())
    return text.count("".join(f"{WARNING}and ends".split()))


def test_redrawing_at_the_top_of_the_screen_leaves_no_copies_in_the_scroll_back(tmux: Tmux) -> None:
    pid, answer = tmux.socket.with_name("pid"), tmux.socket.with_name("answer")
    tmux.start(80, 24)
    tmux.type(f"clear; {shlex.join([sys.executable, str(SHOWING), str(pid), str(answer)])}", "Enter")
    tmux.until(lambda screen: (views(screen), steps(screen)) == (1, 1) and pid.exists())

    assert sum("Ctrl-C stop" in line for line in tmux.screen()) == 1
