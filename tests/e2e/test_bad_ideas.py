"""Invalid ideas: the error says what is wrong and what to do, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.project import FAKE, Project

pytestmark = pytest.mark.slow

BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b" \n\n"), "is empty"),
    "binary": (lambda path: path.write_bytes(b"\x89PNG\r\n\0\0"), "is binary"),
    "huge": (lambda path: path.write_bytes(b"word " * 200_000), "is larger than"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "latin": (lambda path: path.write_bytes("Größe".encode("latin-1")), "is not UTF-8"),
    "missing": (lambda path: None, "no idea document"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_idea_is_an_error_with_a_hint_and_nothing_is_written(project: Project, name: str) -> None:
    make, reason = BAD[name]
    idea = project.base / "idea.md"
    make(idea)
    done = project.gsd("run", idea, *FAKE, "-C", "project", "--yes", limit=20)

    assert done.exit == 2
    assert done.out == ""
    assert reason in done.err.splitlines()[0]
    assert done.err.splitlines()[0].startswith("error: ")
    assert done.err.splitlines()[-1].startswith("hint: ")
    assert "Traceback" not in done.err
    assert not project.root.exists()


def test_a_missing_idea_is_reported(project: Project) -> None:
    project.create()
    done = project.gsd("run", *FAKE, "--yes")

    assert done.exit == 2
    assert "no idea" in done.err
    assert not (project.root / ".git" / "gsd").exists()


def test_an_empty_standard_input_is_not_an_idea(project: Project) -> None:
    done = project.gsd("run", "-", *FAKE, "-C", "project", "--yes")

    assert done.exit == 2
    assert "is empty" in done.err
    assert not project.root.exists()
