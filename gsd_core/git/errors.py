"""How git fails."""

from __future__ import annotations

from gsd_core.errors import ProjectError


class GitError(ProjectError):
    """git failed; *exit* is its exit code, *output* the end of its output and that of a hook."""

    def __init__(self, message: str, *, exit: int = 1, output: str = "", hint: str = "") -> None:  # noqa: A002
        super().__init__(message, hint=hint)
        self.exit = exit
        self.output = output


class GitUnavailable(GitError):
    """git itself cannot work now: a lock, a disk, a limit, a signing key. No file or hook is at fault."""


class LayoutError(GitError):
    """git must not run here: its directory, or a file that it reads, is not what it seems to be."""


class UntrustedFilter(GitUnavailable):
    """Files would be committed, or checked out, without the filter that the repository's settings name."""
