"""One key link: does the source refer to the target?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gsd_core import BadArtifact, Evidence, Gap, KeyLink

from .files import Tree, read
from .patterns import Found, search

# Files whose own name says nothing: others refer to their folder.
NAMELESS = ("index", "__init__", "__main__", "mod", "main", "lib", "route", "page", "layout", "server")
# Languages whose files refer to each other by name, so that a missing name is a missing link.
BY_NAME = frozenset(
    (
        *(".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".vue", ".svelte", ".astro", ".dart"),
        *(".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".sh", ".bash", ".html", ".css", ".scss"),
        *(".lua", ".php", ".rb", ".ex", ".exs"),
    )
)


async def judge_link(tree: Tree, link: KeyLink) -> Gap | Evidence | None:
    """Return a gap, the proof that the link is there, or ``None`` if code cannot say."""
    path = _path(link.source)
    found = tree.find(path)
    if isinstance(found, str):
        return _gap(link, f"{path}: {found}") if _is_path(path) else None
    if found.is_dir():
        return None
    text = read(found).text
    if link.pattern:
        return await _by_pattern(link, text)
    return _by_name(link, PurePosixPath(path), text)


async def _by_pattern(link: KeyLink, text: str) -> Gap | Evidence:
    match await search(link.pattern, text):
        case Found.YES:
            return Evidence(about=_about(link), holds=True, proof=f"{link.source} matches /{link.pattern}/")
        case Found.NO:
            return _gap(link, f"nothing in {link.source} matches /{link.pattern}/")
        case Found.TIMEOUT:
            return _gap(link, f"the pattern /{link.pattern}/ takes too long", unverified=True)
        case Found.INVALID if link.pattern in text:
            return Evidence(about=_about(link), holds=True, proof=f"{link.source} holds {link.pattern!r}")
        case Found.INVALID:
            reason = f"{link.pattern!r} is no regular expression and does not stand in {link.source}"
            return _gap(link, reason, unverified=True)


def _by_name(link: KeyLink, source: PurePosixPath, text: str) -> Gap | Evidence | None:
    target = _path(link.target)
    for name in _names(target):
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text):
            return Evidence(about=_about(link), holds=True, proof=f"{link.source} refers to {name!r}")
    if " " in target or not target or source.suffix not in BY_NAME or _by_package(target, text):
        return None
    return _gap(link, f"{link.source} does not refer to {target}")


def _by_package(target: str, text: str) -> bool:
    """A package may pass on what its files hold: ``from shop import Cart`` may well mean shop/cart.py."""
    package = PurePosixPath(target).parent.name
    return bool(package) and re.search(rf"(?<!\w){re.escape(package)}(?!\w)", text) is not None


def _names(target: str) -> Iterator[str]:
    """Yield what a reference to *target* may look like."""
    bare = target.removesuffix("()")
    yield from dict.fromkeys([target, bare])
    if not _is_path(bare):
        return
    path = PurePosixPath(bare)
    stem = path.name.split(".")[0] or path.name
    if stem.lstrip("+").lower() in NAMELESS and path.parent.name:
        yield path.parent.name
    else:
        yield from (stem, re.sub(r"(?:^|[_-])([A-Za-z0-9])", lambda match: match[1].upper(), stem))
    yield path.name
    yield path.with_suffix("").name


def _path(text: str) -> str:
    """``src/page.tsx (header)`` is about ``src/page.tsx``."""
    return re.sub(r"\s+\(.*\)$", "", text.strip().strip("`")).removeprefix("./")


def _is_path(text: str) -> bool:
    return " " not in text and not text.startswith("/") and ("/" in text or bool(Path(text).suffix))


def _about(link: KeyLink) -> str:
    return f"{link.source} -> {link.target}"


def _gap(link: KeyLink, reason: str, *, unverified: bool = False) -> Gap:
    return Gap(
        truth=f"{link.source} is connected to {link.target}" + (f" ({link.via})" if link.via else ""),
        reason=reason,
        about=_about(link),
        status="unverified" if unverified else "failed",
        artifacts=(BadArtifact(path=_path(link.source), issue=reason),),
    )
