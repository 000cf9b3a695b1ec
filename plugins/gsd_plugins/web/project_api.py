"""The routes about the project of a session: phases, evidence, commits, events, costs, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import Refused, require_folder
from .feed import event_json
from .sessions_api import number_in
from .site import Site, answer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from gsd_core.project import ProjectDetails

MAX_EVENTS = 5000


async def list_phases(site: Site, request: Request) -> Response:
    """Return the phases of the milestone, with steps and plans."""
    is_running = await _is_running(site, request)
    return await answer(await (await _details(site, request)).phases(is_running=is_running))


async def show_phase(site: Site, request: Request) -> Response:
    """Return one phase: context, plans, summaries, verification, evidence, commits."""
    is_running = await _is_running(site, request)
    details = await _details(site, request)
    return await answer(await details.phase(request.path_params["phase"], is_running=is_running))


async def _details(site: Site, request: Request) -> ProjectDetails:
    session = request.path_params["session"]
    await require_folder(site.source.session(session).project)
    return site.details(session)


async def _is_running(site: Site, request: Request) -> bool:
    return (await site.source.status(request.path_params["session"]))["owner"] is not None


async def list_requirements(site: Site, request: Request) -> Response:
    """Return the requirements with plans, commits, checks and evidence."""
    return await answer(await (await _details(site, request)).requirements())


async def list_commits(site: Site, request: Request) -> Response:
    """Return the commits of the run, oldest first."""
    phase = request.query_params.get("phase", "")
    return await answer({"commits": await (await _details(site, request)).commits(phase)})


async def show_commit(site: Site, request: Request) -> Response:
    """Return one commit with its patch."""
    details = await _details(site, request)
    return await answer(await details.commit(request.path_params["sha"]))


async def show_lines(site: Site, request: Request) -> Response:
    """Return lines of a file of the project, such as those that evidence cites."""
    path = request.query_params.get("path", "")
    first = number_in(request, "first", default=1, lowest=1)
    last = number_in(request, "last", default=first + 199, lowest=1)
    if not path or "\0" in path:
        raise Refused(400, "path: expected the path of a file in the project")
    return await answer(await (await _details(site, request)).lines(path, first, last))


async def list_events(site: Site, request: Request) -> Response:
    """Return events of the project's journal after a position."""
    after = number_in(request, "after", default=0)
    limit = number_in(request, "limit", default=500, lowest=1, highest=MAX_EVENTS)
    last = number_in(request, "last", default=0, highest=MAX_EVENTS)
    names = request.query_params.getlist("name")
    details = await _details(site, request)
    page = await details.events(after=after, limit=limit, last=last, names=names)
    found = {"events": [event_json(one) for one in page.events], "next": page.next, "more": page.more}
    return await answer(found, is_redacted=True)


async def show_cost(site: Site, request: Request) -> Response:
    """Return what the run cost, as gsd cost --json prints it."""
    by = request.query_params.get("by", "phase")
    return await answer(await (await _details(site, request)).cost(by))


async def list_questions(site: Site, request: Request) -> Response:
    """Return the open and the answered questions of the project's run."""
    session = request.path_params["session"]
    status = await site.source.status(session)
    answered = await site.details(session).answered()
    return await answer({"questions": status["questions"], "answered": answered})


async def list_panels(site: Site, request: Request) -> Response:
    """Return what plugins show about the project, as gsd panels --json prints it; at most 30 seconds old."""
    found = await site.printed.panels(site.source.session(request.path_params["session"]).project)
    return await answer({"panels": found["panels"], "failures": found["failures"]})


async def list_plugins(site: Site, request: Request) -> Response:
    """Return the plugins of this installation."""
    return await answer({"plugins": await site.printed.plugins()})
