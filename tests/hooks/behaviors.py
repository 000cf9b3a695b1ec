"""Plugins that behave and misbehave, and one call of them in each mode."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from gsd_core import (
    AgentTask,
    Answer,
    Event,
    Inquiry,
    Notice,
    Permanent,
    PhaseView,
    Question,
    RunStep,
    StepRequest,
    StepResult,
    implements,
)
from gsd_core.hookspecs import (
    ConfigValue,
    ProjectInfo,
    gsd_answer,
    gsd_find_gaps,
    gsd_on_event,
    gsd_run_agent,
    gsd_wrap_step,
    gsd_write_config,
)
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.testing import make_hooks

INSTANT, HOUR = timedelta(milliseconds=10), timedelta(hours=1)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
HERE = Path()
INQUIRY = Inquiry(questions=(Question(id="q", text="?"),))
STEP = StepRequest(id="1/plan", run="r", kind="plan", project=HERE, tree=HERE, now=NOW)
DONE = StepResult(subject="done")
PHASE = PhaseView(number="1", name="one", project=HERE)
TASK = AgentTask(step="s", role="planner", prompt="hi", tree=HERE)
HOST: Any = None
PROJECT = ProjectInfo(root=HERE)
NOTICE = Notice(key="k", type="progress", title="t")

Behavior = Callable[[], Awaitable[Any]]


@attrs.frozen
class CallResult:
    """The result of a call with one misbehaving plugin, ``p``."""

    failures: tuple[PluginFailure, ...]
    raised: BaseException | None = None
    value: Any = None


def plugin(hook: Callable[..., Any], function: Callable[..., Any], **options: bool) -> object:
    """A plugin with that one function, which may have any signature."""
    return type("Plugin", (), {"f": staticmethod(implements(hook, **options)(function))})()


def make(hook: Callable[..., Any], grace: timedelta = HOUR, /, **named: Callable[..., Any]) -> Hooks:
    """Hooks with a plugin for each named function."""
    made = make_hooks(**{name: plugin(hook, function) for name, function in named.items()})
    return attrs.evolve(made, grace=grace)


def answers_with(text: str | None, asked: list[str] | None = None) -> Behavior:
    async def behave() -> Sequence[Answer] | None:
        if asked is not None:
            asked.append(str(text))
        return None if text is None else [Answer(question="q", text=text)]

    return behave


def raises(error: BaseException) -> Behavior:
    async def behave() -> None:
        raise error

    return behave


def raises_group(*errors: Exception) -> Behavior:
    return raises(ExceptionGroup("several", [ExceptionGroup("inner", errors)]))


async def exits() -> None:
    sys.exit(7)


async def interrupts() -> None:
    raise KeyboardInterrupt


async def exits_in_a_task() -> None:
    await asyncio.create_task(exits())


async def interrupts_in_a_task() -> None:
    await asyncio.create_task(interrupts())


async def interrupts_in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(interrupts())
        group.create_task(hangs())


async def exits_in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(exits())
        group.create_task(hangs())


async def cancels_a_task() -> None:
    task = asyncio.create_task(hangs())
    task.cancel()
    await asyncio.wait([task])
    raise Permanent("cancelled in time" if task.cancelled() else "not cancelled")


async def hangs() -> None:
    await asyncio.Event().wait()


async def ignores_cancellation() -> None:
    """Ignores every cancellation."""
    while True:
        try:
            await hangs()
        except asyncio.CancelledError:
            continue


async def ignores_cancellation_in_a_task() -> None:
    await asyncio.create_task(ignores_cancellation())


async def presses_ctrl_c() -> None:
    """Send the signal that the terminal sends, and wait."""
    os.kill(os.getpid(), signal.SIGINT)
    await hangs()


async def returns_when_cancelled() -> Sequence[Any]:
    try:
        await hangs()
    except asyncio.CancelledError:
        return []
    return []


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    assert task.cancel()
    await hangs()


async def cancels_itself_from_another_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    await hangs()


async def returns_nonsense() -> Any:
    return 42


async def returns_nonsense_in_a_list() -> Any:
    return [42]


async def core(step: StepRequest, /) -> StepResult:
    return DONE


def valid(answers: Sequence[Answer]) -> bool | str:
    return answers[0].text.isalpha() or "letters only"


async def recorded(hooks: Hooks, run: Callable[[Hooks], Awaitable[Any]]) -> CallResult:
    """Return what was reported and raised; only our own cancellation passes."""
    failures: list[PluginFailure] = []
    try:
        value = await run(attrs.evolve(hooks, report=failures.append))
    except Exception as exc:
        return CallResult(tuple(failures), raised=exc)
    return CallResult(tuple(failures), value=value)


async def pick_answers(hooks: Hooks, *names: str) -> Outcome[Sequence[Answer]] | None:
    """Pick, with answers for results: the behaviors are the same for every mode."""
    untyped: Any = hooks
    won: Outcome[Sequence[Answer]] | None
    won = await untyped.pick(gsd_run_agent, names, Sequence, task=TASK, host=HOST)
    return won


async def pick(p: Behavior, grace: timedelta = HOUR) -> CallResult:
    async def run(hooks: Hooks) -> Any:
        return await pick_answers(hooks, "p")

    return await recorded(make(gsd_run_agent, grace, p=p), run)


async def wrap(p: Behavior, grace: timedelta = HOUR) -> CallResult:
    async def run(hooks: Hooks) -> Any:
        return await hooks.wrap(gsd_wrap_step, core, StepResult)(STEP)

    return await recorded(make(gsd_wrap_step, grace, p=p), run)


async def fan_out(p: Behavior, grace: timedelta = HOUR, limit: timedelta = HOUR) -> CallResult:
    async def run(hooks: Hooks) -> Any:
        bad, good = sorted(await hooks.fan_out(gsd_find_gaps, limit, PHASE), key=lambda o: o.plugin != "p")
        assert good.value == []
        return bad.error

    return await recorded(make(gsd_find_gaps, grace, p=p, good=finds_nothing), run)


async def race(p: Behavior, grace: timedelta = HOUR) -> CallResult:
    async def run(hooks: Hooks) -> Any:
        won = await hooks.race(gsd_answer, valid, inquiry=INQUIRY)
        assert won is not None
        assert won.plugin == "slower"
        return won

    return await recorded(make(gsd_answer, grace, p=p, slower=answers_slowly), run)


async def subscribe(p: Behavior, grace: timedelta = HOUR) -> CallResult:
    seen: list[int] = []

    async def watches(event: Event) -> None:
        seen.append(event.seq)

    async def run(hooks: Hooks) -> Any:
        async with hooks.subscribe(gsd_on_event) as publish:
            publish(event(1))
            publish(event(2))
        assert seen == [1, 2]

    return await recorded(make(gsd_on_event, grace, p=p, watches=watches), run)


async def collect(p: Behavior) -> CallResult:
    """The behaviors are asynchronous, this hook is not: run each by hand, one step."""

    def contributes(project: ProjectInfo) -> Iterable[ConfigValue]:
        try:
            p().__await__().send(None)
        except StopIteration as end:
            value: Iterable[ConfigValue] = end.value
            return value
        raise BlockingIOError("would block")

    def good(project: ProjectInfo) -> Iterable[ConfigValue]:
        yield ConfigValue(key="a", value=1)

    async def run(hooks: Hooks) -> Any:
        found = hooks.collect(gsd_write_config, lambda value: value.key, PROJECT)
        assert [name for name, _ in found.items] == ["good"]
        return found.failures

    return await recorded(make(gsd_write_config, p=contributes, good=good), run)


async def finds_nothing(phase: PhaseView) -> Sequence[Any]:
    return []


async def finds_nothing_at_all() -> Sequence[Any]:
    return []


async def answers_slowly() -> Sequence[Answer]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [Answer(question="q", text="ok")]


async def passes(step: StepRequest, call_next: RunStep) -> StepResult:
    return await call_next(step)


def event(seq: int) -> Event:
    return Event(seq=seq, name="step.started", at=NOW, run="r")


async def watch(hooks: Hooks) -> None:
    async with hooks.subscribe(gsd_on_event) as publish:
        publish(event(1))
        await hangs()


Ask = Callable[[Hooks], Awaitable[Any]]

# Each mode with no plugin but ``p``, so that only our own cancellation ends it.
ALONE: dict[str, tuple[Callable[..., Any], Ask]] = {
    "pick": (gsd_run_agent, lambda hooks: pick_answers(hooks, "p")),
    "wrap": (gsd_wrap_step, lambda hooks: hooks.wrap(gsd_wrap_step, core, StepResult)(STEP)),
    "fan_out": (gsd_find_gaps, lambda hooks: hooks.fan_out(gsd_find_gaps, HOUR, PHASE)),
    "race": (gsd_answer, lambda hooks: hooks.race(gsd_answer, valid, inquiry=INQUIRY)),
    "subscribe": (gsd_on_event, watch),
}
