"""The process that owns one session: ``python -m gsd_plugins.sessions.runner ID --slots N --keep BYTES``.

It waits for a slot, starts the session's command in a terminal of its own, stores what it prints, passes on
input and changes of the window's size, and records how it ended. It is no child of the command that started
it, so that a session outlives the terminal, ``gsd serve``, and everything else that watches it.

If the runner is killed, the kernel closes the terminal, and the session's command ends as if its window had
been closed: with SIGHUP, and everything recorded.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import json
import os
import pty
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from gsd_core import SessionState, boot_id, start_time

from .output import OutputWriter
from .queue import take_slot
from .registry import Registry, Row, output_folder

QUEUE_SECONDS = 0.3
"""How often a waiting session asks whether it is its turn."""
READ_BYTES = 1 << 16
COLUMNS, ROWS = 120, 40
"""The size of the terminal until somebody who watches it has another one."""
KILL_SECONDS = 120.0
"""How long a session that was asked to stop may take; a step that is being committed is finished first."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
MAX_LINE = 1 << 20


def main(arguments: list[str]) -> int:
    """Run the session named on the command line to its end."""
    parser = argparse.ArgumentParser(prog="gsd session runner")
    parser.add_argument("session")
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--keep", type=int, required=True)
    options = parser.parse_args(arguments)
    if os.fork():
        os._exit(0)  # whoever starts sessions need not wait for their ends, or leave zombies
    with Registry() as registry:
        # Signals are for the loop; until then they end the runner, and with it the session.
        registry.update(
            options.session, runner=os.getpid(), runner_started=start_time(os.getpid()) or "", boot=boot_id()
        )
        if not _wait_for_slot(registry, options.session, options.slots):
            return 0
        runner = Runner(registry=registry, session=options.session, keep_bytes=options.keep)
        try:
            return runner.run()
        except BaseException as error:
            reason = f"its runner failed: {type(error).__name__}: {error}"
            registry.end(options.session, "failed", exit_code=None, reason=reason)
            raise


def _wait_for_slot(registry: Registry, session: str, slots: int) -> bool:
    """Wait until the session has a slot; return false if it was stopped before."""
    said = ""
    while True:
        row = registry.get(session)
        if row.stop_asked:
            registry.end(session, "stopped", exit_code=None, reason="stopped before it started")
            return False
        why = take_slot(registry, session, slots)
        if not why:
            return True
        if why != said:
            registry.update(session, reason=f"waits for {why}")
            said = why
        time.sleep(QUEUE_SECONDS)


@attrs.define(kw_only=True)
class Runner:
    """One session's terminal, its output and its control socket."""

    registry: Registry
    session: str
    keep_bytes: int
    _selector: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector, init=False)
    _master: int = attrs.field(default=-1, init=False)
    _pid: int = attrs.field(default=0, init=False)
    _status: int | None = attrs.field(default=None, init=False)
    _stop_at: float = attrs.field(default=0.0, init=False)
    _lost_output: str = attrs.field(default="", init=False)

    def run(self) -> int:
        """Start the command and serve it until it has ended; return 0."""
        row = self.registry.get(self.session)
        folder = output_folder(self.session)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Short: the path of a socket has at most 104 bytes on macOS, and the state folder's may be long.
        sockets = tempfile.mkdtemp(prefix="gsd-s-")
        wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if hasattr(os, "pipe2") else _pipe()
        signal.set_wakeup_fd(waker)
        for number in SIGNALS:
            signal.signal(number, _ignore)
        output = OutputWriter(folder, self.keep_bytes)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path = str(Path(sockets) / "control")
            listener.bind(path)
            listener.listen(16)
            listener.setblocking(False)
            self._start(row)
            self.registry.update(
                self.session,
                pid=self._pid,
                pid_started=start_time(self._pid) or "",
                started=_now(),
                control=path,
            )
            self._selector.register(wake, selectors.EVENT_READ, ("signal", wake))
            self._selector.register(listener, selectors.EVENT_READ, ("listener", listener))
            self._selector.register(self._master, selectors.EVENT_READ, ("output", self._master))
            self._serve(output)
        finally:
            listener.close()
            output.close()
            shutil.rmtree(sockets, ignore_errors=True)
        self._record_end()
        return 0

    def _start(self, row: Row) -> None:
        command = [sys.executable, "-m", "gsd_core", *row.session.command]
        environment = {
            **os.environ,
            "GSD_SESSION": self.session,
            "TERM": "xterm-256color",
            "PYTHONUNBUFFERED": "1",
        }
        pid, master = pty.fork()
        if pid == 0:
            try:
                for number in SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
                os.chdir(row.folder)
                os.execve(command[0], command, environment)
            except BaseException as error:
                os.write(2, f"cannot start: {error}\n".encode())
            finally:
                os._exit(127)
        self._pid, self._master = pid, master
        _set_size(master, COLUMNS, ROWS)
        os.set_blocking(master, False)

    def _serve(self, output: OutputWriter) -> None:
        """Pass bytes in both directions until the command has ended and all its output is stored."""
        while self._status is None or self._master >= 0:
            # After its end, children that it left behind may hold the terminal open: nobody waits for them.
            timeout = 0.2 if self._status is not None else (1.0 if self._stop_at else None)
            events = self._selector.select(timeout)
            for key, _ in events:
                kind, what = key.data
                if kind == "signal":
                    self._take_signals(what)
                elif kind == "output":
                    self._take_output(output)
                elif kind == "listener":
                    self._accept(what)
                else:
                    self._take_orders(what)
            self._reap()
            if self._stop_at and time.monotonic() > self._stop_at and self._status is None:
                os.kill(self._pid, signal.SIGKILL)
            if self._status is not None and not events:
                break

    def _take_signals(self, wake: int) -> None:
        with suppress(BlockingIOError):
            numbers = os.read(wake, 100)
            if any(number != signal.SIGCHLD for number in numbers):
                self._stop()

    def _take_output(self, output: OutputWriter) -> None:
        try:
            data = os.read(self._master, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # Linux raises EIO when the last process has closed the terminal
        if not data:
            self._selector.unregister(self._master)
            os.close(self._master)
            self._master = -1
            return
        try:
            output.append(data)
        except OSError as error:
            # The session is worth more than its output, so it goes on.
            self._lost_output = f"its output is incomplete: {error.strerror}"

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            connection.settimeout(5)
            self._selector.register(connection, selectors.EVENT_READ, ("orders", Orders(connection)))

    def _take_orders(self, orders: Orders) -> None:
        alive = True
        for order in orders.read():
            if order is None:
                alive = False
                break
            self._obey(order)
        if not alive:
            self._selector.unregister(orders.connection)
            orders.connection.close()

    def _obey(self, order: dict[str, Any]) -> None:
        """Do what a line of the control socket asks for; what cannot be understood is ignored."""
        if isinstance(text := order.get("input"), str) and self._master >= 0:
            with suppress(ValueError, OSError):
                data = base64.b64decode(text, validate=True)
                while data:
                    data = data[os.write(self._master, data) :]
        match order.get("size"):
            case [int(columns), int(rows)] if (
                1 <= columns <= 1000 and 1 <= rows <= 1000 and self._master >= 0
            ):
                _set_size(self._master, columns, rows)
            case _:
                pass
        if order.get("stop") is True:
            self._stop()

    def _stop(self) -> None:
        """Ask the command to end: like ``gsd stop``, it finishes what it is writing."""
        if self._status is None:
            self.registry.update(self.session, stop=1)
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
            self._stop_at = self._stop_at or time.monotonic() + KILL_SECONDS

    def _reap(self) -> None:
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None

    def _record_end(self) -> None:
        assert self._status is not None
        code = self._status if self._status >= 0 else 128 - self._status
        row = self.registry.get(self.session)
        state: SessionState = (
            "completed" if code == 0 else "stopped" if row.stop_asked or code in (129, 130, 143) else "failed"
        )
        reason = f"killed by signal {-self._status}" if self._status < 0 else ""
        said = "; ".join(filter(None, [reason or row.session.reason, self._lost_output]))
        self.registry.end(self.session, state, exit_code=code, reason=said)


@attrs.define
class Orders:
    """One connection to the control socket: JSON objects, one per line."""

    connection: socket.socket
    _rest: bytes = b""

    def read(self) -> list[dict[str, Any] | None]:
        """Return the complete lines that have arrived; ``None`` at the end of the connection."""
        try:
            data = self.connection.recv(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            return [None]
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[dict[str, Any] | None] = []
        for line in lines:
            with suppress(ValueError):
                order = json.loads(line)
                found += [order] if isinstance(order, dict) else []
        return [*found, None] if len(self._rest) > MAX_LINE else found


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the number of the signal is read from the pipe."""


def _set_size(terminal: int, columns: int, rows: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _pipe() -> tuple[int, int]:
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    return wake, waker


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
