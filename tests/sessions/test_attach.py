"""``gsd attach`` in a real terminal: keys and sizes reach the session, Ctrl-] leaves it, its end is shown."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from gsd_plugins.sessions import host
from tests.sessions.test_adversaries import ended, plugins, printed, probe, until
from tests.terminal.test_in_tmux import Tmux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
]
__all__ = ["plugins"]


@pytest.fixture
def tmux(tmp_path: Path) -> Generator[Tmux]:
    server = Tmux(tmp_path / "tmux")
    server.start(90, 30)
    yield server
    server("kill-server")


def test_a_terminal_attaches_resizes_leaves_and_interrupts(plugins: Path, tmux: Tmux) -> None:
    session = probe(plugins, "size")
    until(session, printed(session, b"ready"))
    gsd = f"{sys.executable} -m gsd_core"

    tmux.type(f"{gsd} attach {session}; echo left=$?", "Enter")
    tmux.until(lambda screen: any("columns=90, lines=30" in line for line in screen))
    tmux.resize(64, 20)
    tmux.until(lambda screen: any("columns=64, lines=20" in line for line in screen))
    tmux.type("C-]")
    tmux.until(lambda screen: "left=0" in screen)
    assert host.find_session(session).state == "running"

    # The terminal is in order again: what is typed is shown, and Enter ends a line.
    tmux.type("clear; stty -a | tr ';' '\\n' | grep -c -- ' echo '", "Enter")
    tmux.until(lambda screen: "1" in screen)
    tmux.type(f"clear; {gsd} attach {session}; echo code=$?", "Enter")
    tmux.until(lambda screen: any("ready" in line for line in screen))
    tmux.type("C-c")

    tmux.until(lambda screen: "code=130" in screen)
    found = until(session, ended)
    assert (found.state, found.exit) == ("stopped", 130)


def test_attaching_to_a_queued_session_waits_until_it_starts(plugins: Path, tmux: Tmux) -> None:
    first = probe(plugins, "wait")
    until(first, printed(first, b"ready"))
    second = probe(plugins, "exit", 7)

    tmux.type(f"{sys.executable} -m gsd_core attach {second}; echo code=$?", "Enter")
    tmux.until(lambda screen: any(f"waits for session {first}" in line for line in screen))
    host.stop_session(first)

    tmux.until(lambda screen: "code=7" in screen)
    assert until(second, ended).state == "failed"
