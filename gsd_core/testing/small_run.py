"""A whole run in this process, with an author's plugins and small stand-ins for everything else.

It is the real engine: the journal, git, the guard and the calls of the plugins are those of ``gsd run``. What
is replaced is slow or costs money: the steps are those of a scripted executor, and the agent writes files.
There is no Claude Code, no network and no sandbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Sized
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from gsd_core.errors import ConfigError, Permanent
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import (
    RunInfo,
    gsd_answer,
    gsd_execute_step,
    gsd_on_event,
    gsd_permit_tool,
    gsd_run_agent,
    gsd_workspace,
)
from gsd_core.machine.state import Options, RunOutcome
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, Permission, ToolUse
from gsd_core.model.event import Event
from gsd_core.model.gap import Evidence, GapReport
from gsd_core.model.question import Answer, Inquiry, Question
from gsd_core.model.step import FileWrite, StepHost, StepRequest, StepResult, Verified
from gsd_core.planning.changes import ListPlans, TickPhase
from gsd_core.planning.model import MustHaves, PlannedPhase, Truth
from gsd_core.planning.must_haves import required_of
from gsd_core.planning.plan import render_plan
from gsd_core.planning.project import render_project
from gsd_core.planning.roadmap import render_roadmap
from gsd_core.planning.state import render_state
from gsd_core.planning.verification import render_verification
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import collect_settings
from gsd_core.run.runtime import RunEnd, RunRequest
from gsd_core.run.start import run_project
from gsd_core.settings import CORE_SECTIONS, Layer, resolve

from .fakes import ScriptedHuman
from .registry import make_hooks
from .samples import a_plan, a_question, make_repository, run_git, write_files

LIMIT = timedelta(seconds=60)
"""How long a small run may take, unless a test says otherwise; most take less than a second."""

FILES: Mapping[str, str] = {"app.py": "def add(a: int, b: int) -> int:\n    return a + b\n"}
"""What the agent of a small run writes, unless a test says otherwise."""

_PHASE = PlannedPhase(
    number="1", name="One", goal="The first thing works", criteria=("the first thing works",)
)


def _count(values: Sized) -> str:
    return f"<{len(values)}>"


@attrs.frozen(kw_only=True)
class SmallRun:
    """How a small run ended, and what it did, in order.

    *exit* is the exit code, *reason* says why it ended. *files* are the texts of the project's files by path,
    without git's own. *calls* are the tasks that went to the scripted agent, *steps* the requests that the
    scripted executor got, *questions* the inquiries that the scripted human saw. *subjects* are the first
    lines of the commits, the oldest first. Its ``repr`` leaves out the long ones, because pytest shows it
    for each assertion that fails.
    """

    exit: int
    outcome: RunOutcome
    reason: str
    root: Path
    events: tuple[Event, ...] = attrs.field(default=(), repr=_count)
    files: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=_count)
    calls: tuple[AgentTask, ...] = attrs.field(default=(), repr=_count)
    steps: tuple[StepRequest, ...] = attrs.field(default=(), repr=_count)
    questions: tuple[Inquiry, ...] = attrs.field(default=(), repr=_count)
    subjects: tuple[str, ...] = attrs.field(default=(), repr=_count)

    def named(self, name: str) -> tuple[Event, ...]:
        """Return the events with that name, such as ``step.completed``."""
        return tuple(event for event in self.events if event.name == name)

    @property
    def failures(self) -> tuple[str, ...]:
        """What the plugins' failures say, each with the plugin and the hook."""
        failed = [event.data for event in self.named("plugin.failed")]
        return tuple(f"{one['plugin']} ({one['hook']}): {one['error']}" for one in failed)


@attrs.define(eq=False)
class SmallWork:
    """A plugin that plans, executes, verifies and completes the one phase of a small run, and its agent.

    The agent writes *writes*, asks about each file whether it may, and runs no command.
    """

    writes: Mapping[str, str]
    steps: list[StepRequest] = attrs.field(factory=list[StepRequest], init=False)
    calls: list[AgentTask] = attrs.field(factory=list[AgentTask], init=False)
    events: list[Event] = attrs.field(factory=list[Event], init=False)

    @implements(gsd_execute_step, trylast=True)
    async def execute_step(self, step: StepRequest, host: StepHost) -> StepResult | None:
        """Do one of the phase's steps."""
        self.steps.append(step)
        folder = step.phase.directory if step.phase else ""
        number = "-".join(["01", f"{1 + len(step.phase.plans if step.phase else ()):02}"])
        match step.kind:
            case "discuss":
                question = a_question("Which database?", "SQLite", "PostgreSQL")
                [answer] = await host.ask(Inquiry(step=step.id, questions=(question,), reason="it is open"))
                chosen = ", ".join(answer.chosen) or answer.text
                text = f"# Phase 1: One - Context\n\n## Implementation Decisions\n\n- Database: {chosen}\n"
                return _result("docs(01): capture phase context", f"{folder}/01-CONTEXT.md", text)
            case "plan":
                path = f"{folder}/{number}-PLAN.md"
                holds = MustHaves(truths=(Truth(id=f"{number}:T1", text="the first thing works"),))
                plan = a_plan(*self.writes, id=number, name="Build it", must_haves=holds, path=path)
                file = FileWrite(path=path, text=render_plan(plan))
                listed = ListPlans(phase="1", plans=((plan.id, plan.name),))
                return StepResult(subject="docs(01): plan phase", files=(file,), changes=(listed,))
            case "execute":
                return await self._execute(step, host)
            case "verify":
                return _verify(step)
            case "complete":
                tick = TickPhase(phase="1", date=step.now.date().isoformat())
                return StepResult(subject="docs(phase-01): complete phase execution", changes=(tick,))
            case _:
                return None

    async def _execute(self, step: StepRequest, host: StepHost) -> StepResult:
        assert step.plan is not None
        assert step.phase is not None
        prompt = "Write the files."
        task = AgentTask(step=step.id, role="executor", prompt=prompt, tree=step.tree, run=step.run)
        await host.run_agent("execute", task)
        for one in step.plan.tasks:
            commit = await host.commit_task(one, f"feat({step.plan.id}): {one.name}", one.files)
            if commit.problem:
                raise Permanent(f"task {one.number} of plan {step.plan.id}: {commit.problem}")
        text = f"---\nphase: 01-one\nplan: {step.detail[-2:]}\n---\n\n# Summary\n\nIt is built.\n"
        path = f"{step.phase.directory}/{step.plan.id}-SUMMARY.md"
        return _result(f"docs({step.plan.id}): complete plan", path, text)

    @implements(gsd_run_agent, trylast=True)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Write the files that the policies permit."""
        self.calls.append(task)
        for path, text in self.writes.items():
            given = {"file_path": str(task.tree / path), "content": text}
            use = ToolUse(step=task.step, name="Write", input=given, asked_by="agent", tree=task.tree)
            if isinstance(await host.permit(use), Allow):
                write_files(task.tree, {path: text})
        return AgentResult(text="done", value={})

    @implements(gsd_workspace, trylast=True)
    async def workspace(self, step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
        """Work in the project's own folder."""
        return nullcontext(step.project)

    @implements(gsd_permit_tool)
    async def permit(self, use: ToolUse) -> Permission | None:
        """Permit everything: a policy of the test that denies or asks is stronger."""
        return Allow()

    @implements(gsd_on_event)
    async def observe(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)


class SmallHuman(ScriptedHuman):
    """The human of a small run: without a scripted answer, it chooses the recommended option, if any."""

    def _answer(self, question: Question) -> Answer | None:
        label = next((option.label for option in question.options if option.recommended), "")
        chosen = Answer(question=question.id, chosen=(label,), by="script") if label else None
        return super()._answer(question) or (None if self.answers else chosen)


def run_small(
    root: Path,
    *plugins: object,
    files: Mapping[str, str] | None = None,
    writes: Mapping[str, str] = FILES,
    answers: Mapping[str, str | Sequence[str]] | None = None,
    settings: Sequence[object] = (),
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    limit: timedelta = LIMIT,
    **named: object,
) -> SmallRun:
    """Run a project of one phase in *root*, a new folder, with *plugins*; return how it ended.

    *plugins* are modules, or objects with marked methods; *named* gives them their names. The project begins
    with *files* and a roadmap; the agent writes *writes*. The human gives *answers*, by a part of the
    question (``database``) or of its header; without them, the recommended ones, unless a plugin answers.
    *settings* are instances of settings classes, and win over *sections*, settings as in ``gsd.toml``.
    Raises ``ConfigError`` for an invalid plugin or setting, and ``AssertionError`` if the run has not ended
    after *limit*: it names the open questions that the run waits for.
    """
    _make_project(root, files or {})
    work, human = SmallWork(dict(writes)), SmallHuman(answers or {})
    given = make_hooks(*plugins, **named)
    stand_ins: dict[str, object] = {"small": work}
    if answers is not None or not given.plugins_of(gsd_answer):
        stand_ins["human"] = human
    if taken := set(stand_ins) & {name for name, _ in given.manager.list_name_plugin()}:
        raise ConfigError(f"the name {min(taken)!r} belongs to the small run", hint="give the plugin another")
    # The stand-ins come first: so the plugins of the test are called before them.
    hooks = make_hooks(**stand_ins, **dict(given.manager.list_name_plugin()))
    end = asyncio.run(_limited(_request(root, hooks, given, settings, sections or {}), work.events, limit))
    return SmallRun(
        exit=end.exit,
        outcome=end.outcome,
        reason=end.reason,
        root=root,
        events=tuple(work.events),
        files=_texts(root),
        calls=tuple(work.calls),
        steps=tuple(work.steps),
        questions=tuple(Inquiry(step="", questions=(one,)) for one in human.asked),
        subjects=tuple(run_git(root, "log", "--reverse", "--format=%s").splitlines()),
    )


async def _limited(request: RunRequest, events: Sequence[Event], limit: timedelta) -> RunEnd:
    """Run the project; raise ``AssertionError`` if that takes longer than *limit*."""
    timeout = asyncio.timeout(limit.total_seconds())
    try:
        async with timeout:
            return await run_project(request)
    except TimeoutError:
        if not timeout.expired():
            raise
    raise AssertionError(f"the run has not ended after {limit}: {_what_it_waits_for(events)}")


def _what_it_waits_for(events: Sequence[Event]) -> str:
    waiting: dict[str, str] = {}
    for event in events:
        match event.name:
            case "question.asked":
                for one in event.data["inquiry"]["questions"]:
                    waiting[one["id"]] = f"- {one['text']} ({event.step})"
            case "question.answered":
                waiting.pop(event.data["question"], None)
            case "question.withdrawn":
                for name in event.data["questions"]:
                    waiting.pop(name, None)
            case _:
                pass
    if not waiting:
        last = f"the last event is {events[-1].name} {events[-1].step}".rstrip() if events else "no event"
        return f"no question is open, {last}"
    listed = "\n".join(waiting.values())
    return (
        f"it waits for answers to\n{listed}\n"
        "Answer in the test as a person would, or give the run answers={...} for the scripted human."
    )


def _request(
    root: Path,
    hooks: Hooks,
    given: Hooks,
    settings: Sequence[object],
    sections: Mapping[str, Mapping[str, Any]],
) -> RunRequest:
    """Return the run; plugins of the test that do part of the work are asked before the stand-ins."""
    run: dict[str, Any] = {
        "agent": [*given.plugins_of(gsd_run_agent), "small"],
        "execute": [*given.plugins_of(gsd_execute_step), "small"],
        "workspace": [*given.plugins_of(gsd_workspace), "small"],
        "sandbox": "off",
        "audit": False,
        "gap_rounds": 0,
        **sections.get("run", {}),
    }
    layer = Layer(origin="the test", sections={**sections, "run": run})
    found = resolve((*CORE_SECTIONS, *collect_settings(hooks)), [layer])
    overridden = {type(value): value for value in settings}
    return RunRequest(
        root=root,
        idea=None,
        settings=attrs.evolve(found, values={**found.values, **overridden}),
        hooks=hooks,
        plugins=(),
        info=RunInfo(id="", project=root, no_input=True, agent="small"),
        options=Options(gap_rounds=run["gap_rounds"]),
        clock=lambda: datetime.now(UTC),
    )


def _result(subject: str, path: str, text: str) -> StepResult:
    return StepResult(subject=subject, files=(FileWrite(path=path, text=text),))


def _verify(step: StepRequest) -> StepResult:
    """Report the detectors' gaps; everything that they say nothing about holds."""
    assert step.phase is not None
    report = step.report or GapReport()
    known = {gap.about for gap in report.gaps} | {one.about for one in report.evidence}
    known |= {check.about for check in report.human}
    executed = [plan for plan in step.phase.plans if plan.summary]
    left = [one for one in required_of(step.phase, executed) if known.isdisjoint(one.ids)]
    holds = [Evidence(about=one.ids[0], holds=True, proof="scripted", by="small") for one in left]
    report = attrs.evolve(report, evidence=(*report.evidence, *holds))
    text = render_verification(step.phase, report, now=step.now, previous=step.phase.verdict)
    file = FileWrite(path=f"{step.phase.directory}/01-VERIFICATION.md", text=text)
    return StepResult(subject="docs(01): verify phase", outcome=Verified(report=report), files=(file,))


def _make_project(root: Path, files: Mapping[str, str]) -> None:
    """Make a repository with a roadmap and *files*, committed."""
    date = "2030-01-01"
    planning = {
        "PROJECT.md": render_project("Small", "A project for tests.", "It works.", (), (), (), (), date),
        "ROADMAP.md": render_roadmap("Small", "It is built in one phase.", (_PHASE,), date),
        "STATE.md": render_state(core_value="It works.", phases=(_PHASE,), date=date),
    }
    make_repository(root, {**{f".planning/{name}": text for name, text in planning.items()}, **files})


def _texts(root: Path) -> dict[str, str]:
    paths = sorted(path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8", errors="replace")
        for path in paths
    }
