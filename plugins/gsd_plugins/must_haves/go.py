"""Reads Go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from .reader import Reader, Syntax
from .source import Function, Reference, Source, word_set
from .trees import field, find, named, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_SYNTAX = Syntax(
    functions=word_set("function_declaration method_declaration func_literal"),
    calls=word_set("call_expression"),
    strings=word_set("interpreted_string_literal raw_string_literal"),
    contents=word_set("interpreted_string_literal_content raw_string_literal_content"),
    literals=word_set(
        "interpreted_string_literal raw_string_literal nil true false int_literal float_literal rune_literal"
    ),
    containers=word_set(
        "unary_expression literal_value literal_element keyed_element parenthesized_expression "
        "composite_literal expression_list"
    ),
    constants=re.compile(r"[a-z]\w*\.(?!Err|EOF|Std)[A-Z]\w*|nil|true|false"),
    makes=re.compile(r"(?!)"),
    fails=re.compile(r"panic\("),
    rejects=re.compile(r"(?:errors\.New|fmt\.Errorf|status\.Errorf?)\(|\bErrNotImplemented\b"),
    prints=re.compile(
        r"fmt\.Print\w*|(?:\w+\.)*(?:slog|log|logger|Logger)\.(?!Fatal|Panic|With|New)\w+|print|println"
    ),
    answers=re.compile(
        r"(?:c|ctx|gc|w|rw|res|resp|writer)\.(?:JSON|IndentedJSON|String|HTML|XML|Status|SendStatus|SendString"
        r"|NoContent|AbortWithStatus(?:JSON)?|WriteHeader|Write|WriteString|Header\(\)\.Set"
        r"|Status\([\w.]+\)\.(?:JSON|SendString))"
        r"|fmt\.Fprint(?:ln|f)?|io\.WriteString|http\.Error|json\.NewEncoder\(\w+\)\.Encode"
        r"|(?:\w+\.)?(?:[wW]rite|[rR]espond|[sS]end|[rR]ender)\w*JSON|render\.(?:JSON|Status|NoContent)"
    ),
    writers=re.compile(r"(?:w|rw|r|c|ctx|res|resp|writer|req)$|\[\]byte\(\""),
    waits=re.compile(r"time\.Sleep\("),
    idle=re.compile(r"_(?:,\s*_)*\s*=\s*\w+(?:,\s*\w+)*|"),
    wrappers=frozenset(),
    explains=re.compile(r"fmt\.Print|errors\.New|fmt\.Errorf|panic|(?:\w+\.)*(?:slog|log|logger|Logger)\."),
    returns="result",
    nothing=re.compile(r"(?!)"),
)
_DIRECTIVE = re.compile(r"//go:(?:embed|generate|linkname)")


def read(text: str, *, typed: bool = False) -> Source:
    """Read a file."""
    file = Reader.of(_SYNTAX, "go", text)
    directives = [text_of(node) for node in file.comments if _DIRECTIVE.match(text_of(node))]
    comments = [node for node in file.comments if text_of(node) not in directives]
    imports = [node for node in file.nodes if node.type == "import_spec"]
    content = [n for n in named(file.root) if n.type not in ("package_clause", "import_declaration")]
    defined = frozenset(_defined(file.root))
    return Source(
        language="go",
        code=file.code(comments),
        bare=file.bare(comments),
        functions=tuple(_functions(file)),
        exports=defined,
        defined=defined,
        references=tuple(Reference(module=file.string(field(n, "path"))) for n in imports),
        strings=(*file.strings(), *(word for line in directives for word in line.split()[1:])),
        identifiers=file.identifiers(),
        empty=not content and not any(text_of(n, "name") == "_" for n in imports),
        faulty=file.root.has_error,
    )


def _defined(root: Node) -> Iterator[str]:
    for node in named(root):
        if node.type in ("function_declaration", "method_declaration"):
            name = text_of(node, "name")
            yield from (name, f"{_receiver(node)}.{name}")
        elif node.type in ("type_declaration", "const_declaration", "var_declaration"):
            for spec in find(node, "type_spec", "type_alias"):
                yield text_of(spec, "name")
                for inner in find(spec, "field_declaration", "method_elem"):
                    member = text_of(inner, "name")
                    yield from (member, f"{text_of(spec, 'name')}.{member}")
            for spec in find(node, "const_spec", "var_spec"):
                yield from _names(spec)


def _receiver(node: Node) -> str:
    return re.sub(r"\[.*", "", text_of(node, "receiver").strip("()")).split(" ")[-1].lstrip("*")


def _names(node: Node) -> list[str]:
    """Return the names that a declaration of one or more has."""
    return [text_of(name) for name in node.children_by_field_name("name") if name.type != ","]


def _functions(file: Reader) -> Iterator[Function]:
    bare_types = {  # `type Null struct{}`: without fields, its methods can only be constant
        text_of(spec, "name")
        for spec in find(file.root, "type_spec")
        if re.fullmatch(r"struct\s*\{\s*\}", text_of(spec, "type"))
    }
    for node in named(file.root):
        if node.type not in ("function_declaration", "method_declaration"):
            continue
        owner, parameters = _receiver(node), named(field(node, "parameters"))
        names = [
            name
            for child in parameters
            if not re.search(r"http\.|context\.|testing\.", text_of(child, "type"))
            for name in _names(child)
        ]
        short = text_of(node, "name")
        results = [name for child in named(field(node, "result")) for name in _names(child)]
        found = file.function(node, f"{owner}.{short}" if owner else short, node, names, results=results)
        # `func rsa() KeyAgreement { return rsaAgreement{} }` chooses an implementation.
        made = re.match(r"&?([\w.]+)\{\}$", found.value)
        if made and made[1] != text_of(node, "result").lstrip("*"):
            found = attrs.evolve(found, body="code")
        yield attrs.evolve(
            found,
            inherits=bool(owner) and (owner in bare_types or not names or "_" in names),
            method=bool(owner),
            # Parameters without names are those of a signature that the function only has to fit.
            callback=not (owner or found.returns or any(field(child, "name") for child in parameters))
            and bool(parameters)
            and found.body == "empty",
        )
