"""Every calling mode with every misbehavior: the run continues, and the plugin is reported."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import attrs
import pytest

from gsd_core import ConfigError, Permanent, PluginError, PluginRefused, Transient
from gsd_core.exit_codes import ExitCode, exit_code
from gsd_core.hookspecs import gsd_write_config
from gsd_core.plugins.isolation import PluginFailure
from tests.hooks import behaviors
from tests.hooks.behaviors import INSTANT, Behavior, CallResult

ASYNC_MODES = [behaviors.pick, behaviors.wrap, behaviors.fan_out, behaviors.race, behaviors.subscribe]
DECIDING = [behaviors.pick, behaviors.wrap]
every_mode = pytest.mark.parametrize("mode", [*ASYNC_MODES, behaviors.collect])
Mode = Callable[..., Any]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL, logger="asyncio")
    yield
    assert not caplog.records or all(record.name.startswith("gsd_core") for record in caplog.records)


def result_of(mode: Mode, p: Behavior, *more: Any) -> CallResult:
    result: CallResult = asyncio.run(mode(p, *more))
    return result


@every_mode
@pytest.mark.parametrize(
    ("p", "words"),
    [
        (behaviors.raises(ValueError("boom")), "ValueError('boom')"),
        (behaviors.raises(asyncio.CancelledError("boom")), "CancelledError('boom')"),
        (behaviors.raises(BaseException("boom")), "BaseException('boom')"),
        (behaviors.raises(TimeoutError()), "TimeoutError()"),
        (behaviors.raises_group(ValueError("one"), OSError("two")), "ExceptionGroup"),
        (behaviors.raises(GeneratorExit()), "GeneratorExit()"),
        (behaviors.exits, "SystemExit(7)"),
        (behaviors.interrupts, "KeyboardInterrupt()"),
    ],
)
def test_what_a_plugin_raises_is_named_and_reported_once(mode: Mode, p: Behavior, words: str) -> None:
    result = result_of(mode, p)
    failures = result.failures if mode is not behaviors.subscribe else result.failures[:1]

    [failure] = failures
    assert failure.plugin == "p"
    assert failure.hook.startswith("gsd_")
    assert words in failure.error
    if mode in DECIDING:
        assert isinstance(result.raised, PluginError)
        assert "plugin 'p' failed in gsd_" in str(result.raised)
        assert repr(result.raised.__cause__)[:1000] == result.raised.cause_text
    else:
        assert result.raised is None


def no_process() -> None:
    """Fail to start a process as `subprocess` does."""
    code = "raise BlockingIOError(errno.EAGAIN, 'Resource temporarily unavailable')"
    exec(compile(code, "/lib/subprocess.py", "exec"), {"errno": errno})


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "/mnt/file")


def out_of_memory() -> None:
    raise MemoryError


def no_thread() -> None:
    raise RuntimeError("can't start new thread")


def judged() -> None:
    try:
        no_process()
    except OSError as error:
        raise Permanent("cannot start 'claude'") from error


def missing() -> None:
    raise FileNotFoundError(errno.ENOENT, "No such file or directory", "/mnt/file")


def not_ready() -> None:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def caught(function: Callable[[], None]) -> BaseException:
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("it raises")


@pytest.mark.parametrize("mode", DECIDING)
@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (full, "'/mnt/file': No space left on device"),
        (out_of_memory, "out of memory"),
        (no_process, "temporarily unavailable"),
        (no_thread, "thread"),
        (judged, "cannot start 'claude'"),
    ],
)
def test_a_plugin_is_not_to_blame_for_what_the_machine_refuses(
    mode: Mode, cause: Callable[[], None], words: str
) -> None:
    result = result_of(mode, behaviors.raises(caught(cause)))

    assert isinstance(result.raised, PluginRefused)
    assert words in str(result.raised)
    assert "-p no:" not in result.raised.hint
    assert result.raised.hint
    assert exit_code(result.raised) == ExitCode.USAGE
    assert not result.failures


@pytest.mark.parametrize("mode", DECIDING)
@pytest.mark.parametrize("cause", [missing, not_ready])
def test_a_plugin_is_to_blame_for_a_missing_file_and_a_pipe_that_is_not_ready(
    mode: Mode, cause: Callable[[], None]
) -> None:
    result = result_of(mode, behaviors.raises(caught(cause)))

    assert isinstance(result.raised, PluginError)
    assert not isinstance(result.raised, PluginRefused)
    assert result.failures


@pytest.mark.parametrize("mode", [behaviors.pick, behaviors.wrap, behaviors.fan_out, behaviors.race])
@pytest.mark.parametrize(
    ("p", "error"),
    [
        (behaviors.exits_in_a_task, "SystemExit(7)"),
        (behaviors.exits_in_a_group, "SystemExit(7)"),
        (behaviors.interrupts_in_a_task, "KeyboardInterrupt()"),
        (behaviors.interrupts_in_a_group, "KeyboardInterrupt()"),
    ],
)
def test_a_task_of_a_plugin_that_exits_does_not_end_the_run(mode: Mode, p: Behavior, error: str) -> None:
    [failure] = result_of(mode, p).failures
    assert (failure.plugin, failure.error) == ("p", error)


def test_a_task_of_a_plugin_shows_its_state_like_any_other() -> None:
    async def looks() -> None:
        task = asyncio.create_task(behaviors.hangs())
        coro: Any = task.get_coro()
        states = [inspect.getcoroutinestate(coro)]
        await asyncio.sleep(0)
        states.append(inspect.getcoroutinestate(coro))
        task.cancel()
        raise Permanent(f"{states} {coro.__name__}")

    [failure] = result_of(behaviors.fan_out, looks).failures
    assert failure.error == "Permanent: ['CORO_CREATED', 'CORO_SUSPENDED'] hangs"


def test_a_task_of_a_plugin_that_is_cancelled_before_it_starts_leaves_no_warning() -> None:
    [failure] = result_of(behaviors.fan_out, behaviors.cancels_a_task).failures
    assert failure.error == "Permanent: cancelled in time"


@pytest.mark.parametrize("mode", ASYNC_MODES)
@pytest.mark.parametrize("p", [behaviors.cancels_itself, behaviors.cancels_itself_from_another_task])
def test_a_plugin_that_cancels_its_own_task_is_named_and_does_not_cancel_the_run(
    mode: Mode, p: Behavior
) -> None:
    result = result_of(mode, p)

    assert {(f.plugin, f.reason) for f in result.failures} == {("p", "cancelled itself")}
    if mode in DECIDING:
        assert isinstance(result.raised, PluginError)


def test_a_plain_function_finds_no_task_to_cancel() -> None:
    [failure] = result_of(behaviors.collect, behaviors.cancels_itself).failures
    assert failure == PluginFailure(
        plugin="p", hook="gsd_write_config", error="AssertionError()", reason="raised"
    )


@pytest.mark.parametrize("mode", [behaviors.pick, behaviors.wrap, behaviors.fan_out, behaviors.collect])
def test_nonsense_is_named(mode: Mode) -> None:
    result = result_of(mode, behaviors.returns_nonsense)

    [failure] = result.failures
    assert failure.plugin == "p"
    assert "int" in failure.error
    if mode in DECIDING:
        assert isinstance(result.raised, PluginError)


def test_nonsense_in_a_race_is_named_and_the_race_continues() -> None:
    errors = [
        result_of(behaviors.race, p).failures[0].error
        for p in (
            behaviors.returns_nonsense,
            behaviors.returns_nonsense_in_a_list,
            behaviors.answers_with("1"),
        )
    ]
    wanted = "Sequence[Answer] | None"
    assert errors == [
        f"returned int, not {wanted}",
        f"returned list of int, not {wanted}",
        "answer refused: letters only",
    ]


def test_nonsense_from_a_subscriber_is_ignored() -> None:
    assert result_of(behaviors.subscribe, behaviors.returns_nonsense).failures == ()


def test_a_list_of_nonsense_is_not_a_report_of_gaps() -> None:
    [failure] = result_of(behaviors.fan_out, behaviors.returns_nonsense_in_a_list).failures
    assert failure.error == "returned list of int, not Sequence[Gap] | GapReport | None"


@pytest.mark.parametrize("mode", behaviors.ALONE)
def test_a_plugin_that_hangs_is_cancelled_with_the_run_and_leaves_no_task(mode: str) -> None:
    assert _failures_when_cancelled(mode, behaviors.hangs) == set()


@pytest.mark.parametrize("mode", behaviors.ALONE)
@pytest.mark.parametrize("p", [behaviors.ignores_cancellation, behaviors.ignores_cancellation_in_a_task])
def test_a_plugin_that_ignores_our_cancellation_is_named_and_the_loop_ends(mode: str, p: Behavior) -> None:
    assert _failures_when_cancelled(mode, p) == {("p", "ignored cancellation")}


def test_the_code_of_a_plugin_that_ignores_our_cancellation_is_ended() -> None:
    ended: list[str] = []

    async def cleans_up() -> None:
        try:
            await behaviors.ignores_cancellation()
        finally:
            ended.append("p")

    assert result_of(behaviors.fan_out, cleans_up, INSTANT, INSTANT).raised is None
    assert ended == ["p"]


def test_a_plugin_that_ignores_even_the_end_of_its_coroutine_does_not_block_the_end_of_the_loop() -> None:
    async def ignores_everything() -> None:
        for _ in range(3):
            with contextlib.suppress(BaseException):
                await behaviors.hangs()

    assert result_of(behaviors.fan_out, ignores_everything, INSTANT, INSTANT).raised is None


def _failures_when_cancelled(mode: str, p: Behavior) -> set[tuple[str, str]]:
    spec, ask = behaviors.ALONE[mode]
    reports: list[PluginFailure] = []

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ask(attrs.evolve(behaviors.make(spec, INSTANT, p=p), report=reports.append))
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    return {(failure.plugin, failure.reason) for failure in reports}


@pytest.mark.parametrize("mode", [behaviors.race, behaviors.subscribe])
def test_a_plugin_that_ignores_its_cancellation_is_named(mode: Mode) -> None:
    # Long enough for the other plugin to receive its events on a busy machine.
    result = result_of(mode, behaviors.ignores_cancellation, timedelta(milliseconds=300))

    named = [(f.plugin, f.hook, f.reason) for f in result.failures]
    assert ("p", _hook(mode), "ignored cancellation") in named
    assert result.raised is None


def test_a_plugin_that_hangs_or_ignores_its_cancellation_in_a_fan_out_runs_out_of_time() -> None:
    for p in (behaviors.hangs, behaviors.ignores_cancellation, behaviors.returns_when_cancelled):
        result = result_of(behaviors.fan_out, p, INSTANT, INSTANT)
        assert isinstance(result.value, PluginError)
        assert "ran out of time" in result.value.cause_text
        assert "timeout" in {failure.reason for failure in result.failures}


@pytest.mark.parametrize("mode", DECIDING)
@pytest.mark.parametrize("error", [Transient("busy"), Permanent("no key")])
@pytest.mark.parametrize("around", [behaviors.raises, behaviors.raises_group])
def test_a_step_error_passes_as_it_is_with_the_plugin_noted(
    mode: Mode, error: Permanent, around: Callable[..., Behavior]
) -> None:
    for already in ("", "inner"):
        error.plugin = already
        result = result_of(mode, around(error))
        assert result.raised is error
        assert error.plugin == (already or "p")
        assert result.failures == ()


def test_one_step_error_in_a_group_passes_and_two_do_not() -> None:
    error = Transient("busy")
    assert result_of(behaviors.pick, behaviors.raises_group(error, ValueError("bug"))).raised is error

    both = result_of(behaviors.pick, behaviors.raises_group(Transient("busy"), Transient("also"))).raised
    assert isinstance(both, PluginError)


@pytest.mark.parametrize("mode", [behaviors.race, behaviors.fan_out])
def test_a_step_error_that_is_not_retried_is_reported(mode: Mode) -> None:
    [failure] = result_of(mode, behaviors.raises(Transient("busy"))).failures
    assert (failure.plugin, failure.error) == ("p", "Transient: busy")


@pytest.mark.parametrize("mode", behaviors.ALONE)
def test_a_real_ctrl_c_ends_the_call_and_blames_no_plugin(mode: str) -> None:
    spec, ask = behaviors.ALONE[mode]
    reports: list[PluginFailure] = []
    hooks = attrs.evolve(behaviors.make(spec, INSTANT, p=behaviors.presses_ctrl_c), report=reports.append)

    async def main() -> None:
        await ask(hooks)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert reports == []


def test_ctrl_c_during_a_plain_function_passes_if_no_event_loop_handles_it() -> None:
    def contributes(project: Any) -> Any:
        signal.raise_signal(signal.SIGINT)

    hooks = behaviors.make(gsd_write_config, p=contributes)
    with pytest.raises(KeyboardInterrupt):
        hooks.collect(gsd_write_config, lambda value: value.key, behaviors.PROJECT)


def test_a_keyboard_interrupt_in_another_thread_is_the_plugins_own() -> None:
    def contributes(project: Any) -> Any:
        raise KeyboardInterrupt

    hooks = behaviors.make(gsd_write_config, p=contributes)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(hooks.collect, gsd_write_config, lambda value: value.key, behaviors.PROJECT)
    assert [str(failure) for failure in call.result().failures] == [
        "plugin 'p' failed in gsd_write_config: KeyboardInterrupt()"
    ]


def test_a_plugin_whose_exception_has_no_repr_is_named() -> None:
    class Mute(Exception):
        def __repr__(self) -> str:
            raise ValueError

    [failure] = result_of(behaviors.pick, behaviors.raises(Mute())).failures
    assert failure.error == "Mute"


def test_a_strict_run_refuses_a_plugin_that_fails_to_contribute() -> None:
    def contributes(project: Any) -> Any:
        raise ValueError("boom")

    hooks = attrs.evolve(behaviors.make(gsd_write_config, p=contributes), strict=True)
    with pytest.raises(ConfigError, match="plugin 'p' failed in gsd_write_config"):
        hooks.collect(gsd_write_config, lambda value: value.key, behaviors.PROJECT)


def _hook(mode: Mode) -> str:
    return "gsd_answer" if mode is behaviors.race else "gsd_on_event"
