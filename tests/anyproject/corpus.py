"""The real planning trees beside the repository, and what the peer's own tool says of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parents[2] / "../shared/corpus"
PROJECTS = sorted(CORPUS.glob("projects/*")) if CORPUS.is_dir() else []

needs_corpus = pytest.mark.skipif(not PROJECTS, reason="no corpus beside the repository (../shared/corpus)")
each_project = pytest.mark.parametrize("project", PROJECTS, ids=[path.name for path in PROJECTS])


@cache
def expected() -> dict[str, Any]:
    """Return what the peer says, by project."""
    told: dict[str, Any] = json.loads((CORPUS / "expected.json").read_text("utf-8"))
    return told
