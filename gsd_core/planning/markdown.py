"""Reads planning files: UTF-8, of a size that a planning file may have.

Foreign text in one line of markdown: written so that it stays there, and read back.

A text as lines that can be changed one by one, each with the line end it had.

The XML-like elements in the body of a plan, which are no XML.

Their text is raw: ``<div>``, ``&&`` and ``->`` stand in it as they are. Only what a reader
would take for the plan's own structure is written with ``&lt;``, and read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import define, field, frozen

from gsd_core.errors import PlanningError

MAX_BYTES = 2_000_000
MAX_LINES = 50_000
MAX_LINE = 100_000


def read_text(root: Path, path: str) -> str:
    """Return a planning file's text; raise ``PlanningError`` if it is none, or huge."""
    data = _bytes(root / path, path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PlanningError("not UTF-8", path=path, line=line, hint="save it as UTF-8") from error
    _measure(text, path)
    return text


def _bytes(file: Path, path: str) -> bytes:
    try:
        if not file.is_file():
            raise PlanningError("is no file", path=path, line=1, hint="put the file back, or remove it")
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "look at its permissions"
        raise PlanningError(f"cannot be read: {error.strerror}", path=path, line=1, hint=hint) from error
    if len(data) > MAX_BYTES:
        hint = "a planning file is read whole by every agent: divide it, or move what is old away"
        raise PlanningError("larger than 2 MB", path=path, line=data.count(b"\n") + 1, hint=hint)
    return data


def _measure(text: str, path: str) -> None:
    """Refuse what no planning file looks like, before patterns are matched against it."""
    lines = text.count("\n") + 1
    if lines > MAX_LINES:
        hint = "divide the file, or move what is old away"
        raise PlanningError(f"has more than {MAX_LINES} lines", path=path, line=MAX_LINES, hint=hint)
    if len(text) <= MAX_LINE:
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > MAX_LINE:
            hint = "break the line"
            raise PlanningError(
                f"has a line of more than {MAX_LINE} characters", path=path, line=number, hint=hint
            )


_TAG = r"(?=[!/?A-Za-z])"
_MARKER = re.compile(
    r"^(\s*)(#|>|[-*+](?=\s|[-*]|$)|\d+[.)](?=\s)|\||~~~|```|===|---|Phase:|Plan:|Status:|@)"
)


def inline(text: str) -> str:
    """Return *text* as one line in which no tag, comment or line break is left."""
    text = re.sub(rf"&((?:amp;)*lt;){_TAG}", r"&amp;\1", " ".join(clean(text).split()))
    return re.sub(rf"<{_TAG}", "&lt;", text)


def prose(text: str) -> str:
    """Return the text that :func:`inline` was given, but for its white space."""
    text = re.sub(rf"&lt;{_TAG}", "<", text.strip())
    return re.sub(rf"&amp;((?:amp;)*lt;){_TAG}", r"&\1", text)


def title(text: str) -> str:
    """Return *text* as a name in a heading or between asterisks."""
    return inline(text.replace("*", "").replace("`", "'")) or "Untitled"


def cell(text: str) -> str:
    """Return *text* as a cell of a table."""
    return inline(text).replace("|", r"\|") or "-"


def paragraphs(text: str) -> str:
    """Return *text* as paragraphs of one line each, none of which is a heading, list or table."""
    parts = (inline(part) for part in re.split(r"\n\s*\n", clean(text)))
    return "\n\n".join(_MARKER.sub(r"\1\\\2", _plain(part)) for part in parts if part)


def clean(text: str) -> str:
    """Return *text* with simple line ends, without control characters and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))


def cells(line: str) -> list[str]:
    """Return the cells of a table's row as they stand, empty if the line is none."""
    stripped = line.strip()
    if not stripped.startswith("|"):
        return []
    parts = re.split(r"(?<!\\)\|", stripped[1:])
    return parts[:-1] if parts and not parts[-1].strip() else parts


def clipped(text: str, characters: int) -> str:
    """Return *text*, or its beginning with a mark if it is longer."""
    return text if len(text) <= characters else f"{text[:characters].rstrip()}…"


def _plain(text: str) -> str:
    """Take the marks off a paragraph that begins like one of GSD's fields."""
    return re.sub(r"^\*\*", r"\\*\\*", text)


_PIPE = re.compile(r"(?<!\\)\|")


@define
class Lines:
    """The lines of a text; a carriage return belongs to its line and is kept."""

    lines: list[str]

    @classmethod
    def of(cls, text: str) -> Lines:
        """Take a text apart."""
        return cls(text.split("\n"))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, at: int) -> str:
        """Return a line without its end."""
        return self.lines[at].removesuffix("\r")

    def __setitem__(self, at: int, line: str) -> None:
        end = "\r" if self.lines[at].endswith("\r") else ""
        self.lines[at] = line + end

    def insert(self, at: int, new: Sequence[str]) -> None:
        """Put new lines before line *at*, with the file's own line end."""
        end = "\r" if self.lines[0].endswith("\r") else ""
        if at >= len(self.lines):
            self.lines.append("")
            at = len(self.lines) - 1
        self.lines[at:at] = [line + end for line in new]

    def before_blank(self, start: int, end: int) -> int:
        """Return the place after the last line with text between *start* and *end*."""
        while end > start and not self[end - 1].strip():
            end -= 1
        return end


def set_cell(line: str, index: int, value: str) -> str:
    """Return a table's row with another text in a cell, as wide as before if it fits."""
    pipes = [match.start() for match in _PIPE.finditer(line)]
    if index + 1 >= len(pipes):
        return line
    start, end = pipes[index] + 1, pipes[index + 1]
    if line[start:end].strip() == value:
        return line
    return line[:start] + f" {value} ".ljust(end - start) + line[end:]


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
