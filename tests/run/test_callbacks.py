"""The callbacks that an executor passes to ``host.run_agent``: their failures are the executor's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from gsd_core.errors import Permanent
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_execute_step, gsd_run_agent
from gsd_core.model.agent import AgentFunction, AgentHost, AgentResult, AgentTask
from gsd_core.model.step import StepHost, StepRequest, StepResult
from gsd_core.run.runtime import RunEnd
from tests.hooks import behaviors

from . import harness as h

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LIMITS = {"limits": {"idle": 20, "hard": 1}, "retry": {"attempts": 1}}


@define(eq=False)
class Agent:
    """Calls the function ``f`` with each of *calls*, then returns *values*, one after another."""

    values: list[Any] = field(factory=lambda: [{"n": 1}])
    calls: list[Mapping[str, Any]] = field(factory=list[Mapping[str, Any]])
    replies: list[str] = field(factory=list[str], init=False)
    prompts: list[str] = field(factory=list[str], init=False)

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task*."""
        self.prompts.append(task.prompt)
        for arguments in self.calls:
            self.replies.append(await host.call("f", arguments))
        value = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        return AgentResult(value=value)


@define(eq=False)
class Executor:
    """Passes *accept* and *function* to an agent; keeps the values that ``accept`` was called with."""

    accept: Callable[[AgentResult], Any] | None = None
    function: Callable[[Mapping[str, Any]], Any] | None = None
    schema: Any = field(factory=lambda: SCHEMA)
    accepted: list[Any] = field(factory=list[Any], init=False)

    @implements(gsd_execute_step)
    async def execute_step(self, step: StepRequest, host: StepHost) -> StepResult | None:
        """Do *step*."""
        function = AgentFunction(name="f", description="A function.", schema=SCHEMA)
        task = AgentTask(
            step=step.id,
            role="planner",
            prompt="Do it.",
            tree=step.tree,
            schema=self.schema,
            functions=(function,) if self.function else (),
        )
        functions: Any = {"f": self.function} if self.function else None
        await host.run_agent("do", task, self.look, functions)
        raise Permanent("the executor gives up")

    def look(self, result: AgentResult) -> Any:
        """Accept, and keep the value."""
        self.accepted.append(result.value)
        return self.accept(result) if self.accept else ()


def do(root: Path, executor: Executor, agent: Agent) -> RunEnd:
    h.repository(root)
    asked = h.request(root, agent, given=h.idea(), run={"execute": ["bad"]}, sections=LIMITS, bad=executor)
    return h.do(h.quick(asked))


def failed_plugins(root: Path) -> set[str]:
    return {fact.data["plugin"] for fact in h.facts(root, "plugin.failed")}


def raises(*_: Any) -> Any:
    raise RuntimeError("broken")


def exits(*_: Any) -> Any:
    raise SystemExit(7)


def returns(value: Any) -> Callable[..., Any]:
    return lambda *_: value


async def is_async(*_: Any) -> Any:
    return ()


@pytest.mark.parametrize(
    ("accept", "why"),
    [
        (raises, "RuntimeError"),
        (exits, "SystemExit"),
        (returns(42), "returned int"),
        (returns("no"), "returned str"),
        (returns([1]), "returned list"),
        (is_async, "returned coroutine"),
    ],
)
def test_an_accept_that_misbehaves_is_the_executor_s_failure(tmp_path: Path, accept: Any, why: str) -> None:
    end = do(tmp_path, Executor(accept=accept), Agent())

    assert (end.outcome, end.exit) == ("failed", 1)
    assert "'bad'" in end.reason
    assert why in end.reason
    assert failed_plugins(tmp_path) == {"bad"}
    assert [fact.data["ended"] for fact in h.facts(tmp_path, "agent.closed")] == ["done"]


def of(behave: Callable[[], Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function for agents that behaves like that."""

    async def function(arguments: Mapping[str, Any]) -> Any:
        return await behave()

    return function


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (raises, "RuntimeError"),
        (of(behaviors.exits), "SystemExit"),
        (of(behaviors.returns_nonsense), "returned int"),
        (of(behaviors.cancels_itself), "cancelled itself"),
        (of(behaviors.hangs), "did nothing"),
        pytest.param(of(behaviors.ignores_cancellation), "did nothing", marks=pytest.mark.slow),
        (returns("not async"), "TypeError"),
    ],
)
def test_a_function_that_misbehaves_is_the_executor_s_failure(
    tmp_path: Path, function: Any, why: str
) -> None:
    agent = Agent(calls=[{"n": 1}])

    end = do(tmp_path, Executor(function=function), agent)

    assert (end.outcome, end.exit) == ("failed", 1)
    assert "'bad'" in end.reason
    assert why in end.reason
    assert failed_plugins(tmp_path) == {"bad"}
    assert agent.replies == []


@pytest.mark.parametrize("where", ["accept", "function"])
def test_a_step_error_of_a_callback_is_the_executor_s_verdict_and_not_a_failure_of_the_plugin(
    tmp_path: Path, where: str
) -> None:
    def gives_up(*_: Any) -> Any:
        raise Permanent("there is no way to do this")

    executor = Executor(**{where: gives_up})

    end = do(tmp_path, executor, Agent(calls=[{"n": 1}]))

    assert (end.exit, "no way to do this" in end.reason) == (1, True)
    assert failed_plugins(tmp_path) == set()


def test_a_value_that_does_not_match_the_schema_is_rejected_before_accept_is_called(
    tmp_path: Path,
) -> None:
    executor, agent = Executor(), Agent(values=[None, {"n": "one"}, {"n": 1}])

    end = do(tmp_path, executor, agent)

    assert "gives up" in end.reason
    assert executor.accepted == [{"n": 1}]
    assert "'one' is not of type 'integer'" in agent.prompts[2]


def test_arguments_that_do_not_match_the_schema_go_back_to_the_agent(tmp_path: Path) -> None:
    called: list[Mapping[str, Any]] = []

    async def function(arguments: Mapping[str, Any]) -> str:
        called.append(arguments)
        return "fine"

    agent = Agent(calls=[{}, {"n": "one"}, {"n": {1, 2}}, {"n": 1}])

    end = do(tmp_path, Executor(function=function), agent)

    assert "gives up" in end.reason
    assert called == [{"n": 1}]
    assert [reply.partition(":")[0] for reply in agent.replies] == ["Not valid"] * 3 + ["fine"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": "object", "properties": {"n": {"pattern": "("}}},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        42,
    ],
)
def test_an_invalid_schema_is_the_executor_s_failure(tmp_path: Path, schema: Any) -> None:
    end = do(tmp_path, Executor(schema=schema), Agent())

    assert (end.exit, "'bad'" in end.reason, "schema" in end.reason) == (1, True, True)
    assert failed_plugins(tmp_path) == {"bad"}


def test_functions_that_an_agent_calls_at_once_may_all_call_the_core(tmp_path: Path) -> None:
    """They pause each other's time limits, which must not shorten them."""

    class Parallel(Agent):
        @implements(gsd_run_agent)
        async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
            """Do *task*."""
            self.replies += await asyncio.gather(*(host.call("f", {"n": n}) for n in (1, 2, 3)))
            return AgentResult(value={"n": 1})

    hosts: list[StepHost] = []

    async def function(arguments: Mapping[str, Any]) -> str:
        return (await hosts[0].check(f"echo {arguments['n']}")).output

    class Checks(Executor):
        @implements(gsd_execute_step)
        async def execute_step(self, step: StepRequest, host: StepHost) -> StepResult | None:
            """Do *step*."""
            hosts[:] = [host]
            return await Executor.execute_step(self, step, host)

    agent = Parallel()

    end = do(tmp_path, Checks(function=function), agent)

    assert "gives up" in end.reason
    assert agent.replies == ["1", "2", "3"]
