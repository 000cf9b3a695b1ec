"""Where an agent may write, and what it may read.

A path is checked both as it is written and as it resolves, so that neither ``..`` nor a symbolic
link leads anywhere else. Names are compared as a file system does that ignores case and invisible
characters.
"""

from __future__ import annotations

import os
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import TypeAlias

import attrs

from gsd_core import PROTECTED_NAMES, Ask, Deny, fold_name, is_secret_name, protected_part

from .lexer import UNKNOWN, Word
from .programs import EXCLUDING_OPTIONS

DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"})

SECRET_FOLDERS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker/config.json", ".config/gcloud", ".config/gh"),
    *(".claude.json", ".claude/.credentials.json", ".npmrc", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".m2/settings.xml", ".gem/credentials", ".password-store", ".local/share/keyrings", ".mozilla"),
    *(".config/hub", ".config/op", ".bash_history", ".zsh_history", "library/keychains", ".terraform.d"),
)
SYSTEM_SECRETS = (
    *("/etc/shadow*", "/etc/gshadow*", "/etc/sudoers*", "/etc/ssh/*key", "/proc/*/environ", "/proc/*/mem"),
    *(
        "/run/secrets/*",
        "/var/run/secrets/*",
        "/dev/mem",
        "/dev/kmem",
        "/dev/sd*",
        "/dev/nvme*",
        "/dev/disk*",
    ),
)
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/nix", "/proc", "/sys", "/dev"),
    *("/Library", "/System", "/Applications", "/snap"),
)
LIBRARIES = (
    *(".cache", ".cargo/registry", ".rustup", ".pyenv", ".nvm", ".npm", ".local/lib", ".local/share"),
    *("go/pkg", ".m2/repository", ".gem", ".rbenv", ".sdkman", ".bun", ".deno", ".volta", ".asdf"),
)

Objection: TypeAlias = Deny | Ask | None


@attrs.frozen(kw_only=True)
class PathPolicy:
    """Checks paths, given the project's resolved *tree*, the user's *home* and the *scratch* folders.

    Scratch folders are temporary folders; anyone may write there.
    """

    tree: Path
    home: Path = attrs.field(factory=lambda: Path(os.path.realpath(Path.home())))
    scratch: tuple[Path, ...] = ()

    @classmethod
    def for_project(cls, tree: Path) -> PathPolicy:
        """Return the policy for a project."""
        found = {Path(os.path.realpath(folder)) for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp")}
        return cls(tree=Path(os.path.realpath(tree)), scratch=tuple(sorted(found)))

    def check_write(self, path: str, cwd: Path | None = None) -> Objection:
        """Return the objection to writing, replacing or deleting *path*, if any."""
        lexical, real = self._lexical_and_real(path, cwd)
        if str(real) in DEVICES or str(lexical) in DEVICES or str(lexical).startswith("/dev/fd/"):
            return None
        for place in (lexical, real):
            if name := self.protected(place):
                return Deny(reason=f"agents may not change {name}: {PROTECTED_NAMES[fold_name(name)]}")
        if self._inside(real):
            return Ask(reason=f"{path} usually contains secrets") if is_secret_name(real.name) else None
        if self.is_scratch(real):
            return None
        return Deny(reason=f"{path} is outside the project")

    def check_read(self, path: str, cwd: Path | None = None) -> Objection:
        """Return the objection to reading *path*, if any."""
        lexical, real = self._lexical_and_real(path, cwd)
        if any(self._is_secret(place) for place in (lexical, real)):
            return Deny(reason=f"{path} usually contains secrets")
        if self._inside(real) or self.is_scratch(real) or self._is_library(real):
            return None
        return Ask(reason=f"{path} is outside the project")

    def protected(self, path: Path) -> str:
        """Return the part of a path that no agent may change; empty if there is none."""
        return protected_part(path.relative_to(self.tree) if path.is_relative_to(self.tree) else path)

    def is_scratch(self, path: Path) -> bool:
        """Whether a path is in a temporary folder, except the one that contains the project."""
        for folder in self.scratch:
            if path.is_relative_to(folder) and path != folder:
                top = folder / path.relative_to(folder).parts[0]
                return not self.tree.is_relative_to(top)
        return False

    def contains_tree(self, path: str, cwd: Path | None = None) -> bool:
        """Whether a path is the project itself or a folder that contains it."""
        return any(self.tree.is_relative_to(place) for place in self._lexical_and_real(path, cwd))

    def resolved(self, path: str, cwd: Path | None = None) -> Path:
        """Return the path with all symbolic links resolved."""
        return self._lexical_and_real(path, cwd)[1]

    def _lexical_and_real(self, path: str, cwd: Path | None) -> tuple[Path, Path]:
        whole = os.path.join(cwd or self.tree, path)  # noqa: PTH118 - a Path would drop .. and //
        return Path(os.path.normpath(whole)), Path(os.path.realpath(whole))

    def _inside(self, path: Path) -> bool:
        return path.is_relative_to(self.tree)

    def _is_library(self, path: Path) -> bool:
        folders = [Path(sys.prefix), Path(sys.base_prefix), *map(Path, SYSTEM)]
        folders += [self.home / folder for folder in LIBRARIES]
        # A disk in memory, with other programs' files, and no device.
        if path.is_relative_to("/dev/shm"):
            folders.remove(Path("/dev"))
        return "tool-results" in path.parts or any(path.is_relative_to(folder) for folder in folders)

    def _is_secret(self, path: Path) -> bool:
        if is_secret_name(path.name) or any(fnmatch(str(path), pattern) for pattern in SYSTEM_SECRETS):
            return True
        below = {fold_name(str(PurePath(*path.parts[i:]))) for i in range(len(path.parts))}
        return not self._inside(path) and any(
            part == folder or part.startswith(f"{folder}/") for part in below for folder in SECRET_FOLDERS
        )


@attrs.define
class PathContext:
    """Checks the words of a command as paths, relative to the folder that the command runs in.

    *cwd* is ``None`` if that folder is known only at run time.
    """

    policy: PathPolicy
    cwd: Path | None

    def check_write(self, word: Word) -> Objection:
        """Return the objection to writing to the path that a word names, if any."""
        if name := self.protected_name(word):
            return Deny(reason=f"agents may not change {name}")
        prefix = _known_prefix(word)
        if self.cwd is None and not prefix.startswith("/"):
            unclear = ".." in PurePath(prefix).parts
            return Ask(reason="where it writes is known only at run time") if unclear else None
        if prefix == word.text:
            return self.policy.check_write(prefix, self.cwd)
        return self.policy.check_write(prefix + "x", self.cwd) if prefix else None

    def check_read(self, word: Word) -> Objection:
        """Return the objection to reading the path that a word names, if any.

        Only existing files count: many words are not paths at all.
        """
        if word.pattern and any(_may_be(".env", part) for part in word.pattern.split("/")):
            return Deny(reason=f"{word.text} may match files with secrets")
        prefix = _known_prefix(word)
        if not prefix or (self.cwd is None and not prefix.startswith("/")):
            return None
        path = Path(self.cwd or "/", prefix)
        objection = self.policy.check_read(str(path))
        is_secret = isinstance(objection, Deny) and prefix.startswith("/")
        return objection if is_secret or os.path.lexists(path) else None

    def protected_name(self, word: Word) -> str:
        """Return the protected name that a word contains or may expand to; empty if there is none."""
        if "://" in word.text:
            return ""
        for part in (word.pattern or word.text).replace(UNKNOWN, "*").split("/"):
            for name in PROTECTED_NAMES:
                if _may_be(name, part) and (name.startswith(".") or part == name or self._exists(name)):
                    return name
        return self._inside_protected()

    def contains_tree(self, word: Word) -> bool:
        """Whether a word names the project, a folder that contains it, or everything in it."""
        parts = PurePath(word.text).parts
        whole = PurePath(*parts[:-1]) if parts and parts[-1] in ("*", ".*", "**") else PurePath(word.text)
        return self.cwd is not None and word.known and self.policy.contains_tree(str(whole), self.cwd)

    def _inside_protected(self) -> str:
        return self.policy.protected(self.cwd) if self.cwd else ""

    def _exists(self, name: str) -> bool:
        return os.path.lexists(Path(self.cwd or self.policy.tree, name))


def without_excluded(words: list[Word]) -> list[Word]:
    """Return the words without the values of ``--exclude`` and the like; ``--option=value`` as ``value``."""
    kept: list[Word] = []
    before = ""
    for word in words:
        option, equals, value = word.text.partition("=")
        is_option = option.startswith("-")
        if not any(name in (option if is_option else before) for name in EXCLUDING_OPTIONS):
            kept.append(Word(value) if is_option and equals else word)
        before = option if is_option and not equals else ""
    return kept


def _may_be(name: str, part: str) -> bool:
    """Whether a part of a pattern may match *name*; a lone ``*`` or ``$x`` is too vague to count."""
    plain = fold_name(part)
    if not any(char in plain for char in "*?["):
        return plain == name
    if len(plain.replace("*", "").replace("?", "")) < 2 and plain not in (".*", ".?*", ".??*"):
        return False
    return fnmatch(name, plain)


def _known_prefix(word: Word) -> str:
    """Return the text up to the first part that is unknown, or a pattern."""
    text = word.text
    ends = [text.index(char) for char in ("*", "?", "[") if word.pattern and char in text]
    if UNKNOWN in text:
        ends.append(text.index(UNKNOWN))
    return text[: min(ends)] if ends else text
