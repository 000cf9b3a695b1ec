"""Running git: no prompt, no editor, no pager, no language but C, paths taken literally."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from attrs import field, frozen

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
    # A background process that outlives us would take locks that nobody expects.
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    # The journal says "committed" durably, so the commit has to be as durable as the journal.
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
"""What a git that called us (from a hook, an alias) says about *its* repository, not ours."""

PATIENCE = (0.05, 0.1, 0.2, 0.4, 0.8)
"""How long to wait for another git that has the index, in seconds, try by try."""


class GitError(ProjectError):
    """git refused; *exit* is its code, *output* the end of what it said (a hook's words, too)."""

    def __init__(self, message: str, *, exit: int = 1, output: str = "", hint: str = "") -> None:  # noqa: A002
        super().__init__(message, hint=hint)
        self.exit = exit
        self.output = output


@frozen(kw_only=True)
class Command:
    """git, in the folder *root*; *environment* is added to that of this process."""

    root: Path
    environment: Mapping[str, str] = field(factory=dict[str, str])
    limit: timedelta = timedelta(minutes=10)
    sleep: Callable[[float], None] = time.sleep

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        ok: Collection[int] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run git and return its output, without the newline at the end; raise ``GitError`` if it fails."""
        return self.run(*arguments, stdin=stdin, ok=ok, environment=environment)[1]

    def succeeds(self, *arguments: str, stdin: str = "") -> bool:
        """Whether git exits with 0; 1 is no."""
        return self.run(*arguments, stdin=stdin, ok=(0, 1))[0] == 0

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        ok: Collection[int] = (0,),
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Run git and return its exit code and its output."""
        code, out, err = self._once(arguments, stdin, environment or {})
        for seconds in PATIENCE:
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
        process = self._start(arguments, environment)
        try:
            out, err = process.communicate(os.fsencode(stdin), timeout=self.limit.total_seconds())
        except BaseException as error:
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise GitError(f"git {arguments[0]} took longer than {self.limit}") from None
            raise
        return process.returncode, os.fsdecode(out), os.fsdecode(err)

    def _start(self, arguments: tuple[str, ...], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start git in a session of its own: Ctrl-C on the terminal is for us, not for a half-made commit."""
        try:
            return subprocess.Popen(
                ["git", *OPTIONS, *arguments],
                cwd=self.root,
                env=_environment() | dict(self.environment) | dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if not self.root.is_dir():
                raise ProjectError(
                    f"no folder {self.root}", hint="name the project's folder with -C"
                ) from error
            raise ProjectError("git is not installed", hint="install git 2.30 or newer") from error


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in REPOSITORY_VARIABLES}
    return inherited | ENVIRONMENT


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _is_busy(said: str) -> bool:
    """Whether another git (an editor's, a human's) has the index just now."""
    return "index.lock': File exists" in said


def _error(arguments: tuple[str, ...], code: int, said: str) -> GitError:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    output = "\n".join(lines[-20:])
    summary = " ".join(line.strip() for line in lines[-3:]) or f"exit {code}"
    return GitError(f"git {arguments[0]}: {summary}", exit=code, output=output, hint=_hint(said))


def _hint(said: str) -> str:
    if "dubious ownership" in said:
        return "the folder belongs to someone else: git config --global --add safe.directory DIR"
    if "index.lock" in said:
        return "another git is at work in this repository; try again when it has ended"
    if "tell me who you are" in said:
        return "git config --global user.name NAME; git config --global user.email EMAIL"
    return ""
