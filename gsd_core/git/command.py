"""Running git: without prompt, editor or pager, in the C locale, with literal paths."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.errors import ProjectError

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

BUSY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds to wait before each retry while another git, such as an editor's, holds a lock."""


class GitError(ProjectError):
    """git failed; *exit* is its exit code, *output* the end of its output and that of a hook."""

    def __init__(self, message: str, *, exit: int = 1, output: str = "", hint: str = "") -> None:  # noqa: A002
        super().__init__(message, hint=hint)
        self.exit = exit
        self.output = output


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
        inherited = {name: value for name, value in os.environ.items() if name not in REPOSITORY_VARIABLES}
        try:
            process = subprocess.Popen(
                ["git", *OPTIONS, *arguments],
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
            raise ProjectError("git is not installed", hint="install git 2.30 or newer") from error
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
    summary = " ".join(line.strip() for line in lines[-3:]) or f"exit {code}"
    return GitError(f"git {arguments[0]}: {summary}", exit=code, output=output, hint=_hint(text))


def _hint(text: str) -> str:
    if "dubious ownership" in text:
        return "the folder belongs to another user: git config --global --add safe.directory DIR"
    if _is_busy(text):
        return "another git is working in this repository; try again when it has finished"
    if "tell me who you are" in text:
        return "git config --global user.name NAME; git config --global user.email EMAIL"
    return ""
