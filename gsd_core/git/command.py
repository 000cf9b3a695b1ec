"""Running git: without prompt, editor or pager, in the C locale, with literal paths."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import attrs

from gsd_core.errors import ProjectError, machine_error
from gsd_core.programs import find_program

from .errors import GitError as GitError
from .errors import GitUnavailable as GitUnavailable
from .layout import Layout, blocking_file, check, check_links, locate, not_regular, read_bytes
from .untrusted import FIXED, NO_HOOKS, LocalProgram, may_name_programs, read_programs, selected_config

OPTIONS = (
    "--no-pager",
    *("-c", "color.ui=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "i18n.commitEncoding=UTF-8"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "trailer.separators=:"),
    # A background process that outlives git would hold unexpected locks.
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    # The journal records durably that something is committed, so the commit must be as durable.
    *("-c", "core.fsync=committed,index,reference"),
    *FIXED,
)

ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "",
    # Objects that a partial clone lacks would be fetched with the programs and addresses of the repository.
    "GIT_NO_LAZY_FETCH": "1",
}

INHERITED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "TZ", "LANG", "LANGUAGE", "EMAIL"),
        *("LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        # For hooks and filters of the user.
        *("VIRTUAL_ENV", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT"),
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
        *("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"),
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH"),
        *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
    }
)
"""The variables that git inherits, with those that begin with ``LC_`` or ``XDG_``. No others: hooks and
filters would get the API keys in the environment, and ``GIT_DIR`` of a git that started this process would
lead to another repository."""

SIGNING = frozenset(
    {
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GNUPGHOME", "GPG_TTY", "GPG_AGENT_INFO"),
        *("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"),
    }
)
"""Additional variables that a signing program needs to reach the user's keys."""

BUSY_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds to wait before each retry while another git, such as an editor's, holds a lock."""


LOOK_AFTER = timedelta(seconds=5)
"""How long git may take before the work tree is searched for a pipe that it may be waiting for."""

CONFIG_LIMIT = timedelta(seconds=20)

MAX_MESSAGE = 64 << 10
"""How many bytes of git's messages are read where its output is limited."""

OLDEST = "2.30"
"""The oldest git that has every option used here."""


@attrs.define(eq=False)
class _Known:
    """What was found out about repositories, so that it need not be at every call: which *commits* exist."""

    checked: set[Path] = attrs.field(factory=set[Path])
    programs: dict[tuple[object, ...], tuple[LocalProgram, ...]] = attrs.field(
        factory=dict[tuple[object, ...], tuple[LocalProgram, ...]]
    )
    commits: set[str] = attrs.field(factory=set[str])


@attrs.frozen(kw_only=True)
class Command:
    """git in the folder *root*; *environment* is added to that of this process, *limit* is for each call.

    *trusted* are programs in the repository's own settings that may run.
    """

    root: Path
    environment: Mapping[str, str] = attrs.field(factory=dict[str, str])
    limit: timedelta = timedelta(minutes=10)
    sleep: Callable[[float], None] = time.sleep
    trusted: frozenset[LocalProgram] = frozenset()
    known: _Known = attrs.field(factory=_Known, eq=False, repr=False)

    def at(self, root: Path) -> Command:
        """Return git in another folder of the same repository, whose files it checks itself."""
        return attrs.evolve(self, root=root, known=attrs.evolve(self.known, checked=set()))

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        ok: Collection[int] = (0,),
        environment: Mapping[str, str] | None = None,
        hooks: bool = False,
    ) -> str:
        """Run git and return its output without the last newline; raise ``GitError`` if it fails."""
        return self.run(*arguments, stdin=stdin, ok=ok, environment=environment, hooks=hooks)[1]

    def start_of_output(self, *arguments: str, size: int) -> str:
        """Run git and return the first *size* bytes of its output; it is ended as soon as there are more."""
        layout = self.layout()
        command = (*self._options(layout, hooks=False), *arguments)
        process = self._start(command, {**ENVIRONMENT, **self.environment, "GIT_ALLOW_PROTOCOL": "none"})
        timer = threading.Timer(self.limit.total_seconds(), _kill, (process,))
        timer.start()
        try:
            assert process.stdout
            assert process.stderr
            out = process.stdout.read(size)
            if len(out) < size:
                said = os.fsdecode(process.stderr.read(MAX_MESSAGE))
                if code := process.wait():
                    raise _error(arguments, code, said)
        finally:
            timer.cancel()
            _kill(process)
            process.communicate()
        return os.fsdecode(out)

    def succeeds(self, *arguments: str, stdin: str = "") -> bool:
        """Run git and return whether it exits with 0; 1 means no, any other code is an error."""
        return self.run(*arguments, stdin=stdin, ok=(0, 1))[0] == 0

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        ok: Collection[int] = (0,),
        environment: Mapping[str, str] | None = None,
        hooks: bool = False,
    ) -> tuple[int, str]:
        """Run git and return its exit code and its output; a code that is not *ok* raises ``GitError``.

        With *hooks*, those of the repository run.
        """
        layout = self.layout()
        options = self._options(layout, hooks=hooks)
        given = {**ENVIRONMENT, **self.environment, **(environment or {})}
        if not hooks:
            # No command here needs a network; hooks may.
            given.setdefault("GIT_ALLOW_PROTOCOL", "none")
        code, out, err = self._once((*options, *arguments), stdin, given, layout, self.limit)
        for seconds in BUSY_DELAYS:
            if code in ok or not any(sign in err for sign in _BUSY):
                break
            self.sleep(seconds)
            code, out, err = self._once((*options, *arguments), stdin, given, layout, self.limit)
        if code not in ok:
            raise _error(arguments, code, err or out)
        return code, out.removesuffix("\n")

    def layout(self) -> Layout | None:
        """Return the repository, if any; raise ``LayoutError`` if git must not run in it."""
        named = self.environment.get("GIT_DIR")
        # The caller may say which one: git's directory of a submodule, for example.
        own = Path(named) if named else None
        layout = Layout(top=self.root, own=own, common=own) if own else locate(self.root)
        if layout:
            check(layout)
            if layout.common not in self.known.checked:
                check_links(layout)
                self.known.checked.add(layout.common)
        return layout

    def local_programs(self) -> tuple[LocalProgram, ...]:
        """Return the programs in the repository's own settings that may not run, except the trusted ones.

        git is asked only if the settings changed, and contain a word that such a setting has.
        """
        layout = self.layout()
        return self._local_programs(layout) if layout else ()

    def _local_programs(self, layout: Layout) -> tuple[LocalProgram, ...]:
        texts = [read_bytes(path) for path in layout.configs]
        if not may_name_programs(texts):
            return ()
        key = (self.root, *texts)
        # What included files contain, and whether they are, may change without a change here.
        if key not in self.known.programs or any(b"include" in text.lower() for text in texts):
            command = ("config", "--includes", "--list", "-z", "--show-scope", "--show-origin")
            code, out, err = self._once(command, "", ENVIRONMENT, layout, CONFIG_LIMIT)
            if code:
                raise _error(("config",), code, err)
            self.known.programs[key] = tuple(read_programs(out, self.root))
        return tuple(one for one in self.known.programs[key] if one not in self.trusted)

    def _options(self, layout: Layout | None, *, hooks: bool) -> tuple[str, ...]:
        options = OPTIONS if hooks else (*OPTIONS, *NO_HOOKS)
        if layout is None:
            return options
        overrides = [option for one in self._local_programs(layout) for option in one.override]
        return (*options, *overrides)

    def _once(
        self,
        arguments: tuple[str, ...],
        stdin: str,
        environment: Mapping[str, str],
        layout: Layout | None,
        limit: timedelta,
    ) -> tuple[int, str, str]:
        process = self._start(arguments, environment)
        first = min(LOOK_AFTER, limit)
        try:
            try:
                out, err = process.communicate(os.fsencode(stdin), timeout=first.total_seconds())
            except subprocess.TimeoutExpired:
                # A git that is slow may wait for a pipe in the place of a file, forever.
                if layout and (path := blocking_file(layout)):
                    raise not_regular(path) from None
                out, err = process.communicate(timeout=(limit - first).total_seconds())
        except BaseException as error:
            _kill(process)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                name = next((word for word in arguments if re.fullmatch(r"[a-z]+(-[a-z]+)*", word)), "git")
                raise GitError(f"git {name} took longer than {limit}") from None
            raise
        return process.returncode, os.fsdecode(out), os.fsdecode(err)

    def _start(self, arguments: tuple[str, ...], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        # A repository could bring its own git, if PATH has an entry in it.
        program = find_program("git", self.root) or Path("/nonexistent/git")
        try:
            return subprocess.Popen(
                [program, *arguments],
                cwd=self.root,
                env={**inherited(), **environment},
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


def _kill(process: subprocess.Popen[bytes]) -> None:
    # Once it has been waited for, its id may be that of another process.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def inherited() -> dict[str, str]:
    """Return the part of this process's environment that git gets."""
    names = [name for name in os.environ if name in INHERITED or name.startswith(("LC_", "XDG_"))]
    return {name: os.environ[name] for name in names} | selected_config(os.environ)


def for_signing(git: Command, key: str) -> dict[str, str]:
    """Return the variables that lead to the user's keys, if git signs by the setting *key*; else none.

    Hooks get them too then.
    """
    found = {name: os.environ[name] for name in SIGNING if name in os.environ}
    return found if found and signs(git, key) else {}


def signs(git: Command, key: str) -> bool:
    """Whether git signs by the setting *key*."""
    return git.run("config", "--type=bool", "--get", key, ok=(0, 1, 128))[1] == "true"


def _error(arguments: tuple[str, ...], code: int, text: str) -> GitError:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    output = "\n".join(lines[-20:])
    if code < 0:
        # No hook ends git with a signal: that is a limit (SIGXFSZ), a lack of memory, or a person.
        name = signal.strsignal(-code) or f"signal {-code}"
        hint = _HINTS["File too large"] if -code == signal.SIGXFSZ else ""
        message = f"git {arguments[0]} was ended by a signal: {name}"
        return GitUnavailable(message, exit=code, output=output, hint=hint)
    # A hook that fails makes git exit with 1, with any output; git's own failures exit with 128,
    # except that `git commit` exits with 1 if it cannot write the trees, after the hook.
    is_gits_own = code == 128 or lines[-1:] == ["error: Error building trees"]
    causes = [line for line in lines if any(cause in line for cause in _CAUSES)] if is_gits_own else []
    summary = " ".join(line.strip() for line in causes[:1] or lines[-3:]) or f"exit {code}"
    kind = GitUnavailable if causes else GitError
    hint = next((hint for sign, hint in _HINTS.items() if sign in text), "")
    return kind(f"git {arguments[0]}: {summary}", exit=code, output=output, hint=hint)


_CAUSES = (
    *(".lock': ", "cannot lock ref", "No space left on device", "Disk quota exceeded"),
    *("Read-only file system", "Input/output error", "File too large", "Too many open files"),
    *("Cannot allocate memory", "Out of memory", "cannot fork"),
    *("Resource temporarily unavailable", "unable to create thread"),
    *("insufficient permission for adding an object", "unable to write"),
    *("failed to sign the data", "cannot run gpg", "failed to write commit object"),
    *("tell me who you are",),
)
"""What git prints when it cannot write for a reason outside the project's files."""


_BUSY = (".lock': File exists", "cannot lock ref 'HEAD': is at", "/commondir: Success")
"""What git prints if another git holds a lock, has moved HEAD since this one read it, or adds a work tree."""

_SURROUNDINGS = {
    "No space left": "free some disk space",
    "quota exceeded": "free some disk space",
    "Read-only file system": "make the repository writable for this user",
    "Permission denied": "make the repository writable for this user",
    "insufficient permission": "check who owns the repository",
    "Too many open files": "raise the limit on open files (ulimit -n)",
    "File too large": "raise the limit on the size of files (ulimit -f)",
    "cannot fork": "raise the limit on processes (ulimit -u) or end some",
    "Resource temporarily unavailable": "raise the limit on processes (ulimit -u) or end some",
    "unable to create thread": "raise the limit on processes (ulimit -u) or end some",
    "Out of memory": "end other programs to free some memory",
}
"""What git says about the machine, in the C locale, and what to do about it."""

_HINTS = {
    "failed to sign": "git signs commits here, and the key is missing or locked: git config commit.gpgSign",
    "cannot run gpg": "git signs commits here, and the key is missing or locked: git config commit.gpgSign",
    "dubious ownership": "the folder belongs to another user: git config --global --add safe.directory DIR",
    **dict.fromkeys(_BUSY, "another git is working in this repository; try again when it has finished"),
    "tell me who you are": "git config --global user.name NAME; git config --global user.email EMAIL",
    **{sign: f"{hint}, then run gsd resume" for sign, hint in _SURROUNDINGS.items()},
}
"""What to do about an error that git prints; the first that matches counts."""


def is_older(git: Command, version: str) -> bool:
    """Whether git is older than *version*, such as ``2.38``."""
    found = re.search(r"(\d+)\.(\d+)", git("version"))
    return (tuple(map(int, found.groups())) if found else (0, 0)) < tuple(map(int, version.split(".")))


def check_version(git: Command) -> None:
    """Raise ``ProjectError`` if git is older than :data:`OLDEST`."""
    if is_older(git, OLDEST):
        text = git("version")
        hint = f"install git {OLDEST} or newer, or put it first on PATH"
        raise ProjectError(f"{text.strip() or 'git'} is too old", hint=hint)
