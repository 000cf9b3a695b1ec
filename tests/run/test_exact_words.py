"""Exact words and numbers of requirements and decisions that no file of the project contains are named."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gsd_core.planning.model import PhaseView, Plan, Requirement
from gsd_core.run.verification import examine
from gsd_core.settings import LimitSettings
from gsd_core.testing import make_hooks

from . import harness as h
from .test_checkout import commit, write

CONTEXT = """<decisions>
## Implementation Decisions

### Empty days
- **D-01:** The line "free all day"
</decisions>
"""


def seen(root: Path, text: str) -> list[str]:
    """Return the observations about a phase with one requirement, whose only commit is HEAD."""
    write(root, "SUMMARY.md", f"`{h.git(root, 'rev-parse', 'HEAD').strip()}`\n")
    plan = Plan(id="01-01", phase="1", summary="SUMMARY.md")
    phase = PhaseView(
        project=root, number="1", name="Days", plans=(plan,), requirements=("DAY-01",), context=CONTEXT
    )
    requirements = [Requirement(id="DAY-01", text=text)]
    found = asyncio.run(examine(make_hooks(), LimitSettings(), phase, None, requirements))
    return [one.text for one in found.report.observations]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project that says "old words" before its last commit, and "free all day" since."""
    root = h.repository(tmp_path / "project")
    write(root, "days.py", "print('old words')\n")
    commit(root)
    write(root, "days.py", "LIMIT = 20  # --dry-run\nprint('Free all day')\n")
    write(root, "README.md", 'Prints "no such day".\n')
    write(root, "uv.lock", "no such day = 45\n")
    commit(root)
    return root


@pytest.mark.parametrize(
    "text",
    [
        'it says "free all day"',
        "at most 20 days",
        'it no longer says "old words"',
        "`days.py` prints days",
        "takes `--dry-run`",
    ],
)
def test_what_the_product_contains_or_contained_is_not_named(root: Path, text: str) -> None:
    assert seen(root, text) == []


def test_what_only_documents_and_lock_files_contain_is_named(root: Path) -> None:
    text = 'prints "no such day" for 45 days'

    assert seen(root, text) == ['DAY-01 says "no such day", 45 days, which no file of the project contains']


def test_a_decision_counts_too(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    write(root, "days.py", "print('none')\n")
    commit(root)

    assert seen(root, "") == ['D-01 says "free all day", which no file of the project contains']
