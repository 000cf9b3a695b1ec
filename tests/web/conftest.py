"""Every test here has a state folder and a registry of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder."""
    for name in [name for name in os.environ if name.startswith("GSD_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "state"
    monkeypatch.setenv("GSD_STATE_DIR", str(folder))
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    monkeypatch.setenv("GSD_SANDBOX_CACHES", "false")
    return folder
