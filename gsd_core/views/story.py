"""What a run did, in words for people: one entry for each thing worth telling, in the order of the journal.

A :class:`Narrator` is fed all records, because an entry may need what came before: how long an agent call
took, which question was answered. What is not worth telling has no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from gsd_core.errors import JournalError
from gsd_core.machine import facts
from gsd_core.machine.facts import KIND_OF, Record, Recorded, typed
from gsd_core.model.counts import some_of
from gsd_core.model.ids import StepId
from gsd_core.model.question import Answer
from gsd_core.model.usage import Usage
from gsd_core.sanitize import one_line

from .amounts import MAX_LISTED, cost_text, counted, dollars_text, duration_text, names_text, tokens_text

Data: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal[
    "run",
    "step",
    "task",
    "question",
    "gap",
    "failure",
    "agent",
    "activity",
    "notification",
    "change",
    "other",
]
Sign: TypeAlias = Literal["done", "failed", "question", "answer", "wait", "note"]

MAX_LINE = 2000
FUNCTION_TOOLS = "mcp__gsd__"
"""What the Claude agent puts before the name of a step's own tool, such as ``task_done``."""

KINDS: Mapping[Kind, tuple[str, ...]] = {
    "run": ("run.started", "run.opened", "run.closed", "recovered", "control.asked", "branch.switched"),
    "step": (
        *("attempt.started", "step.completed", "step.skipped", "step.asked", "step.queued", "timer.set"),
        *("unit.submitted", "unit.ended"),
    ),
    "task": ("task.committed", "task.deferred", "check.before", "check.replaced"),
    "question": ("question.asked", "question.answered", "question.withdrawn", "answer.refused"),
    "gap": ("step.result",),
    "failure": ("attempt.failed", "attempt.lost", "step.failed", "landing.failed", "plugin.failed"),
    "agent": ("agent.opened", "agent.closed", "agent.used"),
    "activity": ("agent.activity",),
    "notification": ("notice.begun", "notice.sent"),
    "change": (
        *("files.kept", "files.settled", "files.left", "guard.found", "guard.undone"),
        *("plan.made", "plan.edited", "phase.added", "todo.edited"),
    ),
}
"""What can be asked for, and the records of each; all others are ``other``."""

_KIND_OF: Mapping[str, Kind] = {record: kind for kind, records in KINDS.items() for record in records}


@attrs.frozen(kw_only=True)
class _Told:
    """What a handler makes of a record."""

    text: str
    sign: Sign = "note"
    details: tuple[str, ...] = ()
    heading: bool = False
    kind: Kind = "other"


@attrs.frozen(kw_only=True)
class Entry(_Told):
    """One thing that happened; *details* are further lines.

    With a *heading*, it begins the work on *step*, and its text is what the step does. *kind* is what
    :data:`KINDS` calls the record.
    """

    seq: int
    at: datetime
    run: str
    step: str


_Handler: TypeAlias = Callable[[Any, Record, Any], _Told | None]
"""A method of the narrator; not typed as one, because the table of them is inside its class."""


@attrs.define
class Narrator:
    """Turns records into entries."""

    _began: dict[str, datetime] = attrs.field(factory=dict[str, datetime], init=False)
    _spent: dict[str, Usage] = attrs.field(factory=dict[str, Usage], init=False)
    _calls: dict[tuple[str, str], tuple[datetime | None, facts.AgentOpened]] = attrs.field(
        factory=dict[tuple[str, str], "tuple[datetime | None, facts.AgentOpened]"], init=False
    )

    def entry(self, record: Record) -> Entry | None:
        """Return the entry for *record*, the next one of the journal; ``None`` if it is not worth one.

        That includes records of other versions that cannot be understood.
        """
        told = None
        with suppress(JournalError, LookupError, TypeError, ValueError, AttributeError):
            fact: Recorded[object]
            for fact in typed([record], *KIND_OF):
                handler = self._handlers.get(type(fact.data))
                told = handler(self, record, fact.data) if handler else _tell(fact.data)
        if told is None:
            return None
        about: dict[str, Any] = attrs.asdict(told, recurse=False)
        about["kind"] = kind_of(record) if told.kind == "other" else told.kind
        return Entry(seq=record.seq, at=record.at, run=record.run, step=record.step, **about)

    # The run

    def _run_started(self, record: Record, data: facts.RunStarted) -> _Told:
        self._began[record.run] = record.at
        return _Told(text=f"run {record.run}" + (f" of {data.idea.name}" if data.idea else ""), heading=True)

    def _run_opened(self, record: Record, data: facts.RunOpened) -> _Told:
        sandbox = data.sandbox or facts.UsedSandbox()
        who = f"gsd {data.version or '?'}, agent: {', '.join(data.agent) or '?'}"
        confined = sandbox.name or f"none ({sandbox.why or 'unknown reason'})"
        return _Told(text=f"{'resumed' if data.resumed else 'started'} ({who}, sandbox: {confined})")

    def _run_closed(self, record: Record, data: facts.RunClosed) -> _Told:
        about = [counted(data.commits, "commit")]
        if data.dollars:
            about.append(dollars_text(data.dollars))
        if began := self._began.get(record.run):
            about.append(f"{duration_text(record.at - began)} since the run began")
        reason = f"{data.outcome}, exit code {data.exit}: {data.reason}".rstrip(": ")
        sign: Sign = "done" if data.outcome == "done" else "failed"
        return _Told(text=f"{reason} ({', '.join(about)})", sign=sign, details=data.notes)

    # Steps and tasks

    def _attempt(self, record: Record, data: facts.AttemptStarted) -> _Told | None:
        again = record.attempt > 1
        if not again or record.step not in self._began:
            self._began[record.step] = record.at
            self._spent[record.step] = Usage()
        text = step_words(record.step, for_gaps=data.for_gaps)
        return _Told(text=text + (f" (attempt {record.attempt})" if again else ""), heading=True)

    def _completed(self, record: Record, data: facts.StepCompleted) -> _Told:
        about = [data.commit[:9]] if data.commit else []
        if began := self._began.pop(record.step, None):
            about.append(duration_text(record.at - began))
        spent = self._spent.pop(record.step, Usage())
        if spent.dollars:
            about.append(cost_text(spent))
        subject = data.subject or "done"
        return _Told(text=f"{subject} ({', '.join(about)})" if about else subject, sign="done")

    def _task(self, record: Record, data: facts.TaskCommitted) -> _Told:
        number, name = data.task.rpartition("/")[2], data.name or names_text(data.paths)
        passed = data.check and data.check.exit == 0 and data.check.command
        details = (f"check passed: {passed}",) if passed else ()
        text = f"task {number}: {name} ({data.commit[:9]}, {counted(len(data.paths), 'file')})"
        return _Told(text=text, sign="done", details=details)

    # Agents

    def _agent_opened(self, record: Record, data: facts.AgentOpened) -> None:
        self._calls[record.step, data.key] = record.at, data

    def _agent_closed(self, record: Record, data: facts.AgentClosed) -> _Told:
        began, opened = self._calls.pop((record.step, data.key), (None, facts.AgentOpened(key=data.key)))
        model, used = (data.value or {}).get("model") or opened.model, data.usage
        self._spent[record.step] = self._spent.get(record.step, Usage()) + used
        about = [str(model)] if model else []
        if began:
            about.append(duration_text(record.at - began))
        if tokens := tokens_text(used):
            about.append(tokens)
        if used.dollars:
            about.append(cost_text(used))
        ended = data.ended
        result = "" if ended in ("done", "") else f" {_ENDINGS.get(ended, f'ended: {ended}')}"
        text = f"agent ({opened.role or data.key}){result}" + (f": {', '.join(about)}" if about else "")
        return _Told(text=text, sign="note" if not result else "failed")

    def _activity(self, record: Record, data: facts.AgentActivity) -> _Told | None:
        said = [part for part in (data.tool.removeprefix(FUNCTION_TOOLS), data.text) if part]
        return _Told(text=": ".join(said)) if said and data.kind not in ("start", facts.PROMPT) else None

    # Questions

    def _asked(self, record: Record, data: facts.QuestionAsked) -> _Told:
        questions, reason = data.inquiry.questions, data.inquiry.reason
        details = [f"reason: {reason}"] if reason else []
        for one in questions:
            details += [f"{number}. {option.label}" for number, option in enumerate(one.options, 1)]
        texts = "; ".join(f"{one.text} ({one.id})" for one in questions)
        return _Told(text=texts, sign="question", details=tuple(details))

    # Gaps, failures, changes

    def _result(self, record: Record, data: facts.StepReturned) -> _Told | None:
        outcome: Data = data.result.get("outcome") or {}
        report: Data = outcome.get("report") or {}
        gaps: Sequence[Data] = report.get("gaps") or ()
        if not gaps:
            return None
        listed = [f"- {gap.get('truth')}: {gap.get('reason')}" for gap in gaps[:MAX_LISTED]]
        more = [f"- and {len(gaps) - MAX_LISTED} more"] if len(gaps) > MAX_LISTED else []
        return _Told(text=f"{counted(len(gaps), 'gap')} found", sign="failed", details=(*listed, *more))

    def _error(self, record: Record, data: facts.AttemptFailed | facts.StepFailed) -> _Told:
        error = data.error
        what = "the step failed" if isinstance(data, facts.StepFailed) else f"attempt {record.attempt} failed"
        hint = (f"hint: {error.hint}",) if error.hint else ()
        return _Told(text=f"{what}: {error.message or error.kind}", sign="failed", details=hint)

    def _lost(self, record: Record, data: facts.AttemptLost) -> _Told | None:
        if data.why in ("parked", "postponed"):
            return None  # the question or the time that it waits for is told by another fact
        reason = f": {data.error.message}" if data.error else ""
        return _Told(text=f"the work was {'stopped' if data.why == 'stopped' else 'cut off'}{reason}")

    def _notice(self, record: Record, data: facts.NoticeSent) -> _Told | None:
        about = data.key.split()[0]
        sent = [one.service for one in data.deliveries if one.ok]
        failed = [f"{one.service}: {one.reason}" for one in data.deliveries if one.service and not one.ok]
        # Without a service, nobody knows which ones it reached.
        unknown = [one.reason for one in data.deliveries if not one.service and not one.ok]
        if not sent and not failed and not unknown:
            return None
        parts = [f"notification ({about})", f"sent to {names_text(sent)}" if sent else ""]
        parts += [f"did not reach {names_text(failed)}" if failed else ""]
        parts += [f"may not have been sent: {names_text(unknown)}" if unknown else ""]
        return _Told(text=" ".join(filter(None, parts)), sign="failed" if failed or unknown else "note")

    _handlers: ClassVar[Mapping[type[object], _Handler]] = {
        facts.RunStarted: _run_started,
        facts.RunOpened: _run_opened,
        facts.RunClosed: _run_closed,
        facts.AttemptStarted: _attempt,
        facts.AttemptFailed: _error,
        facts.AttemptLost: _lost,
        facts.StepReturned: _result,
        facts.StepCompleted: _completed,
        facts.StepFailed: _error,
        facts.TaskCommitted: _task,
        facts.AgentOpened: _agent_opened,
        facts.AgentClosed: _agent_closed,
        facts.AgentActivity: _activity,
        facts.QuestionAsked: _asked,
        facts.NoticeSent: _notice,
    }


def _tell(data: object) -> _Told | None:
    """Return what to tell of a fact in one sentence; ``None`` if nothing."""
    match data:
        case facts.Recovered(crashed=crashed, lost=lost) if crashed or lost:
            again = f"; restarting {names_text(lost)}" if lost else ""
            return _Told(text=f"recovered from a crash{again}", kind="failure")
        case facts.ControlAsked(what=what, by=by):
            what = "stop" if what == "stop" else "pause after the step"
            return _Told(text=f"asked to {what} by {by or 'someone'}")
        case facts.BranchSwitched(branch=branch, from_=origin):
            return _Told(text=f"switched to branch {branch} from {origin or 'a detached HEAD'}")
        case facts.StepAsked(text=text):
            return _Told(text=f"asked for: {text}")
        case facts.StepSkipped(reason=reason, by=by):
            return _Told(text=f"skipped: {reason}" + (f" (by {by})" if by else ""))
        case facts.LandingFailed(error=error):
            return _Told(text=f"the result cannot be committed now: {error.message}", sign="failed")
        case facts.MergeFailed(check=check, paths=paths):
            why = f"`{check}` fails with both" if check else f"both changed {some_of(paths)}"
            return _Told(text=f"the work conflicts with what others did meanwhile: {why}", sign="failed")
        case facts.TimerSet(until=until, why=why):
            return _Told(text=f"waits until {until.astimezone():%H:%M:%S}: {why}", sign="wait")
        case facts.StepQueued(why=why, hint=hint):
            return _Told(text=f"waits for {why}", sign="wait", details=(hint,) if hint else ())
        case facts.UnitSubmitted(unit=unit, plugin=plugin):
            return _Told(text=f"is executed elsewhere, by {plugin}: {unit.id}")
        case facts.UnitEnded(problem=problem) if problem:
            return _Told(text=f"ended elsewhere without a result: {problem}", sign="failed")
        case facts.TaskDeferred(task=task, reason=reason):
            return _Told(text=f"task {task} is deferred: {reason}", sign="failed")
        case facts.CheckReplaced(task=task, check=check, was=was) if check != was:
            return _Told(text=f"task {task} has another check: {check}", details=(f"before: {was}",))
        case facts.QuestionAnswered(answer=answer):
            words = ", ".join(part for part in (*answer.chosen, answer.text) if part)
            return _Told(text=f"{words} ({answered_by(answer)}; {answer.question})", sign="answer")
        case facts.AnswerRefused(answer=refused, reason=reason):
            name = refused.get("question")
            return _Told(text=f"an answer to {name} was refused: {reason}", sign="failed")
        case facts.PluginFailed(plugin=plugin, hook=hook, error=error):
            return _Told(text=f"plugin {plugin} failed in {hook}: {error}", sign="failed")
        case facts.FilesKept(ref=ref, paths=paths):
            return _Told(text=f"uncommitted files are kept under {ref}: {names_text(paths)}")
        case facts.FilesLeft(paths=paths, kept=ref):
            kept = f" (kept under {ref})" if ref else ""
            return _Told(text=f"left uncommitted: {names_text(paths)}{kept}", sign="failed")
        case facts.GuardFound(what=found, kept=ref):
            kept = f" (kept under {ref})" if ref else ""
            return _Told(text=f"undone: {'; '.join(found)}{kept}", sign="failed")
        case facts.PlanEdited(plan=plan):
            return _Told(text=f"plan {plan} was edited by hand")
        case facts.PhaseAdded(name=name, error=error) if error:
            return _Told(text=f"phase {name!r} was not added: {error}", sign="failed")
        case facts.PhaseAdded(phase=phase, name=name, by=by):
            return _Told(text=f"phase {phase} was added: {name} (asked for by {by})")
        case facts.TodoEdited(error=error, todo=todo, what=what, by=by):
            return _Told(text=error or f"todo {todo} was {what} (asked for by {by})")
        case _:
            return None


def log_line(narrator: Narrator, record: Record) -> str:
    """Return *record* as one line: number, local time, kind, step, and what it tells, if anything."""
    entry, time = narrator.entry(record), f"{record.at.astimezone():%H:%M:%S}"
    told = one_line(entry.text, MAX_LINE) if entry else ""
    return "  ".join(filter(None, (f"{record.seq:>5}", time, f"{record.kind:<18}", record.step, told)))


def kind_of(record: Record) -> Kind:
    """Return what :data:`KINDS` calls *record*."""
    return _KIND_OF.get(record.kind, "other")


def step_words(step: str, *, for_gaps: bool = False) -> str:
    """Return what the step with that id does, such as ``phase 1: execute plan 01-02``."""
    try:
        parsed = StepId.parse(step)
    except ValueError:
        return step
    words = STEP_WORDS.get(parsed.kind, parsed.kind)
    if parsed.kind == "plan" and (for_gaps or parsed.round):
        words = "plan the closure of gaps"
    if parsed.kind == "verify" and parsed.round:
        words = "verify again"
    detail = f" {parsed.detail}" if parsed.detail else ""
    return f"phase {parsed.phase}: {words}{detail}" if parsed.phase else f"{words}{detail}"


def answered_by(answer: Answer) -> str:
    """Return who answered, and through what; says so if nobody looked."""
    by, via = answer.by, answer.via
    match answer.how:
        case "policy":
            return f"assumed, by {by or via or 'a policy'}"
        case "timeout":
            return "assumed, because the time for an answer ran out"
        case "file":
            return f"from {by or 'an answer file'}"
        case _:
            # All other programs put answers into the inbox: `gsd answer`, the dashboard, MCP clients.
            # Those that are not a command of a person's own say in *by* through what the answer came.
            if via == "inbox":
                return by if " through " in by else f"{by or 'a person'} through gsd answer"
            return " through ".join(filter(None, [by or "a person", via]))


STEP_WORDS = {
    "init": "write the roadmap from the idea",
    "survey": "describe the existing code",
    "discuss": "settle what is open",
    "early-research": "research before the questions",
    "research": "research",
    "plan": "plan",
    "execute": "execute plan",
    "verify": "verify",
    "debug": "find the causes of gaps",
    "complete": "mark the phase as complete",
    "audit": "audit milestone",
    "close": "close milestone",
    "quick": "small task",
}
_ENDINGS = {
    "turns": "used up its turns",
    "dollars": "used up its budget",
    "lost": "was cut off",
    "failed": "failed",
    "stopped": "was stopped",
}
