"""Reads planning files: UTF-8, of a size that a planning file may have."""

from __future__ import annotations

from pathlib import Path

from gsd_core.errors import PlanningError

MAX_BYTES = 2_000_000
MAX_LINES = 50_000
MAX_LINE = 100_000


def read_text(root: Path, path: str) -> str:
    """Return a planning file's text; raise ``PlanningError`` if it is none, or huge."""
    data = _bytes(root / path, path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PlanningError("not UTF-8", path=path, line=line, hint="save it as UTF-8") from error
    _measure(text, path)
    return text


def _bytes(file: Path, path: str) -> bytes:
    try:
        if not file.is_file():
            raise PlanningError("is no file", path=path, line=1, hint="put the file back, or remove it")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "look at its permissions"
        raise PlanningError(f"cannot be read: {error.strerror}", path=path, line=1, hint=hint) from error
    if len(data) > MAX_BYTES:
        hint = "a planning file is read whole by every agent: divide it, or move what is old away"
        raise PlanningError("larger than 2 MB", path=path, line=data.count(b"\n") + 1, hint=hint)
    return data


def _measure(text: str, path: str) -> None:
    """Refuse what no planning file looks like, before patterns are matched against it."""
    lines = text.count("\n") + 1
    if lines > MAX_LINES:
        hint = "divide the file, or move what is old away"
        raise PlanningError(f"has more than {MAX_LINES} lines", path=path, line=MAX_LINES, hint=hint)
    if len(text) <= MAX_LINE:
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > MAX_LINE:
            hint = "break the line"
            raise PlanningError(
                f"has a line of more than {MAX_LINE} characters", path=path, line=number, hint=hint
            )
