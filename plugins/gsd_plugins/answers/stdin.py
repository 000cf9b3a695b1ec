"""Answers that arrive on standard input, a JSON object on each line."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from attrs import define, field

from gsd_core import Answer, Inquiry

from .entries import Entry, answer_of, fits, read_line

CHUNK = 65_536


@define(eq=False)
class StandardInput:
    """Reads lines as they are needed; keeps those that no question has used yet."""

    descriptor: int = 0
    _unused: list[Entry] = field(factory=list[Entry], init=False)
    _rest: bytes = field(default=b"", init=False)
    _lines: int = field(default=0, init=False)
    _ended: bool = field(default=False, init=False)
    _reading: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def answers(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Wait for a line that answers one of the questions; decline when the input ends."""
        while True:
            if found := self._take(inquiry):
                return found
            async with self._reading:
                if found := self._take(inquiry):
                    return found
                if self._ended:
                    return None
                self._split(await self._read())

    def _take(self, inquiry: Inquiry) -> list[Answer]:
        answers: list[Answer] = []
        for question in inquiry.questions:
            entry = next((entry for entry in self._unused if fits(entry, question)), None)
            if entry:
                self._unused.remove(entry)
                answers.append(answer_of(entry, question))
        return answers

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self.descriptor, ready.set)
        except (OSError, NotImplementedError):
            # A regular file or /dev/null: it cannot be waited for, and reading it does not wait.
            return os.read(self.descriptor, CHUNK)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self.descriptor)
        return os.read(self.descriptor, CHUNK)

    def _split(self, data: bytes) -> None:
        self._ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._ended and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        self._keep(lines)

    def _keep(self, lines: Sequence[bytes]) -> None:
        """Note every good line before the first bad one is told."""
        problems: list[Exception] = []
        for line in lines:
            self._lines += 1
            try:
                if line.strip():
                    text = line.decode("utf-8", "replace")
                    self._unused.append(read_line(text, f"stdin, line {self._lines}", "stdin"))
            except Exception as error:
                problems.append(error)
        if problems:
            raise problems[0]
