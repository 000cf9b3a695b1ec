"""The private home folder of a project's confined processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def private_home(root: Path) -> Path:
    """Return the home folder for the confined processes of the project at *root*; make it if needed.

    Call it once at the start of a run.
    """
    raise NotImplementedError


def home_environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return *environment* with ``HOME`` and the folders of package managers in *home*."""
    raise NotImplementedError
