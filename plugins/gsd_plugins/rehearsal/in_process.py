"""Plays the scripted model's turns in this process: asks the host as Claude Code does, writes the files.

It runs no command: neither the task's checks, which are the core's, nor those that a scenario file names.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs

from gsd_core import Activity, AgentHost, AgentResult, AgentTask, Allow, Ask, StepError, Usage
from gsd_plugins.claude import api_error, format_answers, parse_questions, tool_use

from .api import Block, Failure, Text, ToolUseBlock
from .replies import RESETS_AT, Replies, Transcript, UsedTool, Work


@attrs.define(kw_only=True)
class InProcess:
    """One call of the agent for *task*; *call* is its number in the step."""

    task: AgentTask
    host: AgentHost
    model: Replies
    call: int
    _uses: list[UsedTool] = attrs.field(factory=list[UsedTool], init=False)
    _usage: Usage = attrs.field(factory=Usage, init=False)
    _refusals: list[str] = attrs.field(factory=list[str], init=False)

    async def run(self) -> AgentResult:
        """Take the model's turns until it gives its answer."""
        task = self.task
        given = ("AskUserQuestion", "Read") if task.tools is None else task.tools
        functions = [function.name for function in task.functions]
        await self.host.progress(Activity(kind="start"))
        while True:
            transcript = Transcript(
                step=task.step,
                role=task.role,
                tree=str(task.tree),
                call=self.call,
                prompts=task.prompt,
                uses=(*self._uses,),
                tools=(*given, *functions, "StructuredOutput"),
            )
            await asyncio.sleep(self.model.delay(transcript).total_seconds())
            turn = self.model.turn(transcript)
            if isinstance(turn, Failure):
                raise _error_of(turn)
            if turn.is_cut:
                raise api_error(None, "the connection was closed in the middle of a message")
            cost = turn.cost
            priced = cost is None or bool(cost.dollars)
            used = Usage(
                input_tokens=cost.input_tokens if cost else 100 + len(task.prompt) // 4,
                output_tokens=cost.output_tokens if cost else 20,
                turns=1,
                # No model, so there is no price for its tokens.
                dollars=(cost.dollars if cost else Decimal("0.001")) if priced else None,
                basis="reported" if priced else "unknown",
            )
            self._usage += used
            for number, block in enumerate(turn.content):
                result = await self._do(block, None if number else used)
                if result is not None:
                    conversation = task.conversation.id if task.conversation else ""
                    return attrs.evolve(result, conversation=conversation, model="fake", usage=self._usage)

    async def _do(self, block: Block | Work, used: Usage | None) -> AgentResult | None:
        """Do what the model said in a part of its turn; return its answer, if it is one."""
        match block:
            case Text(text):
                await self.host.progress(Activity(kind="text", text=text), used)
                return AgentResult(text=text)
            case Work():
                await self._work(block, used)
                return None
            case ToolUseBlock():
                return await self._use(block.name, block.input, used)

    async def _work(self, work: Work, used: Usage | None) -> None:
        for edit in () if work.lies else work.task.edits:
            file = self.task.tree / edit.path
            before = file.read_text(encoding="utf-8") if file.is_file() else None
            text = edit.applied(before)
            if text == before:
                continue
            # As Claude Code does: what a turn used is counted before its tools ask for permission.
            await self.host.progress(Activity(kind="tool", tool="Write", text=edit.path), used)
            used = None
            if await self._refusal("Write", {"file_path": str(file), "content": text}):
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        await self.host.progress(Activity(kind="tool", tool="task_done", text=work.task.name), used)
        await self._call("task_done", work.report)

    async def _use(self, name: str, given: Mapping[str, Any], used: Usage | None) -> AgentResult | None:
        path = str(given.get("file_path", ""))
        activity = Activity(kind="tool", tool=name, text=path.removeprefix(f"{self.task.tree}/"))
        await self.host.progress(activity, used)
        match name:
            case "StructuredOutput":
                value = {**given}
                if self.task.role == "executor" and self._refusals:
                    value["issues"] = [*self._refusals, *value.get("issues", ())]
                return AgentResult(value=value)
            case "AskUserQuestion":
                questions = parse_questions(given)
                answers = format_answers(questions, await self.host.ask(questions))
                said = ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())
                self._note(name, given, f"User has answered your questions: {said}")
            case _ if name in [function.name for function in self.task.functions]:
                await self._call(name, given)
            case "Read":
                exists = os.path.isfile(path)  # noqa: ASYNC240, PTH113 - one look at a local file
                self._note(name, given, "read" if exists and not await self._refusal(name, given) else None)
            case _:
                self._note(name, given, None if await self._refusal(name, given) else "")
        return None

    async def _call(self, function: str, arguments: Mapping[str, Any]) -> None:
        self._note(function, arguments, await self.host.call(function, arguments))

    def _note(self, name: str, given: Mapping[str, Any], result: str | None) -> None:
        self._uses.append(UsedTool(name=name, input=given, result=result))

    async def _refusal(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Ask whether *tool* may be used; return why not, which is an issue in the summary."""
        use = tool_use(self.task, tool, arguments)
        permission = await self.host.permit(use)
        if isinstance(permission, Ask):
            permission = await self.host.confirm(use, permission.reason)
        if isinstance(permission, Allow):
            return ""
        self._refusals.append(f"{tool} was refused: {permission.reason}")
        await self.host.progress(Activity(kind="tool", tool=tool, text=f"refused: {permission.reason}"))
        return permission.reason


def _error_of(failure: Failure) -> StepError:
    """Return the error that Claude Code's refusal by the API would be."""
    if resets_at := failure.headers.get(RESETS_AT):
        ends = datetime.fromtimestamp(int(resets_at), UTC)
        return api_error(failure.status, "Claude usage limit reached", ends)
    wait = failure.headers.get("retry-after")
    until = datetime.now(UTC) + timedelta(seconds=float(wait)) if wait else None
    return api_error(failure.status, f"API Error: {failure.status} {failure.message}", until)
