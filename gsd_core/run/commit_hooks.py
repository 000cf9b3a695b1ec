"""The repository's git hooks around a commit of the run, in the sandbox.

git starts hooks with everything that the user may do, and most of them run what the repository or an agent
wrote: a formatter from ``node_modules``, the project's tests. So in a sandbox the core runs them itself, as
githooks(5) describes: ``pre-commit``, ``prepare-commit-msg``, ``commit-msg``, the commit, ``post-commit``.

They see the throwaway git directory. Its index has what is about to be committed, and what a hook adds to it
or takes out of it counts; the contents are those in the work tree, as for any commit of named files. Other
hooks, such as ``reference-transaction``, do not run in a sandbox.

The home is a new one for each commit. husky, for one, runs a file in it before each hook, so an agent could
skip them all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

import attrs

from gsd_core.git import GitError, digests
from gsd_core.git.command import Command
from gsd_core.git.commit import add
from gsd_core.git.repository import common_dir, entries, head, prefix, top, within
from gsd_core.git.throwaway import describe, refresh
from gsd_core.model.sandbox import Place

from .commands import environment, run_inside
from .places import PROTECTED
from .runtime import Run
from .sandbox import Confinement

NAMES = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
MAX_MESSAGE = 100_000
SHOWN_LINES = 20
SCRIPT = """\
index=$(git rev-parse --git-path index) || exit 1
case $index in /*) ;; *) index=$PWD/$index ;; esac
export GIT_INDEX_FILE="$index" GIT_EDITOR=: GIT_PREFIX=
hook=$1; shift
if test "$1" = --message; then shift; set -- "${index%/index}/COMMIT_EDITMSG" "$@"; fi
exec "$hook" "$@"
"""
"""Starts a hook with the variables and arguments that git gives it."""


async def commit_with_hooks(
    run: Run, paths: Collection[str], subject: str, trailers: Mapping[str, str], *, body: str, empty: bool
) -> str:
    """Commit *paths* as :meth:`Effects.commit` does, with the repository's hooks; return the commit.

    Raises ``GitError`` if a hook refuses. A hook that changes the files and refuses runs a second time.
    """
    plain = partial(run.effects.commit, subject=subject, trailers=trailers, empty=empty, body=body)
    if not run.sandbox.name:
        return await plain(paths, verify=True)
    found = await run.git.call(_find_hooks, run.git.command)
    changed = await run.git.call(lambda: [e.path for e in within(entries(run.git.command), paths)])
    if not found.names or not changed:
        return await plain(paths, verify=False)
    # Hooks run at the top of the work tree, above a project in a subfolder, which stays protected.
    protected = [Place(path=path, source=path) for name in PROTECTED if (path := run.tree / name).exists()]
    places = (*(protected if found.top != run.tree else ()), *found.places)
    async with run.sandbox.around(found.top, places=places, new_home=True) as inside:
        hooks = _Hooks(run=run, inside=inside, found=found)
        text = await run.git.full_message(subject, body, trailers)
        await hooks.prepare(paths)
        before = await run.git.call(digests, run.tree, changed)
        try:
            await hooks.run_hook("pre-commit")
        except GitError:
            # A formatting hook changes the files and refuses the commit; then it has nothing to do.
            if await run.git.call(digests, run.tree, changed) == before:
                raise
            await hooks.prepare(paths)
            await hooks.run_hook("pre-commit")
        hooks.write_message(text)
        await hooks.run_hook("prepare-commit-msg", "--message", "message")
        await hooks.run_hook("commit-msg", "--message")
        made = await plain(await hooks.staged(), verify=False, text=hooks.read_message())
        if made and "post-commit" in found.names and inside.git is not None:
            await run.git.call(refresh, run.git.command, inside.git)
            # git ignores its exit code as well.
            await hooks.run_hook("post-commit", may_fail=True)
        return made


@attrs.frozen(kw_only=True)
class _Found:
    """The hooks *names* in *folder*, of the repository with the work tree *top*."""

    top: Path
    folder: Path
    names: tuple[str, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """The files of the hooks that have to be visible in addition to the work tree."""
        inside = self.folder.is_relative_to(self.top) and ".git" not in self.folder.parts
        return () if inside else (Place(path=self.folder, source=self.folder.resolve()),)


def _find_hooks(git: Command) -> _Found:
    folder = common_dir(git) / "hooks"
    root = top(git)
    # The last value counts, except ours on the command line, which turns hooks off.
    arguments = ("config", "--null", "--show-scope", "--type=path", "--get-all", "core.hooksPath")
    _, out = git.run(*arguments, ok=(0, 1))
    parts = out.split("\0")
    configured = [value for scope, value in zip(parts[::2], parts[1::2], strict=False) if scope != "command"]
    if configured:
        folder = root / configured[-1]
    names = tuple(name for name in NAMES if os.access(folder / name, os.X_OK) and (folder / name).is_file())
    return _Found(top=root, folder=folder, names=names)


@attrs.frozen(kw_only=True)
class _Hooks:
    """The hooks of one commit, and the throwaway git directory that they run in."""

    run: Run
    inside: Confinement
    found: _Found

    @property
    def git(self) -> Path:
        """The git directory that the hooks see."""
        assert self.inside.git is not None, "a repository with hooks has a git directory"
        # The first place is the directory itself, the others are mounted over parts of it.
        return describe(self.inside.git).places[0].source

    async def prepare(self, paths: Collection[str]) -> None:
        """Make the index that the hooks see: the last commit and what is about to be committed."""
        index = {"GIT_INDEX_FILE": str(self.git / "index")}

        def prepare(git: Command) -> None:
            self._remove("index")
            git("read-tree", *(["HEAD"] if head(git) else ["--empty"]), environment=index)
            add(git, [entry.path for entry in within(entries(git), paths)], index)

        await self.run.git.call(prepare, self.run.git.command)

    async def staged(self) -> tuple[str, ...]:
        """Return the paths in the project whose index entry differs from the last commit."""
        index = {"GIT_INDEX_FILE": str(self.git / "index")}

        def read(git: Command) -> tuple[str, ...]:
            if head(git):
                arguments = ("diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
                listed = git(*arguments, environment=index)
            else:
                listed = git("ls-files", "--full-name", "-z", ":/", environment=index)
            here = prefix(git)
            paths = filter(None, listed.split("\0"))
            return tuple(path.removeprefix(here) for path in paths if path.startswith(here))

        return await self.run.git.call(read, self.run.git.command)

    async def run_hook(self, name: str, *arguments: str, may_fail: bool = False) -> None:
        """Run a hook, if the repository has it."""
        if name not in self.found.names:
            return
        command = ("/bin/sh", "-c", SCRIPT, "sh", str(self.found.folder / name), *arguments)
        ran = await run_inside(self.inside, command, environment(self.run.mark), self.run.limits.check)
        if ran.exit == 0 or may_fail:
            return
        lines = [line for line in ran.output.strip().splitlines() if line.strip()]
        summary = " ".join(line.strip() for line in lines[-3:])
        what = f"exited with {ran.exit}" if ran.exit is not None else "; ".join(ran.problems)
        message = f"git commit: the hook {name} {what}: {summary}".removesuffix(": ")
        raise GitError(message, exit=ran.exit or 1, output="\n".join(lines[-SHOWN_LINES:]))

    def write_message(self, text: str) -> None:
        """Write the message to the file that the hooks get."""
        self._remove("COMMIT_EDITMSG")
        (self.git / "COMMIT_EDITMSG").write_text(text, encoding="utf-8")

    def _remove(self, name: str) -> None:
        """Remove a file of the git directory, where a hook may have put anything: a link is not followed."""
        try:
            (self.git / name).unlink(missing_ok=True)
        except OSError as error:
            raise GitError(f"git commit: a hook replaced git's file {name}: {error.strerror}") from error

    def read_message(self) -> str:
        """Return the message as the hooks left it."""
        # They may have put anything there, also a link to a file that only this process can read.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(self.git / "COMMIT_EDITMSG", flags)
        except OSError as error:
            raise GitError(f"a hook left no commit message: {error}") from error
        with os.fdopen(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            text = file.read(MAX_MESSAGE + 1).decode("utf-8", "replace") if is_file else ""
        if not text.strip() or len(text) > MAX_MESSAGE:
            raise GitError("a hook left a commit message that is empty or too long")
        return text
