"""The schedule of plans: against the bound that no schedule is below, and what never runs at once."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_core.machine.schedule import Schedule, Work, overlap


def diamond() -> Schedule:
    """Return ``a``, then ``b`` (long) and ``c``, then ``d``, and ``e`` on its own."""
    return Schedule(
        works=[
            Work(id="a"),
            Work(id="c", after=("a",)),
            Work(id="b", after=("a",), size=3),
            Work(id="d", after=("b", "c")),
            Work(id="e", size=2),
        ]
    )


def ids(works: tuple[Work, ...]) -> list[str]:
    return [work.id for work in works]


def test_what_begins_the_longest_chain_of_work_starts_first() -> None:
    schedule = diamond()

    assert schedule.lengths == {"a": 5, "b": 4, "c": 2, "d": 1, "e": 2}
    assert ids(schedule.startable(slots=2)) == ["a", "e"]
    assert ids(schedule.startable(slots=1)) == ["a"]
    assert ids(schedule.startable(done={"a"}, running={"e"}, slots=3)) == ["b", "c"]
    assert ids(schedule.startable(done={"a", "b"}, slots=3)) == ["c", "e"]
    assert ids(schedule.startable(done={"a", "b", "c"}, running={"d", "e"}, slots=3)) == []


def test_the_critical_path_is_the_longest_chain_that_is_left() -> None:
    schedule = diamond()

    assert schedule.critical_path() == ("a", "b", "d")
    assert schedule.critical_path({"a", "b"}) == ("c", "d")
    assert schedule.critical_path({"a", "b", "c", "d"}) == ("e",)
    assert schedule.critical_path({"a", "b", "c", "d", "e"}) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("a.py",), ("a.py", "b.py"), True),
        (("src/",), ("src/a/b.py",), True),
        (("src/a/b.py",), ("src",), True),
        (("src/a.py",), ("src/ab.py", "src"), True),
        (("src/a.py",), ("src/a.pyi", "sr"), False),
        ((), ("a.py",), False),
    ],
)
def test_plans_that_change_the_same_file_or_folder_never_run_at_once(
    one: tuple[str, ...], other: tuple[str, ...], same: bool
) -> None:
    works = [Work(id="one", files=one), Work(id="other", files=other)]
    schedule = Schedule(works=works)

    assert overlap(*works) is same
    assert ids(schedule.startable(slots=2)) == (["one"] if same else ["one", "other"])
    assert ids(schedule.startable(running={"one"}, slots=2)) == ([] if same else ["other"])


def test_a_circle_is_broken_and_unknown_names_are_ignored() -> None:
    schedule = Schedule(
        works=[Work(id="a", after=("c", "gone")), Work(id="b", after=("a",)), Work(id="c", after=("b",))]
    )
    done: list[str] = []
    while found := schedule.startable(done=done, slots=9):
        done += ids(found)

    assert sorted(done) == ["a", "b", "c"]


@given(seed=st.integers(0, 10_000), slots=st.integers(1, 5))
def test_all_work_is_done_in_an_order_that_the_dependencies_permit(seed: int, slots: int) -> None:
    dice = random.Random(seed)
    names = [str(number) for number in range(dice.randint(1, 20))]
    works = [
        Work(
            id=name,
            after=tuple(dice.sample(names, min(len(names), dice.randint(0, 2)))),
            files=tuple(dice.sample(["a", "a/b", "c"], dice.randint(0, 2))),
            size=dice.randint(1, 5),
        )
        for name in names
    ]
    schedule = Schedule(works=works)
    done: list[str] = []
    running: list[str] = []
    while len(done) < len(works):
        started = schedule.startable(done=done, running=running, slots=slots - len(running))
        assert len(running) + len(started) <= slots
        assert started or running
        for work in started:
            assert {*schedule.after[work.id]} <= {*done}
        running += ids(started)
        done.append(running.pop(dice.randrange(len(running))))

    assert sorted(done) == sorted(names)
