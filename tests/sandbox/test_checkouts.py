"""Commands in a checkout of HEAD, where a phase is verified."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from gsd_core import Place, SandboxedCommand
from gsd_core.git import Git
from gsd_core.run.checkout import checkout_of
from gsd_core.run.private_home import private_home
from gsd_core.run.sandbox import Sandbox
from gsd_core.testing import make_hooks
from gsd_plugins import bubblewrap
from tests.e2e.project import EXAMPLE, REHEARSAL, Project, no_problems, plugin
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


def test_a_folder_in_the_hidden_git_directory_is_seen_in_a_checkout_and_nothing_else_there(
    project: Path,
) -> None:
    require_sandbox()
    config = project / ".git" / "gsd" / "rehearsal" / "1" / "claude"
    config.mkdir(parents=True)
    (config.parent / "secret").touch()
    (file := project / ".git" / "gsd" / "list").write_text("listed\n")
    places = (Place(path=config, source=config, writable=True), Place(path=file, source=file))
    script = 'touch "$1/made"; cat "$2"; (echo >> "$2" || touch "$1/../made") 2>/dev/null; find "$3" -type f'
    words = ("sh", "-c", script, "sh", str(config), str(file), str(project / ".git"))

    async def check() -> str:
        hooks = make_hooks(bubblewrap=bubblewrap)
        sandbox = Sandbox(root=project, hooks=hooks, name="bubblewrap", home=private_home(project))
        async with checkout_of(Git(project)) as checkout:
            assert checkout is not None
            async with sandbox.around(checkout.tree) as inside:
                # Twice: the second one finds the folders that the first one needed.
                outputs = [await started(await inside.command(words, {}, places=places)) for _ in range(2)]
        assert outputs[0] == outputs[1]
        return outputs[0]

    async def started(command: SandboxedCommand) -> str:
        done = await asyncio.to_thread(
            subprocess.run,
            command.command,
            env=dict(command.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{done.stdout}{done.stderr}"

    seen = [str(path.relative_to(project / ".git")) for path in (config / "made", file)]
    lines = asyncio.run(check()).splitlines()
    assert lines[0] == "listed"
    assert sorted(Path(line).relative_to(project / ".git").as_posix() for line in lines[1:]) == sorted(seen)
    assert (config / "made").exists()
    assert not (config.parent / "made").exists()


COPIES = '''
"""Execute plans in work trees, and verify in a copy of the project."""
import asyncio, shutil, subprocess, tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from gsd_core import implements
from gsd_core.hookspecs import gsd_workspace


@implements(gsd_workspace)
async def copy(step):
    elsewhere = {"verify": copied, "execute": work_tree}
    return elsewhere[step.kind](step) if step.kind in elsewhere else None


@asynccontextmanager
async def work_tree(step):
    tree = Path(f"{step.project}-{step.plan.id}")
    if not tree.exists():
        command = "git", "-C", str(step.project), "worktree", "add", "--detach", str(tree), "HEAD"
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    with Path(step.project, ".git", "copies").open("a") as file:
        file.write(f"{step.id}\\n")
    yield tree


@asynccontextmanager
async def copied(step):
    with tempfile.TemporaryDirectory() as folder:
        await asyncio.to_thread(shutil.copytree, step.project, Path(folder, "tree"))
        with Path(step.project, ".git", "copies").open("a") as file:
            file.write(f"{step.id}\\n")
        yield Path(folder, "tree")
'''


@pytest.mark.slow
def test_a_rehearsal_executes_and_verifies_in_workspaces_elsewhere(tmp_path: Path) -> None:
    require_sandbox()
    rehearsed = Project(tmp_path)
    rehearsed.create()
    rehearsed.environment = {"GSD_WORKSPACE": "own,inplace", **no_problems()}

    words = ("run", EXAMPLE, *REHEARSAL, "--yes", "--sandbox", "required")
    done = rehearsed.gsd(*plugin(rehearsed, COPIES), *words, limit=300)

    assert done.exit == 0, done.err
    used = (rehearsed.root / ".git" / "copies").read_text().splitlines()
    assert used == ["1/execute/01-01", "1/verify"]
