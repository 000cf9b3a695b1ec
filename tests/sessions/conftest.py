"""Every test here has a registry of its own, and ends the processes of its sessions."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """Return the state folder; afterwards stop the sessions that a failed test left running."""
    for name in [name for name in os.environ if name.startswith("GSD_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "state"
    monkeypatch.setenv("GSD_STATE_DIR", str(folder))
    monkeypatch.setenv("GSD_CONFIG", str(tmp_path / "no-config.toml"))
    monkeypatch.setenv("GSD_SANDBOX_CACHES", "false")
    yield folder
    from gsd_plugins.sessions import host

    for session in host.list_sessions(everything=False):
        host.stop_session(session.id)
