"""Commands in a checkout of HEAD, where a phase is verified."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gsd_core.git import Git
from gsd_core.run.checkout import checkout_of
from tests.sandbox.box import Box, git, require_sandbox


@pytest.mark.parametrize("kind", ["top of the repository", "subfolder"])
def test_a_checkout_has_git_and_dependencies_and_cannot_change_the_project(project: Path, kind: str) -> None:
    require_sandbox()
    folder = project if kind.startswith("top") else project / "api"
    for name in (".gitignore", "node_modules/lib/index.js", "app.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("node_modules\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "second")
    git(project, "config", "remote.origin.url", "https://TOKEN@example.org/")

    async def check() -> str:
        async with checkout_of(Git(folder)) as checkout:
            assert checkout is not None
            box = Box.around(folder, checkout.tree)
            return box.out(
                """
                git log --oneline | wc -l; git status --porcelain; git stash list
                cat node_modules/lib/index.js; cat "$1/app.py"
                echo made > made; echo made > "$(git rev-parse --show-toplevel)/made-at-the-top"
                git add -A; git commit -qm third
                cat "$2/.git/config" 2>/dev/null | grep TOKEN
                (echo evil >> "$1/app.py") 2>/dev/null && echo changed the project
                (echo evil >> "$1/.planning/x"; echo evil >> "$2/.git/HEAD") 2>/dev/null && echo changed git
                true
                """,
                str(folder),
                str(project),
            )

    real = {path: path.read_bytes() for path in (project / ".git").rglob("*") if path.is_file()}
    assert asyncio.run(check()).splitlines() == ["2", "node_modules", "node_modules"]
    assert {path: path.read_bytes() for path in (project / ".git").rglob("*") if path.is_file()} == real
