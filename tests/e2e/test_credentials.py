"""Missing or refused credentials: an immediate error with a hint, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_plugins.rehearsal.api import Failure, MessagesApi
from tests.e2e.project import EXAMPLE, Project, defects, no_problems

CLAUDE = ("--agent", "claude")


def listing(folder: Path) -> set[str]:
    """Return the files in a folder, except those of the test itself and of git's own init."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_without_credentials_nothing_is_created(project: Project) -> None:
    done = project.gsd("run", EXAMPLE, *CLAUDE, "-C", "project", "--yes", GIT_AUTHOR_NAME="T")

    assert done.exit == 4
    assert done.seconds < 5
    assert "claude auth login" in done.err or "auth login" in done.err
    assert "ANTHROPIC_API_KEY" in done.err
    assert "--agent rehearsal" in done.err
    assert not project.root.exists()


def test_without_credentials_nothing_is_written_to_a_project(project: Project) -> None:
    project.create()
    before = listing(project.root)
    done = project.gsd("run", EXAMPLE, *CLAUDE, "--yes")

    assert done.exit == 4
    assert listing(project.root) == before


REFUSALS = [
    (401, "authentication_error"),
    pytest.param(403, "permission_error", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("status", "kind"), REFUSALS)
def test_refused_credentials_end_the_run_within_ten_seconds(project: Project, status: int, kind: str) -> None:
    project.create()
    with MessagesApi(lambda request: Failure(status, kind, "invalid x-api-key")) as api:
        project.environment = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-bad-key-of-mine"}
        done = project.gsd("run", EXAMPLE, *CLAUDE, "--yes")

    assert done.exit == 4
    assert done.seconds < 10
    assert "claude auth login" in done.err
    assert "--agent rehearsal" in done.err
    assert "sk-bad-key-of-mine" not in done.err
    assert project.leftovers() == []


@pytest.mark.slow
def test_a_run_whose_credentials_were_refused_can_be_finished(project: Project) -> None:
    project.create()
    with MessagesApi(lambda request: Failure(401, "authentication_error", "no")) as api:
        project.environment = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "sk-bad"}
        refused = project.gsd("run", EXAMPLE, *CLAUDE, "--yes")
    project.environment = no_problems()
    done = project.gsd("resume", "-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--yes")

    assert refused.exit == 4
    assert done.exit == 0, done.err
    assert list(defects(project)) == []
