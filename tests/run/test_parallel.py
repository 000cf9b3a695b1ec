"""Plans side by side: each in a work tree of its own, merged one by one, nothing lost or done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from gsd_core import (
    AgentHost,
    AgentResult,
    AgentTask,
    Answer,
    Cap,
    Inquiry,
    Option,
    Permanent,
    Question,
    Spend,
    StepRequest,
    implements,
)
from gsd_core.hookspecs import gsd_answer, gsd_check_budget, gsd_workspace
from gsd_core.machine.state import Options
from gsd_core.run.runtime import RunRequest

from . import harness as h

pytestmark = pytest.mark.slow

SIX = [f"01-0{number}" for number in range(1, 7)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return h.repository(tmp_path / "project")


@define
class Clock:
    """Who executes a plan at the same time as whom; each takes as long as *pause* says."""

    pause: float = 0.3
    now: set[str] = field(factory=set[str], init=False)
    together: list[frozenset[str]] = field(factory=list[frozenset[str]], init=False)

    async def before(self, task: AgentTask, _: AgentHost) -> AgentResult | None:
        """Note who works now."""
        if task.role == "executor":
            plan = task.step.rpartition("/")[2]
            self.now.add(plan)
            self.together.append(frozenset(self.now))
            await asyncio.sleep(self.pause)
            self.now.discard(plan)
        return None


def request(
    root: Path, agent: object, *, new: bool = True, yes: bool = True, policy: Any = None, **run: Any
) -> RunRequest:
    """Return a request for a run that executes plans in work trees."""
    settings = {"workspace": ["worktree", "inplace"], "depth": "comprehensive", **run}
    more = {"policy": policy} if policy else {}
    return h.request(root, agent, given=h.idea() if new else None, run=settings, yes=yes, **more)


def order(root: Path) -> list[str]:
    """Return the plans in the order in which they were completed."""
    return [one.step.rpartition("/")[2] for one in h.facts(root, "step.completed") if "execute" in one.step]


def check_all_is_there(root: Path, agent: h.Watched) -> None:
    """Check that each plan was executed once, and that the project has all of it."""
    assert sorted(order(root)) == SIX
    assert len(agent.of("executor")) == len(SIX) + len(h.facts(root, "merge.failed"))
    history = h.git(root, "log", "--format=%H").split()
    assert {fact.data["commit"] for fact in h.facts(root, "task.committed")} <= {*history}
    assert sorted((root / "NOTES.md").read_text().split("\n")) == [
        "",
        "- Search a is there.",
        "- Search b is there.",
    ]
    assert "[salute(guest)" in (root / "greeter" / "cards.py").read_text()
    assert h.git(root, "status", "--porcelain") == ""
    assert len(h.git(root, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("most", [pytest.param(1, marks=pytest.mark.long), 4])
def test_plans_that_wait_for_nothing_are_executed_side_by_side_and_merged(root: Path, most: int) -> None:
    clock = Clock(pause=most / 2)
    agent = h.Watched(h.one_phase(wide=True), clock.before)
    end = h.do(request(root, agent, max_parallel=most))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert max(map(len, clock.together)) == most
    assert (order(root)[0], order(root)[-1]) == (SIX[0], SIX[-1])
    check_all_is_there(root, agent)
    failed = [fact.data for fact in h.facts(root, "merge.failed")]
    # Of two plans that change the same lines, and of two that only do not work together, the second one.
    assert sorted(data["paths"] for data in failed) == [[], ["NOTES.md"]] * (most > 1)
    assert ["import name 'greeting'" in data["output"] for data in failed if data["check"]] == [True] * (
        most > 1
    )


def test_a_policy_that_limits_the_agents_and_then_fails_lets_plans_wait_and_says_why(root: Path) -> None:
    asked: list[Spend] = []

    async def two(spend: Spend) -> Cap | None:
        if not spend.wanted:
            return None
        asked.append(spend)
        if h.facts(root, "step.queued"):
            raise ValueError("nobody knows")
        return Cap(agents=2, reason="one of two", hint="wait")

    clock = Clock(pause=0.5)
    agent = h.Watched(h.one_phase(wide=True), clock.before)
    given = request(root, agent, max_parallel=4, policy=h.plugin(gsd_check_budget, two))
    end = h.do(evolve(given, options=Options(skip_verify=True)))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert sorted(order(root)) == SIX
    queued = [fact.data for fact in h.facts(root, "step.queued")]
    assert queued[0] == {"why": "one of two", "hint": "wait"}
    assert (asked[0].working, asked[0].wanted) == (0, 4)
    # Once it fails, nothing is started beside what works.
    assert max(map(len, clock.together)) == 2
    assert {len(one) for one in clock.together[3:]} == {1}


def done_before(root: Path) -> list[str]:
    """Return the plans that were completed when the last process of the run ended."""
    return sorted(order(root))


def test_a_plan_that_fails_holds_up_only_what_depends_on_it(root: Path) -> None:
    async def fail(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.step.endswith("01-03") and task.role == "executor" and root.name not in healed:
            raise Permanent("broken")
        return None

    healed: list[str] = []
    agent = h.Watched(h.one_phase(wide=True), fail)
    end = h.do(request(root, agent))

    assert (end.outcome, end.exit) == ("failed", 1)
    assert end.reason == "1/execute/01-03: broken"
    assert done_before(root) == ["01-01", "01-02", "01-04", "01-05"]
    healed.append(root.name)
    paid = len(agent.of("executor"))
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert sorted(order(root)) == SIX
    again = [task.step for task in agent.of("executor")[paid:]]
    assert {*again} == {"1/execute/01-03", "1/execute/01-06"}


def test_a_question_holds_up_only_its_own_plan_and_the_run_ends_once_nothing_else_is_left(root: Path) -> None:
    which = Question(text="Which?", header="Which", options=(Option(label="A"), Option(label="B")))

    async def ask(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.step.endswith("01-03") and task.role == "executor":
            await host.ask([which])
        return None

    agent = h.Watched(h.one_phase(wide=True), ask)
    end = h.do(request(root, agent, yes=False))

    assert (end.outcome, end.exit) == ("blocked", 3), end.reason
    assert "1/execute/01-03 is waiting for an answer" in end.reason
    assert done_before(root) == ["01-01", "01-02", "01-04", "01-05"]
    h.answer(root, h.asked(root)[0], "A")
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert sorted(order(root)) == SIX


def test_a_file_in_the_way_of_one_plan_lets_the_others_be_merged(root: Path) -> None:
    async def edit(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.step.endswith("01-03") and task.role == "executor" and not edited:
            edited.append((root / "greeter" / "cards.py").write_text("mine\n"))
        return None

    edited: list[int] = []
    agent = h.Watched(h.one_phase(wide=True), edit)
    end = h.do(request(root, agent, yes=False))

    assert (end.outcome, end.exit) == ("blocked", 3), end.reason
    assert "1/execute/01-03 is waiting for an answer" in end.reason
    assert done_before(root) == ["01-01", "01-02", "01-04", "01-05"]
    assert (root / "greeter" / "cards.py").read_text() == "mine\n"
    (root / "greeter" / "cards.py").unlink()
    paid = len(agent.of("executor"))
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert sorted(order(root)) == SIX
    # What was paid for is merged; only a conflict with what the others have done costs another call.
    again = [task.step for task in agent.of("executor")[paid:]]
    assert again.count("1/execute/01-03") == len(
        [one for one in h.facts(root, "merge.failed") if one.step.endswith("01-03")]
    )


def test_a_question_about_a_file_in_the_way_holds_up_no_other_merge(root: Path) -> None:
    changed = root / "greeter" / "greetings.py"

    async def edit(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role != "executor" or task.step.endswith("01-01"):
            return None
        if task.step.endswith("01-02") and not edited:
            edited.append(changed.write_text(changed.read_text() + "# mine\n"))
        else:
            await asyncio.sleep(1)
        return None

    class Person:
        """Takes the change back once everything else is done."""

        @implements(gsd_answer)
        async def answer(self, inquiry: Inquiry) -> tuple[Answer, ...] | None:
            [question] = inquiry.questions
            if question.header != "In the way":
                return None
            async with asyncio.timeout(60):
                while not {"01-03", "01-04", "01-05"} <= {*order(root)}:  # noqa: ASYNC110 - from the journal
                    await asyncio.sleep(0.1)
            h.git(root, "restore", "greeter/greetings.py")
            return (Answer(question=question.id, chosen=("Go on",)),)

    edited: list[int] = []
    agent = h.Watched(h.one_phase(wide=True), edit)
    run = {"workspace": ["worktree", "inplace"], "depth": "comprehensive", "wait_for_answers": "2m"}
    end = h.do(h.request(root, agent, given=h.idea(), run=run, person=Person()))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert order(root)[-2:] == ["01-02", "01-06"]
    check_all_is_there(root, agent)


def test_a_stop_keeps_what_every_plan_has_done_and_nothing_is_done_twice(root: Path) -> None:
    async def stop(task: AgentTask, _: AgentHost) -> AgentResult | None:
        working.append(task.step)
        if len({step for step in working if "execute" in step}) == 4 and not stopped:
            stopped.append(True)
            h.put(h.journal(root), "stop", {}, by="tester")
            await asyncio.sleep(30)
        return None

    working: list[str] = []
    stopped: list[bool] = []
    agent = h.Watched(h.one_phase(wide=True), stop)
    end = h.do(request(root, agent))

    assert end.outcome == "stopped", end.reason
    assert not [one for one in h.facts(root, "step.completed") if one.step.endswith("01-06")]
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert sorted(order(root)) == SIX
    tasks = [fact.data["task"] for fact in h.facts(root, "task.committed")]
    assert len(tasks) == len({*tasks})
    assert h.git(root, "status", "--porcelain") == ""


def test_a_check_that_fails_only_with_both_is_resolved_in_the_plans_own_work_tree(root: Path) -> None:
    """A person commits a module that hides one which the plan's check needs, and makes branches."""

    async def beside(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            if not len(agent.of("executor")) > 1:
                (root / "unittest.py").write_text("raise SystemExit(1)\n")
                h.git(root, "add", "unittest.py")
                h.git(root, "commit", "-qm", "Hide a module")
            else:
                prompts.append(task.prompt)
                (task.tree / "unittest.py").unlink()
        return None

    async def between(step: StepRequest) -> None:
        if step.kind == "execute":
            h.git(root, "branch", f"mine-{step.attempt}")

    prompts: list[str] = []
    agent = h.Watched(h.one_phase(), beside)
    settings = {"workspace": ["person", "worktree", "inplace"], "depth": "comprehensive"}
    person = h.plugin(gsd_workspace, between)
    end = h.do(h.request(root, agent, given=h.idea(), run=settings, person=person))

    [failed] = h.facts(root, "merge.failed")
    assert "unittest" in failed.data["check"]
    assert failed.data["check"] in prompts[0]
    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert not (root / "unittest.py").exists()
    assert "Hide a module" in h.git(root, "log", "--format=%s")
    assert h.git(root, "branch", "--format=%(refname:short)").split() == ["main", "mine-1", "mine-2"]


def test_what_a_person_does_while_plans_are_executed_stays_and_costs_nothing(root: Path) -> None:
    """Without a sandbox, nobody knows who made a branch or a stash; here each plan has a guard of its own."""

    async def beside(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor" and task.step.endswith("01-03"):
            await asyncio.sleep(1)
            (root / "README.md").write_text("# Mine\n")
            h.git(root, "stash", "push", "-q")
            h.git(root, "branch", "mine")
            guests = root / "greeter" / "guests.py"
            guests.write_text(f"{guests.read_text()}# mine\n")
        elif task.role == "executor" and not task.step.endswith(("01-01", "01-06")):
            await asyncio.sleep(3)
        return None

    agent = h.Watched(h.one_phase(wide=True), beside)
    end = h.do(request(root, agent, max_parallel=4))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert h.facts(root, "guard.found", "attempt.failed") == []
    assert h.git(root, "branch", "--list", "mine") != ""
    assert "# Mine" in h.git(root, "stash", "show", "-p")
    # Their edit is theirs: no gap that an agent would have to close from where it cannot.
    assert h.git(root, "status", "--porcelain") == " M greeter/guests.py\n"
    assert not [one for one in h.facts(root, "step.completed") if one.step == "1/plan/r1"]


def test_work_that_cannot_be_merged_twice_is_a_question_that_says_where_it_is(root: Path) -> None:
    async def beside(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            (root / "README.md").write_text(f"# {len(agent.tasks)}\n")
            h.git(root, "add", "README.md")
            h.git(root, "commit", "-qm", "Write a README")
        return None

    agent = h.Watched(h.one_phase(), beside)
    end = h.do(request(root, agent))

    failed = h.facts(root, "merge.failed")
    assert [fact.data["paths"] for fact in failed] == [["README.md"]] * 2
    assert (end.outcome, end.exit) == ("failed", 1)
    assert "README.md" in end.reason
    [asked] = [one.data["inquiry"] for one in h.facts(root, "question.asked")]
    tip = failed[-1].data["ours"]
    assert f"git merge {tip[:10]}" in asked["reason"]
    h.git(root, "merge", "-q", "-X", "theirs", "--no-edit", tip)
    agent.before = None
    end = h.do(request(root, agent, new=False))

    assert (end.outcome, end.exit) == ("done", 0), end.reason
    assert sorted(order(root)) == ["01-01"]


def test_with_fail_fast_nothing_more_is_started_after_a_failure_and_what_runs_is_ended_properly(
    root: Path,
) -> None:
    async def fail(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and task.step.endswith("01-02"):
            raise Permanent("broken")
        return await clock.before(task, host)

    clock = Clock(pause=2)
    end = h.do(request(root, h.Watched(h.one_phase(wide=True), fail), max_parallel=2, fail_fast=True))

    assert (end.outcome, end.exit) == ("failed", 1)
    assert end.reason == "1/execute/01-02: broken"
    assert order(root) == ["01-01", "01-03"]
