"""Every test here has a registry of its own, and ends the processes of its sessions."""

from __future__ import annotations

from tests.sessions.conftest import state

__all__ = ["state"]
