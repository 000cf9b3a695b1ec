"""One call of Claude Code, from a task to its result."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

import attrs

from gsd_core import AgentHost, AgentResult, AgentTask, Permanent, Place, Transient, settings_of

from .cli import (
    INSTALL_HINT,
    MCP_SERVER,
    ClaudeSettings,
    allowed_variables,
    command_line,
    find_cli,
    pipe_variable,
    program_places,
    proxy_variables,
    split_credentials,
    unattended_variables,
    without_cloud_secrets,
)
from .config_folder import config_folder
from .failures import WrongStart, process_error
from .login import login_access
from .messages import MessageReader
from .permissions import ToolCallbacks
from .process import CliProcess
from .proxy import proxy_to

CONTINUE = (
    "Continue this conversation. "
    "If the work was interrupted, resume it where it stopped, and do not repeat finished work."
)


TOKEN = f"gsd-{secrets.token_hex(32)}"
"""What agents of this process send instead of credentials. It is of use only while a proxy serves a call."""


async def run_claude(
    task: AgentTask,
    host: AgentHost,
    *,
    env: Mapping[str, str] | None = None,
    settings: ClaudeSettings | None = None,
) -> AgentResult:
    """Run *task* with Claude Code; *env* is added to the variables that its process gets.

    A task that resumes its conversation sends :data:`CONTINUE` before its prompt, because the same
    prompt may have been sent already (before a crash) or may be new (after complaints). If the
    conversation to resume does not exist, it is started; if the one to start exists, it is resumed.

    Raises ``Credentials``, ``Exhausted`` or ``Permanent`` for failures that a retry cannot fix, else
    ``Transient``. An exception raised by the host ends the call and is raised here. On cancellation
    the process is ended before this returns.
    """
    settings = settings or settings_of(ClaudeSettings)
    cli = find_cli(settings.cli_path, task.tree)
    exposed = settings.environment
    environment: Mapping[str, str] = {
        # A rehearsal chooses for itself which model it asks.
        **allowed_variables({**os.environ, **(env or {})}, exposed),
        **unattended_variables(settings.max_retries),
        **host.environment,
        **(env or {}),
    }
    split = split_credentials(environment, exposed)
    # Importing the SDK takes more than a second, too long for the event loop.
    await asyncio.to_thread(import_module, "claude_agent_sdk")
    # Without a handler, Python prints the SDK's errors on the terminal; they are raised anyway.
    log = logging.getLogger("claude_agent_sdk")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    given = "CLAUDE_CONFIG_DIR" in (env or {})
    async with AsyncExitStack() as stack:
        config = await stack.enter_async_context(config_folder(task, host, environment, given=given))
        access = split.access
        if access and split.is_login:
            # Without a sandbox, commands can read the user's own files anyway.
            access = (
                await asyncio.to_thread(login_access, cli, access, environment) if config.private else None
            )
        else:
            environment = split.environment
        in_file = config.write_login(TOKEN if split.is_login and access and not access.is_key else "")
        if access:
            url = await stack.enter_async_context(proxy_to(access, TOKEN))
            environment = {**split.environment, **proxy_variables(environment, url)}
        call = ClaudeCall(
            task=task,
            host=host,
            cli=cli,
            environment={**environment, **without_cloud_secrets(environment, exposed), **config.environment},
            secrets={pipe_variable(access): TOKEN} if access and not in_file else {},
            places=(*config.places, *program_places(cli)),
        )
        resume = task.conversation is not None and task.conversation.resume
        with suppress(WrongStart):
            return await call.run(resume=resume)
        try:
            return await call.run(resume=not resume)
        except WrongStart as error:
            raise Transient(f"the conversation can be neither started nor resumed: {error}") from error


@attrs.frozen(kw_only=True)
class ClaudeCall:
    """A task and everything needed to run the CLI for it."""

    task: AgentTask
    host: AgentHost
    cli: Path
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    places: Sequence[Place] = ()

    async def run(self, *, resume: bool) -> AgentResult:
        """Run the CLI once; raises :class:`WrongStart` if the conversation needs the other *resume*."""
        loop = asyncio.get_running_loop()
        host_error: asyncio.Future[NoReturn] = loop.create_future()
        reader = MessageReader(host=self.host, tree=self.task.tree, resumed=resume, time=loop.time)
        callbacks = ToolCallbacks(self.task, self.host, host_error)
        process = CliProcess(
            command=command_line(self.cli, self.task, resume=resume),
            cwd=self.task.tree,
            environment=self.environment,
            secrets=self.secrets,
            places=self.places,
            host=self.host,
        )
        try:
            work = self._exchange_messages(process, callbacks, reader, resume=resume)
            await _run_until_error(work, host_error)
        finally:
            # The SDK's disconnect may have been cancelled halfway; the process must not survive it.
            process.kill()
        if reader.result is None:
            raise Transient("the agent's process ended without a result")
        return reader.result

    async def _exchange_messages(
        self, process: CliProcess, callbacks: ToolCallbacks, reader: MessageReader, *, resume: bool
    ) -> None:
        import claude_agent_sdk as sdk

        prompt = f"{CONTINUE}\n\n{self.task.prompt}" if resume else self.task.prompt
        # Those that are not on the command line: the callbacks.
        options = sdk.ClaudeAgentOptions(
            can_use_tool=callbacks.can_use_tool,
            # Without on_failure="block", a hook that raises lets the tool run.
            hooks={"PreToolUse": [sdk.HookMatcher(hooks=[callbacks.before_tool], on_failure="block")]},
            mcp_servers={MCP_SERVER: callbacks.mcp_server()} if self.task.functions else {},
            # Our prompts quote files and answers: an @path or /command in them must stay text.
            verbatim_prompts=not self.task.user_settings,
        )
        # The SDK accepts any object with a transport's methods; deriving from its class would import it.
        client = sdk.ClaudeSDKClient(options, transport=cast("sdk.Transport", process))
        try:
            await client.connect(_prompt_stream(prompt))
            async for message in client.receive_messages():
                await reader.read(message)
                if reader.failed:
                    break
        except OSError as error:
            what = f"cannot start {str(self.cli)!r} in {str(self.task.tree)!r}: {error}"
            raise Permanent(what, hint=INSTALL_HINT) from error
        except sdk.ClaudeSDKError as error:
            wrong_start = "No conversation found" if resume else "is already in use"
            if not reader.started and wrong_start in str(error):
                raise WrongStart(str(error)) from error
            raise process_error(error, started=reader.started) from error
        finally:
            await client.disconnect()


async def _prompt_stream(prompt: str) -> AsyncIterator[dict[str, Any]]:
    # The can_use_tool callback needs a stream; with a plain string the SDK does not call it.
    message = {"role": "user", "content": prompt}
    yield {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}


async def _run_until_error(work: Coroutine[Any, Any, None], error: asyncio.Future[NoReturn]) -> None:
    """Run *work*; cancel it and raise the exception of *error* as soon as that is set."""
    task = asyncio.create_task(work)
    futures: set[asyncio.Future[Any]] = {task, error}
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        if error.done():
            error.result()
        await task
    finally:
        if not error.cancel():
            # Retrieve the exception, or asyncio logs that it never was.
            error.exception()
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
