"""A project's folder within somebody else's repository."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gsd_core.git import Git


def test_a_folder_inside_a_repository_becomes_a_repository_of_its_own(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    asyncio.run(Git(tmp_path).init())
    asyncio.run(Git(inner).init())

    assert asyncio.run(Git(inner).top()).resolve() == inner.resolve()


def test_a_repository_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    asyncio.run(Git(tmp_path).init())
    before = (tmp_path / ".git" / "config").read_bytes()
    asyncio.run(Git(tmp_path).init())

    assert (tmp_path / ".git" / "config").read_bytes() == before
