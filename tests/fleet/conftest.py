"""A project whose plans are executed elsewhere; a process that is left behind is ended and fails the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.project import Project, no_problems


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    found = Project(tmp_path, environment={**no_problems(CLI="0"), "GSD_STATE_DIR": str(tmp_path / "state")})
    yield found
    assert not found.clear()
