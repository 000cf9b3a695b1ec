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
import re
from collections.abc import Generator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core.codec import unstructure
from gsd_core.errors import (
    ConfigError,
    GsdError,
    Interference,
    Outage,
    Parked,
    Permanent,
    PluginError,
    PluginRefused,
    Postponed,
    ProjectError,
    StepError,
    Transient,
    machine_error,
)
from gsd_core.exit_codes import error_kind
from gsd_core.git import GitError, GitUnavailable
from gsd_core.git.repository import git_dir
from gsd_core.hookspecs import gsd_execute_step, gsd_workspace, gsd_wrap_step
from gsd_core.machine import facts
from gsd_core.machine.claims import standing
from gsd_core.machine.due import Start
from gsd_core.machine.state import Failure
from gsd_core.model.agent import AgentResult, AgentTask, Allow, Permission, ToolUse
from gsd_core.model.checks import CheckResult, ReplacedBecause
from gsd_core.model.gap import GapReport
from gsd_core.model.ids import COMPLETE, EXECUTE, INIT, padded, slug
from gsd_core.model.question import Answer, Inquiry, Question
from gsd_core.model.step import (
    Accept,
    DeferredTask,
    Found,
    Functions,
    StepRequest,
    StepResult,
    TaskCommit,
    Verified,
)
from gsd_core.planning.config import get
from gsd_core.planning.model import PhaseView, Plan, Task
from gsd_core.planning.summary import with_notes
from gsd_core.planning.survey import read_planning
from gsd_core.plugins.contexts import PluginContext, entered
from gsd_core.plugins.isolation import current_call
from gsd_core.plugins.validation import validate_storable
from gsd_core.sanitize import clip, safe_text

from . import work
from .agent_call import AgentCall, record_command, run_agent
from .callbacks import Callbacks
from .commands import check
from .guard import finish as finish_undoing
from .guard import guarded_commands
from .integration import describe, generated_by, merges, take_over, with_merges
from .ownership import foreign_parts
from .permission import StepGate
from .questions import answered, ask
from .runtime import IN_PLACE, Run, Workspace, workspaces_of
from .seal import Sealer
from .snapshot import installed_programs, plan_digests
from .task_checks import about_earlier_attempts, check_before, replace_check
from .tasks import (
    commit_task,
    committed_tasks,
    defer_task,
    deferred_tasks,
    has_merged,
    made_plan,
    record_plan,
)
from .timeouts import core_at_work, inactivity_of
from .verification import detect, merge_gaps, run_in_checkout, with_committed_work, with_found_gaps

MAX_FILES = 20_000
"""How many of the project's tracked files a request lists."""

SHORTEST_WAIT = timedelta(milliseconds=10)
SET_UP = "gsd-set-up"
"""A file in git's folder of a work tree, with the command that has set it up."""
MAX_WHY = 400
"""The length of the reason for a wait, in characters: it is shown on one line."""


@attrs.frozen(kw_only=True)
class Attempt:
    """A successful attempt: the request with the detectors' report, and the executor's result.

    *owned*: an agent of it owned the planning. *tip* is the last commit of the work tree, if it has its own.
    """

    step: StepRequest
    result: StepResult
    owned: bool = False
    tip: str | None = None


async def run_step(run: Run, start: Start) -> None:
    """Do a step; it ends with a recorded result, a failure, a timer, or a parked attempt."""
    request = await _request(run, start)
    attempts: list[Attempt] = []
    authors = [", ".join(run.hooks.plugins_of(gsd_wrap_step))]

    async def attempt(step: StepRequest, /) -> StepResult:
        with core_at_work():
            attempts.append(await _attempt(run, step, start))
            return attempts[-1].result

    def changed(result: StepResult, plugin: str) -> None:
        if not attempts:
            raise PluginError(plugin, "gsd_wrap_step", "returned a result without an attempt at the step")
        _validate_result(run, attempts[-1].step, result, plugin, "gsd_wrap_step")
        authors.append(plugin)

    try:
        require_readable_plans(request)
        async with inactivity_of(run.hooks, gsd_wrap_step, run.limits.hard).running():
            result = await run.hooks.wrap(gsd_wrap_step, attempt, StepResult, changed)(request)
        if result is not attempts[-1].result:
            result = _validate_result(run, attempts[-1].step, result, authors[-1], "gsd_wrap_step")
    except Parked:
        # The attempt is recorded as lost, with its questions; their answers start the step again.
        return
    except (GitUnavailable, PluginRefused) as exc:
        raise resumable(run, exc) from exc
    except GsdError as exc:
        _record_failure(run, request, exc)
        return
    _record_result(run, request, attrs.evolve(attempts[-1], result=result))


async def _request(run: Run, start: Start) -> StepRequest:
    step = start.step
    works_on_code = step.kind not in (INIT, COMPLETE)
    planning = with_notes(run.planning, run.root) if works_on_code else run.planning
    phase = planning.phase(step.phase) if step.phase else None
    code = get(run.planning.config, "project_code", "")
    if phase and not phase.directory:
        # The folder that the phase is going to have, so that no executor has to invent one.
        prefix = f"{code}-" if re.fullmatch(r"[A-Z][A-Z0-9_.]*", str(code)) else ""
        folder = f".planning/phases/{prefix}{padded(phase.number)}-{slug(phase.name)}"
        phase = attrs.evolve(phase, directory=folder)
    plan = next((p for p in phase.plans if p.id == step.detail), None) if phase else made_plan(run, str(step))
    report = GapReport(gaps=phase.verdict.gaps) if start.for_gaps and phase and phase.verdict else None
    if plan and phase:
        plan = with_merges(run, str(step), plan)
    executes = plan is not None and (step.kind == "execute" or phase is None)
    tasks_done = await _tasks_done(run, str(step), plan) if plan and executes else ()
    setbacks = _setbacks(run, str(step))
    return StepRequest(
        id=str(step),
        run=run.id,
        kind=step.kind,
        project=run.root,
        tree=run.root,
        phase=phase,
        plan=plan,
        detail=step.detail,
        text=run.state.asked.get(str(step), ""),
        round=step.round,
        idea=run.idea if step.kind == "init" else None,
        report=report,
        tasks_done=tasks_done,
        retries=setbacks.retries,
        waited=setbacks.waited,
        profile=run.settings.profile,
        depth=run.settings.depth,
        model=run.settings.model,
        # A discussion that the user asks for has questions, whatever the settings say.
        skip_discuss=run.state.options.skip_discuss and str(step) not in run.state.asked,
        will_be_verified=phase is not None
        and not run.state.options.skip_verify
        and not run.state.options.only_asked,
        planning=planning,
        now=run.now(),
        files=await run.git.files(MAX_FILES) if works_on_code else (),
        programs=installed_programs() if works_on_code else (),
        complete=tuple(one.number for one in run.state.phases if standing(run.state, one) != "open"),
    )


async def _tasks_done(run: Run, step: str, plan: Plan) -> tuple[int, ...]:
    """Return the numbers of the tasks of *plan* that are committed."""
    # The history as well as the journal: commits survive when the journal is lost.
    in_history = await committed_tasks(run, step, plan)
    recorded = {fact.data.task for fact in run.facts(facts.TaskCommitted, step=step)}
    numbers = [task.number for task in plan.tasks]
    return tuple(n for n in numbers if n in in_history or f"{plan.id}/{n}" in recorded)


async def _attempt(run: Run, step: StepRequest, start: Start) -> Attempt:
    """Make one attempt; record its start, and its end unless it succeeds."""
    step = attrs.evolve(step, attempt=run.step(step.id).attempt + 1, now=run.now())
    async with AsyncExitStack() as entered:
        refused: GsdError | None = None
        try:
            step = attrs.evolve(step, tree=await _workspace(run, step, entered))
        except GsdError as exc:
            refused = exc
        there = await _at_tree(run, step)
        if there is not run:
            entered.callback(run.slots.discard, there.workspace.slot)
        elif step.kind == EXECUTE:
            await entered.enter_async_context(run.in_place)
        # An earlier attempt may have worked in another tree.
        await take_over(there, step.id)
        return await _attempt_in(there, step, start, entered, refused)


async def _attempt_in(
    run: Run, step: StepRequest, start: Start, entered: AsyncExitStack, refused: GsdError | None
) -> Attempt:
    """Make the attempt in the workspace that was *entered*, unless it was *refused*."""
    record = run.step(step.id)
    found = await work.found_before(run, record)
    gate = StepGate(run, step.id, written=work.written_before(run, step.id))
    started = facts.AttemptStarted(
        kind=step.kind,
        phase=start.step.phase,
        plan=start.step.detail,
        round=step.round,
        for_gaps=start.for_gaps,
        executor=run.settings.executors,
        agent=run.settings.agent,
        base_commit=await run.git.head() or "",
        dirty_before=tuple(found),
        found=found,
        tree=None if run.tree == run.root else str(run.tree),
    )
    is_retry = record.attempt > 0 and record.status not in ("completed", "skipped")
    about = await about_earlier_attempts(run, step) if is_retry else {}
    run.record(started, step=step.id, attempt=step.attempt)
    if step.plan and (failed := merges(run, step.id)) and not await has_merged(run, step, failed[-1]):
        # After the record, so that the changes belong to this attempt.
        await run.git.show_merged(failed[-1].theirs, lambda path: not generated_by(path))
        about = {**about, "last_failure": describe(failed[-1], step.plan.id)}
    step = attrs.evolve(step, began=run.step(step.id).started_at, **about)
    step = attrs.evolve(step, deferred=deferred_tasks(run, step))

    async def ended(kind: type[facts.AttemptLost | facts.AttemptFailed], **about: Any) -> None:
        fact = kind(**about, **await work.end_of_attempt(run, gate))
        run.record(fact, step=step.id, attempt=step.attempt)

    try:
        async with entered.pop_all():
            if refused:
                raise refused
            return await _execute(run, step, gate)
    except asyncio.CancelledError:
        await ended(facts.AttemptLost, why="stopped")
        raise
    except (GitUnavailable, PluginRefused) as exc:
        # Neither the agent nor the step is at fault: the conversation continues when the cause is gone.
        await ended(facts.AttemptLost, why="stopped", error=failure(exc))
        raise
    except Parked as exc:
        asked = {q.id for record in run.state.inquiries.values() for q in record.inquiry.questions}
        if asked.isdisjoint(exc.questions):
            # No answer would ever start the step again.
            await ended(facts.AttemptFailed, error=failure(exc))
            message = f"plugin {exc.plugin!r} waits for an answer to a question that was not asked: {exc}"
            raise Permanent(message, hint="a step is parked by asking through its host") from exc
        await ended(facts.AttemptLost, why="parked", questions=tuple(exc.questions))
        raise
    except Postponed:
        await ended(facts.AttemptLost, why="postponed")
        raise
    except GsdError as exc:
        await ended(facts.AttemptFailed, error=failure(exc))
        raise


async def _execute(run: Run, step: StepRequest, gate: StepGate) -> Attempt:
    """Let the executor do the step in its workspace."""
    if step.kind == "execute":
        await work.keep_and_ask(run, step)
        _require_project(run, step)
        await _set_up(run, step)
    if step.kind == "verify":
        async with guarded_commands(run, step.tree, step.id, step.attempt):
            step = await detect(run, step, gate)
    elif run.step_types.find(step.kind):
        step = await with_committed_work(run, step)
    host = Host(run=run, step=step, gate=gate)
    async with inactivity_of(run.hooks, gsd_execute_step, run.limits.hard).running():
        names = executors(run, step.kind)
        outcome = await run.hooks.pick(gsd_execute_step, names, StepResult, step, host)
    if host.parked:
        # Also if the executor caught it: without the answer, its result cannot be used.
        raise host.parked
    if outcome is None or outcome.value is None:
        raise ConfigError(f"no plugin executes {step.id!r}: {', '.join(names)} declined")
    result = _validate_result(run, step, outcome.value, outcome.plugin, "gsd_execute_step")
    if host.owned:
        await work.report_leftovers(run, step)
    elif step.kind == "execute" or host.step.phase is None:
        await work.settle_leftovers(run, host.step)
    tip = await run.git.head() if run.workspace.name else None
    return Attempt(step=step, result=result, owned=host.owned, tip=tip)


class _UsersGate(StepGate):
    """Lets the user's own command run, which no policy has to judge."""

    async def decide(self, use: ToolUse) -> Permission:
        return Allow()


async def _set_up(run: Run, step: StepRequest) -> None:
    """Run the user's command in a new work tree, before anything is paid for."""
    command = run.settings.workspace_setup
    if not (command and run.workspace.name):
        return
    done = await run.git.call(lambda: git_dir(run.git.command) / SET_UP)
    if done.exists() and done.read_text(encoding="utf-8") == command:
        return
    async with guarded_commands(run, run.tree, step.id, step.attempt):
        result = await check(_UsersGate(run, step.id), command, run.tree, run.limits.check)
    if not result.ok:
        why = safe_text(result.unusable or f"exit code {result.exit}: {result.output[-MAX_WHY:]}")
        message = f"`{command}`, which sets up a work tree, failed: {why}"
        raise Permanent(message, hint="correct the setting run.workspace_setup, and then choose Retry")
    done.write_text(command, encoding="utf-8")


async def _workspace(run: Run, step: StepRequest, stack: AsyncExitStack) -> Path:
    """Enter the folder that the step works in; its plugin is to blame if it is not one."""
    kind = cast("type[AbstractAsyncContextManager[Path]]", AbstractAsyncContextManager)
    async with inactivity_of(run.hooks, gsd_workspace, run.limits.hard).running():
        known = run.hooks.plugins_of(gsd_workspace)
        chosen = workspaces_of(run.request.settings, is_confined=bool(run.sandbox.name))
        names = tuple(name for name in chosen if name in known or name != IN_PLACE)
        outcome = await run.hooks.pick(gsd_workspace, names, kind, step)
    if outcome is None or outcome.value is None:
        raise ConfigError(f"no workspace for {step.id!r}: {', '.join(names)} declined")
    context = PluginContext(
        plugin=outcome.plugin, hook="gsd_workspace", context=outcome.value, grace=run.hooks.grace
    )
    tree: object = await stack.enter_async_context(entered(context, run.limits.hard))
    if not isinstance(tree, Path) or not tree.is_dir():
        raise PluginError(outcome.plugin, "gsd_workspace", f"returned {tree!r:.200}, which is not a folder")
    return tree


async def _at_tree(run: Run, step: StepRequest) -> Run:
    """Return the run in the step's folder, if it executes a plan in another work tree of the repository."""
    if step.kind != "execute" or step.tree.resolve() == run.root.resolve():
        return run
    git = run.git_in(step.tree)
    try:
        is_work_tree = await git.common_dir() == await run.git.common_dir()
        if not is_work_tree or (await git.top()).resolve() != step.tree.resolve():
            return run
    except GitError:
        return run
    # In a sandbox, the agent cannot write to the project, and what changes there is its user's.
    project = None if run.sandbox.name else run.root
    sealer = Sealer(git.command, run.workspace.sealer.store, project=project)
    branch = await git.branch()
    slot = next(number for number in count(1) if number not in run.slots)
    run.slots.add(slot)
    name = step.id.replace("/", "-")
    there = run.at(Workspace(git=git, sealer=sealer, name=name, branch=branch, slot=slot))
    await finish_undoing(there)  # an earlier process may have been killed while an agent worked there
    return there


def _require_project(run: Run, step: StepRequest, error: type[ConfigError | Permanent] = ConfigError) -> None:
    """Refuse a step that changes files where the run cannot commit them.

    This comes before an agent is called: its work would be lost with the folder, and the money with it.
    """
    if step.tree.resolve() != run.tree.resolve():
        why = f"{step.id} changes files, but the run cannot commit them in its workspace, {str(step.tree)!r}"
        hint = "the workspace plugin has to decline this step with None, so that 'inplace' is used"
        raise error(why, hint=hint)


def executors(run: Run, kind: str) -> tuple[str, ...]:
    """Return the plugins that may execute steps of *kind*, in order.

    The one that added the kind comes before those of the settings, but after a workflow that the user chose.
    """
    found, chosen = run.step_types.find(kind), run.settings
    first = [] if chosen.workflow == "native" else [chosen.workflow]
    return tuple(dict.fromkeys([*first, *([found[0]] if found else []), *chosen.execute]))


async def validate_unit_result(run: Run, start: Start, result: StepResult, plugin: str) -> None:
    """Raise ``PluginError`` if the result of a plan that was executed elsewhere is not valid."""
    _validate_result(run, await _request(run, start), result, plugin, "gsd_dispatch")


async def fail_elsewhere(run: Run, start: Start, exc: GsdError) -> None:
    """Fail a plan that was executed elsewhere, or set a timer if the error says when to try again."""
    _record_failure(run, await _request(run, start), exc)


def _validate_result(run: Run, step: StepRequest, result: StepResult, plugin: str, hook: str) -> StepResult:
    """Return a valid result; that of a verify step with all gaps of the detectors: no plugin can drop one."""
    found = run.step_types.find(step.kind)
    if why := validate_storable(result, StepResult):
        raise PluginError(plugin, hook, why)
    if foreign := foreign_parts(step, result, found[1] if found else None):
        listed = ", ".join(foreign[:5])
        problem = f"the step {step.id} may not write {listed}: it belongs to another step"
        raise PluginError(plugin, hook, problem)
    if isinstance(result.outcome, Found):
        if found is None:
            raise PluginError(plugin, hook, "only a step of a plugin's own kind can return Found")
        return result if step.phase is None else with_found_gaps(step, result, plugin)
    if step.kind != "verify":
        return result
    if not isinstance(result.outcome, Verified):
        raise PluginError(plugin, hook, "a verify step has to return Verified")
    return merge_gaps(step, result, plugin)


def resumable(run: Run, exc: GsdError | OSError) -> ProjectError:
    """Return the error that ends the run because something cannot be written now; its work is kept."""
    found = machine_error(exc) or exc if isinstance(exc, OSError) else exc
    hint = found.hint if isinstance(found, GsdError) and found.hint else "remove the cause"
    # The hints of machine errors and of git end like this, without the options of this run.
    hint = hint.removesuffix(", then run gsd resume")
    text = str(found)
    gsd = run.request.info.command
    return ProjectError(text, hint=f"{hint}, then run `{gsd} resume`; the results so far are kept")


def failure(exc: GsdError) -> Failure:
    """Return an error in the form that the journal stores."""
    return Failure(
        kind=error_kind(exc),
        message=clip(safe_text(str(exc)), 2000),
        hint=safe_text(exc.hint),
        until=exc.until if isinstance(exc, Transient) else None,
        plugin=exc.plugin if isinstance(exc, StepError | PluginError) else "",
    )


def _record_failure(run: Run, request: StepRequest, exc: GsdError) -> None:
    """Fail the step, or set a timer if the error says when to try again."""
    step = request.id
    until = exc.until if isinstance(exc, Transient) else None
    # A time that was still to come when the step began may be over by now: that is a wait, a short one. A
    # time before that comes from a wrong clock, and waiting for it would repeat the step without a pause.
    if until is not None and request.now < until:
        until = max(until, run.now() + SHORTEST_WAIT)
        waiting_since = _setbacks(run, step).since or run.now()
        if until <= waiting_since + run.limits.max_wait:
            why = clip(safe_text(str(exc)), MAX_WHY)
            run.record(facts.TimerSet(until=until, why=why), step=step)
            return
    run.record(facts.StepFailed(error=failure(exc)), step=step, attempt=run.step(step).attempt)


@attrs.frozen(kw_only=True)
class Setbacks:
    """What a step met since it last got an agent's answer.

    *retries* are the attempts that failed for a transient reason, *waited* the time it has waited because
    of outages, *since* when its first timer was set. Attempts in which an agent changed what only the run may
    change are always among *retries*, even after an answer.
    """

    retries: int = 0
    waited: timedelta = timedelta(0)
    since: datetime | None = None


def _setbacks(run: Run, step: str) -> Setbacks:
    """Return what *step* met so far, read from the journal: a wait may outlive the process.

    The waits are added up as they were planned, so a change of the clock does not shorten them. What a wait
    took longer than planned is not waiting: the clock was set forward, or nothing ran.
    """
    found, outage, due, interferences = Setbacks(), False, None, 0
    attempts = (facts.AttemptStarted, facts.AttemptFailed, facts.TimerSet)
    progress = (facts.AgentClosed, facts.TaskCommitted)
    for fact in run.facts(*attempts, *progress, step=step, after=run.step(step).base):
        match fact.data:
            case facts.AttemptStarted():
                if due is not None and found.since is not None:
                    late = max(fact.at - due, timedelta(0))
                    found = attrs.evolve(found, since=found.since + late)
                due = None
            case facts.AttemptFailed(error=error):
                kind = error.kind
                outage = kind == Outage.__name__
                # Counted apart: no answer makes up for an agent that changes what only the run may change.
                interferences += kind == Interference.__name__
                if outage or kind == Transient.__name__:
                    found = attrs.evolve(found, retries=found.retries + 1)
            case facts.TimerSet(until=until):
                due = until
                planned = until - fact.at if outage else timedelta(0)
                waited = found.waited + max(planned, timedelta(0))
                found = attrs.evolve(found, waited=waited, since=found.since or fact.at)
            case facts.TaskCommitted() | facts.AgentClosed(ended="done"):
                found, outage = Setbacks(), False
            case _:
                pass
    return attrs.evolve(found, retries=found.retries + interferences)


def _record_result(run: Run, step: StepRequest, attempt: Attempt) -> None:
    outcome, plans = attempt.result.outcome, None
    report = outcome.report if isinstance(outcome, Verified) else None
    found = outcome if isinstance(outcome, Found) else report
    if attempt.owned:
        # Plans that the run's own agent wrote need no trust at the next start.
        now = read_planning(run.root)
        paths = [plan.path for phase in now.phases for plan in phase.plans]
        known = plan_digests(run.planning, paths)
        plans = {path: sha for path, sha in plan_digests(now, paths).items() if known.get(path) != sha}
    returned = facts.StepReturned(
        result=unstructure(attempt.result),
        phase=step.phase.number if step.phase else "",
        gaps=tuple(gap.key for gap in found.gaps) if found else None,
        failed_detectors=report.failed_detectors if report else None,
        passed=report.passed if report else None,
        plans=plans,
        tip=attempt.tip,
    )
    run.record(returned, step=step.id, attempt=run.step(step.id).attempt)


@attrs.define(kw_only=True)
class Host:
    """The host of one attempt; see :class:`gsd_core.StepHost` for its methods.

    *agents* counts the agent calls under way. *parked* is set when a question cannot be answered now.
    *owned*: one of the agents owned the planning, and made its commits itself.
    """

    run: Run
    step: StepRequest
    gate: StepGate
    parked: Parked | None = attrs.field(default=None, init=False)
    agents: int = attrs.field(default=0, init=False)
    owned: bool = attrs.field(default=False, init=False)

    def _guarded_commands(self) -> AbstractAsyncContextManager[None]:
        return guarded_commands(self.run, self.step.tree, self.step.id, self.step.attempt)

    @contextmanager
    def _may_park(self) -> Generator[None]:
        try:
            yield
        except Parked as exc:
            self.parked = exc
            raise

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """See :class:`gsd_core.StepHost`."""
        run, limits = self.run, self.run.limits
        if task.writable or task.owns_planning:
            # Permanent: any other error would count as one of the executor, which is not to blame.
            _require_project(run, self.step, Permanent)
        self.owned = self.owned or task.owns_planning
        caller = current_call.get()
        name = caller.plugin if caller else ", ".join(run.settings.executors)
        callbacks = Callbacks(
            plugin=name, hooks=run.hooks, limit=limits.hard, accept=accept, functions=functions or {}
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
                with self._may_park():
                    return await run_agent(call)
            finally:
                self.agents -= 1

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """See :class:`gsd_core.StepHost`."""
        texts = "\0".join(question.text for question in inquiry.questions)
        key = f"{inquiry.kind} {hashlib.sha256(texts.encode()).hexdigest()[:12]}"
        # Who asks for a step once more may answer otherwise this time.
        if (done := self.run.step(self.step.id).completed) and self.step.id in self.run.state.asked:
            key = f"{key} {done}"
        with core_at_work(), self._may_park():
            return await ask(self.run, inquiry, step=self.step.id, key=key, agent_waits=self.agents > 0)

    def answered(self) -> Sequence[tuple[Question, Answer]]:
        """See :class:`gsd_core.StepHost`."""
        # What the core asks about the step, such as whether to start it, is not among it.
        keys = {fact.data.key for fact in self.run.facts(facts.AgentOpened, step=self.step.id)}
        return answered(self.run, self.step.id, keys)

    async def begin_plan(self, plan: Plan) -> StepRequest:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            if self.step.phase is not None:
                raise Permanent(f"step {self.step.id!r} belongs to a phase, whose plans are files")
            # What was recorded, also in the first attempt: secrets are redacted in it.
            recorded = made_plan(self.run, self.step.id) or record_plan(self.run, self.step, plan)
            done = await _tasks_done(self.run, self.step.id, recorded)
            self.step = attrs.evolve(self.step, plan=recorded, tasks_done=done)
            with self._may_park():
                await work.keep_and_ask(self.run, self.step)
            return self.step

    async def find_gaps(self, phase: PhaseView) -> tuple[PhaseView, GapReport]:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            step = attrs.evolve(self.step, phase=phase)
            async with guarded_commands(self.run, step.tree, step.id, step.attempt):
                found = await detect(self.run, step, self.gate)
            return found.phase or phase, found.report or GapReport()

    async def check_before(self, task: Task) -> CheckResult:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            async with self._guarded_commands():
                return await check_before(self.run, self.step, self.gate, task)

    async def replace_check(self, task: Task, check: str, reason: str, because: ReplacedBecause) -> None:
        """See :class:`gsd_core.StepHost`."""
        replace_check(self.run, self.step, task, check, reason, because)

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str], note: str = "") -> TaskCommit:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            return await commit_task(self.run, self.step, self.gate, task, subject, paths, note)

    async def defer_task(self, task: Task, reason: str, paths: Sequence[str] = ()) -> DeferredTask:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            if not self.step.will_be_verified:
                raise Permanent(f"task {task.number} cannot be deferred: {self.step.id!r} is not verified")
            return await defer_task(self.run, self.step, self.gate, task, reason, paths)

    async def check(self, command: str) -> CheckResult:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            async with self._guarded_commands():
                return await check(self.gate, command, self.step.tree, self.run.limits.check)

    async def run_command(self, command: str) -> CheckResult:
        """See :class:`gsd_core.StepHost`."""
        with core_at_work():
            result = await run_in_checkout(self.run, self.step, self.gate, command)
            record_command(result)
            return result


def require_readable_plans(step: StepRequest) -> None:
    """Raise ``ProjectError`` if the step needs a plan whose file cannot be read.

    Other plans are executed, but a phase with an unreadable plan is neither verified nor completed.
    """
    plans = step.phase.plans if step.phase and step.kind in ("verify", "complete") else ()
    for plan in (*plans, *([step.plan] if step.plan else [])):
        if plan.unreadable:
            hint = "fix the file, then resume the run"
            raise ProjectError(f"plan {plan.id} cannot be read: {plan.unreadable}", hint=hint)
