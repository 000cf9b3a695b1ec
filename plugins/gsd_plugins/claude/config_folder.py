"""Claude Code's configuration folder for calls in a sandbox: a private one for each project.

The user's own folder (``~/.claude``) has the login, but also settings, hooks and commands that the user's own
Claude Code will run later, so nothing in a sandbox may write there. The private folder is beside the
project's journal and keeps the conversations. Instead of the login it has the token for the proxy of a call.

What comes back from the private folder is only a conversation that is resumed without a sandbox.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import attrs

from gsd_core import AgentHost, AgentTask, Place

CREDENTIALS = ".credentials.json"
ACCOUNT = ".claude.json"
ACCOUNT_KEYS = ("oauthAccount", "userID", "hasCompletedOnboarding")
"""The keys of ``.claude.json`` about the account; others have a key, the user's projects and MCP servers."""
LOGIN_KEYS = ("scopes", "subscriptionType", "rateLimitTier")
"""What Claude Code knows about a login, besides its tokens."""
NEVER = 10**13
"""A time that is not reached, in milliseconds: the proxy renews the login, Claude Code must not try."""
USER_FILES = (
    *("settings.json", "CLAUDE.md", "commands", "agents", "skills", "plugins", "output-styles"),
    *("hooks",),
)
"""What a task with the user's own settings sees of the user's folder, read-only."""
COMMAND_FILES = ("get-shit-done", "gsd-core")
"""Folders beside them that GSD's commands read and run, read-only too."""
COMMAND_PROGRAM = "gsd-sdk"
"""The program that they run; since GSD 1.30 it is installed on ``PATH``."""
MAX_BYTES = 1_000_000
MAX_CONVERSATION = 200_000_000


@attrs.frozen(kw_only=True)
class ConfigFolder:
    """The variables and places that the CLI needs to find its configuration; none if nothing is confined.

    *private* is the private folder, and *own* the user's; if it is set, the user's login is not visible.
    """

    environment: Mapping[str, str] = attrs.field(factory=dict[str, str])
    places: tuple[Place, ...] = ()
    private: Path | None = None
    own: Path = Path()

    def write_login(self, token: str) -> bool:
        """Write a login with *token* in place of the real one, and return whether there is one in a file.

        Without a *token*, remove what an earlier call has written.
        """
        login = (_read(self.own / CREDENTIALS, follow=True) or {}).get("claudeAiOauth")
        if self.private is None:
            return False
        if not token or not isinstance(login, dict):
            (self.private / CREDENTIALS).unlink(missing_ok=True)
            return False
        known = cast("dict[str, Any]", login)
        kept = {key: known[key] for key in LOGIN_KEYS if key in known}
        written = {**kept, "accessToken": token, "refreshToken": None, "expiresAt": NEVER}
        _write(self.private / CREDENTIALS, {"claudeAiOauth": written})
        return True


@asynccontextmanager
async def config_folder(
    task: AgentTask, host: AgentHost, environment: Mapping[str, str], *, given: bool
) -> AsyncGenerator[ConfigFolder]:
    """Provide the configuration folder for a call with *environment*.

    *given*: the caller has chosen ``CLAUDE_CONFIG_DIR``, so it is used as it is.
    """
    is_confined = bool((await host.confine(("true",), {})).sandbox)
    own = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME") or "/") / ".claude")
    if given:
        places = (Place(path=own, source=own, writable=True),)
        yield ConfigFolder(places=places if is_confined else ())
        return
    private = await asyncio.to_thread(_private_folder, task.tree, is_confined)
    if private is None:
        yield ConfigFolder()
        return
    conversation = task.conversation.id if task.conversation and task.conversation.resume else ""
    if not is_confined:
        await asyncio.to_thread(_copy_conversation, private, own, conversation)
        yield ConfigFolder()
        return
    await asyncio.to_thread(_copy_conversation, own, private, conversation)
    await asyncio.to_thread(_copy_account, own, private, environment)
    user_files: tuple[Place, ...] = ()
    if task.user_settings:
        user_files = tuple(await asyncio.to_thread(_user_files, own, private))
    yield ConfigFolder(
        environment={"CLAUDE_CONFIG_DIR": str(private)},
        places=(Place(path=private, source=private, writable=True), *user_files),
        private=private,
        own=own,
    )


def _user_files(own: Path, private: Path) -> Iterator[Place]:
    """Yield the user's files twice: in the private folder, and where their own texts and hooks say they are.

    A command names its files with ``$HOME/.claude/…`` or by their absolute path.
    """
    if program := shutil.which(COMMAND_PROGRAM):
        # npm links to a program of a package, which needs the packages beside it.
        real = Path(program).resolve()
        packages = next((one for one in real.parents if one.name == "node_modules"), real.parent.parent)
        yield from (Place(path=path, source=path) for path in (packages, Path(program).absolute().parent))
    for name in (*USER_FILES, *COMMAND_FILES):
        if (own / name).exists():
            source = (own / name).resolve()
            yield Place(path=private / name, source=source)
            yield Place(path=own / name, source=source)


def _private_folder(tree: Path, create: bool) -> Path | None:
    """Return the project's private folder; ``None`` if there is none and *create* is not set."""
    if (common := git_common_dir(tree)) is None:
        # Without a repository there is no run to resume; it lasts as long as this process.
        return Path(tempfile.mkdtemp(prefix="gsd-claude-")) if create else None
    folder = common / "gsd" / "claude"
    if create:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    return folder if folder.is_dir() else None


def git_common_dir(tree: Path) -> Path | None:
    """Return git's own directory of the repository that *tree* is in; ``None`` without one."""
    command = ("git", "-C", os.fspath(tree), "rev-parse", "--git-common-dir")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        return None
    return (tree / os.fsdecode(done.stdout).rstrip("\n")).resolve()


def _copy_account(own: Path, private: Path, environment: Mapping[str, str]) -> None:
    """Copy what is known about the user's account, without any credentials."""
    # Without CLAUDE_CONFIG_DIR, the file is in the home folder, beside the configuration folder.
    beside = own / ACCOUNT if environment.get("CLAUDE_CONFIG_DIR") else own.parent / ACCOUNT
    account = _read(beside, follow=True) or {}
    known = _read(private / ACCOUNT) or {}
    kept = {key: value for key, value in known.items() if key not in (*ACCOUNT_KEYS, "primaryApiKey")}
    _write(private / ACCOUNT, kept | {key: account[key] for key in ACCOUNT_KEYS if key in account})


def _read(path: Path, *, follow: bool = False) -> dict[str, Any] | None:
    """Return the JSON object in a file, if there is one; a link counts only with *follow*."""
    try:
        with _open(path, follow=follow) as file:
            data: object = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _open(path: Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file to read; not a pipe, on which this would wait, and by default not a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def _write(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a file as a whole, readable by its owner only."""
    draft = path.with_name(f".gsd-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(dict(data), file)
    draft.replace(path)


def _copy_conversation(source: Path, target: Path, conversation: str) -> None:
    """Copy the stored *conversation* to *target* if it is not there; it was begun with the other folder."""
    if not conversation or any((target / "projects").glob(f"*/{conversation}.jsonl")):
        return
    for found in (source / "projects").glob(f"*/{conversation}.jsonl"):
        folder = target / "projects" / found.parent.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A folder in the private one may have been replaced by a link to anywhere.
        if not folder.resolve().is_relative_to(target.resolve()):
            return
        with suppress(OSError), _open(found) as file:
            if os.fstat(file.fileno()).st_size > MAX_CONVERSATION:
                return
            draft = folder / f".gsd-{secrets.token_hex(8)}.tmp"
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
                shutil.copyfileobj(file, copy)
            draft.replace(folder / found.name)
            return
