"""What the rehearsed model says next: a function of the conversation so far.

Which turn comes next is read from the messages alone, so a conversation that was killed and
resumed goes on where it was, and one that starts anew finds out what is done from ``task_done``.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from attrs import define, field

from gsd_core import StepId
from gsd_core.testing.scenario import Scenario, accepted
from gsd_core.testing.scenario.product import FileEdit
from gsd_core.testing.scenario.work import Job

from .api import ApiRequest
from .message import Block, Blocks, Failure, Reply, Text, ToolUseBlock
from .talk import Talk, as_text

TRIES = 3
OVERLOADED = Failure(529, "overloaded_error", "Overloaded")
NOTHING_USED = {"input_tokens": 0, "output_tokens": 0}
"""No model was asked: whoever multiplies by a price comes to zero."""


@define
class Replies:
    """A script for the Messages API that plays *scenario*.

    Headers of the request say who asks: ``x-gsd-step``, ``x-gsd-role`` and ``x-gsd-tree``,
    percent-encoded.
    """

    scenario: Scenario
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _overloaded: bool = field(default=False, init=False)

    def __call__(self, request: ApiRequest) -> Reply:
        """Return the next message of the model, or an error of the API."""
        talk = Talk(request)
        if self._refuses(talk):
            return OVERLOADED
        return Blocks(tuple(self._say(talk)), usage=NOTHING_USED)

    def _refuses(self, talk: Talk) -> bool:
        """Refuse one request of the scenario's step, once something has been done there."""
        if talk.request.step != self.scenario.overloaded_step or not talk.used("task_done"):
            return False
        with self._lock:
            refuses, self._overloaded = not self._overloaded, True
        return refuses

    def _say(self, talk: Talk) -> Iterator[Block]:
        if talk.ended:
            return iter((Text("Done."),))
        step = StepId.parse(_header(talk, "step"))
        match _header(talk, "role"):
            case "roadmapper":
                return _answer(talk, self.scenario.roadmap())
            case "planner":
                return _answer(talk, self.scenario.plans(step.phase, step.round, talk.told))
            case "executor":
                return Execution(talk, self.scenario, step.detail).say()
            case "verifier":
                return self._verify(talk, step.phase)
            case role:
                raise ValueError(f"the scenario has nothing to say as {role!r}")

    def _verify(self, talk: Talk, phase: str) -> Iterator[Block]:
        truths = self.scenario.truths_in(talk.told, phase)
        code = [path for path in self.scenario.files_of(truths) if path.endswith(".py")]
        if code and talk.tool("Read") and not talk.uses:
            return (_use("Read", file_path=_place(talk, path)) for path in code)
        return _answer(talk, self.scenario.verdicts(truths))


@define
class Execution:
    """An executor's turn in carrying out *plan*."""

    talk: Talk
    scenario: Scenario
    plan: str

    def say(self) -> Iterator[Block]:
        """Say what is next: the question, the first task that is not accepted, or the end."""
        issues: list[str] = []
        for number, job in enumerate(self._jobs(), 1):
            replies = self._replies(number)
            if any(map(accepted, replies)):
                continue
            if len(replies) >= TRIES:
                issues.append(f"task {number} was not accepted: {replies[-1][:500]}")
                break
            if job.asks and self.talk.tool("AskUserQuestion") and self._is_unanswered():
                return self._ask()
            return self._do(number, job)
        return _answer(self.talk, self.scenario.summary(self.plan, self._answered(), issues))

    def _jobs(self) -> tuple[Job, ...]:
        return self.scenario.jobs(self.plan, self._answered(), self.talk.told)

    def _replies(self, number: int) -> list[str]:
        calls = [use for use in self.talk.used("task_done") if use.input.get("task") == number]
        return [use.result if use.result is not None else use.error for use in calls]

    def _ask(self) -> Iterator[Block]:
        asked = self.scenario.asked()
        options = [{"label": o.label, "description": o.description} for o in asked.options]
        question = {
            "question": asked.text,
            "header": asked.header,
            "options": options,
            "multiSelect": asked.multiple,
        }
        yield _use("AskUserQuestion", questions=[question])

    def _is_unanswered(self) -> bool:
        """Nobody has answered yet, and it was not refused again and again: a cut-off question is repeated."""
        uses = self.talk.used("AskUserQuestion")
        return not any(use.result for use in uses) and len(uses) < TRIES

    def _answered(self) -> str:
        """Return what the human chose or wrote; empty if nobody was asked or could be."""
        results = [use.result or "" for use in self.talk.used("AskUserQuestion")]
        pattern = re.escape(self.scenario.asked().text) + r'"\s*=\s*"(.*)"'
        found = [match[1] for result in results if (match := re.search(pattern, result, re.DOTALL))]
        return found[-1] if found else ""

    def _do(self, number: int, job: Job) -> Iterator[Block]:
        if unread := [edit.path for edit in job.edits if self._has_to_be_read(edit)]:
            yield from (_use("Read", file_path=_place(self.talk, path)) for path in unread)
            return
        yield Text(f"{job.name}.")
        for edit in job.edits:
            yield from self._edit(edit)
        yield _use("Bash", command=job.check, description=f"Check: {job.done}"[:100])
        told = {"task": number, "files": list(job.files), "note": job.done}
        yield _use(self.talk.tool("task_done") or "task_done", **told)

    def _has_to_be_read(self, edit: FileEdit) -> bool:
        """Claude Code changes only files that the conversation has seen."""
        uses = self.talk.about(_place(self.talk, edit.path))
        refused = any(use.name == "Write" and use.error for use in uses)
        return (bool(edit.changes) or refused) and not any(use.name == "Read" for use in uses)

    def _edit(self, edit: FileEdit) -> Iterator[Block]:
        path = _place(self.talk, edit.path)
        seen = [use.result for use in self.talk.about(path) if use.name == "Read" and use.result is not None]
        if edit.append:
            line, name = shlex.quote(edit.content.rstrip("\n")), shlex.quote(edit.path)
            command = f"grep -qsxF {line} {name} || printf '%s\\n' {line} >> {name}"
            yield _use("Bash", command=command, description=f"Have {edit.content.strip()} in {edit.path}")
        elif edit.changes and seen:
            for old, new in edit.missing(seen[-1]):
                yield _use("Edit", file_path=path, old_string=old, new_string=new)
        else:
            yield _use("Write", file_path=path, content=edit.content)


def _answer(talk: Talk, value: Any) -> Iterator[Block]:
    """Give the structured answer, or say it if there is no tool for it."""
    refused = [use for use in talk.used("StructuredOutput") if use.error]
    if talk.tool("StructuredOutput") and len(refused) < TRIES:
        yield _use("StructuredOutput", **value)
    else:
        yield Text(as_text(value))


def _use(name: str, /, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(name, arguments)


def _place(talk: Talk, path: str) -> str:
    return str(PurePosixPath(_header(talk, "tree"), path))


def _header(talk: Talk, name: str) -> str:
    return unquote(talk.request.headers.get(f"x-gsd-{name}", ""))
