"""A project with planning files that somebody else made, in a separate repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.e2e.project import Done, Project
from tests.existing_projects.mutations import GOOD
from tests.hostile.tricks import SECRET, Hostile, environment
from tests.run.harness import git


@attrs.frozen
class Scene:
    """A project, the tricks planted in it, and what the commands printed."""

    project: Project
    at: Hostile
    outputs: list[Done] = attrs.field(factory=list[Done])

    def gsd(self, *args: str | Path, limit: float = 30, **env: str) -> Done:
        """Run ``gsd`` with secrets in its environment, for at most *limit* seconds."""
        self.project.environment = environment(env)
        self.outputs.append(self.project.gsd(*args, limit=limit))
        return self.outputs[-1]

    def problems(self) -> Iterator[str]:
        """Yield what went wrong: a program ran, or something outside was read or changed."""
        yield from ([f"ran: {self.at.ran[:300]}"] if self.at.ran else [])
        yield from (f"changed outside: {name}: {text}" for name, text in self.at.changes_outside().items())
        for done in self.outputs:
            text = done.out + done.err
            yield from ([f"a secret was read: {text}"] if SECRET in text else [])
            yield from (
                [f"an internal error: {text}"] if "Traceback" in text or "please report" in text else []
            )
            yield from ([f"exit {done.exit}: {text}"] if done.exit not in (0, 1, 2, 3) else [])


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A project with one phase, committed."""
    project = Project(tmp_path)
    project.create()
    for name, text in GOOD.items():
        file = project.root / ".planning" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (project.root / "src").mkdir()
    (project.root / "a.py").write_text("import b\n")
    (project.root / "src" / "c.py").write_text("c = 1\n")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "one")
    (tmp_path / "outside" / "home").mkdir(parents=True)
    yield Scene(project, Hostile(root=project.root, outside=tmp_path / "outside"))
    assert not project.clear()
