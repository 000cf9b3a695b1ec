"""Annotated tags for releases."""

from __future__ import annotations

from .command import Command, GitError, for_signing
from .repository import one_writer


def tag(git: Command, name: str, commit: str, message: str) -> str:
    """Tag *commit* unless the tag exists, and return the commit that the tag is at.

    It is signed if the user's settings say that tags are. Raises ``GitError`` for a name that git refuses.
    """
    with one_writer(git):
        if found := tagged(git, name):
            return found
        options = ("--annotate", "--cleanup=whitespace", "--file=-", "--", name, commit)
        git("tag", *options, stdin=message, environment=for_signing(git, "tag.gpgSign"))
    return tagged(git, name)


def tagged(git: Command, name: str) -> str:
    """Return the commit (or other object) that the tag is at; empty if there is no such tag."""
    if git.run("check-ref-format", f"refs/tags/{name}", ok=(0, 1))[0]:
        raise GitError(f"{name!r} cannot be the name of a tag")
    # A tag can also be at a tree or a file: it exists all the same.
    for peeled in (f"refs/tags/{name}^{{commit}}", f"refs/tags/{name}"):
        code, found = git.run("rev-parse", "--verify", "--quiet", peeled, ok=(0, 1, 128))
        if code == 0:
            return found
    return ""
