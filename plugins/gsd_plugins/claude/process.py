"""The CLI's process, as the transport that the SDK talks through.

The SDK's own transport hands the whole environment on and does not tell the process id; this one
gives exactly the environment it is given, and ends the process whatever happens.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from claude_agent_sdk import ProcessError

LONGEST_MESSAGE = 64 * 2**20
_STEPS: tuple[tuple[signal.Signals | None, float], ...] = (
    (None, 2.0),
    (signal.SIGTERM, 1.5),
    (signal.SIGKILL, 1.0),
)


@define(kw_only=True, eq=False)
class CliProcess:
    """A ``claude_agent_sdk.Transport``: one process for one call, in a session of its own.

    *started* is told the process id. *secrets* are handed over by pipes, whose numbers stand in the
    variables that name them. With a session of its own the process has no terminal to
    read from, and a Ctrl-C reaches only us, who end it in order.
    """

    command: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    secrets: Mapping[str, str] = field(factory=dict[str, str])
    started: Callable[[int], None]
    _process: asyncio.subprocess.Process | None = None
    _reader: asyncio.Task[None] | None = None
    _errors: deque[str] = field(factory=lambda: deque[str](maxlen=20))
    _answered: bool = False

    async def connect(self) -> None:
        """Start the process."""
        pipes = {name: _pipe_with(secret) for name, secret in self.secrets.items()}
        try:
            self._process = process = await self._spawn(pipes)
        finally:
            for pipe in pipes.values():
                os.close(pipe)
        self._reader = asyncio.create_task(self._read_errors(process))
        self.started(process.pid)

    async def _spawn(self, pipes: Mapping[str, int]) -> asyncio.subprocess.Process:
        named = {name: str(pipe) for name, pipe in pipes.items()}
        return await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.cwd,
            env={**self.environment, **named, "PWD": str(self.cwd)},
            pass_fds=tuple(pipes.values()),
            limit=LONGEST_MESSAGE,
            start_new_session=True,
        )

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        async for line in process.stderr:
            self._errors.append(line.decode(errors="replace").rstrip())

    def is_ready(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.returncode is None

    async def write(self, data: str) -> None:
        """Write to the process's standard input; raise ``ProcessError`` if it takes no more."""
        process = self._process
        assert process
        assert process.stdin
        try:
            process.stdin.write(data.encode())
            await process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise await self._error(process) from error

    async def end_input(self) -> None:
        """Close the process's standard input."""
        if self._process and self._process.stdin:
            self._process.stdin.close()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the process's messages; raise ``ProcessError`` if it ended badly."""
        process = self._process
        assert process
        assert process.stdout
        async for line in process.stdout:
            if message := _message(line):
                self._answered = self._answered or message.get("type") == "result"
                yield message
        if await process.wait():
            raise await self._error(process)

    async def _error(self, process: asyncio.subprocess.Process) -> ProcessError:
        """Return how the process ended, with its last words."""
        from claude_agent_sdk import ProcessError

        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await process.wait()
        if self._reader:
            await asyncio.wait({self._reader}, timeout=1)
        return ProcessError("the CLI ended", exit_code=process.returncode, stderr="\n".join(self._errors))

    async def close(self) -> None:
        """End the process: by itself if it has answered (it saves the conversation), else by signals."""
        try:
            await self._end()
            await self._hang_up()
        finally:
            self.kill()
            if self._reader:
                self._reader.cancel()

    async def _end(self) -> None:
        await self.end_input()
        for name, seconds in _STEPS if self._answered else _STEPS[1:]:
            if self._process is None or self._process.returncode is not None:
                return
            if name:
                self._signal(name)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._process.wait()

    async def _hang_up(self) -> None:
        """Read the pipes to their ends, which closes them."""
        if self._process and self._process.stdout and self._reader:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._process.stdout.read()
                    await self._reader

    def kill(self) -> None:
        """End the process at once, if it is still there, with all in its group."""
        if self.is_ready():
            self._signal(signal.SIGKILL)

    def _signal(self, name: signal.Signals) -> None:
        assert self._process
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, name)


def _pipe_with(text: str) -> int:
    """Return the end to read of a pipe that holds *text* and no more."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(text)
    return reading


def _message(line: bytes) -> dict[str, Any] | None:
    """Read one line; what is no message, or was cut off by the end of the process, is none."""
    if not line.startswith(b"{") or not line.endswith(b"\n"):
        return None
    return dict(json.loads(line))
