"""A repository that its user did not write, and the user's own folder for trust outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.bench import Bench, repository


@pytest.fixture(autouse=True)
def _own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GSD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    # The private home of what is confined is made in the user's cache folder.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "T")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.org")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(repository(tmp_path / "project"))


@pytest.fixture
def idea(tmp_path: Path) -> Path:
    path = tmp_path / "idea.md"
    path.write_text("# A greeter\n\nIt greets people by name.\n")
    return path
