"""A place for ``gsd`` to run in; processes that it leaves running are ended and fail the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    assert not found.clear()
