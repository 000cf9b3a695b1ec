"""Syntax trees of tree-sitter. The libraries are imported when the first file is parsed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal

from .source import blank

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Grammar = Literal["python", "typescript", "tsx", "go"]


@cache
def _parser(grammar: Grammar) -> Parser:
    from tree_sitter import Language, Parser

    match grammar:
        case "python":
            from tree_sitter_python import language
        case "typescript":
            from tree_sitter_typescript import language_typescript as language
        case "tsx":
            from tree_sitter_typescript import language_tsx as language
        case "go":
            from tree_sitter_go import language
    return Parser(Language(language()))


def parse(grammar: Grammar, text: str) -> Node:
    """Return the root of the tree of *text*; parts that could not be parsed are nodes of type ``ERROR``."""
    return _parser(grammar).parse(text.encode("utf-8", "replace")).root_node


def walk(node: Node, *, skip: Collection[str] = ()) -> Iterator[Node]:
    """Yield *node* and all nodes below it, in the order of the text; nothing below types in *skip*."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current == node or current.type not in skip:
            stack.extend(reversed(current.children))


def find(node: Node | None, *kinds: str) -> list[Node]:
    """Return *node* and the nodes below it that are of one of *kinds*, in the order of the text."""
    return [inner for inner in walk(node) if inner.type in kinds] if node else []


def text_of(node: Node | None, name: str = "") -> str:
    """Return the text of a node, or of its child in the field *name*; empty without a node."""
    if node and name:
        node = field(node, name)
    return (node.text or b"").decode("utf-8", "replace") if node else ""


def field(node: Node, name: str) -> Node | None:
    """Return the child in a field of the grammar."""
    return node.child_by_field_name(name)


def named(node: Node | None) -> list[Node]:
    """Return the children that are not punctuation or comments."""
    return [child for child in node.named_children if "comment" not in child.type] if node else []


def first_of(node: Node | None) -> Node | None:
    """Return the first child that is not punctuation or a comment."""
    return next(iter(named(node)), None)


def arguments_of(call: Node) -> list[Node]:
    """Return the arguments of a call."""
    return named(field(call, "arguments"))


def statements_of(block: Node | None) -> list[Node]:
    """Return the statements of a block; in some grammars they are in a list of their own."""
    return [s for n in named(block) for s in (named(n) if n.type == "statement_list" else [n])]


def lineage(node: Node) -> Iterator[Node]:
    """Yield *node* and all nodes that it is in, the innermost first."""
    outer: Node | None = node
    while outer:
        yield outer
        outer = outer.parent


def line_of(node: Node) -> int:
    """Return the node's line, counted from 1."""
    return node.start_point[0] + 1


def masked(text: str, nodes: Iterable[Node]) -> str:
    """Return *text* with *nodes* blank."""
    data = text.encode("utf-8", "replace")
    spans = [(node.start_byte, node.end_byte) for node in nodes]
    # Offsets count bytes: Latin-1 maps each byte to one character and back.
    return blank(data.decode("latin-1"), spans).encode("latin-1").decode("utf-8", "replace")


def comments_before(node: Node) -> str:
    """Return the comments directly above a node, which document it."""
    found: list[str] = []
    previous, line = node.prev_sibling, node.start_point[0]
    while previous and "comment" in previous.type and previous.end_point[0] >= line - 1:
        found.append(text_of(previous))
        line = previous.start_point[0]
        previous = previous.prev_sibling
    return "\n".join(reversed(found))
