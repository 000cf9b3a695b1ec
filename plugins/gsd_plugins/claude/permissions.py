"""The callbacks that the SDK calls for tools: permissions, questions, and the task's functions.

Every tool call first reaches :meth:`ToolCallbacks.before_tool`, a hook that must answer within a
minute. A decision that needs a human is left to :meth:`ToolCallbacks.can_use_tool`, which has no time
limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

import attrs

from gsd_core import (
    AgentFunction,
    AgentHost,
    AgentTask,
    Allow,
    Answer,
    Ask,
    Deny,
    Option,
    Permission,
    Question,
    ToolUse,
)

from .cli import MCP_SERVER

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

QUESTION_TOOL = "AskUserQuestion"
RESULT_TOOL = "StructuredOutput"

_DECISIONS: Mapping[type[Permission], Literal["allow", "deny", "ask"]] = {
    Allow: "allow",
    Deny: "deny",
    Ask: "ask",
}


@attrs.frozen
class ToolCallbacks:
    """The SDK's callbacks for one task.

    An exception of the host, such as a stop of the run, has to end the call. The SDK would turn it
    into a tool's error and let the model continue, so it is put into *host_error* instead, and the
    callback does not return.
    """

    task: AgentTask
    host: AgentHost
    host_error: asyncio.Future[NoReturn]

    async def before_tool(
        self, data: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        """Return the policies' decision; called before every tool call, in every permission mode.

        Never waits for a human: the hook's timeout (60 s) denies the call. ``ask`` makes the CLI call
        :meth:`can_use_tool`, which has no timeout.
        """
        name = str(data.get("tool_name", ""))
        if name == QUESTION_TOOL:
            return {}  # no decision: the CLI passes the question to can_use_tool
        permission: Permission = Allow()
        if name != RESULT_TOOL and not name.startswith(f"mcp__{MCP_SERVER}__"):
            arguments = cast("Mapping[str, Any]", data.get("tool_input") or {})
            permission = await self._ask_policies(name, arguments)
        output: PreToolUseHookSpecificOutput = {
            "hookEventName": "PreToolUse",
            "permissionDecision": _DECISIONS[type(permission)],
        }
        if not isinstance(permission, Allow):
            output["permissionDecisionReason"] = permission.reason
        return {"hookSpecificOutput": output}

    async def can_use_tool(
        self, name: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        """Answer the model's questions, and have a human decide what the policies leave open.

        The CLI also calls this for uses that it would itself ask about, such as writing outside the
        project; then the policies decide as well.
        """
        from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

        if name == QUESTION_TOOL:
            questions = parse_questions(arguments)
            answers = await self._call_host(self.host.ask(questions))
            answered = {**arguments, "answers": format_answers(questions, answers)}
            return PermissionResultAllow(updated_input=answered)
        permission = await self._ask_policies(name, arguments)
        if isinstance(permission, Ask):
            use = tool_use(self.task, name, arguments)
            permission = await self._call_host(self.host.confirm(use, permission.reason))
        if isinstance(permission, Allow):
            return PermissionResultAllow()
        return PermissionResultDeny(message=permission.reason)

    async def _ask_policies(self, name: str, arguments: Mapping[str, Any]) -> Permission:
        return await self._call_host(self.host.permit(tool_use(self.task, name, arguments)))

    def mcp_server(self) -> McpSdkServerConfig:
        """Return an in-process MCP server with the task's functions as tools."""
        from claude_agent_sdk import create_sdk_mcp_server, tool

        def as_tool(function: AgentFunction) -> Any:
            async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
                text = await self._call_host(self.host.call(function.name, arguments))
                return {"content": [{"type": "text", "text": text}]}

            return tool(function.name, function.description, dict(function.schema))(call)

        return create_sdk_mcp_server(MCP_SERVER, tools=[as_tool(each) for each in self.task.functions])

    async def _call_host(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            # A CancelledError without a cancellation of this task comes from the host: it ends the call too.
            if not self.host_error.done():
                self.host_error.set_exception(error)
            never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            return await never


def tool_use(task: AgentTask, name: str, arguments: Mapping[str, Any]) -> ToolUse:
    """Return the use of a tool by the agent of *task*, as policies judge it."""
    return ToolUse(
        step=task.step, name=name, input=arguments, asked_by="agent", tree=task.tree, writable=task.writable
    )


def parse_questions(arguments: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions in the *arguments* of ``AskUserQuestion``."""
    return tuple(
        Question(
            text=str(raw.get("question", "")),
            header=str(raw.get("header", "")),
            options=tuple(map(_parse_option, raw.get("options", ()))),
            multiple=bool(raw.get("multiSelect")),
        )
        for raw in cast("Sequence[Mapping[str, Any]]", arguments.get("questions", ()))
    )


def _parse_option(raw: Mapping[str, Any]) -> Option:
    label, description = (str(raw.get(name, "")) for name in ("label", "description"))
    return Option(
        label=label,
        # The tool requires one, so a model that has nothing to add repeats the label.
        description="" if description == label else description,
        recommended="(recommended)" in label.lower(),
    )


def format_answers(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, str]:
    """Return *answers* as ``AskUserQuestion`` expects them: by question text, labels in one string."""
    return {question.text: answer.words for question, answer in zip(questions, answers, strict=True)}
