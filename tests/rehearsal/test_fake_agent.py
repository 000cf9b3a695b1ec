"""The fake agent plays every role, asks its question, is overloaded once, and can be restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gsd_core import (
    Activity,
    AgentResult,
    AgentTask,
    Allow,
    Answer,
    Ask,
    Conversation,
    Deny,
    Permanent,
    RunInfo,
    Transient,
)
from gsd_core.plugins.discovery import Choice
from gsd_core.plugins.loading import build_manager, load
from gsd_core.testing import FakeAgentHost
from gsd_plugins.rehearsal import FakeAgent, Scenario
from gsd_plugins.rehearsal.api import Text
from gsd_plugins.rehearsal.replies import Replies
from tests.claude.harness import ObservedHost
from tests.rehearsal.player import Player
from tests.rehearsal.task_host import IDEAS, TaskHost, plan_ids

SCENARIO = Scenario(IDEAS[0], phases=3, overloaded=False)


def task(tree: Path, **given: Any) -> AgentTask:
    known: dict[str, Any] = {"step": "1/execute/01-01", "role": "executor", "prompt": "", "run": "r-1"}
    known.update(tree=tree, tools=None, writable=True, **given)
    return AgentTask(**known)


def play(agent: FakeAgent, task: AgentTask, host: FakeAgentHost | None = None) -> AgentResult:
    result = asyncio.run(agent.run_agent(task, host or FakeAgentHost()))
    assert result is not None
    return result


def host_of(task_host: TaskHost) -> ObservedHost:
    return ObservedHost(replies=task_host.function, answers=task_host.reply)


def test_every_role_has_an_answer(tmp_path: Path) -> None:
    agent = FakeAgent(SCENARIO)

    roadmap = play(agent, task(tmp_path, step="init", role="roadmapper")).value
    plans = play(agent, task(tmp_path, step="1/plan", role="planner", prompt="CORE-01")).value
    gaps = play(agent, task(tmp_path, step="1/plan/r1", role="planner", prompt="  truth: a")).value
    truths = "- 01-01:T1: a\n- 01-02:T1: b"
    verdicts = play(agent, task(tmp_path, step="1/verify/r1", role="verifier", prompt=truths)).value

    assert roadmap == SCENARIO.roadmap()
    assert plans == SCENARIO.plans("1")
    assert [truth["text"] for plan in gaps["plans"] for truth in plan["truths"]] == ["a"]
    assert [v["id"] for v in verdicts["verdicts"]] == ["01-01:T1", "01-02:T1"]


def test_a_prompt_of_the_user_is_answered_by_both_agents_without_a_script(tmp_path: Path) -> None:
    step = {"step": "exec/say-hi-53eae705", "role": "command", "prompt": "say hi"}
    player = Player(Replies(SCENARIO), tmp_path, step["step"], step["role"], step["prompt"])

    [said] = [block for block in player.play() if isinstance(block, Text)]

    assert "no model has read the prompt" in said.text
    assert play(FakeAgent(SCENARIO), task(tmp_path, **step)).text == said.text


@pytest.mark.slow
def test_it_writes_a_whole_project_and_every_task_is_accepted(tmp_path: Path) -> None:
    agent, accepted = FakeAgent(SCENARIO), list[tuple[str, list[int]]]()

    for plan in plan_ids(SCENARIO):
        task_host = TaskHost(tmp_path, SCENARIO, plan)
        step = f"{int(plan[:2])}/execute/{plan}"
        result = play(agent, task(tmp_path, step=step), host_of(task_host))
        accepted.append((plan, task_host.done))
        assert result.value["issues"] == []

    assert [(plan, [1, 2][: len(SCENARIO.tasks(plan))]) for plan in plan_ids(SCENARIO)] == accepted


def test_the_user_s_answer_is_in_the_code_and_in_the_decisions(tmp_path: Path) -> None:
    task_host = TaskHost(tmp_path, SCENARIO, "01-01", answer=Answer(question="", text="=>"))
    host = host_of(task_host)

    result = play(FakeAgent(SCENARIO), task(tmp_path), host)

    assert len(host.questions) == 1
    assert 'ENDING = "=>"' in (tmp_path / "ledger/greetings.py").read_text()
    assert result.value["decisions"] == ["Greetings end with =>"]


def test_a_denied_file_is_not_written(tmp_path: Path) -> None:
    host = FakeAgentHost(
        policy=lambda use: Deny(reason="not today"), replies=lambda name, given: "not committed"
    )

    result = play(FakeAgent(SCENARIO), task(tmp_path), host)

    assert list(tmp_path.iterdir()) == []
    assert "Write was refused: not today" in result.value["issues"]


def test_it_asks_for_confirmation_when_a_policy_requires_it(tmp_path: Path) -> None:
    task_host = TaskHost(tmp_path, SCENARIO, "01-01")
    host = host_of(task_host)
    host.confirms = lambda use, reason: Allow()
    host.policy = lambda use: (
        Ask(reason="new file") if use.input["file_path"].endswith("greetings.py") else Allow()
    )

    play(FakeAgent(SCENARIO), task(tmp_path), host)

    assert [reason for _, reason in host.confirmed] == ["new file", "new file"]
    assert task_host.done == [1, 2]


def test_a_rejected_task_is_retried_and_given_up_after_three_tries(tmp_path: Path) -> None:
    task_host = TaskHost(tmp_path, SCENARIO, "01-01", replies=["Task 1 is not committed: no"])
    retried = play(FakeAgent(SCENARIO), task(tmp_path), host_of(task_host))
    stubborn = FakeAgentHost(replies=lambda name, given: "Task 1 is not committed: never")
    given_up = play(FakeAgent(SCENARIO), task(tmp_path), stubborn)

    assert task_host.done == [1, 2]
    assert retried.value["issues"] == []
    assert [given["task"] for _, given in stubborn.calls] == [1, 1, 1]
    assert "never" in given_up.value["issues"][0]


def test_the_overload_happens_once_and_never_in_a_resumed_conversation(tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], phases=1)
    agent, task_host = FakeAgent(scenario), TaskHost(tmp_path, scenario, "01-01")

    with pytest.raises(Transient):
        play(agent, task(tmp_path), host_of(task_host))
    committed = [*task_host.done]
    play(agent, task(tmp_path), host_of(task_host))
    resumed = Conversation(id="c", cwd=str(tmp_path), resume=True)
    other = play(FakeAgent(scenario), task(tmp_path, conversation=resumed), host_of(task_host))

    assert committed == [1]
    assert task_host.done == [1, 2]
    assert other.value["issues"] == []


class Stopped(Exception):
    """Simulates the end of the agent's process."""


def stopping_after(count: int) -> Callable[[Activity], None]:
    left = iter(range(count))

    def stop(activity: Activity) -> None:
        if next(left, None) is None:
            raise Stopped

    return stop


def test_it_can_be_restarted_after_any_activity(tmp_path: Path) -> None:
    task_host, results = TaskHost(tmp_path, SCENARIO, "01-01"), list[AgentResult]()
    host = host_of(task_host)

    for count in range(30):
        host.on_activity = stopping_after(count)
        with suppress(Stopped):
            results.append(play(FakeAgent(SCENARIO), task(tmp_path), host))

    assert task_host.done == [1, 2]
    assert len(results) > 1
    assert {str(result.value) for result in results} == {str(SCENARIO.summary("01-01", "Exclamation mark"))}


def test_usage_is_reported_for_each_turn_and_adds_up(tmp_path: Path) -> None:
    host = host_of(TaskHost(tmp_path, SCENARIO, "01-01"))

    result = play(FakeAgent(SCENARIO), task(tmp_path), host)

    assert result.usage.turns == len(host.usages) == 4
    assert result.usage.dollars == sum(usage.dollars or 0 for usage in host.usages)


def test_two_runs_in_one_process_have_their_own_ideas(tmp_path: Path) -> None:
    agent = FakeAgent()
    runs = [
        RunInfo(id=f"r-{n}", project=tmp_path, idea=idea) for n, idea in enumerate(("# Ledger", "# Greeter"))
    ]

    async def both() -> list[str]:
        (one,), (two,) = agent.lifespan(runs[0]), agent.lifespan(runs[1])
        async with one, two:
            tasks = [task(tmp_path, step="init", role="roadmapper", run=run.id) for run in runs]
            results = [await agent.run_agent(t, FakeAgentHost()) for t in tasks]
        return [result.value["name"] for result in results if result]

    assert asyncio.run(both()) == ["Ledger", "Greeter"]
    with pytest.raises(Permanent, match="r-0"):
        play(agent, task(tmp_path, run="r-0"))


def test_the_module_is_the_plugin_fake() -> None:
    choice = Choice(named=("gsd_plugins.rehearsal.fake",), defaults=())

    (info,) = load(build_manager(), choice)

    assert (info.name, info.status) == ("fake", "active")
    assert info.hooks == ("gsd_doctor", "gsd_lifespan", "gsd_run_agent", "gsd_settings")
