"""An agent without a model: it plays a scenario at the level of ``gsd_run_agent``, in milliseconds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from gsd_core.errors import Permanent, Transient
from gsd_core.hookspecs import RunInfo, gsd_lifespan, gsd_run_agent
from gsd_core.markers import implements
from gsd_core.model.agent import Activity, AgentHost, AgentResult, AgentTask, Allow, Ask, ToolUse
from gsd_core.model.ids import StepId
from gsd_core.model.usage import Usage

from .scenario import Scenario, accepted
from .scenario.product import FileEdit
from .scenario.work import Job

TRIES = 3
"""How often a task is tried before the executor gives up."""


def of_run(run: RunInfo) -> Scenario:
    """Return the scenario of a run's idea and seed."""
    return Scenario(run.idea, run.seed or 0)


@define(eq=False)
class FakeAgent:
    """A plugin that is an agent: it plays *scenario*, or that of each run's idea.

    It writes the files of each task after ``host.permit``, asks the scenario's question, calls
    ``task_done`` and obeys its reply. What is done already it learns from there, so a task that was
    broken off can be given again. The overload is met once for each run, never by a conversation
    that is resumed.
    """

    scenario: Scenario | None = None
    choose: Callable[[RunInfo], Scenario] = of_run
    _runs: dict[str, Scenario] = field(factory=dict[str, Scenario], init=False)
    _overloaded: set[str] = field(factory=set[str], init=False)
    _told: dict[str, str] = field(factory=dict[str, str], init=False)

    @implements(gsd_lifespan)
    def lifespan(self, run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
        """Remember what the run is about, for as long as it lasts."""
        yield self._remembering(run)

    @asynccontextmanager
    async def _remembering(self, run: RunInfo) -> AsyncGenerator[None]:
        self._runs[run.id] = self.scenario or self.choose(run)
        try:
            yield
        finally:
            del self._runs[run.id]

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task* as the scenario has it."""
        scenario = self.scenario or self._runs.get(task.run)
        if scenario is None:
            raise Permanent(f"the fake agent knows no scenario for run {task.run!r}", hint="give it one")
        return await Performance(self._reminded(task), host, scenario, self._overload).play()

    def _reminded(self, task: AgentTask) -> AgentTask:
        """Return *task* with everything that its conversation was told in this process."""
        if task.conversation is None:
            return task
        before = self._told.get(task.conversation.id, "") if task.conversation.resume else ""
        told = self._told[task.conversation.id] = f"{before}\n{task.prompt}".lstrip()
        return evolve(task, prompt=told)

    def _overload(self, task: AgentTask) -> None:
        """Refuse one request of each run."""
        resumed = task.conversation is not None and task.conversation.resume
        if task.run in self._overloaded or resumed:
            return
        self._overloaded.add(task.run)
        raise Transient("the scripted model is overloaded (529)")


@define
class Performance:
    """One task, played for *host*; *overload* may refuse it at the scenario's step."""

    task: AgentTask
    host: AgentHost
    scenario: Scenario
    overload: Callable[[AgentTask], None]
    usage: Usage = field(factory=Usage, init=False)
    issues: list[str] = field(factory=list[str], init=False)

    async def play(self) -> AgentResult:
        """Return the value that the task's role is expected to give."""
        await self._turn(Activity(kind="start"))
        value = await self._value(StepId.parse(self.task.step))
        conversation = self.task.conversation.id if self.task.conversation else ""
        return AgentResult(value=value, conversation=conversation, model="fake", usage=self.usage)

    async def _value(self, step: StepId) -> Any:
        about = self.task.prompt
        match self.task.role:
            case "roadmapper":
                return self.scenario.roadmap()
            case "planner":
                return self.scenario.plans(step.phase, step.round, about)
            case "executor":
                return await self._execute(step.detail)
            case "verifier":
                return self.scenario.verdicts(self.scenario.truths_in(about, step.phase))
            case "researcher" | "discusser":
                raise Permanent(f"the scenario has nothing to say as a {self.task.role}")

    async def _execute(self, plan: str) -> Any:
        answer = ""
        for number in range(1, len(self._jobs(plan)) + 1):
            if number == 2 and self.task.step == self.scenario.overloaded_step:
                self.overload(self.task)
            if self._jobs(plan)[number - 1].asks:
                answer = await self._ask()
            if not await self._do(number, self._jobs(plan, answer)[number - 1]):
                break
        return self.scenario.summary(plan, answer, self.issues)

    def _jobs(self, plan: str, answer: str = "") -> tuple[Job, ...]:
        return self.scenario.jobs(plan, answer, self.task.prompt)

    async def _ask(self) -> str:
        question = self.scenario.asked()
        await self._turn(Activity(kind="tool", tool="AskUserQuestion", text=question.text))
        answers = await self.host.ask([question])
        return answers[0].words

    async def _do(self, number: int, job: Job) -> bool:
        """Do a task until it is accepted; tell whether it was."""
        reply = ""
        for _ in range(TRIES):
            for edit in job.edits:
                await self._write(edit)
            await self._turn(Activity(kind="tool", tool="task_done", text=job.name))
            told = {"task": number, "files": list(job.files), "note": job.done}
            reply = await self.host.call("task_done", told)
            if accepted(reply):
                return True
        self.issues.append(f"task {number} was not accepted: {reply[:500]}")
        return False

    async def _write(self, edit: FileEdit) -> None:
        file = self.task.tree / edit.path
        before = file.read_text(encoding="utf-8") if file.is_file() else None
        text = edit.applied(before)
        if text == before or not await self._may("Write", {"file_path": str(file), "content": text}):
            return
        await self.host.progress(Activity(kind="tool", tool="Write", text=edit.path))
        _put(file, text)

    async def _may(self, tool: str, arguments: dict[str, Any]) -> bool:
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
        return isinstance(permission, Allow)

    async def _turn(self, activity: Activity) -> None:
        tokens = 100 + len(self.task.prompt) // 4
        used = Usage(
            input_tokens=tokens, output_tokens=20, turns=1, dollars=Decimal("0.001"), basis="reported"
        )
        self.usage += used
        await self.host.progress(activity, used)


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
