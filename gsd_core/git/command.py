"""Running git: without prompt, editor or pager, in the C locale, with literal paths."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.errors import ProjectError, machine_error
from gsd_core.programs import find_program

OPTIONS = (
    "--no-pager",
    "-c",
    "color.ui=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "i18n.commitEncoding=UTF-8",
    "-c",
    "i18n.logOutputEncoding=UTF-8",
    "-c",
    "trailer.separators=:",
    # A background process that outlives git would hold unexpected locks.
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    # The journal records durably that something is committed, so the commit must be as durable.
    "-c",
    "core.fsync=committed,index,reference",
)

ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_PAGER": "cat",
}

REPOSITORY_VARIABLES = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_PREFIX",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_QUARANTINE_PATH",
        "GIT_REFLOG_ACTION",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
    }
)
"""Variables that describe the repository of a git that started this process, from a hook or an alias."""

BUSY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds to wait before each retry while another git, such as an editor's, holds a lock."""


OLDEST = "2.30"
"""The oldest git that has every option used here."""


class GitError(ProjectError):
    """git failed; *exit* is its exit code, *output* the end of its output and that of a hook."""

    def __init__(self, message: str, *, exit: int = 1, output: str = "", hint: str = "") -> None:  # noqa: A002
        super().__init__(message, hint=hint)
        self.exit = exit
        self.output = output


class GitUnavailable(GitError):
    """git itself cannot work now: a lock, a disk, a limit, a signing key. No file or hook is at fault."""


@attrs.frozen(kw_only=True)
class Command:
    """git in the folder *root*; *environment* is added to that of this process, *limit* is for each call."""

    root: Path
    environment: Mapping[str, str] = attrs.field(factory=dict[str, str])
    limit: timedelta = timedelta(minutes=10)
    sleep: Callable[[float], None] = time.sleep

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        ok: Collection[int] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run git and return its output without the last newline; raise ``GitError`` if it fails."""
        return self.run(*arguments, stdin=stdin, ok=ok, environment=environment)[1]

    def succeeds(self, *arguments: str, stdin: str = "") -> bool:
        """Run git and return whether it exits with 0; 1 means no, any other code is an error."""
        return self.run(*arguments, stdin=stdin, ok=(0, 1))[0] == 0

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        ok: Collection[int] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Run git and return its exit code and its output; a code that is not *ok* raises ``GitError``."""
        code, out, err = self._once(arguments, stdin, environment or {})
        for seconds in BUSY_DELAYS:
            if code in ok or not _is_busy(err):
                break
            self.sleep(seconds)
            code, out, err = self._once(arguments, stdin, environment or {})
        if code not in ok:
            raise _error(arguments, code, err or out)
        return code, out.removesuffix("\n")

    def _once(
        self, arguments: tuple[str, ...], stdin: str, environment: Mapping[str, str]
    ) -> tuple[int, str, str]:
        # A repository could bring its own git, if PATH has an entry in it.
        program = find_program("git", self.root) or Path("/nonexistent/git")
        inherited = {name: value for name, value in os.environ.items() if name not in REPOSITORY_VARIABLES}
        try:
            process = subprocess.Popen(
                [program, *OPTIONS, *arguments],
                cwd=self.root,
                env={**inherited, **ENVIRONMENT, **self.environment, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # In a separate session, git does not get the Ctrl-C that is meant for gsd, so a
                # commit is not left half done.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if not self.root.is_dir():
                hint = "name the project's folder with -C"
                raise ProjectError(f"no folder {self.root}", hint=hint) from error
            raise GitUnavailable("git is not installed", hint=f"install git {OLDEST} or newer") from error
        except OSError as error:
            if (trouble := machine_error(error)) is None:
                raise
            raise GitUnavailable(f"cannot start git: {trouble}", hint=trouble.hint) from error
        try:
            out, err = process.communicate(os.fsencode(stdin), timeout=self.limit.total_seconds())
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise GitError(f"git {arguments[0]} took longer than {self.limit}") from None
            raise
        return process.returncode, os.fsdecode(out), os.fsdecode(err)


def _is_busy(stderr: str) -> bool:
    """Whether another git holds a lock, or has moved HEAD since this one read it."""
    return ".lock': File exists" in stderr or "cannot lock ref 'HEAD': is at" in stderr


def _error(arguments: tuple[str, ...], code: int, text: str) -> GitError:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    output = "\n".join(lines[-20:])
    if code < 0:
        # No hook ends git with a signal: that is a limit (SIGXFSZ), a lack of memory, or a person.
        name = signal.strsignal(-code) or f"signal {-code}"
        hint = _TOO_LARGE if -code == signal.SIGXFSZ else ""
        return GitUnavailable(
            f"git {arguments[0]} was ended by a signal: {name}", exit=code, output=output, hint=hint
        )
    # A hook that fails makes git exit with 1, whatever the hook prints; git's own failures exit with 128,
    # except that `git commit` exits with 1 if it cannot write the trees, after the hook.
    is_gits_own = code == 128 or lines[-1:] == ["error: Error building trees"]
    causes = [line for line in lines if any(cause in line for cause in _CAUSES)] if is_gits_own else []
    summary = " ".join(line.strip() for line in causes[:1] or lines[-3:]) or f"exit {code}"
    kind = GitUnavailable if causes else GitError
    return kind(f"git {arguments[0]}: {summary}", exit=code, output=output, hint=_hint(text))


_CAUSES = (
    ".lock': ",
    "cannot lock ref",
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Input/output error",
    "File too large",
    "Too many open files",
    "Cannot allocate memory",
    "Out of memory",
    "cannot fork",
    "Resource temporarily unavailable",
    "unable to create thread",
    "insufficient permission for adding an object",
    "unable to write",
    "failed to sign the data",
    "cannot run gpg",
    "failed to write commit object",
    "tell me who you are",
)
"""What git prints when it cannot write for a reason outside the project's files."""


def _hint(text: str) -> str:
    if "failed to sign" in text or "cannot run gpg" in text:
        return "git signs commits here, and the key is missing or locked: git config commit.gpgSign"
    if "No space left" in text or "quota exceeded" in text:
        return "free some disk space"
    if "Read-only file system" in text or "Permission denied" in text:
        return "make the repository writable for this user"
    if "dubious ownership" in text:
        return "the folder belongs to another user: git config --global --add safe.directory DIR"
    if _is_busy(text):
        return "another git is working in this repository; try again when it has finished"
    if "tell me who you are" in text:
        return "git config --global user.name NAME; git config --global user.email EMAIL"
    for sign, hint in _SURROUNDINGS.items():
        if sign in text:
            return f"{hint}, then run gsd resume"
    return ""


_TOO_LARGE = "raise the limit on the size of files (ulimit -f), then run gsd resume"
_SURROUNDINGS = {
    "No space left": "free some disk space",
    "Disk quota exceeded": "free some of your disk quota",
    "Read-only file system": "make the file system writable",
    "insufficient permission": "check who owns the repository",
    "Permission denied": "check who owns the repository",
    "Too many open files": "raise the limit on open files (ulimit -n)",
    "File too large": "raise the limit on the size of files (ulimit -f)",
    "cannot fork": "raise the limit on processes (ulimit -u) or end some",
    "Resource temporarily unavailable": "raise the limit on processes (ulimit -u) or end some",
    "unable to create thread": "raise the limit on processes (ulimit -u) or end some",
    "Out of memory": "end other programs to free some memory",
}
"""What git says about the machine, in the C locale, and what to do about it."""


def check_version(git: Command) -> None:
    """Raise ``ProjectError`` if git is older than :data:`OLDEST`."""
    text = git("version")
    found = re.search(r"(\d+)\.(\d+)", text)
    version = tuple(map(int, found.groups())) if found else (0, 0)
    if version < tuple(map(int, OLDEST.split("."))):
        hint = f"install git {OLDEST} or newer, or put it first on PATH"
        raise ProjectError(f"{text.strip() or 'git'} is too old", hint=hint)
