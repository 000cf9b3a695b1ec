"""Where an agent may write, and what it may read.

A path is checked both as it is written and as it resolves, so that neither ``..`` nor a symbolic
link leads anywhere else. Names are compared as a file system does that ignores case and invisible
characters.
"""

from __future__ import annotations

import glob
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Set
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path, PurePath
from typing import TypeAlias

import attrs

from gsd_core import PROTECTED_NAMES, Ask, Deny, fold_name, is_secret_name, protected_part

from .table import table

Objection: TypeAlias = Deny | Ask | None
PLANNING = ".planning"
TEMPORARY = ("/tmp", "/var/tmp")
UNKNOWN, STAR = "\x00", "\x03"
"""In a word: any text, and any part of one name, such as a number, a pattern of file names, ``{a,b}``.

They are control characters, which no command may contain.
"""
_PATTERN = str.maketrans({STAR: "*", UNKNOWN: "*"})
"""Turns a word into a pattern for ``fnmatch``; an unknown part may be anything."""


def known(word: str) -> bool:
    """Whether all of a word is known; a pattern of file names counts as known."""
    return UNKNOWN not in word


def shown(word: str) -> str:
    """Return a word for a message."""
    return word.replace(UNKNOWN, "$…").replace(STAR, "*")


def strictest(objections: Iterable[Objection]) -> Objection:
    """Return a denial if there is one, else a question if there is one."""
    found = list(objections)
    return next((one for kind in (Deny, Ask) for one in found if isinstance(one, kind)), None)


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


@attrs.frozen(kw_only=True)
class Paths:
    """Checks paths and words of a command, given the project's *tree* and the user's *home*.

    *folder* is where a command runs, ``None`` if that is known only at run time. Anyone may write to
    *scratch*, the temporary folders. *owns_planning*: the agent may change ``.planning/`` and commit.
    """

    tree: Path = attrs.field(converter=_real)
    folder: Path | None = attrs.field(default=attrs.Factory(lambda paths: paths.tree, takes_self=True))
    home: Path = attrs.field(factory=lambda: _real(Path.home()))
    scratch: Set[Path] = attrs.field(factory=lambda: set(map(_real, (tempfile.gettempdir(), *TEMPORARY))))
    owns_planning: bool = False

    def check_write(self, word: str) -> Objection:
        """Return the objection to writing to the path that a word names, if any."""
        if name := self.protected_name(word):
            return Deny(reason=f"agents may not change {name}")
        prefix = _known_prefix(word)
        if prefix.startswith("/") or (self.folder and known(word)):
            paths = [prefix if prefix == word else f"{prefix}x"]
            # A pattern may match a link. Two stars stand for what `find` prints, which follows no links.
            if known(word) and STAR in word and STAR + STAR not in word:
                pattern = os.path.join(self.folder or "/", glob.escape(word).translate(_PATTERN))  # noqa: PTH118
                paths += islice(glob.iglob(pattern), 100)  # noqa: PTH207 - absolute patterns too
            objection = strictest(map(self.check_write_path, paths))
            if objection or known(word):
                return objection
        what = f"where {shown(word)!r} leads is known only at run time"
        return Ask(reason=f"{what}: write it out, the path has to be visible")

    def check_read(self, word: str) -> Objection:
        """Return the objection to reading the path that a word names, if any.

        Many words are no paths at all. So one that does not exist counts only if it leads out of the folder,
        or is absolute and its first folder exists, which that of an address, ``/api/users``, does not.
        """
        if STAR in word and any(_may_be(".env", part) for part in word.split("/")):
            return Deny(reason=f"{shown(word)} may match files with secrets")
        prefix = _known_prefix(word)
        if not prefix or not (self.folder or prefix.startswith("/")):
            return None
        objection = self.check_read_path(prefix)
        path, first = Path(self.folder or self.tree, prefix), "/" + prefix[1:].partition("/")[0]
        is_secret = isinstance(objection, Deny) and (prefix[0] == "/" or path.name[:1] == ".")
        leads_out = re.match(r"\.\.|[^/].*/\.\./", prefix) or (prefix[0] == "/" and os.path.isdir(first))  # noqa: PTH112
        return objection if is_secret or leads_out or os.path.lexists(path) else None

    def check_argument(self, word: str) -> Objection:
        """Return the objection to a program's use of the path that a word may be, to read or to write."""
        text = re.sub(r"^-{1,2}[\w.-]+=|^-[A-Za-z](?=[/~.])|^@(?=[/~.])", "", word)
        if name := self.protected_name(text):
            return Deny(reason=f"agents may not change {name}")
        is_new = re.match(r"-.*=[/~.]", word) and known(text) and not os.path.lexists(text)
        return self.check_write(text) if is_new else self.check_read(text)

    def check_read_path(self, path: str) -> Objection:
        """Return the objection to reading *path*, if any."""
        listed, (given, real) = table()["places"], self.places(path)
        for place in (given, real):
            secret = any(f"/{each}/" in f"{fold_name(str(place))}/" for each in listed["secret"])
            if (
                is_secret_name(place.name)
                or (secret and not place.is_relative_to(self.tree))
                or any(fnmatch(str(place), each) for each in listed["system_secrets"])
            ):
                return Deny(reason=f"{path} usually contains secrets")
        folders = [sys.prefix, sys.base_prefix, *listed["system"], *listed["libraries"]]
        allowed = any(real.is_relative_to(self.home / folder) for folder in [str(self.tree), *folders])
        allowed = allowed or "tool-results" in real.parts or real in self.scratch or self.is_scratch(real)
        return None if allowed else Ask(reason=f"{path} is outside the project")

    def protected_name(self, word: str) -> str:
        """Return the protected name that a word contains or may expand to; empty if there is none."""
        # If the agent may change some of `.planning`, the resolved path decides about it.
        names = [name for name in PROTECTED_NAMES if not (self.owns_planning and name == PLANNING)]
        for part in word.split("/") if "://" not in word else ():
            for name in names:
                sure = name[:1] == "." or part == name or os.path.lexists(self.tree / name)
                if sure and _may_be(name, part):
                    return name
        return self.protected(self.folder) if self.folder else ""

    def protected(self, path: Path) -> str:
        """Return the part of a path that no agent may change; empty if there is none."""
        inner = path.relative_to(self.tree) if path.is_relative_to(self.tree) else path
        if self.owns_planning and path != inner and inner.parts[:1] == (PLANNING,):
            inner = inner.relative_to(PLANNING)
        return protected_part(inner)

    def is_scratch(self, path: Path) -> bool:
        """Whether a path is in a temporary folder, except the one that contains the project."""
        for folder in self.scratch:
            if path.is_relative_to(folder) and path != folder:
                return not self.tree.is_relative_to(folder / path.relative_to(folder).parts[0])
        return False

    def contains_tree(self, word: str) -> bool:
        """Whether a word names the project, a folder that contains it, or everything in it."""
        parts = PurePath(word.translate(_PATTERN)).parts
        whole = str(PurePath(*parts[:-1]) if parts and parts[-1] in ("*", ".*", "**") else PurePath(word))
        return known(word) and any(map(self.tree.is_relative_to, self.places(whole)))

    def check_write_path(self, path: str) -> Objection:
        """Return the objection to writing, replacing or deleting *path*, if any."""
        lexical, real = self.places(path)
        if {str(real), str(lexical)} & table()["places"]["devices"] or str(lexical).startswith("/dev/fd/"):
            return None
        if name := self.protected(lexical) or self.protected(real):
            return Deny(reason=f"agents may not change {name}: {PROTECTED_NAMES[fold_name(name)]}")
        if real.is_relative_to(self.tree):
            return Ask(reason=f"{path} usually contains secrets") if is_secret_name(real.name) else None
        if self.is_scratch(real):
            return None
        return Deny(reason=f"{path} is outside the project; write inside it, or below /tmp")

    def places(self, path: str) -> tuple[Path, Path]:
        """Return the path as it is written, made absolute, and with all symbolic links resolved."""
        whole = os.path.join(self.folder or self.tree, path)  # noqa: PTH118 - a Path would drop .. and //
        return Path(os.path.normpath(whole)), _real(whole)


def _known_prefix(word: str) -> str:
    return re.split(r"[\x00-\x05]", word, maxsplit=1)[0]


def _may_be(name: str, part: str) -> bool:
    """Whether a part of a pattern may match *name*; a lone ``*`` or ``$x`` is too vague to count."""
    if STAR not in part and known(part):
        return fold_name(part) == name
    if len(part) > 200:
        return True  # a pattern that is made to be slow
    plain = re.sub(r"\*+", "*", fold_name(part.translate(_PATTERN)))
    if len(plain.replace("*", "").replace("?", "")) < 2 and plain not in (".*", ".?*", ".??*"):
        return False
    return fnmatch(name, plain)
