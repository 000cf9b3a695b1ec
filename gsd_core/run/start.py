"""Start a run or resume one: check the project, take the lock, open the run, and record how it ended."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from attrs import evolve

import gsd_core
from gsd_core.codec import unstructure
from gsd_core.errors import (
    ConfigError,
    Fenced,
    GsdError,
    JournalError,
    PluginError,
    PluginRefused,
    StepError,
    UserError,
    machine_error,
)
from gsd_core.exit_codes import ExitCode, exit_code
from gsd_core.git import Git
from gsd_core.hookspecs import ProjectInfo, RunInfo, gsd_lifespan
from gsd_core.journal.lock import ProjectLock
from gsd_core.journal.store import Journal
from gsd_core.machine import facts
from gsd_core.machine.claims import claims_at_opening
from gsd_core.machine.due import End
from gsd_core.machine.facts import KIND_OF, Record
from gsd_core.machine.ledger import CALL_KINDS, Ledger
from gsd_core.machine.state import Options, State
from gsd_core.model.event import Event
from gsd_core.model.ids import INIT, StepId, new_run_id
from gsd_core.model.notice import Notice
from gsd_core.model.usage import Usage
from gsd_core.planning.config import CONFIG, read_config
from gsd_core.planning.config_keys import unknown_keys
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.contexts import PluginContext
from gsd_core.plugins.isolation import PluginFailure, report_failure
from gsd_core.plugins.loading import build_manager, detectors_left_out
from gsd_core.plugins.watchdog import Blocked, Watchdog
from gsd_core.processes import boot_id, start_time
from gsd_core.sanitize import clip, register_secrets, safe_text, sanitize
from gsd_core.settings import RunSettings, Settings, bind_settings, journals_folder
from gsd_core.trust import KnownJournals

from .edits import asked_by, finish_edit, forget, keep_asked, stored_edit
from .guard import finish as finish_undoing
from .last_run import LastRun, read_last_run
from .loop import loop
from .notes import notes_of
from .overlay import restore as restore_config
from .preflight import check_project, check_repository, kept_idea, milestone_to_start
from .publishing import publishing
from .questions import take_answers
from .recovery import end_leftovers
from .runtime import Clock, Progress, Run, RunEnd, RunRequest, Workspace
from .sandbox import Sandbox, choose_sandbox, warning_about
from .seal import Sealer
from .snapshot import proposed_config, read_project, snapshot_of
from .step_types import collect_step_types
from .stop import Stopper, stopping

INBOX_POLL = timedelta(seconds=0.5)
LIFESPAN_LIMIT = timedelta(seconds=30)
MAX_KEYS = 20
"""How many unknown keys of config.json are named."""

log = logging.getLogger(__name__)


async def run_project(request: RunRequest) -> RunEnd:
    """Run until the end, a signal, or a question that nobody can answer.

    Raises ``UserError`` before anything is written if the project, the idea or the settings are
    invalid, and ``Locked`` if another process is running in the project.
    """
    register_secrets(request.settings.secrets())
    git = Git(request.root, trusted=request.programs)
    directory = await check_repository(request, git)
    path = directory / "journal.db"
    last = request.last_run
    if stored_edit(directory):
        # What a killed process was writing would look like a change of the user's.
        with ProjectLock(directory):
            if (edit := await finish_edit(request.root, directory)) and not edit.request:
                log.warning("finished first: %s, which was interrupted", edit.label)
                forget(directory)
    with Journal.open(path, clock=request.clock, writable=False) as journal:
        last = last or read_last_run(journal, request.root)
        await check_project(request, git, journal, last)
    with ProjectLock(directory), bind_settings(request.settings.values):
        journal = Journal.open(path, clock=request.clock)
        try:
            if journal.last_seq() != last.seq:
                # Another process ran after the journal was read and before the lock was taken.
                last = read_last_run(journal, request.root)
                await check_project(request, git, journal, last)
            _remember(journal, request)
            milestone = ""
            if not request.options.only_asked:
                kept = kept_idea(request.root)
                milestone = milestone_to_start(request.root, request.idea, last.state, kept)
            if milestone:
                last = LastRun(seq=last.seq)  # a run of its own
            settings, before = request.settings.of(RunSettings), last.history.sandbox
            sandbox = await choose_sandbox(request.hooks, settings, request.root, used_before=before)
            if warning := warning_about(sandbox):
                log.warning("%s", warning)
            try:
                run, opening = await _open(request, journal, last, sandbox, milestone)
                return await _run_to_end(run, opening)
            finally:
                await sandbox.close()
        finally:
            await asyncio.sleep(0)  # a plugin failure at the very end is still recorded
            journal.close()


async def undo_interrupted(root: Path, clock: Clock, command: str) -> bool:
    """Undo what the agents of a killed process changed and may not; return whether there was anything.

    A run does so as well when it is resumed. But its user is asked before that whether the project is to be
    trusted, and nobody should read and trust what is about to be removed. Raises ``Locked`` if a process is
    running in the project.
    """
    git = Git(root)
    directory = await git.data_directory()
    with ProjectLock(directory), Journal.open(directory / "journal.db", clock=clock) as journal:
        last = read_last_run(journal)
        hooks = Hooks(manager=build_manager())
        request = RunRequest(
            root=root,
            idea=None,
            settings=Settings(values={}),
            hooks=hooks,
            plugins=(),
            info=RunInfo(id=last.id, project=root, command=command),
            options=Options(),
            clock=clock,
        )
        epoch = journal.raise_epoch(last.id)
        run = Run(
            id=last.id,
            request=request,
            journal=journal,
            workspace=Workspace(git=git, sealer=Sealer(git.command, directory / "guard")),
            effects=request.effects(journal, git),
            progress=Progress(state=evolve(last.state, epoch=epoch), history=last.history),
            idea=None,
            sandbox=Sandbox(root=root, hooks=hooks),
        )
        await end_leftovers(run)
        return await finish_undoing(run)


def _remember(journal: Journal, request: RunRequest) -> None:
    """Make the journal one that this user's runs have written; whoever calls has asked for trust before."""
    try:
        known = KnownJournals(journals_folder())
        if journal.is_empty() or not known.has(journal, request.root) or not known.is_at(journal):
            known.add(journal, request.root, request.clock())
    except (OSError, ConfigError) as error:
        # The run itself does not need it.
        log.warning("gsd resume will not recognize the journal of this run: %s", error)


async def _open(
    request: RunRequest, journal: Journal, last: LastRun, sandbox: Sandbox, milestone: str = ""
) -> tuple[Run, list[Record]]:
    """Return the run, new or resumed, and the facts that opened it; a new one may start a *milestone*.

    From here on, earlier processes cannot write anything more about the run.
    """
    state = last.state
    begun = str(StepId(kind=INIT)) in state.steps or (request.root / ".planning" / "ROADMAP.md").exists()
    if request.idea and last.id and not (state.idea or state.asked or begun):
        # Only steps that were asked for, such as a survey: the idea begins a run of its own.
        last = LastRun(seq=last.seq)
    run_id = last.id or request.info.id or new_run_id(request.clock())
    epoch = journal.raise_epoch(run_id)
    # Git processes get the run's id too: if one outlives this process, the next start has to end it
    # before it removes git's locks.
    git = Git(request.root, environment={"GSD_RUN": journal.mark_of(run_id)}, trusted=request.programs)
    started = (fact.data.idea for fact in journal.facts(facts.RunStarted, run=run_id))
    idea = next((one for one in started if one), None) or request.idea
    idea = idea or kept_idea(request.root)
    run = Run(
        id=run_id,
        request=request,
        journal=journal,
        workspace=Workspace(git=git, sealer=Sealer(git.command, journal.path.parent / "guard")),
        effects=request.effects(journal, git),
        progress=Progress(state=last.state, history=last.history, unkept=last.unkept),
        # As the journal and IDEA.md have it, so that every process works on the same text.
        idea=evolve(idea, text=safe_text(idea.text, strict=True)) if idea else None,
        ledger=Ledger().add(journal.events(run=run_id, kinds=CALL_KINDS)).resumed(),
        step_types=collect_step_types(request.hooks),
        sandbox=sandbox,
    )
    before = [fact.data for fact in journal.facts(facts.RunOpened, run=run_id)]
    seeds = [one.seed for one in before]
    seed = next((seed for seed in [request.info.seed, *reversed(seeds)] if seed is not None), None)
    idea_text = run.idea.text if run.idea else ""
    info = evolve(request.info, id=run_id, project=request.root, idea=idea_text, seed=seed)
    hooks = evolve(request.hooks, report=_recorder(run))
    run.request = evolve(request, info=info, hooks=hooks, last_run=None)
    run.sandbox = evolve(sandbox, hooks=hooks)

    opening: list[Record] = []
    interrupted = any(record.status == "running" for record in last.state.steps.values())
    read = await read_project(request.root, git)
    if unknown := unknown_keys(read.config):
        names = sanitize(", ".join(unknown[:MAX_KEYS]), multiline=False)
        log.warning("%s: unknown keys are kept and have no effect: %s", CONFIG, names)
    planning = snapshot_of(read)
    claims = claims_at_opening(last.state, planning, interrupted=interrupted)
    head = await git.head() or ""
    if not last.id:
        fact = facts.RunStarted(
            idea=run.idea,
            workflow=run.settings.workflow,
            base=facts.Base(commit=head or None, dirty=tuple(await git.dirty())),
            journal_lost=bool(await git.trailed()) and not any(journal.facts(facts.RunStarted)),
            milestone=milestone or None,
        )
        opening.append(run.record(fact))
    elif interrupted:
        # What was committed since may be the agent's doing.
        head = next((one.head for one in reversed(before) if one.head), head)
    # A request to stop that is still in the inbox was meant for an earlier process. Answers stay valid.
    journal.consumed([item.id for item in journal.take_inbox() if item.kind == "stop"])
    take_answers(run)
    run.workspace.branch = await git.branch()
    # What an interrupted process of the same command has done is reported, and not done again.
    steps = asked_by(journal.path.parent, request.command, last.state).items()
    done = [step for step, is_done in steps if is_done and step in request.asked]
    plugin_keys = ("name", "version", "source", "sha256", "status", "reason")
    process = facts.RunOpened(
        epoch=epoch,
        resumed=bool(last.id),
        seed=seed,
        branch=run.workspace.branch,
        head=head,
        claims=claims,
        answered=tuple(done),
        pid=os.getpid(),
        start=start_time(os.getpid()),
        boot=boot_id(),
        version=gsd_core.__version__,
        options=request.options,
        agent=run.settings.agent,
        sandbox=facts.UsedSandbox(name=run.sandbox.name, why=run.sandbox.why),
        typed=request.typed,
        trusted=request.trusted,
        plugins=tuple({key: str(getattr(info, key)) for key in plugin_keys} for info in request.plugins),
        left_out=tuple(detectors_left_out(request.plugins)),
    )
    opening.append(run.record(process))
    for step, text in request.asked.items():
        if step not in done:
            run.record(facts.StepAsked(text=safe_text(text)), step=step)
    keep_asked(journal.path.parent, request.command, run_id, list(request.asked))
    return run, opening


def farewell(state: State, command: str) -> str:
    """Return what is left of a run that a second signal ends at once; *command* begins those to type."""
    # Also one whose question is open, or whose attempt the first signal has ended.
    over = ("completed", "failed", "skipped")
    steps = [str(record.id) for record in state.steps.values() if record.status not in over]
    about = f"ended at once, in the middle of {', '.join(steps)}" if steps else "ended at once"
    # `gsd resume` would continue the lifecycle, and not what was asked for.
    how = "by repeating this command" if state.options.only_asked else f"with: {command} resume"
    kept = "finished tasks are committed, and what was changed since is still in the folder"
    return f"{about}; {kept}\ncontinue {how}"


async def _run_to_end(run: Run, opening: Sequence[Record]) -> RunEnd:
    """Run with signal handlers and the watchdog; an error while the plugins start ends the run too."""
    watchdog = Watchdog(lambda blocked: _record_blocked(run, blocked))
    ends = stopping(run.mark, lambda: farewell(run.state, run.request.info.command), run.turns)
    with ends as stopper, watchdog:
        try:
            return await _with_plugins(run, opening, stopper)
        except Fenced as exc:
            # The run belongs to another process: nothing can be recorded about it here.
            return RunEnd(outcome="stopped", exit=ExitCode.FAILED, reason=str(exc), run=run.id)
        except (GsdError, OSError, MemoryError, RuntimeError, asyncio.CancelledError) as exc:
            if end := _end_by(exc, run, stopper):
                return await _close(run, end)
            raise


async def _with_plugins(run: Run, opening: Sequence[Record], stopper: Stopper | None) -> RunEnd:
    """Start the plugins' lifespans, then the event subscribers, then the loop.

    In this order all of them are still active when the event that ends the run is published.
    """
    leftovers = await end_leftovers(run)
    await finish_undoing(run)
    await restore_config(run)
    async with AsyncExitStack() as stack:
        info = run.request.info
        found = run.hooks.collect(gsd_lifespan, lambda context: str(id(context)), info)
        for failure in found.failures:
            log.warning("%s; the run works without what it sets up; %s", failure, failure.hint)
        for plugin, context in found.items:
            lifespan = PluginContext(
                plugin=plugin, hook="gsd_lifespan", context=context, grace=run.hooks.grace
            )
            await stack.enter_async_context(_entered(run, lifespan))
        publisher = await stack.enter_async_context(publishing(run))
        project = ProjectInfo(root=run.root, yes=info.yes, config=read_config(run.root))
        run.progress.proposals = proposed_config(run.hooks, project)
        for fact in opening:
            publisher.publish_fact(run.state, fact)
        if leftovers != facts.Recovered():
            run.record(leftovers)
        try:
            end = await _loop_to_end(run, stopper)
            closed = await _close(run, end)
            if run.state.closed is None:
                # The journal cannot be written, so no fact says that the run ended.
                data: dict[str, Any] = {**unstructure(end), "notes": []}
                about = Event(seq=run.state.seq, name="run.closed", at=run.now(), run=run.id, data=data)
                publisher.notify(run.state, about)
            return closed
        except Exception as exc:
            if not isinstance(exc, GsdError):
                what = clip(safe_text(f"{type(exc).__name__}: {exc}"), 2000)
                crash = Notice(
                    key=f"crash {run.id} {run.state.seq}",
                    type="crash",
                    level="error",
                    title=f"{run.root.name}: gsd crashed",
                    body=f"{what}\nContinue with: {publisher.notifier.command} resume",
                    run=run.id,
                )
                publisher.notifier.send(crash)
            raise


@asynccontextmanager
async def _entered(run: Run, lifespan: PluginContext) -> AsyncGenerator[None]:
    """Enter and exit a plugin's lifespan. A failure to start ends the run; one to exit is only reported."""
    try:
        await lifespan.enter(min(run.limits.idle, LIFESPAN_LIMIT))
    except (PluginError, StepError) as exc:
        report_failure(run.hooks.report, lifespan.plugin, lifespan.hook, exc)
        hint = exc.hint if isinstance(exc, PluginRefused) else ""
        said: BaseException = exc
        if isinstance(cause := exc.__cause__, UserError):
            # The plugin says itself what the user has to change: it did not fail.
            said, hint = cause, cause.hint
        hint = hint or f"run with -p no:{lifespan.plugin} to continue without it"
        raise ConfigError(f"plugin {lifespan.plugin!r} cannot start: {said}", hint=hint) from exc
    try:
        yield
    finally:
        if fault := await lifespan.exit(None, run.hooks.grace):
            report_failure(run.hooks.report, lifespan.plugin, lifespan.hook, fault)
            about = "%s, at the end of the run, whose result stands; what it cleans up may be left; %s"
            log.warning(about, fault, fault.hint)


async def _loop_to_end(run: Run, stopper: Stopper | None) -> End:
    try:
        async with _watched_inbox(run):
            return await loop(run)
    except (GsdError, OSError, MemoryError, RuntimeError, asyncio.CancelledError) as exc:
        if end := _end_by(exc, run, stopper):
            return end
        raise


@asynccontextmanager
async def _watched_inbox(run: Run) -> AsyncGenerator[None]:
    """Take answers while a step is running, and cancel the step when another process asks for a stop."""
    main = asyncio.current_task()
    assert main is not None

    async def watch() -> None:
        while not run.state.stop_asked:
            await asyncio.sleep(INBOX_POLL.total_seconds())
            take_answers(run)

    task = asyncio.create_task(watch(), name="gsd:inbox")
    # It ends because of a request, or because the journal cannot be used: then nothing could be recorded.
    task.add_done_callback(lambda ended: ended.cancelled() or main.cancel())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _end_by(exc: BaseException, run: Run, stopper: Stopper | None) -> End | None:
    """Return how *exc* ends the run; ``None`` if it is not ours to handle."""
    if isinstance(exc, Fenced):
        return None
    if isinstance(exc, OSError | MemoryError | RuntimeError):
        if (trouble := machine_error(exc)) is None:
            return None
        exc = trouble
    if isinstance(exc, GsdError):
        if (task := asyncio.current_task()) and task.cancelling():
            task.uncancel()  # by the watcher of the inbox, whose error this is
        reason = f"{exc} ({exc.hint})" if exc.hint else str(exc)
        return End(outcome="failed", exit=exit_code(exc), reason=reason)
    if stopper and stopper.received:
        name = signal.Signals(stopper.received).name
        end = End(outcome="stopped", exit=128 + stopper.received, reason=f"received {name}")
    elif run.state.stop_asked:
        end = End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason="on request")
    else:
        return None  # the caller of run_project cancels us
    if task := asyncio.current_task():
        task.uncancel()  # the cancellation is handled here; the caller must not see it
    return end


async def _close(run: Run, end: End) -> RunEnd:
    """Record how the run ended, with its cost and number of commits; keep an end that is already recorded."""
    try:
        commits = len(await run.git.trailed(run.id))
    except GsdError:
        commits = 0  # git cannot be started either; what ended the run is more important
    total = sum((call.usage for call in run.ledger.calls.values()), Usage()).dollars
    dollars = str(total.quantize(Decimal("0.0001"))) if total else "" if total is None else "0"
    if run.state.closed:
        # Not the state's, which is the lifecycle's if this process only did steps that were asked for.
        closed = [*run.facts(facts.RunClosed)][-1].data
    else:
        closed = facts.RunClosed(
            outcome=end.outcome,
            exit=end.exit,
            reason=end.reason,
            notes=tuple(notes_of(run)),
            dollars=dollars,
            commits=commits,
        )
        # A journal that cannot be written is the end that is reported here. The run then counts as
        # interrupted, and can be resumed.
        with suppress(JournalError):
            run.record(closed)
    return RunEnd(
        outcome=closed.outcome,
        exit=closed.exit,
        reason=closed.reason,
        run=run.id,
        notes=closed.notes,
        dollars=dollars,
        commits=commits,
    )


def _recorder(run: Run) -> Callable[[PluginFailure], None]:
    """Return a function that records a plugin's failure as a fact; any thread may call it."""
    running = asyncio.get_running_loop()

    def record(failure: PluginFailure) -> None:
        error = clip(safe_text(str(failure.error)), 2000)
        with suppress(GsdError):
            run.record(facts.PluginFailed(plugin=failure.plugin, hook=failure.hook, error=error))

    def record_soon(failure: PluginFailure) -> None:
        running.call_soon_threadsafe(record, failure)

    return record_soon


def _record_blocked(run: Run, blocked: Blocked) -> None:
    """Record which plugin blocks the event loop.

    This runs in the watchdog's thread, because the loop is blocked. So the fact goes straight to the
    journal: only the loop may touch the state and the subscribers.
    """
    log.warning("%s", safe_text(str(blocked), multiline=False))
    fact = facts.PluginFailed(plugin=blocked.plugin, hook=blocked.hook, error=safe_text(str(blocked)))
    with suppress(GsdError):
        run.journal.append(KIND_OF[facts.PluginFailed], unstructure(fact), run=run.id)
