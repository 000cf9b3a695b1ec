"""Terminal output as the text that a reader of the terminal would have seen in the end.

A live view redraws its lines several times a second. With its sequences only removed, each of its frames
would remain, and an agent that reads the output would pay for all of them.
"""

from __future__ import annotations

import re

from gsd_core import safe_text

MAX_COLUMN = 300
"""How far right a sequence moves: a few bytes could fill the memory with spaces."""
MAX_TEXT = 100_000

_PART = re.compile(
    r"""
    \x1b\[ (?P<arguments> [0-?]*) [ -/]* (?P<final> [@-~])
    | \x1b [\]PX^_] [^\x07\x1b]* (?:\x07|\x1b\\)?      # titles, links, the clipboard
    | \x1b [ -/]* [0-~]?
    | (?P<control> [\r\n\b])
    | (?P<text> [^\x1b\r\n\b]+)
    """,
    re.VERBOSE,
)


def shown(data: bytes) -> str:
    """Return the lines that *data* leaves on a terminal, without colors; sanitized and redacted."""
    lines: list[list[str]] = [[]]
    row = column = 0
    for part in _PART.finditer(data.decode("utf-8", "replace")):
        if (text := part["text"]) is not None:
            line = lines[row]
            line += " " * (column - len(line))
            line[column : column + len(text)] = text
            column += len(text)
        elif control := part["control"]:
            if control == "\n":
                row, column = row + 1, 0
                if row == len(lines):
                    lines.append([])
            else:
                column = 0 if control == "\r" else max(0, column - 1)
        elif final := part["final"]:
            row, column = _moved(lines, row, column, final, part["arguments"])
    return safe_text("\n".join("".join(line).rstrip() for line in lines)[-MAX_TEXT:])


def _moved(lines: list[list[str]], row: int, column: int, final: str, arguments: str) -> tuple[int, int]:
    """Obey a control sequence; return the new position."""
    first = arguments.split(";")[0]
    number = int(first) if first.isascii() and first.isdigit() and len(first) < 6 else 0
    match final:
        case "A" | "F":
            row = max(0, row - max(1, number))
        case "B" | "E":
            row = min(len(lines) - 1, row + max(1, number))
        case "C":
            column = min(MAX_COLUMN, column + max(1, number))
        case "D":
            column = max(0, column - max(1, number))
        case "G":
            column = min(MAX_COLUMN, max(1, number) - 1)
        case "K" if number == 0:
            del lines[row][column:]
        case "K":
            lines[row][:column] = " " * min(column, len(lines[row]))
            if number == 2:
                lines[row].clear()
        case "J" if number == 0:
            del lines[row][column:]
            del lines[row + 1 :]
        case _:
            pass  # colors, modes; and absolute positions, which mean nothing without the whole screen
    return row, 0 if final in "EF" else column
