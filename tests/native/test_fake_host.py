"""The fake host behaves like the real one where executors rely on it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gsd_core import AgentResult, AgentTask, Inquiry, Option, Permanent, Question, Task
from gsd_core.testing.fakes import FakeHost, Parked, Turn

TASK = AgentTask(step="1/plan", role="planner", prompt="Plan.", tree=Path("/p"))


def ask(host: FakeHost, *questions: Question) -> list[str]:
    return [a.words for a in asyncio.run(host.ask(Inquiry(step="s", questions=questions)))]


def test_a_repeated_call_returns_the_recorded_result() -> None:
    host = FakeHost(agent=lambda turn: {"number": 1})
    first = asyncio.run(host.run_agent("plan", TASK))
    again = asyncio.run(host.run_agent("plan", TASK))

    assert (first.value, again, host.keys) == ({"number": 1}, first, ("plan",))


def test_complaints_go_back_into_the_same_conversation() -> None:
    def script(turn: Turn) -> AgentResult:
        return AgentResult(text=" ".join(turn.complaints))

    def accept(result: AgentResult) -> tuple[str, ...]:
        return () if result.text else ("say something",)

    result = asyncio.run(FakeHost(agent=script).run_agent("plan", TASK, accept))

    assert (result.text, result.conversation) == ("say something", "conversation-plan")


def test_a_third_complaint_rejects_the_answer() -> None:
    host = FakeHost(agent={"plan": 1})
    with pytest.raises(Permanent, match="no good"):
        asyncio.run(host.run_agent("plan", TASK, lambda result: ["no good"]))

    assert len(host.complaints) == 3


def test_an_unscripted_call_fails_and_names_the_scripted_ones() -> None:
    with pytest.raises(AssertionError, match="'plan'; scripted: verify"):
        asyncio.run(FakeHost(agent={"verify": 1}).run_agent("plan", TASK))


def test_the_recommended_option_is_the_default_answer() -> None:
    question = Question(text="Which one?", options=(Option(label="A"), Option(label="B", recommended=True)))

    assert ask(FakeHost(), question) == ["B"]
    assert ask(FakeHost(answers={"Which": "A"}), question) == ["A"]
    assert ask(FakeHost(answers=["neither"]), question) == ["neither"]


def test_a_question_without_an_answer_parks_the_step() -> None:
    host = FakeHost()
    with pytest.raises(Parked):
        ask(host, Question(text="Log in", options=(Option(label="Done"),), human_only=True))

    assert len(host.inquiries) == 1


def test_a_question_is_asked_once() -> None:
    host = FakeHost(answers=["yes"])
    question = Question(text="Sure?")

    assert ask(host, question) == ask(host, question) == ["yes"]
    assert len(host.inquiries) == 1


def test_a_task_is_committed_once_and_only_if_its_check_passes(tmp_path: Path) -> None:
    host = FakeHost(checks={"make": [2, 0]}, root=tmp_path)
    task = Task(number=1, name="Make it", check="make")
    (tmp_path / "made").write_text("x")

    async def commit() -> list[str]:
        results = [await host.commit_task(task, "feat: x", ["made", "gone"]) for _ in range(3)]
        return [result.problem or ",".join(result.paths) for result in results]

    assert asyncio.run(commit()) == ["`make` exits 2:\nit failed", "made", "made"]
    assert len(host.commits) == 1


def test_missing_paths_cannot_be_committed(tmp_path: Path) -> None:
    task = Task(number=1, name="Make it")
    result = asyncio.run(FakeHost(root=tmp_path).commit_task(task, "feat: x", ["made"]))

    assert (result.commit, result.problem) == ("", "nothing has changed")


def test_a_check_fails_before_its_task_unless_the_test_says_otherwise() -> None:
    task = Task(number=1, name="Make it", check="make")
    host, weak = FakeHost(), FakeHost(passes_before=["make"])

    assert not asyncio.run(host.check_before(task)).ok
    assert asyncio.run(weak.check_before(task)).ok
    commit = asyncio.run(weak.commit_task(task, "feat: x", ["made"], "made it"))
    assert commit.check is not None
    assert (commit.check.passed_before, commit.note) == (True, "made it")


def test_decisions_about_checks_are_kept() -> None:
    host = FakeHost()
    asyncio.run(host.replace_check(Task(number=1, name="x", check="make"), "make it", "why", "passes before"))

    assert [(each.was, each.check) for each in host.replaced] == [("make", "make it")]
