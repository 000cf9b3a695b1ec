"""What a step may do: keyed, durable calls. Asked again after a crash, the answer is the record.

One step: wrap, workspace, execute; what it returns is recorded before it is landed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from attrs import define, evolve, field, frozen

from gsd_core.errors import (
    ConfigError,
    GsdError,
    Parked,
    Permanent,
    PluginError,
    StepError,
    Transient,
    error_kind,
)
from gsd_core.hookspecs import gsd_execute_step, gsd_workspace, gsd_wrap_step
from gsd_core.journal.codec import unstructure
from gsd_core.machine.due import Start
from gsd_core.model.agent import AgentResult, AgentTask
from gsd_core.model.checks import CheckResult
from gsd_core.model.gap import GapReport
from gsd_core.model.ids import StepId
from gsd_core.model.question import Answer, Inquiry
from gsd_core.model.step import Accept, Effect, Functions, StepRequest, StepResult, TaskCommit, Verified
from gsd_core.planning.model import Plan, Task
from gsd_core.plugins.contexts import PluginContext, entered
from gsd_core.plugins.isolation import in_core
from gsd_core.plugins.validation import validate_storable
from gsd_core.sanitize import clip, redact, sanitize

from .agent_call import AgentCall, run_agent
from .permission import Gate
from .questions import ask, ask_for_a_while
from .runtime import Run
from .tasks import commit_task, committed_tasks
from .timeouts import AgentTimeouts, InactivityTimeout
from .verification import check, detect, merge_gaps


@define(kw_only=True)
class Host:
    """The host of one attempt; *agents* are the calls under way."""

    run: Run
    step: StepRequest
    gate: Gate
    patience: InactivityTimeout
    parked: Parked | None = field(default=None, init=False)
    agents: int = field(default=0, init=False)

    @property
    def tree(self) -> Path:
        """Where the step works."""
        return self.step.tree

    @contextmanager
    def _at_work(self) -> Generator[None]:
        """The core is at work: the executor is not to blame for what goes wrong or takes long."""
        with in_core(), self.patience.paused():
            yield

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """See :class:`gsd_core.StepHost`."""
        with self._at_work():
            return await self._run_agent(key, task, accept, functions or {})

    async def _run_agent(
        self, key: str, task: AgentTask, accept: Accept | None, functions: Functions
    ) -> AgentResult:
        limits = evolve(task.limits, idle=self.run.limits.idle, hard=self.run.limits.hard)
        who = f"the agent {' or '.join(map(repr, self.run.settings.agent))}"
        clocks = AgentTimeouts(idle=limits.idle, hard=limits.hard, who=who)
        call = AgentCall(
            run=self.run,
            step=self.step.id,
            attempt=self.step.attempt,
            key=key,
            gate=self.gate,
            functions=functions,
            clocks=clocks,
        )
        self.agents += 1
        try:
            return await run_agent(call, evolve(task, limits=limits), accept)
        except Parked as exc:
            self.parked = exc
            raise
        finally:
            self.agents -= 1

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """See :class:`gsd_core.StepHost`."""
        texts = "\0".join(question.text for question in inquiry.questions)
        occasion = f"{inquiry.kind} {hashlib.sha256(texts.encode()).hexdigest()[:12]}"
        try:
            with self._at_work():
                asks = ask_for_a_while if self.agents else ask
                return await asks(self.run, inquiry, step=self.step.id, occasion=occasion)
        except Parked as exc:
            self.parked = exc
            raise

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str]) -> TaskCommit:
        """See :class:`gsd_core.StepHost`."""
        with self._at_work():
            return await commit_task(self.run, self.step, self.gate, task, subject, paths)

    async def check(self, command: str) -> CheckResult:
        """See :class:`gsd_core.StepHost`."""
        with self._at_work():
            return await check(self.gate, command, self.tree, self.run.limits.check)

    async def declare(self, effect: Effect) -> None:
        """See :class:`gsd_core.StepHost`."""
        self.run.record("attempt.declared", {"effect": effect}, step=self.step.id, attempt=self.step.attempt)


@frozen(kw_only=True)
class Attempt:
    """An attempt that came to its end: the request with what was detected, and what came of it."""

    step: StepRequest
    executor: str
    result: StepResult


async def run_step(run: Run, start: Start) -> None:
    """Do a step; its end is a recorded result, a failure, a timer, or a parked attempt."""
    request = await _request(run, start)

    made: list[Attempt] = []
    patience = InactivityTimeout(run.hooks, gsd_wrap_step, run.limits.hard)

    async def attempt(step: StepRequest, /) -> StepResult:
        with patience.paused():
            made[:] = [await _attempt(run, step, start)]
            return made[0].result

    try:
        async with patience.running():
            result = await run.hooks.wrap(gsd_wrap_step, attempt, StepResult)(request)
        result = _wrapped(run, made, result)
    except Parked:
        return
    except GsdError as exc:
        _failed(run, request.id, exc)
        return
    _record_result(run, request, result)


async def _request(run: Run, start: Start) -> StepRequest:
    step = start.step
    phase = run.planning.phase(step.phase) if step.phase else None
    plan = next((p for p in phase.plans if p.id == step.detail), None) if phase else None
    report = GapReport(gaps=phase.verdict.gaps) if start.for_gaps and phase and phase.verdict else None
    return StepRequest(
        id=str(step),
        run=run.id,
        kind=step.kind,
        project=run.root,
        tree=run.root,
        phase=phase,
        plan=plan,
        round=step.round,
        idea=run.idea if step.kind == "init" else None,
        report=report,
        tasks_done=await _tasks_done(run, step, plan),
        profile=run.settings.profile,
        depth=run.settings.depth,
        model=run.settings.model,
        planning=run.planning,
        now=run.now(),
    )


async def _tasks_done(run: Run, step: StepId, plan: Plan | None) -> tuple[int, ...]:
    """Return the numbers of the plan's committed tasks: from the journal, else from the history."""
    if plan is None or step.kind != "execute":
        return ()
    found = {
        fact.data["task"]
        for fact in run.journal.events(run=run.id, kinds=["task.committed"])
        if fact.step == str(step)
    }
    known = await committed_tasks(run, str(step), plan)
    return tuple(t.number for t in plan.tasks if t.number in known or f"{plan.id}/{t.number}" in found)


async def _attempt(run: Run, step: StepRequest, start: Start) -> Attempt:
    """One attempt, stamped and recorded from its start to whatever ends it."""
    step = evolve(step, attempt=run.step(step.id).attempt + 1, now=run.now())
    await _record_start(run, step, start)
    step = evolve(step, began=run.step(step.id).started_at)
    try:
        return await _execute(run, step)
    except asyncio.CancelledError:
        _lost(run, step, {"why": "stopped"})
        raise
    except Parked as exc:
        if not _asked(run, exc.questions):
            run.record("attempt.failed", {"error": failure(exc)}, step=step.id, attempt=step.attempt)
            message = f"{exc.plugin!r} waits for an answer to what nobody asked: {exc}"
            raise Permanent(message, hint="a step is parked by asking its host") from exc
        _lost(run, step, {"why": "parked", "questions": list(exc.questions)})
        raise
    except GsdError as exc:
        run.record("attempt.failed", {"error": failure(exc)}, step=step.id, attempt=step.attempt)
        raise


async def _record_start(run: Run, step: StepRequest, start: Start) -> None:
    record = run.step(step.id)
    # What an attempt left lying about is the next one's to finish, also where that begins afresh.
    again = record.attempt > 0 and record.status not in ("completed", "skipped")
    data = {
        "kind": step.kind,
        "phase": start.step.phase,
        "plan": start.step.detail,
        "round": step.round,
        "for_gaps": start.for_gaps,
        "executor": list(run.settings.execute),
        "agent": list(run.settings.agent),
        "base_commit": await run.git.head() or "",
        "dirty_before": list(record.dirty_before if again else await run.git.changed(())),
    }
    run.record("attempt.started", data, step=step.id, attempt=step.attempt)


def _asked(run: Run, questions: Collection[str]) -> bool:
    """Whether a human was asked one of *questions*: their answer is what enters the step again."""
    known = {q.id for record in run.state.inquiries.values() for q in record.inquiry.questions}
    return bool(known & set(questions))


def _lost(run: Run, step: StepRequest, data: Mapping[str, Any]) -> None:
    run.record("attempt.lost", data, step=step.id, attempt=step.attempt)


async def _execute(run: Run, step: StepRequest) -> Attempt:
    async with AsyncExitStack() as stack:
        step = evolve(step, tree=await _workspace(run, step, stack))
        gate = Gate(run, step.id)
        if step.kind == "verify":
            step = await detect(run, step, gate)
        patience = InactivityTimeout(run.hooks, gsd_execute_step, run.limits.hard)
        host = Host(run=run, step=step, gate=gate, patience=patience)
        async with patience.running():
            outcome = await run.hooks.pick(gsd_execute_step, run.settings.execute, StepResult, step, host)
        if host.parked:
            raise host.parked
        if outcome is None or outcome.value is None:
            raise ConfigError(f"no plugin executes {step.id!r}: {', '.join(run.settings.execute)} declined")
        result = _checked(step, outcome.value, outcome.plugin, "gsd_execute_step")
        return Attempt(step=step, executor=outcome.plugin, result=result)


async def _workspace(run: Run, step: StepRequest, stack: AsyncExitStack) -> Path:
    """Enter the tree that the step works in; where it is no folder, its plugin is to blame."""
    kind = cast("type[AbstractAsyncContextManager[Path]]", AbstractAsyncContextManager)
    async with InactivityTimeout(run.hooks, gsd_workspace, run.limits.hard).running():
        outcome = await run.hooks.pick(gsd_workspace, run.settings.workspace, kind, step)
    if outcome is None or outcome.value is None:
        raise ConfigError(f"no workspace for {step.id!r}: {', '.join(run.settings.workspace)} declined")
    guest = PluginContext(
        plugin=outcome.plugin, hook="gsd_workspace", context=outcome.value, grace=run.hooks.grace
    )
    tree: object = await stack.enter_async_context(entered(guest, run.limits.hard))
    if not isinstance(tree, Path) or not tree.is_dir():
        raise PluginError(outcome.plugin, "gsd_workspace", f"gave {tree!r:.200}, which is no folder")
    return tree


def _checked(step: StepRequest, result: StepResult, plugin: str, hook: str) -> StepResult:
    """Merge what the detectors found in again: no plugin can drop a gap."""
    if why := validate_storable(result, StepResult):
        raise PluginError(plugin, hook, why)
    if step.kind != "verify":
        return result
    if not isinstance(result.outcome, Verified):
        raise PluginError(plugin, hook, "a verify step has to return Verified")
    return merge_gaps(step, result, plugin)


def _wrapped(run: Run, made: Sequence[Attempt], result: StepResult) -> StepResult:
    """Return what came out of the wrappers, if it came of an attempt, with every gap still in it."""
    wrappers = ", ".join(run.hooks.plugins_of(gsd_wrap_step))
    if not made:
        raise PluginError(wrappers, "gsd_wrap_step", "returned a result without an attempt at the step")
    [last] = made
    if result is last.result:
        return result
    return _checked(last.step, result, wrappers, "gsd_wrap_step")


def failure(exc: GsdError) -> dict[str, Any]:
    """Return an error as it stands in the journal."""
    until = exc.until if isinstance(exc, Transient) else None
    return {
        "kind": error_kind(exc),
        "message": clip(redact(sanitize(str(exc))), 2000),
        "hint": sanitize(exc.hint),
        "until": until.isoformat() if until else None,
        "plugin": exc.plugin if isinstance(exc, StepError | PluginError) else "",
    }


def _failed(run: Run, step: str, exc: GsdError) -> None:
    """Set a timer if it is a matter of time, else fail the step."""
    until = exc.until if isinstance(exc, Transient) else None
    if until is not None and run.now() < until <= _waiting_since(run, step) + run.limits.max_wait:
        run.record("timer.set", {"until": until.isoformat(), "why": str(exc)}, step=step)
        return
    run.record("step.failed", {"error": failure(exc)}, step=step, attempt=run.step(step).attempt)


def _waiting_since(run: Run, step: str) -> datetime:
    """Return when this generation of the step began to wait, so that many short waits end as well."""
    timers = run.journal.events(after=run.step(step).base, run=run.id, kinds=["timer.set"])
    return next((fact.at for fact in timers if fact.step == step), run.now())


def _record_result(run: Run, step: StepRequest, result: StepResult) -> None:
    data: dict[str, Any] = {"result": unstructure(result), "phase": step.phase.number if step.phase else ""}
    if isinstance(result.outcome, Verified):
        report = result.outcome.report
        data["gaps"] = [gap.key for gap in report.gaps]
        data["failed_detectors"] = list(report.failed_detectors)
        data["passed"] = report.passed
    run.record("step.result", data, step=step.id, attempt=run.step(step.id).attempt)
