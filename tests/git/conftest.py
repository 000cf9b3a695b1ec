from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's git configuration out of the tests."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository without a commit, with an identity."""
    folder = tmp_path / "project"
    folder.mkdir()
    for command in (
        ["init", "-q"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture
def sh(root: Path) -> Run:
    """Plain git in the repository, as a user would run it."""

    def run(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)
        return os.fsdecode(done.stdout).removesuffix("\n")

    return run
