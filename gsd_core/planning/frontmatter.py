"""The YAML between two ``---`` lines at the head of a planning file.

Every scalar is text: a phase ``2.10`` must not become 2.1, a plan ``01`` not 1.

Writes YAML for a frontmatter, one line for each scalar, so that no text can end it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, cast

from attrs import field, frozen

from gsd_core.errors import PlanningError

MAX_CHARACTERS = 30_000
MAX_LINES = 1_500
MAX_DEPTH = 20
MENDED_LINES = 600

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

_ENTRY = re.compile(r"^(\s*(?:- +)*(?:[\w.-]+:(?=\s)|- ))\s*(\S.*)$")


@frozen(kw_only=True)
class Frontmatter:
    """The keys of a frontmatter; *body* is the text after it; *found* says if there was one."""

    values: dict[str, Value] = field(factory=dict[str, Value])
    body: str = ""
    found: bool = False

    def get(self, *names: str) -> Value:
        """Return the value of the first of *names* that is there, or an empty text."""
        return next((self.values[name] for name in names if name in self.values), "")

    def text(self, *names: str) -> str:
        """Return a scalar's text, empty if it is missing or no scalar."""
        return as_text(self.get(*names))

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return a list of texts; a single scalar counts as a list of one."""
        return as_texts(self.get(*names))


def read_frontmatter(text: str, *, path: str) -> Frontmatter:
    """Split *text* and read its frontmatter; raise :class:`PlanningError` if it is broken."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return Frontmatter(body="\n".join(lines))
    end = next((i for i, line in enumerate(lines) if i and line.rstrip() == "---"), 0)
    if not end:
        raise PlanningError(
            "the frontmatter is never closed", path=path, line=1, hint="end it with a line '---'"
        )
    values = _load("\n".join(lines[1:end]), path)
    return Frontmatter(values=values, body="\n".join(lines[end + 1 :]), found=True)


def as_text(value: Value) -> str:
    """Return a value as one text; ``Works: yes``, read as a map of one key, is that text again."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict) and len(value) == 1:
        key, inner = next(iter(value.items()))
        return f"{key}: {inner}".strip() if isinstance(inner, str) else ""
    return ""


def as_texts(value: Value) -> tuple[str, ...]:
    """Return the texts of a list; a comma separates those of a single scalar."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, dict):
        return ()
    return tuple(text for item in value if (text := as_text(item)))


def as_maps(value: Value) -> tuple[dict[str, Value], ...]:
    """Return the maps of a list, without anything else that stands in it."""
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, dict))


def as_map(value: Value) -> dict[str, Value]:
    """Return a map, or an empty one if the value is none."""
    return value if isinstance(value, dict) else {}


def _load(source: str, path: str) -> dict[str, Value]:
    from ruamel.yaml.error import YAMLError

    lines = source.count("\n") + 1
    if len(source) > MAX_CHARACTERS or lines > MAX_LINES:
        raise PlanningError(
            f"the frontmatter is larger than {MAX_CHARACTERS // 1000} kB or {MAX_LINES} lines",
            path=path,
            line=lines,
            hint="move what is long into the text below it",
        )
    try:
        return _parse(source, path)
    except YAMLError as error:
        if lines > MENDED_LINES or (mended := _mend(source)) == source:
            raise _broken(error, path) from error
    try:
        return _parse(mended, path)
    except YAMLError as error:
        raise _broken(error, path) from error


def _parse(source: str, path: str) -> dict[str, Value]:
    if not _is_plain(source):
        _measure(source, path)
    try:
        loaded: Any = _yaml().load(source)
    except (AssertionError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise _broken(error, path) from error
    if loaded is None or loaded == "":
        return {}
    if not isinstance(loaded, dict):
        raise PlanningError(
            "the frontmatter holds no keys", path=path, line=2, hint="write it as lines 'key: value'"
        )
    return cast("dict[str, Value]", loaded)


def _is_plain(source: str) -> bool:
    """Say whether nothing in the source can be deep or unfold: few brackets, and no mark of an alias."""
    return (
        "&" not in source
        and "*" not in source
        and source.count("[") + source.count("{") <= MAX_DEPTH
        and re.search(r"^ {20}|(?:[-?:] +){5}", source, re.MULTILINE) is None
    )


def _measure(source: str, path: str) -> None:
    """Refuse what would be deep or would unfold, before anything is built of it.

    An alias of nothing is text that lacks its quotes: reading it fails, and so it is mended.
    """
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth, anchors = 0, set[str]()
    events: Iterator[Any] = _yaml().parse(source)
    for event in events:
        kind = cast("type[object]", type(event))
        anchor = str(getattr(event, "anchor", None) or "")
        if kind is AliasEvent and anchor in anchors:
            raise _refused("YAML aliases are not allowed", event, path, "write the value out")
        anchors.add(anchor)
        depth += issubclass(kind, CollectionStartEvent) - issubclass(kind, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _refused("nested too deeply", event, path, "GSD's keys are at most four levels deep")


def _refused(problem: str, event: Any, path: str, hint: str) -> PlanningError:
    return PlanningError(problem, path=path, line=_line(event.start_mark), hint=hint)


def _mend(source: str) -> str:
    lines = source.replace("\0", "").split("\n")
    return "\n".join(_mended(re.sub(r"^[ \t]+", _spaces, line)) for line in lines)


def _spaces(indent: re.Match[str]) -> str:
    return indent[0].replace("\t", "  ")


def _mended(line: str) -> str:
    """Make YAML of a value that is none by itself: ``"a\\.b"``, ``{p: "a\\.b"}``, ``@scope/name``."""
    match = _ENTRY.match(line.rstrip())
    if not match or _readable(match[2]):
        return line
    value = match[2]
    if value[0] == value[-1] == '"' and len(value) > 1:
        value = value[1:-1].replace('\\"', '"')
    elif value[0] in "{[" and _readable(escaped := re.sub(r'\\(?![\\"])', r"\\\\", value)):
        return f"{match[1]} {escaped}"
    return f"{match[1]} " + "'" + value.replace("'", "''") + "'"


def _readable(value: str) -> bool:
    from ruamel.yaml.error import YAMLError

    try:
        _yaml().load(value)
    except YAMLError:
        return False
    return True


def _broken(error: Exception, path: str) -> PlanningError:
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem: object = getattr(error, "problem", None) or type(error).__name__
    first = str(problem).strip().splitlines()[0]
    hint = "quote texts that hold ': ' or begin with one of @ ` [ { * & ! | >"
    return PlanningError(f"broken frontmatter: {first}", path=path, line=_line(mark), hint=hint)


def _line(mark: Any) -> int:
    """Return the line in the file of a mark in the YAML, which begins at the second line."""
    return int(mark.line) + 2 if mark is not None else 2


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Constructor = _constructor()
    return yaml


@cache
def _constructor() -> Any:
    from ruamel.yaml.constructor import SafeConstructor

    class TextConstructor(SafeConstructor):
        """Builds text from every scalar."""

    def text(constructor: Any, node: Any) -> str:
        return str(constructor.construct_scalar(node))

    def nothing(constructor: Any, node: Any) -> str:
        return ""

    build: Any = TextConstructor
    for tag in ("bool", "float", "int", "timestamp", "binary"):
        build.add_constructor(f"tag:yaml.org,2002:{tag}", text)
    build.add_constructor("tag:yaml.org,2002:null", nothing)
    return build


Node: TypeAlias = "str | int | bool | Sequence[Node] | Mapping[str, Node]"

_PLAIN = re.compile(r"(?:[A-Za-z_/]|\d[\d.]*-[A-Za-z])[A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_UNPRINTABLE = re.compile("[\x7f-\x9f\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def scalar(value: str | int | bool) -> str:
    """Return a scalar on one line, quoted wherever a reader might take it for something else.

    Backslashes stand in single quotes where they can: early readers do not undo escapes.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    if "\\" in value and "'" not in value and value.isprintable():
        return f"'{value}'"
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))


def flow(values: Sequence[str]) -> str:
    """Return a list of scalars on one line."""
    return f"[{', '.join(scalar(value) for value in values)}]"


def block(key: str, value: Node, indent: int = 0) -> list[str]:
    """Return the lines of ``key: value``; lists hang under their key, two spaces deeper."""
    head = f"{' ' * indent}{key}:"
    if isinstance(value, (str, int)):
        return [f"{head} {scalar(value)}"]
    if not value:
        return [f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"]
    if isinstance(value, Mapping):
        return [head, *(line for k, v in value.items() for line in block(k, v, indent + 2))]
    return [head, *(line for item in value for line in _item(item, indent + 2))]


def frontmatter(values: Mapping[str, Node]) -> str:
    """Return a whole frontmatter, with both of its lines."""
    lines = [line for key, value in values.items() for line in block(key, value)]
    return "\n".join(["---", *lines, "---", ""])


def _item(value: Node, indent: int) -> list[str]:
    if isinstance(value, (str, int)):
        return [f"{' ' * indent}- {scalar(value)}"]
    if not isinstance(value, Mapping):
        raise TypeError("a list inside of a list")
    lines = [line for key, inner in value.items() for line in block(key, inner, indent + 2)]
    return [f"{' ' * indent}- {lines[0].lstrip()}", *lines[1:]] if lines else []
