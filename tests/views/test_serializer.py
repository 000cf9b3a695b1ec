"""A serializer writes what its schema says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import frozen
from jsonschema import Draft202012Validator

from gsd_core.serializer import NUMBER, TEXT, Serializer


@frozen(kw_only=True)
class Part:
    """A part of a thing."""

    name: str
    size: int = 0


@frozen(kw_only=True)
class Thing:
    """Something with a field of each kind."""

    name: str = "thing"
    note: str = ""
    state: Literal["new", "old"] = "new"
    at: datetime = datetime(2030, 1, 1, tzinfo=UTC)
    took: timedelta = timedelta(seconds=1.5)
    dollars: Decimal | None = Decimal("0.10")
    folder: Path = Path("a/b")
    part: Part = Part(name="first", size=2)
    parts: tuple[Part, ...] = (Part(name="second"),)
    sizes: Mapping[str, int] = {"a": 1}

    @property
    def length(self) -> int:
        """The length of its name."""
        return len(self.name)


THING = Serializer(
    Thing,
    "name note? state at took dollars folder size=part.size length part parts sizes double more",
    parts=Serializer(Part, "name"),
    double=(NUMBER, lambda thing: 2 * thing.length),
    more=TEXT,
)


@pytest.mark.parametrize("thing", [Thing(), Thing(note="it is new", dollars=None, parts=())])
def test_what_is_written_is_what_the_schema_says(thing: Thing) -> None:
    data = THING.dump(thing, more="given")

    validator: Any = Draft202012Validator({**THING.schema, "additionalProperties": False})
    assert not list(validator.iter_errors(data))
    assert list(data) == list(THING.schema["properties"])
    assert (data["at"], data["took"], data["folder"]) == ("2030-01-01T00:00:00+00:00", 1.5, "a/b")
    assert (data["size"], data["length"], data["double"], data["more"]) == (2, 5, 10, "given")
    assert data["part"] == {"name": "first", "size": 2}


def test_an_empty_value_is_null_only_where_the_field_says_so() -> None:
    data = THING.dump(Thing(name="", dollars=None), more="")

    assert (data["name"], data["note"], data["dollars"]) == ("", None, None)
    assert THING.dump(Thing(), more="")["parts"] == [{"name": "second"}]
