"""One run of the command: its settings, arguments, environment and process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core import Activity, AgentHost, AgentTask, Permanent, Place, Transient, Unit, Usage, setting

from .protocol import extract_message

MAX_OUTPUT_BYTES = 16 * 2**20
MAX_ACTIVITY = 400  # characters
STDERR_LINES = 20  # lines of standard error that an error quotes

# What a program needs in order to run; everything else is withheld unless the settings name it.
SYSTEM_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_*", "XDG_*"),
    *("VIRTUAL_ENV", "SSL_CERT_*", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)

# How to end the process: the signal to send, and the seconds to wait for it to exit.
_SIGNALS = ((signal.SIGTERM, 1.5), (signal.SIGKILL, 1.0))

OnLine: TypeAlias = Callable[[str], Awaitable[None]]


@attrs.frozen(kw_only=True)
class CommandAgentSettings:
    """Settings of the agent: the section ``command_agent`` of ``gsd.toml``.

    *command*: program and arguments. The placeholders ``{model}``, ``{tree}``, ``{schema}`` (a file
    with the JSON schema) and ``{answer}`` (a file for the last message) are replaced; an argument
    whose placeholder has no value is left out. *read_only*: the command for tasks that may not change
    files; without it, *command* is used. *output*: ``json`` if standard output is one JSON document,
    whose field *answer_key* (dotted) is the message, and whose fields *input_tokens_key*,
    *output_tokens_key* and *dollars_key* say what the run used. *environment*: names or patterns of
    additional variables that the command gets. *folders*: what it may also read and write in a sandbox, such
    as the folder with its login. *turns*: how often it is run for one task. *patience*: the time
    limit of one run; 0 leaves that to the core's limits. *transient_exits* and *transient_words*: exit
    codes, and words in its last lines, that make a failure transient.
    """

    command: tuple[str, ...] = setting(())
    read_only: tuple[str, ...] = setting(())
    output: Literal["text", "json"] = setting("text")
    answer_key: str = setting("")
    input_tokens_key: str = setting("")
    output_tokens_key: str = setting("")
    dollars_key: str = setting("")
    environment: tuple[str, ...] = setting(())
    folders: tuple[Path, ...] = setting(())
    turns: int = setting(50)
    patience: timedelta = setting(timedelta(0))
    transient_exits: tuple[int, ...] = setting((75,))
    transient_words: tuple[str, ...] = setting(
        (
            "rate limit",
            "rate_limit",
            "overloaded",
            "429",
            "502",
            "503",
            "529",
            "timed out",
            "connection reset",
        )
    )
    _transcripts: dict[str, list[str]] = attrs.field(
        factory=dict[str, list[str]], init=False, eq=False, repr=False
    )

    @property
    def reports(self) -> tuple[Unit, ...]:
        """In what the agent reports its usage."""
        tokens = self.input_tokens_key and self.output_tokens_key
        named = {"dollars": self.dollars_key, "tokens": tokens, "turns": "always"}
        units: tuple[Unit, ...] = ("dollars", "tokens", "turns")
        return tuple(unit for unit in units if named[unit] and (self.output == "json" or unit == "turns"))

    @property
    def transcripts(self) -> dict[str, list[str]]:
        """The run's conversations by id, because the command itself remembers nothing.

        Settings exist once per run. A module-level dictionary would be shared by all runs of a process.
        """
        return self._transcripts


async def ask_command(
    prompt: str, task: AgentTask, host: AgentHost, settings: CommandAgentSettings
) -> tuple[str, Usage]:
    """Run the command once with *prompt*; return its message, and what the turn used as far as it says so.

    Raises ``Transient`` if another attempt may help, else ``Permanent``.
    """

    async def report_line(line: str) -> None:
        await host.progress(Activity(kind="text", text=line[:MAX_ACTIVITY]))

    with tempfile.TemporaryDirectory(prefix="gsd-command-agent-") as folder:
        answer_file = Path(folder, "answer.txt")
        command = _arguments(task, settings, Path(folder, "schema.json"), answer_file)
        await host.progress(Activity(kind="start", text=Path(command[0]).name))
        try:
            async with asyncio.timeout(settings.patience.total_seconds() or None):
                variables = {**_allowed_variables(settings.environment), **host.environment}
                confined = await host.confine(
                    command,
                    {**variables, "PWD": str(task.tree)},
                    places=[
                        Place(path=path, source=path, writable=True)
                        for each in (Path(folder), *settings.folders)
                        if (path := each.expanduser().resolve()).exists()
                    ],
                )
                result = await run_process(
                    confined.command,
                    prompt,
                    cwd=task.tree,
                    environment=confined.environment,
                    started=host.started,
                    on_line=report_line,
                )
        except TimeoutError as error:
            raise Transient(f"{command[0]!r} took longer than {settings.patience}") from error
        if result.exit_code:
            raise _exit_error(command[0], result, settings)
        return _message(result, answer_file, settings), _usage(result, settings)


def _arguments(
    task: AgentTask, settings: CommandAgentSettings, schema_file: Path, answer_file: Path
) -> list[str]:
    """Return the command with its placeholders replaced; write the task's schema, if any."""
    if task.schema is not None:
        schema_file.write_text(json.dumps(dict(task.schema)), encoding="utf-8")
    placeholders = {
        "{model}": task.model,
        "{tree}": str(task.tree),
        "{schema}": "" if task.schema is None else str(schema_file),
        "{answer}": str(answer_file),
    }
    command = settings.command if task.writable else settings.read_only or settings.command
    return [
        _replace(argument, placeholders)
        for argument in command
        if all(value or name not in argument for name, value in placeholders.items())
    ]


def _replace(argument: str, placeholders: Mapping[str, str]) -> str:
    for name, value in placeholders.items():
        argument = argument.replace(name, value)
    return argument


def _allowed_variables(additional: Sequence[str]) -> dict[str, str]:
    patterns = (*SYSTEM_VARIABLES, *additional)
    return {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def _exit_error(program: str, result: ProcessResult, settings: CommandAgentSettings) -> Permanent | Transient:
    code = result.exit_code
    output = result.stderr or result.stdout[-MAX_ACTIVITY:]
    message = f"{program!r} was ended by signal {-code}" if code < 0 else f"{program!r} exited with {code}"
    if output:
        message += f": {output}"
    words = any(word.lower() in output.lower() for word in settings.transient_words)
    if code < 0 or code in settings.transient_exits or words:
        return Transient(message)
    return Permanent(message, hint="run the command by hand; check the section command_agent")


def _message(result: ProcessResult, answer_file: Path, settings: CommandAgentSettings) -> str:
    if answer_file.is_file():
        return answer_file.read_text(encoding="utf-8", errors="replace").strip()
    if settings.output == "json":
        return extract_message(result.stdout, settings.answer_key)
    return result.stdout.strip()


def _usage(result: ProcessResult, settings: CommandAgentSettings) -> Usage:
    """Return what a turn used; an amount that the command does not give is unknown."""

    def number(key: str) -> Decimal:
        try:
            if (found := Decimal(extract_message(result.stdout, key))).is_finite() and found >= 0:
                return found
        except InvalidOperation:
            pass
        raise Permanent(f"the field {key!r} of standard output is not a number of at least 0")

    if settings.output != "json":
        return Usage(turns=1)
    used = Usage(
        turns=1,
        input_tokens=int(number(key)) if (key := settings.input_tokens_key) else 0,
        output_tokens=int(number(key)) if (key := settings.output_tokens_key) else 0,
    )
    if not settings.dollars_key:
        return used
    return attrs.evolve(used, dollars=number(settings.dollars_key), basis="reported")


@attrs.frozen(kw_only=True)
class ProcessResult:
    """A finished process: its exit code (negative for a signal), its output, its last errors."""

    exit_code: int
    stdout: str
    stderr: str


async def run_process(
    command: Sequence[str],
    prompt: str,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    started: Callable[[int], None],
    on_line: OnLine,
) -> ProcessResult:
    """Run *command* with *prompt* on standard input; *on_line* gets every line that it writes.

    However this ends, including cancellation, every process of the command's group is ended before
    it returns or raises.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=dict(environment),
            # In a new session, the command cannot read from the terminal, and Ctrl-C reaches only GSD,
            # which then shuts it down properly.
            start_new_session=True,
        )
    except OSError as error:
        hint = "install it, or correct command_agent.command"
        raise Permanent(f"cannot start {command[0]!r}: {error}", hint=hint) from error
    try:
        started(process.pid)
        async with asyncio.TaskGroup() as group:
            group.create_task(_write(process, prompt))
            stdout = group.create_task(_read(process.stdout, on_line))
            stderr = group.create_task(_read(process.stderr, on_line))
            group.create_task(_end_readers(process, {stdout, stderr}))
        code = await _exit_code(process)
    except BaseExceptionGroup as errors:
        # on_line calls the host, and the core expects the host's exceptions as they were raised.
        raise errors.exceptions[0] from None
    finally:
        await _end(process)
    errors_end = "\n".join(stderr.result().splitlines()[-STDERR_LINES:])
    return ProcessResult(exit_code=code, stdout=stdout.result(), stderr=errors_end)


async def _write(process: asyncio.subprocess.Process, prompt: str) -> None:
    """Write the prompt; the command does not have to read all of it."""
    assert process.stdin
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(prompt.encode("utf-8", "replace"))
        await process.stdin.drain()
    process.stdin.close()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


async def _read(stream: asyncio.StreamReader | None, on_line: OnLine) -> str:
    # Not "async for line": a line may be longer than the stream's limit.
    assert stream
    output, line = bytearray(), bytearray()
    while chunk := await stream.read(65536):
        output += chunk
        if len(output) > MAX_OUTPUT_BYTES:
            limit = f"{MAX_OUTPUT_BYTES // 2**20} MB"
            raise Permanent(f"the command wrote more than {limit}", hint="make it print less")
        *lines, line = (line + chunk).split(b"\n")
        for each in lines:
            await _report(each, on_line)
    await _report(line, on_line)
    return output.decode(errors="replace")


async def _report(line: bytearray, on_line: OnLine) -> None:
    if text := line.decode(errors="replace").strip():
        await on_line(text)


async def _end_readers(process: asyncio.subprocess.Process, readers: set[asyncio.Task[str]]) -> None:
    """Stop reading once the command has exited.

    Processes that it left in the background would keep its pipes open, so they are killed first.
    """
    await _exit_code(process)
    _signal(process.pid, signal.SIGKILL)
    await asyncio.wait(readers, timeout=1)
    for stream in (process.stdout, process.stderr):
        if stream and not stream.at_eof() and any(not reader.done() for reader in readers):
            stream.feed_eof()


async def _exit_code(process: asyncio.subprocess.Process) -> int:
    """Wait for the process; ``process.wait()`` also waits for every process that holds its pipes."""
    while (code := process.returncode) is None:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.02)
    return code


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process, by SIGTERM first, and then everything else in its group."""
    try:
        for number, seconds in _SIGNALS:
            if process.returncode is None:
                _signal(process.pid, number)
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await _exit_code(process)
    finally:
        _signal(process.pid, signal.SIGKILL)
        # asyncio closes the transport only once all pipes have ended, but a background process outside
        # the group may still hold one.
        transport: Any = getattr(process, "_transport", None)
        if transport:
            transport.close()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
