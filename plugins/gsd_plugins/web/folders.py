"""Where the server keeps its files, and where those of the page are."""

from __future__ import annotations

from pathlib import Path

from gsd_core import state_folder

STATIC = Path(__file__).parent / "static"
"""The built page."""


def server_folder() -> Path:
    """Return the folder with the token files of the servers that run."""
    return state_folder() / "serve"
