"""A session's output: every byte has a cursor, and the oldest ones are dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_plugins.sessions.output import OutputWriter, end_of, read_output


def test_nothing_was_printed_yet(tmp_path: Path) -> None:
    chunk = read_output(tmp_path / "none", 0, 100)

    assert (chunk.data, chunk.start, chunk.end, chunk.dropped) == (b"", 0, 0, False)


@given(st.lists(st.binary(min_size=1, max_size=40)), st.integers(1, 50), st.integers(1, 30))
def test_every_byte_is_read_once_whatever_the_sizes(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], limit: int, segment: int
) -> None:
    folder = tmp_path_factory.mktemp("out")
    writer = OutputWriter(folder, keep_bytes=10_000, segment_bytes=segment)
    for piece in pieces:
        writer.append(piece)
    writer.close()

    read, cursor = b"", 0
    while chunk := read_output(folder, cursor, limit):
        if not chunk.data:
            break
        assert chunk.start == cursor
        read, cursor = read + chunk.data, chunk.end

    assert read == b"".join(pieces)


def test_old_output_is_dropped_and_cursors_stay_valid(tmp_path: Path) -> None:
    writer = OutputWriter(tmp_path, keep_bytes=20, segment_bytes=10)
    for number in range(10):
        writer.append(bytes([48 + number]) * 10)
    writer.close()

    chunk = read_output(tmp_path, 0, 1000)

    assert chunk.dropped
    assert chunk.start == 70
    assert chunk.data == b"7" * 10 + b"8" * 10 + b"9" * 10
    assert read_output(tmp_path, 95, 1000).data == b"9" * 5
    assert not read_output(tmp_path, 95, 1000).dropped


def test_a_negative_cursor_counts_from_the_end(tmp_path: Path) -> None:
    writer = OutputWriter(tmp_path, keep_bytes=100)
    writer.append(b"hello world")
    writer.close()

    assert read_output(tmp_path, -5, 100).data == b"world"
    assert read_output(tmp_path, -500, 100).data == b"hello world"


def test_another_writer_continues_where_the_last_one_ended(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        writer = OutputWriter(tmp_path, keep_bytes=100)
        writer.append(text)
        writer.close()

    assert read_output(tmp_path, 0, 100).data == b"onetwo"
    assert end_of(tmp_path) == 6
