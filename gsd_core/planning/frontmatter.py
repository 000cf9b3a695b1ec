"""Frontmatter: the YAML between two ``---`` lines at the beginning of a planning file.

Reading yields text for every scalar: to YAML, phase ``2.10`` is the number 2.1 and plan ``01`` is 1.
Writing puts every scalar on one line, quoted where needed, so that no text can end the frontmatter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, cast

import attrs

from gsd_core.errors import PlanningError

# Limits for reading and for writing: ruamel takes a second for 80 kB, and is recursive on nested input.
MAX_CHARACTERS = 120_000
MAX_LINES = 6_000
MAX_DEPTH = 20
MAX_REPAIRED_LINES = 600
"""A longer frontmatter is not repaired, because every line of it is parsed on its own."""

Value: TypeAlias = "str | list[Value] | dict[str, Value]"
"""A value that was read."""

Node: TypeAlias = "str | int | bool | Sequence[Node] | Mapping[str, Node]"
"""A value to be written."""


@attrs.frozen(kw_only=True)
class Frontmatter:
    """The keys of a frontmatter; *body* is the text below it; *found* is false if the file has none.

    *flaws* are mistakes that do not prevent reading it, each with its line: a key that occurs twice.
    """

    values: dict[str, Value] = attrs.field(factory=dict[str, Value])
    body: str = ""
    found: bool = False
    flaws: tuple[str, ...] = ()

    def get(self, *names: str) -> Value:
        """Return the value of the first of *names* that exists, else an empty text."""
        return next((self.values[name] for name in names if name in self.values), "")

    def text(self, *names: str) -> str:
        """Return a scalar's text; empty if it is missing or not a scalar."""
        return as_text(self.get(*names))

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return a list of texts; a single scalar is split at its commas."""
        return as_texts(self.get(*names))


def read_frontmatter(text: str, *, path: str) -> Frontmatter:
    """Read the frontmatter of *text*; raise :class:`PlanningError` if it is invalid.

    *path* is for error messages only.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != "---":
        return Frontmatter(body="\n".join(lines))
    end = next((i for i, line in enumerate(lines) if i and line.rstrip() == "---"), 0)
    if not end:
        hint = "end it with a line '---'"
        raise PlanningError("the frontmatter is never closed", path=path, line=1, hint=hint)
    values, flaws = _load("\n".join(lines[1:end]), path)
    return Frontmatter(values=values, body="\n".join(lines[end + 1 :]), found=True, flaws=flaws)


def as_text(value: Value) -> str:
    """Return a value as one text; ``Works: yes``, which YAML reads as a map of one key, is text too."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict) and len(value) == 1:
        key, inner = next(iter(value.items()))
        return f"{key}: {inner}".strip() if isinstance(inner, str) else ""
    return ""


def as_texts(value: Value) -> tuple[str, ...]:
    """Return the texts of a list; a single scalar is split at its commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, dict):
        return ()
    return tuple(text for item in value if (text := as_text(item)))


def as_list(value: Value) -> list[Value]:
    """Return a list; a single value is a list of one, and empty items are left out."""
    return [item for item in (value if isinstance(value, list) else [value]) if item]


def as_maps(value: Value) -> tuple[dict[str, Value], ...]:
    """Return the maps of a list; other items are left out."""
    return tuple(item for item in as_list(value) if isinstance(item, dict))


def as_map(value: Value) -> dict[str, Value]:
    """Return a map; empty if the value is something else."""
    return value if isinstance(value, dict) else {}


# Reading


def _load(source: str, path: str) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Parse the YAML; if that fails, repair it line by line and parse it once more."""
    # ruamel is imported only when a frontmatter is read, because `gsd --help` must start quickly.
    from ruamel.yaml.error import YAMLError

    _check_size(source, path)
    try:
        return _parse(source, path)
    except YAMLError as error:
        lines = source.replace("\0", "").split("\n")
        repaired = source if len(lines) > MAX_REPAIRED_LINES else "\n".join(map(_repair_line, lines))
        if repaired == source:
            raise _invalid(error, path) from error
    try:
        values, flaws = _parse(repaired, path)
    except YAMLError as error:
        raise _invalid(error, path) from error
    return values, (*flaws, *_guessed_patterns(source, repaired, path))


def _check_size(source: str, path: str) -> None:
    lines = source.count("\n") + 1
    if len(source) > MAX_CHARACTERS or lines > MAX_LINES:
        limit = f"{MAX_CHARACTERS // 1000} kB and {MAX_LINES} lines"
        problem = f"the frontmatter has {len(source) // 1000} kB and {lines} lines, more than {limit}"
        raise PlanningError(problem, path=path, line=lines, hint="move long texts below the frontmatter")


def _guessed_patterns(source: str, repaired: str, path: str) -> Iterator[str]:
    """Yield the lines with a regular expression that had to be repaired.

    Plain text means the same with any quotes; in a pattern, it is unclear which quotes belong to it.
    """
    lines = zip(source.split("\n"), repaired.split("\n"), strict=True)
    for number, (line, read) in enumerate(lines, start=2):
        if re.match(r"\s*(?:- +)?pattern:", line) and line.strip() != read.strip():
            yield f"{path}:{number}: invalid YAML: {line.strip()!r} is read as {read.strip()!r}"


def _parse(source: str, path: str) -> tuple[dict[str, Value], tuple[str, ...]]:
    yaml = _yaml()
    try:
        loaded: Any = yaml.load(source)
        flaws = tuple(f"{path}:{line}: duplicate key {key!r}" for key, line in yaml.composer.duplicates)
    except PlanningError as error:
        # It is valid and exceeds a limit; unlike after a `YAMLError`, nothing is repaired.
        raise PlanningError(error.args[0], path=path, line=error.line, hint=error.hint) from None
    except (AssertionError, AttributeError, RecursionError, TypeError, ValueError) as error:
        # ruamel raises these too: ValueError for "\U00FFFFFF", TypeError for a list as a key.
        raise _invalid(error, path) from error
    if loaded is None or loaded == "":
        return {}, ()
    if not isinstance(loaded, dict):
        hint = "write it as lines 'key: value'"
        raise PlanningError("the frontmatter has no keys", path=path, line=2, hint=hint)
    return cast("dict[str, Value]", loaded), flaws


_ENTRY = re.compile(r"^(\s*(?:- +)*(?:[\w.-]+:(?=\s)|- ))\s*(\S.*)$")


def _repair_line(line: str) -> str:
    """Correct the usual mistakes of models: tabs, and values that need quotes.

    Those are not valid by themselves: ``"a\\.b"``, ``{p: "a\\.b"}``, ``@scope/name``.
    """
    line = re.sub(r"^[ \t]+", lambda indent: indent[0].replace("\t", "  "), line)
    match = _ENTRY.match(line.rstrip())
    if not match or _is_valid(match[2]):
        return line
    value = match[2]
    if value[0] == value[-1] == '"' and len(value) > 1:
        value = value[1:-1].replace('\\"', '"')
    elif value[0] in "{[" and _is_valid(escaped := re.sub(r'\\(?![\\"])', r"\\\\", value)):
        return f"{match[1]} {escaped}"
    return f"{match[1]} " + "'" + value.replace("'", "''") + "'"


def _is_valid(value: str) -> bool:
    from ruamel.yaml.error import YAMLError

    try:
        _yaml().load(value)
    except YAMLError:
        return False
    return True


def _invalid(error: Exception, path: str) -> PlanningError:
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem: object = getattr(error, "problem", None) or type(error).__name__
    first = str(problem).strip().splitlines()[0]
    hint = "quote texts that contain ': ' or begin with one of @ ` [ { * & ! | >"
    return PlanningError(f"invalid frontmatter: {first}", path=path, line=_line(mark), hint=hint)


def _line(mark: Any) -> int:
    """Return the line in the file for a position in the YAML, which begins on the file's second line."""
    return int(mark.line) + 2 if mark is not None else 2


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.Composer, yaml.Constructor = _yaml_classes()
    return yaml


@cache
def _yaml_classes() -> tuple[Any, Any]:
    """Return a composer that limits nesting, and a constructor that builds text from every scalar."""
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.events import AliasEvent, CollectionStartEvent
    from ruamel.yaml.nodes import MappingNode

    base: Any = Composer

    class LimitedComposer(Composer):
        """Rejects aliases and deep nesting before any value is built: a few aliases can be gigabytes.

        Merges keys that occur twice, and lists them in *duplicates*.
        """

        nesting = 0

        def __init__(self, loader: Any = None) -> None:
            base.__init__(self, loader)
            self.duplicates: list[tuple[str, int]] = []

        def compose_node(self, parent: Any, index: Any) -> Any:
            composer: Any = self
            event: Any = composer.parser.peek_event()
            anchor, line = event.anchor, _line(event.start_mark)
            # An alias without an anchor is text that lacks quotes, such as *.py, and is repaired.
            if isinstance(event, AliasEvent) and anchor in composer.anchors:
                fix = "repeat the value instead"
                raise PlanningError("YAML aliases are not allowed", line=line, hint=fix)
            is_collection = isinstance(event, CollectionStartEvent)
            self.nesting += is_collection
            if self.nesting > MAX_DEPTH:
                hint = "GSD's keys are at most four levels deep"
                raise PlanningError("nested too deeply", line=line, hint=hint)
            node: Any = base.compose_node(self, parent, index)
            self.nesting -= is_collection
            if isinstance(node, MappingNode):
                _merge_duplicates(node, self.duplicates)
            return node

    # Not ruamel's own loader of texts (typ="base"): it accepts unknown tags and drops them, so that
    # `!important x` would become `x`. Here such a tag is an error, the line is repaired, and nothing is lost.
    class TextConstructor(SafeConstructor):
        pass

    def text(constructor: Any, node: Any) -> str:
        return str(constructor.construct_scalar(node))

    def nothing(constructor: Any, node: Any) -> str:
        return ""

    constructors: Any = TextConstructor
    for tag in ("bool", "float", "int", "timestamp", "binary"):
        constructors.add_constructor(f"tag:yaml.org,2002:{tag}", text)
    constructors.add_constructor("tag:yaml.org,2002:null", nothing)
    return LimitedComposer, constructors


def _merge_duplicates(mapping: Any, duplicates: list[tuple[str, int]]) -> None:
    """Leave each key once, and add those that occurred twice to *duplicates*, with their lines.

    Of two lists or two maps nothing is dropped: what a plan promises must not disappear because a key was
    written twice. Of two scalars the last one counts, as for GSD's own reader.
    """
    from ruamel.yaml import nodes

    # Without types, as ruamel's own are incomplete.
    scalar_node: Any = nodes.ScalarNode
    mapping_node: Any = nodes.MappingNode
    collections: Any = (nodes.SequenceNode, nodes.MappingNode)
    kept: dict[str, tuple[Any, Any]] = {}
    pairs: list[tuple[Any, Any]] = []
    for key, value in mapping.value:
        is_scalar: bool = isinstance(key, scalar_node)
        name = str(key.value) if is_scalar else ""
        if not is_scalar or name not in kept:
            pairs.append((key, value))
            if is_scalar:
                kept[name] = (key, value)
            continue
        duplicates.append((name, _line(key.start_mark)))
        earlier_key, earlier = kept[name]
        if isinstance(value, collections) and type(value) is type(earlier):
            earlier.value.extend(value.value)
            if isinstance(earlier, mapping_node):
                _merge_duplicates(earlier, duplicates)
            continue
        empty = isinstance(value, scalar_node) and not value.value
        if not (empty and isinstance(earlier, collections)):
            pairs[pairs.index((earlier_key, earlier))] = kept[name] = (earlier_key, value)
    mapping.value = pairs


# Writing

_PLAIN = re.compile(r"(?:[A-Za-z_/]|\d[\d.]*-[A-Za-z])[A-Za-z0-9_./-]*")
_RESERVED = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_UNPRINTABLE = re.compile("[\x7f-\x9f\xa0\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def render_frontmatter(values: Mapping[str, Node]) -> str:
    """Return a whole frontmatter, including its two ``---`` lines.

    Raises :class:`PlanningError` if it would be too large to be read again.
    """
    lines = [line for key, value in values.items() for line in _entry(key, value)]
    _check_size("\n".join(lines), "")
    return "\n".join(["---", *lines, "---", ""])


def _entry(key: str, value: Node, indent: int = 0) -> list[str]:
    """Return the lines of ``key: value``; a list is indented by two more spaces, as in GSD's templates."""
    head = f"{' ' * indent}{key}:"
    if isinstance(value, (str, int)):
        return [f"{head} {scalar(value)}"]
    if not value:
        return [f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"]
    if isinstance(value, Mapping):
        return [head, *(line for k, v in value.items() for line in _entry(k, v, indent + 2))]
    return [head, *(line for item in value for line in _item(item, indent + 2))]


def _item(value: Node, indent: int) -> list[str]:
    if isinstance(value, (str, int)):
        return [f"{' ' * indent}- {scalar(value)}"]
    if not isinstance(value, Mapping):
        raise TypeError("a frontmatter cannot contain a list inside of a list")
    lines = [line for key, inner in value.items() for line in _entry(key, inner, indent + 2)]
    return [f"{' ' * indent}- {lines[0].lstrip()}", *lines[1:]] if lines else []


def scalar(value: str | int | bool) -> str:
    """Return a scalar on one line, quoted unless every reader takes it for the same text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    if "\\" in value and "'" not in value and value.isprintable():
        # Single quotes need no escapes, which the YAML reader of early GSD versions does not undo.
        return f"'{value}'"
    # A JSON string is a YAML string, apart from the characters that YAML does not call printable.
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))
