"""Programs that write, replace or delete what their words name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from gsd_core import Ask, Deny

from .lexer import UNKNOWN
from .paths import Verdict
from .programs import WRITES_ALL, WRITES_LAST, WRITES_VALUE
from .site import Site
from .words import Word, followed

# Names that stand in .git/ and .planning/: a filter that lets them through protects nothing.
INSIDE = ("HEAD", "config", "index", "STATE.md", "ROADMAP.md", "config.json")
DELETING = frozenset({"rm", "rmdir", "unlink", "shred", "mv", "trash"})
FILTERS = frozenset({"-name", "-iname", "-path", "-wholename", "-regex"})
FIND_WRITES = frozenset({"-fprint", "-fprintf", "-fls", "-fprint0"})


def judge_writes(program: str, words: Sequence[Word], site: Site) -> Iterator[Verdict]:
    """Judge what *program* writes to, for the programs that we know to write."""
    bare = _positional(words)
    yield from _values(program, words, site)
    if program in DELETING:
        yield from _deletes(program, words, bare, site)
    if program in WRITES_ALL:
        yield from (site.write(word) for word in _targets(program, bare))
    if program in WRITES_LAST and bare and not _remote(bare[-1]):
        yield site.write(bare[-1])
    if program in ("cp", "mv", "ln"):
        yield from (site.read(word) for word in bare[:-1])
    if program == "rsync" and any(_remote(word) for word in bare):
        yield Ask(reason="it reaches another machine")
    if program in ("sed", "perl", "ruby", "yq", "gawk") and _in_place(words):
        yield from (site.write(word) for word in bare[0 if _has_script(words) else 1 :])
    if program == "dd":
        yield from (site.write(Word(w.text[3:], "")) for w in words if w.text.startswith("of="))
    if program in ("docker", "podman"):
        yield from (site.write(Word(host)) for word in words if (host := _mounted(word.text)))
    if program == "patch":
        yield Ask(reason="which files a patch changes cannot be seen")


def judge_find(words: Sequence[Word], site: Site) -> Iterator[Verdict]:
    """Judge ``find … -delete`` and the like; commands that it runs are judged by the caller."""
    for word, following in followed(words):
        if word.text in FIND_WRITES:
            yield site.write(following)
    if any(word.text == "-delete" for word in words):
        yield changes_found(words, site)


def changes_found(words: Sequence[Word], site: Site) -> Verdict:
    """Judge changing all that ``find`` finds: a filter has to keep it out of .git and .planning."""
    roots = find_roots(words)
    for root in roots:
        if verdict := site.write(Word(f"{root.text}/x", root.pattern and f"{root.pattern}/x")):
            return verdict
    if not any(site.holds_tree(root) or not root.known for root in roots):
        return None
    chosen, left_out = _filters(words)
    narrow = any(not any(fnmatch(name, text) for name in INSIDE) for text in chosen)
    if narrow and not any(_names_of(text, site) for text in chosen):
        return None
    if {".git", ".planning"} <= {name for text in left_out for name in _names_of(text, site)}:
        return None
    return Deny(reason="it would reach into .git or .planning; name the files, or a folder further in")


def _filters(words: Sequence[Word]) -> tuple[list[str], list[str]]:
    """Return the patterns that files have to match, and those that they must not."""
    chosen: list[str] = []
    left_out: list[str] = []
    before = ""
    for word, following in followed(words):
        if word.text in FILTERS and following.known:
            (left_out if before in ("-not", "!") else chosen).append(following.text)
        before = word.text
    return chosen, left_out


def _names_of(pattern: str, site: Site) -> list[str]:
    return [name for part in pattern.split("/") if (name := site.named(Word(part)))]


def find_roots(words: Sequence[Word]) -> list[Word]:
    """Return where ``find`` begins; the current folder if it does not say."""
    roots: list[Word] = []
    for word in words:
        if word.text.startswith(("-", "(", "!")) and word.text not in ("-L", "-H", "-P"):
            break
        if not word.text.startswith("-"):
            roots.append(word)
    return roots or [Word(".")]


def _deletes(program: str, words: Sequence[Word], bare: Sequence[Word], site: Site) -> Iterator[Verdict]:
    whole = program == "mv" or any(re.match(r"-\w*[rR]|--recursive", word.text) for word in words)
    for word in bare[:-1] if program == "mv" else bare:
        if site.holds_tree(word) and (whole or program == "rmdir"):
            yield Deny(reason=f"{word.text} is the project itself, or around it")
        if whole and (not word.known or (site.cwd is None and not word.text.startswith("/"))):
            yield Ask(reason=f"what {program} takes away is known only when it runs")


def _targets(program: str, bare: Sequence[Word]) -> Sequence[Word]:
    return bare[1:] if program in ("chmod", "chown", "chgrp") else bare


def _values(program: str, words: Sequence[Word], site: Site) -> Iterator[Verdict]:
    """Judge the values of options that name what is written: ``-o FILE``, ``-oFILE``, ``--output=FILE``."""
    options = WRITES_VALUE.get(program, "").split()
    for word, following in followed(words):
        name, equals, value = word.text.partition("=")
        if name in options:
            yield site.write(Word(value) if equals else following)
        elif len(word.text) > 2 and word.text[:2] in options and not word.text.startswith("--"):
            yield site.write(Word(word.text[2:]))


def _positional(words: Sequence[Word]) -> list[Word]:
    ends = [place for place, word in enumerate(words) if word.text == "--"]
    end = ends[0] if ends else len(words)
    return [word for word in words[:end] if not _is_option(word)] + list(words[end + 1 :])


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and word.text != "-"


def _in_place(words: Sequence[Word]) -> bool:
    return any(re.match(r"-[A-Za-z]*i|--in-?place", word.text) for word in words)


def _has_script(words: Sequence[Word]) -> bool:
    return any(re.match(r"-[A-Za-z]*[ef]$|--expression|--file", word.text) for word in words)


def _mounted(text: str) -> str:
    """Return the folder of this machine that an option gives to a container."""
    match = re.match(r"(?:-v|--volume=|.*\bsource=|.*\bsrc=)?(/[^:,]*)[:,]", text)
    return match[1] if match else ""


def _remote(word: Word) -> bool:
    return re.match(r"[\w.@-]{2,}:(?!\\)|rsync://", word.text.replace(UNKNOWN, "x")) is not None
