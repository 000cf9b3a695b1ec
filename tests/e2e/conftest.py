"""A project for ``gsd`` to run in; a process that it leaves behind is ended and fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(tmp_path)
    yield found
    assert not found.clear()
