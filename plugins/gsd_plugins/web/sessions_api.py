"""The routes about sessions: list, start, stop, forget, questions and answers, output."""

from __future__ import annotations

import asyncio
import getpass
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsd_core import GsdError, Session, safe_text
from gsd_plugins.sessions import store_idea

from .errors import Refused
from .feed import session_json
from .site import Site, answer, body_of
from .text import lines_with, printed_text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MAX_OUTPUT = 1 << 20
MAX_SEARCH = 200
MAX_LINES = 2000
"""How many lines a search returns."""
MAX_STATUSES = 8
"""How many projects are read at once."""
OPTIONS = {
    **{name: f"--{name}" for name in ("agent", "depth", "model")},
    "budget": "--max-budget-usd",
    "tokens": "--max-budget-tokens",
    "turns": "--max-budget-turns",
}
"""The options that a request may set. None of them is consent: that is given at a terminal only."""


async def show_server(site: Site, request: Request) -> Response:
    """Return what the server is."""
    return await answer(
        {
            "version": site.version,
            "epoch": site.epoch,
            "number": site.feed.number,
            "scope": request.scope["gsd"]["scope"],
            "slots": site.slots,
            "started_at": site.started_at.isoformat(),
        }
    )


async def list_sessions(site: Site, request: Request) -> Response:
    """Return all sessions, oldest first, with a summary of their runs."""
    # The position first: what changes while the sessions are read is sent after it.
    about = {"epoch": site.epoch, "number": site.feed.number}
    sessions = site.source.sessions()
    runs = await _runs(site, sessions)
    listed = [{**session_json(one), **runs.get(one.id, UNREAD)} for one in sessions]
    return await answer({**about, "sessions": listed}, is_redacted=True)


async def show_session(site: Site, request: Request) -> Response:
    """Return one session with a summary of its run."""
    about = {"epoch": site.epoch, "number": site.feed.number}
    found = site.source.session(request.path_params["session"])
    runs = await _runs(site, [found])
    return await answer({**about, "session": {**session_json(found), **runs.get(found.id, UNREAD)}})


UNREAD: Mapping[str, Any] = {"summary": None, "problem": ""}
"""What is said about the run of a session for whose project a later session speaks."""


async def _runs(site: Site, sessions: Sequence[Session]) -> Mapping[str, Any]:
    """Return the summary of each session's project, or why it cannot be read.

    The last session of a project speaks for it.
    """
    owners = {one.project: one.id for one in sessions}
    limit = asyncio.Semaphore(MAX_STATUSES)

    async def read(session: str) -> tuple[str, Any]:
        async with limit:
            try:
                return session, {**UNREAD, "summary": _summary(await site.source.status(session))}
            except GsdError as error:
                # The other sessions are shown all the same.
                return session, {**UNREAD, "problem": _problem(error)}

    return dict(await asyncio.gather(*map(read, owners.values())))


def _problem(error: GsdError) -> str:
    return safe_text(f"{error} ({error.hint})" if error.hint else str(error))


SUMMARY = (
    *("status", "idea", "agent", "sandbox", "branch", "cost", "phases_total", "phases_complete", "plans"),
    *("dollars_today", "budget", "reason", "exit", "waits_for", "started_at", "last_at"),
)
"""The fields of a status that are in a summary."""


def _summary(status: Mapping[str, Any]) -> dict[str, Any] | None:
    if status["run"] is None:
        return None
    asked = [one["asked_at"] for one in status["questions"] if not one["answer_given"]]
    return {
        **{name: status[name] for name in SUMMARY},
        "phases_planned": sum(bool(phase["plans"]["total"]) for phase in status["phases"]),
        "questions": len(asked),
        "waits_since": min(asked, default=None),
        "answers_given": len(status["questions"]) - len(asked),
        "steps": status["steps_in_progress"],
    }


async def start_session(site: Site, request: Request) -> Response:
    """Start a session; exactly one of idea, idea_file, resume, step and exec says what it does.

    What the command for it refuses is answered with its hint.
    """
    body = body_of(request)
    project = Path(body["project"])
    if not project.is_absolute():
        raise Refused(400, "project: expected an absolute path")
    arguments = await asyncio.to_thread(_arguments, body, site.source.sessions())
    return await answer({"session": session_json(await site.source.start(arguments, project))}, 201)


def _arguments(body: Mapping[str, Any], sessions: Sequence[Session]) -> list[str]:
    """Return the arguments after ``gsd``. Texts come after ``--``, so that none is taken for an option."""
    ways = [name for name in ("idea", "idea_file", "resume", "step", "exec") if body.get(name)]
    if len(ways) != 1:
        raise Refused(400, "expected exactly one of idea, idea_file, resume, step and exec")
    options = [f"{flag}={body[name]}" for name, flag in OPTIONS.items() if name in body]
    phases = [f"--phases={body['phases']}"] if "phases" in body else []
    match ways[0]:
        case "idea":
            return ["run", *options, *phases, "--", str(store_idea(body["idea"], sessions))]
        case "idea_file":
            if not Path(body["idea_file"]).is_absolute():
                raise Refused(400, "idea_file: expected an absolute path")
            return ["run", *options, *phases, "--", body["idea_file"]]
        case "resume":
            return ["resume", *options, *phases]
        case "step":
            if phases or "phase" not in body:
                raise Refused(400, "a step needs the field phase, and takes no phases")
            return [body["step"], *options, "--", body["phase"]]
        case _:
            if phases:
                raise Refused(400, "exec takes no phases")
            return ["exec", *options, "--", body["exec"]]


async def stop_session(site: Site, request: Request) -> Response:
    """Ask a session to stop; it finishes what it is writing."""
    return await answer({"session": session_json(await site.source.stop(request.path_params["session"]))})


async def remove_session(site: Site, request: Request) -> Response:
    """Forget a session that has ended, and what it printed."""
    from starlette.responses import Response

    await site.source.remove(request.path_params["session"])
    site.feed.take()
    return Response(status_code=204)


async def show_status(site: Site, request: Request) -> Response:
    """Return the status of the project's run, as gsd status --json prints it."""
    return await answer(await site.source.status(request.path_params["session"]), is_redacted=True)


async def show_output(site: Site, request: Request) -> Response:
    """Return what the session printed, as text without escape sequences. Cursors count bytes."""
    session = site.source.session(request.path_params["session"])
    cursor = number_in(request, "cursor", default=0, lowest=-(1 << 60))
    limit = number_in(request, "limit", default=256 << 10, lowest=1, highest=MAX_OUTPUT)
    chunk = await site.source.output(session.id, cursor, limit)
    is_last = session.has_ended and len(chunk.data) < limit
    text, used = printed_text(chunk.data, is_last=is_last or len(chunk.data) == limit)
    about = {"start": chunk.start, "end": chunk.start + used, "dropped": chunk.dropped, "ended": is_last}
    return await answer({**about, "text": text})


async def search_output(site: Site, request: Request) -> Response:
    """Return the lines with a text in all that the session printed; the last ones, if they are many."""
    session = site.source.session(request.path_params["session"]).id
    wanted = request.query_params.get("text", "").strip().casefold()
    if not 0 < len(wanted) <= MAX_SEARCH:
        raise Refused(400, f"text: expected 1 to {MAX_SEARCH} characters")
    end = number_in(request, "end", default=1 << 60)
    found: deque[str] = deque(maxlen=MAX_LINES)
    number = cursor = 0
    while (chunk := await site.source.output(session, cursor, min(MAX_OUTPUT, end - cursor))).data:
        # Lines are not cut, except for one that is as long as all of it.
        data = chunk.data[: chunk.data.rfind(b"\n") + 1] or chunk.data
        lines = await asyncio.to_thread(lines_with, data, wanted)
        cursor = chunk.start + len(data)
        number += len(lines)
        found += lines
    return await answer({"lines": list(found), "total": number})


async def list_all_questions(site: Site, request: Request) -> Response:
    """Return the open questions of all projects, each once, oldest first.

    Projects that cannot be read may have questions too, so they are listed with the reason.
    """
    sessions = site.source.sessions()
    owners = {one.project: one for one in sessions}
    found: list[dict[str, Any]] = []
    problems: list[dict[str, str]] = []
    for owner in owners.values():
        about = {"session": owner.id, "project": str(owner.project)}
        try:
            status = await site.source.status(owner.id)
        except GsdError as error:
            problems.append({**about, "problem": _problem(error)})
            continue
        found += [{**one, **about} for one in status["questions"]]
    questions = sorted(found, key=lambda one: str(one["asked_at"]))
    return await answer({"questions": questions, "problems": problems})


async def answer_question(site: Site, request: Request) -> Response:
    """Answer a question, or change an answer that no run has taken yet."""
    session, question = request.path_params["session"], request.path_params["question"]
    body = body_of(request)
    by = f"{getpass.getuser()} through the dashboard"
    found = await site.source.answer(session, question, body["words"], by=by)
    about = {"question": found.question, "chosen": list(found.chosen), "text": found.text}
    return await answer({"answer": {**about, "by": found.by, "words": found.words}})


def number_in(request: Request, name: str, *, default: int, lowest: int = 0, highest: int = 1 << 60) -> int:
    """Return a number of the query; raise :class:`Refused` if it is none, or out of range."""
    text = request.query_params.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise Refused(400, f"{name}: expected a number")
    if not lowest <= int(text) <= highest:
        raise Refused(400, f"{name}: expected a number from {lowest} to {highest}")
    return int(text)
