"""The scripted model derives its next message from the conversation alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core import Answer
from gsd_plugins.rehearsal import Scenario
from gsd_plugins.rehearsal.api import Text, ToolUseBlock
from gsd_plugins.rehearsal.replies import Replies
from tests.rehearsal.player import TOOLS, Player
from tests.rehearsal.task_host import IDEAS, TaskHost, plan_ids

SCENARIO = Scenario(IDEAS[0], phases=3, overloaded=False)


def executor(
    tree: Path, plan: str, task_host: TaskHost | None = None, scenario: Scenario = SCENARIO
) -> Player:
    return Player(
        script=Replies(scenario),
        tree=tree,
        step=f"{int(plan[:2])}/execute/{plan}",
        role="executor",
        prompt=f"Execute {plan}",
        task_host=task_host or TaskHost(tree, scenario, plan),
    )


def names(said: list[object]) -> list[str]:
    return [block.name for block in said if isinstance(block, ToolUseBlock)]


@pytest.mark.parametrize(
    ("step", "role", "prompt", "expected"),
    [
        ("init", "roadmapper", "an idea", SCENARIO.roadmap()),
        ("1/plan", "planner", "CORE-01: read", SCENARIO.plans("1")),
        (
            "1/plan/r1",
            "planner",
            "  truth: The usage is documented",
            SCENARIO.plans("1", 1, "  truth: The usage is documented"),
        ),
        (
            "2/verify",
            "verifier",
            "- 02-01:T1: x\n- 02-01:T2: y",
            SCENARIO.verdicts(["02-01:T1", "02-01:T2"], "2"),
        ),
    ],
)
def test_a_value_is_given_with_the_structured_output_tool(
    step: str, role: str, prompt: str, expected: object, tmp_path: Path
) -> None:
    player = Player(Replies(SCENARIO), tmp_path, step, role, prompt)

    player.play()

    assert player.value == expected


def test_a_verifier_reads_the_code_before_it_answers(tmp_path: Path) -> None:
    player = Player(Replies(SCENARIO), tmp_path, "3/verify", "verifier", "- 03-01:T1: x")

    said = player.play()

    assert names([*said])[0] == "Read"
    assert names([*said])[-1] == "StructuredOutput"


def test_a_verifier_cites_what_it_read(tmp_path: Path) -> None:
    (tmp_path / SCENARIO.evidence_of("03-01")).parent.mkdir(parents=True)
    (tmp_path / SCENARIO.evidence_of("03-01")).write_text('"""Report."""\n')
    player = Player(Replies(SCENARIO), tmp_path, "3/verify", "verifier", "- 03-01:T1: x\n- REPORT-01: y")

    player.play()

    cited = {verdict["id"]: verdict["citations"] for verdict in player.value["verdicts"]}
    line = {"file": SCENARIO.evidence_of("03-01"), "first": 1, "last": 1}
    assert cited == {"03-01:T1": [line], "REPORT-01": [line]}


def test_without_the_structured_output_tool_the_answer_is_text(tmp_path: Path) -> None:
    player = Player(Replies(SCENARIO), tmp_path, "init", "roadmapper", tools=("Read",))

    said = player.play()

    assert isinstance(said[-1], Text)
    assert '"core_value"' in said[-1].text


@pytest.mark.slow
def test_a_whole_project_can_be_executed_under_the_cli_s_rules_for_files(tmp_path: Path) -> None:
    for plan in plan_ids(SCENARIO):
        player = executor(tmp_path, plan)
        player.play()
        assert player.task_host is not None
        assert player.task_host.done == [1, 2][: len(SCENARIO.tasks(plan))], plan
        assert player.value["issues"] == []

    readme = (tmp_path / "README.md").read_text()
    assert readme.count("## Usage") == readme.count("## Command line") == 1


@pytest.mark.slow
def test_it_takes_few_turns(tmp_path: Path) -> None:
    turns = {plan: executor(tmp_path, plan) for plan in plan_ids(SCENARIO)}

    for player in turns.values():
        player.play()
    taken = {plan: sum(m["role"] == "assistant" for m in p.messages) for plan, p in turns.items()}

    assert taken == {"01-01": 5, "01-02": 4, "01-03": 4, "02-01": 5, "03-01": 5}


def test_the_user_s_answer_is_in_the_code(tmp_path: Path) -> None:
    task_host = TaskHost(tmp_path, SCENARIO, "01-01", answer=Answer(question="", text='a "quoted", one'))
    player = executor(tmp_path, "01-01", task_host)

    said = player.play()

    assert names([*said]).count("AskUserQuestion") == 1
    assert 'ENDING = "a \\"quoted\\","' in (tmp_path / "ledger/greetings.py").read_text()


def test_without_the_tool_to_ask_the_recommended_option_is_used(tmp_path: Path) -> None:
    player = executor(tmp_path, "01-01")
    player.tools = tuple(tool for tool in TOOLS if tool != "AskUserQuestion")

    player.play()

    assert f'ENDING = "{SCENARIO.product.endings[0][1]}"' in (tmp_path / "ledger/greetings.py").read_text()


def test_exactly_one_request_is_refused_as_overloaded(tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], phases=1)
    script = Replies(scenario)
    players = [executor(tmp_path, "01-01", scenario=scenario) for _ in range(2)]

    for player in players:
        player.script = script
        player.play()

    assert [player.failures for player in players] == [[529], []]


@pytest.mark.slow
@pytest.mark.parametrize("turns", range(1, 5))
def test_a_conversation_that_lost_its_last_turn_continues(turns: int, tmp_path: Path) -> None:
    player = executor(tmp_path, "01-01")
    for _ in range(turns):
        player.turn()

    del player.messages[-2:]
    player.seen.clear()
    player.script = Replies(SCENARIO)
    player.play()

    assert player.task_host is not None
    assert player.task_host.done == [1, 2]
    assert player.value["issues"] == []


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["01-01", "03-01"])
def test_a_new_conversation_learns_which_tasks_are_done(plan: str, tmp_path: Path) -> None:
    for before in plan_ids(SCENARIO)[: plan_ids(SCENARIO).index(plan)]:
        executor(tmp_path, before).play()
    first = executor(tmp_path, plan)
    while first.task_host and not first.task_host.done:
        first.turn()

    second = executor(tmp_path, plan, first.task_host)
    second.play()

    assert second.task_host is not None
    assert second.task_host.done == [1, 2]
    assert second.value["issues"] == []


def test_a_task_that_is_always_rejected_is_reported_and_ends_the_plan(tmp_path: Path) -> None:
    refusals = ["Task 1 is not committed: no"] * 3
    player = executor(tmp_path, "01-01", TaskHost(tmp_path, SCENARIO, "01-01", replies=refusals))

    player.play()

    assert player.value["issues"] == ["task 1 was not accepted: Task 1 is not committed: no"]


def test_a_rejected_answer_is_given_again(tmp_path: Path) -> None:
    player = Player(Replies(SCENARIO), tmp_path, "1/plan", "planner", "CORE-01")
    player.play()
    player.value = None

    player.messages.append({"role": "user", "content": "Your answer cannot be used yet: too short"})
    player.play()

    assert player.value == SCENARIO.plans("1")
