"""Faults in Python, JavaScript, TypeScript and Go: functions that end at once, other values or conditions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

import attrs

from gsd_core import Mutant, SourceFile

from .source import LANGUAGES, MAX_LINE, MAX_PARSED
from .trees import Grammar, field, find, line_of, lineage, named, parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

GRAMMARS: dict[str, Grammar] = {".py": "python", ".go": "go", ".tsx": "tsx", ".jsx": "tsx"}
FUNCTIONS = frozenset(
    (
        *("function_definition", "function_declaration", "generator_function_declaration"),
        *("method_definition", "method_declaration", "arrow_function", "function_expression"),
    )
)
CLASSES = frozenset(("class_definition", "class_declaration", "abstract_class_declaration"))
NUMBERS = frozenset(("integer", "float", "number", "int_literal", "float_literal"))
TEXTS = frozenset(("string_content", "string_fragment", "interpreted_string_literal_content"))
IMPORTS = ("import_statement", "import_from_statement", "import_declaration", "comment")
_PAIRS = (("<", "<="), (">", ">="), ("==", "!="), ("===", "!=="), ("and", "or"), ("&&", "||"))
OPERATORS = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
"""The operators of conditions, each with the one that takes its place."""
CONDITIONS = frozenset(("comparison_operator", "boolean_operator", "binary_expression"))


def mutants_of(source: SourceFile) -> Iterator[Mutant]:
    """Yield the faults of a file, in the order of its text; none if its language is not known."""
    suffix, text = PurePosixPath(source.path).suffix, source.text
    if suffix not in LANGUAGES or len(text) > MAX_PARSED or any(len(x) > MAX_LINE for x in text.splitlines()):
        return
    grammar = GRAMMARS.get(suffix, "typescript")
    data = text.encode("utf-8", "replace")
    faults = [
        fault
        for node in walk(parse(grammar, text), skip=IMPORTS)
        for fault in (*_functions(node, grammar), *_values(node), *_conditions(node))
    ]
    for fault in sorted(faults, key=lambda fault: fault.start):
        # The tree counts bytes, a mutant characters.
        start, end = (len(data[:at].decode("utf-8", "replace")) for at in (fault.start, fault.end))
        yield attrs.evolve(fault, start=start, end=end)


def _functions(node: Node, grammar: Grammar) -> Iterator[Mutant]:
    body = field(node, "body") if node.type in FUNCTIONS else None
    if body is None or not (name := _name(node)):
        return
    at, end = body.start_byte, body.start_byte
    # Nothing that fails: a test that only calls the function would notice it. The rest of the body stays, so
    # that it uses all that it used; `go vet` reports code that cannot be reached.
    ends = f" if true {{ return {_zeros(field(node, 'result'))} }};" if grammar == "go" else " return;"
    if grammar == "python":
        statements = [one for one in named(body) if not _is_only_text(one)]
        if not statements:
            return
        colon = next(child for child in node.children if child.type == ":")
        at = end = statements[0].start_byte
        on_own_line = statements[0].start_point[0] > colon.start_point[0]
        ends = "return" + ("\n" + " " * body.start_point[1] if on_own_line else "; ")
    elif body.type in ("statement_block", "block"):
        at = end = body.start_byte + 1
    else:  # the value of an arrow function
        end, ends = body.end_byte, "undefined"
    yield Mutant(
        kind="function",
        name=name,
        first=line_of(node),
        last=node.end_point[0] + 1,
        start=at,
        end=end,
        text=ends,
    )


def _zeros(result: Node | None) -> str:
    """Return values for the results of a Go function; none if they have names."""
    if result is None or result.type != "parameter_list":
        return f"*new({text_of(result)})" if result else ""
    if any(field(one, "name") for one in named(result)):
        return ""
    return ", ".join(f"*new({text_of(one, 'type')})" for one in named(result))


def _name(node: Node) -> str:
    """Return the qualified name of a function; empty if it has none, as a callback."""
    owner = node if field(node, "name") else node.parent
    own = next(filter(None, (text_of(owner, name) for name in ("name", "key", "left"))), "")
    own = own.rpartition(".")[2]
    if not own.isidentifier():
        return ""
    receiver = field(node, "receiver")
    types = [text_of(kind) for kind in find(receiver, "type_identifier")[:1]]
    classes = [text_of(one, "name") for one in lineage(node) if one.type in CLASSES]
    return ".".join([*reversed(classes), *types, own])


def _values(node: Node) -> Iterator[Mutant]:
    text = text_of(node)
    if node.type in NUMBERS and text.replace(".", "", 1).isdigit():
        whole, dot, rest = text.partition(".")
        changed = f"{int(whole or 0) + 1}{dot}{rest}"
    elif node.type in TEXTS and len(text) > 1 and not any(map(_is_only_text, [*lineage(node)][1:3])):
        changed = f"{text}X"
    else:
        return
    if not _names_module(node):
        yield _replaced(node, "value", text, changed)


def _names_module(node: Node) -> bool:
    """Whether a text of JavaScript says which file is loaded: ``export … from "./a"``, ``require("./a")``."""
    outer = [one for one in lineage(node) if one.type not in ("string", "arguments")][1:2]
    return any(
        one.type == "export_statement"
        or (one.type == "call_expression" and text_of(one, "function") in ("require", "import"))
        for one in outer
    )


def _is_only_text(statement: Node) -> bool:
    """Whether a statement of Python is a string, as documentation is."""
    return statement.type == "expression_statement" and [one.type for one in named(statement)] == ["string"]


def _conditions(node: Node) -> Iterator[Mutant]:
    if node.type in CONDITIONS:
        for child in node.children:
            if child.type in OPERATORS:
                yield _replaced(child, "condition", child.type, OPERATORS[child.type])


def _replaced(node: Node, kind: Literal["value", "condition"], name: str, text: str) -> Mutant:
    return Mutant(
        kind=kind,
        name=name,
        first=line_of(node),
        last=node.end_point[0] + 1,
        start=node.start_byte,
        end=node.end_byte,
        text=text,
    )
