"""An agent that plays a scenario without the CLI and without any process, in milliseconds.

This module is also a plugin, for tests that start ``gsd`` in a separate process:
``gsd run idea.md -p gsd_plugins.rehearsal.fake --agent fake``. The settings of its section can be set by
variables, too: ``GSD_FAKE_IDEA``, ``GSD_FAKE_SEED``, ``GSD_FAKE_PHASES`` …
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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

from .plans import ScriptedTask
from .product import FileEdit
from .scenario import LAST_RESORT, Scenario, is_accepted, is_success

MAX_TRIES = 3


def scenario_of(run: RunInfo) -> Scenario:
    """Return the scenario for a run's idea and seed."""
    return Scenario(run.idea, run.seed or 0)


@attrs.define(eq=False)
class FakeAgent:
    """An agent plugin that plays *scenario*, or else for each run what *choose* returns.

    It asks ``host.permit`` before it writes a file, asks the scenario's question, calls ``task_done``
    and follows its replies. From these it also learns which tasks are done, so an interrupted task
    can simply be run again. The scenario's overload happens once in each run, and never in a
    resumed conversation.
    """

    scenario: Scenario | None = None
    choose: Callable[[RunInfo], Scenario] = scenario_of
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
        return await _TaskRun(task, host, scenario, self._overload).run()

    def _overload(self, task: AgentTask) -> None:
        """Raise ``Outage`` once in each run."""
        resumed = task.conversation is not None and task.conversation.resume
        if task.run in self._overloaded or resumed:
            return
        self._overloaded.add(task.run)
        raise Outage("the scripted model is overloaded (529)")


@attrs.define
class _TaskRun:
    """One task, run for *host*; *overload* may raise in the scenario's overloaded step."""

    task: AgentTask
    host: AgentHost
    scenario: Scenario
    overload: Callable[[AgentTask], None]
    usage: Usage = attrs.field(factory=Usage, init=False)
    issues: list[str] = attrs.field(factory=list[str], init=False)

    async def run(self) -> AgentResult:
        """Return the answer of the task's role."""
        await self._turn(Activity(kind="start"))
        value = await self._value(StepId.parse(self.task.step))
        conversation = self.task.conversation.id if self.task.conversation else ""
        return AgentResult(value=value, conversation=conversation, model="fake", usage=self.usage)

    async def _value(self, step: StepId) -> Any:
        prompt = self.task.prompt
        match self.task.role:
            case "roadmapper":
                return self.scenario.roadmap(prompt)
            case "planner" if step.kind == "execute":
                return self.scenario.check_decision()
            case "planner":
                return self.scenario.plans(step.phase, step.round, prompt)
            case "executor":
                return await self._execute(step.detail)
            case "verifier":
                return await self._verify(step.phase)
            case "researcher" | "discusser":
                raise Permanent(f"the scenario has no answer for the role {self.task.role!r}")

    async def _verify(self, phase: str) -> Any:
        """Read a file of each plan and run a command, then judge; only what was done is cited."""
        asked = self.scenario.asked_in(self.task.prompt, phase)
        files = [path for path in self.scenario.files_for(asked, phase) if await self._may_read(path)]
        command, ran = self.scenario.command_for(asked, phase), list[str]()
        if command and "run_command" in {function.name for function in self.task.functions}:
            reply = await self.host.call("run_command", {"command": command})
            ran = [command] if is_success(reply) else []
            if not files and not ran:
                reply = await self.host.call("run_command", {"command": LAST_RESORT})
                ran = [LAST_RESORT] if is_success(reply) else []
        return self.scenario.verdicts(asked, phase, read=files, ran=ran)

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
        for number in range(1, len(self._tasks(plan)) + 1):
            if number == 2 and self.task.step == self.scenario.overloaded_step:
                self.overload(self.task)
            if self._tasks(plan)[number - 1].asks:
                answer = await self._ask()
            if not await self._do(number, self._tasks(plan, answer)[number - 1]):
                break
        return self.scenario.summary(plan, answer, self.issues)

    def _tasks(self, plan: str, answer: str = "") -> tuple[ScriptedTask, ...]:
        return self.scenario.tasks(plan, answer, self.task.prompt)

    async def _ask(self) -> str:
        question = self.scenario.user_question()
        await self._turn(Activity(kind="tool", tool="AskUserQuestion", text=question.text))
        answers = await self.host.ask([question])
        return answers[0].words

    async def _do(self, number: int, task: ScriptedTask) -> bool:
        """Do a task until it is accepted or was tried often enough; return whether it was accepted."""
        reply = ""
        for _ in range(MAX_TRIES):
            for edit in task.edits:
                await self._write(edit)
            await self._turn(Activity(kind="tool", tool="task_done", text=task.name))
            arguments = {"task": number, "files": list(task.files), "note": task.done}
            reply = await self.host.call("task_done", arguments)
            if is_accepted(reply):
                return True
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
        use = ToolUse(
            step=self.task.step,
            name="Write",
            input={"file_path": str(file), "content": text},
            asked_by="agent",
            tree=self.task.tree,
            writable=self.task.writable,
        )
        permission = await self.host.permit(use)
        if isinstance(permission, Ask):
            permission = await self.host.confirm(use, permission.reason)
        if not isinstance(permission, Allow):
            self.issues.append(f"Write was refused: {permission.reason}")
        return isinstance(permission, Allow)

    async def _turn(self, activity: Activity) -> None:
        tokens = 100 + len(self.task.prompt) // 4
        used = Usage(
            input_tokens=tokens, output_tokens=20, turns=1, dollars=Decimal("0.001"), basis="reported"
        )
        self.usage += used
        await self.host.progress(activity, used)


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
    )


_agent = FakeAgent(choose=_by_settings)
lifespan = _agent.lifespan
run_agent = _agent.run_agent
