"""What a run did, in words for people: one entry for each thing worth telling, in the order of the journal.

A :class:`Narrator` is fed all records, because an entry may need what came before: how long an agent call
took, which question was answered. What is not worth telling has no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias

import attrs

from gsd_core.journal.schema import Record
from gsd_core.model.ids import StepId
from gsd_core.model.usage import Usage

from .amounts import cost_text, counted, dollars_text, duration_text, tokens_text
from .log import FUNCTION_TOOLS, names_of

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

MAX_LISTED = 5

KINDS: Mapping[Kind, tuple[str, ...]] = {
    "run": ("run.started", "run.opened", "run.closed", "recovered", "control.asked", "branch.switched"),
    "step": ("attempt.started", "step.completed", "step.skipped", "step.asked", "timer.set"),
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


_Handler: TypeAlias = Callable[[Any, Record], _Told | None]
"""A method of the narrator; not typed as one, because the table of them is inside its class."""


@attrs.define
class Narrator:
    """Turns records into entries; *usage* reads the usage of an agent call from its record."""

    usage: Callable[[Any], Usage]
    _began: dict[str, datetime] = attrs.field(factory=dict[str, datetime], init=False)
    _spent: dict[str, Usage] = attrs.field(factory=dict[str, Usage], init=False)
    _calls: dict[tuple[str, str], tuple[datetime, Data]] = attrs.field(
        factory=dict[tuple[str, str], tuple[datetime, Data]], init=False
    )
    _questions: dict[str, str] = attrs.field(factory=dict[str, str], init=False)

    def entry(self, record: Record) -> Entry | None:
        """Return the entry for *record*, the next one of the journal; ``None`` if it is not worth one.

        That includes records of other versions that cannot be understood.
        """
        handler = self._handlers.get(record.kind)
        if handler is None:
            return None
        try:
            told = handler(self, record)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        if told is None:
            return None
        about: dict[str, Any] = attrs.asdict(told, recurse=False)
        about["kind"] = kind_of(record) if told.kind == "other" else told.kind
        return Entry(seq=record.seq, at=record.at, run=record.run, step=record.step, **about)

    # The run

    def _run_started(self, record: Record) -> _Told:
        self._began[record.run] = record.at
        idea: Data = record.data.get("idea") or {}
        return _Told(
            text=f"run {record.run}" + (f" of {idea['name']}" if idea.get("name") else ""), heading=True
        )

    def _run_opened(self, record: Record) -> _Told:
        data = record.data
        sandbox: Data = data.get("sandbox") or {}
        who = f"gsd {data.get('version') or '?'}, agent: {names_of(data.get('agent')) or '?'}"
        confined = sandbox.get("name") or f"none ({sandbox.get('why') or 'unknown reason'})"
        return _Told(text=f"{'resumed' if data.get('resumed') else 'started'} ({who}, sandbox: {confined})")

    def _run_closed(self, record: Record) -> _Told:
        data = record.data
        notes: Sequence[str] = data.get("notes") or ()
        about = [counted(int(data.get("commits") or 0), "commit")]
        if data.get("dollars"):
            about.append(dollars_text(data["dollars"]))
        if began := self._began.get(record.run):
            about.append(f"{duration_text(record.at - began)} since the run began")
        reason = f"{data['outcome']}, exit code {data['exit']}: {data.get('reason') or ''}".rstrip(": ")
        sign: Sign = "done" if data["outcome"] == "done" else "failed"
        return _Told(text=f"{reason} ({', '.join(about)})", sign=sign, details=tuple(map(str, notes)))

    def _recovered(self, record: Record) -> _Told | None:
        lost: Sequence[str] = record.data.get("lost") or ()
        if not record.data.get("crashed") and not lost:
            return None
        again = f"; restarting {_listed(lost)}" if lost else ""
        return _Told(text=f"recovered from a crash{again}", kind="failure")

    def _control(self, record: Record) -> _Told:
        what = "stop" if record.data["what"] == "stop" else "pause after the step"
        return _Told(text=f"asked to {what} by {record.data.get('by') or 'someone'}")

    def _branch(self, record: Record) -> _Told:
        before = record.data.get("from") or "a detached HEAD"
        return _Told(text=f"switched to branch {record.data['branch']} from {before}")

    # Steps and tasks

    def _attempt(self, record: Record) -> _Told | None:
        again = record.attempt > 1
        if not again or record.step not in self._began:
            self._began[record.step] = record.at
            self._spent[record.step] = Usage()
        text = step_words(record.step, for_gaps=bool(record.data.get("for_gaps")))
        return _Told(text=text + (f" (attempt {record.attempt})" if again else ""), heading=True)

    def _completed(self, record: Record) -> _Told:
        data = record.data
        commit = str(data.get("commit") or "")[:9]
        about = [commit] if commit else []
        if began := self._began.pop(record.step, None):
            about.append(duration_text(record.at - began))
        spent = self._spent.pop(record.step, Usage())
        if spent.dollars:
            about.append(cost_text(spent))
        subject = str(data.get("subject") or "done")
        return _Told(text=f"{subject} ({', '.join(about)})" if about else subject, sign="done")

    def _skipped(self, record: Record) -> _Told:
        who = f" (by {record.data['by']})" if record.data.get("by") else ""
        return _Told(text=f"skipped: {record.data.get('reason') or ''}{who}")

    def _timer(self, record: Record) -> _Told:
        until = datetime.fromisoformat(str(record.data["until"])).astimezone()
        return _Told(text=f"waits until {until:%H:%M:%S}: {record.data.get('why') or ''}", sign="wait")

    def _task(self, record: Record) -> _Told:
        data = record.data
        name = str(data.get("name") or "") or _listed(data.get("paths") or ())
        number = str(data["task"]).rpartition("/")[2]
        files = counted(len(data.get("paths") or ()), "file")
        check: Data = data.get("check") or {}
        details = (
            (f"check passed: {check['command']}",) if check.get("exit") == 0 and check.get("command") else ()
        )
        text = f"task {number}: {name} ({str(data.get('commit') or '')[:9]}, {files})"
        return _Told(text=text, sign="done", details=details)

    def _deferred(self, record: Record) -> _Told:
        number = str(record.data["task"]).rpartition("/")[2]
        return _Told(text=f"task {number} is deferred: {record.data['reason']}", sign="failed")

    def _check_replaced(self, record: Record) -> _Told | None:
        data = record.data
        if data["check"] == data["was"]:
            return None
        number = str(data["task"]).rpartition("/")[2]
        return _Told(
            text=f"task {number} has another check: {data['check']}", details=(f"before: {data['was']}",)
        )

    # Agents

    def _agent_opened(self, record: Record) -> None:
        self._calls[record.step, str(record.data["key"])] = record.at, record.data

    def _agent_closed(self, record: Record) -> _Told:
        data = record.data
        call = self._calls.pop((record.step, str(data["key"])), None)
        began = call[0] if call else None
        opened: Data = call[1] if call else {}
        value: Data = data.get("value") or {}
        model = value.get("model") or opened.get("model") or ""
        used = self.usage(data["usage"]) if data.get("usage") else Usage()
        self._spent[record.step] = self._spent.get(record.step, Usage()) + used
        about = [str(model)] if model else []
        if began:
            about.append(duration_text(record.at - began))
        if tokens := tokens_text(used):
            about.append(tokens)
        if used.dollars:
            about.append(cost_text(used))
        ended = str(data.get("ended") or "")
        result = "" if ended in ("done", "") else f" {_ENDINGS.get(ended, f'ended: {ended}')}"
        role = str(opened.get("role") or data["key"])
        text = f"agent ({role}){result}" + (f": {', '.join(about)}" if about else "")
        return _Told(text=text, sign="note" if not result else "failed")

    def _activity(self, record: Record) -> _Told | None:
        tool = str(record.data.get("tool") or "").removeprefix(FUNCTION_TOOLS)
        text = str(record.data.get("text") or "")
        if record.data.get("kind") == "start" or not (tool or text):
            return None
        return _Told(text=": ".join(filter(None, [tool, text])))

    # Questions

    def _asked(self, record: Record) -> _Told:
        inquiry: Data = record.data["inquiry"]
        questions: Sequence[Data] = inquiry["questions"]
        self._questions |= {str(one["id"]): str(one["text"]) for one in questions}
        details = [f"reason: {inquiry['reason']}"] if inquiry.get("reason") else []
        for one in questions:
            options: Sequence[Data] = one.get("options") or ()
            details += [f"{number}. {option['label']}" for number, option in enumerate(options, 1)]
        texts = "; ".join(f"{one['text']} ({one['id']})" for one in questions)
        return _Told(text=texts, sign="question", details=tuple(details))

    def _answered(self, record: Record) -> _Told:
        answer: Data = record.data["answer"]
        words = ", ".join(part for part in (*(answer.get("chosen") or ()), answer.get("text")) if part)
        return _Told(text=f"{words} ({answered_by(answer)}; {answer['question']})", sign="answer")

    def _refused(self, record: Record) -> _Told:
        name = record.data["answer"].get("question")
        return _Told(text=f"an answer to {name} was refused: {record.data['reason']}", sign="failed")

    # Gaps, failures, changes

    def _result(self, record: Record) -> _Told | None:
        result: Data = record.data.get("result") or {}
        outcome: Data = result.get("outcome") or {}
        report: Data = outcome.get("report") or {}
        gaps: Sequence[Data] = report.get("gaps") or ()
        if not gaps:
            return None
        listed = [f"- {gap.get('truth')}: {gap.get('reason')}" for gap in gaps[:MAX_LISTED]]
        more = [f"- and {len(gaps) - MAX_LISTED} more"] if len(gaps) > MAX_LISTED else []
        return _Told(text=f"{counted(len(gaps), 'gap')} found", sign="failed", details=(*listed, *more))

    def _error(self, record: Record) -> _Told:
        error: Data = record.data["error"]
        what = "the step failed" if record.kind == "step.failed" else f"attempt {record.attempt} failed"
        hint = (f"hint: {error['hint']}",) if error.get("hint") else ()
        return _Told(text=f"{what}: {error.get('message') or error['kind']}", sign="failed", details=hint)

    def _landing(self, record: Record) -> _Told:
        error: Data = record.data["error"]
        return _Told(text=f"the result cannot be committed now: {error.get('message')}", sign="failed")

    def _lost(self, record: Record) -> _Told | None:
        why = str(record.data.get("why") or "")
        if why == "parked":
            return None  # the question that it waits for was told already
        error: Data = record.data.get("error") or {}
        reason = f": {error['message']}" if error.get("message") else ""
        return _Told(text=f"the work was {'stopped' if why == 'stopped' else 'cut off'}{reason}")

    def _plugin(self, record: Record) -> _Told:
        data = record.data
        return _Told(text=f"plugin {data['plugin']} failed in {data['hook']}: {data['error']}", sign="failed")

    def _kept(self, record: Record) -> _Told:
        return _Told(
            text=f"uncommitted files are kept under {record.data['ref']}: {_listed(record.data['paths'])}"
        )

    def _left(self, record: Record) -> _Told:
        return _Told(text=f"left uncommitted: {_listed(record.data['paths'])}", sign="failed")

    def _guard(self, record: Record) -> _Told:
        kept = f" (kept under {record.data['kept']})" if record.data.get("kept") else ""
        return _Told(text=f"undone: {'; '.join(map(str, record.data['what']))}{kept}", sign="failed")

    def _phase_added(self, record: Record) -> _Told:
        data = record.data
        if data.get("error"):
            return _Told(text=f"phase {data['name']!r} was not added: {data['error']}", sign="failed")
        return _Told(text=f"phase {data['phase']} was added: {data['name']} (asked for by {data['by']})")

    def _todo(self, record: Record) -> _Told:
        data = record.data
        return _Told(
            text=data["error"] or f"todo {data['todo']} was {data['what']} (asked for by {data['by']})"
        )

    def _notice(self, record: Record) -> _Told | None:
        deliveries: Sequence[Data] = record.data.get("deliveries") or ()
        about = str(record.data["key"]).split()[0]
        sent = [str(one["service"]) for one in deliveries if one["ok"]]
        failed = [
            f"{one['service']}: {one['reason']}" for one in deliveries if one["service"] and not one["ok"]
        ]
        # Without a service, nobody knows which ones it reached.
        unknown = [str(one["reason"]) for one in deliveries if not one["service"] and not one["ok"]]
        if not sent and not failed and not unknown:
            return None
        parts = [f"notification ({about})", f"sent to {_listed(sent)}" if sent else ""]
        parts += [f"did not reach {_listed(failed)}" if failed else ""]
        parts += [f"may not have been sent: {_listed(unknown)}" if unknown else ""]
        return _Told(text=" ".join(filter(None, parts)), sign="failed" if failed or unknown else "note")

    _handlers: ClassVar[Mapping[str, _Handler]] = {
        "run.started": _run_started,
        "run.opened": _run_opened,
        "run.closed": _run_closed,
        "recovered": _recovered,
        "control.asked": _control,
        "branch.switched": _branch,
        "attempt.started": _attempt,
        "attempt.failed": _error,
        "attempt.lost": _lost,
        "step.asked": lambda _, record: _Told(text=f"asked for: {record.data['text']}"),
        "step.result": _result,
        "step.completed": _completed,
        "step.failed": _error,
        "step.skipped": _skipped,
        "landing.failed": _landing,
        "timer.set": _timer,
        "task.committed": _task,
        "task.deferred": _deferred,
        "check.replaced": _check_replaced,
        "agent.opened": _agent_opened,
        "agent.closed": _agent_closed,
        "agent.activity": _activity,
        "question.asked": _asked,
        "question.answered": _answered,
        "answer.refused": _refused,
        "plugin.failed": _plugin,
        "files.kept": _kept,
        "files.left": _left,
        "guard.found": _guard,
        "plan.edited": lambda _, record: _Told(text=f"plan {record.data['plan']} was edited by hand"),
        "phase.added": _phase_added,
        "todo.edited": _todo,
        "notice.sent": _notice,
    }


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


def answered_by(answer: Data) -> str:
    """Return who answered, and through what; says so if nobody looked."""
    by, via, how = (str(answer.get(key) or "") for key in ("by", "via", "how"))
    match how:
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


def _listed(names: Sequence[str]) -> str:
    more = [f"and {len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return ", ".join([*map(str, names[:MAX_LISTED]), *more])
