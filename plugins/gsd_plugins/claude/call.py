"""One call of the agent: from a task to its result."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from attrs import frozen

from gsd_core import AgentHost, AgentResult, AgentTask, Permanent, Transient, settings_of

from .cli import HINT, SERVER, command_line, find_cli
from .environment import allowed, apart, unattended
from .failures import WrongStart, of_process, wrong_start
from .gate import Gate
from .process import CliProcess
from .reading import Reading
from .settings import ClaudeSettings

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

T = TypeVar("T")

GO_ON = (
    "Go on in this conversation. "
    "If the work was interrupted, take it up where it stopped, and repeat nothing that is done."
)


async def run_claude(
    task: AgentTask,
    host: AgentHost,
    *,
    env: Mapping[str, str] | None = None,
    settings: ClaudeSettings | None = None,
) -> AgentResult:
    """Have Claude Code do *task*; *env* is added to what of our environment its process may see.

    A task that resumes its conversation sends :data:`GO_ON` and its prompt: the agent need not
    know whether the prompt is new (complaints) or was given before (after a crash). If there is
    no such conversation, the prompt begins it; if one that is to begin exists, it is resumed.

    Raises ``Credentials``, ``Exhausted`` or ``Permanent`` for what trying again cannot mend, else
    ``Transient``. Whatever the host raises ends the call and is raised here. When cancelled, the
    process is ended before this returns.
    """
    chosen = settings or settings_of(ClaudeSettings)
    cli = find_cli(chosen.cli_path)
    seen = allowed(os.environ, chosen.environment)
    environment = {**seen, **unattended(chosen.max_retries), **host.environment, **(env or {})}
    await asyncio.to_thread(import_module, "claude_agent_sdk")
    _keep_the_terminal()
    plain, secrets = apart(environment, chosen.environment)
    call = Call(task=task, host=host, cli=cli, environment=plain, secrets=secrets)
    resume = task.conversation is not None and task.conversation.resume
    try:
        return await call.converse(resume=resume)
    except WrongStart:
        return await call.other_way(resume=not resume)


def _keep_the_terminal() -> None:
    """Keep the SDK's log from being printed where nobody has set up logging: its errors are raised anyway."""
    log = logging.getLogger("claude_agent_sdk")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


@frozen(kw_only=True)
class Call:
    """A task with all that it takes to have it done."""

    task: AgentTask
    host: AgentHost
    cli: Path
    environment: Mapping[str, str]
    secrets: Mapping[str, str]

    async def other_way(self, *, resume: bool) -> AgentResult:
        """Run the CLI once more, with the conversation opened the other way."""
        try:
            return await self.converse(resume=resume)
        except WrongStart as error:
            raise Transient(
                f"the conversation can be neither begun nor resumed: {error.__cause__}"
            ) from error

    async def converse(self, *, resume: bool) -> AgentResult:
        """Run the CLI once."""
        loop = asyncio.get_running_loop()
        broken: asyncio.Future[NoReturn] = loop.create_future()
        reading = Reading(host=self.host, resumed=resume, time=loop.time)
        process = CliProcess(
            command=command_line(self.cli, self.task, resume=resume),
            cwd=self.task.tree,
            environment=self.environment,
            secrets=self.secrets,
            started=self.host.started,
        )
        try:
            await _unless(
                broken, self._read(process, Gate(self.task, self.host, broken), reading, resume=resume)
            )
        finally:
            process.kill()
        if reading.result is None:
            raise Transient("the agent's process ended without a result")
        return reading.result

    async def _read(self, process: CliProcess, gate: Gate, reading: Reading, *, resume: bool) -> None:
        import claude_agent_sdk as sdk

        prompt = f"{GO_ON}\n\n{self.task.prompt}" if resume else self.task.prompt
        client = sdk.ClaudeSDKClient(self._options(gate), transport=cast("sdk.Transport", process))
        try:
            await client.connect(_streamed(prompt))
            async for message in client.receive_messages():
                await reading.take(message)
                if reading.stop:
                    break
        except OSError as error:
            raise Permanent(
                f"cannot start {str(self.cli)!r} in {str(self.task.tree)!r}: {error}", hint=HINT
            ) from error
        except sdk.ClaudeSDKError as error:
            if not reading.begun and wrong_start(str(error), resume=resume):
                raise WrongStart from error
            raise of_process(error, begun=reading.begun) from error
        finally:
            await client.disconnect()

    def _options(self, gate: Gate) -> ClaudeAgentOptions:
        """Return what the SDK needs besides the command line: the callbacks."""
        from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

        return ClaudeAgentOptions(
            can_use_tool=gate.may_use,
            hooks={"PreToolUse": [HookMatcher(hooks=[gate.before_tool], on_failure="block")]},
            mcp_servers={SERVER: gate.server()} if self.task.functions else {},
            verbatim_prompts=not self.task.user_settings,
        )


async def _streamed(prompt: str) -> AsyncIterator[dict[str, Any]]:
    message = {"role": "user", "content": prompt}
    yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}


async def _unless(broken: asyncio.Future[NoReturn], work: Coroutine[Any, Any, T]) -> T:
    """Return what *work* comes to, unless *broken* is set before; leaves no task behind."""
    task = asyncio.create_task(work)
    first: set[asyncio.Future[Any]] = {task, broken}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            broken.result()
        return await task
    finally:
        if not broken.cancel():
            broken.exception()
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
