"""The process's standard streams when they are closed, broken, full or not read.

A run must not depend on who watches it. So its output is written by threads, and the exit code
stays that of the run even if output is lost.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import attrs

from gsd_core.own_process import Diverted, data_output

MAX_WAITING = 8 * 2**20
"""How many characters may wait for a slow reader before further output is dropped."""

PATIENCE = 2.0
"""How long the end of a run waits for a reader that takes nothing, in seconds."""

CHUNK = 2**16

JSON_FORMATS = ("json", "stream-json")


def open_closed_streams() -> None:
    """Open ``/dev/null`` in place of each standard stream that is closed.

    Otherwise the next file that is opened, such as the journal, becomes standard output, and everything that
    is printed, by us or by a process we start, is written into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), encoding="utf-8")
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            stream = io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding="utf-8")
            setattr(sys, name, stream)


def finish_output(code: int) -> int:
    """Flush the standard streams and return the exit code.

    Output that cannot be written makes a successful command fail; a reader that is gone does not. Python
    must not try again at exit, because that would end the process with the code 120.
    """
    lost: OSError | None = None
    out = data_output()
    for stream in (out, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if stream is out and isinstance(error, OSError) and error.errno != errno.EPIPE:
                lost = error
            with suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
    if lost is None or code:
        return code
    from gsd_core.exit_codes import ExitCode

    with suppress(OSError):
        sys.stderr.write(f"error: cannot write to standard output: {lost.strerror}\n")
        sys.stderr.flush()
    return ExitCode.USAGE


@contextmanager
def background_output() -> Generator[None]:
    """Write standard output and standard error from threads, so that no reader can hold up a run.

    A terminal that is stopped with Ctrl-S, a pager, a pipe that is not read: the run continues. On leaving,
    what a reader still takes is written. Output that was lost is reported on standard error.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        with suppress(OSError):
            stream.flush()
    out, err = (BackgroundStream(original=stream) for stream in (data_output(), sys.stderr))
    sys.stdout = cast("TextIO", Diverted(out) if isinstance(before[0], Diverted) else out)
    sys.stderr = err
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        out.finish()
        if out.problem:
            err.write(f"warning: standard output is not complete: {out.problem}\n")
        err.finish()


@attrs.define(eq=False, slots=False)
class BackgroundStream(io.TextIOBase):
    """A text stream on the descriptor of *original* whose :meth:`write` never blocks and never fails.

    *problem* says why output was lost; it is empty if none was, or if the reader is gone.
    """

    original: TextIO
    problem: str = attrs.field(default="", init=False)
    _waiting: deque[str] = attrs.field(factory=deque[str], init=False)
    _size: int = attrs.field(default=0, init=False)
    _broken: bool = attrs.field(default=False, init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _progress: int = attrs.field(default=0, init=False)
    _changed: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute in typeshed
        """The encoding of the original stream."""
        return self.original.encoding or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]  # an attribute in typeshed
        """How characters are written that the encoding lacks."""
        return "backslashreplace"

    def fileno(self) -> int:
        """Return the descriptor of the original stream."""
        return self.original.fileno()

    def isatty(self) -> bool:
        """Whether the original stream is a terminal."""
        return self.original.isatty()

    def writable(self) -> bool:
        """Return true."""
        return True

    def write(self, text: Any, /) -> int:
        """Have *text* written by the thread; drop it if too much is waiting."""
        # click finds out in this way whether a stream takes text or bytes.
        if not isinstance(text, str):
            raise TypeError(f"write() needs text, not {type(text).__name__}")
        with self._changed:
            if self._broken or self._ended:
                return len(text)
            if self._size + len(text) > MAX_WAITING:
                self.problem = self.problem or "its reader was too slow"
                return len(text)
            self._waiting.append(text)
            self._size += len(text)
            if self._thread is None:
                # A daemon, because a write that blocks for ever cannot be ended.
                self._thread = threading.Thread(target=self._write_all, name="gsd:output", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Do nothing: the thread writes everything as soon as it can."""

    @property
    def is_gone(self) -> bool:
        """Whether the reader is gone, so that nothing more can be written."""
        return self._broken

    def drain(self, seconds: float) -> None:
        """Wait until what was written so far is out, at most so many *seconds*."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size or self._broken, seconds)

    def finish(self) -> None:
        """Wait until all is written, as long as the reader takes something every few seconds."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            while self._size and not self._broken:
                seen = self._progress
                self._changed.wait_for(lambda: self._broken or self._progress != seen, PATIENCE)  # noqa: B023
                if self._progress == seen:
                    self.problem = self.problem or "its reader has stopped"
                    return

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    return
                text = self._waiting.popleft()
            self._write_one(text)
            if self._broken:
                return

    def _write_one(self, text: str) -> None:
        data = memoryview(text.encode(self.encoding, self.errors))
        try:
            while data:
                # Small parts show that a slow reader takes something.
                data = data[os.write(self.fileno(), data[:CHUNK]) :]
                with self._changed:
                    self._progress += 1
                    self._changed.notify_all()
        except OSError as error:
            with self._changed:
                self._broken, self._size = True, 0
                self._waiting.clear()
                if error.errno != errno.EPIPE:
                    self.problem = error.strerror or str(error)
                self._changed.notify_all()
            return
        with self._changed:
            self._size = max(0, self._size - len(text))
            self._progress += 1
            self._changed.notify_all()


def wants_json(args: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, and not for help; it cannot be parsed if it is what is wrong."""
    options = [*args[: args.index("--")]] if "--" in args else [*args]
    if not {"-h", "--help"}.isdisjoint(options):
        return False
    joined = " ".join(options).replace("--output-format ", "--output-format=").split()
    return not {"--json", *(f"--output-format={name}" for name in JSON_FORMATS)}.isdisjoint(joined)


def is_at_terminal() -> bool:
    """Whether a person can be asked and shown something: standard input, output and error are terminals."""
    return can_ask() and sys.stdout is not None and sys.stdout.isatty()


def can_ask() -> bool:
    """Whether a person can be asked on standard error: it and standard input are terminals."""
    # A closed stream is None.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
