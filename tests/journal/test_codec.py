"""Every public value passes through JSON unchanged."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gsd_core
from gsd_core import (
    AgentTask,
    Answer,
    Change,
    Done,
    Gap,
    GapReport,
    Limits,
    ListPlans,
    Permission,
    StepRequest,
    StepResult,
    TickPhase,
    Usage,
    Verified,
    api,
)
from gsd_core.codec import structure, unstructure
from gsd_core.errors import JournalError
from gsd_core.model.step import Outcome

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
# These have functions, and are not stored.
CLASSES: list[Any] = sorted(
    {cls for name in vars(api) if attrs.has(cls := getattr(api, name))}
    - {gsd_core.StepType, gsd_core.CommandOptions, gsd_core.Spend}
    - {gsd_core.UnitProcess, gsd_core.UnitProcesses},
    key=lambda cls: cls.__name__,
)
UNIONS: list[Any] = [Outcome, Change, Permission]

st.register_type_strategy(datetime, st.datetimes(timezones=ZONES))
st.register_type_strategy(timedelta, st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36500)))
st.register_type_strategy(Decimal, st.decimals(allow_nan=False))
st.register_type_strategy(Path, st.text("ab./ ü", min_size=1).map(Path))


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a class, from the types of its fields."""
    if not attrs.has(kind):
        return st.one_of([values(member) for member in get_args(kind)])
    attrs.resolve_types(kind)
    if kind is Usage:
        return usages()
    return st.builds(kind, **{field.name: of(field.type) for field in attrs.fields(kind) if field.init})


def usages() -> st.SearchStrategy[Usage]:
    """Return a strategy for usages, which are never negative."""
    number = st.integers(0, 10**15)
    dollars = st.none() | st.decimals(0, 10**15, allow_nan=False)
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "turns")
    bases = st.sampled_from(["reported", "priced", "unknown"])
    return st.builds(Usage, dollars=dollars, basis=bases, **dict.fromkeys(names, number))


def of(kind: Any) -> st.SearchStrategy[Any]:
    if kind is Any:
        return JSON
    if attrs.has(kind):
        return values(kind)
    arguments = get_args(kind)
    if hasattr(kind, "__origin__"):
        return of_generic(kind.__origin__, arguments)
    if arguments:
        return st.one_of([of(member) for member in arguments])
    return from_type(kind)


def from_type(kind: type[Any]) -> st.SearchStrategy[Any]:
    return st.from_type(kind)


def of_generic(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(of(arguments[0]), max_size=2).map(tuple)
    if origin is frozenset:
        return st.frozensets(of(arguments[0]), max_size=2)
    if origin is tuple:
        return st.tuples(*map(of, arguments))
    if hasattr(origin, "keys"):
        return st.dictionaries(st.text(), of(arguments[1]), max_size=2)
    return st.sampled_from(arguments)


def through_json(value: Any, kind: Any) -> Any:
    return structure(json.loads(json.dumps(unstructure(value, kind))), kind)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_public_class_comes_back_the_same(kind: Any) -> None:
    @given(values(kind))
    # There are many classes, so each one gets few examples.
    @settings(max_examples=settings().max_examples // 8)
    def comes_back(value: Any) -> None:
        assert through_json(value, kind) == value

    comes_back()


@pytest.mark.parametrize("kind", UNIONS, ids=["Outcome", "Change", "Permission"])
def test_a_union_comes_back_as_the_same_class(kind: Any) -> None:
    @given(values(kind))
    @settings(max_examples=settings().max_examples // 3)
    def comes_back(value: Any) -> None:
        back = through_json(value, kind)
        assert back == value
        assert type(back) is type(value)

    comes_back()


def test_collections_of_a_union_come_back() -> None:
    changes = (TickPhase(phase="1", date="2026-01-01"), ListPlans(phase="1", plans=(("01-01", "x"),)))

    assert through_json(changes, tuple[Change, ...]) == changes


def test_the_stored_data_is_readable() -> None:
    result = StepResult(
        subject="docs: verify",
        outcome=Verified(report=GapReport(gaps=(Gap(truth="It works", reason="it does not"),))),
        changes=(TickPhase(phase="1", date="2026-01-01"),),
    )
    data = unstructure(result)

    assert data["outcome"]["type"] == "Verified"
    assert data["outcome"]["report"]["gaps"][0]["truth"] == "It works"
    assert data["changes"] == [{"type": "TickPhase", "phase": "1", "date": "2026-01-01"}]


def test_the_stored_units_are_seconds_dollars_as_text_and_aware_times() -> None:
    limits = Limits(dollars=Decimal("1.10"), idle=timedelta(minutes=1, milliseconds=5))
    answer = Answer(question="q", at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))

    assert unstructure(limits) == {"dollars": "1.10", "turns": None, "idle": 60.005, "hard": 3600.0}
    assert unstructure(answer)["at"] == "2026-01-02T03:04:05+00:00"


def test_a_key_of_a_newer_version_is_ignored() -> None:
    assert structure({"turns": 3, "colour": "blue"}, Usage) == Usage(turns=3)


def test_a_missing_outcome_is_the_default_one() -> None:
    assert structure({"subject": "x"}, StepResult) == StepResult(subject="x", outcome=Done())


@pytest.mark.parametrize(
    ("data", "kind", "where"),
    [
        ({"truth": 3, "reason": "x"}, Gap, "$.truth"),
        ({"reason": "x"}, Gap, "$.truth"),
        ({"turns": "3"}, Usage, "$.turns"),
        ({"turns": True}, Usage, "$.turns"),
        ({"dollars": 1.5}, Usage, "$.dollars"),
        ({"dollars": "much"}, Usage, "$.dollars"),
        ({"basis": "guessed"}, Usage, "$.basis"),
        ({"question": "q", "at": "2026-01-02T03:04:05"}, Answer, "$.at"),
        ({"subject": "x", "outcome": {"type": "Nonsense"}}, StepResult, "$.outcome"),
        ({"subject": "x", "files": [{"path": "a", "text": 1}]}, StepResult, "$.files[0].text"),
    ],
)
def test_a_mismatch_is_named_by_its_path(data: Any, kind: Any, where: str) -> None:
    with pytest.raises(JournalError) as caught:
        structure(data, kind)

    assert f"@ {where}" in str(caught.value)
    assert kind.__name__ in str(caught.value)


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_data_of_the_wrong_shape_is_an_error_not_a_crash(data: Any) -> None:
    with pytest.raises(JournalError):
        structure(data, StepRequest)


def test_a_time_without_a_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="zone"):
        unstructure(Answer(question="q", at=datetime(2026, 1, 2)))  # noqa: DTZ001 - the mistake itself


def test_all_tools_and_no_tools_are_distinguished() -> None:
    task = AgentTask(step="s", role="planner", prompt="p", tree=Path("x"), tools=None)

    assert through_json(task, AgentTask).tools is None
    assert through_json(attrs.evolve(task, tools=()), AgentTask).tools == ()
