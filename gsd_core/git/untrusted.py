"""Programs that a repository's own settings name, and the options that keep git from running them.

``.git/config`` comes with a copied or unpacked folder, and some thirty of its keys are command lines:
filters, merge drivers, signing programs, credential helpers. What the user's own or the system's settings
name is the user's choice, and runs. What only the repository names does not, unless the user trusts it.

git cannot be told to leave out the repository's settings, and an option ``-c`` cannot remove a key. So each
such key gets the user's own value, or one that does nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .errors import GitError, UntrustedFilter

if TYPE_CHECKING:
    from .command import Command

FIXED = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "safe.bareRepository=explicit"),
    # A submodule has its own settings, and git would run their programs to compare its files.
    *("-c", "diff.ignoreSubmodules=dirty"),
    *("-c", "submodule.recurse=false"),
    *("-c", "status.submoduleSummary=false"),
)
"""Options for every call, which override the settings."""

NO_HOOKS = ("-c", "core.hooksPath=/dev/null")

MERGE_LINES = "git merge-file -q --marker-size=%L -L ours -L base -L theirs %A %O %B"
"""A merge driver that does what git does without one."""

_HARMLESS: tuple[tuple[str, str], ...] = (
    (r"core\.fsmonitor", "false"),
    (r"core\.sshcommand", "ssh"),
    (r"core\.(editor|askpass|gitproxy|alternaterefscommand)|sequence\.editor", ""),
    (r"core\.pager|pager\..+", "cat"),
    (r"filter\..+\.(clean|smudge|process)", ""),
    (r"diff\..+\.textconv", "cat"),
    (r"diff\.external|diff\..+\.command", "false"),
    # Not even gsd's own: what it merges, it merges line by line, as without the driver.
    (r"merge\.gsd\.driver", MERGE_LINES),
    # An empty one would succeed, and leave one side of the merge as its result.
    (r"merge\..+\.driver", "false"),
    (r"credential\.(.+\.)?helper", ""),
    (r"gpg\.(openpgp\.)?program", "gpg"),
    (r"gpg\.x509\.program", "gpgsm"),
    (r"gpg\.ssh\.program", "ssh-keygen"),
    (r"gpg\.ssh\.defaultkeycommand", ""),
    (r"submodule\..+\.update", "none"),
    (r"trailer\..+\.(command|cmd)", "true"),
    (r"remote\..+\.uploadpack", "git-upload-pack"),
    (r"remote\..+\.receivepack", "git-receive-pack"),
    (r"remote\..+\.vcs", "none"),
    (r"protocol\.(ext\.)?allow", "never"),
    (r"lfs\.customtransfer\..+\.path|lfs\.extension\..+\.(clean|smudge)", "false"),
)
"""The keys that are run as programs (a pattern each), and the value that replaces the repository's."""

_FILES = re.compile(r"core\.(attributesfile|excludesfile)|mailmap\.file")
"""Keys that name a file, which may be a pipe that git waits for."""

_WORDS = re.compile(
    rb"include|\[(?:filter|diff|merge|credential|gpg|submodule|trailer|protocol|lfs|pager|sequence|mailmap)"
    rb"|fsmonitor|sshcommand|editor|askpass|gitproxy|alternaterefscommand|pager|uploadpack|receivepack|vcs"
    rb"|attributesfile|excludesfile",
    re.IGNORECASE,
)
"""Occurs in every settings file that names a program. Most files have no match, and git need not be asked."""

_GIT_LFS = re.compile(r"git-lfs (clean -- %f|smudge (--skip )?-- %f|filter-process( --skip)?)")
"""What ``git lfs install --local`` writes: it runs the user's own git-lfs."""


@attrs.frozen(kw_only=True)
class LocalProgram:
    """A *key* of a repository's own settings that makes git run a program, and its *value*.

    *origin* is the file that it is in; another worktree names it differently. *override* are git's options
    that keep it from running. *users*: the user's own settings have a filter of that name, which runs in its
    place.
    """

    key: str
    value: str
    origin: str = attrs.field(eq=False)
    override: tuple[str, ...] = attrs.field(default=(), eq=False)
    users: bool = attrs.field(default=False, eq=False)

    @property
    def filter(self) -> str:
        """The name of the filter that this is a part of; empty if it is none."""
        found = re.fullmatch(r"filter\.(.+)\.(clean|smudge|process)", self.key)
        return found[1] if found else ""


def filters_to_trust(git: Command) -> tuple[LocalProgram, ...]:
    """Return the filters that git would need to commit, and that a user may trust; none without a repository.

    The other programs are not needed: git does without them what gsd asks of it. A filter that is a file of
    the work tree cannot be trusted, because an agent may change it, and git runs it outside of any sandbox.
    """
    return tuple(one for one in _blocked(git) if not _is_in(one.value, git.root))


def _blocked(git: Command) -> list[LocalProgram]:
    return [one for one in git.local_programs() if one.filter and not one.users]


def _is_in(command: str, root: Path) -> bool:
    """Whether a word of *command* names a file in the work tree that *root* belongs to."""
    top = next((above for above in (root, *root.parents) if (above / ".git").exists()), root).resolve()
    try:
        words = shlex.split(command)
    except ValueError:
        return True
    for word in re.split(r"[\s;|&()<>`=]+", " ".join(words)):
        path = Path(os.path.normpath(top / word))
        if path.is_relative_to(top) and "/" in word:
            return True
        if path.is_file() and path.resolve().is_relative_to(top):
            return True
    return False


def refuse_filters(git: Command, paths: Iterable[str] | None = None) -> None:
    """Raise ``UntrustedFilter`` if one of *paths*, or any tracked path, needs a filter that may not run.

    Without its filter, git would commit the file as it is on disk: the plain text of a secret.
    """
    blocked = {one.filter: one for one in reversed(_blocked(git))}
    if not blocked:
        return
    listed = git("ls-files", "-z", "--cached") if paths is None else "\0".join(paths)
    if not listed.strip("\0"):
        return
    # check-attr does not support literal pathspecs, and needs none.
    command, environment = ("check-attr", "-z", "--stdin", "filter"), {"GIT_LITERAL_PATHSPECS": "0"}
    out = git(*command, stdin=listed.strip("\0") + "\0", environment=environment)
    fields = out.split("\0")
    for path, name in zip(fields[::3], fields[2::3], strict=False):
        if one := blocked.get(name):
            raise UntrustedFilter(
                f"{path} goes through a program that this repository's own settings name "
                f"({one.key} = {one.value!r} in {one.origin}); gsd does not run it",
                hint=f"put it into your own settings: git config --global {one.key} VALUE"
                if _is_in(one.value, git.root)
                else "if you know it, trust it with `gsd trust` at a terminal, or pass --trust",
            )


def may_name_programs(configs: Iterable[bytes]) -> bool:
    """Whether one of these settings files may name a program."""
    return any(_WORDS.search(text) for text in configs)


def read_programs(listing: str, folder: Path) -> Iterator[LocalProgram]:
    """Yield the programs in the output of ``git config --list -z --show-scope --show-origin``.

    *folder* is the one that git ran in: relative paths of files begin there.
    """
    fields = listing.split("\0")
    users: dict[str, list[str]] = {}
    local: dict[str, tuple[str, str]] = {}
    for scope, origin, item in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        key, _, value = item.partition("\n")
        if scope in ("local", "worktree"):
            local[key] = (value, origin.removeprefix("file:"))
        else:
            users.setdefault(key, []).append(value)
    for key, (value, origin) in local.items():
        harmless = _harmless(key, value, folder)
        if harmless is None or value in users.get(key, [])[-1:]:
            continue
        if "=" in key:
            # An option ends its key at the first "=", so it cannot replace this one.
            message = f"{origin} names a program in {key!r}, which cannot be switched off"
            raise GitError(message, hint=f"remove that section from {origin}")
        is_users = False
        values = users.get(key, [harmless])
        override = ["-c", f"{key}={values[-1]}"]
        if key.startswith("credential."):
            # All values count, and an empty one discards those before it.
            override = [option for one in ("", *values) for option in ("-c", f"{key}={one}")]
        if name := LocalProgram(key=key, value=value, origin=origin).filter:
            parts = (f"filter.{name}.{part}" for part in ("clean", "smudge", "process"))
            is_users = any(part in users for part in parts)
            if not is_users:
                override += ["-c", f"filter.{name}.required=false"]
        if key == "protocol.allow":
            override = ["-c", "protocol.ext.allow=never"]
        yield LocalProgram(key=key, value=value, origin=origin, override=tuple(override), users=is_users)


def _harmless(key: str, value: str, folder: Path) -> str | None:
    """Return the value that replaces the repository's; ``None`` if that may stay."""
    if _FILES.fullmatch(key):
        with suppress(OSError, ValueError):  # git ignores a missing one
            is_file = stat.S_ISREG((folder / Path(value).expanduser()).stat().st_mode)
            return None if is_file else os.devnull
        return None
    found = next((harmless for pattern, harmless in _HARMLESS if re.fullmatch(pattern, key)), None)
    if found is None or not value:
        return None
    if key.startswith("submodule."):
        return found if value.startswith("!") else None
    if key.startswith("pager.") or key == "core.fsmonitor":
        return None if value.lower() in ("true", "false", "yes", "no", "on", "off", "0", "1") else found
    if key.startswith("protocol."):
        return found if value != "never" else None
    return None if key.startswith("filter.lfs.") and _GIT_LFS.fullmatch(value) else found


def selected_config(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in the environment (``GIT_CONFIG_COUNT``), without credentials."""
    try:
        count = min(int(environ.get("GIT_CONFIG_COUNT", "0") or "0"), 1000)
    except ValueError:
        return {}
    names = [(f"GIT_CONFIG_KEY_{n}", f"GIT_CONFIG_VALUE_{n}") for n in range(count)]
    pairs = [(environ[key], environ[value]) for key, value in names if key in environ and value in environ]
    kept = [one for one in pairs if not re.match(r"(http|credential|url|sendemail|imap)\.", one[0].lower())]
    found = {"GIT_CONFIG_COUNT": str(len(kept))} if kept else {}
    for number, (key, value) in enumerate(kept):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found
