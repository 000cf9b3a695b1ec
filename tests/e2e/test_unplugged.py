"""The model becomes unreachable in the middle of a run, and returns."""

from __future__ import annotations

import pytest

from gsd_plugins.rehearsal import Scenario
from gsd_plugins.rehearsal.api import MessagesApi
from gsd_plugins.rehearsal.replies import Replies
from tests.e2e.project import EXAMPLE, Project, Started, defects, plugin

PLAYS = """from urllib.parse import quote
from gsd_core import implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_plugins.claude import run_claude

@implements(gsd_run_agent)
async def run_agent(task, host):
    call = {"step": task.step, "role": task.role, "tree": str(task.tree)}
    headers = chr(10).join(f"x-gsd-{name}: {quote(value)}" for name, value in call.items())
    return await run_claude(task, host, env={"ANTHROPIC_CUSTOM_HEADERS": headers})
"""


def model() -> MessagesApi:
    """Return a scripted model for one phase without problems."""
    idea = EXAMPLE.read_text("utf-8").strip() + "\n"
    return MessagesApi(Replies(Scenario(idea, phases=1, question=False, gap=False, overloaded=False)))


def start(project: Project, api: MessagesApi, *verb: str) -> Started:
    """Start ``gsd`` with Claude Code and that model."""
    keys = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-test"}
    project.environment = keys | {"GSD_RETRY_WAIT": "1s", "GSD_RETRY_OUTAGE": "1s"}
    loads = plugin(project, PLAYS)
    return project.start(*verb, *loads, "--agent", "own", "--yes")


@pytest.mark.slow
def test_a_run_whose_model_is_unreachable_reports_it_and_resumes_later(project: Project) -> None:
    project.create()
    with model() as api:
        started = start(project, api, "run", str(EXAMPLE))
        assert started.until(lambda: project.facts("task.committed")), started.output
    ended = started.wait()
    (closed,) = project.facts("run.closed")
    with model() as api:
        done = start(project, api, "resume").wait()

    assert ended.exit == 75, ended.err
    assert "resume`" in ended.out
    assert closed.data["exit"] == 75
    assert done.exit == 0, done.err
    assert list(defects(project)) == []
