"""The agent ``rehearsal`` as a whole, with the real SDK and the real CLI."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_core import AgentFunction, AgentResult, AgentTask, Conversation, Permanent, RunInfo, bind_settings
from gsd_core.testing import FakeAgentHost
from gsd_plugins import rehearsal
from gsd_plugins.rehearsal import RehearsalSettings
from tests.claude.harness import activities
from tests.rehearsal.task_host import IDEAS, TaskHost, choose

TASK_DONE = AgentFunction(
    name="task_done",
    description="Check and commit a finished task.",
    schema={
        "type": "object",
        "properties": {
            "task": {"type": "integer"},
            "files": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "string"},
        },
        "required": ["task", "files", "note"],
        "additionalProperties": False,
    },
)
ANYTHING: dict[str, Any] = {"type": "object"}
CONVERSATION = "6f8d7a54-0c55-4b1f-9d1c-8d5e0c5f7a11"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path / "project")], check=True)
    return tmp_path / "project"


def run_info(project: Path) -> RunInfo:
    return RunInfo(id="r-1", project=project, idea=IDEAS[0], agent="rehearsal")


def executor(project: Path, resume: bool = False) -> AgentTask:
    return AgentTask(
        step="1/execute/01-01",
        role="executor",
        prompt="Execute plan 01-01.",
        system="You execute a plan.",
        tools=("Read", "Write", "Edit", "Bash", "AskUserQuestion"),
        functions=(TASK_DONE,),
        schema=ANYTHING,
        tree=project,
        writable=True,
        run="r-1",
        conversation=Conversation(id=CONVERSATION, cwd=str(project), resume=resume),
    )


def rehearse(project: Path, task: AgentTask, host: FakeAgentHost) -> AgentResult | None:
    """Do *task* in a new run, which shares only the project's folder with others."""

    async def within_a_run() -> AgentResult | None:
        (server,) = rehearsal.lifespan(run_info(project))
        async with asyncio.timeout(60), server:
            return await rehearsal.run_agent(task, host)

    with bind_settings({RehearsalSettings: RehearsalSettings(phases=1)}):
        return asyncio.run(within_a_run())


@pytest.mark.slow
def test_a_plan_is_killed_between_its_tasks_and_resumed(project: Path) -> None:
    scenario = RehearsalSettings(phases=1).scenario(run_info(project))
    task_host = TaskHost(project, scenario, "01-01", answer=choose(scenario.user_question().options[2].label))
    host = FakeAgentHost(replies=task_host.function, answers=task_host.reply)

    class Killed(Exception):
        pass

    def killing(name: str, arguments: Any) -> str:
        if task_host.done:
            raise Killed
        return task_host.function(name, arguments)

    host.replies = killing
    with pytest.raises(Killed):
        rehearse(project, executor(project), host)
    host.replies = task_host.function
    result = rehearse(project, executor(project, resume=True), host)

    assert result is not None
    assert result.value == scenario.summary("01-01", scenario.user_question().options[2].label)
    assert task_host.done == [1, 2]
    assert [question.text for question in host.questions] == [scenario.user_question().text]
    assert f'ENDING = "{scenario.product.endings[2][1]}"' in (project / "ledger/greetings.py").read_text()
    assert "529" in " ".join(activity.text for activity in activities(host, "retry"))


def test_a_task_outside_the_lifespan_of_its_run_fails(project: Path) -> None:
    with pytest.raises(Permanent, match="r-1"):
        asyncio.run(rehearsal.run_agent(executor(project), FakeAgentHost()))
