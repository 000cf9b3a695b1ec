"""Step wrappers, and the core's work while a plugin waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import PluginError, RunStep, StepRequest, StepResult, Transient
from gsd_core.errors import Fenced
from gsd_core.hookspecs import gsd_run_agent, gsd_wrap_step
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure, in_core
from gsd_core.plugins.plugin_task import end_tasks
from tests.hooks import behaviors
from tests.hooks.behaviors import DONE, HOUR, INSTANT, STEP, make, passes

Inner = Callable[[StepRequest], Awaitable[Any]]


def wrapped(inner: Inner, /, **wrappers: Callable[..., Any]) -> Any:
    return asyncio.run(run_step(make(gsd_wrap_step, **wrappers), inner))


async def run_step(hooks: Hooks, inner: Inner) -> Any:
    return await hooks.wrap(gsd_wrap_step, inner, StepResult)(STEP)


def test_wrap_names_the_plugin_whose_own_code_raised() -> None:
    async def buggy(step: StepRequest, call_next: RunStep) -> StepResult:
        raise AttributeError(str(await call_next(step)))

    with pytest.raises(PluginError, match="plugin 'buggy' failed in gsd_wrap_step: AttributeError"):
        wrapped(behaviors.core, buggy=buggy, outer=passes)


@pytest.mark.parametrize(
    "error", [OSError("disk"), Transient("busy"), Fenced("newer"), asyncio.CancelledError()]
)
def test_an_error_from_call_next_passes_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        wrapped(lambda _: behaviors.raises(error)(), inner=passes, outer=passes)

    assert caught.value is error or isinstance(error, asyncio.CancelledError)
    assert getattr(error, "plugin", "") == ""


def test_an_error_from_call_next_passes_even_in_a_group() -> None:
    async def grouped(step: StepRequest, call_next: RunStep) -> StepResult:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_awaited(call_next(step)))
        return task.result()

    with pytest.raises(OSError, match="disk"):
        wrapped(lambda _: behaviors.raises(OSError("disk"))(), grouped=grouped)
    assert wrapped(behaviors.core, grouped=grouped) is DONE


async def _awaited(result: Awaitable[StepResult]) -> StepResult:
    return await result


def test_wrap_rejects_a_value_that_is_not_a_result() -> None:
    async def forgets(step: StepRequest, call_next: RunStep) -> None:
        await call_next(step)

    with pytest.raises(
        PluginError, match="'forgets' failed in gsd_wrap_step: returned NoneType, not StepResult"
    ):
        wrapped(behaviors.core, forgets=forgets)


def test_call_next_rejects_a_request_that_is_not_a_step() -> None:
    async def confuses(step: StepRequest, call_next: Any) -> Any:
        return await call_next("1/plan")

    with pytest.raises(PluginError, match="call_next expects a StepRequest, got '1/plan'"):
        wrapped(behaviors.core, confuses=confuses)


def test_wrappers_nest_in_order_and_cannot_change_the_identity_of_the_step() -> None:
    seen: list[StepRequest] = []

    async def changes(step: StepRequest, call_next: RunStep) -> StepResult:
        other = attrs.evolve(
            step, id="x", run="x", kind="verify", project=Path("x"), attempt=step.attempt * 2
        )
        return await call_next(other)

    async def adds(step: StepRequest, call_next: RunStep) -> StepResult:
        return await call_next(attrs.evolve(step, attempt=step.attempt + 1))

    async def see(step: StepRequest, /) -> StepResult:
        seen.append(step)
        return DONE

    wrapped(see, b=adds, a=changes)
    assert seen == [attrs.evolve(STEP, attempt=3)]


def test_a_wrapper_may_call_the_rest_again() -> None:
    tries: list[int] = []

    async def twice(step: StepRequest, call_next: RunStep) -> StepResult:
        try:
            return await call_next(step)
        except Transient:
            return await call_next(step)

    async def fails_once(step: StepRequest, /) -> StepResult:
        tries.append(1)
        if len(tries) == 1:
            raise Transient("busy")
        return DONE

    assert wrapped(fails_once, twice=twice) is DONE
    assert len(tries) == 2


def test_a_timeout_of_a_wrapper_ends_the_rest_and_is_its_own_failure() -> None:
    ended: list[str] = []

    async def impatient(step: StepRequest, call_next: RunStep) -> StepResult:
        async with asyncio.timeout(0.01):
            return await call_next(step)

    async def slow(step: StepRequest, /) -> StepResult:
        try:
            await behaviors.hangs()
        finally:
            ended.append("rest")
        return DONE

    with pytest.raises(PluginError, match="'impatient' failed in gsd_wrap_step: TimeoutError"):
        wrapped(slow, impatient=impatient)
    assert ended == ["rest"]


async def shields(step: StepRequest, call_next: RunStep) -> StepResult:
    return await asyncio.shield(asyncio.ensure_future(call_next(step)))


async def lets_go(step: StepRequest, call_next: RunStep) -> StepResult:
    running = asyncio.ensure_future(call_next(step))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del running
    return StepResult(subject="early")


@pytest.mark.parametrize("sloppy", [shields, lets_go, passes])
def test_no_wrapper_can_shield_the_rest_from_our_cancellation_or_lose_it(sloppy: Callable[..., Any]) -> None:
    ended: list[str] = []

    async def slow(step: StepRequest, /) -> StepResult:
        try:
            await behaviors.hangs()
        finally:
            await asyncio.sleep(0)
            ended.append("rest")
        return DONE

    async def main() -> int:
        task = asyncio.create_task(run_step(make(gsd_wrap_step, sloppy=sloppy), slow))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert ended == ["rest"]


def test_the_grace_of_a_plugin_does_not_run_while_the_core_works_for_it() -> None:
    trace: list[str] = []
    failures: list[PluginFailure] = []

    async def lands(step: StepRequest, /) -> StepResult:
        try:
            await behaviors.hangs()
        finally:
            await asyncio.sleep(0.05)
            trace.append("landed")
        return DONE

    async def main() -> None:
        hooks = attrs.evolve(make(gsd_wrap_step, INSTANT, a=passes, b=passes), report=failures.append)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await run_step(hooks, lands)

    asyncio.run(main())
    assert (trace, failures) == (["landed"], [])


def test_the_grace_does_not_run_during_a_host_call_and_its_errors_pass() -> None:
    trace: list[str] = []

    async def host_call(*, fail: bool) -> None:
        with in_core():
            if fail:
                raise Fenced("newer")
            try:
                await behaviors.hangs()
            finally:
                await asyncio.sleep(0.05)
                trace.append("recorded")

    async def main(grace: Any, *, fail: bool) -> Any:
        hooks = make(gsd_run_agent, grace, p=partial(host_call, fail=fail))
        async with asyncio.timeout(0.01):
            return await behaviors.pick_answers(hooks, "p")

    with pytest.raises(TimeoutError):
        asyncio.run(main(INSTANT, fail=False))
    assert trace == ["recorded"]
    with pytest.raises(Fenced):
        asyncio.run(main(HOUR, fail=True))


def test_the_end_of_the_loop_waits_for_no_task_that_a_plugin_left_behind() -> None:
    left: list[asyncio.Task[None]] = []

    async def leaves_tasks(step: StepRequest, call_next: RunStep) -> StepResult:
        left.append(asyncio.create_task(behaviors.ignores_cancellation(), name="p:own task"))
        left.append(asyncio.create_task(behaviors.hangs(), name="obeys"))
        return await call_next(step)

    async def main() -> tuple[str, ...]:
        await run_step(make(gsd_wrap_step, p=leaves_tasks), behaviors.core)
        assert not any(task.done() for task in left)
        return await end_tasks(INSTANT)

    assert asyncio.run(main()) == ("p:own task",)
    assert all(task.cancelled() for task in left)
