"""One key link: does the source refer to the target?"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path, PurePosixPath

from gsd_core import BadArtifact, Evidence, Gap, KeyLink

from .files import Tree, read

SEARCH_SECONDS = 5.0

# Generic file names: other files refer to the folder instead.
GENERIC_NAMES = ("index", "__init__", "__main__", "mod", "main", "lib", "route", "page", "layout", "server")
# Languages whose files refer to each other by name, so that a missing name is a missing link.
REFER_BY_NAME = frozenset(
    (
        *(".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".vue", ".svelte", ".astro", ".dart"),
        *(".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".sh", ".bash", ".html", ".css", ".scss"),
        *(".lua", ".php", ".rb", ".ex", ".exs"),
    )
)


async def check_link(tree: Tree, link: KeyLink) -> Gap | Evidence | None:
    """Return a gap, the proof that the link exists, or ``None`` if code cannot tell."""
    path = _bare_path(link.source)
    found = tree.find(path)
    if isinstance(found, str):
        return _gap(link, f"{path}: {found}") if _is_path(path) else None
    if found.is_dir():
        return None
    text = read(found).text
    if link.pattern:
        return await _check_pattern(link, text)
    target = _bare_path(link.target)
    for name in _reference_names(target):
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text):
            return _evidence(link, f"refers to {name!r}")
    if " " in target or not target or PurePosixPath(path).suffix not in REFER_BY_NAME:
        return None
    # A package may re-export what its files define: ``from shop import Cart`` may mean shop/cart.py.
    package = PurePosixPath(target).parent.name
    if package and re.search(rf"(?<!\w){re.escape(package)}(?!\w)", text):
        return None
    return _gap(link, f"{link.source} does not refer to {target}")


async def _check_pattern(link: KeyLink, text: str) -> Gap | Evidence:
    match await search(link.pattern, text):
        case Found.YES:
            return _evidence(link, f"matches /{link.pattern}/")
        case Found.NO:
            return _gap(link, f"nothing in {link.source} matches /{link.pattern}/")
        case Found.TIMEOUT:
            return _gap(link, f"the search for /{link.pattern}/ timed out", unverified=True)
        case Found.INVALID if link.pattern in text:
            return _evidence(link, f"contains {link.pattern!r}")
        case Found.INVALID:
            reason = f"{link.pattern!r} is not a valid regular expression, nor does {link.source} contain it"
            return _gap(link, reason, unverified=True)


def _reference_names(target: str) -> Iterator[str]:
    """Yield the names that a file may use to refer to *target*."""
    bare = target.removesuffix("()")
    yield from dict.fromkeys([target, bare])
    if not _is_path(bare):
        return
    path = PurePosixPath(bare)
    stem = path.name.split(".")[0] or path.name
    if stem.lstrip("+").lower() in GENERIC_NAMES and path.parent.name:
        yield path.parent.name
    else:
        # user_service.rb defines UserService.
        yield from (stem, re.sub(r"(?:^|[_-])([A-Za-z0-9])", lambda match: match[1].upper(), stem))
    yield path.name
    yield path.with_suffix("").name


def _bare_path(text: str) -> str:
    """``src/page.tsx (header)`` means ``src/page.tsx``."""
    return re.sub(r"\s+\(.*\)$", "", text.strip().strip("`")).removeprefix("./")


def _is_path(text: str) -> bool:
    return " " not in text and not text.startswith("/") and ("/" in text or bool(Path(text).suffix))


def _evidence(link: KeyLink, proof: str) -> Evidence:
    return Evidence(about=f"{link.source} -> {link.target}", holds=True, proof=f"{link.source} {proof}")


def _gap(link: KeyLink, reason: str, *, unverified: bool = False) -> Gap:
    return Gap(
        truth=f"{link.source} is connected to {link.target}" + (f" ({link.via})" if link.via else ""),
        reason=reason,
        about=f"{link.source} -> {link.target}",
        status="unverified" if unverified else "failed",
        artifacts=(BadArtifact(path=_bare_path(link.source), issue=reason),),
    )


_CAN_REPEAT = re.compile(r"[*+?{]")
_SEARCH_PROGRAM = """
import re, sys
pattern, text = sys.stdin.buffer.read().decode("utf-8", "replace").split("\\0", 1)
sys.exit(10 if re.search(pattern, text, re.MULTILINE) else 11)
"""


class Found(Enum):
    """The result of a search; the first two values are exit codes of the search process."""

    YES = 10
    NO = 11
    TIMEOUT = 12
    INVALID = 13


async def search(pattern: str, text: str, *, seconds: float = SEARCH_SECONDS) -> Found:
    """Search *text* for a regular expression that a model wrote, for a limited time.

    A pattern like ``(a+)+$`` can run for years, and ``re`` holds the interpreter lock while it
    runs, so neither a thread nor a timeout can end it. A pattern that can repeat anything is therefore
    searched in a separate process, which can be killed. Without repetition a pattern cannot
    explode, and is searched here.
    """
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError):
        return Found.INVALID
    if not _CAN_REPEAT.search(pattern):
        return Found.YES if compiled.search(text) else Found.NO
    if "\0" in pattern:  # it separates pattern and text on the process's standard input
        return Found.INVALID
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _SEARCH_PROGRAM, stdin=pipe, stdout=null, stderr=null
    )
    try:
        await asyncio.wait_for(process.communicate(f"{pattern}\0{text}".encode()), seconds)
    except TimeoutError:
        return Found.TIMEOUT
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return Found(process.returncode)
    except ValueError:  # the process was killed from outside, or ran out of memory
        return Found.TIMEOUT
