"""What stands between the model and the world: permissions, questions, and functions of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

from attrs import frozen

from gsd_core import AgentFunction, AgentHost, AgentTask, Allow, Ask, Deny, Permission, ToolUse

from .cli import SERVER
from .questions import TOOL, answered, asked

if TYPE_CHECKING:
    from claude_agent_sdk import (
        HookContext,
        HookInput,
        HookJSONOutput,
        McpSdkServerConfig,
        PermissionResult,
        PreToolUseHookSpecificOutput,
        ToolPermissionContext,
    )

T = TypeVar("T")

_OURS = f"mcp__{SERVER}__"
_WORDS: Mapping[type[Permission], Literal["allow", "deny", "ask"]] = {
    Allow: "allow",
    Deny: "deny",
    Ask: "ask",
}


@frozen
class Gate:
    """The callbacks that the SDK calls for one task.

    An exception of the host is the core's affair and ends the call: it is put into *broken*, and
    the CLI gets no answer at all, since it would take an error for an answer.
    """

    task: AgentTask
    host: AgentHost
    broken: asyncio.Future[NoReturn]

    async def before_tool(
        self, data: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        """Ask the policies before a tool is used; answers at once, and leaves humans to :meth:`may_use`."""
        name, arguments = str(data.get("tool_name", "")), _arguments(data)
        if name == TOOL:
            return {}
        if name == "StructuredOutput" or name.startswith(_OURS):
            return _decision(Allow())
        return _decision(await self._safely(self.host.permit(self._use(name, arguments))))

    async def may_use(
        self, name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        """Answer the model's questions, and have a human decide what the policies leave open.

        Also called for what the CLI itself would ask about: then the policies' word counts.
        """
        from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

        if name == TOOL:
            return PermissionResultAllow(updated_input=await self._answers(arguments))
        match await self._decide(self._use(name, arguments)):
            case Allow():
                return PermissionResultAllow()
            case Deny(reason=reason) | Ask(reason=reason):
                return PermissionResultDeny(message=reason)

    async def _decide(self, use: ToolUse) -> Permission:
        permission = await self._safely(self.host.permit(use))
        if isinstance(permission, Ask):
            return await self._safely(self.host.confirm(use, permission.reason))
        return permission

    async def _answers(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        questions = asked(arguments)
        answers = await self._safely(self.host.ask(questions))
        return {**arguments, "answers": answered(questions, answers)}

    def _use(self, name: str, arguments: Mapping[str, Any]) -> ToolUse:
        task = self.task
        return ToolUse(
            step=task.step,
            name=name,
            input=arguments,
            asked_by="agent",
            tree=task.tree,
            writable=task.writable,
        )

    def server(self) -> McpSdkServerConfig:
        """Return the task's functions as an in-process server of tools."""
        from claude_agent_sdk import create_sdk_mcp_server, tool

        def as_tool(function: AgentFunction) -> Any:
            async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
                text = await self._safely(self.host.call(function.name, arguments))
                return {"content": [{"type": "text", "text": text}]}

            return tool(function.name, function.description, dict(function.schema))(call)

        return create_sdk_mcp_server(SERVER, tools=[as_tool(each) for each in self.task.functions])

    async def _safely(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if _cancelled():
                raise
            if not self.broken.done():
                self.broken.set_exception(error)
            never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            return await never


def _cancelled() -> bool:
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def _arguments(data: Mapping[str, Any] | HookInput) -> Mapping[str, Any]:
    arguments: Any = data.get("tool_input")
    return cast("Mapping[str, Any]", arguments) if isinstance(arguments, dict) else {}


def _decision(permission: Permission) -> HookJSONOutput:
    output: PreToolUseHookSpecificOutput = {
        "hookEventName": "PreToolUse",
        "permissionDecision": _WORDS[type(permission)],
    }
    if not isinstance(permission, Allow):
        output["permissionDecisionReason"] = permission.reason
    return {"hookSpecificOutput": output}
