"""Planning trees for tests: ours in ``tests/data``, made ones, and real ones where they are at hand."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[1] / "data"
TREES = sorted(path.parent for path in DATA.glob("*/expected.toml"))
"""Projects of our own, one for each variant of the format; see ``tests/data/README.md``."""

CORPUS = Path(__file__).parents[2] / "../shared/corpus"
CORPUS_PROJECTS = sorted(CORPUS.glob("projects/*"))
"""Real projects of others, which are not part of the repository."""

NO_CORPUS = (
    "no real projects in ../shared/corpus; they are optional, also in CI, as tests/data covers the format"
)
_corpus_parameters = [pytest.param(path, id=path.name) for path in CORPUS_PROJECTS] or [
    pytest.param(None, id="corpus", marks=pytest.mark.skip(reason=NO_CORPUS))
]
each_tree = pytest.mark.parametrize("project", [pytest.param(path, id=path.name) for path in TREES])
each_corpus_project = pytest.mark.parametrize("project", _corpus_parameters)
each_project = pytest.mark.parametrize(
    "project", [*(pytest.param(path, id=path.name) for path in TREES), *_corpus_parameters]
)


def expected(project: Path) -> dict[str, Any]:
    """Return what ``expected.toml`` says about a tree of ours."""
    return tomllib.loads((project / "expected.toml").read_text(encoding="utf-8"))


@cache
def _gsd_reports() -> dict[str, Any]:
    reports: dict[str, Any] = json.loads((CORPUS / "expected.json").read_text(encoding="utf-8"))
    return reports


def gsd_report(project: Path) -> dict[str, Any]:
    """Return what GSD's own tool reports about a real project: ``roadmap``, and ``plans`` by folder."""
    report: dict[str, Any] = _gsd_reports()[project.name]
    return report


def plan_text(*, wave: int = 1, depends_on: str = "[]", frontmatter: str = "", body: str = "") -> str:
    """Return a PLAN.md; *frontmatter* is added to the usual keys and ends with a newline."""
    body = body or '<tasks>\n<task type="auto"><name>Do it</name></task>\n</tasks>\n'
    return (
        f"---\nphase: x\nplan: 01\ntype: execute\nwave: {wave}\ndepends_on: {depends_on}\n{frontmatter}"
        f"files_modified: [a.py]\nautonomous: true\nrequirements: [CORE-01]\n---\n{body}"
    )


def make_project(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write these files below the ``.planning/`` of a project, and return the project's folder."""
    for name, text in files.items():
        path = root / ".planning" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root
