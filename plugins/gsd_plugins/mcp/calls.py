"""What each tool does, with the harness. Results are JSON data; errors are ``GsdError``."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from getpass import getuser
from typing import Any, TypeAlias, cast

import attrs

from gsd_core import GsdError, NotFound, Session, UserError, redact, refuse_agents, safe_text
from gsd_plugins.sessions import Change, CommandRefused, Source, refusal, run_gsd, whole

from .catalog import KEYS, OUTPUT_BYTES
from .screen import shown
from .starting import command_of

Result: TypeAlias = dict[str, Any]
Progress: TypeAlias = Callable[[float, float, str], Awaitable[None]]

MAX_SESSIONS = 50
MAX_CHANGES = 50
MAX_PHASES = 100
MAX_TEXT = 4_000
"""The most characters of a string in a result; questions and reasons quote what agents wrote."""
MAX_ABOUT = 300
PROGRESS_SECONDS = 5.0
STOP_SECONDS = 10.0
"""How long a stop waits for the end of the session."""
ACTIVITY = ("agent.activity", "cost.changed")
"""Events that do not end a wait: there are several of them each second."""
_ABOUT = ("reason", "subject", "name", "question", "number", "why", "outcome")


@attrs.frozen(kw_only=True)
class Calls:
    """The tools for one client; *client* is its name, for the record of who answered."""

    harness: Source
    client: str = ""

    async def call(self, name: str, given: Mapping[str, Any], progress: Progress) -> Result:
        """Run the tool *name*; its texts are sanitized, redacted and bounded."""
        # Another process may just have started the session, or answered the question.
        await self.harness.refresh()
        try:
            return await self._call(name, given, progress)
        except CommandRefused as error:
            # The hint names a command, and mostly one that a person should decide about.
            hint = f"for your user, in a terminal: {error.hint}" if error.hint else ""
            raise UserError(str(error), hint=hint) from error

    async def _call(self, name: str, given: Mapping[str, Any], progress: Progress) -> Result:
        match name:
            case "gsd_start_session":
                refuse_agents("start a session")
                arguments, project = command_of(given, self.harness.sessions())
                started = await self.harness.start(arguments, project)
                found = {"session": _row(started), "change": self.harness.changes.number}
            case "gsd_list_sessions":
                ended = given.get("ended", False)
                listed = [one for one in reversed(self.harness.sessions()) if ended or not one.has_ended]
                rows = [_row(one) for one in listed[:MAX_SESSIONS]]
                number = self.harness.changes.number
                found = {"sessions": rows, "omitted": len(listed) - len(rows), "change": number}
            case "gsd_end_session":
                found = await self._end(given["session"])
            case "gsd_pause_session":
                await self._refuse(given["session"], "pause a session")
                is_asked = await self.harness.pause(given["session"], by=self._by)
                row = _row(self.harness.session(given["session"]))
                found = {"session": row, "asked": is_asked, "change": self.harness.changes.number}
            case "gsd_remove_session":
                session = self.harness.session(given["session"]).id
                await self._refuse(session, "remove a session")
                await self.harness.remove(session)
                found = {"removed": session, "change": self.harness.changes.number}
            case "gsd_get_output":
                # Its text may be longer, and is made safe where it is made.
                return await self._output(given)
            case "gsd_get_state":
                found = await self._state(given["session"])
            case "gsd_get_checkpoint":
                number = self.harness.changes.number
                status = await self.harness.status(given["session"])
                kept = "id kind step header text reason options multiple free_text human_only answer_given"
                asked = status["questions"]
                rows = [{**_part(one, kept), "is_manual_check": _is_check(one)} for one in asked]
                found = {"questions": rows, "change": number}
            case "gsd_respond_checkpoint":
                found = await self._answer(given["session"], given.get("question"), given["answer"])
            case "gsd_mark_verified":
                found = await self._judge(given)
            case "gsd_wait_for_change":
                found = await self._wait(given, progress)
            case "gsd_send_input":
                found = await self._send(given)
            case "gsd_get_cost":
                printed = await self._printed(given["session"], "cost", "--by", given.get("by", "phase"))
                found = _part(printed, "total groups budget")
            case "gsd_why":
                printed = await self._printed(given["session"], "why")
                found = _part(printed, "waiting running nothing")
            case _:
                raise NotFound(f"no tool {name!r}")
        result: Result = _safe(found)
        return result

    # Sessions

    async def _end(self, session: str) -> Result:
        await self._refuse(session, "stop a session")
        found = await self.harness.stop(session)
        latest = time.monotonic() + STOP_SECONDS
        while not found.has_ended and (left := latest - time.monotonic()) > 0:
            await self.harness.changes.wait(self.harness.changes.number, left)
            found = self.harness.session(found.id)
        return {"session": _row(found), "stopped": found.has_ended, "change": self.harness.changes.number}

    async def _output(self, given: Mapping[str, Any]) -> Result:
        found = self.harness.session(given["session"])
        limit, raw = given.get("limit", OUTPUT_BYTES), given.get("raw", False)
        chunk = await self.harness.output(found.id, given.get("since", -OUTPUT_BYTES), limit)
        # What comes next may complete it; after the end of a session nothing comes.
        is_full = len(chunk.data) >= limit
        data = chunk.data if found.has_ended and not is_full else whole(chunk.data) or chunk.data
        text = redact(data.decode("utf-8", "replace")) if raw else shown(data)
        return {
            "text": text,
            "start": chunk.start,
            "cursor": chunk.start + len(data),
            "dropped": chunk.dropped,
            "more": is_full,
            "state": found.state,
        }

    async def _send(self, given: Mapping[str, Any]) -> Result:
        session: str = given["session"]
        await self._refuse(session, "type into a session")
        # Before its run begins, its terminal asks for trust in the project: that is for a person.
        if not self.harness.session(session).run:
            problem = f"the run of session {session} has not begun; until then, only a person may type there"
            raise UserError(problem, hint=f"in a terminal: gsd attach {session}")
        try:
            data = (given.get("text", "") + KEYS.get(given.get("key", ""), "")).encode()
        except UnicodeEncodeError as error:
            raise UserError("text: not valid Unicode") from error
        if not data:
            raise UserError("nothing to send", hint="give text, key, or both")
        await self.harness.send(session, data)
        return {"sent": len(data), "change": self.harness.changes.number}

    # Their projects

    async def _state(self, session: str) -> Result:
        number = self.harness.changes.number
        status = await self.harness.status(session)
        phases = status["phases"][:MAX_PHASES]
        return {
            "session": _row(self.harness.session(session)),
            "run": {
                "id": status["run"],
                **_part(status, "status agent sandbox branch reason notes waits_for phases_total"),
                **_part(status, "phases_complete steps_in_progress idle cost"),
                "assumed_checks": status["assumed"]["count"],
            },
            "phases": [_part(one, "number name status plans gap_rounds") for one in phases],
            "questions": [_part(one, "id kind step header answer_given") for one in status["questions"]],
            "change": number,
        }

    async def _answer(self, session: str, question: str | None, words: str) -> Result:
        chosen = question or (await self._only_question(session, _is_open, "question"))["id"]
        answer = await self.harness.answer(session, chosen, words, by=self._by)
        left = [one["id"] for one in (await self.harness.status(session))["questions"]]
        return {
            "question": chosen,
            "answer": answer.words,
            # Otherwise the run takes it when it looks next, or when it is resumed.
            "taken": chosen not in left,
            "change": self.harness.changes.number,
        }

    async def _judge(self, given: Mapping[str, Any]) -> Result:
        """Answer a manual check: its recommended option says that it works, all else that it does not."""
        session, wanted, note = given["session"], given.get("question"), given.get("note", "").strip()
        if wanted:
            status = await self.harness.status(session)
            asked = next((one for one in status["questions"] if one["id"] == wanted), None)
            if asked and not _is_check(asked):
                what = f"{wanted} is not a manual check ({asked['header'] or asked['kind']})"
                raise UserError(what, hint="answer it with gsd_respond_checkpoint")
        else:
            asked = await self._only_question(session, _is_check, "manual check")
        if asked is None:
            # It is answered or unknown: the harness raises, and says which.
            return await self._answer(session, wanted, note or "works")
        options: Sequence[Mapping[str, Any]] = asked["options"]
        works = next((one for one in options if one["recommended"]), None)
        others = [one for one in options if one is not works]
        if options and (not works or (len(others) > 1 and not given["passed"] and not note)):
            labels = ", ".join(str(one["label"]) for one in options)
            hint = "ask your user which one, and answer with gsd_respond_checkpoint"
            raise UserError(f"{asked['id']} has no option that means this verdict alone: {labels}", hint=hint)
        if given["passed"]:
            if note:
                raise UserError("note says what is wrong, but passed is true", hint="leave one of them out")
            return await self._answer(session, asked["id"], works["label"] if works else "works")
        # A note that names an option would be that option.
        if _folded(note) in {_folded(one["label"]) for one in options} or note.replace(",", "").isdigit():
            raise UserError("note: say in a sentence what is wrong")
        if note and options and not asked["free_text"]:
            raise UserError(f"{asked['id']} takes one of its options and no note", hint="leave note out")
        broken = others[0]["label"] if others else "does not work"
        return await self._answer(session, asked["id"], note or broken)

    async def _printed(self, session: str, *arguments: str) -> Result:
        """Return what a command that only reads the session's project prints as JSON."""
        project = self.harness.session(session).project
        if not project.is_dir():
            raise NotFound(f"the folder of the project is gone: {str(project)!r}")
        code, out, err = await run_gsd([*arguments, "-C", str(project), "--json"], project)
        if code != 0:
            raise refusal(err, code)
        found: Result = json.loads(out)
        return found

    # Following

    async def _wait(self, given: Mapping[str, Any], progress: Progress) -> Result:
        names = given.get("session", [])
        wanted = {self.harness.session(one).id for one in ([names] if isinstance(names, str) else names)}
        seconds, with_output = float(given.get("seconds", 60)), given.get("output", False)
        only_checkpoints = given.get("until") == "checkpoint"
        after, now = given.get("after"), self.harness.changes.number
        if after is None and (due := [one for name in sorted(wanted) if (one := await self._due(name))]):
            return {"changes": due, "omitted": 0, "lost": False, "timed_out": False, "change": now}
        number = now if after is None else after
        began, reported = time.monotonic(), -PROGRESS_SECONDS
        while True:
            last = self.harness.changes.number
            changes, lost = self.harness.changes.after(number)
            found = [
                change
                for change in changes
                if (_is_news(change) or with_output) and (not wanted or change.session.id in wanted)
            ]
            if only_checkpoints and not any(map(_needs_attention, found)):
                found = []
            passed = time.monotonic() - began
            if found or lost or passed >= seconds:
                return {
                    "changes": [_change(change) for change in found[-MAX_CHANGES:]],
                    "omitted": len(found[:-MAX_CHANGES]),
                    "lost": lost,
                    "timed_out": not found and not lost,
                    "change": last,
                }
            if passed - reported >= PROGRESS_SECONDS:
                reported = passed
                await progress(passed, seconds, await self._what_happens(wanted))
            await self.harness.changes.wait(last, min(PROGRESS_SECONDS, seconds - passed))
            number = last

    async def _what_happens(self, wanted: Collection[str]) -> str:
        """Return what the sessions are doing, for a person who waits."""
        active = [one for one in self.harness.sessions() if not one.has_ended]
        said: list[str] = []
        for session in [one for one in active if not wanted or one.id in wanted][:MAX_PHASES]:
            what = session.reason or session.state
            if session.state == "running":
                with suppress(GsdError):
                    steps = (await self.harness.status(session.id))["steps_in_progress"]
                    names = ", ".join(step["id"] for step in steps)
                    what = "; ".join(filter(None, [names, session.reason])) or what
            said.append(f"{session.id}: {what}")
        return safe_text("; ".join(said) or "no session is active", multiline=False)[:MAX_ABOUT]

    async def _due(self, session: str) -> Result | None:
        """Return the state as a change if nothing will happen before the client acts."""
        number = self.harness.changes.number
        found = self.harness.session(session)
        if not found.has_ended:
            status = await self.harness.status(session)
            if found.state != "waiting_checkpoint" or not any(map(_is_open, status["questions"])):
                return None
        return {"change": number, "session": found.id, "state": found.state, "checkpoint": found.checkpoint}

    # Shared

    @property
    def _by(self) -> str:
        client = safe_text(self.client, multiline=False)[:60]
        return f"{getuser()} through {client or 'MCP'}"

    async def _refuse(self, session: str, what: str) -> None:
        owner = (await self.harness.status(session))["owner"]
        refuse_agents(what, run_pid=owner["pid"] if owner else None)

    async def _only_question(self, session: str, fits: Callable[[Result], bool], name: str) -> Result:
        """Return the only open question that *fits*; raise ``UserError`` if it is not the only one."""
        found = [one for one in (await self.harness.status(session))["questions"] if fits(one)]
        if len(found) == 1:
            return dict(found[0])
        if not found:
            raise NotFound(f"no {name} is open in session {session}")
        listed = ", ".join(one["id"] for one in found)
        raise UserError(f"{len(found)} are open: {listed}", hint=f"say which {name} with `question`")


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _row(session: Session) -> Result:
    names = "id state slot agents project command checkpoint reason run exit created_at"
    data = _part(session.as_json(), names)
    return {name: value for name, value in data.items() if value not in (None, "")}


def _part(data: Mapping[str, Any], names: str) -> Result:
    return {name: data[name] for name in names.split()}


def _is_open(question: Mapping[str, Any]) -> bool:
    return not question["answer_given"]


def _is_check(question: Mapping[str, Any]) -> bool:
    """Whether a person has to look at something."""
    return bool(question["inspection"])


def _is_news(change: Change) -> bool:
    """Whether it is more than output or activity."""
    if change.event:
        return change.event.name not in ACTIVITY
    return change.before is None or _reported(change.before) != _reported(change.session)


def _reported(session: Session) -> tuple[str, str, str, str]:
    return session.state, session.checkpoint, session.run, session.reason


def _needs_attention(change: Change) -> bool:
    if change.event:
        return change.event.name in ("question.asked", "run.closed")
    return change.session.has_ended or change.session.state == "waiting_checkpoint"


def _change(change: Change) -> Result:
    session = change.session
    found: Result = {"change": change.number, "session": session.id, "state": session.state}
    if session.checkpoint:
        found["checkpoint"] = session.checkpoint
    if event := change.event:
        found |= {"event": event.name, "at": event.at.isoformat()}
        found |= {"step": event.step} if event.step else {}
        about = next((event.data[name] for name in _ABOUT if event.data.get(name)), "")
        if event.name == "question.asked":
            about = "\n".join(one["text"] for one in event.data["inquiry"]["questions"])
        found |= {"about": str(about)[:MAX_ABOUT]} if about else {}
        return found
    found["output"] = change.output
    if session.reason:
        found["about"] = session.reason[:MAX_ABOUT]
    return found


def _safe(data: Any) -> Any:
    if isinstance(data, str):
        text = safe_text(data)
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT} more)"
    if isinstance(data, Mapping):
        found = cast("Mapping[str, Any]", data)
        return {safe_text(str(key), multiline=False): _safe(value) for key, value in found.items()}
    if isinstance(data, list | tuple):
        return [_safe(value) for value in cast("Sequence[Any]", data)]
    return data
