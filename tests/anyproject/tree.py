"""Planning trees made for a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def plan(*, wave: int = 1, after: str = "[]", head: str = "", body: str = "") -> str:
    """Return a PLAN.md."""
    body = body or '<tasks>\n<task type="auto"><name>Do it</name></task>\n</tasks>\n'
    return (
        f"---\nphase: x\nplan: 01\ntype: execute\nwave: {wave}\ndepends_on: {after}\n{head}"
        f"files_modified: [a.py]\nautonomous: true\nrequirements: [CORE-01]\n---\n{body}"
    )


def project(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Make a project with these files in its ``.planning/``."""
    for name, text in files.items():
        path = root / ".planning" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root
