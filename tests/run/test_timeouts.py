"""Time limits with overlapping pauses, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from gsd_core.errors import GsdError, PluginError, Transient
from gsd_core.run.timeouts import AgentTimeouts, InactivityTimeout, PausableTimeouts, Turns, core_at_work

from .simulated_time import run_simulated


@frozen
class Pause:
    """Pause number *id* begins, or ends if it has begun."""

    id: int


@frozen
class Beat:
    """The owner shows a sign of life."""


@frozen
class Pass:
    """Time passes."""

    seconds: int


Action: TypeAlias = Pause | Beat | Pass
ACTIONS = st.lists(
    st.one_of(
        st.builds(Pause, st.integers(0, 3)),
        st.builds(Beat),
        st.builds(Pass, st.integers(min_value=1, max_value=20)),
    ),
    max_size=40,
)
# Limits end in .5 and time passes in whole seconds, so that no limit is reached at the time of an action.
LIMITS = st.integers(0, 60).map(lambda seconds: timedelta(seconds=seconds + 0.5))


async def live(
    timeouts: PausableTimeouts, actions: list[Action], *work: Coroutine[Any, Any, None]
) -> tuple[float, GsdError]:
    """Do *actions*, end all pauses, do *work*, and hang; return when the block was ended, and how."""
    pauses: dict[int, AbstractContextManager[None]] = {}
    try:
        async with timeouts.running():
            for action in actions:
                match action:
                    case Pass(seconds):
                        await asyncio.sleep(seconds)
                    case Beat():
                        timeouts.beat()
                    case Pause(number) if number in pauses:
                        pauses.pop(number).__exit__(None, None, None)
                    case Pause(number):
                        pauses[number] = timeouts.paused()
                        pauses[number].__enter__()
            for pause in pauses.values():
                pause.__exit__(None, None, None)
            await asyncio.gather(*work)
            await asyncio.Event().wait()
    except GsdError as error:
        return asyncio.get_running_loop().time(), error
    raise AssertionError("nothing ends the block")


def predict(idle: float, hard: float, actions: list[Action]) -> tuple[float, bool]:
    """Return when the block has to end, and whether by the idle limit: counted second by second."""
    now, used, silent = 0.0, 0.0, 0.0
    pauses: set[int] = set()
    for action in [*actions, None]:
        match action:
            case Pass(seconds) if pauses:
                now += seconds
            case Pass(seconds):
                left = min(idle - silent, hard - used)
                if seconds > left:
                    return now + left, idle - silent <= hard - used
                now, used, silent = now + seconds, used + seconds, silent + seconds
            case Beat():
                silent = 0.0
            case Pause(number):
                # The end of the last pause is a sign of life.
                pauses ^= {number}
                silent = silent if pauses else 0.0
            case None:
                silent = 0.0 if pauses else silent
    left = min(idle - silent, hard - used)
    return now + left, idle - silent <= hard - used


@given(idle=LIMITS, hard=LIMITS, actions=ACTIONS)
def test_an_agent_is_ended_exactly_when_its_unpaused_time_or_silence_reaches_the_limit(
    idle: timedelta, hard: timedelta, actions: list[Action]
) -> None:
    async def main() -> tuple[float, GsdError]:
        return await live(AgentTimeouts(idle=idle, hard=hard, who="the agent 'x'"), actions)

    ended, error = run_simulated(main())

    expected, is_idle = predict(idle.total_seconds(), hard.total_seconds(), actions)
    assert ended == expected
    assert isinstance(error, Transient)
    assert ("no activity" in str(error)) is is_idle


@given(limit=LIMITS, actions=ACTIONS)
def test_a_plugin_is_ended_exactly_when_its_unpaused_silence_reaches_the_limit(
    limit: timedelta, actions: list[Action]
) -> None:
    async def main() -> tuple[float, GsdError]:
        return await live(InactivityTimeout(idle=limit, hook="gsd_x", culprits=lambda: "p"), actions)

    ended, error = run_simulated(main())

    assert ended == predict(limit.total_seconds(), float("inf"), actions)[0]
    assert isinstance(error, PluginError)
    assert (error.plugin, error.hook) == ("p", "gsd_x")


def test_parallel_tool_calls_do_not_end_an_agent_that_has_time_left() -> None:
    async def tool(timeouts: AgentTimeouts, begin: float, end: float) -> None:
        await asyncio.sleep(begin)
        with timeouts.paused():
            await asyncio.sleep(end - begin)

    async def main() -> float:
        timeouts = AgentTimeouts(idle=timedelta(minutes=10), hard=timedelta(hours=1))
        tools = [tool(timeouts, 1, 93), tool(timeouts, 2, 50), tool(timeouts, 3, 70)]
        ended, error = await live(timeouts, [], *tools)
        assert "no activity" in str(error)
        return ended

    assert run_simulated(main()) == 93 + 600


def test_a_block_that_ends_in_time_leaves_no_timer_behind() -> None:
    async def main() -> None:
        timeouts = AgentTimeouts(idle=timedelta(seconds=1), hard=timedelta(seconds=1))
        async with timeouts.running():
            pause = timeouts.paused()
            pause.__enter__()
        pause.__exit__(None, None, None)
        timeouts.beat()
        await asyncio.sleep(10)

    run_simulated(main())


def test_a_time_out_of_the_block_itself_is_not_reported_as_ours() -> None:
    async def main() -> None:
        async with AgentTimeouts(idle=timedelta(hours=1), hard=timedelta(hours=1)).running():
            raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        run_simulated(main())


def test_work_of_the_core_counts_for_the_plugin_that_called_it_only() -> None:
    """A function of a plugin that hangs is noticed while another call of the plugin waits for the core."""

    def limit(name: str) -> InactivityTimeout:
        return InactivityTimeout(idle=timedelta(seconds=5), hook=name, culprits=lambda: "p")

    async def function() -> None:
        async with limit("function").running():
            with core_at_work():
                await asyncio.sleep(100)
            await asyncio.Event().wait()

    async def main() -> float:
        async with limit("step").running():
            with core_at_work(), pytest.raises(PluginError, match="function"):
                await function()
            return asyncio.get_running_loop().time()

    assert run_simulated(main()) == 105


def test_an_agent_is_in_a_turn_until_its_answer_is_recorded_except_while_it_waits_for_the_core() -> None:
    async def play() -> list[int]:
        turns, clock = Turns(), AgentTimeouts(idle=timedelta(minutes=1), hard=timedelta(minutes=1))
        seen: list[int] = []
        async with clock.running():
            with turns.of(clock):
                seen.append(turns.in_progress)
                with clock.paused():
                    seen.append(turns.in_progress)
        with turns.closes():
            seen.append(turns.in_progress)
        return [*seen, turns.in_progress]

    assert asyncio.run(play()) == [1, 0, 1, 0]
