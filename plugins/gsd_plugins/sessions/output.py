"""What a session printed, byte for byte, in files of a bounded size.

A *cursor* is the number of bytes that the session had printed before it, from its start. It stays valid when
old output is dropped: a reader whose cursor is too old gets the oldest bytes that are kept, and is told so.

Each file is named by the cursor of its first byte. One process writes, any number read, none of them locks.
"""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import attrs

SEGMENT_BYTES = 1 << 20
"""The size of one file, in bytes; output is dropped file by file."""
SUFFIX = ".out"
TIMES = "times"
"""Lines with a time and the cursor then: seconds since 1970, and bytes."""
STAMP_SECONDS = 5.0
"""How exact these times are."""
_INCOMPLETE = re.compile(rb"\x1b(?:\[[0-?]{0,40}[ -/]{0,10}|[\]PX^_][^\x07\x1b]{0,4000}\x1b?|[ -/]{0,10})?\Z")
"""An escape sequence at the end of some output that may continue in the next piece."""


@attrs.frozen(kw_only=True)
class Chunk:
    """A piece of output: its bytes, the cursors of its start and end, and whether older bytes were dropped.

    *dropped* is true if the reader asked for bytes that are not kept any more; then *start* is later than
    the cursor that was asked for.
    """

    data: bytes
    start: int
    end: int
    dropped: bool = False


@attrs.define
class OutputWriter:
    """Appends output to the files in *folder* and removes the oldest above *keep_bytes* in all."""

    folder: Path
    keep_bytes: int
    segment_bytes: int = SEGMENT_BYTES
    _file: int = attrs.field(default=-1, init=False)
    _start: int = attrs.field(default=0, init=False)
    _end: int = attrs.field(default=0, init=False)
    _stamped: float = attrs.field(default=float("-inf"), init=False)

    def append(self, data: bytes) -> None:
        """Write *data* at once; raise ``OSError`` if the disk is full."""
        while data:
            if self._file < 0 or self._end - self._start >= self.segment_bytes:
                self._next_file()
            if time.monotonic() - self._stamped > STAMP_SECONDS:
                self._stamped = time.monotonic()
                with suppress(OSError), (self.folder / TIMES).open("ab") as file:
                    file.write(b"%d %d\n" % (time.time(), self._end))
            room = self.segment_bytes - (self._end - self._start)
            written = os.write(self._file, data[:room])
            self._end += written
            data = data[written:]

    def close(self) -> None:
        """Close the current file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _next_file(self) -> None:
        self.close()
        known = _segments(self.folder)
        self._start = self._end = known[-1][0] + known[-1][1] if known else 0
        path = self.folder / f"{self._start:020d}{SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        kept = sum(size for _, size in known)
        for start, size in known:
            if kept <= self.keep_bytes:
                break
            (self.folder / f"{start:020d}{SUFFIX}").unlink(missing_ok=True)
            kept -= size


def read_output(folder: Path, cursor: int, limit: int) -> Chunk:
    """Return at most *limit* bytes from *cursor* on; none if there is nothing after it yet.

    A negative cursor counts from the end.
    """
    segments = _segments(folder)
    if not segments:
        return Chunk(data=b"", start=0, end=0)
    first, end = segments[0][0], segments[-1][0] + segments[-1][1]
    wanted = max(0, end + cursor) if cursor < 0 else cursor
    begin = min(max(wanted, first), end)
    data = b"".join(_read(folder, segments, begin, limit))
    return Chunk(data=data, start=begin, end=begin + len(data), dropped=wanted < first)


def whole(data: bytes) -> bytes:
    """Return *data* without an incomplete character or escape sequence at its end: its rest would be text."""
    found = _INCOMPLETE.search(data)
    end = found.start() if found else len(data)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[:end])
    return data[: end - len(decoder.getstate()[0])]


def end_of(folder: Path) -> int:
    """Return the cursor after the last byte."""
    segments = _segments(folder)
    return segments[-1][0] + segments[-1][1] if segments else 0


def cursor_at(folder: Path, moment: datetime) -> int:
    """Return the cursor of what was printed at *moment*, or up to some seconds before it.

    What was printed before and after a clock was set back counts as printed at both times.
    """
    found = 0
    try:
        lines = (folder / TIMES).read_bytes().splitlines()
    except OSError:
        return 0
    for line in lines:
        # The last line may be written at this moment.
        with suppress(ValueError):
            at, cursor = line.split()
            if int(at) > moment.timestamp():
                return found
            found = int(cursor)
    # The last piece of output may have been printed since its time was noted.
    return found


def _read(folder: Path, segments: list[tuple[int, int]], begin: int, limit: int) -> Iterator[bytes]:
    for start, size in segments:
        if start + size <= begin or limit <= 0:
            continue
        try:
            with (folder / f"{start:020d}{SUFFIX}").open("rb") as file:
                file.seek(begin - start)
                data = file.read(min(limit, start + size - begin))
        except FileNotFoundError:
            return  # dropped meanwhile; the reader comes back with the same cursor and is told
        yield data
        begin, limit = begin + len(data), limit - len(data)


def _segments(folder: Path) -> list[tuple[int, int]]:
    """Return the start and the size of each file, oldest first."""
    found: list[tuple[int, int]] = []
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return []
    for entry in entries:
        stem = entry.name.removesuffix(SUFFIX)
        if stem != entry.name and stem.isdigit():
            with suppress(FileNotFoundError):
                found.append((int(stem), entry.stat().st_size))
    return sorted(found)
