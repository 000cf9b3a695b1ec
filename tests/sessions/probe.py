"""A plugin with commands that behave badly in a session; tests load it with ``--plugins-dir``."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable

import click

from gsd_core import implements
from gsd_core.hookspecs import gsd_cli_commands

HOSTILE = b"\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m\x9b5n\xff\xfe \xe2\x80\xaeevil\r\n"


def print_size(number: int, frame: object) -> None:
    """Print the size of the terminal, as a handler of signals."""
    os.write(1, f"{os.get_terminal_size()}\n".encode())


@click.command("probe")
@click.argument("what")
@click.argument("amount", type=int, default=0)
def probe(what: str, amount: int) -> None:
    """Do WHAT."""
    match what:
        case "flood":
            line = b"x" * 79 + b"\n"
            for _ in range(amount * 1000 // len(line)):
                os.write(1, line)
        case "leave-a-child":
            # It keeps the terminal open, and prints for ever.
            if os.fork() == 0:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                latest = time.monotonic() + 20
                while time.monotonic() < latest:
                    try:
                        os.write(1, b"still here\n")
                    except OSError:
                        os._exit(0)
                    time.sleep(0.01)
                os._exit(0)
        case "hostile":
            os.write(1, HOSTILE)
        case "exit":
            sys.exit(amount)
        case "ignore-hang-up":
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.write(1, b"ready\n")
            time.sleep(60)
        case "read":
            # A terminal passes on lines, each of at most some thousand bytes.
            os.write(1, b"ready\n")
            time.sleep(amount / 1000)
            count = sum(len(sys.stdin.readline()) for _ in range(50))
            os.write(1, f"read {count} bytes\n".encode())
        case "size":
            os.write(1, b"ready\n")
            signal.signal(signal.SIGWINCH, print_size)
            time.sleep(60)
        case _:
            os.write(1, b"ready\n")
            time.sleep(60)


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Contribute ``gsd probe``."""
    yield probe
