"""One commit: exactly the given paths, with trailers, regardless of what else is staged."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

from .command import Command, GitError, GitUnavailable, for_signing
from .committed import digests
from .history import project_trailer, unfolded
from .repository import entries, head, one_writer, paths_file, within
from .untrusted import refuse_filters


def commit(
    git: Command,
    paths: Collection[str],
    subject: str,
    *,
    body: str = "",
    trailers: Mapping[str, str],
    verify: bool,
    allow_empty: bool = False,
    text: str = "",
) -> str:
    """Commit exactly what differs at or below *paths*, deletions too, and return the commit's id.

    Everything else that is staged stays staged. Ignored paths and those that do not differ are skipped;
    if none is left, return ``""``, or make an empty commit with *allow_empty*. With *verify*, the
    user's hooks run; if one of them formats the files, the commit has the formatted text. A project in a
    subfolder adds the trailer ``GSD-Project``. *text* is the whole message, if a hook has edited it.
    Raise ``GitError`` if git or a hook refuses, ``GitUnavailable`` if git cannot write now.
    """
    text = text or full_message(git, subject, body, trailers)
    with one_writer(git):
        found = within(entries(git), paths)
        if not found:
            return _commit_nothing(git, text) if allow_empty else ""
        # git finds a path that is staged already, even a deletion, but `git add` would not.
        if unstaged := [entry.path for entry in found if entry.unstaged != " "]:
            add(git, unstaged)
        before = digests(git.root, paths_found := [entry.path for entry in found])
        refuse_filters(git, paths_found)
        try:
            _commit_only(git, paths_found, text, verify=verify)
        except GitUnavailable:
            raise
        except GitError:
            # A formatting hook changes the files and refuses the commit. A second time it has nothing to do.
            if not verify or digests(git.root, paths_found) == before:
                raise
            found = within(entries(git), paths)
            paths_found = [entry.path for entry in found]
            add(git, [entry.path for entry in found if entry.unstaged != " "])
            _commit_only(git, paths_found, text, verify=verify)
        made = git("rev-parse", "--verify", "HEAD^{commit}")
        git.known.commits.add(made)
        return _take_what_hooks_changed(git, paths_found, made) if verify else made


def _commit_only(git: Command, paths: Collection[str], text: str, *, verify: bool) -> None:
    # Standard input has the message, which may be as long. The name is always the same, so that a kill leaves
    # one file at most; one writer at a time uses it.
    file = paths_file(git)
    file.write_bytes(os.fsencode(listed(paths)))
    try:
        git(
            *("commit", "--quiet", "--only", "--allow-empty", "--no-edit"),
            # The default would remove lines that begin with "#".
            *("--cleanup=whitespace", "--file=-", *(() if verify else ("--no-verify",))),
            *(f"--pathspec-from-file={file}", "--pathspec-file-nul"),
            stdin=text,
            hooks=verify,
            environment=for_signing(git, "commit.gpgSign"),
        )
    finally:
        file.unlink(missing_ok=True)


def _take_what_hooks_changed(git: Command, paths: Collection[str], made: str) -> str:
    """Bring index, work tree and the commit *made* together for *paths*, and return the final commit.

    ``git commit --only`` prepares the index before the hooks run: if one formats a file and adds it, the
    commit has the new text, and the index is left with the old one. A hook that formats after the commit
    leaves the new text uncommitted; it is added to the commit.
    """
    if not within(entries(git), paths):
        return made
    git("reset", "--quiet", *FROM_STDIN, made, stdin=listed(paths))
    changed = [entry.path for entry in within(entries(git), paths)]
    if not changed or git("rev-parse", "--verify", "HEAD^{commit}") != made:
        return made
    add(git, changed)
    options = ("--quiet", "--amend", "--only", "--no-edit", "--no-verify", *FROM_STDIN)
    git("commit", *options, stdin=listed(changed), environment=for_signing(git, "commit.gpgSign"))
    return git("rev-parse", "--verify", "HEAD^{commit}")


def _commit_nothing(git: Command, text: str) -> str:
    """Commit the last commit's tree again; ``git commit --allow-empty`` would commit what is staged."""
    last = head(git)
    tree = git("rev-parse", f"{last}^{{tree}}") if last else git("mktree")
    made = git("commit-tree", *(("-p", last) if last else ()), tree, stdin=text)
    git("update-ref", "-m", "commit: empty", "HEAD", made, last or "0" * len(made))
    return made


def full_message(git: Command, subject: str, body: str, trailers: Mapping[str, str]) -> str:
    """Return the message of a commit of this project: a line, the body, the trailers as last paragraph."""
    named = {**trailers, **project_trailer(git)}
    last = "\n".join(f"{name}: {unfolded(value)}" for name, value in named.items())
    return "\n\n".join(part for part in (unfolded(subject), body.strip(), last) if part) + "\n"


def add(
    git: Command,
    paths: Collection[str],
    environment: Mapping[str, str] | None = None,
    *,
    ignored: bool = False,
) -> None:
    """Stage *paths*, including deletions; with *ignored* also those that git ignores."""
    if not paths:
        return  # git would read an empty list as the whole tree
    refuse_filters(git, paths)
    forced = ("--force",) if ignored else ()
    git("add", "--all", *forced, *FROM_STDIN, stdin=listed(paths), environment=environment)


FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
"""Options for any number of paths, with any characters."""


def listed(paths: Iterable[str]) -> str:
    """Return *paths* as git reads them with :data:`FROM_STDIN`."""
    return "".join(f"{path}\0" for path in paths)
