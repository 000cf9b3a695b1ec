"""The terminal of a session: its command runs in it, and others get at it through a socket."""

from __future__ import annotations

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
import tempfile
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from gsd_core import own_command, process_start

from .output import OutputWriter
from .own_row import OwnRow
from .registry import Row, now, output_folder

if TYPE_CHECKING:
    from .runner import Wakeup

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
READ_BYTES = 1 << 16
COLUMNS, ROWS = 120, 40
"""The size of the terminal until somebody who watches it has another one."""
TICK_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""How often it is asked whether the session is to make room for others."""
KILL_SECONDS = 120.0
"""How long a session that was asked to stop may take; a step that is being committed is finished first."""
DRAIN_SECONDS = 2.0
"""How long output is read after the command's end; processes that it left behind may print for ever."""
MAX_LINE = 1 << 20
MAX_INPUT = 1 << 20
"""How much input is kept for a command that does not read it, in bytes."""
MAX_SOCKET_PATH = 100
"""The path of a socket has at most 104 bytes on macOS, and 108 on Linux."""
NOT_PASSED_ON = ("COLUMNS", "LINES", "TMUX", "TMUX_PANE", "STY", "WINDOWID", "SSH_TTY", "GPG_TTY")
"""Variables about the terminal of whoever started the session."""


@attrs.define(kw_only=True)
class SessionTerminal:
    """One run of a session's command: its terminal, its output and its control socket.

    *is_to_park*: whether the command is to end although nobody has stopped it; then *was_parked* is true.
    """

    row: OwnRow
    wakeup: Wakeup
    keep_bytes: int
    is_to_park: Callable[[], bool] = bool
    lost_output: str = ""
    was_parked: bool = False
    _looked_at: float = attrs.field(factory=time.monotonic, init=False)
    _selector: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector, init=False)
    _master: int = attrs.field(default=-1, init=False)
    _pid: int = attrs.field(default=0, init=False)
    _status: int | None = attrs.field(default=None, init=False)
    _stop_at: float = attrs.field(default=0.0, init=False)
    _ended_at: float = attrs.field(default=0.0, init=False)
    _input: bytearray = attrs.field(factory=bytearray, init=False)

    def run(self) -> int:
        """Run the command to its end; return its exit code, or the negative number of the signal."""
        row = self.row.read()
        folder = output_folder(self.row.session)
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = OutputWriter(folder, self.keep_bytes)
        with _listening(folder) as (listener, path):
            try:
                self._start(row)
                self.row.save(
                    pid=self._pid,
                    pid_started=process_start(self._pid),
                    started=row.session.started.isoformat() if row.session.started else now(),
                    control=path,
                )
                self._selector.register(self.wakeup.descriptor, selectors.EVENT_READ, ("signal", None))
                self._selector.register(listener, selectors.EVENT_READ, ("listener", listener))
                self._selector.register(self._master, selectors.EVENT_READ, ("terminal", None))
                self._serve(output)
            finally:
                for key in list(self._selector.get_map().values()):
                    if isinstance(key.data[1], Orders):
                        key.data[1].connection.close()
                self._selector.close()
                if self._master >= 0:
                    os.close(self._master)
                    self._master = -1
                output.close()
        assert self._status is not None
        return self._status

    def _start(self, row: Row) -> None:
        command = [*own_command(), *row.session.command]
        environment = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
        environment |= {"GSD_SESSION": self.row.session, "TERM": "xterm-256color"}
        # A signal for the child must not get lost in the handlers that it inherits.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        pid, master = pty.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                _set_size(0, COLUMNS, ROWS)
                os.chdir(row.folder)
                os.execve(command[0], command, environment)
            except BaseException as error:
                os.write(2, f"cannot start: {error}\n".encode())
            finally:
                os._exit(127)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self._pid, self._master = pid, master
        os.set_blocking(master, False)

    def _serve(self, output: OutputWriter) -> None:
        """Pass bytes in both directions until the command has ended and its output is stored."""
        while self._status is None or self._master >= 0:
            events = self._selector.select(TICK_SECONDS if self._status is None else 0.1)
            for key, mask in events:
                kind, what = key.data
                if kind == "signal" and self.wakeup.was_asked_to_end() and self._status is None:
                    # Like `gsd stop`: the command finishes what it is writing.
                    self.row.save(stop=1)
                    self._end_command()
                elif kind == "terminal" and self._master >= 0:
                    if mask & selectors.EVENT_WRITE:
                        self._pass_input()
                    if mask & selectors.EVENT_READ:
                        self._take_output(output)
                elif kind == "listener":
                    self._accept(what)
                elif kind == "orders":
                    self._take_orders(what)
            if self._status is None:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    self._status, self._ended_at = os.waitstatus_to_exitcode(status), time.monotonic()
            self.row.check()
            time_now = time.monotonic()
            if self._status is None and not self._stop_at and time_now > self._looked_at + LOOK_SECONDS:
                self._looked_at = time_now
                if self.is_to_park():
                    self.was_parked = True
                    self._end_command()
            if self._stop_at and time_now > self._stop_at and self._status is None:
                os.kill(self._pid, signal.SIGKILL)  # our own child, which nobody else can have waited for
            if self._status is not None and (not events or time_now > self._ended_at + DRAIN_SECONDS):
                break

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
            self.lost_output = f"its output is incomplete: {error.strerror}"

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, ("orders", Orders(connection)))

    def _take_orders(self, orders: Orders) -> None:
        for order in orders.read():
            if order is None:
                self._selector.unregister(orders.connection)
                orders.connection.close()
                return
            self._obey(order)

    def _obey(self, order: dict[str, Any]) -> None:
        """Do what a line of the control socket asks for; what cannot be understood is ignored."""
        if isinstance(text := order.get("input"), str) and self._master >= 0:
            with suppress(ValueError):
                self._input += base64.b64decode(text, validate=True)
                del self._input[MAX_INPUT:]
                self._pass_input()
        match order.get("size"):
            case [int(columns), int(rows)] if 1 <= columns <= 1000 and 1 <= rows <= 1000:
                _set_size(self._master, columns, rows)
            case _:
                pass

    def _pass_input(self) -> None:
        """Write what the terminal takes now; the rest follows when the command has read some of it."""
        try:
            while self._input:
                del self._input[: os.write(self._master, self._input[:1024])]
        except BlockingIOError:
            pass
        except OSError:
            self._input.clear()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._input else 0)
        if self._master >= 0:
            self._selector.modify(self._master, wanted, ("terminal", None))

    def _end_command(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        self._stop_at = self._stop_at or time.monotonic() + KILL_SECONDS


@attrs.define
class Orders:
    """One connection to the control socket: JSON objects, one per line."""

    connection: socket.socket
    _rest: bytes = b""

    def read(self) -> list[dict[str, Any] | None]:
        """Return the complete lines that have arrived; ``None`` at the end of the connection."""
        try:
            data = self.connection.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[dict[str, Any] | None] = []
        for line in lines:
            with suppress(ValueError, RecursionError):
                order = json.loads(line)
                found += [order] if isinstance(order, dict) else []
        return found if data and len(self._rest) <= MAX_LINE else [*found, None]


@contextmanager
def _listening(folder: Path) -> Generator[tuple[socket.socket, str]]:
    """Listen on a socket that only this user can reach; yield it and its path."""
    path, temporary = folder / "control", ""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH or not folder.is_dir():
        temporary = tempfile.mkdtemp(prefix="gsd-s-")
        path = Path(temporary) / "control"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        listener.listen(16)
        listener.setblocking(False)
        yield listener, str(path)
    finally:
        listener.close()
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def _set_size(terminal: int, columns: int, rows: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
