"""The CLI's process, as a transport for the SDK.

The SDK's own transport passes on the whole environment and does not report the process id. This one
passes exactly the given environment and ends the process in every case.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from gsd_core import AgentHost, Place

if TYPE_CHECKING:
    from claude_agent_sdk import ProcessError

MAX_MESSAGE_BYTES = 64 * 2**20

# How to end the process: the signal to send, and the seconds to wait for it to exit. The core allows
# five seconds for everything after a cancellation.
_EXIT_GRACE = 2.0
_SIGNALS = ((signal.SIGTERM, 1.5), (signal.SIGKILL, 1.0))


@attrs.define(kw_only=True, eq=False)
class CliProcess:
    """A ``claude_agent_sdk.Transport``: one process for one call.

    *host* confines it, and is told its process id. *secrets* maps names of file descriptor variables to
    the secrets that the process can read from them. *places* are what it has to see in a sandbox.
    """

    command: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    secrets: Mapping[str, str] = attrs.field(factory=dict[str, str])
    places: Sequence[Place] = ()
    host: AgentHost
    _process: asyncio.subprocess.Process | None = None
    _stderr_task: asyncio.Task[None] | None = None
    _stderr: deque[str] = attrs.field(factory=lambda: deque[str](maxlen=20))
    _has_result: bool = False

    async def connect(self) -> None:
        """Start the process."""
        pipes = {name: _pipe_containing(secret) for name, secret in self.secrets.items()}
        try:
            environment = {
                **self.environment,
                **{name: str(descriptor) for name, descriptor in pipes.items()},
                "PWD": str(self.cwd),
            }
            confined = await self.host.confine(
                self.command, environment, places=self.places, descriptors=tuple(pipes.values())
            )
            self._process = await asyncio.create_subprocess_exec(
                *confined.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.cwd,
                env=dict(confined.environment),
                pass_fds=tuple(pipes.values()),
                limit=MAX_MESSAGE_BYTES,
                # In a new session, the CLI cannot read from the terminal, and Ctrl-C reaches only us, so
                # that we can shut it down properly.
                start_new_session=True,
            )
        finally:
            for descriptor in pipes.values():
                os.close(descriptor)
        self._stderr_task = asyncio.create_task(self._read_stderr(self._process))
        self.host.started(self._process.pid)

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr
        async for line in process.stderr:
            self._stderr.append(line.decode(errors="replace").rstrip())

    def is_ready(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.returncode is None

    async def write(self, data: str) -> None:
        """Write to the process's standard input; raises ``ProcessError`` if it is closed."""
        process = self._process
        assert process
        assert process.stdin
        try:
            process.stdin.write(data.encode())
            await process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise await self._exit_error(process) from error

    async def end_input(self) -> None:
        """Close the process's standard input."""
        if self._process and self._process.stdin:
            self._process.stdin.close()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the process's messages; raises ``ProcessError`` if its exit code is not 0."""
        process = self._process
        assert process
        assert process.stdout
        async for line in process.stdout:
            # Skip lines that are not messages, and a last one that was cut off by the process's end.
            if line.startswith(b"{") and line.endswith(b"\n"):
                message = dict(json.loads(line))
                self._has_result = self._has_result or message.get("type") == "result"
                yield message
        if await process.wait():
            raise await self._exit_error(process)

    async def _exit_error(self, process: asyncio.subprocess.Process) -> ProcessError:
        """Return an error with the process's exit code and the end of its standard error."""
        from claude_agent_sdk import ProcessError

        await self._wait(1)
        if self._stderr_task:
            await asyncio.wait({self._stderr_task}, timeout=1)
        return ProcessError("the CLI exited", exit_code=process.returncode, stderr="\n".join(self._stderr))

    async def close(self) -> None:
        """End the process: let it exit if it has sent its result, else by SIGTERM, then SIGKILL."""
        try:
            await self.end_input()
            if self._has_result:
                # The CLI saves the conversation before it exits.
                await self._wait(_EXIT_GRACE)
            for number, seconds in _SIGNALS:
                if self.is_ready():
                    self._signal(number)
                    await self._wait(seconds)
            # asyncio closes the pipes only once they are read to their ends.
            if self._process and self._process.stdout and self._stderr_task:
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await self._process.stdout.read()
                        await self._stderr_task
        finally:
            self.kill()
            if self._stderr_task:
                self._stderr_task.cancel()

    async def _wait(self, seconds: float) -> None:
        if self._process:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._process.wait()

    def kill(self) -> None:
        """Send SIGKILL to the process and its group if the process is still running."""
        if self.is_ready():
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _pipe_containing(text: str) -> int:
    """Return the reading end of a pipe that contains *text* and is closed for writing."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(text)
    return reading
