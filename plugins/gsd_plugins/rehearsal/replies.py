"""The turns of the scripted model: a function of the scenario and the conversation so far.

The next turn is derived from the conversation alone. One that was killed and resumed therefore continues
where it was, and a new one learns from ``task_done`` which tasks are done. Two agents take these turns:
Claude Code, by way of a Messages API, and :class:`~gsd_plugins.rehearsal.fake.FakeAgent`.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, TypeAlias, cast
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
    NO_MODEL,
    Scenario,
    changed_files,
    committed_before,
    deferred_in,
    is_accepted,
    is_success,
    listed_files,
)

MAX_TRIES = 3
RESETS_AT = "anthropic-ratelimit-unified-reset"
"""The header that says when a usage limit ends, in Unix seconds."""
_OVERLOADED = Failure(529, "overloaded_error", "Overloaded")
# No model is asked, so multiplying the tokens by a price must give zero.
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


@attrs.frozen(kw_only=True)
class Work:
    """An executor does a task and reports it with *note*; with *lies* it only reports it."""

    number: int
    task: ScriptedTask
    note: str
    lies: bool = False

    @property
    def report(self) -> Json:
        """The arguments of ``task_done``."""
        files = [edit.path for edit in self.task.edits]
        return {"task": self.number, "files": files, "note": self.note}


Content: TypeAlias = Sequence[Block | Work]


@attrs.frozen(kw_only=True)
class Turn:
    """One message of the model; its price, if a rule names one; *is_cut*: the connection breaks in it."""

    content: Content
    cost: Cost | None = None
    is_cut: bool = False


@attrs.frozen(kw_only=True)
class UsedTool:
    """A use of a tool: its *input*, and its *result*, or the *error* if it failed.

    *result* is ``None`` if it failed, or if the conversation was cut off before the result.
    """

    name: str
    input: Mapping[str, Any]
    result: str | None = None
    error: str = ""


@attrs.frozen(kw_only=True)
class Transcript:
    """A conversation: whose it is, the text of all *prompts*, the *uses* of tools in order.

    *tools* are the names of the tools that the model has; *has_ended*: its answer was accepted.
    """

    step: str
    role: str
    tree: str
    call: int = 1
    prompts: str
    uses: tuple[UsedTool, ...] = ()
    tools: tuple[str, ...]
    has_ended: bool = False

    @classmethod
    def of(cls, request: ApiRequest) -> Transcript:
        """Return the conversation as *request* shows it.

        Its headers ``x-gsd-step``, ``x-gsd-role``, ``x-gsd-call`` and ``x-gsd-tree``, percent-encoded, say
        which task it belongs to.
        """
        names = ("step", "role", "tree", "call")
        step, role, tree, call = (unquote(request.headers.get(f"x-gsd-{name}", "")) for name in names)

        def blocks(role: str, kind: str) -> list[Json]:
            own = [_content(message) for message in request.messages if message["role"] == role]
            return [block for content in own for block in content if block["type"] == kind]

        results = {block["tool_use_id"]: block for block in blocks("user", "tool_result")}
        used = blocks("assistant", "tool_use")
        answers = {block["id"] for block in used if block["name"] == "StructuredOutput"}
        last = _content(request.messages[-1]) if request.messages else ()
        return cls(
            step=step,
            role=role,
            tree=tree,
            call=int(call or 1),
            prompts="\n".join(str(block["text"]) for block in blocks("user", "text")),
            uses=tuple(_used_tool(block, results.get(block["id"])) for block in used),
            tools=request.tools,
            has_ended=any(b.get("tool_use_id") in answers and not b.get("is_error") for b in last),
        )

    def in_tree(self, path: str) -> str:
        """Return the absolute path of a file in the task's tree."""
        return str(PurePosixPath(self.tree, path))

    def uses_of(self, name: str) -> tuple[UsedTool, ...]:
        """Return the uses of the tool *name*; the prefix ``mcp__SERVER__`` may be left out."""
        return tuple(use for use in self.uses if use.name == name or use.name.endswith(f"__{name}"))

    def uses_for(self, path: str) -> tuple[UsedTool, ...]:
        """Return the uses of tools on the file at *path* in the tree."""
        return tuple(use for use in self.uses if use.input.get("file_path") == self.in_tree(path))

    def reads(self, paths: Iterable[str]) -> Content:
        """Return a use of Read for each file at *paths* that no tool was used for; none without Read."""
        unread = [path for path in paths if not self.uses_for(path)]
        return [_use("Read", file_path=self.in_tree(path)) for path in unread] if self.tool("Read") else []

    def tool(self, name: str) -> str:
        """Return the tool's full name; empty if the model may not use it."""
        return next((t for t in self.tools if t == name or t.endswith(f"__{name}")), "")

    def answer(self, value: Any) -> Content:
        """Give a structured answer with the tool for it, or as text if there is none or it keeps failing."""
        failures = [use for use in self.uses_of("StructuredOutput") if use.error]
        if self.tool("StructuredOutput") and len(failures) < MAX_TRIES:
            return [_use("StructuredOutput", **value)]
        return [Text(json.dumps(value, ensure_ascii=False, indent=2))]


@attrs.define
class Replies:
    """The model that plays *scenario* by *rules*; called with a request, it is a script for the Messages API.

    *refuses*: whether one request of the scenario's overloaded step is still to be refused.
    """

    scenario: Scenario
    rules: ActiveRules = attrs.field(factory=ActiveRules)
    refuses: bool = attrs.field(default=True, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __call__(self, request: ApiRequest) -> Reply:
        """Return the model's next message, or an error of the API."""
        transcript = Transcript.of(request)
        time.sleep(self.delay(transcript).total_seconds())
        turn = self.turn(transcript)
        if isinstance(turn, Failure):
            return turn
        [first, *_] = turn.content
        content = _work_on(transcript, first) if isinstance(first, Work) else turn.content
        blocks = Blocks(tuple(cast("Iterator[Block]", content)), usage=_tokens_of(turn.cost, request.model))
        return Cut(blocks) if turn.is_cut else blocks

    def delay(self, transcript: Transcript) -> timedelta:
        """Return how long the model takes for its next turn, as the scenario file says."""
        moment = self._moment(transcript)
        waits = (self.rules.take(Slow, moment), self.rules.take(Hang, moment))
        return sum((wait.duration for wait in waits if wait), timedelta())

    def turn(self, transcript: Transcript) -> Turn | Failure:
        """Return the model's next turn, or an error of the API."""
        with self._lock:
            # One request of the overloaded step, after the first `task_done`.
            overloaded = transcript.step == self.scenario.overloaded_step
            if overloaded and self.refuses and transcript.uses_of("task_done"):
                self.refuses = False
                return _OVERLOADED
        moment = self._moment(transcript)
        if (limit := self.rules.take(UsageLimit, moment)) is not None:
            # Rounded up: the API has whole seconds, and a limit must not end before the scenario says so.
            ends = datetime.now(UTC) + limit.resets_in + timedelta(seconds=0.999)
            headers = {
                "anthropic-ratelimit-unified-status": "rejected",
                RESETS_AT: str(int(ends.timestamp())),
                "anthropic-ratelimit-unified-representative-claim": "five_hour",
                "x-should-retry": "false",
            }
            message = "This request would exceed your account's rate limit."
            return Failure(429, "rate_limit_error", message, headers)
        if (error := self.rules.take(ApiError, moment)) is not None:
            wait = error.retry_after
            headers = {} if wait is None else {"retry-after": f"{wait.total_seconds():.0f}"}
            return Failure(error.status, error.type, error.text, headers)
        cost = self.rules.take(Cost, moment)
        if self.rules.take(Disconnect, moment):
            return Turn(content=[Text("The connection ends here.")], cost=cost, is_cut=True)
        if transcript.has_ended:
            return Turn(content=[Text("Done.")], cost=cost)
        content: Content = ()
        if transcript.role == "reviewer":
            content = transcript.reads(listed_files(transcript.prompts))
        content = content or self._scripted(transcript, moment) or self._own(transcript, moment)
        return Turn(content=content, cost=cost)

    def _moment(self, transcript: Transcript) -> Moment:
        step, role = transcript.step, transcript.role
        task = Execution(transcript, self.scenario).current if role == "executor" else 0
        return moment_of(step, role, transcript.call, task)

    def _scripted(self, transcript: Transcript, moment: Moment) -> Content:
        """Return the message that the scenario file puts in place of the model's own; empty if none."""
        if (wanted := self.rules.take(ToolRequest, moment)) is not None:
            return [_use(wanted.tool, **wanted.input)]
        tool = transcript.tool("AskUserQuestion")
        asked = self.rules.take(UserQuestion, moment, possible=lambda _: bool(tool))
        if asked is not None:
            return [_ask_user(asked.question)]
        function = transcript.tool("ask_architecture")
        change = self.rules.take(Architecture, moment, possible=lambda _: bool(function))
        if change is not None:
            return [_use(function, change=change.text, options=list(change.options))]
        if (wrong := self.rules.take(WrongAnswer, moment)) is not None:
            return transcript.answer(wrong.value)
        return ()

    def _own(self, transcript: Transcript, moment: Moment) -> Content:
        """Return the message that the scenario itself has for the role."""
        scenario, prompts, step = self.scenario, transcript.prompts, StepId.parse(transcript.step)
        match transcript.role:
            case "roadmapper":
                return transcript.answer(scenario.roadmap(prompts))
            case "discusser":
                return transcript.answer(scenario.discussion(prompts))
            case "debugger":
                return transcript.answer(scenario.diagnoses(prompts))
            case "planner" if step.kind == "execute":
                return transcript.answer(scenario.product.answer("check"))
            case "planner":
                plans = scenario.plans(step.phase or step.detail, step.round, prompts)
                if checkpoint := self.rules.take(Checkpoint, moment):
                    plans["plans"][-1]["tasks"].append(checkpoint.to_json())
                return transcript.answer(plans)
            case "executor":
                lie = self.rules.take(Lie, moment)
                return Execution(transcript, scenario, self.rules.of(ToolRequest)).next(lie)
            case "verifier":
                return self._verify(transcript, moment, step.phase or step.detail)
            case "researcher" | "checker" | "reviewer" as role:
                return transcript.answer(scenario.product.answer(role))
            case "codebase-mapper":
                return transcript.answer(scenario.codebase(prompts))
            case "command" if step.kind == "exec":
                return [Text(NO_MODEL)]
            case role:
                raise ValueError(f"the scenario has no answer for the role {role!r}")

    def _verify(self, transcript: Transcript, moment: Moment, phase: str) -> Content:
        """Read a file of each plan and run a command, then judge; only what was done is cited."""
        asked = self.scenario.asked_in(transcript.prompts, phase)
        files = self.scenario.files_for(asked, phase)
        if self.rules.take(Lie, moment):
            return transcript.answer(self.scenario.verdicts(asked, phase, read=files))
        command, tool = self.scenario.command_for(asked, phase), transcript.tool("run_command")
        tried = {use.input["command"]: use for use in transcript.uses_of("run_command")}
        reads = transcript.reads(files)
        if command and tool and not tried:
            return [*reads, _use(tool, command=command)]
        if reads:
            return reads
        read = [path for path in files if any(use.result for use in transcript.uses_for(path))]
        replies = {command: use.result or "" for command, use in tried.items()}
        ran = [(command, reply) for command, reply in replies.items() if is_success(reply)]
        if not read and not ran:
            # A plan that the script does not know: its files are in the prompt.
            listed = changed_files(transcript.prompts)
            if reads := transcript.reads(listed):
                return reads
            read = [path for path in listed if any(use.result for use in transcript.uses_for(path))]
        answer = self.scenario.verdicts(asked, phase, read=read, ran=ran)
        judged = {"", *asked} if asked else set[str]()
        for gap in self.rules.take_each(StayingGap, moment, possible=lambda gap: gap.about in judged):
            fail_verdict(answer["verdicts"], gap, self.rules.count(StayingGap))
        return transcript.answer(answer)


@attrs.define
class Execution:
    """The executor's side of a conversation; *requests* are the uses of tools in a scenario file."""

    transcript: Transcript
    scenario: Scenario
    requests: Sequence[ToolRequest] = ()

    @property
    def current(self) -> int:
        """The number of the first task that is not accepted, here or in an earlier conversation; else 0."""
        passed = committed_before(self.transcript.prompts) | self._deferred
        numbers = range(1, len(self._tasks(self._user_answer())) + 1)
        left = (n for n in numbers if n not in passed and not any(map(is_accepted, self._replies(n))))
        return next(left, 0)

    def next(self, lie: Lie | None = None) -> Content:
        """Return the next turn: the question, the first task that is not accepted, or the summary.

        A *lie* takes the place of the work, or of everything that is left.
        """
        transcript, answer, plan = self.transcript, self._user_answer(), self._plan
        wanted = [(request.tool, request.input) for request in self.requests]
        refused = [use for use in transcript.uses if use.error and (use.name, use.input) in wanted]
        issues = [f"{use.name} was refused: {use.error[:500]}" for use in refused]
        if lie and lie.how == "unreported":
            return transcript.answer({**self.scenario.summary(plan, answer, issues), "summary": lie.says})
        # Asked again without an answer: a kill can cut off a question.
        asked = transcript.uses_of("AskUserQuestion")
        may_ask = transcript.tool("AskUserQuestion") and len(asked) < MAX_TRIES
        committed = committed_before(transcript.prompts)
        for number, task in enumerate(self._tasks(answer), 1):
            replies = self._replies(number)
            if number in committed or any(map(is_accepted, replies)):
                continue
            if number in self._deferred:
                if replies:
                    # Not the reply: a summary's issues are quoted to executors of later plans.
                    issues.append(f"task {number} was not accepted, and the plan goes on without it")
                continue
            if len(replies) >= MAX_TRIES:
                issues.append(f"task {number} was not accepted: {replies[-1][:500]}")
                break
            if task.asks and may_ask and not any(use.result for use in asked):
                return [_ask_user(self.scenario.user_question())]
            repairs = tuple(edit for edit in task.repairs if any(edit.path in reply for reply in replies))
            task = attrs.evolve(task, edits=(*task.edits, *repairs))
            return [Work(number=number, task=task, note=lie.says if lie else task.done, lies=bool(lie))]
        return transcript.answer(self.scenario.summary(plan, answer, issues))

    @property
    def _plan(self) -> str:
        return StepId.parse(self.transcript.step).detail

    @property
    def _deferred(self) -> frozenset[int]:
        replies = [use.result or "" for use in self.transcript.uses_of("task_done")]
        return deferred_in("\n".join([self.transcript.prompts, *replies]))

    def _tasks(self, answer: str) -> tuple[ScriptedTask, ...]:
        return self.scenario.tasks(self._plan, answer, self.transcript.prompts)

    def _replies(self, number: int) -> list[str]:
        calls = [use for use in self.transcript.uses_of("task_done") if use.input.get("task") == number]
        return [use.result if use.result is not None else use.error for use in calls]

    def _user_answer(self) -> str:
        """Return what the user chose or wrote; empty without an answer."""
        results = [use.result or "" for use in self.transcript.uses_of("AskUserQuestion")]
        pattern = re.escape(self.scenario.user_question().text) + r'"\s*=\s*"(.*)"'
        found = [match[1] for result in results if (match := re.search(pattern, result, re.DOTALL))]
        return found[-1] if found else ""


def _work_on(transcript: Transcript, work: Work) -> Iterator[Block]:
    """Do a task with Claude Code's own tools."""
    task = work.task
    if not work.lies:
        if unread := [edit.path for edit in task.edits if _must_be_read(transcript, edit)]:
            yield from (_use("Read", file_path=transcript.in_tree(path)) for path in unread)
            return
        yield Text(f"{task.name}.")
        for edit in task.edits:
            yield from _edit(transcript, edit)
        if task.check:
            yield _use("Bash", command=task.check, description=f"Check: {task.done}"[:100])
    yield _use(transcript.tool("task_done") or "task_done", **work.report)


def _must_be_read(transcript: Transcript, edit: FileEdit) -> bool:
    """Claude Code changes or overwrites a file only if it was read in the same conversation."""
    uses = transcript.uses_for(edit.path)
    refused = any(use.name == "Write" and use.error for use in uses)
    return (bool(edit.changes) or refused) and not any(use.name == "Read" for use in uses)


def _edit(transcript: Transcript, edit: FileEdit) -> Iterator[Block]:
    path, uses = transcript.in_tree(edit.path), transcript.uses_for(edit.path)
    contents = [use.result for use in uses if use.name == "Read" and use.result is not None]
    if edit.merge:
        command = f"sed -i -E '/^(<{{7}} .*|={{7}}|>{{7}} .*)$/d' {shlex.quote(edit.path)}"
        yield _use("Bash", command=command, description=f"Keep both sides in {edit.path}")
    elif edit.append:
        line, name = shlex.quote(edit.content.rstrip("\n")), shlex.quote(edit.path)
        command = f"grep -qsxF {line} {name} || printf '%s\\n' {line} >> {name}"
        yield _use("Bash", command=command, description=f"Add {edit.content.strip()} to {edit.path}")
    elif edit.changes and contents:
        for old, new in edit.missing(contents[-1]):
            yield _use("Edit", file_path=path, old_string=old, new_string=new)
    else:
        yield _use("Write", file_path=path, content=edit.content)


def _ask_user(question: Question) -> ToolUseBlock:
    """Return the use of Claude Code's tool for questions."""
    options = [{"label": o.label, "description": o.description or o.label} for o in question.options]
    value = {
        "question": question.text,
        "header": question.header,
        "options": options,
        "multiSelect": question.multiple,
    }
    return _use("AskUserQuestion", questions=[value])


def _use(name: str, /, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(name, arguments)


def _tokens_of(cost: Cost | None, model: str) -> Mapping[str, int]:
    if cost is None:
        return _NO_USAGE
    if not cost.dollars:
        return {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
    million = with_price(Usage(input_tokens=1_000_000), model).dollars
    if not million:
        raise ValueError(f"the price of {model!r} is unknown: give the rule tokens, not dollars")
    return {"input_tokens": round(cost.dollars / million * 1_000_000), "output_tokens": 0}


def _content(message: Json) -> Sequence[Json]:
    content: object = message.get("content", ())
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("Sequence[Json]", content)


def _used_tool(block: Json, result: Json | None) -> UsedTool:
    text = text_of(result.get("content")) if result else None
    if result and result.get("is_error"):
        return UsedTool(name=block["name"], input=block["input"], error=text or "it failed")
    return UsedTool(name=block["name"], input=block["input"], result=text)
