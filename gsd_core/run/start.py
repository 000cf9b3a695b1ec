"""The end of a run: by its work, a signal, a wish or an error; recorded once.

Begin a run, or go on with it: check before anything is written, take the lock, open, close.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta

from attrs import evolve

import gsd_core
from gsd_core.errors import ConfigError, ExitCode, Fenced, GsdError, PluginError, StepError, exit_code
from gsd_core.git import Git
from gsd_core.hookspecs import ProjectInfo, RunInfo, gsd_lifespan
from gsd_core.journal.codec import structure, unstructure
from gsd_core.journal.lock import ProjectLock
from gsd_core.journal.store import Journal
from gsd_core.machine.due import End
from gsd_core.machine.fold import fold
from gsd_core.machine.state import State
from gsd_core.model.notice import Notice
from gsd_core.plugins.contexts import PluginContext
from gsd_core.plugins.isolation import PluginFailure, report_failure
from gsd_core.plugins.watchdog import Blocked, Watchdog
from gsd_core.processes import boot_id, start_time
from gsd_core.sanitize import clip, redact, sanitize
from gsd_core.settings import bind_settings

from .loop import loop
from .preflight import Found, check_project, idea_of, last_run, place, proposed
from .publishing import publisher
from .questions import take_answers
from .recovery import dollars, end_leftovers
from .runtime import Run, RunEnd, RunRequest, read_ledger
from .stop import Stopper, stopping


async def close(run: Run, end: End) -> RunEnd:
    """Record how the run ended, with what it cost and what it committed; an end that is recorded stands."""
    commits = len(await run.git.trailed(run.id))
    spent = dollars(run.ledger.total)
    if run.state.closed:
        end = End(outcome=run.state.closed, exit=run.state.exit, reason=run.state.reason)
    else:
        data = {
            "outcome": end.outcome,
            "exit": end.exit,
            "reason": end.reason,
            "dollars": spent,
            "commits": commits,
        }
        run.record("run.closed", data)
    return RunEnd(
        outcome=end.outcome, exit=end.exit, reason=end.reason, run=run.id, dollars=spent, commits=commits
    )


def stopped(run: Run, stopper: Stopper | None) -> End | None:
    """Return the end of a run that was told to stop; ``None`` if somebody else cancels us."""
    task = asyncio.current_task()
    if stopper and stopper.received:
        if task:
            task.uncancel()
        name = {2: "SIGINT", 15: "SIGTERM"}.get(stopper.received, str(stopper.received))
        return End(outcome="stopped", exit=128 + stopper.received, reason=f"stopped by {name}")
    if run.state.stop_asked:
        if task:
            task.uncancel()
        return End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason="stopped on request")
    return None


def ended_by(exc: GsdError) -> End:
    """Return the end by an error that no step is to blame for."""
    return End(
        outcome="failed", exit=exit_code(exc), reason=f"{exc}" + (f" ({exc.hint})" if exc.hint else "")
    )


def crash_notice(run: Run, exc: Exception) -> Notice:
    """Return what people are told when the run dies of an error of its own."""
    body = clip(redact(sanitize(f"{type(exc).__name__}: {exc}")), 2000)
    key = f"crash {run.id} {run.state.seq}"
    title = f"{run.root.name}: gsd itself failed; the run can be resumed"
    return Notice(key=key, type="crash", level="error", title=title, body=body, run=run.id)


log = logging.getLogger(__name__)
INBOX = 0.5
OPEN = timedelta(seconds=30)
OPENING = ("run.started", "run.opened")


async def run_project(request: RunRequest) -> RunEnd:
    """Run until the end, a signal, or a question that nobody can answer.

    Raises ``UserError`` before anything is written if the project, the idea or the settings are
    not fit to begin with, ``Locked`` if another process has the project.
    """
    git = Git(request.root)
    directory = await place(request, git)
    found = last_run(directory, request)
    await check_project(request, git, found)
    with ProjectLock(directory), bind_settings(request.settings.values):
        journal = Journal.open(directory / "journal.db", clock=request.clock)
        try:
            found = last_run(directory, request)
            # A git that outlives us has to be found and ended before its locks are swept.
            git = Git(request.root, environment={"GSD_RUN": found.run})
            return await _with_journal(request, git, journal, found)
        finally:
            await asyncio.sleep(0)  # what failed at the very end is recorded too
            journal.close()


async def _with_journal(request: RunRequest, git: Git, journal: Journal, found: Found) -> RunEnd:
    run = await _open(request, git, journal, found)
    _report_to(run)
    with stopping(run.id) as stopper, Watchdog(lambda blocked: _blocked(run, blocked)):
        try:
            return await _lived(run, stopper)
        except Fenced as exc:
            return RunEnd(outcome="stopped", exit=ExitCode.FAILED, reason=str(exc), run=run.id)
        except GsdError as exc:
            return await close(run, ended_by(exc))
        except asyncio.CancelledError:
            if end := stopped(run, stopper):
                return await close(run, end)
            raise


async def _lived(run: Run, stopper: Stopper | None) -> RunEnd:
    """Live with the plugins' resources, then the watchers, then the inbox; the end is told to all."""
    opening = list(
        run.journal.events(after=run.state.seq - 2, run=run.id, kinds=["run.started", "run.opened"])
    )
    left = await end_leftovers(run)
    async with AsyncExitStack() as stack:
        await _enter_lifespans(run, stack)
        out = await stack.enter_async_context(publisher(run))
        run.proposals = proposed(run.hooks, ProjectInfo(root=run.root, yes=run.request.info.yes))
        for fact in opening:
            out.fact(run.state, fact)
        if any(left.values()):
            run.record("recovered", left)
        try:
            return await close(run, await _until_the_end(run, stopper))
        except Exception as exc:
            if not isinstance(exc, GsdError):
                out.send(crash_notice(run, exc))
            raise


async def _until_the_end(run: Run, stopper: Stopper | None) -> End:
    try:
        async with _watched_inbox(run):
            return await loop(run)
    except asyncio.CancelledError:
        if end := stopped(run, stopper):
            return end
        raise
    except Fenced:
        raise
    except GsdError as exc:
        return ended_by(exc)


async def _open(request: RunRequest, git: Git, journal: Journal, found: Found) -> Run:
    """Make the run, or take it over: from here on earlier processes can write nothing more about it."""
    run_id = found.run
    epoch = journal.raise_epoch(run_id)
    facts = list(journal.events(run=run_id, facts_only=True))
    run = Run(
        id=run_id,
        request=request,
        journal=journal,
        git=git,
        effects=request.effects(journal, git),
        state=fold(State(), facts, structure),
        idea=idea_of(request, facts),
        ledger=read_ledger(facts),
    )
    if not facts:
        base = {"commit": await git.head(), "dirty": list(await git.dirty())}
        idea = unstructure(run.idea) if run.idea else None
        run.record("run.started", {"idea": idea, "workflow": "native", "base": base})
    _take_what_waits(run)
    data = {
        "pid": os.getpid(),
        "start": start_time(os.getpid()),
        "boot": boot_id(),
        "epoch": epoch,
        "version": gsd_core.__version__,
        "options": unstructure(request.options),
        "agent": list(run.settings.agent),
        "resumed": bool(facts),
        "seed": run.request.info.seed,
        "typed": {section: dict(values) for section, values in run.request.typed.items()},
        "plugins": [_plugin(info) for info in request.plugins],
    }
    run.record("run.opened", data)
    return run


def _take_what_waits(run: Run) -> None:
    """Take the answers that came while no process was there; a wish to stop was for an earlier one."""
    old = [item.id for item in run.journal.take_inbox() if item.kind != "answer"]
    run.journal.consumed(old)
    take_answers(run)


def _plugin(info: object) -> dict[str, str]:
    return {name: str(getattr(info, name, "")) for name in ("name", "version", "source", "sha256", "status")}


def _report_to(run: Run) -> None:
    """Record every failure of a plugin as a fact."""
    loop_ = asyncio.get_running_loop()

    def report(failure: PluginFailure) -> None:
        error = clip(redact(sanitize(str(failure.error))), 2000)
        data = {"plugin": failure.plugin, "hook": failure.hook, "error": error}
        with suppress(GsdError):
            run.record("plugin.failed", data)

    def soon(failure: PluginFailure) -> None:
        loop_.call_soon_threadsafe(report, failure)

    run.request = evolve(run.request, hooks=evolve(run.request.hooks, report=soon))


def _blocked(run: Run, blocked: Blocked) -> None:
    """Say which plugin blocks the loop; called from the watchdog's thread."""
    log.warning("%s", sanitize(str(blocked), multiline=False))
    data = {"plugin": blocked.plugin, "hook": blocked.hook, "error": sanitize(str(blocked))}
    with suppress(GsdError):
        run.journal.append("plugin.failed", data, run=run.id)


async def _enter_lifespans(run: Run, stack: AsyncExitStack) -> None:
    idea = run.idea.text if run.idea else ""
    info: RunInfo = evolve(run.request.info, id=run.id, project=run.root, idea=idea, seed=_seed(run))
    for plugin, context in run.hooks.collect(gsd_lifespan, lambda context: str(id(context)), info).items:
        guest = PluginContext(plugin=plugin, hook="gsd_lifespan", context=context, grace=run.hooks.grace)
        await stack.enter_async_context(_lifespan(run, guest))


@asynccontextmanager
async def _lifespan(run: Run, guest: PluginContext) -> AsyncGenerator[None]:
    """Have a plugin's resource; one that does not come ends the run, one that does not go is named."""
    try:
        await guest.enter(min(run.limits.idle, OPEN))
    except (PluginError, StepError) as exc:
        report_failure(run.hooks.report, guest.plugin, guest.hook, exc)
        hint = f"run with -p no:{guest.plugin} to go on without it"
        raise ConfigError(f"plugin {guest.plugin!r} cannot start: {exc}", hint=hint) from exc
    try:
        yield
    finally:
        if fault := await guest.exit(None, run.hooks.grace):
            report_failure(run.hooks.report, guest.plugin, guest.hook, fault)


def _seed(run: Run) -> int | None:
    """Return the seed that is given now, else the one that the run had before."""
    opened = run.journal.events(run=run.id, kinds=["run.opened"])
    return next((seed for o in reversed([*opened]) if (seed := o.data.get("seed")) is not None), None)


@asynccontextmanager
async def _watched_inbox(run: Run) -> AsyncGenerator[None]:
    """Hear answers and the wish to stop while a step is at work."""
    main = asyncio.current_task()
    assert main is not None

    async def watch() -> None:
        while not run.state.stop_asked:
            await asyncio.sleep(INBOX)
            take_answers(run)
        main.cancel()

    task = asyncio.create_task(watch(), name="gsd:inbox")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
