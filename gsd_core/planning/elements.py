"""The XML-like elements in the body of a plan, which are no XML.

Their text is raw: ``<div>``, ``&&`` and ``->`` stand in it as they are. Only what a reader
would take for the plan's own structure is written with ``&lt;``, and read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import field, frozen

STRUCTURE = (
    "objective|execution_context|context|tasks|task|name|files|action|verify|automated|done"
    "|verification|success_criteria|output|feature"
)

_OPEN = re.compile(r"<([a-z][a-z0-9_-]*)((?:\s+[\w:-]+=(?:\"[^\"]*\"|'[^']*'))*)\s*>")
_ATTRIBUTE = re.compile(r"([\w:-]+)=(?:\"([^\"]*)\"|'([^']*)')")


@frozen(kw_only=True)
class Element:
    """An element: its *name*, its *attributes*, and the raw text *inside* of it."""

    name: str
    inside: str
    attributes: dict[str, str] = field(factory=dict[str, str])

    @property
    def text(self) -> str:
        """The text inside as it was meant: unescaped, without common indentation."""
        raw = _dedented(self.inside) if self.inside.startswith("\n") else self.inside
        return unescape(raw, self.name).strip()


def elements(text: str) -> Iterator[Element]:
    """Yield the outermost elements of *text* in order; what is never closed is plain text."""
    at, unclosed = 0, set[str]()
    while opening := _OPEN.search(text, at):
        name = opening[1]
        end = -1 if name in unclosed else text.find(f"</{name}>", opening.end())
        if end < 0:
            unclosed.add(name)
            at = opening.end()
            continue
        yield _element(opening, text[opening.end() : end])
        at = end + len(opening[1]) + 3


def named(text: str, name: str) -> Iterator[Element]:
    """Yield the elements with that name, wherever they stand outside of each other."""
    yield from (element for element, _, _ in _spans(text, name))


def without(text: str, name: str) -> str:
    """Return what is left of *text* without the elements with that name."""
    kept, at = list[str](), 0
    for _, start, end in _spans(text, name):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def _spans(text: str, name: str) -> Iterator[tuple[Element, int, int]]:
    """Yield the elements with that name, and where they begin and end."""
    at, closing = 0, f"</{name}>"
    while opening := _OPEN.search(text, at):
        if opening[1] != name:
            at = opening.end()
            continue
        end = text.find(closing, opening.end())
        if end < 0:
            return
        at = end + len(closing)
        yield _element(opening, text[opening.end() : end]), opening.start(), at


def _element(opening: re.Match[str], inside: str) -> Element:
    attributes = {m[1]: m[2] or m[3] or "" for m in _ATTRIBUTE.finditer(opening[2])}
    return Element(name=opening[1], inside=inside, attributes=attributes)


def escape(text: str, element: str) -> str:
    """Return *text* so that nothing in it opens or closes a part of the plan."""
    pattern = _structural(element)
    text = re.sub(rf"&((?:amp;)*lt;)(?={pattern})", r"&amp;\1", text)
    return re.sub(rf"<(?={pattern})", "&lt;", text)


def unescape(text: str, element: str) -> str:
    """Return what :func:`escape` was given."""
    pattern = _structural(element)
    text = re.sub(rf"&lt;(?={pattern})", "<", text)
    return re.sub(rf"&amp;((?:amp;)*lt;)(?={pattern})", r"&\1", text)


def _dedented(text: str) -> str:
    lines = text.split("\n")
    depth = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return "\n".join(line[depth:] for line in lines)


def _structural(element: str) -> str:
    """A pattern for the rest of a tag; options have names of their own, which stay as they are."""
    names = [*STRUCTURE.split("|"), re.escape(element)]
    if element == "options":
        names.remove("name")
    return rf"(?i:/?(?:{'|'.join(names)})(?![\w-]))"
