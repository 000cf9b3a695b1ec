"""Reads Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from .reader import Reader, Syntax, bound_names
from .source import Function, Reference, Source, overrides, word_set, words_of
from .trees import field, first_of, lineage, named, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_LOG = r"(?:\w+\.)*_?(?:log|logger|logging|LOG|LOGGER)\.\w+"
_PRINT = (
    rf"print|(?:\w+\.)*(?:echo|secho|print|debug|info|warning|log)|(?:\w+\.)*_?std(?:out|err)\.write|{_LOG}"
)
_SYNTAX = Syntax(
    functions=word_set("function_definition lambda"),
    calls=word_set("call"),
    strings=word_set("string"),
    contents=word_set("string_content"),
    literals=word_set("string integer float true false none ellipsis"),
    containers=word_set(
        "list tuple set dictionary pair unary_operator not_operator parenthesized_expression expression_list "
        "keyword_argument concatenated_string"
    ),
    constants=re.compile(r"[A-Z]\w*\.[A-Z][A-Z_\d]*"),
    makes=re.compile(
        r"(?:\w+\.)*[A-Z]\w*(?<!Error)(?<!Exception)(?<!Warning)|list|dict|set|tuple|str|float|int|jsonify"
    ),
    fails=re.compile(r"raise\b"),
    rejects=re.compile(r"^(?:\w+\.)*(?:\w*Response|jsonify)\("),
    prints=re.compile(_PRINT),
    answers=re.compile(
        r"(?:\w+\.)*(?:abort|abort_with_status|set_code|HTTPException|HTTPError|\w*Response|jsonify)"
    ),
    waits=re.compile(r"(?:await )?(?:\w+\.)?sleep\("),
    idle=re.compile(
        r"pass|return None|\.\.\.|(?s:[\"'].*[\"'])|_ = \w+|del \w+(?:, \w+)*|(?:import|from)\b.*", re.DOTALL
    ),
    wrappers=word_set("try_statement for_statement"),
    explains=re.compile(rf"(?:{_PRINT})$|.*Error$"),
    returns="return_type",
    nothing=re.compile(r"^'?None|Never|NoReturn|Generator|Iterator|\bAny\b|\bobject\b|Optional|None"),
)
_DECLARING = re.compile(
    r"(?:^|\.)(?:abstract\w*|overload|group|callback|hookspec|singledispatch\w*|type_check_only|result_callback"
    r"|fixture|register|setter|deleter)$"
)
_BASE_NAMES = re.compile(r"(?:Abstract|Base|I)(?=[A-Z])|(?:Base|Interface|Protocol|Mixin|ABC|Spec)$")
_DATA_BASES = re.compile(
    r"(?:Model|SQLModel|BaseModel|NamedTuple|TypedDict|Enum|IntEnum|StrEnum|Flag|Document)$"
)
"""Bases that give fields a meaning: methods that take arguments are a class's own, not overrides."""
_LISTENS = word_set("hook hooks listener observer callback callbacks visitor events plugin extension")
_NOTHING = re.compile(r"pass|\.\.\.|(?s:[rRbBuU]*[\"'].*[\"'])|return(?: None)?|from __future__ import.*")


def read(text: str, *, typed: bool = False) -> Source | None:
    """Read a module; ``None`` if it is invalid."""
    file = Reader.of(_SYNTAX, "python", text)
    if file.root.has_error:
        return None
    # Docstrings, and code that was put into quotes.
    prose = [n for n in file.nodes if n.type == "expression_statement" and _is_string(first_of(n))]
    bound = frozenset(_bound_names(file.nodes))
    # The names in `__all__` count if it is one literal; else it is computed.
    uses = [n for n in file.nodes if n.type == "identifier" and text_of(n) == "__all__"]
    owner = uses[0].parent if len(uses) == 1 else None
    items = named(field(owner, "right")) if owner and owner.type == "assignment" else []
    is_literal = bool(items) and all(map(_is_string, items))
    functions = list(_functions(file))
    bases = {text_of(n, "name"): _base_names(n) for n in file.nodes if n.type == "class_definition"}
    return Source(
        language="python",
        code=file.code([*file.comments, *prose]),
        bare=file.bare([*file.comments, *prose]),
        functions=tuple(functions),
        exports=bound,
        defined=bound,
        overrides=overrides(functions, bases),
        open=bool(bound & {"*", "__getattr__"}) or (bool(uses) and not is_literal),
        listed=frozenset(map(file.string, items)) if is_literal else None,
        references=tuple(_references(file)),
        strings=tuple(file.strings()),
        identifiers=file.identifiers(),
        empty=all(_NOTHING.fullmatch(text_of(statement)) for statement in named(file.root)),
    )


def _is_string(node: Node | None) -> bool:
    return node is not None and node.type in ("string", "concatenated_string")


# Names


def _bound_names(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the names that a module binds, those in classes also with the class's name."""
    for node in nodes:
        names: list[str] = []
        match node.type:
            case "function_definition" | "class_definition":
                names = [text_of(node, "name")]
            case "assignment" | "augmented_assignment" | "for_statement" | "type_alias_statement":
                names = [*bound_names(field(node, "left"))]
                right = field(node, "right")
                if right and right.type == "none" and not text_of(node, "left").isupper():
                    names = [name for name in names if _scope(node)]  # for later: a function has to set it
            case "as_pattern_target" | "named_expression":
                names = [*bound_names(first_of(node))]
            case "import_statement" | "import_from_statement":
                for name in node.children_by_field_name("name"):
                    names.append(text_of(name, "alias") or text_of(name).split(".")[0])
                names += ["*" for child in node.children if child.type == "wildcard_import"]
            case "global_statement":
                yield from map(text_of, named(node))
            case _:
                pass
        scope = _scope(node) if names else None
        if scope is not None:
            yield from (scope + name for name in names)


def _scope(node: Node) -> str | None:
    """Return the classes around a node, as a prefix; ``None`` in a function."""
    scope = ""
    for outer in lineage(node):
        if outer == node:
            continue
        if outer.type == "function_definition":
            return None
        if outer.type == "class_definition":
            scope = f"{text_of(outer, 'name')}.{scope}"
    return scope


def _references(file: Reader) -> Iterator[Reference]:
    for node in file.nodes:
        if node.type == "import_statement":
            for name in node.children_by_field_name("name"):
                yield Reference(module=text_of(name, "name") or text_of(name))
        elif node.type == "import_from_statement":
            names = node.children_by_field_name("name")
            yield Reference(
                module=text_of(node, "module_name"),
                names=tuple(text_of(n, "name") or text_of(n) for n in names),
            )


# Functions


def _functions(file: Reader) -> Iterator[Function]:
    classes = {text_of(n, "name"): n for n in file.nodes if n.type == "class_definition"}
    methods: dict[str, list[Function]] = {}
    for node in file.nodes:
        if node.type == "function_definition" and (found := _function(file, node)):
            if found.method:
                methods.setdefault(found.name.partition(".")[0], []).append(found)
            else:
                yield found
    used_as_base = {base for node in classes.values() for base in _base_names(node)}
    for name, node in classes.items():
        yield from _methods(node, methods.get(name, ()), name in used_as_base)


def _function(file: Reader, node: Node) -> Function | None:
    at = node.parent if node.parent and node.parent.type == "decorated_definition" else node
    decorators = [text_of(first_of(d)).partition("(")[0] for d in named(at) if d.type == "decorator"]
    outer = [n for n in lineage(at) if n not in (node, at)]
    statements = [n for n in outer if n.type in ("if_statement", "try_statement")]
    scopes = [n for n in outer if n.type in ("class_definition", "function_definition")]
    owner = text_of(scopes[0], "name") if scopes and scopes[0].type == "class_definition" else ""
    # Not demonstrations, nor classes in functions.
    if any("__main__" in text_of(n, "condition") for n in statements):
        return None
    if owner and any(n.type == "function_definition" for n in scopes):
        return None
    names = [name for child in named(field(node, "parameters")) for name in bound_names(child)]
    if owner and "staticmethod" not in decorators:
        names = names[1:]
    short = text_of(node, "name")
    first = first_of(field(node, "body"))
    doc = file.string(first_of(first)) if first and first.type == "expression_statement" else ""
    found = file.function(node, f"{owner}.{short}" if owner else short, at, names, doc=doc)
    return attrs.evolve(
        found,
        # What exists only on some platforms, or if something cannot be imported, may do nothing.
        declared=bool(statements) or any(map(_DECLARING.search, decorators)),
        method=bool(owner),
        callback=bool(names) and set(names) == {"_"},
        nested=bool(scopes) and not owner and not decorators,
    )


def _base_names(node: Node) -> set[str]:
    """Return the names of a class's bases, without their modules and type arguments."""
    bases = [n for n in named(field(node, "superclasses")) if n.type != "keyword_argument"]
    return {text_of(base).split("[")[0].rpartition(".")[2] for base in bases}


def _methods(node: Node, methods: Sequence[Function], used_as_base: bool) -> Iterator[Function]:
    """Yield the methods of a class with what it says about them."""
    name, bases = text_of(node, "name"), _base_names(node) - {"object", "Generic"}
    working = [f.name.rpartition(".")[2] for f in methods if f.body == "code"]
    prescribing = {n for n in bases if not _DATA_BASES.search(n) or re.match(r"Q[A-Z]|Abstract", n)}
    abstract = (
        (used_as_base and not (working and bases))
        or bool(bases & {"ABC", "Protocol"})
        or _BASE_NAMES.search(name) is not None
        # A class of hooks that all do nothing is there to be overridden, or to be passed when nobody listens.
        or (all(f.body == "empty" for f in methods) and bool(_LISTENS & set(words_of(name))))
    )
    for method in methods:
        yield attrs.evolve(
            method,
            declared=method.declared or abstract,
            inherits=bool(prescribing),
            peers=any(short != "__init__" for short in working),
        )
