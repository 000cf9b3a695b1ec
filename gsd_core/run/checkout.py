"""A throwaway checkout of HEAD: what a commit promises has to work without the rest of the user's folder.

The checkout is a separate repository, in a private temporary folder, and so is each submodule. It shares the
real repository's objects by ``objects/info/alternates``, so it costs only the files themselves, and nothing
that runs in it can change the real history. Installed dependencies and local configuration, which are ignored
on purpose, are brought along: see :func:`gsd_core.git.ignored.bring_ignored`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.committed import GITLINK
from gsd_core.git.history import existing_commits
from gsd_core.git.ignored import bring_ignored
from gsd_core.git.repository import common_dir, head, is_repository, prefix, top
from gsd_core.git.untrusted import refuse_filters
from gsd_core.model.agent import ToolUse
from gsd_core.model.checks import CheckResult
from gsd_core.model.sandbox import Place

from .commands import CommandGate, check
from .temporary import make_folder, remove_folder, sweep_folders


@attrs.frozen(kw_only=True)
class Checkout:
    """A checkout of *commit*; *tree* is the folder in it that stands for the project's folder *project*.

    *outer* is the private folder around it. *places* are where links in it lead to, and have to be seen in a
    sandbox.
    """

    commit: str
    outer: Path
    tree: Path
    project: Path
    places: tuple[Place, ...] = ()

    async def run(
        self,
        command: str,
        gate: CommandGate,
        limit: timedelta,
        *,
        reported: bool | None = None,
        again: CommandGate | None = None,
    ) -> CheckResult:
        """Run *command* here.

        The project's absolute path in the command means the checkout, and the other way round in the
        output. The *gate* decides about the command as it would run in the project. *reported*: whether test
        runners report their cases; ``None``: they do, but a command that fails so runs once more without,
        if the gate *again* allows it.
        """
        here = _replaced(command, self.project, self.tree)

        def in_project(use: ToolUse) -> ToolUse:
            # Here, linked dependencies would be paths outside the tree, and need an approval.
            same = {**use.input, "command": _replaced(here, self.tree, self.project)}
            return attrs.evolve(use, tree=self.project, input=same)

        def run(by: CommandGate, reports: Path | None = None) -> Awaitable[CheckResult]:
            places = self.places
            return check(by, here, self.tree, limit, places=places, judged_as=in_project, reports=reports)

        if reported is False:
            result = await run(gate)
        else:
            result = await run(gate, Path(tempfile.mkdtemp(dir=self.outer)))
            # A runner may not know the reporter's options, and a script may expect another output.
            if reported is None and result.exit:
                plain = await run(again or gate)
                if plain.exit is not None:
                    result = plain if plain.ok else attrs.evolve(plain, cases=result.cases)
        return attrs.evolve(result, command=command, output=_replaced(result.output, self.tree, self.project))


def _replaced(text: str, path: Path, by: Path) -> str:
    """Replace *path* in *text*, but not where it is only the beginning of another name."""
    for spelling in {str(path), str(path.resolve())}:
        text = re.sub(rf"{re.escape(spelling)}(?![\w.-])", lambda _: str(by), text)
    return text


@asynccontextmanager
async def checkout_of(git: Git, commit: str | None = None) -> AsyncGenerator[Checkout | None]:
    """Provide a checkout of HEAD, or of *commit*, for the project of *git*; ``None`` if there is no commit.

    It is removed at the end, also after a cancellation; what a killed process left is removed by the next
    checkout of the same project. Raises ``GitError`` if git fails, for example because the disk is full.
    """
    command = git.command
    commit = commit or await git.call(lambda: head(command) if is_repository(command) else None)
    if commit is None:
        yield None
        return
    await asyncio.to_thread(sweep_folders, git.root)
    # Not in a thread: a cancellation could come before its result, which would leave the folder behind.
    folder = make_folder(git.root)
    try:
        tree, places = await git.call(_fill, command, folder, commit)
        yield Checkout(commit=commit, outer=folder, tree=tree, project=git.root, places=places)
    finally:
        await asyncio.shield(asyncio.to_thread(remove_folder, folder))


def _fill(git: Command, outer: Path, commit: str) -> tuple[Path, tuple[Place, ...]]:
    """Check *commit* out below *outer*; return the folder that stands for the project's, and its places."""
    original = top(git)
    # With the original's name, because some tools name what they build after their folder.
    folder = outer / (original.name or "tree")
    refuse_filters(git)
    _copy(git, folder, commit)
    bring_ignored(attrs.evolve(git, root=original), folder)
    tree = folder / prefix(git)
    tree.mkdir(parents=True, exist_ok=True)
    # Of the project itself, a sandbox shows what the links lead to; a work tree of it has to be named.
    is_work_tree = (original / ".git").is_file()
    return tree, (Place(path=original, source=original),) if is_work_tree else ()


def _copy(git: Command, folder: Path, commit: str) -> None:
    """Check *commit* out in *folder*, with the submodules that are filled in the repository of *git*."""
    # Not `git clone --shared`: it refuses shallow repositories and copies every ref, and it would run the
    # hooks of the user's template.
    shared, original = common_dir(git), top(git)
    folder.mkdir(exist_ok=True)
    here = attrs.evolve(git, root=folder)
    object_format = "sha256" if len(commit) == 64 else "sha1"
    here("init", "--quiet", "--template=", f"--object-format={object_format}")
    own = folder / ".git"
    (own / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(shared / "objects") + b"\n")
    if (shared / "shallow").is_file():
        shutil.copyfile(shared / "shallow", own / "shallow")
    # Tags and branches, because tools take a version from them.
    refs = git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    # Without the usual first line, which would say that annotated tags are listed with their commits.
    (own / "packed-refs").write_text(f"{refs}\n" if refs else "", encoding="utf-8")
    if (shared / "lfs").is_dir():
        here("config", "lfs.storage", str(shared / "lfs"))
    for one in git.trusted:
        here("config", one.key, one.value)
    here("checkout", "--quiet", "--force", "--detach", commit)
    for line in here("ls-tree", "-r", "-z", commit).split("\0"):
        about, _, path = line.partition("\t")
        inner = attrs.evolve(git, root=original / path)
        if not about.startswith(GITLINK) or not (inner.root / ".git").exists():
            continue  # a file, or a submodule that the project does not have either
        # What an agent made there may lead to any repository of the user.
        places = common_dir(inner).resolve(), top(inner).resolve()
        if places[0].is_relative_to(shared.resolve()) or places[0].is_relative_to(places[1]):
            sha = about.split()[2]
            if places[1] == inner.root.resolve() and existing_commits(inner, [sha]):
                _copy(inner, folder / path, sha)
