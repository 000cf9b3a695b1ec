"""One step: observe, wrap, workspace, execute; what it returns is recorded before it is landed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, cast

from attrs import evolve

from gsd_core.errors import ConfigError, GsdError, Parked, PluginError, StepError, Transient
from gsd_core.gap import GapReport
from gsd_core.hookspecs import gsd_execute_step, gsd_workspace, gsd_wrap_step
from gsd_core.ids import StepId
from gsd_core.journal.codec import unstructure
from gsd_core.machine.due import Start
from gsd_core.planning.model import Plan
from gsd_core.step import StepRequest, StepResult, Verified
from gsd_core.text import clip, redact, sanitize

from .gaps import detect, merged
from .hosts import Host
from .observe import observe
from .permission import Gate
from .session import Run
from .tasks import trailers


async def perform(run: Run, start: Start) -> None:
    """Do a step; its end is a recorded result, a failure, a timer, or a parked attempt."""
    await observe(run)
    request = await _request(run, start)

    async def attempt(step: StepRequest, /) -> StepResult:
        return await _attempt(run, step, start)

    try:
        result = await run.hooks.wrap(gsd_wrap_step, attempt, StepResult)(request)
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
        id=str(step), run=run.id, kind=step.kind, project=run.root, tree=run.root, phase=phase, plan=plan,
        round=step.round, idea=run.idea if step.kind == "init" else None, report=report,
        tasks_done=await _tasks_done(run, step, plan), profile=run.settings.profile,
        depth=run.settings.depth, model=run.settings.model, planning=run.planning, now=run.now(),
    )  # fmt: skip


async def _tasks_done(run: Run, step: StepId, plan: Plan | None) -> tuple[int, ...]:
    """Return the numbers of the plan's committed tasks: from the journal, else from the history."""
    if plan is None or step.kind != "execute":
        return ()
    found = {
        fact.data["task"]
        for fact in run.journal.events(run=run.id, kinds=["task.committed"])
        if fact.step == str(step)
    }
    for task in plan.tasks:
        name = f"{plan.id}/{task.number}"
        if name not in found and await run.git.find(trailers(run, str(step), name)):
            found.add(name)
    return tuple(task.number for task in plan.tasks if f"{plan.id}/{task.number}" in found)


async def _attempt(run: Run, step: StepRequest, start: Start) -> StepResult:
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
        "kind": step.kind, "phase": start.step.phase, "plan": start.step.detail, "round": step.round,
        "for_gaps": start.for_gaps, "executor": list(run.settings.execute),
        "agent": list(run.settings.agent), "base_commit": await run.git.head() or "",
        "dirty_before": list(record.dirty_before if again else await run.git.changed(())),
    }  # fmt: skip
    run.record("attempt.started", data, step=step.id, attempt=step.attempt)


def _lost(run: Run, step: StepRequest, data: Mapping[str, Any]) -> None:
    run.record("attempt.lost", data, step=step.id, attempt=step.attempt)


async def _execute(run: Run, step: StepRequest) -> StepResult:
    async with AsyncExitStack() as stack:
        step = evolve(step, tree=await _workspace(run, step, stack))
        gate = Gate(run, step.id)
        if step.kind == "verify":
            step = await detect(run, step, gate)
        host = Host(run=run, step=step, gate=gate)
        outcome = await run.hooks.pick(gsd_execute_step, run.settings.execute, StepResult, step, host)
        if host.parked:
            raise host.parked
        if outcome is None or outcome.value is None:
            raise ConfigError(f"no plugin executes {step.id!r}: {', '.join(run.settings.execute)} declined")
        return _checked(step, outcome.value, outcome.plugin)


async def _workspace(run: Run, step: StepRequest, stack: AsyncExitStack) -> Path:
    kind = cast("type[AbstractAsyncContextManager[Path]]", AbstractAsyncContextManager)
    outcome = await run.hooks.pick(gsd_workspace, run.settings.workspace, kind, step)
    if outcome is None or outcome.value is None:
        raise ConfigError(f"no workspace for {step.id!r}: {', '.join(run.settings.workspace)} declined")
    return await stack.enter_async_context(outcome.value)


def _checked(step: StepRequest, result: StepResult, plugin: str) -> StepResult:
    """Merge what the detectors found in again: no executor can drop a gap."""
    if step.kind != "verify":
        return result
    if not isinstance(result.outcome, Verified):
        raise PluginError(plugin, "gsd_execute_step", "a verify step has to return Verified")
    return merged(step, result, plugin)


def failure(exc: GsdError) -> dict[str, Any]:
    """Return an error as it stands in the journal."""
    until = exc.until if isinstance(exc, Transient) else None
    return {
        "kind": type(exc).__name__,
        "message": clip(redact(sanitize(str(exc))), 2000),
        "hint": sanitize(exc.hint),
        "until": until.isoformat() if until else None,
        "plugin": exc.plugin if isinstance(exc, StepError | PluginError) else "",
    }


def _failed(run: Run, step: str, exc: GsdError) -> None:
    """Set a timer if it is a matter of time, else fail the step."""
    until = exc.until if isinstance(exc, Transient) else None
    if until is not None and until - run.now() <= run.limits.max_wait:
        run.record("timer.set", {"until": until.isoformat(), "why": str(exc)}, step=step)
        return
    run.record("step.failed", {"error": failure(exc)}, step=step, attempt=run.step(step).attempt)


def _record_result(run: Run, step: StepRequest, result: StepResult) -> None:
    data: dict[str, Any] = {"result": unstructure(result), "phase": step.phase.number if step.phase else ""}
    if isinstance(result.outcome, Verified):
        report = result.outcome.report
        data["gaps"] = [gap.key for gap in report.gaps]
        data["passed"] = report.passed
    run.record("step.result", data, step=step.id, attempt=run.step(step.id).attempt)
