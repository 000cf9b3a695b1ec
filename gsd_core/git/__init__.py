"""The project's git repository: commits with trailers, what changed, recovery refs, stale locks."""

from .command import GitError
from .history import DiffStat, TrailedCommit
from .repository import Git, git_common_dir

__all__ = ["DiffStat", "Git", "GitError", "TrailedCommit", "git_common_dir"]
