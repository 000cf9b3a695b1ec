"""One run of the command: prompt in, words out; its whole process group ends with it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from gsd_core import Permanent

LONGEST = 16 * 2**20  # bytes of output; an answer is far shorter
LAST_WORDS = 20  # lines
_STEPS = ((signal.SIGTERM, 1.5), (signal.SIGKILL, 1.0))

Heard: TypeAlias = Callable[[str], Awaitable[None]]


@frozen(kw_only=True)
class Ran:
    """How a run ended: its exit code (negative: the signal), its output, and its last words on stderr."""

    exit: int
    output: str
    last_words: str


async def run(
    command: Sequence[str],
    prompt: str,
    *,
    tree: Path,
    environment: Mapping[str, str],
    started: Callable[[int], None],
    heard: Heard,
) -> Ran:
    """Run *command* in *tree* with *prompt* on its standard input; *heard* is told each line.

    The command has a session of its own, without a terminal. However this ends, cancellation
    included, every process of its group is ended before it returns.
    """
    process = await _spawn(command, tree, environment)
    try:
        started(process.pid)
        async with asyncio.TaskGroup() as group:
            group.create_task(_tell(process, prompt))
            out = group.create_task(_read(process.stdout, heard))
            err = group.create_task(_read(process.stderr, heard))
            group.create_task(_hang_up(process, {out, err}))
        code = await _exited(process)
    except* Permanent as errors:
        raise errors.exceptions[0] from None
    finally:
        await _end(process)
    last_words = "\n".join(err.result().splitlines()[-LAST_WORDS:])
    return Ran(exit=code, output=out.result(), last_words=last_words)


async def _spawn(
    command: Sequence[str], tree: Path, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tree,
            env={**environment, "PWD": str(tree)}, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        hint = "install it, or correct command_agent.command"
        raise Permanent(f"cannot start {command[0]!r}: {error}", hint=hint) from error


async def _tell(process: asyncio.subprocess.Process, prompt: str) -> None:
    """Write the prompt; a command that reads no more of it knows enough."""
    assert process.stdin
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(prompt.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _read(stream: asyncio.StreamReader | None, heard: Heard) -> str:
    assert stream
    whole, line = bytearray(), bytearray()
    while chunk := await stream.read(65536):
        whole += chunk
        line += chunk
        if len(whole) > LONGEST:
            raise Permanent(f"the command wrote more than {LONGEST // 2**20} MB", hint="make it say less")
        *lines, rest = line.split(b"\n")
        line = bytearray(rest)
        for said in lines:
            await _told(heard, said)
    await _told(heard, line)
    return whole.decode(errors="replace")


async def _hang_up(process: asyncio.subprocess.Process, reading: set[asyncio.Task[str]]) -> None:
    """End what the command left running, which would keep its pipes open; stop reading then."""
    await _exited(process)
    _signal(process.pid, signal.SIGKILL)
    await asyncio.wait(reading, timeout=1)
    for stream in (process.stdout, process.stderr):
        if stream and not stream.at_eof() and any(not task.done() for task in reading):
            stream.feed_eof()


async def _exited(process: asyncio.subprocess.Process) -> int:
    """Wait for the process alone: its own ``wait`` waits for whoever holds its pipes as well."""
    while (code := process.returncode) is None:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.02)
    return code


async def _told(heard: Heard, line: bytes | bytearray) -> None:
    if text := line.decode(errors="replace").strip():
        await heard(text)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and all in its group: what it left running works for nobody."""
    try:
        for number, seconds in _STEPS:
            if process.returncode is None:
                _signal(process.pid, number)
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await _exited(process)
    finally:
        _signal(process.pid, signal.SIGKILL)
        if transport := getattr(process, "_transport", None):
            transport.close()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
