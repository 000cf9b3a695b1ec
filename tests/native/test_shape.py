"""Answers: the schema that an agent is given and the values that are read follow one class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gsd_plugins.native.schemas import (
    PLANS,
    ROADMAP,
    TASK_DONE,
    VERDICTS,
    LinkAnswer,
    TaskDone,
    VerdictAnswer,
)
from gsd_plugins.native.shape import Unreadable, read, schema_of


def test_a_schema_names_types_choices_and_what_is_required() -> None:
    assert schema_of(VerdictAnswer) == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "status": {"type": "string", "enum": ["holds", "fails", "uncertain", "human"]},
            "evidence": {"type": "string"},
            "reason": {"type": "string"},
            "missing": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "status", "evidence", "reason", "missing"],
        "additionalProperties": False,
    }


def test_names_that_python_does_not_allow_are_kept_in_json() -> None:
    link = read(LinkAnswer, {"from": "a.py", "to": "b.py", "via": "import"})

    assert list(schema_of(LinkAnswer)["properties"]) == ["from", "to", "via", "pattern"]
    assert (link.source, link.target, link.pattern) == ("a.py", "b.py", "")


def test_optional_parts_of_a_task_are_not_required() -> None:
    task = PLANS["properties"]["plans"]["items"]["properties"]["tasks"]["items"]

    assert task["required"] == ["name", "files", "action", "verify", "done"]


def objects(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object's schema within a schema."""
    if node.get("type") == "object":
        yield node
        for part in node["properties"].values():
            yield from objects(part)
    elif node.get("type") == "array":
        yield from objects(node["items"])


@pytest.mark.parametrize(
    ("schema", "count"), [(ROADMAP, 6), (PLANS, 6), (VERDICTS, 2), (TASK_DONE.schema, 1)]
)
def test_no_object_takes_more_than_it_names(schema: Mapping[str, Any], count: int) -> None:
    found = list(objects(schema))

    assert len(found) == count
    assert all(node["additionalProperties"] is False for node in found)


def test_every_fault_is_told_with_its_place() -> None:
    with pytest.raises(Unreadable) as caught:
        read(VerdictAnswer, {"id": 1, "status": "maybe", "evidence": "", "reason": "", "missing": [None]})

    assert caught.value.complaints == (
        "id: expected a text, not 1",
        "status: expected one of holds, fails, uncertain, human, not 'maybe'",
        "missing[0]: expected a text, not None",
    )


def test_a_truth_value_is_no_number() -> None:
    with pytest.raises(Unreadable, match="whole number"):
        read(TaskDone, {"task": True, "files": [], "note": ""})


def test_a_status_that_cannot_be_hashed_is_a_fault() -> None:
    with pytest.raises(Unreadable, match="expected one of"):
        read(VerdictAnswer, {"id": "x", "status": ["holds"], "evidence": "", "reason": "", "missing": []})
