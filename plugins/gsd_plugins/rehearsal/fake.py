"""An agent that plays a scenario without the CLI and without any process, in milliseconds.

This module is also a plugin, for tests that start ``gsd`` in a separate process:
``gsd run idea.md -p gsd_plugins.rehearsal.fake --agent fake``. The settings of its section can be set by
variables, too: ``GSD_FAKE_IDEA``, ``GSD_FAKE_SEED``, ``GSD_FAKE_PHASES`` …
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from gsd_core import (
    Activity,
    AgentHost,
    AgentResult,
    AgentTask,
    Allow,
    Ask,
    Outage,
    Permanent,
    RunInfo,
    StepId,
    ToolUse,
    Usage,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_lifespan, gsd_run_agent, gsd_settings
from gsd_plugins.claude import api_error

from .active_rules import ActiveRules, moment_of
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
ASK_ARCHITECTURE = "ask_architecture"


def scenario_of(run: RunInfo) -> Scenario:
    """Return the scenario for a run's idea and seed."""
    return Scenario(run.idea, run.seed or 0)


@attrs.define(eq=False)
class FakeAgent:
    """An agent plugin that plays *scenario*, or else for each run what *choose* returns, by *rules*.

    It asks ``host.permit`` before it writes a file, asks the scenario's question, calls ``task_done``
    and follows its replies. From these it also learns which tasks are done, so an interrupted task
    can simply be run again. The scenario's overload happens once in each run, and never in a
    resumed conversation.
    """

    scenario: Scenario | None = None
    choose: Callable[[RunInfo], Scenario] = scenario_of
    rules: ActiveRules = attrs.field(factory=ActiveRules)
    _runs: dict[str, Scenario] = attrs.field(factory=dict[str, Scenario], init=False)
    _overloaded: set[str] = attrs.field(factory=set[str], init=False)
    _prompts: dict[str, str] = attrs.field(factory=dict[str, str], init=False)

    @implements(gsd_lifespan)
    def lifespan(self, run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
        """Keep the run's scenario for as long as the run lasts."""
        yield self._during(run)

    @asynccontextmanager
    async def _during(self, run: RunInfo) -> AsyncGenerator[None]:
        self._runs[run.id] = self.scenario or self.choose(run)
        try:
            yield
        finally:
            del self._runs[run.id]

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task* with the answers of the scenario."""
        scenario = self.scenario or self._runs.get(task.run)
        if scenario is None:
            raise Permanent(
                f"the fake agent has no scenario for run {task.run!r}",
                hint="give it a scenario, or enter its lifespan for this run",
            )
        if (conversation := task.conversation) is not None:
            # A model remembers its conversation: the scenario looks things up in all of its prompts.
            before = self._prompts.get(conversation.id, "") if conversation.resume else ""
            prompts = self._prompts[conversation.id] = f"{before}\n{task.prompt}".lstrip()
            task = attrs.evolve(task, prompt=prompts)
        call = self.rules.begin_call(task.step)
        return await _TaskRun(task, host, scenario, self._overload, self.rules, call).run()

    def _overload(self, task: AgentTask) -> None:
        """Raise ``Outage`` once in each run."""
        resumed = task.conversation is not None and task.conversation.resume
        if task.run in self._overloaded or resumed:
            return
        self._overloaded.add(task.run)
        raise Outage("the scripted model is overloaded (529)")


@attrs.define
class _TaskRun:
    """One task, run for *host*; *overload* may raise in the scenario's overloaded step.

    *call* is the number of this call in the step, *number* that of the task that the executor works on.
    """

    task: AgentTask
    host: AgentHost
    scenario: Scenario
    overload: Callable[[AgentTask], None]
    rules: ActiveRules
    call: int
    number: int = attrs.field(default=0, init=False)
    usage: Usage = attrs.field(factory=Usage, init=False)
    issues: list[str] = attrs.field(factory=list[str], init=False)
    deferred: set[int] = attrs.field(factory=set[int], init=False)

    async def run(self) -> AgentResult:
        """Return the answer of the task's role."""
        step = StepId.parse(self.task.step)
        self.deferred |= deferred_in(self.task.prompt)
        if self.task.role == "executor":
            self.number = self._next_after(0, len(self._tasks(step.detail)))
        await self._turn(Activity(kind="start"))
        if self.task.role == "command" and step.kind == "exec":
            return AgentResult(text=NO_MODEL, model="fake", usage=self.usage)
        value = await self._value(step)
        conversation = self.task.conversation.id if self.task.conversation else ""
        return AgentResult(value=value, conversation=conversation, model="fake", usage=self.usage)

    async def _value(self, step: StepId) -> Any:
        prompt = self.task.prompt
        await self._use_tool()
        await self._ask_scripted()
        if self.task.role == "reviewer":
            for path in listed_files(prompt):
                await self._may_read(path)
        if (wrong := self.rules.take(WrongAnswer, self._moment)) is not None:
            return wrong.value
        match self.task.role:
            case "roadmapper":
                return self.scenario.roadmap(prompt)
            case "planner" if step.kind == "execute":
                return self.scenario.check_decision()
            case "planner":
                answer = self.scenario.plans(step.phase or step.detail, step.round, prompt)
                if checkpoint := self.rules.take(Checkpoint, self._moment):
                    answer["plans"][-1]["tasks"].append(checkpoint.to_json())
                return answer
            case "executor":
                return await self._execute(step.detail)
            case "verifier":
                return await self._verify(step.phase or step.detail)
            case "reviewer":
                return self.scenario.review()
            case "researcher":
                return self.scenario.research()
            case "checker":
                return {"issues": []}
            case "discusser":
                return self.scenario.discussion(prompt)
            case "debugger":
                return self.scenario.diagnoses(prompt)
            case "codebase-mapper":
                return self.scenario.codebase(prompt)
            case role:
                raise Permanent(f"the scenario has no answer for the role {role!r}")

    async def _verify(self, phase: str) -> Any:
        """Read a file of each plan and run a command, then judge; only what was done is cited."""
        asked = self.scenario.asked_in(self.task.prompt, phase)
        if self.rules.take(Lie, self._moment):
            return self.scenario.verdicts(asked, phase, read=self.scenario.files_for(asked, phase))
        files = [path for path in self.scenario.files_for(asked, phase) if await self._may_read(path)]
        command, ran = self.scenario.command_for(asked, phase), list[str]()
        if command and "run_command" in {function.name for function in self.task.functions}:
            reply = await self.host.call("run_command", {"command": command})
            ran = [command] if is_success(reply) else []
            if not files and not ran:
                reply = await self.host.call("run_command", {"command": LAST_RESORT})
                ran = [LAST_RESORT] if is_success(reply) else []
        answer = self.scenario.verdicts(asked, phase, read=files, ran=ran)
        judged = {"", *asked} if asked else set[str]()
        for gap in self.rules.take_each(StayingGap, self._moment, possible=lambda gap: gap.about in judged):
            fail_verdict(answer["verdicts"], gap, self.rules.count(StayingGap))
        return answer

    async def _may_read(self, path: str) -> bool:
        file = self.task.tree / path
        use = ToolUse(
            step=self.task.step,
            name="Read",
            input={"file_path": str(file)},
            asked_by="agent",
            tree=self.task.tree,
            writable=self.task.writable,
        )
        return file.is_file() and isinstance(await self.host.permit(use), Allow)

    async def _execute(self, plan: str) -> Any:
        answer = ""
        last = len(self._tasks(plan))
        for number in range(1, last + 1):
            if number in self.deferred:
                continue
            if number == 2 and self.task.step == self.scenario.overloaded_step:
                self.overload(self.task)
            if self._tasks(plan)[number - 1].asks:
                answer = await self._ask()
            lie = self.rules.take(Lie, self._moment) if self.number == number else None
            if lie and lie.how == "unreported":
                return {**self.scenario.summary(plan, answer, self.issues), "summary": lie.says}
            accepted = await self._do(number, self._tasks(plan, answer)[number - 1], lie)
            if not accepted and number not in self.deferred:
                break
            if self.number == number:
                self.number = self._next_after(number, last)
                await self._use_tool()
                await self._ask_scripted()
                if (wrong := self.rules.take(WrongAnswer, self._moment)) is not None:
                    return wrong.value
        return self.scenario.summary(plan, answer, self.issues)

    def _tasks(self, plan: str, answer: str = "") -> tuple[ScriptedTask, ...]:
        return self.scenario.tasks(plan, answer, self.task.prompt)

    async def _ask(self) -> str:
        question = self.scenario.user_question()
        await self._turn(Activity(kind="tool", tool="AskUserQuestion", text=question.text))
        answers = await self.host.ask([question])
        return answers[0].words

    def _next_after(self, number: int, last: int) -> int:
        """Return the number of the first task after *number* that is not committed; 0 if there is none."""
        passed = committed_before(self.task.prompt) | self.deferred
        return next((n for n in range(number + 1, last + 1) if n not in passed), 0)

    @property
    def _moment(self) -> Moment:
        return moment_of(self.task.step, self.task.role, self.call, self.number)

    async def _use_tool(self) -> None:
        """Ask for permission to use the tools that the scenario file names; nothing is executed."""
        while wanted := self.rules.take(ToolRequest, self._moment):
            if await self._may_use(wanted.tool, wanted.input):
                await self.host.progress(Activity(kind="tool", tool=wanted.tool, text="allowed"))

    async def _ask_scripted(self) -> None:
        may_ask = self.task.tools is None or "AskUserQuestion" in self.task.tools
        while wanted := self.rules.take(UserQuestion, self._moment, possible=lambda _: may_ask):
            await self._turn(Activity(kind="tool", tool="AskUserQuestion", text=wanted.text))
            await self.host.ask([wanted.question])
        functions = {function.name for function in self.task.functions}
        may_ask = ASK_ARCHITECTURE in functions
        while change := self.rules.take(Architecture, self._moment, possible=lambda _: may_ask):
            await self._turn(Activity(kind="tool", tool=ASK_ARCHITECTURE, text=change.text))
            arguments = {"change": change.text, "options": list(change.options)}
            await self.host.call(ASK_ARCHITECTURE, arguments)

    async def _do(self, number: int, task: ScriptedTask, lie: Lie | None) -> bool:
        """Do a task until it is accepted or was tried often enough; return whether it was accepted."""
        reply = ""
        for _ in range(MAX_TRIES):
            for edit in task.edits if lie is None else ():
                await self._write(edit)
            await self._turn(Activity(kind="tool", tool="task_done", text=task.name))
            note = lie.says if lie else task.done
            reply = await self.host.call(
                "task_done", {"task": number, "files": list(task.files), "note": note}
            )
            if is_accepted(reply):
                return True
            if deferred := deferred_in(reply):
                self.deferred |= deferred
                # Not the reply: a summary's issues are quoted to executors of later plans.
                self.issues.append(f"task {number} was not accepted, and the plan goes on without it")
                return False
            lie = self.rules.take(Lie, self._moment, possible=lambda lie: lie.how == "unchanged")
        self.issues.append(f"task {number} was not accepted: {reply[:500]}")
        return False

    async def _write(self, edit: FileEdit) -> None:
        file = self.task.tree / edit.path
        before = file.read_text(encoding="utf-8") if file.is_file() else None
        text = edit.applied(before)
        if text == before or not await self._may_write(file, text):
            return
        await self.host.progress(Activity(kind="tool", tool="Write", text=edit.path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    async def _may_write(self, file: Path, text: str) -> bool:
        return await self._may_use("Write", {"file_path": str(file), "content": text})

    async def _may_use(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Ask whether *tool* may be used; a refusal is an issue in the summary."""
        use = ToolUse(
            step=self.task.step,
            name=tool,
            input=arguments,
            asked_by="agent",
            tree=self.task.tree,
            writable=self.task.writable,
        )
        permission = await self.host.permit(use)
        if isinstance(permission, Ask):
            permission = await self.host.confirm(use, permission.reason)
        if not isinstance(permission, Allow):
            self.issues.append(f"{tool} was refused: {permission.reason}")
            await self.host.progress(Activity(kind="tool", tool=tool, text=f"refused: {permission.reason}"))
        return isinstance(permission, Allow)

    async def _turn(self, activity: Activity) -> None:
        await self._disturb()
        cost = self.rules.take(Cost, self._moment)
        used = Usage(
            input_tokens=cost.input_tokens if cost else 100 + len(self.task.prompt) // 4,
            output_tokens=cost.output_tokens if cost else 20,
            turns=1,
            dollars=cost.dollars if cost else Decimal("0.001"),
            basis="reported",
        )
        if cost and (cost.input_tokens or cost.output_tokens):
            # No model, so there is no price for its tokens.
            used = attrs.evolve(used, dollars=None, basis="unknown")
        self.usage += used
        await self.host.progress(activity, used)

    async def _disturb(self) -> None:
        """Wait or fail as the scenario file says."""
        for waits in (self.rules.take(Slow, self._moment), self.rules.take(Hang, self._moment)):
            if waits is not None:
                await asyncio.sleep(waits.duration.total_seconds())
        if (limit := self.rules.take(UsageLimit, self._moment)) is not None:
            raise api_error(429, "Claude usage limit reached", datetime.now(UTC) + limit.resets_in)
        if self.rules.take(Disconnect, self._moment):
            raise api_error(None, "the connection was closed in the middle of a message")
        if (error := self.rules.take(ApiError, self._moment)) is not None:
            failure = api_error(error.status, f"API Error: {error.status} {error.text}")
            if isinstance(failure, Outage) and error.retry_after is not None:
                failure.until = datetime.now(UTC) + error.retry_after
            raise failure


@attrs.frozen(kw_only=True)
class FakeSettings:
    """The scenario to play; *idea* is the path of a document to use instead of the run's own idea.

    *seed* is used if the run has none. *phases* is 1, 2 or 3; 0 means that the seed decides.
    """

    idea: str = setting("")
    seed: int = setting(0)
    phases: int = setting(0)
    question: bool = setting(True)
    gap: bool = setting(True)
    overloaded: bool = setting(True)
    discuss: bool = setting(False)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``fake``."""
    return (FakeSettings,)


def _by_settings(run: RunInfo) -> Scenario:
    chosen = settings_of(FakeSettings)
    return Scenario(
        Path(chosen.idea).read_text(encoding="utf-8") if chosen.idea else run.idea,
        chosen.seed if run.seed is None else run.seed,
        phases=chosen.phases or None,
        question=chosen.question,
        gap=chosen.gap,
        overloaded=chosen.overloaded,
        discuss=chosen.discuss,
    )


_agent = FakeAgent(choose=_by_settings)
lifespan = _agent.lifespan
run_agent = _agent.run_agent
