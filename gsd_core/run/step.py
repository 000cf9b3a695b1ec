"""One attempt at a step: wrap, workspace, detectors, execute, record.

::

    run_step            the wrappers (gsd_wrap_step) run around everything below, and may repeat it
      _attempt          record its start, and its end unless it succeeds
        _execute
          _workspace    enter the folder to work in (gsd_workspace)
          detect        for a verify step: run the plans' checks, ask the detectors (gsd_find_gaps)
          pick          the executor does the work (gsd_execute_step) and calls back through Host
      _record_result    step.result

:mod:`gsd_core.run.apply` then writes and commits the result. The record comes before this effect: after a
crash between the two, the result in the journal is applied again, which ends in the same tree. The other
way round, a crash would leave changes of unknown origin, and the step would be done (and paid for) twice.

An attempt may be killed at any point, so everything that it does through its :class:`Host` is durable:
agent calls and questions are stored by key, tasks by number. The next attempt runs the same code from the
start and gets the recorded results, up to the point that the last one reached.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core.errors import ConfigError, GsdError, Parked, Permanent, PluginError, StepError, Transient
from gsd_core.exit_codes import error_kind
from gsd_core.hookspecs import gsd_execute_step, gsd_workspace, gsd_wrap_step
from gsd_core.journal.codec import unstructure
from gsd_core.machine.due import Start
from gsd_core.model.agent import AgentResult, AgentTask
from gsd_core.model.checks import CheckResult
from gsd_core.model.gap import GapReport
from gsd_core.model.question import Answer, Inquiry
from gsd_core.model.step import Accept, Functions, StepRequest, StepResult, TaskCommit, Verified
from gsd_core.planning.model import Task
from gsd_core.plugins.contexts import PluginContext, entered
from gsd_core.plugins.isolation import current_call
from gsd_core.plugins.validation import validate_storable
from gsd_core.sanitize import clip, redact, sanitize

from .agent_call import AgentCall, run_agent
from .callbacks import Callbacks
from .permission import StepGate
from .questions import ask
from .runtime import Run
from .tasks import commit_task, committed_tasks
from .timeouts import core_at_work, inactivity_of
from .verification import check, detect, merge_gaps


@attrs.frozen(kw_only=True)
class Attempt:
    """A successful attempt: the request with the detectors' report, and the executor's result."""

    step: StepRequest
    result: StepResult


async def run_step(run: Run, start: Start) -> None:
    """Do a step; it ends with a recorded result, a failure, a timer, or a parked attempt."""
    request = await _request(run, start)
    attempts: list[Attempt] = []

    async def attempt(step: StepRequest, /) -> StepResult:
        with core_at_work():
            attempts.append(await _attempt(run, step, start))
            return attempts[-1].result

    try:
        async with inactivity_of(run.hooks, gsd_wrap_step, run.limits.hard).running():
            result = await run.hooks.wrap(gsd_wrap_step, attempt, StepResult)(request)
        wrappers = ", ".join(run.hooks.plugins_of(gsd_wrap_step))
        if not attempts:
            raise PluginError(wrappers, "gsd_wrap_step", "returned a result without an attempt at the step")
        if result is not attempts[-1].result:
            result = _validate_result(attempts[-1].step, result, wrappers, "gsd_wrap_step")
    except Parked:
        # The attempt is recorded as lost, with its questions; their answers start the step again.
        return
    except GsdError as exc:
        _record_failure(run, request.id, exc)
        return
    _record_result(run, request, result)


async def _request(run: Run, start: Start) -> StepRequest:
    step = start.step
    phase = run.planning.phase(step.phase) if step.phase else None
    plan = next((p for p in phase.plans if p.id == step.detail), None) if phase else None
    report = GapReport(gaps=phase.verdict.gaps) if start.for_gaps and phase and phase.verdict else None
    tasks_done: tuple[int, ...] = ()
    if plan is not None and step.kind == "execute":
        # The history as well as the journal: commits survive when the journal is lost.
        in_history = await committed_tasks(run, str(step), plan)
        facts = run.journal.events(run=run.id, kinds=["task.committed"])
        recorded = {fact.data["task"] for fact in facts if fact.step == str(step)}
        tasks_done = tuple(
            task.number
            for task in plan.tasks
            if task.number in in_history or f"{plan.id}/{task.number}" in recorded
        )
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
        tasks_done=tasks_done,
        profile=run.settings.profile,
        depth=run.settings.depth,
        model=run.settings.model,
        planning=run.planning,
        now=run.now(),
    )


async def _attempt(run: Run, step: StepRequest, start: Start) -> Attempt:
    """Make one attempt; record its start, and its end unless it succeeds."""
    record = run.step(step.id)
    step = attrs.evolve(step, attempt=record.attempt + 1, now=run.now())
    # Files that an earlier attempt left uncommitted belong to the step, so they were not dirty before it.
    is_retry = record.attempt > 0 and record.status not in ("completed", "skipped")
    data = {
        "kind": step.kind,
        "phase": start.step.phase,
        "plan": start.step.detail,
        "round": step.round,
        "for_gaps": start.for_gaps,
        "executor": list(run.settings.execute),
        "agent": list(run.settings.agent),
        "base_commit": await run.git.head() or "",
        "dirty_before": list(record.dirty_before if is_retry else await run.git.changed(())),
    }
    run.record("attempt.started", data, step=step.id, attempt=step.attempt)
    step = attrs.evolve(step, began=run.step(step.id).started_at)

    try:
        return await _execute(run, step)
    except asyncio.CancelledError:
        run.record("attempt.lost", {"why": "stopped"}, step=step.id, attempt=step.attempt)
        raise
    except Parked as exc:
        asked = {q.id for record in run.state.inquiries.values() for q in record.inquiry.questions}
        if asked.isdisjoint(exc.questions):
            # No answer would ever start the step again.
            run.record("attempt.failed", {"error": failure(exc)}, step=step.id, attempt=step.attempt)
            message = f"plugin {exc.plugin!r} waits for an answer to a question that was not asked: {exc}"
            raise Permanent(message, hint="a step is parked by asking through its host") from exc
        run.record(
            "attempt.lost",
            {"why": "parked", "questions": list(exc.questions)},
            step=step.id,
            attempt=step.attempt,
        )
        raise
    except GsdError as exc:
        run.record("attempt.failed", {"error": failure(exc)}, step=step.id, attempt=step.attempt)
        raise


async def _execute(run: Run, step: StepRequest) -> Attempt:
    """Let the executor do the step in its workspace."""
    async with AsyncExitStack() as stack:
        step = attrs.evolve(step, tree=await _workspace(run, step, stack))
        gate = StepGate(run, step.id)
        if step.kind == "verify":
            step = await detect(run, step, gate)
        host = Host(run=run, step=step, gate=gate)
        async with inactivity_of(run.hooks, gsd_execute_step, run.limits.hard).running():
            outcome = await run.hooks.pick(gsd_execute_step, run.settings.execute, StepResult, step, host)
        if host.parked:
            # Also if the executor caught it: without the answer, its result cannot be used.
            raise host.parked
        if outcome is None or outcome.value is None:
            raise ConfigError(f"no plugin executes {step.id!r}: {', '.join(run.settings.execute)} declined")
        result = _validate_result(step, outcome.value, outcome.plugin, "gsd_execute_step")
        return Attempt(step=step, result=result)


async def _workspace(run: Run, step: StepRequest, stack: AsyncExitStack) -> Path:
    """Enter the folder that the step works in; its plugin is to blame if it is not one."""
    kind = cast("type[AbstractAsyncContextManager[Path]]", AbstractAsyncContextManager)
    async with inactivity_of(run.hooks, gsd_workspace, run.limits.hard).running():
        outcome = await run.hooks.pick(gsd_workspace, run.settings.workspace, kind, step)
    if outcome is None or outcome.value is None:
        raise ConfigError(f"no workspace for {step.id!r}: {', '.join(run.settings.workspace)} declined")
    context = PluginContext(
        plugin=outcome.plugin, hook="gsd_workspace", context=outcome.value, grace=run.hooks.grace
    )
    tree: object = await stack.enter_async_context(entered(context, run.limits.hard))
    if not isinstance(tree, Path) or not tree.is_dir():
        raise PluginError(outcome.plugin, "gsd_workspace", f"returned {tree!r:.200}, which is not a folder")
    return tree


def _validate_result(step: StepRequest, result: StepResult, plugin: str, hook: str) -> StepResult:
    """Return a valid result; that of a verify step with all gaps of the detectors: no plugin can drop one."""
    if why := validate_storable(result, StepResult):
        raise PluginError(plugin, hook, why)
    if step.kind != "verify":
        return result
    if not isinstance(result.outcome, Verified):
        raise PluginError(plugin, hook, "a verify step has to return Verified")
    return merge_gaps(step, result, plugin)


def failure(exc: GsdError) -> dict[str, Any]:
    """Return an error in the form that the journal stores."""
    until = exc.until if isinstance(exc, Transient) else None
    return {
        "kind": error_kind(exc),
        "message": clip(redact(sanitize(str(exc))), 2000),
        "hint": sanitize(exc.hint),
        "until": until.isoformat() if until else None,
        "plugin": exc.plugin if isinstance(exc, StepError | PluginError) else "",
    }


def _record_failure(run: Run, step: str, exc: GsdError) -> None:
    """Fail the step, or set a timer if the error says when to try again."""
    record = run.step(step)
    until = exc.until if isinstance(exc, Transient) else None
    if until is not None and run.now() < until:
        # The limit counts from the first timer, so that many short waits end as well.
        timers = run.journal.events(after=record.base, run=run.id, kinds=["timer.set"])
        waiting_since = next((fact.at for fact in timers if fact.step == step), run.now())
        if until <= waiting_since + run.limits.max_wait:
            run.record("timer.set", {"until": until.isoformat(), "why": str(exc)}, step=step)
            return
    run.record("step.failed", {"error": failure(exc)}, step=step, attempt=record.attempt)


def _record_result(run: Run, step: StepRequest, result: StepResult) -> None:
    data: dict[str, Any] = {"result": unstructure(result), "phase": step.phase.number if step.phase else ""}
    if isinstance(result.outcome, Verified):
        report = result.outcome.report
        data["gaps"] = [gap.key for gap in report.gaps]
        data["failed_detectors"] = list(report.failed_detectors)
        data["passed"] = report.passed
    run.record("step.result", data, step=step.id, attempt=run.step(step.id).attempt)


@attrs.define(kw_only=True)
class Host:
    """The host of one attempt; see :class:`gsd_core.StepHost` for its methods.

    *agents* counts the agent calls under way. *parked* is set when a question cannot be answered now.
    """

    run: Run
    step: StepRequest
    gate: StepGate
    parked: Parked | None = attrs.field(default=None, init=False)
    agents: int = attrs.field(default=0, init=False)

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """See :class:`gsd_core.StepHost`."""
        run, limits = self.run, self.run.limits
        plugin = current_call.get()
        callbacks = Callbacks(
            plugin=plugin.plugin if plugin else ", ".join(run.settings.execute),
            hooks=run.hooks,
            limit=limits.hard,
            accept=accept,
            functions=functions or {},
        )
        with core_at_work():
            call = AgentCall(
                run=run,
                step=self.step.id,
                attempt=self.step.attempt,
                key=key,
                task=attrs.evolve(task, limits=attrs.evolve(task.limits, idle=limits.idle, hard=limits.hard)),
                gate=self.gate,
                callbacks=callbacks,
            )
            self.agents += 1
            try:
                return await run_agent(call)
            except Parked as exc:
                self.parked = exc
                raise
            finally:
                self.agents -= 1

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """See :class:`gsd_core.StepHost`."""
        texts = "\0".join(question.text for question in inquiry.questions)
        key = f"{inquiry.kind} {hashlib.sha256(texts.encode()).hexdigest()[:12]}"
        with core_at_work():
            try:
                return await ask(self.run, inquiry, step=self.step.id, key=key, agent_waits=self.agents > 0)
            except Parked as exc:
                self.parked = exc
                raise

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str]) -> TaskCommit:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            return await commit_task(self.run, self.step, self.gate, task, subject, paths)

    async def check(self, command: str) -> CheckResult:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            return await check(self.gate, command, self.step.tree, self.run.limits.check)
