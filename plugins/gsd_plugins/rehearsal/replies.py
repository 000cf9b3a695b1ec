"""The replies of the scripted model: a function of the scenario and the conversation so far.

The next turn is derived from the messages alone. A conversation that was killed and resumed
therefore continues where it was, and a new one learns from ``task_done`` which tasks are done.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, cast
from urllib.parse import unquote

import attrs

from gsd_core import Question, StepId, Usage
from gsd_plugins.claude import with_price

from .active_rules import ActiveRules, moment_of
from .api import ApiRequest, Block, Blocks, Cut, Failure, Json, Reply, Text, ToolUseBlock, text_of
from .effects import (
    ApiError,
    Architecture,
    Checkpoint,
    Cost,
    Disconnect,
    Hang,
    Lie,
    Moment,
    Slow,
    StayingGap,
    ToolRequest,
    UsageLimit,
    UserQuestion,
    WrongAnswer,
    fail_verdict,
)
from .plans import ScriptedTask
from .product import FileEdit
from .scenario import (
    LAST_RESORT,
    NO_MODEL,
    Scenario,
    committed_before,
    deferred_in,
    is_accepted,
    is_success,
    listed_files,
)

MAX_TRIES = 3
_OVERLOADED = Failure(529, "overloaded_error", "Overloaded")
# No model is asked, so multiplying the tokens by a price must give zero.
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


@attrs.define
class Replies:
    """A script for the Messages API that plays *scenario* by *rules*.

    The headers ``x-gsd-step``, ``x-gsd-role``, ``x-gsd-call`` and ``x-gsd-tree`` of a request,
    percent-encoded, say which task it belongs to.
    """

    scenario: Scenario
    rules: ActiveRules = attrs.field(factory=ActiveRules)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _refused: bool = attrs.field(default=False, init=False)

    def __call__(self, request: ApiRequest) -> Reply:
        """Return the model's next message, or an error of the API."""
        transcript = Transcript(request)
        if self._refuses(transcript):
            return _OVERLOADED
        moment = self._moment(transcript)
        if (failure := self._disturb(moment)) is not None:
            return failure
        usage = self._usage(moment, request.model)
        if self.rules.take(Disconnect, moment):
            return Cut(Blocks((Text("The connection ends here."),), usage=usage))
        reads = self._reads(transcript, moment)
        message = reads or self._scripted(transcript, moment) or self._next(transcript, moment)
        return Blocks(tuple(message), usage=usage)

    def _moment(self, transcript: Transcript) -> Moment:
        step, role = transcript.header("step"), transcript.header("role")
        task = 0
        if role == "executor":
            task = Execution(transcript, self.scenario, StepId.parse(step).detail).current
        return moment_of(step, role, int(transcript.header("call") or 1), task)

    def _disturb(self, moment: Moment) -> Failure | None:
        """Wait, or return an error, as the scenario file says."""
        for waits in (self.rules.take(Slow, moment), self.rules.take(Hang, moment)):
            if waits is not None:
                time.sleep(waits.duration.total_seconds())
        if (limit := self.rules.take(UsageLimit, moment)) is not None:
            # Rounded up: the API has whole seconds, and a limit must not end before the scenario says so.
            ends = datetime.now(UTC) + limit.resets_in + timedelta(seconds=0.999)
            return _usage_limit(int(ends.timestamp()))
        if (error := self.rules.take(ApiError, moment)) is not None:
            wait = error.retry_after
            headers = {} if wait is None else {"retry-after": f"{wait.total_seconds():.0f}"}
            return Failure(error.status, error.type, error.text, headers)
        return None

    def _usage(self, moment: Moment, model: str) -> Mapping[str, int]:
        cost = self.rules.take(Cost, moment)
        if cost is None:
            return _NO_USAGE
        if not cost.dollars:
            return {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
        million = with_price(Usage(input_tokens=1_000_000), model).dollars
        if not million:
            raise ValueError(f"the price of {model!r} is unknown: give the rule tokens, not dollars")
        return {"input_tokens": round(cost.dollars / million * 1_000_000), "output_tokens": 0}

    def _scripted(self, transcript: Transcript, moment: Moment) -> Sequence[Block]:
        """Return the message that the scenario file puts in place of the model's own; empty if none."""
        if transcript.has_ended:
            return ()
        if (wanted := self.rules.take(ToolRequest, moment)) is not None:
            return [_use(wanted.tool, **wanted.input)]
        tool = transcript.tool("AskUserQuestion")
        asked = self.rules.take(UserQuestion, moment, possible=lambda _: bool(tool))
        if asked is not None:
            return [ask_user(asked.question)]
        function = transcript.tool("ask_architecture")
        change = self.rules.take(Architecture, moment, possible=lambda _: bool(function))
        if change is not None:
            return [_use(function, change=change.text, options=list(change.options))]
        if (wrong := self.rules.take(WrongAnswer, moment)) is not None:
            return [*_answer(transcript, wrong.value)]
        return ()

    def _reads(self, transcript: Transcript, moment: Moment) -> Sequence[Block]:
        """Return the uses of Read with which a reviewer begins: of each file that its prompt lists."""
        if moment.role != "reviewer" or transcript.has_ended or not transcript.tool("Read"):
            return ()
        paths = map(transcript.in_tree, listed_files(transcript.prompts))
        return [_use("Read", file_path=path) for path in paths if not transcript.uses_for(path)]

    def _refuses(self, transcript: Transcript) -> bool:
        """Refuse one request of the scenario's overloaded step, after the first ``task_done``."""
        if transcript.request.step != self.scenario.overloaded_step or not transcript.uses_of("task_done"):
            return False
        with self._lock:
            refuses, self._refused = not self._refused, True
        return refuses

    def _next(self, transcript: Transcript, moment: Moment) -> Iterator[Block]:
        if transcript.has_ended:
            return iter((Text("Done."),))
        step = StepId.parse(transcript.header("step"))
        match transcript.header("role"):
            case "roadmapper":
                return _answer(transcript, self.scenario.roadmap(transcript.prompts))
            case "discusser":
                return _answer(transcript, self.scenario.discussion(transcript.prompts))
            case "debugger":
                return _answer(transcript, self.scenario.diagnoses(transcript.prompts))
            case "planner" if step.kind == "execute":
                return _answer(transcript, self.scenario.check_decision())
            case "planner":
                answer = self.scenario.plans(step.phase or step.detail, step.round, transcript.prompts)
                if checkpoint := self.rules.take(Checkpoint, moment):
                    answer["plans"][-1]["tasks"].append(checkpoint.to_json())
                return _answer(transcript, answer)
            case "executor":
                lie = self.rules.take(Lie, moment)
                return Execution(transcript, self.scenario, step.detail, self.rules.of(ToolRequest)).next(lie)
            case "verifier":
                return self._verify(transcript, moment)
            case "researcher":
                return _answer(transcript, self.scenario.research())
            case "checker":
                return _answer(transcript, {"issues": []})
            case "reviewer":
                return _answer(transcript, self.scenario.review())
            case "codebase-mapper":
                return _answer(transcript, self.scenario.codebase(transcript.prompts))
            case "command" if step.kind == "exec":
                return iter((Text(NO_MODEL),))
            case role:
                raise ValueError(f"the scenario has no answer for the role {role!r}")

    def _verify(self, transcript: Transcript, moment: Moment) -> Iterator[Block]:
        phase = moment.phase or StepId.parse(transcript.header("step")).detail
        asked = self.scenario.asked_in(transcript.prompts, phase)
        files = self.scenario.files_for(asked, phase)
        if self.rules.take(Lie, moment):
            return _answer(transcript, self.scenario.verdicts(asked, phase, read=files))
        command, tool = self.scenario.command_for(asked, phase), transcript.tool("run_command")
        unread = [path for path in files if not transcript.uses_for(transcript.in_tree(path))]
        is_untried = bool(command and tool and not transcript.uses_of("run_command"))
        if (unread and transcript.tool("Read")) or is_untried:
            reads = [_use("Read", file_path=transcript.in_tree(path)) for path in unread]
            return iter([*reads, *([_use(tool, command=command)] if is_untried else [])])
        read = [p for p in files if any(u.result for u in transcript.uses_for(transcript.in_tree(p)))]
        tried = [use.input["command"] for use in transcript.uses_of("run_command")]
        ran = [u.input["command"] for u in transcript.uses_of("run_command") if is_success(u.result or "")]
        if tool and not read and not ran and LAST_RESORT not in tried:
            return iter([_use(tool, command=LAST_RESORT)])
        answer = self.scenario.verdicts(asked, phase, read=read, ran=ran)
        judged = {"", *asked} if asked else set[str]()
        for gap in self.rules.take_each(StayingGap, moment, possible=lambda gap: gap.about in judged):
            fail_verdict(answer["verdicts"], gap, self.rules.count(StayingGap))
        return _answer(transcript, answer)


@attrs.define
class Execution:
    """The executor's side of a conversation about *plan*.

    *requests* are the uses of tools that a scenario file asks for.
    """

    transcript: Transcript
    scenario: Scenario
    plan: str
    requests: Sequence[ToolRequest] = ()

    @property
    def current(self) -> int:
        """The number of the first task that is not accepted, here or in an earlier conversation; else 0."""
        committed = committed_before(self.transcript.prompts)
        tasks = self.scenario.tasks(self.plan, self._user_answer(), self.transcript.prompts)
        open_tasks = (n for n in range(1, len(tasks) + 1) if n not in committed | self._deferred)
        return next((n for n in open_tasks if not any(map(is_accepted, self._replies(n)))), 0)

    @property
    def _deferred(self) -> frozenset[int]:
        replies = [use.result or "" for use in self.transcript.uses_of("task_done")]
        return deferred_in("\n".join([self.transcript.prompts, *replies]))

    def _replies(self, number: int) -> list[str]:
        calls = [use for use in self.transcript.uses_of("task_done") if use.input.get("task") == number]
        return [use.result if use.result is not None else use.error for use in calls]

    def next(self, lie: Lie | None = None) -> Iterator[Block]:
        """Return the next turn: the question, the first task that is not accepted, or the summary.

        A *lie* takes the place of the work, or of everything that is left.
        """
        answer = self._user_answer()
        issues = [f"{use.name} was refused: {use.error[:500]}" for use in self._refused_tools()]
        if lie and lie.how == "unreported":
            return _answer(
                self.transcript,
                {**self.scenario.summary(self.plan, answer, issues), "summary": lie.says},
            )
        for number, task in enumerate(self.scenario.tasks(self.plan, answer, self.transcript.prompts), 1):
            replies = self._replies(number)
            if any(map(is_accepted, replies)):
                continue
            if number in self._deferred:
                # Not the reply: a summary's issues are quoted to executors of later plans.
                issues += (
                    [f"task {number} was not accepted, and the plan goes on without it"] if replies else []
                )
                continue
            if len(replies) >= MAX_TRIES:
                issues.append(f"task {number} was not accepted: {replies[-1][:500]}")
                break
            if task.asks and self.transcript.tool("AskUserQuestion") and self._may_ask():
                return iter([ask_user(self.scenario.user_question())])
            return self._report(number, task, lie.says) if lie else self._work_on(number, task)
        return _answer(self.transcript, self.scenario.summary(self.plan, answer, issues))

    def _user_answer(self) -> str:
        """Return what the user chose or wrote; empty without an answer."""
        results = [use.result or "" for use in self.transcript.uses_of("AskUserQuestion")]
        pattern = re.escape(self.scenario.user_question().text) + r'"\s*=\s*"(.*)"'
        found = [match[1] for result in results if (match := re.search(pattern, result, re.DOTALL))]
        return found[-1] if found else ""

    def _may_ask(self) -> bool:
        """Return whether to ask (again): a kill can cut off a question, which is then asked once more."""
        uses = self.transcript.uses_of("AskUserQuestion")
        return not any(use.result for use in uses) and len(uses) < MAX_TRIES

    def _refused_tools(self) -> list[ToolUse]:
        """Return the uses of tools that the scenario file asked for, and that failed."""
        wanted = [(request.tool, request.input) for request in self.requests]
        return [use for use in self.transcript.uses if use.error and (use.name, use.input) in wanted]

    def _work_on(self, number: int, task: ScriptedTask) -> Iterator[Block]:
        if unread := [edit.path for edit in task.edits if self._must_be_read(edit)]:
            yield from (_use("Read", file_path=self.transcript.in_tree(path)) for path in unread)
            return
        yield Text(f"{task.name}.")
        for edit in task.edits:
            yield from self._edit(edit)
        if task.check:
            yield _use("Bash", command=task.check, description=f"Check: {task.done}"[:100])
        yield from self._report(number, task, task.done)

    def _report(self, number: int, task: ScriptedTask, note: str) -> Iterator[Block]:
        arguments = {"task": number, "files": list(task.files), "note": note}
        yield _use(self.transcript.tool("task_done") or "task_done", **arguments)

    def _must_be_read(self, edit: FileEdit) -> bool:
        """Claude Code changes or overwrites a file only if it was read in the same conversation."""
        uses = self.transcript.uses_for(self.transcript.in_tree(edit.path))
        refused = any(use.name == "Write" and use.error for use in uses)
        return (bool(edit.changes) or refused) and not any(use.name == "Read" for use in uses)

    def _edit(self, edit: FileEdit) -> Iterator[Block]:
        path = self.transcript.in_tree(edit.path)
        uses = self.transcript.uses_for(path)
        contents = [use.result for use in uses if use.name == "Read" and use.result is not None]
        if edit.append:
            line, name = shlex.quote(edit.content.rstrip("\n")), shlex.quote(edit.path)
            command = f"grep -qsxF {line} {name} || printf '%s\\n' {line} >> {name}"
            yield _use("Bash", command=command, description=f"Add {edit.content.strip()} to {edit.path}")
        elif edit.changes and contents:
            for old, new in edit.missing(contents[-1]):
                yield _use("Edit", file_path=path, old_string=old, new_string=new)
        else:
            yield _use("Write", file_path=path, content=edit.content)


def _answer(transcript: Transcript, value: Any) -> Iterator[Block]:
    """Give the structured answer with the tool for it, or as text if there is none or it keeps failing."""
    failures = [use for use in transcript.uses_of("StructuredOutput") if use.error]
    if transcript.tool("StructuredOutput") and len(failures) < MAX_TRIES:
        yield _use("StructuredOutput", **value)
    else:
        yield Text(json.dumps(value, ensure_ascii=False, indent=2))


def ask_user(question: Question) -> ToolUseBlock:
    """Return the use of Claude Code's tool for questions."""
    options = [{"label": o.label, "description": o.description or o.label} for o in question.options]
    value = {
        "question": question.text,
        "header": question.header,
        "options": options,
        "multiSelect": question.multiple,
    }
    return _use("AskUserQuestion", questions=[value])


def _usage_limit(resets_at: int) -> Failure:
    """Return the refusal of a request because of a usage limit, which ends at *resets_at* (Unix seconds)."""
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(resets_at),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "x-should-retry": "false",
    }
    return Failure(429, "rate_limit_error", "This request would exceed your account's rate limit.", headers)


def _use(name: str, /, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(name, arguments)


@attrs.frozen(kw_only=True)
class ToolUse:
    """A use of a tool: its *input*, and its *result*, or the *error* if it failed.

    *result* is ``None`` if it failed, or if the conversation was cut off before the result.
    """

    name: str
    input: Mapping[str, Any]
    result: str | None
    error: str = ""


@attrs.frozen(slots=False)  # cached_property needs a __dict__
class Transcript:
    """A conversation as its latest request shows it: the prompts, and the uses of tools."""

    request: ApiRequest

    def header(self, name: str) -> str:
        """Return the header ``x-gsd-NAME``; empty if it is missing."""
        return unquote(self.request.headers.get(f"x-gsd-{name}", ""))

    def in_tree(self, path: str) -> str:
        """Return the absolute path of a file in the task's tree."""
        return str(PurePosixPath(self.header("tree"), path))

    @cached_property
    def prompts(self) -> str:
        """The text of all messages of the user, without the results of tools."""
        texts = [block for block in self._blocks("user") if block["type"] == "text"]
        return "\n".join(str(block["text"]) for block in texts)

    @cached_property
    def uses(self) -> tuple[ToolUse, ...]:
        """All uses of tools, in order."""
        results = {b["tool_use_id"]: b for b in self._blocks("user") if b["type"] == "tool_result"}
        used = [block for block in self._blocks("assistant") if block["type"] == "tool_use"]
        return tuple(_tool_use(block, results.get(block["id"])) for block in used)

    def uses_of(self, name: str) -> tuple[ToolUse, ...]:
        """Return the uses of the tool *name*; the prefix ``mcp__SERVER__`` may be left out."""
        return tuple(use for use in self.uses if use.name == name or use.name.endswith(f"__{name}"))

    def uses_for(self, path: str) -> tuple[ToolUse, ...]:
        """Return the uses of tools on the file at *path*."""
        return tuple(use for use in self.uses if use.input.get("file_path") == path)

    def tool(self, name: str) -> str:
        """Return the tool's full name; empty if the model may not use it."""
        return next((t for t in self.request.tools if t == name or t.endswith(f"__{name}")), "")

    @property
    def has_ended(self) -> bool:
        """Whether the last message accepts the structured answer."""
        last = self.request.messages[-1] if self.request.messages else {}
        ids = {b["id"] for b in self._blocks("assistant") if b.get("name") == "StructuredOutput"}
        return any(b.get("tool_use_id") in ids and not b.get("is_error") for b in _content(last))

    def _blocks(self, role: str) -> Iterator[Json]:
        for message in self.request.messages:
            if message["role"] == role:
                yield from _content(message)


def _content(message: Json) -> Sequence[Json]:
    content: object = message.get("content", ())
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("Sequence[Json]", content)


def _tool_use(block: Json, result: Json | None) -> ToolUse:
    text = text_of(result.get("content")) if result else None
    failed = bool(result and result.get("is_error"))
    return ToolUse(
        name=block["name"],
        input=block["input"],
        result=None if failed else text,
        error=(text or "it failed") if failed else "",
    )
