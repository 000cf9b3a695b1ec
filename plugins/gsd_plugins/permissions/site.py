"""Words of a command as paths, seen from the folder where the command runs."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path, PurePath

from attrs import define

from gsd_core import Ask, Deny

from .lexer import UNKNOWN
from .paths import Places, Verdict, folded
from .programs import EXCLUDING
from .tables import PROTECTED
from .words import Word


@define
class Site:
    """The *places* and the current folder, ``None`` if that is known only when the command runs."""

    places: Places
    cwd: Path | None

    def write(self, word: Word) -> Verdict:
        """Judge writing to what a word names."""
        if name := self.named(word):
            return Deny(reason=f"{name} is not for agents to change")
        prefix = _known(word)
        if self.cwd is None and not prefix.startswith("/"):
            unclear = ".." in PurePath(prefix).parts
            return Ask(reason="where it writes is known only when it runs") if unclear else None
        if prefix == word.text:
            return self.places.write(prefix, self.cwd)
        return self.places.write(prefix + "x", self.cwd) if prefix else None

    def read(self, word: Word) -> Verdict:
        """Judge reading what a word names, if there is such a file: many words are no paths at all."""
        if word.pattern and any(_may_be(".env", part) for part in word.pattern.split("/")):
            return Deny(reason=f"{word.text} may hold secrets")
        prefix = _known(word)
        if not prefix or (self.cwd is None and not prefix.startswith("/")):
            return None
        path = Path(self.cwd or "/", prefix)
        verdict = self.places.read(str(path))
        told = isinstance(verdict, Deny) and prefix.startswith("/")
        return verdict if told or os.path.lexists(path) else None

    def named(self, word: Word) -> str:
        """Return the protected name that a word names, or may name, in its text."""
        if "://" in word.text:
            return ""
        for part in (word.pattern or word.text).replace(UNKNOWN, "*").split("/"):
            for name in PROTECTED:
                if _may_be(name, part) and (name.startswith(".") or part == name or self._exists(name)):
                    return name
        return self._inside_protected()

    def holds_tree(self, word: Word) -> bool:
        """Whether a word names the project, or a folder around it, or all that is in it."""
        parts = PurePath(word.text).parts
        whole = PurePath(*parts[:-1]) if parts and parts[-1] in ("*", ".*", "**") else PurePath(word.text)
        return self.cwd is not None and word.known and self.places.holds_tree(str(whole), self.cwd)

    def _inside_protected(self) -> str:
        return self.places.protected(self.cwd) if self.cwd else ""

    def _exists(self, name: str) -> bool:
        return os.path.lexists(Path(self.cwd or self.places.tree, name))


def excluded(words: list[Word]) -> list[Word]:
    """Return the words without those that name what is left out, and with options' values alone."""
    kept: list[Word] = []
    before = ""
    for word in words:
        option, equals, value = word.text.partition("=")
        is_option = option.startswith("-")
        if not any(name in (option if is_option else before) for name in EXCLUDING):
            kept.append(Word(value) if is_option and equals else word)
        before = option if is_option and not equals else ""
    return kept


def _may_be(name: str, part: str) -> bool:
    """Whether a part of a pattern may be *name*; a lone ``*`` or ``$x`` says too little to tell."""
    plain = folded(part)
    if not any(char in plain for char in "*?["):
        return plain == name
    if len(plain.replace("*", "").replace("?", "")) < 2 and plain not in (".*", ".?*", ".??*"):
        return False
    return fnmatch(name, plain)


def _known(word: Word) -> str:
    """Return the text up to what is known only when it runs, or up to a pattern."""
    text = word.text
    ends = [text.index(char) for char in ("*", "?", "[") if word.pattern and char in text]
    if UNKNOWN in text:
        ends.append(text.index(UNKNOWN))
    return text[: min(ends)] if ends else text
