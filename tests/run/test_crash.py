"""A crash before or after any append, write or commit: the next start ends in the same tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field, frozen

from gsd_core.git import Git
from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.run.runtime import Effects, RunRequest

from . import harness as h

pytestmark = pytest.mark.slow


class Crash(BaseException):
    """Stands for the end of the process."""


@define
class Fuse:
    """Counts the points at which a process can die, and ends it at the *limit*-th."""

    limit: int | None = None
    points: list[str] = field(factory=list[str])

    def __call__(self, point: str) -> None:
        if self.limit is not None and len(self.points) >= self.limit:
            raise Crash(point)
        self.points.append(point)


@pytest.fixture(autouse=True)
def _git_uses_the_tests_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", h.BEGAN.isoformat())


@frozen(kw_only=True)
class CrashingEffects(Effects):
    """Effects that end the process when the fuse blows; a dead process writes nothing more."""

    fuse: Fuse

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        *,
        run: str,
        step: str,
        attempt: int,
        consumes: Collection[int] = (),
    ) -> Record:
        self.fuse(f"before {kind} {step}")
        record = super().append(kind, data, run=run, step=step, attempt=attempt, consumes=consumes)
        self.fuse(f"after {kind} {step}")
        return record

    def write(self, path: Path, text: str) -> None:
        self.fuse(f"before writing {path.name}")
        super().write(path, text)
        self.fuse(f"after writing {path.name}")

    async def fast_forward(self, commit: str) -> None:
        self.fuse("before fast-forward")
        await super().fast_forward(commit)
        self.fuse("after fast-forward")

    async def as_merge(self, commit: str, theirs: str, is_own: Callable[[str], bool]) -> str:
        self.fuse("before merge")
        merged = await super().as_merge(commit, theirs, is_own)
        self.fuse("after merge")
        return merged

    def move(self, path: str, target: str) -> None:
        self.fuse(f"before moving {path}")
        super().move(path, target)
        self.fuse(f"after moving {path}")

    def remove(self, path: str) -> None:
        self.fuse(f"before removing {path}")
        super().remove(path)
        self.fuse(f"after removing {path}")

    async def tag(self, name: str, commit: str, message: str) -> str:
        self.fuse(f"before tag {name}")
        tagged = await super().tag(name, commit, message)
        self.fuse(f"after tag {name}")
        return tagged

    async def commit(
        self,
        paths: Collection[str],
        subject: str,
        trailers: Mapping[str, str],
        *,
        verify: bool,
        empty: bool = False,
        body: str = "",
        text: str = "",
    ) -> str:
        self.fuse(f"before commit {subject}")
        commit = await super().commit(
            paths, subject, trailers, verify=verify, empty=empty, body=body, text=text
        )
        self.fuse(f"after commit {subject}")
        return commit


def with_crash(asked: RunRequest, fuse: Fuse) -> RunRequest:
    """Return the request with a process that the fuse ends."""

    def effects(journal: Journal, git: Git) -> Effects:
        return CrashingEffects(journal=journal, git=git, fuse=fuse)

    return evolve(asked, effects=effects, clock=lambda: h.BEGAN)


def ask(root: Path, fuse: Fuse | None = None) -> RunRequest:
    agent = h.one_phase(question=True)
    return with_crash(h.request(root, agent, given=h.idea()), fuse or Fuse())


def tree(root: Path) -> dict[str, str]:
    """Return every committed file with its content, without the commits' ids, and all uncommitted files."""
    paths = h.git(root, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
    contents = {path: (root / path).read_text() for path in paths if path}
    found = {path: re.sub(r"\b[0-9a-f]{7,40}\b", "COMMIT", text) for path, text in contents.items()}
    return found | {"git status": h.git(root, "status", "--porcelain")}


def crash_at(tmp_path: Path, number: int) -> tuple[str, Path]:
    """Crash a run at its *number*-th point and resume it; return the point and the project."""
    root = h.repository(tmp_path / f"at-{number}" / "project")
    fuse = Fuse(limit=number)
    with pytest.raises(Crash) as crash:
        h.do(ask(root, fuse))
    end = h.do(ask(root))
    assert end.outcome == "done", f"after a crash {crash.value}: {end}"
    return str(crash.value), root


def reference(tmp_path: Path) -> tuple[list[str], dict[str, str], list[tuple[str, str]]]:
    """Return the points of a run without a crash, its tree, and its trailers."""
    root, fuse = h.repository(tmp_path / "reference" / "project"), Fuse()
    assert h.do(ask(root, fuse)).outcome == "done"
    return fuse.points, tree(root), h.trailed(root)


def check(tmp_path: Path, numbers: Collection[int], expected: Any) -> None:
    _, files, commits = expected
    for number in numbers:
        point, root = crash_at(tmp_path, number)
        assert tree(root) == files, point
        assert h.trailed(root) == commits, point


# CI tries every sixteenth point; `nox -s long` the others.
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(16)]
)
def test_a_crash_at_any_point_ends_in_the_same_tree(tmp_path: Path, part: int) -> None:
    expected = reference(tmp_path)

    check(tmp_path, range(part, len(expected[0]), 16), expected)
