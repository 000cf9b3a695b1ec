"""The governor: agents share a rate limit, and nothing that its file says can hold up a run for good."""

from __future__ import annotations

import asyncio
import fcntl
import heapq
import json
import os
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.storm import LIMIT_GIVEN_UP, LIMIT_USED, storm
from gsd_core import (
    Interference,
    Outage,
    Postpone,
    Postponed,
    StepRequest,
    StepResult,
    Transient,
    bind_settings,
)
from gsd_core.testing import a_spend, a_step
from gsd_plugins import governor
from gsd_plugins.governor import FILE, LONGEST, GovernorSettings, Pace


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    with bind_settings({GovernorSettings: GovernorSettings()}):
        yield tmp_path / "state"


def wait(step: str = "1/plan", agent: str = "claude") -> float | None:
    """Return for how many seconds the next call of a step has to wait; ``None`` if it need not."""
    found = asyncio.run(governor.wait_for_turn(a_spend(step=step, agents=(agent,))))
    if found is None:
        return None
    assert isinstance(found, Postpone)
    return found.until.timestamp() - time.time()


def fail(error: Transient, step: str = "1/plan", agent: str = "claude") -> float | None:
    """Let a step fail with *error* of an agent; return in how many seconds it is to run again."""
    error.plugin = agent

    async def attempt(request: StepRequest, /) -> StepResult:
        raise error

    with pytest.raises(type(error)) as info:
        asyncio.run(governor.note_refusals(a_step(Path("/"), id=step), attempt))
    assert info.value is error
    return error.until.timestamp() - time.time() if error.until else None


def soon(**delta: float) -> datetime:
    return datetime.now(UTC) + timedelta(**delta)


def test_without_a_refusal_no_call_waits() -> None:
    assert [wait(f"1/execute/{number}") for number in range(20)] == [None] * 20


def test_the_time_that_a_service_names_holds_for_all_agents_of_the_same_kind() -> None:
    assert wait("one") is None
    fail(Outage("429", soon(seconds=100)), "one")

    assert wait("other") == pytest.approx(100 + 2.5, abs=3)
    assert wait("other", agent="another") is None
    with bind_settings({GovernorSettings: GovernorSettings(account="another")}):
        assert wait("third") is None


def test_after_an_overload_calls_are_less_frequent_and_a_caller_keeps_its_turn() -> None:
    for number in range(4):
        assert wait(f"{number}") is None
    fail(Outage("529"), "3")

    waits = [wait(f"later {number}") or 0.0 for number in range(4)]

    assert waits == sorted(waits)
    assert waits[-1] > 0
    assert wait("later 3") == pytest.approx(waits[3], abs=1)


def test_after_a_usage_limit_the_first_call_is_alone_and_the_others_follow_one_by_one() -> None:
    agents = [f"1/execute/01-{number:02}" for number in range(12)]
    turns = sorted(fail(Transient("limit", soon(hours=2)), name) or 0.0 for name in agents[:6])
    turns += sorted(wait(name) or 0.0 for name in agents[6:])

    gaps = [late - early for early, late in pairwise(turns)]
    assert turns[0] == pytest.approx(7200, abs=2)
    assert gaps[0] > 14
    assert all(0 < gap <= 15.1 for gap in gaps)
    assert turns[-1] < 7200 + 150


@pytest.mark.parametrize("error", [Transient("lost"), Interference("x"), Postponed("x", soon(hours=1))])
def test_what_is_not_a_refusal_slows_down_nobody(error: Transient) -> None:
    fail(error, "one")

    assert wait("other") is None


def test_a_rehearsal_has_no_part_in_it(state: Path) -> None:
    fail(Outage("429", soon(hours=1)), agent="rehearsal")

    assert wait(agent="rehearsal") is None
    assert not (state / FILE).exists()


def _limited(**changes: Any) -> dict[str, Any]:
    pace: dict[str, Any] = {
        "rate": 0.1,
        "since": time.time(),
        "next": time.time() + 3600,
        "turns": {},
        "started": [],
    }
    return {"saved": time.time(), "paces": {"claude ": {**pace, **changes}}}


def test_the_file_that_the_next_ones_damage_holds_up_a_call(state: Path) -> None:
    (state / FILE).write_text(json.dumps(_limited()))

    assert wait() == pytest.approx(3600, abs=5)


BAD: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("nonsense"),
    "half": lambda path: path.write_text(json.dumps(_limited())[:60]),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\0" * 1000),
    "deep": lambda path: path.write_text("[" * 100_000),
    "list": lambda path: path.write_text("[1]"),
    "huge": lambda path: path.write_text(" " * 2_000_000 + json.dumps(_limited())),
    "far": lambda path: path.write_text(json.dumps(_limited(next=time.time() + LONGEST + 99))),
    "never": lambda path: path.write_text(json.dumps(_limited(next=float("inf")))),
    "nan": lambda path: path.write_text(json.dumps(_limited(rate=float("nan")))),
    "negative": lambda path: path.write_text(json.dumps(_limited(rate=-1.0))),
    "types": lambda path: path.write_text(json.dumps(_limited(turns=["x"]))),
    "turn": lambda path: path.write_text(json.dumps(_limited(turns={"r-1 1/plan": 1e300}))),
    "clock set back": lambda path: path.write_text(json.dumps(_limited() | {"saved": time.time() + 60})),
    "pipe": lambda path: os.mkfifo(path),
    "link": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
    "no folder": lambda path: path.parent.rename(path.parent.with_name("moved")).with_name("state").touch(),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_used_holds_up_no_call(name: str, state: Path) -> None:
    BAD[name](state / FILE)

    assert wait() is None
    fail(Outage("529"))


def test_a_process_that_keeps_the_lock_holds_up_a_call_for_a_moment_only(state: Path) -> None:
    with (state / FILE).open("w") as file:
        file.write(json.dumps(_limited()))
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        began = time.monotonic()

        assert wait() is None
        assert time.monotonic() - began < 2


@given(
    st.dictionaries(st.sampled_from(["rate", "since", "next", "turns", "started", "other"]), st.integers()),
    st.recursive(
        st.none() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
)
def test_no_content_of_the_file_raises_or_lets_a_call_wait_for_long(pace: Any, other: Any) -> None:
    now = 1e9
    contents: list[Any] = [other, {"saved": now, "paces": {"a": pace, "b": other}}]
    contents.append({"saved": other, "paces": {"a": {}}})
    for data in contents:
        for found in governor.load_paces(json.dumps(data).encode(), now).values():
            settings = GovernorSettings()
            turns = [found.turn(str(number), now, settings) for number in range(3)]
            assert all(now <= turn <= now + LONGEST + 60 for turn in turns)


@pytest.mark.slow
def test_many_agents_use_nine_tenths_of_a_rate_that_changes() -> None:
    """A day of 24 agents, in simulated time."""
    settings, pace = GovernorSettings(), Pace()
    now, tokens, filled, accepted, refused, permitted = 1e9, 1.0, 1e9, 0, 0, 0.0
    callers = [(now + number / 10, number) for number in range(24)]
    while now < 1e9 + 24 * 3600:
        now, caller = heapq.heappop(callers)
        rate = (0.1, 0.5, 0.2, 1.0, 0.4)[int(now / 1200) % 5]
        tokens, permitted = min(tokens + (now - filled) * rate, 5.0), permitted + (now - filled) * rate
        filled = now
        turn = pace.turn(str(caller), now, settings)
        if turn <= now:
            pace.start(str(caller), now, settings)
            if tokens >= 1:
                tokens, accepted, turn = tokens - 1, accepted + 1, now + 5
            else:
                refused += 1
                pace.refuse(str(caller), now, 0.0, settings)
                turn = max(pace.turn(str(caller), now, settings), now + 2)
        heapq.heappush(callers, (turn, caller))

    assert accepted > 0.9 * permitted
    assert refused < 0.3 * accepted


@pytest.mark.slow
def test_processes_share_a_rate_limit() -> None:
    result = asyncio.run(storm(1, 6, 2, 5, governed=True))

    assert result.used > LIMIT_USED - 0.1  # with two processors for all tests
    assert result.given_up < LIMIT_GIVEN_UP
    assert result.refused < 0.4
