"""The clone that a run works in, and how its commits get to GitHub.

The token is known only to git processes that use no configuration of the clone: an agent may have changed
that, and it names programs that git starts and addresses that it sends credentials to. So commits are first
fetched into a new bare repository, and pushed from there. The token is in the environment of that process, in
no address and no argument.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from gsd_core import Transient, UserError, redact

from .settings import TOKEN

LIMIT = 600
_HELPER = f'!f() {{ test "$1" = get && echo username=x-access-token && echo "password=${TOKEN}"; }}; f'


def branch_for(number: int) -> str:
    """Return the branch for an issue."""
    return f"gsd/issue-{number}"


@attrs.frozen(kw_only=True)
class Remote:
    """The repository at *url*, whose default branch is *base*, for the issue *number*."""

    url: str
    base: str
    number: int
    token: str = attrs.field(repr=False)

    def prepare(self, folder: Path) -> None:
        """Clone into *folder*, on a new branch for the issue; keep a clone that exists already."""
        _prepare(self.url, folder, branch=self._branch(), base=self.base, token=self.token)

    def push(self, folder: Path) -> dict[str, str]:
        """Push the clone's commits to the issue's branch; return its verification files, by path.

        Never forces: a branch with other commits is left alone, and that is an error.
        """
        return _push(self.url, folder, branch=self._branch(), token=self.token)

    def _branch(self) -> str:
        branch = branch_for(self.number)
        if branch == self.base:
            raise UserError(f"the default branch is {branch!r}, and gsd never pushes to the default branch")
        return branch


def _prepare(url: str, folder: Path, *, branch: str, base: str, token: str) -> None:
    if (folder / ".git").exists():
        return
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} exists and is not a clone", hint="pass another --folder")
    # Under another name until it is complete: a clone without its branch would be taken for one to continue.
    draft = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    _git("clone", "--no-tags", "--branch", base, "--", url, str(draft), remote=url, token=token)
    _git("switch", "--create", branch, folder=draft)
    draft.replace(folder)


def _push(url: str, folder: Path, *, branch: str, token: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="gsd-push-") as bare:
        _git("init", "--quiet", "--bare", bare)
        here = Path(bare)
        ref = f"refs/heads/{branch}"
        _git("fetch", "--quiet", "--no-tags", str(folder.resolve()), f"{ref}:{ref}", folder=here)
        commit = _git("rev-parse", "--verify", ref, folder=here).strip()
        _git("push", "--quiet", "--no-verify", url, f"{commit}:{ref}", folder=here, remote=url, token=token)
        names = _git("ls-tree", "-r", "-z", "--name-only", commit, "--", ".planning", folder=here).split("\0")
        reports = sorted(name for name in names if name.endswith("VERIFICATION.md"))
        return {name: _git("cat-file", "blob", f"{commit}:{name}", folder=here) for name in reports}


def credential_options(url: str) -> list[str]:
    """Return options for git that answer with the token, for the host of *url* only."""
    address = urlsplit(url)
    if address.scheme != "https":
        return ["-c", "credential.helper="]
    host = f"https://{address.netloc}"
    return ["-c", "credential.helper=", "-c", f"credential.{host}.helper={_HELPER}"]


def _git(*arguments: str, folder: Path | None = None, remote: str = "", token: str = "") -> str:
    """Run git and return its output; *token* only together with the *remote* that it is for."""
    options = ["-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"]
    environment = _environment() | ({TOKEN: token} if remote and token else {})
    if remote:
        options += credential_options(remote)
    place = ["-C", str(folder)] if folder else []
    try:
        done = subprocess.run(
            ["git", *place, *options, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Transient(f"git {arguments[0]} took longer than {LIMIT} s") from None
    if done.returncode:
        raise UserError(f"git {arguments[0]} failed: {redact(done.stderr.strip())}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Return the environment without tokens and without variables that redirect git."""
    needed = ("GIT_SSL_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    kept = {
        key: value
        for key, value in os.environ.items()
        if key != TOKEN and (not key.startswith("GIT_") or key.startswith(needed))
    }
    return kept | {"GIT_TERMINAL_PROMPT": "0"}
