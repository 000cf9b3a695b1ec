"""Isolates tests from the user's settings and environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GSD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GSD_SANDBOX_CACHES", "false")
    identity = {"NAME": "T", "EMAIL": "t@example.org"}
    for role in ("AUTHOR", "COMMITTER"):
        for key, value in identity.items():
            monkeypatch.setenv(f"GIT_{role}_{key}", value)
