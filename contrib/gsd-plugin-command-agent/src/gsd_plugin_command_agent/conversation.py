"""One task: the command is run once for each turn, until it has given its final answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from gsd_core import Activity, AgentHost, AgentResult, AgentTask, Option, Question, Transient, Usage

from .command import MAX_ACTIVITY, CommandAgentSettings, ask_command
from .protocol import (
    ASK_HUMAN,
    FunctionCall,
    InvalidAnswer,
    available_functions,
    correction_prompt,
    final_value,
    initial_prompt,
    parse_calls,
    parse_document,
    render_transcript,
    reply_prompt,
    validate,
)

MAX_CORRECTIONS = 2


async def converse(task: AgentTask, host: AgentHost, settings: CommandAgentSettings) -> AgentResult:
    """Run *task* with the command and return its result.

    Raises ``Permanent`` for failures that a retry cannot fix, else ``Transient``; exceptions of the
    host are passed on. On cancellation every process of the command is ended before this returns.
    """
    call = CommandCall(task=task, host=host, settings=settings, transcript=_open_transcript(task, settings))
    for _ in range(min(settings.turns, task.limits.turns or settings.turns)):
        if result := await call.run_turn():
            return result
    return AgentResult(ended="turns", usage=call.usage, conversation=call.conversation_id)


def _open_transcript(task: AgentTask, settings: CommandAgentSettings) -> list[str]:
    """Return the messages of the task's conversation so far, ending with the prompt to send.

    A conversation from before a crash of GSD is lost: it starts again with the task's prompt.
    """
    conversation = task.conversation
    known = settings.transcripts.get(conversation.id) if conversation and conversation.resume else None
    transcript = [*known, task.prompt] if known else [initial_prompt(task)]
    if conversation:
        settings.transcripts[conversation.id] = transcript
    return transcript


@attrs.define(kw_only=True)
class CommandCall:
    """A task in progress; the messages of *transcript* alternate between GSD and the command."""

    task: AgentTask
    host: AgentHost
    settings: CommandAgentSettings
    transcript: list[str]
    usage: Usage = attrs.field(factory=Usage, init=False)
    corrections: int = attrs.field(default=0, init=False)

    @property
    def conversation_id(self) -> str:
        """The conversation's id; empty without a conversation."""
        return self.task.conversation.id if self.task.conversation else ""

    async def run_turn(self) -> AgentResult | None:
        """Run the command once; returns ``None`` if it has to be run again."""
        prompt = render_transcript(self.transcript)
        message, turn = await ask_command(prompt, self.task, self.host, self.settings)
        self.usage += turn
        await self.host.progress(Activity(kind="result", text="the command answered"), turn)
        self.transcript.append(message)

        functions, schema = available_functions(self.task), self.task.schema
        # Without a schema an answer is text, unless it looks like a document of calls.
        if schema is None and not (functions and message.lstrip().startswith(("{", "```"))):
            return self._result(message)
        try:
            document = parse_document(message)
            if functions and (calls := parse_calls(document)):
                replies = [reply_prompt(call.function, await self._call_function(call)) for call in calls]
                self.transcript.append("\n\n".join(replies))
                return None
        except InvalidAnswer as error:
            self._request_correction([str(error)])
            return None
        value = final_value(document)
        if schema is not None and (errors := validate(value, schema)):
            self._request_correction(errors)
            return None
        return self._result(message, value)

    async def _call_function(self, call: FunctionCall) -> str:
        activity = Activity(kind="tool", tool=call.function, text=str(call.arguments)[:MAX_ACTIVITY])
        await self.host.progress(activity)
        names = {function.name for function in available_functions(self.task)}
        if call.function not in names:
            available = ", ".join(sorted(names))
            return f"There is no function {call.function!r}. Available functions: {available}."
        if call.function != ASK_HUMAN.name:
            return await self.host.call(call.function, call.arguments)
        if errors := validate(call.arguments, ASK_HUMAN.schema):
            return "Invalid arguments: " + "; ".join(errors)
        options = tuple(Option(label=label) for label in call.arguments.get("options", ()))
        [answer] = await self.host.ask([Question(text=call.arguments["question"], options=options)])
        return answer.words

    def _request_correction(self, errors: Sequence[str]) -> None:
        self.corrections += 1
        if self.corrections > MAX_CORRECTIONS:
            raise Transient(f"the command's answer is still invalid: {'; '.join(errors)}")
        self.transcript.append(correction_prompt(errors))

    def _result(self, message: str, value: Any = None) -> AgentResult:
        return AgentResult(
            text=message,
            value=value,
            conversation=self.conversation_id,
            model=self.task.model,
            usage=self.usage,
        )
