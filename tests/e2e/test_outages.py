"""Outages in a whole run, with separate processes: what is waited for is shown, and a wait can be ended."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.e2e.project import EXAMPLE, FAKE, REHEARSAL, Project, defects, no_problems, plugin

pytestmark = pytest.mark.slow

DOWN = """import time
from gsd_core import Outage, implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_plugins.rehearsal import fake

DOWN = {seconds}
began = []

@implements(gsd_run_agent)
async def run_agent(task, host):
    if task.role == "executor":
        began.append(time.monotonic())
        if time.monotonic() - began[0] < DOWN:
            raise Outage("API Error: 529 overloaded")
    return await fake.run_agent(task, host)
"""
DOWN_API = """import time
from gsd_core import implements
from gsd_core.hookspecs import gsd_doctor
from gsd_plugins.rehearsal import server
from gsd_plugins.rehearsal.api import Failure

DOWN, STATUS = {seconds}, {status}
began, failed = [], []

class Api(server.MessagesApi):
    def answer(self, request):
        # In the middle of a conversation: a part of it is paid for already.
        if "/execute/" in request.step and request.turn >= 1:
            began.append(time.monotonic())
            if began[-1] - began[0] < DOWN:
                failed.append(1)
                return Failure(STATUS, "overloaded_error", "Overloaded")
        return super().answer(request)

server.MessagesApi = Api

@implements(gsd_doctor)
def nothing():  # a plugin without a hook is refused
    return ()
"""


def paid(project: Project) -> list[tuple[str, str]]:
    """Return the step and the key of each recorded answer."""
    done = [fact for fact in project.facts("agent.closed") if fact.data["ended"] == "done"]
    return [(fact.step, fact.data["key"]) for fact in done]


def test_a_person_sees_what_is_waited_for_and_ctrl_c_ends_the_wait_at_once(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    down = plugin(project, DOWN.format(seconds=600))
    started = project.start(
        "run", EXAMPLE, *FAKE[:2], *down, "-p", "own", "--agent", "own", "--yes", GSD_RETRY_WAIT="50s"
    )
    assert started.until(lambda: project.journal_file.exists() and project.facts("timer.set"))
    assert started.until(lambda: " waits until " in started.output)
    status = project.json("status")
    shown = project.gsd("status").out
    began = time.monotonic()
    started.signal(signal.SIGINT)
    stopped = started.wait()
    seconds = time.monotonic() - began

    assert (stopped.exit, seconds < 5) == (130, True)
    assert "529 overloaded" in stopped.err
    assert "529 overloaded" in shown
    assert status["waits_for"] == project.facts("timer.set")[-1].data["until"][:19] + "+00:00"
    assert len(project.facts("attempt.started")) - len(project.facts("step.completed")) == 1


def test_a_stop_from_another_process_ends_the_wait(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    down = plugin(project, DOWN.format(seconds=600))
    started = project.start(
        "run", EXAMPLE, *FAKE[:2], *down, "-p", "own", "--agent", "own", "--yes", GSD_RETRY_WAIT="50s"
    )
    assert started.until(lambda: project.journal_file.exists() and project.facts("timer.set"))
    began = time.monotonic()
    project.gsd("stop")
    stopped = started.wait()

    assert (stopped.exit, time.monotonic() - began < 15) == (130, True)


@pytest.mark.parametrize("status", [529, pytest.param(503, marks=pytest.mark.long)])
def test_an_outage_in_the_middle_of_a_conversation_costs_no_answer_twice(
    project: Project, status: int
) -> None:
    project.create()
    project.environment = no_problems() | {"GSD_RETRY_WAIT": "2s"}
    down = plugin(project, DOWN_API.format(seconds=8, status=status))
    # The plugin fails before the server is asked, so that the model sees each request once.
    done = project.gsd("run", EXAMPLE, *down, "-p", "own", *REHEARSAL, "--yes", limit=400)

    waits = project.facts("timer.set")
    answers = paid(project)
    assert done.exit == 0, done.err
    assert len(waits) >= 2
    assert len(answers) == len(set(answers))
    assert {step for step, _ in answers} >= {"init", "1/plan"}
    assert list(defects(project)) == []
    opened = [f for f in project.facts("agent.opened") if f.step == waits[0].step]
    assert len({json.dumps(f.data["conversation"]["id"]) for f in opened}) == 1
