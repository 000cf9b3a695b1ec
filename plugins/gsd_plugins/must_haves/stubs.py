"""Is a file a stub: something that stands where the work should be?

Only files that a plan names as artifacts are judged, and only for what is there *instead* of the
work: a remark "TODO: implement caching" in a long file that works is no stub.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .python_stubs import python_stub

LINES_PER_MARKER = 10
EMPTY_COMPONENT = 15
LONGEST_STUB = 20_000

_MARKERS = re.compile(
    r"""
    (?:\#|//|/\*|<!--|--|^\s*\*|%|;;)[^\n]*?(?:
        \b(?:TODO|FIXME|XXX)\b[\s:(-]*(?:\w+\)?[\s:]+)?(?:implement|write|add|fill|finish|complete)\b
      | \bplaceholder\b(?!\s*[=:{.(])
      | \bnot\s+(?:yet\s+)?implemented\b
      | \bimplementation\s+goes\s+here\b | \bcoming\s+soon\b | \bstub\s+(?:for|implementation)\b )
  | ^\s*(?:TODO|TBD)\b[^\n]*$
  | \b(?:todo|unimplemented)!\s*\(
  | \b(?:throw\s+(?:new\s+)?\w*(?:Error|Exception)|panic|die|fail|raise|error|errors\.New)
    \b[^\n]*not\s+(?:yet\s+)?implemented
  | \bTODO\(\s*(?:"[^"\n]*")?\s*\)
  | >\s*(?:placeholder|coming\s+soon|todo|lorem\s+ipsum)\b[^<\n]*<
  | ["'`](?:placeholder|coming\s+soon|not\s+implemented|todo)[.!…]*["'`]\s*[;,)}\]]*\s*$
  | ^\s*(?:placeholder|coming\s+soon|not\s+(?:yet\s+)?implemented)[.!…:]*\s*$
  | \blorem\s+ipsum\b
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_COMMENTS = re.compile(r"/\*.*?\*/|<!--.*?-->|^\s*(?:\#|//|--|;;)[^\n]*$", re.DOTALL | re.MULTILINE)
_RETURNED = re.compile(r"(?:\breturn\b|=>)[ \t]*(\(?[^;{}\n]*)")
_NOTHING = re.compile(r"\(?\s*(?:null|undefined|<>\s*</>|<(\w+)[^<>]*(?:/>|>[\w ]{0,40}</\1>))\s*\)?\s*")
_COMPONENTS = (".jsx", ".tsx", ".js", ".ts", ".mjs")


def stub(path: Path, text: str, exports: Sequence[str] = ()) -> str:
    """Say what makes the file a stub; empty if nothing does."""
    if path.suffix == ".py":
        return python_stub(path.name, text, exports)
    if not text.strip():
        return "it is empty"
    if len(text) > LONGEST_STUB:
        return ""
    rest = _work(text)
    markers = [match[0].strip() for match in _MARKERS.finditer(text)]
    if markers and rest - len(markers) <= LINES_PER_MARKER * len(markers):
        return f"it is a stub: {_short(markers[0])!r}"
    if path.suffix in _COMPONENTS and rest <= EMPTY_COMPONENT and _renders_nothing(text):
        return "it is a stub: it returns nothing but an empty element"
    return ""


def _work(text: str) -> int:
    """Count the lines that say something: no comments, imports or lone brackets."""
    bare = _COMMENTS.sub("", text).splitlines()
    dull = re.compile(
        r"[\s{}()\[\];,]*|\s*(?:import|from|use|using|package|require|export \*)\b.*|\s*</?\w+>\s*"
    )
    return sum(1 for line in bare if not dull.fullmatch(line))


def _renders_nothing(text: str) -> bool:
    bare = re.sub(r"\(\s*\n\s*|\n\s*\)", lambda match: match[0].strip(), _COMMENTS.sub("", text))
    returned = [match[1] for match in _RETURNED.finditer(bare) if match[1].strip()]
    return bool(returned) and all(_NOTHING.fullmatch(value) for value in returned)


def _short(marker: str) -> str:
    return marker if len(marker) <= 80 else f"{marker[:77]}…"
