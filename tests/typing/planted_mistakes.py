"""Mistakes that mypy strict and pyright strict must both report: every line marked ``planted``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import assert_type

from gsd_core import (
    AgentHost,
    AgentResult,
    AgentTask,
    Answer,
    ConfigValue,
    Delivery,
    Event,
    Inquiry,
    Notice,
    ProjectInfo,
    StepRequest,
    StepResult,
    implements,
)
from gsd_core.hookspecs import (
    gsd_answer,
    gsd_notify,
    gsd_on_event,
    gsd_run_agent,
    gsd_wrap_step,
    gsd_write_config,
)
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks

SECOND = timedelta(seconds=1)
NOTICE = Notice(key="k", type="progress", title="t")


@implements(gsd_answer)
async def good(inquiry: Inquiry) -> Sequence[Answer] | None:
    return None


@implements(gsd_answer)
async def narrower_return(inquiry: Inquiry) -> list[Answer]:
    return []


class Good:
    @implements(gsd_run_agent)
    async def run(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        return None


@implements(gsd_answer)  # planted: type of an argument
async def bad_type(inquiry: str) -> Sequence[Answer] | None:
    return None


@implements(gsd_answer)  # planted: name of an argument
async def bad_name(question: Inquiry) -> Sequence[Answer] | None:
    return None


@implements(gsd_run_agent)  # planted: no host
async def no_host(task: AgentTask) -> AgentResult | None:
    return None


@implements(gsd_answer)  # planted: def for async def
def bad_colour(inquiry: Inquiry) -> Sequence[Answer] | None:
    return None


@implements(gsd_answer)  # planted: one answer for a sequence
async def bad_return(inquiry: Inquiry) -> Answer | None:
    return None


class Bad:
    async def run(self, job: AgentTask, host: AgentHost) -> AgentResult | None:
        return None


implements(gsd_run_agent)(Bad.run)  # planted: a method that names its argument otherwise


def answers(given: Sequence[Answer]) -> bool | str:
    return bool(given) or "no answer"


def one_answer(given: Answer) -> bool | str:
    return bool(given.text)


def shrug(given: Sequence[Answer]) -> None:
    print(given)


async def record(outcome: Outcome[Sequence[Answer]]) -> None: ...


async def record_other(outcome: Outcome[StepResult]) -> None: ...


async def core(step: StepRequest, /) -> StepResult:
    return StepResult(subject=step.id)


async def bad_core(step: StepRequest, /) -> str:
    return step.id


def name(value: ConfigValue) -> str:
    return value.key


async def calls(
    hooks: Hooks, host: AgentHost, task: AgentTask, inquiry: Inquiry, step: StepRequest, event: Event
) -> None:
    won = await hooks.race(gsd_answer, answers, record, inquiry=inquiry)
    assert_type(won, Outcome[Sequence[Answer]] | None)
    await hooks.race(gsd_answer, answers, inquiry="?")  # planted: type of an argument
    await hooks.race(gsd_answer, answers, inqury=inquiry)  # planted: misspelt argument
    await hooks.race(gsd_answer, inquiry=inquiry)  # planted: no accept
    await hooks.race(gsd_answer, one_answer, inquiry=inquiry)  # planted: accepts one answer
    await hooks.race(gsd_answer, shrug, inquiry=inquiry)  # planted: accept without a verdict
    await hooks.race(gsd_answer, answers, record_other, inquiry=inquiry)  # planted: other winner

    picked = await hooks.pick(gsd_run_agent, ("claude",), AgentResult, task=task, host=host)
    assert_type(picked, Outcome[AgentResult] | None)
    again: Outcome[AgentResult] | None
    await hooks.pick(gsd_run_agent, "claude", AgentResult, task=task, host=host)  # planted: a name for names
    await hooks.pick(gsd_run_agent, ("claude",), AgentResult, task=task)  # planted: no host
    again = await hooks.pick(gsd_run_agent, ("claude",), StepResult, task=task, host=host)  # planted: other
    print(again)
    await hooks.pick(gsd_run_agent, ("claude",), task=task, host=host)  # planted: no result type
    await hooks.pick(gsd_write_config, ("claude",), ConfigValue)  # planted: a hook that is not async

    assert_type(await hooks.fan_out(gsd_notify, SECOND, NOTICE), list[Outcome[Sequence[Delivery] | None]])
    await hooks.fan_out(gsd_notify, SECOND)  # planted: no argument
    await hooks.fan_out(gsd_notify, 1.0, notice=NOTICE)  # planted: seconds of what

    run = hooks.wrap(gsd_wrap_step, core, StepResult)
    assert_type(await run(step), StepResult)
    hooks.wrap(gsd_wrap_step, bad_core, StepResult)  # planted: core with another result
    hooks.wrap(gsd_wrap_step, core, str)  # planted: another result type

    project = ProjectInfo(root=task.tree)
    assert_type(hooks.collect(gsd_write_config, name, project).items, tuple[tuple[str, ConfigValue], ...])
    hooks.collect(gsd_write_config, one_answer, project)  # planted: name of something else
    hooks.collect(gsd_write_config, name)  # planted: no project
    hooks.collect(gsd_answer, name, inquiry=inquiry)  # planted: a hook that is async

    watching = hooks.subscribe(gsd_on_event)
    assert_type(await watching.__aenter__(), Callable[[Event], None])
    hooks.subscribe(gsd_run_agent)  # planted: a hook with two arguments
    async with hooks.subscribe(gsd_on_event) as tell:
        tell(event)
        tell(NOTICE)  # planted: a notice for an event
