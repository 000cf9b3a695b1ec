"""Execute a plan elsewhere: submit it as a unit of work, copy its facts into the journal, take its commits.

What a unit does is recorded here as if it were done here, so that cost, questions and progress appear as
always. Its commits are a branch of the remote. They are taken only if they are what an executor could have
committed here, and they are merged like those of another work tree (:mod:`.integration`).

The unit has an id that is recorded before it is submitted. A process that continues the run finds the unit,
skips the facts that it has copied already, and continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import attrs

import gsd_core
from gsd_core.codec import structure
from gsd_core.errors import ConfigError, GsdError, Parked, Permanent, ProjectError
from gsd_core.git import remote
from gsd_core.git.repository import common_dir, prefix
from gsd_core.hookspecs import gsd_dispatch
from gsd_core.machine import facts
from gsd_core.machine.due import Start
from gsd_core.machine.facts import KIND_OF, Recorded
from gsd_core.machine.state import inquiry_key
from gsd_core.model.counts import some_of
from gsd_core.model.ids import EXECUTE, slug
from gsd_core.model.question import Inquiry
from gsd_core.model.step import StepResult
from gsd_core.model.work_unit import Dispatcher, WorkUnit
from gsd_core.protected_paths import protected_part
from gsd_core.settings import variable_of

from . import integration
from .agent_call import check_budget
from .integration import merges
from .questions import POLL, ask
from .runtime import Run
from .step import fail_elsewhere, validate_unit_result

COPIED: tuple[type[Any], ...] = (
    *(facts.AttemptStarted, facts.AttemptFailed, facts.TimerSet, facts.TimerFired, facts.StepReturned),
    *(facts.StepFailed, facts.CheckedBefore, facts.CheckReplaced, facts.TaskCommitted, facts.TaskDeferred),
    *(facts.AgentOpened, facts.AgentUsed, facts.AgentClosed, facts.QuestionAsked, facts.QuestionWithdrawn),
)
"""What a unit may say. The rest is about its own machine, or not for an executor to say."""
_CLASS_OF = {KIND_OF[kind]: kind for kind in COPIED}
_COUNTED = tuple(kind for kind in COPIED if kind not in (facts.QuestionAsked, facts.QuestionWithdrawn))
"""Of these, nothing else is recorded while a unit is followed: their number says how far it was copied."""
OWN = {("run", name) for name in ("dispatch", "remote", "phases", "only", "max_parallel", "workspace")}
"""Settings that are not for a unit."""
GRACE = timedelta(seconds=2)


class Refused(Permanent):
    """What came back of a unit is not what an executor could have done here."""


async def dispatched(run: Run, start: Start) -> bool:
    """Execute a plan elsewhere; return whether it was: not without a dispatcher, nor to merge its work."""
    step = str(start.step)
    submitted = open_unit(run, step)
    if start.step.kind != EXECUTE or merges(run, step) or not (submitted or run.settings.dispatch):
        return False
    try:
        names = (submitted.data.plugin,) if submitted else run.settings.dispatch
        dispatcher, plugin = await _dispatcher(run, names)
        submitted = submitted or await _new_unit(run, start, plugin)
        await dispatcher.submit(submitted.data.unit)
        await _Follower(run=run, start=start, dispatcher=dispatcher, submitted=submitted).follow()
    except Parked as exc:
        _lost(run, step, why="parked", questions=tuple(exc.questions))
    except asyncio.CancelledError:
        _lost(run, step, why="stopped")
        raise
    except GsdError as exc:
        await fail_elsewhere(run, start, exc)
    return True


def open_unit(run: Run, step: str) -> Recorded[facts.UnitSubmitted] | None:
    """Return the unit of *step* that was submitted and has not ended, if there is one."""
    found: Recorded[facts.UnitSubmitted] | None = None
    for fact in run.facts(facts.UnitSubmitted, facts.UnitEnded, facts.StepFailed, step=step):
        found = cast("Any", fact) if isinstance(fact.data, facts.UnitSubmitted) else None
    return found


def _lost(run: Run, step: str, **about: Any) -> None:
    if run.step(step).status == "running":
        run.record(facts.AttemptLost(**about), step=step, attempt=run.step(step).attempt)


async def _dispatcher(run: Run, names: Sequence[str]) -> tuple[Dispatcher, str]:
    outcome = await run.hooks.pick(gsd_dispatch, tuple(names), object)
    if outcome is None or not isinstance(outcome.value, Dispatcher):
        raise ConfigError(f"no plugin executes plans elsewhere: {', '.join(names)}", hint="see --dispatch")
    return outcome.value, outcome.plugin


async def _new_unit(run: Run, start: Start, plugin: str) -> Recorded[facts.UnitSubmitted]:
    """Publish the commit to begin with, and record the unit before it is submitted."""
    step = str(start.step)
    await check_budget(run, step)
    number = 1 + sum(1 for _ in run.facts(facts.UnitSubmitted, step=step))
    head = await run.git.head()
    if head is None:
        raise ProjectError("there is no commit to begin with", hint="commit the project's files")
    # What an earlier unit has committed is not done again.
    base = next(integration.commits_of(run, step), head)
    # The clone has what is committed: neither another plan nor settings that nobody has trusted may be used.
    changed = await run.git.call(run.git.command, "diff", "--name-only", "-z", "--no-renames", "HEAD")
    if others := [path for path in changed.split("\0") if path and protected_part(path)]:
        raise ProjectError(
            f"{step} cannot be executed elsewhere: not committed: {some_of(others)}", hint="commit it"
        )
    address = run.settings.remote or str(await run.git.call(common_dir, run.git.command))
    name = f"{run.id}-{slug(step)}-{number}"
    # One that was published by a process that was killed before it recorded the unit.
    while await run.git.call(remote.tip, run.git.command, address, f"gsd/{name}"):
        number += 1
        name = f"{run.id}-{slug(step)}-{number}"
    unit = WorkUnit(
        id=name,
        run=run.id,
        step=step,
        phase=start.step.phase,
        plan=start.step.detail,
        remote=address,
        base=base,
        branch=f"gsd/{name}",
        folder=await run.git.call(prefix, run.git.command),
        settings=dict(_settings(run)),
        version=gsd_core.__version__,
    )
    await run.git.call(remote.publish, run.git.command, unit.remote, base, unit.branch)
    run.record(facts.UnitSubmitted(unit=unit, plugin=plugin, attempts=run.step(step).attempt), step=step)
    submitted = open_unit(run, step)
    assert submitted
    return submitted


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    """Yield what was given on the command line, as variables: a worker has its own other settings."""
    for section, values in run.request.typed.items():
        for key, value in values.items():
            if (section, key) not in OWN:
                several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
                yield variable_of(section, key), ",".join(map(str, several))


@attrs.define(kw_only=True)
class _Follower:
    """Copies the facts of one unit; *tip* is the last of its commits that was taken."""

    run: Run
    start: Start
    dispatcher: Dispatcher
    submitted: Recorded[facts.UnitSubmitted]
    tip: str = ""
    asking: dict[str, asyncio.Task[None]] = attrs.field(factory=dict[str, "asyncio.Task[None]"])

    @property
    def unit(self) -> WorkUnit:
        return self.submitted.data.unit

    async def follow(self) -> None:
        """Copy what the unit says until it ends, and answer its questions; cancel it if that is cancelled."""
        run, step = self.run, self.submitted.step
        known = [*run.facts(*_COUNTED, step=step, after=self.submitted.seq)]
        self.tip = next(
            (one.data.commit for one in reversed(known) if isinstance(one.data, facts.TaskCommitted)), ""
        )
        for question in run.state.inquiries.values():
            # Also those that were answered when nobody followed the unit.
            if question.inquiry.step == step and question.inquiry.kind != "escalation":
                self._ask(question.inquiry, question.key)
        copying = asyncio.create_task(self._copy(len(known)), name=f"gsd:unit {self.unit.id}")
        try:
            while not copying.done():
                # A question may come meanwhile.
                tasks = [copying, *self.asking.values()]
                await asyncio.wait(tasks, timeout=POLL.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
                for key in [key for key, task in self.asking.items() if task.done()]:
                    self.asking.pop(key).result()
            copying.result()
        except BaseException:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.dispatcher.cancel(self.unit.id), GRACE.total_seconds())
            raise
        finally:
            for task in (copying, *self.asking.values()):
                task.cancel()
            await asyncio.gather(copying, *self.asking.values(), return_exceptions=True)
        end = await self.dispatcher.wait(self.unit.id)
        is_over = run.step(step).status in ("result", "failed")
        run.record(facts.UnitEnded(unit=self.unit.id, problem=end.problem), step=step)
        if not is_over:
            raise Permanent(end.problem or "the work on the plan ended without a result", hint=end.hint)

    async def _copy(self, known: int) -> None:
        async for fact in self.dispatcher.facts(self.unit.id):
            step, attempt = self.submitted.step, self.submitted.data.attempts + fact.attempt
            if fact.kind == KIND_OF[facts.AgentActivity] and not known:
                activity = structure(fact.data, facts.AgentActivity)
                self.run.note(activity, step=step, attempt=attempt)
                if activity.usage:
                    await check_budget(self.run, step, key=activity.key)
            if (kind := _CLASS_OF.get(fact.kind)) is None:
                continue
            data = structure(fact.data, kind)
            if isinstance(data, facts.QuestionAsked) and data.inquiry.kind == "escalation":
                continue  # what to do about a failure is asked here
            if isinstance(data, facts.QuestionAsked | facts.QuestionWithdrawn):
                if self._has(data):
                    continue
            elif known:
                known -= 1
                continue
            self.run.record(await self._accepted(data), step=step, attempt=attempt)
            if isinstance(data, facts.QuestionAsked):
                self._ask(data.inquiry, data.occasion)

    def _has(self, data: facts.QuestionAsked | facts.QuestionWithdrawn) -> bool:
        key = inquiry_key(data.inquiry) if isinstance(data, facts.QuestionAsked) else data.key
        record = self.run.state.inquiries.get(key)
        return record is not None and (isinstance(data, facts.QuestionAsked) or record.withdrawn)

    def _ask(self, inquiry: Inquiry, occasion: str) -> None:
        async def answered() -> None:
            for answer in await ask(self.run, inquiry, step=self.submitted.step, key=occasion):
                await self.dispatcher.answer(self.unit.id, answer)

        key = f"{occasion} {inquiry.questions[0].id}"
        self.asking[key] = asyncio.create_task(answered(), name=f"gsd:question of {self.unit.id}")

    async def _accepted(self, data: Any) -> Any:
        """Return a fact as it is recorded; raise :class:`Refused` if it is not true, or not for it to say."""
        match data:
            case facts.AttemptStarted():
                return cast("Any", attrs.evolve)(data, tree=f"unit {self.unit.id}")
            case facts.TaskCommitted(commit=commit):
                await self.run.git.call(self._take, commit)
                self.tip = commit
                return data
            case facts.StepReturned(result=result):
                await validate_unit_result(
                    self.run, self.start, structure(result, StepResult), self.submitted.data.plugin
                )
                return cast("Any", attrs.evolve)(data, tip=self.tip or None)
            case _:
                return data

    def _take(self, commit: str) -> None:
        """Fetch the unit's branch, and refuse a *commit* that an executor could not have made here."""
        git, unit = self.run.git.command, self.unit
        tip = remote.fetch(git, unit.remote, unit.branch)
        for older, newer, what in (
            (self.tip or unit.base, commit, "is not based on it"),
            (commit, tip, "is not on its branch"),
        ):
            if not git.succeeds("merge-base", "--is-ancestor", older, newer):
                raise Refused(
                    f"unit {unit.id}: its commit {commit[:10]} {what}", hint="its worker may be hostile"
                )
        changed = git("diff", "--name-only", "-z", "--no-renames", unit.base, commit).split("\0")
        if foreign := [path for path in changed if path and protected_part(path)]:
            raise Refused(f"unit {unit.id} changes {some_of(foreign)}", hint="its worker may be hostile")
