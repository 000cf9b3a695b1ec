"""Failures: which ones are retried, how often, and with which exit code a run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import define, evolve, frozen

from gsd_core.codec import structure
from gsd_core.errors import Credentials, Exhausted, Permanent, Transient
from gsd_core.git import Git
from gsd_core.hookspecs import gsd_check_budget, gsd_execute_step
from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.model.agent import Activity, AgentHost, AgentResult, AgentTask, Limits
from gsd_core.model.counts import dollars_text
from gsd_core.model.step import StepHost, StepRequest, StepResult
from gsd_core.model.usage import Pause, Spend, Stop, Usage
from gsd_core.run.runtime import Effects, RunEnd
from gsd_core.run.start import run_project
from gsd_core.testing import FakeClock, ScriptedHuman

from . import harness as h

pytestmark = pytest.mark.slow

SOON = {"retry": {"wait": 0.01}}


@define(eq=False)
class Fails:
    """Raises in the executor's first *times* calls, after *turns* turns that cost a cent each."""

    error: Callable[[], Exception]
    times: int = 10**6
    turns: int = 0
    calls: int = 0

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "executor":
            return None
        self.calls += 1
        if self.calls > self.times:
            return None
        for _ in range(self.turns):
            cent = Usage(input_tokens=10, turns=1, dollars=Decimal("0.01"), basis="priced")
            await host.progress(Activity(kind="text"), cent)
        raise self.error()


def failing(error: Callable[[], Exception], times: int = 10**6, turns: int = 0) -> h.Watched:
    return h.Watched(h.one_phase(), Fails(error, times, turns))


def overloaded() -> Exception:
    return Transient("overloaded (529)")


def do(root: Path, agent: object, **more: Any) -> RunEnd:
    return h.do(h.request(root, agent, given=h.idea(), sections=more.pop("sections", SOON), **more))


def conversations(agent: h.Watched, role: str = "executor") -> list[tuple[str, bool]]:
    found = [task.conversation for task in agent.of(role)]
    return [(c.id, c.resume) for c in found if c is not None]


def test_a_transient_failure_is_retried_in_the_same_conversation(tmp_path: Path) -> None:
    root, agent = h.repository(tmp_path / "project"), failing(overloaded, times=1)

    end = do(root, agent)

    (first, fresh), (second, resumed) = conversations(agent)
    assert (end.outcome, first == second, fresh, resumed) == ("done", True, False, True)
    assert [fact.data["error"]["kind"] for fact in h.facts(root, "attempt.failed")] == ["Transient"]


def test_a_transient_failure_that_persists_ends_with_75_and_a_later_run_retries_it(tmp_path: Path) -> None:
    root, agent = h.repository(tmp_path / "project"), failing(overloaded)

    end = do(root, agent)
    later = h.do(h.request(root, h.one_phase()))

    assert (end.outcome, end.exit, len(agent.of("executor"))) == ("failed", 75, 2)
    assert later.outcome == "done"


@pytest.mark.parametrize(
    ("error", "code"), [(Permanent("no"), 1), (Credentials("log in"), 4), (Exhausted("spent"), 5)]
)
def test_a_permanent_failure_is_not_retried_and_has_its_exit_code(
    tmp_path: Path, error: Exception, code: int
) -> None:
    root, agent = h.repository(tmp_path / "project"), failing(lambda: error)

    end = do(root, agent)

    assert (end.exit, len(agent.of("executor"))) == (code, 1)
    assert str(error) in end.reason


class Busy(Transient):
    """A plugin's own kind of transient failure."""


class LoggedOut(TimeoutError, Credentials):
    """A plugin's own kind of permanent failure."""


@pytest.mark.parametrize(("error", "code", "kind"), [(Busy, 75, "Transient"), (LoggedOut, 4, "Credentials")])
def test_an_error_that_a_plugin_derives_has_the_exit_of_the_class_it_is_derived_from(
    tmp_path: Path, error: type[Exception], code: int, kind: str
) -> None:
    root, agent = h.repository(tmp_path / "project"), failing(lambda: error("no"))

    end = do(root, agent)

    assert end.exit == code
    assert h.facts(root, "step.failed")[-1].data["error"]["kind"] == kind


def test_a_usage_limit_is_waited_for_by_a_timer(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    began = h.now()
    clock = FakeClock(start=began)
    agent = failing(lambda: Transient("limit", until=clock.now() + timedelta(hours=1)), times=1)
    asked = h.request(root, agent, given=h.idea(), sections=SOON)

    end = h.do(evolve(asked, clock=Hurried(clock, root).now))

    [timer] = h.facts(root, "timer.set")
    assert end.outcome == "done"
    assert timer.data["until"] == (began + timedelta(hours=1)).isoformat()
    assert len(h.facts(root, "timer.fired")) == 1
    assert [resumed for _, resumed in conversations(agent)] == [False, True]


@define
class Hurried:
    """A clock on which the day is over as soon as a timer is set."""

    clock: FakeClock
    root: Path

    def now(self) -> Any:
        """Return the time, after a leap if somebody waits for it."""
        if self.clock.passed == timedelta() and h.journal(self.root).exists() and self._waits():
            self.clock.advance(timedelta(hours=2))
        return self.clock.now()

    def _waits(self) -> bool:
        with Journal.open(h.journal(self.root), clock=self.clock.now, writable=False) as journal:
            return bool(list(journal.events(kinds=["timer.set"])))


def test_a_usage_limit_that_lasts_too_long_ends_the_run_with_5(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = failing(lambda: Transient("limit", until=h.now() + timedelta(hours=7)))

    end = do(root, agent)

    assert (end.outcome, end.exit) == ("budget", 5)
    assert h.facts(root, "timer.set") == []


@pytest.mark.parametrize("wait", [timedelta(seconds=0.05), timedelta(seconds=-60)])
def test_a_limit_that_is_postponed_again_and_again_ends_the_run_too(tmp_path: Path, wait: timedelta) -> None:
    root = h.repository(tmp_path / "project")
    agent = failing(lambda: Transient("limit", until=h.now() + wait))
    sections = {"retry": {"wait": 0.01, "max_wait": 0}, "limits": {"max_wait": 0.4}}

    end = do(root, agent, sections=sections)

    assert end.exit == 5


def test_a_budget_that_is_spent_ends_the_run_with_5(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, h.one_phase(), sections={"budget": {"max_usd": "0.001"}})

    assert (end.outcome, end.exit) == ("budget", 5)
    assert "$0.001 of the $0.001 budget" in end.reason


def test_what_is_left_of_a_budget_is_the_limit_of_each_call(tmp_path: Path) -> None:
    async def ends_at_its_limit(task: AgentTask, host: AgentHost) -> AgentResult | None:
        # As an agent that reports no turns, so that only itself can end in time.
        used = Usage(turns=3, dollars=task.limits.dollars, basis="reported")
        return AgentResult(ended="dollars", usage=used) if task.role == "executor" else None

    root = h.repository(tmp_path / "project")
    agent = h.Watched(h.one_phase(), ends_at_its_limit)

    end = do(root, agent, sections={"budget": {"max_usd": "1"}})

    spent = [Decimal(fact.data["usage"]["dollars"]) for fact in h.facts(root, "agent.closed")]
    limits = [task.limits.dollars for task in agent.tasks]
    assert limits == [1 - sum(spent[:calls]) for calls in range(len(spent))]
    assert (end.outcome, end.exit, sum(spent)) == ("budget", 5, 1)
    assert f"the {dollars_text(str(limits[-1]))} that were left of the budget" in end.reason


async def pauses(spend: Spend) -> Stop | Pause | None:
    return Pause(reason="three calls") if spend.calls == 2 else None


@pytest.mark.parametrize(("answer", "code"), [("Continue", 0), ("Stop", 5)])
def test_a_pause_asks_whether_to_continue(tmp_path: Path, answer: str, code: int) -> None:
    root, human = h.repository(tmp_path / "project"), ScriptedHuman({"Continue spending?": answer})

    end = do(root, h.one_phase(), yes=False, human=human, policy=h.plugin(gsd_check_budget, pauses))

    assert (end.exit, [q.header for q in human.asked].count("Budget")) == (code, 1)


def test_a_human_may_retry_a_failure_which_starts_the_step_from_scratch(tmp_path: Path) -> None:
    root, human = h.repository(tmp_path / "project"), ScriptedHuman({"failed": "Retry"})
    agent = failing(lambda: Permanent("no"), times=1)

    end = do(root, agent, human=human)

    (first, _), (second, resumed) = conversations(agent)
    assert (end.outcome, first == second, resumed) == ("done", False, False)


@pytest.mark.parametrize(
    ("choice", "code", "reason"),
    [("Skip", 6, "skipped, not done: phase 1, 2"), ("Abort", 1, "aborted at 1/execute/01-01")],
)
def test_a_human_may_skip_what_fails_or_abort(tmp_path: Path, choice: str, code: int, reason: str) -> None:
    root, human = h.repository(tmp_path / "project"), ScriptedHuman({"failed": choice})
    agent = h.Watched(h.one_phase(phases=2), Fails(lambda: Permanent("no")))

    end = do(root, agent, human=human)

    assert (end.exit, end.reason) == (code, reason)
    assert len(agent.of("executor")) == 1
    [question] = [question for question in human.asked if "failed" in question.text]
    skip = next(option for option in question.options if option.label == "Skip")
    assert skip.description == "leave phase 1 undone, and with it what depends on it: phase 2"


def test_an_answer_to_an_escalation_after_the_end_counts_for_the_next_start(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    do(root, failing(lambda: Permanent("no")))
    h.answer(root, h.asked(root)[-1], "Skip")

    end = h.do(h.request(root, h.one_phase()))

    assert (end.exit, end.reason) == (6, "skipped, not done: phase 1")


async def mumbles(task: AgentTask, host: AgentHost) -> AgentResult | None:
    return AgentResult(value={"plans": "none"}) if task.role == "planner" else None


def test_an_answer_that_stays_invalid_leads_to_one_new_conversation_and_then_to_failure(
    tmp_path: Path,
) -> None:
    root, agent = h.repository(tmp_path / "project"), h.Watched(h.one_phase(), mumbles)

    end = do(root, agent)

    found = conversations(agent, "planner")
    first, fresh = found[0][0], found[3][0]
    assert found == [
        (first, False),
        (first, True),
        (first, True),
        (fresh, False),
        (fresh, True),
        (fresh, True),
    ]
    assert first != fresh
    assert [task.prompt.startswith("Your answer cannot be used") for task in agent.of("planner")] == [
        False,
        True,
        True,
        False,
        True,
        True,
    ]
    assert (end.exit, "still invalid" in end.reason) == (1, True)


async def sleeps(task: AgentTask, host: AgentHost) -> AgentResult | None:
    if task.role == "planner":
        await asyncio.Event().wait()
    return None


def test_an_agent_without_activity_is_a_transient_failure(tmp_path: Path) -> None:
    root, agent = h.repository(tmp_path / "project"), h.Watched(h.one_phase(), sleeps)

    end = do(root, agent, sections={**SOON, "limits": {"idle": 0.2}})

    assert (end.exit, len(agent.of("planner"))) == (75, 2)
    assert "no activity" in end.reason


class Crash(BaseException):
    """Stands for the end of the process."""


@define
class Life:
    """Whether the process is still running."""

    over: bool = False


@frozen(kw_only=True)
class EndingEffects(Effects):
    """Effects of a process that writes nothing more once it has ended."""

    life: Life

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        run: str,
        step: str,
        attempt: int,
        consumes: Collection[int] = (),
    ) -> Record:
        if self.life.over:
            raise Crash
        return super().append(kind, data, run=run, step=step, attempt=attempt, consumes=consumes)


@define(eq=False)
class Dies:
    """Ends the process in the executor's call, after two turns that cost a cent each."""

    life: Life

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "executor":
            return None
        for _ in range(2):
            cent = Usage(input_tokens=10, turns=1, dollars=Decimal("0.01"), basis="priced")
            await host.progress(Activity(kind="text"), cent)
        self.life.over = True
        raise Permanent("not shown")


def die(root: Path) -> h.Watched:
    """Let a run's process end while its executor works; return the agent."""
    life = Life()
    agent = h.Watched(h.one_phase(), Dies(life))

    def effects(journal: Journal, git: Git) -> Effects:
        return EndingEffects(journal=journal, git=git, life=life)

    with pytest.raises(Crash):
        h.do(evolve(h.request(root, agent, given=h.idea()), effects=effects))
    return agent


def usages(root: Path) -> list[tuple[str, Usage]]:
    """Return how each agent call ended, and what it used."""
    closed = h.facts(root, "agent.closed")
    return [(fact.data["ended"], structure(fact.data["usage"], Usage)) for fact in closed]


def test_a_lost_call_is_counted_once_by_its_turns_and_its_conversation_is_resumed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    lost = die(root)
    agent = h.Watched(h.one_phase())

    end = h.do(h.request(root, agent))
    again = h.do(h.request(root, agent))

    [used] = [usage for ended, usage in usages(root) if ended == "lost"]
    total = sum((usage for _, usage in usages(root)), Usage())
    assert (used.turns, used.dollars, used.basis) == (2, Decimal("0.02"), "priced")
    assert len(h.facts(root, "agent.opened")) == len(h.facts(root, "agent.closed"))
    assert end.dollars == again.dollars == str(total.dollars)[:6].ljust(6, "0")
    assert conversations(agent)[0] == (conversations(lost)[0][0], True)


def test_after_three_lost_attempts_in_a_row_a_human_is_asked(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    for _ in range(3):
        die(root)

    end = h.do(h.request(root, h.one_phase()))

    [asked] = h.facts(root, "question.asked")
    assert end.exit == 1
    assert "attempts in a row" in asked.data["inquiry"]["questions"][0]["text"]
    assert len(h.facts(root, "attempt.lost")) == 3
    assert len([ended for ended, _ in usages(root) if ended == "lost"]) == 3


def test_the_output_of_a_git_hook_that_refuses_a_commit_is_returned_to_the_agent(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\ntest -e .git/refused || { touch .git/refused; echo 'no tabs, please' >&2; exit 1; }\n"
    )
    hook.chmod(0o755)
    replies: list[str] = []

    async def listens(task: AgentTask, host: AgentHost) -> AgentResult | None:
        return (
            await h.one_phase().run_agent(task, cast("AgentHost", Listening(host, replies)))
            if task.role == "executor"
            else None
        )

    end = do(root, h.Watched(h.one_phase(), listens))

    assert end.outcome == "done"
    assert "no tabs, please" in replies[0]
    assert "is committed" in replies[1]


@define
class Listening:
    """A host that keeps what its functions reply."""

    host: AgentHost
    replies: list[str]

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        """Call, and keep the reply."""
        reply = await self.host.call(function, arguments)
        self.replies.append(reply)
        return reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)


def test_a_spent_budget_stays_spent_after_a_restart(tmp_path: Path) -> None:
    root, sections = h.repository(tmp_path / "project"), {"budget": {"max_usd": "0.001"}}
    spent = do(root, h.one_phase(), sections=sections)
    agent = h.Watched(h.one_phase())

    end = h.do(h.request(root, agent, sections=sections))

    assert (spent.exit, end.exit, agent.tasks) == (5, 5, [])


CALLS = 20


async def many_calls(root: Path, limits: Limits, turns: int, *, together: int) -> tuple[RunEnd, int, Decimal]:
    """Call agents at once, with a budget of a dollar; return how many began and what they spent.

    So many *together* spend nothing until all of them have begun, however busy the machine is.
    """
    begun = asyncio.Barrier(together)

    async def spends(task: AgentTask, host: AgentHost) -> AgentResult | None:
        await begun.wait()
        used = Usage()
        for _ in range(turns):
            turn = Usage(turns=1, dollars=Decimal("0.1"), basis="reported")
            used = used + turn
            await asyncio.sleep(0.01)
            await host.progress(Activity(kind="text", text="turn"), turn)
        return AgentResult(value={}, usage=used)

    async def execute(step: StepRequest, host: StepHost) -> StepResult | None:
        task = AgentTask(step=step.id, role="executor", prompt="x", tree=step.tree, limits=limits)
        calls = [host.run_agent(f"call-{number}", task) for number in range(CALLS)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        raise next(one for one in found if isinstance(one, Exception))

    asked = h.request(
        root,
        h.Watched(h.one_phase(), spends),
        given=h.idea(),
        run={"execute": ["many"]},
        sections={"budget": {"max_usd": "1"}},
        many=h.plugin(gsd_execute_step, execute),
    )
    end = await run_project(asked)
    spent = [structure(fact.data["usage"], Usage).dollars for fact in h.facts(root, "agent.closed")]
    return end, len(h.facts(root, "agent.opened")), sum((one or Decimal(0) for one in spent), Decimal(0))


def test_calls_at_once_cannot_each_pass_the_same_check_of_the_budget(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end, began, spent = asyncio.run(many_calls(root, Limits(dollars=Decimal("0.3")), turns=1, together=3))

    assert (end.outcome, end.exit, began) == ("budget", 5, 3)
    assert spent == Decimal("0.3")


def test_what_calls_at_once_have_spent_so_far_counts_for_each_of_them(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end, began, spent = asyncio.run(many_calls(root, Limits(), turns=9, together=CALLS))

    assert (end.outcome, end.exit, began) == ("budget", 5, CALLS)
    # Each learns of it in its next turn.
    assert Decimal("0.9") <= spent <= 1 + CALLS * Decimal("0.1")
