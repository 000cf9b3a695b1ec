"""One task: the command is run again and again, once for each turn, until it has answered."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from gsd_core import (
    Activity,
    AgentHost,
    AgentResult,
    AgentTask,
    Option,
    Permanent,
    Question,
    Transient,
    Usage,
)

from .answer import Call, Unreadable, calls_in, json_in, message_of, value_in
from .environment import allowed
from .process import Ran, run
from .schema import faults
from .settings import CommandAgentSettings
from .wording import ASK, first_prompt, functions_of, mend, replied, transcript

MAX_MENDS = 2
SCHEMA, ANSWER = "schema.json", "answer.txt"
ENOUGH = 400  # characters of an activity


async def converse(task: AgentTask, host: AgentHost, settings: CommandAgentSettings) -> AgentResult:
    """Return what the command makes of *task*.

    Raises ``Permanent`` for what trying again cannot mend, else ``Transient``; what the host raises
    passes. When cancelled, every process of the command is ended before this returns.
    """
    turns = min(settings.turns, task.limits.turns or settings.turns)
    talk = Talk(task=task, host=host, settings=settings, said=_remembered(task, settings))
    for _ in range(turns):
        if result := await talk.turn():
            return result
    return AgentResult(ended="turns", usage=talk.usage, conversation=talk.id)


def _remembered(task: AgentTask, settings: CommandAgentSettings) -> list[str]:
    """Return what was said in the task's conversation, with what is to be said now.

    A conversation that is resumed after a crash of ours is not known any more: then the task's
    prompt is all there is, as at its beginning.
    """
    conversation = task.conversation
    known = settings.told.get(conversation.id) if conversation and conversation.resume else None
    said = [*known, task.prompt] if known else [first_prompt(task)]
    if conversation:
        settings.told[conversation.id] = said
    return said


@define(kw_only=True)
class Talk:
    """A conversation: what was *said* alternates between us and the command."""

    task: AgentTask
    host: AgentHost
    settings: CommandAgentSettings
    said: list[str]
    usage: Usage = field(factory=Usage, init=False)
    mends: int = field(default=0, init=False)

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.task.conversation.id if self.task.conversation else ""

    async def turn(self) -> AgentResult | None:
        """Run the command once; return its answer, or ``None`` if it has to be run again."""
        message = await self._message()
        self.said.append(message)
        try:
            return await self._taken(message)
        except Unreadable as error:
            self._again((str(error),))
            return None

    async def _taken(self, message: str) -> AgentResult | None:
        functions, schema = functions_of(self.task), self.task.schema
        if not functions and schema is None:
            return self._result(message)
        if schema is None and not message.lstrip().startswith(("{", "```")):
            return self._result(message)
        document = json_in(message)
        if functions and (calls := calls_in(document)):
            self.said.append(await self._replies(calls))
            return None
        value = value_in(document)
        if schema is not None and (wrong := faults(value, schema)):
            self._again(wrong)
            return None
        return self._result(message, value)

    def _result(self, message: str, value: object = None) -> AgentResult:
        return AgentResult(
            text=message, value=value, conversation=self.id, model=self.task.model, usage=self.usage
        )

    def _again(self, wrong: Sequence[str]) -> None:
        self.mends += 1
        if self.mends > MAX_MENDS:
            raise Transient(f"the command's answer stays invalid: {'; '.join(wrong)}")
        self.said.append(mend(tuple(wrong)))

    async def _replies(self, calls: Sequence[Call]) -> str:
        return "\n\n".join([replied(call.function, await self._reply(call)) for call in calls])

    async def _reply(self, call: Call) -> str:
        await self.host.progress(Activity(kind="tool", tool=call.function, text=str(call.arguments)[:ENOUGH]))
        known = {function.name for function in functions_of(self.task)}
        if call.function not in known:
            return f"There is no function {call.function!r}; there are: {', '.join(sorted(known))}."
        if call.function == ASK.name:
            return await self._ask(call)
        return await self.host.call(call.function, call.arguments)

    async def _ask(self, call: Call) -> str:
        if wrong := faults(call.arguments, ASK.schema, "arguments"):
            return "Not understood: " + "; ".join(wrong)
        options = tuple(Option(label=label) for label in call.arguments.get("options", ()))
        [answer] = await self.host.ask([Question(text=call.arguments["question"], options=options)])
        return answer.words

    async def _message(self) -> str:
        with tempfile.TemporaryDirectory(prefix="gsd-command-agent-") as name:
            command = self._command(Path(name))
            await self.host.progress(Activity(kind="start", text=Path(command[0]).name))
            ran = await self._run(command)
            written = _read(Path(name, ANSWER))
        self._raise_if_failed(command[0], ran)
        used = Usage(turns=1)
        self.usage += used
        await self.host.progress(Activity(kind="result", text="the command answered"), used)
        if written is None and self.settings.output == "json":
            return message_of(ran.output, self.settings.answer_key)
        return (ran.output if written is None else written).strip()

    def _command(self, folder: Path) -> list[str]:
        """Return the command with its words filled in; write the schema for it into *folder*."""
        chosen = self.settings.command
        if not self.task.writable and self.settings.read_only:
            chosen = self.settings.read_only
        words = {
            "{model}": self.task.model,
            "{tree}": str(self.task.tree),
            "{schema}": _written(folder / SCHEMA, self.task.schema),
            "{answer}": str(folder / ANSWER),
        }
        return [filled for part in chosen if (filled := _filled(part, words)) is not None]

    async def _run(self, command: list[str]) -> Ran:
        patience = self.settings.patience.total_seconds() or None
        environment = {**allowed(os.environ, self.settings.environment), **self.host.environment}
        try:
            async with asyncio.timeout(patience):
                return await run(
                    command, transcript(self.said), tree=self.task.tree, environment=environment,
                    started=self.host.started, heard=self._heard,
                )  # fmt: skip
        except TimeoutError as error:
            raise Transient(f"{command[0]!r} took longer than {self.settings.patience}") from error

    async def _heard(self, line: str) -> None:
        await self.host.progress(Activity(kind="text", text=line[:ENOUGH]))

    def _raise_if_failed(self, program: str, ran: Ran) -> None:
        if ran.exit == 0:
            return
        last = ran.last_words or ran.output[-ENOUGH:]
        how = f"was ended by signal {-ran.exit}" if ran.exit < 0 else f"exited with {ran.exit}"
        told = f"{program!r} {how}: {last}" if last else f"{program!r} {how}"
        words = (word for word in self.settings.transient_words if word.lower() in last.lower())
        if ran.exit < 0 or ran.exit in self.settings.transient_exits or any(words):
            raise Transient(told)
        raise Permanent(told, hint="run the command by hand; see the section command_agent")


def _written(path: Path, schema: Mapping[str, Any] | None) -> str:
    """Write *schema*, and return where it lies; empty if there is none."""
    if schema is None:
        return ""
    path.write_text(json.dumps(dict(schema)), encoding="utf-8")
    return str(path)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _filled(part: str, words: dict[str, str]) -> str | None:
    """Return an argument with its words filled in; ``None`` if one of them is empty."""
    for word, meaning in words.items():
        if word in part:
            if not meaning:
                return None
            part = part.replace(word, meaning)
    return part
