"""Plugins that behave and misbehave, for each way of calling."""

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

Behaviour = Callable[[], Awaitable[Any]]
Way = Callable[[Behaviour], Awaitable["Told"]]


@attrs.frozen
class Told:
    """What a call with one misbehaving plugin, ``p``, came to."""

    failures: tuple[PluginFailure, ...]
    raised: BaseException | None = None
    value: Any = None


def plugin(hook: Callable[..., Any], function: Callable[..., Any], **options: bool) -> object:
    """A plugin with that one function, whatever it is."""
    return type("Plugin", (), {"f": staticmethod(implements(hook, **options)(function))})()


def make(hook: Callable[..., Any], grace: timedelta = HOUR, /, **named: Callable[..., Any]) -> Hooks:
    """Hooks with a plugin for each named function."""
    made = make_hooks(**{name: plugin(hook, function) for name, function in named.items()})
    return attrs.evolve(made, grace=grace)


def says(text: str | None, asked: list[str] | None = None) -> Behaviour:
    async def behave() -> Sequence[Answer] | None:
        if asked is not None:
            asked.append(str(text))
        return None if text is None else [Answer(question="q", text=text)]

    return behave


def raises(error: BaseException) -> Behaviour:
    async def behave() -> None:
        raise error

    return behave


def raises_group(*errors: Exception) -> Behaviour:
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


async def swallows() -> None:
    """Ignores every cancellation."""
    while True:
        try:
            await hangs()
        except asyncio.CancelledError:
            continue


async def swallows_in_a_task() -> None:
    await asyncio.create_task(swallows())


async def presses_ctrl_c() -> None:
    """Do what the user's terminal does, and wait."""
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


async def cancels_itself_from_a_task_of_its_own() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    await hangs()


async def lies() -> Any:
    return 42


async def lies_in_a_list() -> Any:
    return [42]


async def core(step: StepRequest, /) -> StepResult:
    return DONE


def valid(answers: Sequence[Answer]) -> bool | str:
    return answers[0].text.isalpha() or "letters only"


async def heard(hooks: Hooks, run: Callable[[Hooks], Awaitable[Any]]) -> Told:
    """Run, and tell what was reported and raised; only our own cancellation passes."""
    failures: list[PluginFailure] = []
    try:
        value = await run(attrs.evolve(hooks, report=failures.append))
    except Exception as exc:
        return Told(tuple(failures), raised=exc)
    return Told(tuple(failures), value=value)


async def pick_answers(hooks: Hooks, *names: str) -> Outcome[Sequence[Answer]] | None:
    """Pick, with answers for results: the behaviours are the same for every way."""
    untyped: Any = hooks
    won: Outcome[Sequence[Answer]] | None
    won = await untyped.pick(gsd_run_agent, names, Sequence, task=TASK, host=HOST)
    return won


async def pick(p: Behaviour, grace: timedelta = HOUR) -> Told:
    async def run(hooks: Hooks) -> Any:
        return await pick_answers(hooks, "p")

    return await heard(make(gsd_run_agent, grace, p=p), run)


async def wrap(p: Behaviour, grace: timedelta = HOUR) -> Told:
    async def run(hooks: Hooks) -> Any:
        return await hooks.wrap(gsd_wrap_step, core, StepResult)(STEP)

    return await heard(make(gsd_wrap_step, grace, p=p), run)


async def fan_out(p: Behaviour, grace: timedelta = HOUR, limit: timedelta = HOUR) -> Told:
    async def run(hooks: Hooks) -> Any:
        bad, good = sorted(await hooks.fan_out(gsd_find_gaps, limit, PHASE), key=lambda o: o.plugin != "p")
        assert good.value == []
        return bad.error

    return await heard(make(gsd_find_gaps, grace, p=p, good=finds_nothing), run)


async def race(p: Behaviour, grace: timedelta = HOUR) -> Told:
    async def run(hooks: Hooks) -> Any:
        won = await hooks.race(gsd_answer, valid, inquiry=INQUIRY)
        assert won is not None
        assert won.plugin == "slower"
        return won

    return await heard(make(gsd_answer, grace, p=p, slower=says_slowly), run)


async def subscribe(p: Behaviour, grace: timedelta = HOUR) -> Told:
    seen: list[int] = []

    async def watches(event: Event) -> None:
        seen.append(event.seq)

    async def run(hooks: Hooks) -> Any:
        async with hooks.subscribe(gsd_on_event) as tell:
            tell(event(1))
            tell(event(2))
        assert seen == [1, 2]

    return await heard(make(gsd_on_event, grace, p=p, watches=watches), run)


async def collect(p: Behaviour) -> Told:
    """The behaviours are asynchronous, this hook is not: run each by hand, one step."""

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

    return await heard(make(gsd_write_config, p=contributes, good=good), run)


async def finds_nothing(phase: PhaseView) -> Sequence[Any]:
    return []


async def finds_nothing_at_all() -> Sequence[Any]:
    return []


async def says_slowly() -> Sequence[Answer]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [Answer(question="q", text="ok")]


async def passes(step: StepRequest, call_next: RunStep) -> StepResult:
    return await call_next(step)


def event(seq: int) -> Event:
    return Event(seq=seq, name="step.started", at=NOW, run="r")


async def watch(hooks: Hooks) -> None:
    async with hooks.subscribe(gsd_on_event) as tell:
        tell(event(1))
        await hangs()


Ask = Callable[[Hooks], Awaitable[Any]]

# Each way with nobody but ``p``, so that nothing ends it but our own cancellation.
ALONE: dict[str, tuple[Callable[..., Any], Ask]] = {
    "pick": (gsd_run_agent, lambda hooks: pick_answers(hooks, "p")),
    "wrap": (gsd_wrap_step, lambda hooks: hooks.wrap(gsd_wrap_step, core, StepResult)(STEP)),
    "fan_out": (gsd_find_gaps, lambda hooks: hooks.fan_out(gsd_find_gaps, HOUR, PHASE)),
    "race": (gsd_answer, lambda hooks: hooks.race(gsd_answer, valid, inquiry=INQUIRY)),
    "subscribe": (gsd_on_event, watch),
}
