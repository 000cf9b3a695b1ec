"""Answers: one class gives both the agent's JSON schema and the parsed value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gsd_plugins.native.answers import (
    InvalidAnswer,
    LinkAnswer,
    PlansAnswer,
    RoadmapAnswer,
    TaskDone,
    VerdictAnswer,
    VerdictsAnswer,
    parse_answer,
    schema_of,
    validate_answer,
)


def test_a_schema_has_types_choices_and_required_keys() -> None:
    schema = schema_of(VerdictAnswer)
    properties = schema["properties"]

    assert properties["status"] == {"type": "string", "enum": ["holds", "fails", "uncertain", "human"]}
    assert properties["missing"] == {"type": "array", "items": {"type": "string"}}
    assert properties["citations"]["items"]["type"] == "object"
    assert schema["required"] == ["id", "status", "evidence", "reason", "missing"]
    assert schema["additionalProperties"] is False


def test_a_json_key_can_be_a_name_that_python_does_not_allow() -> None:
    link = parse_answer(LinkAnswer, {"from": "a.py", "to": "b.py", "via": "import"})

    assert list(schema_of(LinkAnswer)["properties"]) == ["from", "to", "via", "pattern"]
    assert (link.source, link.target, link.pattern) == ("a.py", "b.py", "")


def test_optional_task_fields_are_not_required() -> None:
    task = schema_of(PlansAnswer)["properties"]["plans"]["items"]["properties"]["tasks"]["items"]

    assert task["required"] == ["name", "files", "action", "verify", "done"]


def objects(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object schema inside a schema."""
    if node.get("type") == "object":
        yield node
        for part in node["properties"].values():
            yield from objects(part)
    elif node.get("type") == "array":
        yield from objects(node["items"])


@pytest.mark.parametrize("kind", [RoadmapAnswer, PlansAnswer, VerdictsAnswer, TaskDone])
def test_no_schema_allows_additional_properties(kind: type) -> None:
    found = list(objects(schema_of(kind)))

    assert found
    assert all(node["additionalProperties"] is False for node in found)


def test_every_problem_is_reported_with_its_path() -> None:
    value = {"id": 1, "status": "maybe", "evidence": "", "missing": [None]}
    with pytest.raises(InvalidAnswer) as caught:
        parse_answer(VerdictAnswer, value)

    problems = caught.value.problems
    assert problems == validate_answer(VerdictAnswer, value)
    assert [problem.split()[0] for problem in problems] == ["id:", "status:", "reason", "missing[0]:"]
    assert ["string" in problems[0], "holds" in problems[1], "missing" in problems[2]] == [True] * 3


def test_a_valid_answer_has_no_problems_even_with_unknown_keys() -> None:
    assert validate_answer(TaskDone, {"task": 1, "files": [], "note": "", "mood": "fine"}) == ()


def test_a_boolean_is_not_an_integer() -> None:
    with pytest.raises(InvalidAnswer, match=r"task: .*integer, got True"):
        parse_answer(TaskDone, {"task": True, "files": [], "note": ""})


def test_an_unhashable_status_is_a_problem() -> None:
    with pytest.raises(InvalidAnswer, match="expected one of"):
        parse_answer(
            VerdictAnswer, {"id": "x", "status": ["holds"], "evidence": "", "reason": "", "missing": []}
        )
