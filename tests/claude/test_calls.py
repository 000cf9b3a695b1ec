"""Successful calls: prompts, tools, permissions, questions, functions, usage and limits."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from gsd_core import AgentFunction, Allow, Answer, Ask, Deny, Limits, Permission, Question, ToolUse
from gsd_core.testing import FakeAgentHost
from gsd_plugins.rehearsal.api import ApiRequest, Blocks, Reply, Text, ToolUseBlock
from tests.claude.harness import Harness, by_turn, says, uses

pytestmark = pytest.mark.slow


def test_the_models_text_is_the_results_text(harness: Harness) -> None:
    result, requests = harness.run(by_turn(says("Hello.")), model="sonnet")

    assert (result.text, result.ended, result.value) == ("Hello.", "done", None)
    assert "sonnet" in result.model
    assert "You are an engineer." in requests[0].system
    assert requests[0].prompt == "do it"


def test_only_the_tasks_tools_are_sent(harness: Harness) -> None:
    _, requests = harness.run(by_turn(says("x")), tools=("Read", "Glob"))

    assert {"Read", "Glob"} == set(requests[0].tools) - {"DeferredToolPlaceholder"}


def test_a_task_without_tools_sends_none(harness: Harness) -> None:
    _, requests = harness.run(by_turn(says("x")))

    assert set(requests[0].tools) <= {"DeferredToolPlaceholder"}


def test_a_prompt_is_sent_verbatim(harness: Harness) -> None:
    (harness.tree / "secret.md").write_text("never to be read")
    _, requests = harness.run(by_turn(says("x")), prompt="/clear @secret.md")

    assert requests[0].prompt == "/clear @secret.md"
    assert "never to be read" not in str(requests[0].body)


def test_a_task_with_a_schema_has_a_value(harness: Harness) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    result, _ = harness.run(by_turn(uses("StructuredOutput", n=3), says("done")), schema=schema)

    assert result.value == {"n": 3}


def test_allowed_writes_and_commands_run_without_a_human(harness: Harness) -> None:
    host = FakeAgentHost()
    script = by_turn(
        uses("Write", file_path=str(harness.tree / "a.txt"), content="one"),
        uses("Bash", command="cp a.txt b.txt && curl --version >/dev/null; echo copied"),
        says("done"),
    )
    result, requests = harness.run(script, host, tools=("Write", "Bash"), writable=True)

    assert (harness.tree / "b.txt").read_text() == "one"
    assert [use.name for use in host.uses] == ["Write", "Bash"]
    assert host.uses[1].input["command"].startswith("cp a.txt")
    assert (host.uses[1].tree, host.uses[1].step, host.uses[1].writable) == (
        harness.tree,
        "1/execute/01-01",
        True,
    )
    assert "copied" in requests[-1].last
    assert not host.confirmed
    assert result.text == "done"


def test_each_command_starts_in_the_project_tree(harness: Harness) -> None:
    (harness.tree / "below").mkdir()
    script = by_turn(
        uses("Bash", command="cd below && pwd"), uses("Bash", command="touch here.txt"), says("done")
    )

    harness.run(script, FakeAgentHost(), tools=("Bash",), writable=True)

    assert (harness.tree / "here.txt").exists()


@pytest.mark.parametrize("writable", [True, False])
def test_the_policies_decide_what_the_cli_itself_would_ask_about(harness: Harness, writable: bool) -> None:
    host = FakeAgentHost()
    outside = harness.home / "outside.txt"
    script = by_turn(uses("Write", file_path=str(outside), content="one"), says("done"))
    harness.run(script, host, tools=("Write",), writable=writable)

    assert outside.read_text() == "one"
    assert not host.confirmed


def no_bash(use: ToolUse) -> Permission:
    return Deny(reason="no shell here") if use.name == "Bash" else Allow()


def test_a_denied_command_does_not_run_and_the_model_gets_the_reason(harness: Harness) -> None:
    script = by_turn(uses("Bash", command="touch made"), says("too bad"))
    result, requests = harness.run(script, FakeAgentHost(policy=no_bash), tools=("Bash",), writable=True)

    assert not (harness.tree / "made").exists()
    assert "no shell here" in requests[-1].last
    assert result.text == "too bad"


@pytest.mark.parametrize("decision", [Allow(), Deny(reason="a human said no")])
def test_a_human_decides_what_the_policies_leave_open(harness: Harness, decision: Permission) -> None:
    host = FakeAgentHost(
        policy=lambda use: Ask(reason="needs a human"), confirms=lambda use, reason: decision
    )
    script = by_turn(uses("Bash", command="touch made"), says("done"))
    _, requests = harness.run(script, host, tools=("Bash",), writable=True)

    assert [(use.input["command"], reason) for use, reason in host.confirmed] == [
        ("touch made", "needs a human")
    ]
    assert (harness.tree / "made").exists() == (decision == Allow())
    assert ("a human said no" in requests[-1].last) == (decision != Allow())


QUESTIONS = {
    "questions": [
        {
            "question": "Which database?",
            "header": "Database",
            "multiSelect": False,
            "options": [
                {"label": "SQLite (Recommended)", "description": "one file"},
                {"label": "PostgreSQL", "description": "a server"},
            ],
        },
        {
            "question": "Which extras?",
            "header": "Extras",
            "multiSelect": True,
            "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        },
    ]
}


def answer(question: Question) -> Answer:
    if question.multiple:
        return Answer(question=question.id, chosen=("A", "B"))
    return Answer(question=question.id, text="DuckDB, please")


def test_a_human_answers_the_models_questions(harness: Harness) -> None:
    host = FakeAgentHost(policy=lambda use: Deny(reason="nothing"), answers=answer)
    _, requests = harness.run(
        by_turn(uses("AskUserQuestion", **QUESTIONS), says("done")), host, tools=("AskUserQuestion",)
    )

    database, extras = host.questions
    assert (database.text, database.header, database.multiple) == ("Which database?", "Database", False)
    assert [(o.label, o.recommended) for o in database.options] == [
        ("SQLite (Recommended)", True),
        ("PostgreSQL", False),
    ]
    assert extras.multiple
    assert "DuckDB, please" in requests[-1].last
    assert "A, B" in requests[-1].last


TASK_DONE = AgentFunction(
    name="task_done",
    description="Report a task.",
    schema={
        "type": "object",
        "properties": {"task": {"type": "integer"}, "files": {"type": "array", "items": {"type": "string"}}},
        "required": ["task", "files"],
        "additionalProperties": False,
    },
)


def commit(name: str, arguments: Mapping[str, Any]) -> str:
    return f"committed task {arguments['task']}"


def test_the_model_calls_a_function_of_the_task(harness: Harness) -> None:
    host = FakeAgentHost(policy=lambda use: Deny(reason="nothing"), replies=commit)
    script = by_turn(uses("mcp__gsd__task_done", task=2, files=["a"]), says("done"))
    _, requests = harness.run(script, host, functions=(TASK_DONE,))

    assert host.calls == [("task_done", {"task": 2, "files": ["a"]})]
    assert "committed task 2" in requests[-1].last
    assert "mcp__gsd__task_done" in requests[0].tools


USAGE = {
    "input_tokens": 1000,
    "output_tokens": 500,
    "cache_read_input_tokens": 70,
    "cache_creation_input_tokens": 9,
}


def two_turns(request: ApiRequest) -> Reply:
    if request.turn:
        return says("done", **USAGE)
    first = ToolUseBlock("Bash", {"command": "true"})
    return Blocks((Text("Looking."), first, ToolUseBlock("Bash", {"command": "echo hi"})), usage=USAGE)


def test_the_usage_of_each_turn_is_reported_once_and_summed(harness: Harness) -> None:
    host = FakeAgentHost()
    result, _ = harness.run(two_turns, host, tools=("Bash",), writable=True, model="opus")

    assert [(u.turns, u.input_tokens, u.output_tokens) for u in host.usages] == [(1, 1000, 500)] * 2
    usage = result.usage
    assert (usage.input_tokens, usage.output_tokens, usage.turns) == (2000, 1000, 2)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (140, 18)
    assert usage.basis == "reported"


def test_our_prices_match_the_cost_that_the_cli_reports(harness: Harness) -> None:
    host = FakeAgentHost()
    result, _ = harness.run(two_turns, host, tools=("Bash",), writable=True, model="opus")

    assert {usage.basis for usage in host.usages} == {"priced"}
    assert sum((usage.dollars or Decimal(0)) for usage in host.usages) == result.usage.dollars


def test_the_agents_activity_is_reported(harness: Harness) -> None:
    host = FakeAgentHost()
    harness.run(two_turns, host, tools=("Bash",), writable=True)

    reported = [
        (activity.kind, activity.text, activity.tool)
        for activity in host.activities
        if activity.kind != "start"
    ]
    assert reported[:3] == [("text", "Looking.", ""), ("tool", "true", "Bash"), ("tool", "echo hi", "Bash")]
    assert ("result", "hi", "Bash") in reported
    assert reported[-1] == ("text", "done", "")
    assert [activity.kind for activity in host.activities].count("start") == 1


def test_a_call_ends_at_its_limit_of_turns(harness: Harness) -> None:
    result, requests = harness.run(
        lambda request: uses("Bash", command="true"), tools=("Bash",), writable=True, limits=Limits(turns=2)
    )

    assert result.ended == "turns"
    assert len(requests) == 2


def test_a_call_ends_at_its_limit_of_dollars(harness: Harness) -> None:
    def expensive(request: ApiRequest) -> Reply:
        return Blocks(
            (ToolUseBlock("Bash", {"command": "true"}),), usage={"input_tokens": 90_000, "output_tokens": 1}
        )

    result, requests = harness.run(
        expensive, tools=("Bash",), writable=True, limits=Limits(dollars=Decimal("0.01"))
    )

    assert result.ended == "dollars"
    assert len(requests) == 1
