"""A text as lines that can be changed one by one, each with the line end it had."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import define

_PIPE = re.compile(r"(?<!\\)\|")


@define
class Lines:
    """The lines of a text; a carriage return belongs to its line and is kept."""

    lines: list[str]

    @classmethod
    def of(cls, text: str) -> Lines:
        """Take a text apart."""
        return cls(text.split("\n"))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, at: int) -> str:
        """Return a line without its end."""
        return self.lines[at].removesuffix("\r")

    def __setitem__(self, at: int, line: str) -> None:
        end = "\r" if self.lines[at].endswith("\r") else ""
        self.lines[at] = line + end

    def insert(self, at: int, new: Sequence[str]) -> None:
        """Put new lines before line *at*, with the file's own line end."""
        end = "\r" if self.lines[0].endswith("\r") else ""
        if at >= len(self.lines):
            self.lines.append("")
            at = len(self.lines) - 1
        self.lines[at:at] = [line + end for line in new]

    def before_blank(self, start: int, end: int) -> int:
        """Return the place after the last line with text between *start* and *end*."""
        while end > start and not self[end - 1].strip():
            end -= 1
        return end


def set_cell(line: str, index: int, value: str) -> str:
    """Return a table's row with another text in a cell, as wide as before if it fits."""
    pipes = [match.start() for match in _PIPE.finditer(line)]
    if index + 1 >= len(pipes):
        return line
    start, end = pipes[index] + 1, pipes[index + 1]
    if line[start:end].strip() == value:
        return line
    return line[:start] + f" {value} ".ljust(end - start) + line[end:]
