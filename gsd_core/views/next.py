"""What is due next, in words: for ``gsd next`` and ``gsd run --dry-run``.

The machine decides what is due; nothing here does. With an unfinished run its state counts, else the
planning files alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.codec import unstructure
from gsd_core.journal.lock import Owner
from gsd_core.machine.claims import claims_at_opening, is_stale
from gsd_core.machine.due import (
    ApplyResult,
    AskAgain,
    Due,
    End,
    Escalate,
    Settle,
    Start,
    Wait,
    due,
    startable_plans,
)
from gsd_core.machine.facts import Record, RunOpened
from gsd_core.machine.fold import fold
from gsd_core.machine.obsolete import MILESTONE_STEPS
from gsd_core.machine.state import Options, PhaseSnapshot, RunOutcome, Snapshot, State, StepRecord
from gsd_core.model.counts import counted
from gsd_core.model.ids import CORE_KINDS, INIT, StepId
from gsd_core.model.question import Question, answer_command
from gsd_core.model.step import StepType
from gsd_core.planning.model import PhaseView, Planning
from gsd_core.planning.survey import NONE_IN_PROGRESS
from gsd_core.sanitize import first_line
from gsd_core.serializer import SCHEMA_VERSION, TEXT, Schema, Serializer, null

from .amounts import MAX_LISTED
from .status import NO_ANSWERS, RESUME, current_step, open_questions

MAX_QUESTION = 200
_SCORE = re.compile(r"(\d+)\s*/\s*(\d+)")

Added: TypeAlias = Sequence[tuple[str, StepType]]
"""The kinds of steps that plugins add, each with the plugin's name."""


def added_by(added: Added, kind: str) -> tuple[str, str]:
    """Return the plugin that adds steps of *kind*, and their title; both empty for an unknown kind."""
    return next(((plugin, one.title) for plugin, one in added if one.kind == kind), ("", ""))


@attrs.frozen(kw_only=True)
class Next:
    """The step that is due, by its id in the journal; *step* is empty if nothing is.

    *reason* says why, *command* what to type. *question* is the id of the one that the step waits for; of its
    text *reason* has the first line. *ready* are the steps that could begin now, *step* first. *finish* is
    the command for a milestone whose phases are all complete, *begin* the one after it is closed.
    """

    step: str = ""
    reason: str = ""
    command: str = ""
    question: str = ""
    ready: tuple[str, ...] = ()
    finish: str = ""
    begin: str = ""


def next_of(
    state: State,
    planning: Planning,
    snapshot: Snapshot,
    *,
    holder: Owner | None = None,
    pending_answers: Mapping[str, str] = NO_ANSWERS,
    gsd: str = "gsd",
    added: Added = (),
) -> Next:
    """Return what is due in a project whose last run has *state*, and whose files are *planning* now.

    *holder* is the process that runs in the project; *gsd* is how to call gsd for the project. *added* are
    the kinds of steps that plugins add.
    """
    active = current_step(state) if holder else None
    if holder and active and not _open_question(state, str(active.id), pending_answers):
        name = str(active.id)
        reason = f"it is running now (pid {holder.pid} on {holder.host})"
        return Next(step=name, reason=reason, command=f"{gsd} status", ready=(name,))
    now = state_now(state, snapshot, works=holder is not None and state.closed is None)
    work = due(now)
    first = work[0]
    if isinstance(first, End):
        begin = f"{gsd} run IDEA" if planning.idle.endswith(NONE_IN_PROGRESS) else ""
        return Next(reason=first.reason, finish=finish_command(snapshot, gsd), begin=begin)
    step = str(first.step)
    if first.step == StepId(kind=INIT) and not state.idea and isinstance(first, Start):
        return Next(step=step, reason="the project has no idea yet", command=f"{gsd} run IDEA")
    reason = describe_due(first, now, planning, before=state, added=added)
    command = f"{gsd} status" if holder else command_for(state, first, gsd)
    asked = ""
    if question := _open_question(now, step, pending_answers):
        asked, reason, command = question.id, _waits_for(question), answer_command(question, gsd)
    return Next(step=step, reason=reason, command=command, question=asked, ready=_ready(now, work))


def finish_command(seen: Snapshot | None, gsd: str = "gsd") -> str:
    """Return the command that archives a milestone whose phases are all complete; empty for others."""
    phases = seen.phases if seen else ()
    return f"{gsd} milestone complete" if phases and all(phase.ticked for phase in phases) else ""


def commands_after(
    outcome: RunOutcome | Literal["interrupted"],
    seen: Snapshot | None,
    reason: str,
    limits: Mapping[str, Decimal | int | None],
) -> list[str]:
    """Return the commands to continue with after a run that ended with *outcome*, for a *reason*.

    *seen* are its files, *limits* is what it might use, by the flag that limits it.
    """
    match outcome:
        case "done":
            return list(filter(None, ["gsd report --open", finish_command(seen)]))
        case "gaps":
            gaps = [one.number for one in (seen.phases if seen else ()) if one.verdict == "gaps_found"]
            return [*(f"gsd gaps {number}" for number in gaps[:MAX_LISTED]), RESUME]
        case "failed":
            return ["gsd log --kind failure", RESUME]
        case "budget":
            more = [f" {flag} {2 * limit}" for flag, limit in limits.items() if flag in reason and limit]
            return ["gsd cost --by step", "".join([RESUME, *more])]
        case "blocked" | "stopped" | "interrupted":
            return [RESUME]


def state_now(state: State, snapshot: Snapshot, *, works: bool) -> State:
    """Return *state* with the files as they are now; unless a process *works* on it, as a next one has it."""
    # A process that works does not start over what failed: a person may have been asked about that.
    return attrs.evolve(state, seen=snapshot) if works else state_when_resumed(state, snapshot)


def state_when_resumed(state: State, snapshot: Snapshot) -> State:
    """Return *state* with the files as they are now, and as the next process of the run would have it."""
    if not state.run:
        claims = claims_at_opening(state, snapshot, interrupted=False)
        return attrs.evolve(state, seen=snapshot, claims=claims)
    interrupted = any(record.status == "running" for record in state.steps.values())
    claims = claims_at_opening(state, snapshot, interrupted=interrupted)
    data = unstructure(RunOpened(options=state.lifecycle or Options(), claims=claims))
    place: dict[str, Any] = {"seq": state.seq, "run": state.run, "at": state.last_at}
    opened = Record(**place, epoch=state.epoch + 1, kind="run.opened", v=1, step="", attempt=0, data=data)
    return fold(attrs.evolve(state, seen=snapshot), [opened])


def _open_question(state: State, step: str, pending_answers: Mapping[str, str]) -> Question | None:
    asked = [one for one in open_questions(state) if one.step == step]
    return next((one.question for one in asked if one.question.id not in pending_answers), None)


def _ready(state: State, work: Sequence[Due]) -> tuple[str, ...]:
    """Return the steps that can begin: those that are due, and plans that could be executed beside one."""
    found = [str(work[0].step)] if not isinstance(work[0], End) else []
    for one in work:
        if not isinstance(one, Start | ApplyResult | Settle):
            continue
        found.append(str(one.step))
        phase = state.seen.phase(_id_of(one).phase) if state.seen else None
        if isinstance(one, Start) and one.step.kind == "execute" and phase:
            waiting = [plan for plan in phase.plans if not plan.summary]
            ready = sorted(startable_plans(waiting), key=lambda plan: (plan.wave, plan.id))
            found += [str(attrs.evolve(one.step, detail=plan.id)) for plan in ready]
    return tuple(dict.fromkeys(found))


def command_for(state: State, work: Due, gsd: str = "gsd") -> str:
    """Return the command that does *work*: the unfinished run continues, else one of that phase begins.

    A step that the user asked for is asked for once more: ``gsd resume`` would do more than that.
    """
    step = _id_of(work)
    if (words := state.asked.get(str(step))) is not None and (again := _again(step, words)):
        return f"{gsd} {again}"
    if state.run and (state.unfinished or str(step) in state.asked):
        return RESUME.replace("gsd", gsd, 1)
    return phase_command(state, step.phase, gsd)


def phase_command(state: State, number: str, gsd: str = "gsd") -> str:
    """Return the command that works on phase *number*: after a run, with its agent, limits and models."""
    # Only a number can be given to --phases: 2-01 is a range there.
    if not re.fullmatch(r"[\d.]+[A-Z]?", number):
        return f"{gsd} run"
    return f"{gsd} {'resume' if state.run else 'run'} --phases {number}"


_COMMANDS = {"survey": "map", "audit": "milestone audit", "close": "milestone complete"}
"""Commands for one step that take no arguments, by the kind of the step."""


def _again(step: StepId, words: str) -> str:
    """Return the command that asks for *step* again, without ``gsd``; empty if it cannot be typed."""
    if len(words) > MAX_QUESTION or not words.isprintable():
        return ""
    full = "--full " if words.startswith("--full ") else ""
    quoted = shlex.quote(words.removeprefix("--full "))
    match step.kind:
        case "plan":
            return f"plan {step.phase}{' --gaps' if step.round else ''}"
        case "discuss" | "execute" | "verify":
            return f"{step.kind} {step.phase}" + (f" {quoted}" if words else "")
        case "quick":
            return f"quick {full}{quoted}"
        case "debug":
            return f"debug {quoted}"
        case kind:
            return _COMMANDS.get(kind, "")


def _id_of(work: Due) -> StepId:
    if isinstance(work, Start):
        return work.step
    return StepId(kind="init") if isinstance(work, End) else StepId.parse(work.step)


def describe_due(
    work: Due,
    state: State,
    planning: Planning | None = None,
    *,
    before: State | None = None,
    added: Added = (),
) -> str:
    """Return in plain words why *work* is due; *before* is the run's state when its last process ended.

    *planning* adds details that the state does not have, *added* are plugins' kinds of steps.
    """
    step = "" if isinstance(work, End) else str(work.step)
    record = (before or state).steps.get(step)
    match work:
        case End():
            return work.reason
        case ApplyResult():
            return "its result is recorded, but not written to the files yet"
        case Settle():
            return f"attempt {work.attempt} was interrupted"
        case AskAgain():
            return _waits_for(work.inquiry.questions[0])
        case Wait():
            until = work.until.isoformat(timespec="seconds")
            if record and record.failure and work.why == record.failure.message:
                return f"it failed for now, and is tried again at {until}"
            return f"it waits until {until}: {first_line(work.why, MAX_QUESTION)}"
        case Escalate():
            return _describe_escalation(work)
        case Start():
            again = _describe_earlier_attempt(record)
            return "; ".join(filter(None, [again, _describe_start(work, state, planning, added)]))


def _waits_for(question: Question) -> str:
    return f"it waits for an answer: {first_line(question.text, MAX_QUESTION)}"


def _describe_earlier_attempt(record: StepRecord | None) -> str:
    if record and record.failure and record.status in ("failed", "waiting"):
        return f"the last attempt failed ({record.failure.message})"
    return "the last attempt was interrupted" if record and record.status == "waiting" else ""


def _describe_escalation(work: Escalate) -> str:
    match work.cause:
        case "failed":
            message = work.failure.message if work.failure else "no cause is recorded"
            return f"it failed ({message}), and a person decides how to continue"
        case "lost":
            return "it was interrupted again and again, and a person decides how to continue"
        case "repeats":
            return "it was completed several times and undone each time, and a person decides how to continue"
        case "gaps":
            return f"{counted(len(work.gaps), 'gap')} left after the last round, and a person decides"


def _describe_start(work: Start, state: State, planning: Planning | None, added: Added) -> str:
    kind = work.step.kind
    if (words := state.asked.get(str(work.step))) is not None:
        if str(work.step) not in state.requested:
            return "you asked for it, and it is not done"
        about = words.removeprefix("--full ")
        return f"you asked for it: {about}" if about else "you asked for it"
    phase = state.seen.phase(work.step.phase) if state.seen else None
    if phase is None and (why := _why_without_phase(work.step, state)):
        return why
    if phase is None or kind not in CORE_KINDS:
        plugin, title = added_by(added, kind)
        return f"a step of the plugin {plugin or '(not loaded)'} is due: {title or kind}"
    view = planning.phase(phase.number) if planning else None
    match kind:
        case "discuss":
            return "no decisions are recorded yet, and no plan exists"
        case "plan":
            return _describe_plan(work, phase, view)
        case "execute":
            done = sum(plan.summary for plan in phase.plans)
            about = f"{done} of {counted(len(phase.plans), 'plan')} executed"
            skip = "; a plan that is not to be executed needs 'status: superseded' in its frontmatter"
            return f"{about}, although the phase is marked as complete{skip}" if phase.ticked else about
        case "verify":
            return _describe_verify(state, phase, view)
        case "complete":
            skipped = state.options.skip_verify and phase.verdict != "passed"
            return "all plans are executed, and verification is skipped" if skipped else "verification passed"
        case _:
            return f"{kind} is due"


def _why_without_phase(step: StepId, state: State) -> str:
    if step.kind == INIT:
        return "the project has no roadmap yet"
    if step.kind in MILESTONE_STEPS:
        return f"the phases of {step.detail or state.milestone} are complete"
    if step.kind == "survey" and not (state.seen and state.seen.phases):
        return "the project has code, and no roadmap yet"
    return ""


def _describe_plan(work: Start, phase: PhaseSnapshot, view: PhaseView | None) -> str:
    if work.for_gaps:
        verdict = view.verdict if view else None
        score = _SCORE.search(verdict.score) if verdict else None
        total = f" of {score[2]}" if score else ""
        return f"gaps found: {len(phase.gaps)}{total}"
    missing = [plan.id for plan in phase.plans if not plan.on_disk]
    if not missing:
        return "no plan exists yet"
    return f"{len(missing)} of {counted(len(phase.plans), 'plan')} not written yet: {', '.join(missing)}"


def _describe_verify(state: State, phase: PhaseSnapshot, view: PhaseView | None) -> str:
    if not phase.verdict:
        return f"{counted(len(phase.plans), 'plan')} executed, not verified yet"
    if is_stale(state, phase):
        return "plans were executed after the last verification"
    if phase.verdict == "human_needed":
        checks = len(view.verdict.human) if view and view.verdict else 0
        return f"the verification needs a person: {counted(checks, 'check')} left"
    if phase.verdict == "gaps_found":
        return "the verification says gaps_found, but lists no gap"
    return "VERIFICATION.md has no verdict that can be read"


def next_json(found: Next) -> dict[str, Any]:
    """Return *found* as JSON data; without a due step all fields but the reason are null or empty."""
    return {"schema_version": SCHEMA_VERSION, **NEXT.dump(found)}


def _of_step(part: str) -> tuple[Schema, Callable[[Next], str | None]]:
    return null(TEXT), lambda found: (getattr(StepId.parse(found.step), part) if found.step else "") or None


NEXT = Serializer(
    Next,
    "step? kind phase plan reason command? question? ready",
    kind=_of_step("kind"),
    phase=_of_step("phase"),
    plan=_of_step("detail"),
)
