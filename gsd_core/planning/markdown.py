"""The text of planning files: reading it, writing untrusted text into it, editing its lines and tables.

Also the XML-like elements (``<task>…</task>``) in the body of a plan. They are not XML: their content
is raw text, where ``<div>``, ``&&`` and ``->`` have no special meaning. Only tags that readers would take
for the plan's own structure are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from gsd_core.errors import PlanningError
from gsd_core.files import FileRefused, read_start
from gsd_core.sanitize import sanitize

# Reading a file

# Limits for reading and writing, far above any real planning file: no pattern is matched against a huge text.
MAX_BYTES = 2_000_000
MAX_LINES = 50_000
MAX_LINE = 100_000


def read_text(root: Path, path: str) -> str:
    """Return the text of the planning file *path* (relative to *root*).

    Raises :class:`PlanningError` if the file cannot be read, is not UTF-8, or is too large.
    """
    try:
        data = read_start(root, path, MAX_BYTES + 1)
    except FileRefused as error:
        problem = f"cannot be read: {error.strerror}"
        raise PlanningError(problem, path=path, line=1, hint="restore the file, or remove it") from error
    except (OSError, ValueError) as error:
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = "check its permissions"
        raise PlanningError(f"cannot be read: {problem}", path=path, line=1, hint=hint) from error
    return decoded(data, path)


def decoded(data: bytes, path: str) -> str:
    """Return the text of a planning file, read or about to be written; raise if nobody could read it."""
    if len(data) > MAX_BYTES:
        hint = "agents read a planning file as a whole: split it, or move old content to another file"
        raise PlanningError("larger than 2 MB", path=path, line=data.count(b"\n") + 1, hint=hint)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PlanningError("not UTF-8", path=path, line=line, hint="save it as UTF-8") from error
    if text.count("\n") + 1 > MAX_LINES:
        hint = "split the file, or move old content to another file"
        raise PlanningError(f"has more than {MAX_LINES} lines", path=path, line=MAX_LINES, hint=hint)
    for number, line_text in enumerate(text.split("\n") if len(text) > MAX_LINE else (), start=1):
        if len(line_text) > MAX_LINE:
            problem = f"has a line of more than {MAX_LINE} characters"
            raise PlanningError(problem, path=path, line=number, hint="break the line")
    return text


# Untrusted text: what a model writes must not become a heading, a table row, a tag or a field.

_TAG = r"(?=[!/?A-Za-z])"
# What begins a heading, quote, list, table, code fence, rule or @file reference, or one of GSD's fields.
_BLOCK_START = re.compile(
    r"^(\s*)(#|>|[-*+](?=\s|[-*]|$)|\d+[.)](?=\s)|\||~~~|```|===|---|Phase:|Plan:|Status:|@)"
)


def clean(text: str) -> str:
    """Return *text* with ``\\n`` as line end, without escape sequences and invisible characters."""
    return sanitize(text)


def inline(text: str) -> str:
    """Return *text* on one line, without HTML tags and comments; :func:`prose` is the inverse."""
    # An escape that is already in the text is escaped again; otherwise `prose` could not tell them apart.
    text = re.sub(rf"&((?:amp;)*lt;){_TAG}", r"&amp;\1", " ".join(clean(text).split()))
    return re.sub(rf"<{_TAG}", "&lt;", text)


def prose(text: str) -> str:
    """Return the text that :func:`inline` was given, except for its white space."""
    text = re.sub(rf"&lt;{_TAG}", "<", text.strip())
    return re.sub(rf"&amp;((?:amp;)*lt;){_TAG}", r"&\1", text)


def title(text: str) -> str:
    """Return *text* for use in a heading or between asterisks."""
    return inline(text.replace("*", "").replace("`", "'")) or "Untitled"


def document(parts: Iterable[str]) -> str:
    """Return a file's text: its *parts* separated by blank lines, without those that are empty."""
    return "\n\n".join(part for part in parts if part) + "\n"


def bullets(texts: Sequence[str]) -> str:
    """Return a list with one line for each of *texts* that is not blank."""
    return "\n".join(f"- {inline(text)}" for text in texts if text.strip())


def paragraphs(text: str) -> str:
    """Return *text* as paragraphs of one line each; none can be read as a heading, list or table."""
    parts = (inline(part) for part in re.split(r"\n\s*\n", clean(text)))
    # `**Goal**: …` at the start of a line is one of GSD's fields.
    plain = (re.sub(r"^\*\*", r"\\*\\*", part) for part in parts if part)
    return "\n\n".join(_BLOCK_START.sub(r"\1\\\2", part) for part in plain)


# Tables

_PIPE = re.compile(r"(?<!\\)\|")


def cell(text: str) -> str:
    """Return *text* as a cell of a table."""
    return inline(text).replace("|", r"\|") or "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with any texts in its *rows*."""
    lines = [f"| {' | '.join(head)} |", f"|{'|'.join('-' * (len(name) + 2) for name in head)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows)])


def cells(line: str) -> list[str]:
    """Return the raw cells of a table's row; an empty list if the line is not a row."""
    stripped = line.strip()
    if not stripped.startswith("|"):
        return []
    parts = _PIPE.split(stripped[1:])
    return parts[:-1] if parts and not parts[-1].strip() else parts


def set_cell(line: str, index: int, value: str) -> str:
    """Return a table's row with *value* in one cell, which keeps its width if the value fits."""
    pipes = [match.start() for match in _PIPE.finditer(line)]
    if index + 1 >= len(pipes):
        return line
    start, end = pipes[index] + 1, pipes[index + 1]
    if line[start:end].strip() == value:
        return line
    return line[:start] + f" {value} ".ljust(end - start) + line[end:]


# Lines


@attrs.define
class Lines:
    """The lines of a text, to be edited one by one.

    A carriage return at the end of a line is hidden and kept, so that an edit of a file with Windows
    line ends changes no other line.
    """

    lines: list[str]

    @classmethod
    def of(cls, text: str) -> Lines:
        """Split *text* into lines; ``str()`` joins them again."""
        return cls(text.split("\n"))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, at: int) -> str:
        """Return a line without its line end."""
        return self.lines[at].removesuffix("\r")

    def __setitem__(self, at: int, line: str) -> None:
        end = "\r" if self.lines[at].endswith("\r") else ""
        self.lines[at] = line + end

    def insert(self, at: int, new: Sequence[str]) -> None:
        """Insert lines before line *at*, with the line end of the file's first line."""
        end = "\r" if self.lines[0].endswith("\r") else ""
        if at >= len(self.lines):
            self.lines.append("")
            at = len(self.lines) - 1
        self.lines[at:at] = [line + end for line in new]

    def before_blank(self, start: int, end: int) -> int:
        """Return the index after the last line between *start* and *end* that is not blank."""
        while end > start and not self[end - 1].strip():
            end -= 1
        return end


# Elements

# The elements that readers of a plan look for.
_STRUCTURE = [
    *("objective", "execution_context", "context", "tasks", "task", "name", "files", "action"),
    *("verify", "automated", "done", "verification", "success_criteria", "output", "feature"),
]

_OPEN = re.compile(r"<([a-z][a-z0-9_-]*)((?:\s+[\w:-]+=(?:\"[^\"]*\"|'[^']*'))*)\s*>")
_ATTRIBUTE = re.compile(r"([\w:-]+)=(?:\"([^\"]*)\"|'([^']*)')")


@attrs.frozen(kw_only=True)
class Element:
    """An element of a plan's body: its *name*, its *attributes*, and the raw text *inside* of it."""

    name: str
    inside: str
    attributes: dict[str, str] = attrs.field(factory=dict[str, str])

    @property
    def text(self) -> str:
        """The content, unescaped and without common indentation."""
        return unescape(dedented(self.inside), self.name).strip()


def elements(text: str) -> Iterator[Element]:
    """Yield the outermost elements of *text* in order; a tag that is never closed is plain text."""
    yield from (element for element, _, _ in _spans(text))


def named(text: str, name: str) -> Iterator[Element]:
    """Yield the elements with that name, at any depth, except those inside another one of that name."""
    yield from (element for element, _, _ in _spans(text, name))


def without(text: str, name: str) -> str:
    """Return *text* without the elements with that name."""
    kept, at = list[str](), 0
    for _, start, end in _spans(text, name):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def _spans(text: str, wanted: str = "") -> Iterator[tuple[Element, int, int]]:
    """Yield the elements with the *wanted* name, or with any, each with its start and end in *text*."""
    at, unclosed = 0, set[str]()
    while opening := _OPEN.search(text, at):
        name, start = opening[1], opening.end()
        # Searching once per name is enough, and many open tags would otherwise take quadratic time.
        is_plain = name in unclosed or (wanted and name != wanted)
        end = -1 if is_plain else text.find(f"</{name}>", start)
        if end < 0:
            unclosed.add(name)
            at = start
            continue
        at = end + len(f"</{name}>")
        attributes = {m[1]: m[2] or m[3] or "" for m in _ATTRIBUTE.finditer(opening[2])}
        yield Element(name=name, inside=text[start:end], attributes=attributes), opening.start(), at


def dedented(text: str) -> str:
    """Return the inside of an element without common indentation, if it begins on a separate line."""
    if not text.startswith("\n"):
        return text
    # Not textwrap.dedent: it would also change lines of white space, and a tab must stay a tab.
    lines = text.split("\n")
    depth = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return "\n".join(line[depth:] for line in lines)


def escape(text: str, element: str) -> str:
    """Return *text* so that, inside *element*, nothing in it opens or closes a part of the plan."""
    pattern = _structural(element)
    text = re.sub(rf"&((?:amp;)*lt;)(?={pattern})", r"&amp;\1", text)
    return re.sub(rf"<(?={pattern})", "&lt;", text)


def unescape(text: str, element: str) -> str:
    """Return the text that :func:`escape` was given."""
    pattern = _structural(element)
    text = re.sub(rf"&lt;(?={pattern})", "<", text)
    return re.sub(rf"&amp;((?:amp;)*lt;)(?={pattern})", r"&\1", text)


def _structural(element: str) -> str:
    """Return a pattern for the rest of a tag that has a meaning inside *element*."""
    names = [*_STRUCTURE, re.escape(element)]
    if element == "options":
        # The options of a decision have names, too: <option id="a"><name>…</name>.
        names.remove("name")
    return rf"(?i:/?(?:{'|'.join(names)})(?![\w-]))"
