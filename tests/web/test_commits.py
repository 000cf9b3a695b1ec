"""Commits on the page: only those of the project's runs, bounded, and without what could deceive a reader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from gsd_core.project_details import MAX_PATCH
from tests.run.harness import git
from tests.web.asgi import Response, ended_session, serving


@attrs.frozen(kw_only=True)
class Repository:
    """A repository with commits of a run, and some that no run has made."""

    root: Path

    def commit(self, message: str, files: Mapping[str, bytes]) -> str:
        for name, data in files.items():
            (self.root / name).write_bytes(data)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.root, "rev-parse", "HEAD").strip()

    def commit_of_run(self, subject: str, files: Mapping[str, bytes], step: str = "1/execute/01-01") -> str:
        return self.commit(f"{subject}\n\nGSD-Run: r-1\nGSD-Step: {step}", files)

    def show(self, *shas: str) -> list[Response]:
        """Ask the page for commits."""
        session = ended_session(self.root)

        async def asked() -> list[Response]:
            async with serving() as client:
                return [await client.get(f"/api/v1/sessions/{session}/commits/{sha}") for sha in shas]

        return asyncio.run(asked())


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    return Repository(root=root)


def test_commits_that_no_run_has_made_are_not_shown(repository: Repository) -> None:
    theirs = repository.commit("their own", {"private.txt": b"their private notes\n"})
    mine = repository.commit_of_run("of a run", {"a.txt": b"shown\n"})

    shown, short, hidden, ref = repository.show(mine, mine[:9], theirs, "HEAD")

    assert shown.status == short.status == 200
    assert "+shown" in shown.data["patch"]
    assert (shown.data["sha"], short.data["sha"], shown.data["phase"]) == (mine, mine, "1")
    assert [one.status for one in (hidden, ref)] == [404, 404]
    assert b"private" not in hidden.body


def test_a_forged_trailer_is_no_internal_error(repository: Repository) -> None:
    sha = repository.commit_of_run("forged", {"a.txt": b"x\n"}, "../../etc/passwd\x1b[2J")

    [found] = repository.show(sha)

    assert (found.status, found.data["phase"]) == (200, None)


@pytest.mark.slow
def test_a_patch_is_bounded_however_large_the_commit_is(repository: Repository) -> None:
    lines = {f"f{number}.txt": b"0123456789\n" * 60_000 for number in range(10)}
    many = repository.commit_of_run("many", lines)
    large = repository.commit_of_run("large", {"large.txt": b"a line of a large file\n" * 500_000})
    binary = repository.commit_of_run("binary", {"image.png": bytes(range(256)) * 1000})
    began = time.monotonic()

    found, big, image = repository.show(many, large, binary)

    assert time.monotonic() - began < 10
    assert found.data["truncated"] is True
    assert MAX_PATCH // 2 < len(found.data["patch"]) <= MAX_PATCH
    for one, name in ((big, "large.txt"), (image, "image.png")):
        assert one.data["truncated"] is False
        assert one.data["patch"].splitlines()[-1] == f"Binary files /dev/null and b/{name} differ"


@pytest.mark.slow
def test_a_secret_at_the_end_of_a_patch_is_not_shown_in_part(repository: Repository) -> None:
    padding = (b"x" * 79 + b"\n") * ((MAX_PATCH - 50_000) // 80)
    secrets = b"".join(f"token = ghp_{number:036}\n".encode() for number in range(2000))
    sha = repository.commit_of_run("secret", {"a.txt": padding, "b.txt": secrets})

    [found] = repository.show(sha)

    assert found.data["truncated"] is True
    assert "+token = " in found.data["patch"]
    assert "ghp_" not in found.data["patch"]


def test_what_controls_a_terminal_or_a_reader_is_removed(repository: Repository) -> None:
    name = "a\x1b]52;c;aGk=\x07\u202egnp.exe\u202c<img src=x>.txt"
    text = b"\x1b[2Jif admin\xe2\x81\xa6: pass\xe2\x80\xae \xff\xfe\x00\n"
    sha = repository.commit_of_run("\x1b[31m\u202esubject", {name: text, "b.txt": text[:20]})

    [found] = repository.show(sha)

    shown = found.data["patch"] + found.data["subject"]
    for bad in ("\x1b", "\x07", "\u202e", "\u2066", "\0"):
        assert bad not in shown
    assert "<img src=x>" in shown  # text, which the page does not take for HTML
    assert "content-security-policy" in found.headers
    assert found.headers["content-type"] == "application/json"


def test_a_link_in_a_commit_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("outside of the project")
    (repository.root / "link.txt").symlink_to(tmp_path / "outside.txt")
    sha = repository.commit_of_run("link", {})

    [found] = repository.show(sha)

    assert "outside of the project" not in found.data["patch"]


def test_a_broken_repository_has_no_commits(repository: Repository) -> None:
    sha = repository.commit_of_run("one", {})
    (repository.root / ".git" / "HEAD").unlink()

    [found] = repository.show(sha)

    assert found.status in (404, 409), found.body
