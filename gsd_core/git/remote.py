"""A git remote: where commits travel between machines, by branches that are changed by compare-and-swap."""

from __future__ import annotations

from .command import Command
from .errors import GitError

ALLOWED = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
"""Not ``ext``, whose address is a command."""


def publish(git: Command, remote: str, commit: str, branch: str, expected: str = "") -> None:
    """Point *branch* of *remote* at *commit*, if it is at *expected*, or there already.

    If *expected* is empty, there must be no such branch. Raises ``GitError`` if it is elsewhere, or the
    remote refuses.
    """
    ref = f"refs/heads/{branch}"
    if tip(git, remote, branch) != commit:
        lease = f"--force-with-lease={ref}:{expected}"
        git("push", "--quiet", "--no-verify", lease, "--", remote, f"{commit}:{ref}", environment=ALLOWED)


def tip(git: Command, remote: str, branch: str) -> str:
    """Return the commit that *branch* of *remote* is at; empty if there is no such branch."""
    try:
        found = git("ls-remote", "--", remote, f"refs/heads/{branch}", environment=ALLOWED)
    except GitError as error:
        raise GitError(f"the git repository {remote} cannot be reached: {error}", hint=error.hint) from error
    return found.split("\t")[0]


def fetch(git: Command, remote: str, branch: str) -> str:
    """Bring the commits of *branch* of *remote* here, and return the last one; no ref is changed."""
    found = tip(git, remote, branch)
    git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", remote, found, environment=ALLOWED)
    return found
