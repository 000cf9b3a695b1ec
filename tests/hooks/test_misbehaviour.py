"""Every way of calling against every way to misbehave: the run goes on, and the plugin is named."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest

from gsd_core import ConfigError, Permanent, PluginError, Transient
from gsd_core.hookspecs import gsd_write_config
from gsd_core.plugins.isolation import PluginFailure
from tests.hooks import plays
from tests.hooks.plays import INSTANT, Behaviour, Told

ASYNC_WAYS = [plays.pick, plays.wrap, plays.fan_out, plays.race, plays.subscribe]
DECIDING = [plays.pick, plays.wrap]
every_way = pytest.mark.parametrize("way", [*ASYNC_WAYS, plays.collect])
Way = Callable[..., Any]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL, logger="asyncio")
    yield
    assert not caplog.records or all(record.name.startswith("gsd_core") for record in caplog.records)


def told(way: Way, p: Behaviour, *more: Any) -> Told:
    result: Told = asyncio.run(way(p, *more))
    return result


@every_way
@pytest.mark.parametrize(
    ("p", "words"),
    [
        (plays.raises(ValueError("boom")), "ValueError('boom')"),
        (plays.raises(asyncio.CancelledError("boom")), "CancelledError('boom')"),
        (plays.raises(BaseException("boom")), "BaseException('boom')"),
        (plays.raises(TimeoutError()), "TimeoutError()"),
        (plays.raises_group(ValueError("one"), OSError("two")), "ExceptionGroup"),
        (plays.raises(GeneratorExit()), "GeneratorExit()"),
        (plays.exits, "SystemExit(7)"),
        (plays.interrupts, "KeyboardInterrupt()"),
    ],
)
def test_what_a_plugin_raises_is_named_and_reported_once(way: Way, p: Behaviour, words: str) -> None:
    result = told(way, p)
    failures = result.failures if way is not plays.subscribe else result.failures[:1]

    [failure] = failures
    assert failure.plugin == "p"
    assert failure.hook.startswith("gsd_")
    assert words in failure.error
    if way in DECIDING:
        assert isinstance(result.raised, PluginError)
        assert "plugin 'p' failed in gsd_" in str(result.raised)
        assert repr(result.raised.__cause__)[:1000] == result.raised.cause_text
    else:
        assert result.raised is None


@pytest.mark.parametrize("way", [plays.pick, plays.wrap, plays.fan_out, plays.race])
@pytest.mark.parametrize(
    ("p", "error"),
    [
        (plays.exits_in_a_task, "SystemExit(7)"),
        (plays.exits_in_a_group, "SystemExit(7)"),
        (plays.interrupts_in_a_task, "KeyboardInterrupt()"),
        (plays.interrupts_in_a_group, "KeyboardInterrupt()"),
    ],
)
def test_a_task_of_a_plugin_that_exits_does_not_end_the_run(way: Way, p: Behaviour, error: str) -> None:
    [failure] = told(way, p).failures
    assert (failure.plugin, failure.error) == ("p", error)


def test_a_task_of_a_plugin_tells_its_state_as_any_other() -> None:
    async def looks() -> None:
        task = asyncio.create_task(plays.hangs())
        coro: Any = task.get_coro()
        states = [inspect.getcoroutinestate(coro)]
        await asyncio.sleep(0)
        states.append(inspect.getcoroutinestate(coro))
        task.cancel()
        raise Permanent(f"{states} {coro.__name__}")

    [failure] = told(plays.fan_out, looks).failures
    assert failure.error == "Permanent: ['CORO_CREATED', 'CORO_SUSPENDED'] hangs"


def test_a_task_of_a_plugin_that_is_cancelled_before_it_starts_leaves_no_warning() -> None:
    [failure] = told(plays.fan_out, plays.cancels_a_task).failures
    assert failure.error == "Permanent: cancelled in time"


@pytest.mark.parametrize("way", ASYNC_WAYS)
@pytest.mark.parametrize("p", [plays.cancels_itself, plays.cancels_itself_from_a_task_of_its_own])
def test_a_plugin_that_cancels_its_own_task_is_named_and_does_not_cancel_the_run(
    way: Way, p: Behaviour
) -> None:
    result = told(way, p)

    assert {(f.plugin, f.error) for f in result.failures} == {("p", "cancelled itself")}
    if way in DECIDING:
        assert isinstance(result.raised, PluginError)


def test_a_plain_function_finds_no_task_to_cancel() -> None:
    [failure] = told(plays.collect, plays.cancels_itself).failures
    assert failure == PluginFailure(plugin="p", hook="gsd_write_config", error="AssertionError()")


@pytest.mark.parametrize("way", [plays.pick, plays.wrap, plays.fan_out, plays.collect])
def test_nonsense_is_named(way: Way) -> None:
    result = told(way, plays.lies)

    [failure] = result.failures
    assert failure.plugin == "p"
    assert "int" in failure.error
    if way in DECIDING:
        assert isinstance(result.raised, PluginError)


def test_nonsense_in_a_race_is_named_and_the_race_goes_on() -> None:
    errors = [
        told(plays.race, p).failures[0].error for p in (plays.lies, plays.lies_in_a_list, plays.says("1"))
    ]
    wanted = "Sequence[Answer] | None"
    assert errors == [
        f"returned int, not {wanted}",
        f"returned list of int, not {wanted}",
        "answer refused: letters only",
    ]


def test_nonsense_from_one_that_only_watches_harms_nothing() -> None:
    assert told(plays.subscribe, plays.lies).failures == ()


def test_a_list_of_nonsense_is_no_report_of_gaps() -> None:
    [failure] = told(plays.fan_out, plays.lies_in_a_list).failures
    assert failure.error == "returned list of int, not Sequence[Gap] | GapReport | None"


@pytest.mark.parametrize("way", plays.ALONE)
def test_one_that_hangs_is_cancelled_with_the_run_and_leaves_no_task(way: str) -> None:
    assert _failures_when_cancelled(way, plays.hangs) == set()


@pytest.mark.parametrize("way", plays.ALONE)
@pytest.mark.parametrize("p", [plays.swallows, plays.swallows_in_a_task])
def test_one_that_swallows_our_cancellation_is_named_and_the_loop_ends_without_it(
    way: str, p: Behaviour
) -> None:
    assert _failures_when_cancelled(way, p) == {("p", "ignores its cancellation")}


def test_the_code_of_one_that_swallows_our_cancellation_is_ended_as_well() -> None:
    ended: list[str] = []

    async def cleans_up() -> None:
        try:
            await plays.swallows()
        finally:
            ended.append("p")

    assert told(plays.fan_out, cleans_up, INSTANT, INSTANT).raised is None
    assert ended == ["p"]


def test_one_that_ignores_even_the_end_of_its_coroutine_does_not_keep_the_loop() -> None:
    async def ignores_everything() -> None:
        for _ in range(3):
            with contextlib.suppress(BaseException):
                await plays.hangs()

    assert told(plays.fan_out, ignores_everything, INSTANT, INSTANT).raised is None


def _failures_when_cancelled(way: str, p: Behaviour) -> set[tuple[str, str]]:
    spec, ask = plays.ALONE[way]
    reports: list[PluginFailure] = []

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ask(attrs.evolve(plays.make(spec, INSTANT, p=p), report=reports.append))
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    return {(failure.plugin, failure.error) for failure in reports}


@pytest.mark.parametrize("way", [plays.race, plays.subscribe])
def test_one_that_swallows_its_cancellation_is_named_and_left_behind(way: Way) -> None:
    result = told(way, plays.swallows, INSTANT)

    assert PluginFailure(plugin="p", hook=_hook(way), error="ignores its cancellation") in result.failures
    assert result.raised is None


def test_one_that_hangs_or_swallows_in_a_fan_out_runs_out_of_time() -> None:
    for p in (plays.hangs, plays.swallows, plays.returns_when_cancelled):
        result = told(plays.fan_out, p, INSTANT, INSTANT)
        assert isinstance(result.value, PluginError)
        assert result.value.cause_text == "ran out of time"
        assert "ran out of time" in {failure.error for failure in result.failures}


@pytest.mark.parametrize("way", DECIDING)
@pytest.mark.parametrize("error", [Transient("busy"), Permanent("no key")])
@pytest.mark.parametrize("around", [plays.raises, plays.raises_group])
def test_a_step_error_passes_as_it_is_with_the_plugin_noted(
    way: Way, error: Permanent, around: Callable[..., Behaviour]
) -> None:
    for already in ("", "inner"):
        error.plugin = already
        result = told(way, around(error))
        assert result.raised is error
        assert error.plugin == (already or "p")
        assert result.failures == ()


def test_a_step_error_beside_a_bug_in_a_group_passes_and_two_of_them_do_not() -> None:
    error = Transient("busy")
    assert told(plays.pick, plays.raises_group(error, ValueError("bug"))).raised is error

    both = told(plays.pick, plays.raises_group(Transient("busy"), Transient("also"))).raised
    assert isinstance(both, PluginError)


@pytest.mark.parametrize("way", [plays.race, plays.fan_out])
def test_a_step_error_where_nobody_retries_is_reported(way: Way) -> None:
    [failure] = told(way, plays.raises(Transient("busy"))).failures
    assert (failure.plugin, failure.error) == ("p", "Transient: busy")


@pytest.mark.parametrize("way", plays.ALONE)
def test_a_real_ctrl_c_ends_the_call_and_nobody_is_blamed(way: str) -> None:
    spec, ask = plays.ALONE[way]
    reports: list[PluginFailure] = []
    hooks = attrs.evolve(plays.make(spec, INSTANT, p=plays.presses_ctrl_c), report=reports.append)

    async def main() -> None:
        await ask(hooks)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert reports == []


def test_ctrl_c_during_a_plain_function_passes_where_no_loop_handles_it() -> None:
    def contributes(project: Any) -> Any:
        signal.raise_signal(signal.SIGINT)

    hooks = plays.make(gsd_write_config, p=contributes)
    with pytest.raises(KeyboardInterrupt):
        hooks.collect(gsd_write_config, lambda value: value.key, plays.PROJECT)


def test_a_keyboard_interrupt_in_another_thread_is_the_plugins_own() -> None:
    def contributes(project: Any) -> Any:
        raise KeyboardInterrupt

    hooks = plays.make(gsd_write_config, p=contributes)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(hooks.collect, gsd_write_config, lambda value: value.key, plays.PROJECT)
    assert [str(failure) for failure in call.result().failures] == [
        "plugin 'p' failed in gsd_write_config: KeyboardInterrupt()"
    ]


def test_a_plugin_that_cannot_say_what_is_wrong_is_named_all_the_same() -> None:
    class Mute(Exception):
        def __repr__(self) -> str:
            raise ValueError

    [failure] = told(plays.pick, plays.raises(Mute())).failures
    assert failure.error == "Mute"


def test_a_strict_run_refuses_one_that_fails_to_contribute() -> None:
    def contributes(project: Any) -> Any:
        raise ValueError("boom")

    hooks = attrs.evolve(plays.make(gsd_write_config, p=contributes), strict=True)
    with pytest.raises(ConfigError, match="plugin 'p' failed in gsd_write_config"):
        hooks.collect(gsd_write_config, lambda value: value.key, plays.PROJECT)


def _hook(way: Way) -> str:
    return "gsd_answer" if way is plays.race else "gsd_on_event"
