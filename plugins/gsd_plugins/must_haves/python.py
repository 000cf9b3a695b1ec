"""Reads Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from .reader import Reader, Syntax, bound_names, callee
from .source import REFUSAL_STATUS, Function, Reference, Source, overrides, word_set, words_of
from .trees import field, find, first_of, line_of, lineage, named, statements_of, text_of

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
_ANSWERS = re.compile(r"\.(?:post|put|patch|delete|route|api_route)$")
_PLATFORM = re.compile(r"\bplatform\b|\bos\.name\b|version_info|TYPE_CHECKING")
_NOTHING = re.compile(r"pass|\.\.\.|(?s:[rRbBuU]*[\"'].*[\"'])|return(?: None)?|from __future__ import.*")


def read(text: str, *, typed: bool = False) -> Source | None:
    """Read a module; ``None`` if it is invalid."""
    file = Reader.of(_SYNTAX, "python", text)
    if file.root.has_error:
        return None
    # Docstrings, and code that was put into quotes.
    prose = [n for n in file.nodes if n.type == "expression_statement" and _is_string(first_of(n))]
    bound = frozenset(_bound_names(file.nodes))
    listed, is_computed = _listed(file) if "__all__" in text else (None, False)
    functions = [*_functions(file), *_empty_classes(file)]
    bases = {text_of(n, "name"): _base_names(n) for n in file.nodes if n.type == "class_definition"}
    return Source(
        language="python",
        code=file.code([*file.comments, *prose]),
        bare=file.bare([*file.comments, *prose]),
        functions=tuple(functions),
        exports=bound,
        defined=bound,
        overrides=overrides(functions, bases),
        open=bool(bound & {"*", "__getattr__"}) or is_computed,
        listed=listed,
        references=tuple(_references(file)),
        strings=tuple(file.strings()),
        identifiers=file.identifiers(),
        empty=all(map(_does_nothing, named(file.root))),
    )


def _is_string(node: Node | None) -> bool:
    return node is not None and node.type in ("string", "concatenated_string")


def _does_nothing(statement: Node) -> bool:
    return _NOTHING.fullmatch(text_of(statement)) is not None


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
            case "attribute":  # what methods set
                owner = _scope(node, inside=True)
                if owner and node.parent and field(node.parent, "left") == node:
                    yield f"{owner}{text_of(node, 'attribute')}"
            case _:
                pass
        scope = _scope(node) if names else None
        if scope is not None:
            yield from (scope + name for name in names)


def _scope(node: Node, *, inside: bool = False) -> str | None:
    """Return the classes around a node, as a prefix; ``None`` in a function, unless *inside* is true."""
    scope = ""
    for outer in lineage(node):
        if outer == node:
            continue
        if outer.type == "function_definition" and not inside:
            return None
        if outer.type == "class_definition":
            scope = f"{text_of(outer, 'name')}.{scope}"
    return scope


def _listed(file: Reader) -> tuple[frozenset[str] | None, bool]:
    """Return the names in ``__all__``, if it is one literal, and whether it is computed instead."""
    uses = [n for n in file.nodes if n.type == "identifier" and text_of(n) == "__all__"]
    owner = uses[0].parent if len(uses) == 1 else None
    items = named(field(owner, "right")) if owner and owner.type == "assignment" else []
    if not items or not all(map(_is_string, items)):
        return None, bool(uses)
    return frozenset(map(file.string, items)), False


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
        elif node.type == "call" and callee(node).endswith(("import_module", "__import__")):
            yield Reference(module=file.string(first_of(field(node, "arguments"))))


# Functions


def _functions(file: Reader) -> Iterator[Function]:
    used_as_base = {name for n in file.nodes if n.type == "class_definition" for name in _base_names(n)}
    defaults = set(_defaults(file.nodes))
    for node in file.nodes:
        if node.type != "function_definition":
            continue
        at = node.parent if node.parent and node.parent.type == "decorated_definition" else node
        decorators = [text_of(first_of(d)).partition("(")[0] for d in named(at) if d.type == "decorator"]
        outer = [n for n in lineage(at) if n != node and n != at]
        statements = [n for n in outer if n.type in ("if_statement", "try_statement", "with_statement")]
        if any("__main__" in text_of(n, "condition") for n in statements):
            continue  # a demonstration
        around = next((n for n in outer if n.type in ("class_definition", "function_definition")), None)
        nested = around is not None and around.type == "function_definition"
        owner = text_of(around, "name") if around and not nested else ""
        if owner and any(n.type == "function_definition" for n in outer):
            continue  # a class in a function
        names = [name for child in named(field(node, "parameters")) for name in bound_names(child)]
        if owner and "staticmethod" not in decorators:
            names = names[1:]
        short = text_of(node, "name")
        found = file.function(
            node, f"{owner}.{short}" if owner else short, at, names, doc=_documentation(file, node)
        )
        handles = any(map(_ANSWERS.search, decorators)) or bool({"request", "req"} & set(names))
        found = attrs.evolve(
            found,
            answers=handles
            and found.body == "constant"
            and re.search(r"[({]", found.value) is not None
            and not REFUSAL_STATUS.search(found.value),
            declared=any(map(_DECLARING.search, decorators)),
            method=bool(owner),
            callback=short in defaults or (bool(names) and set(names) == {"_"}),
            nested=nested and not decorators,
            conditional=bool(statements),
            fallback=bool(statements) and not owner and _is_fallback(statements[0], node),
        )
        yield _method(file, around, found, used_as_base, defaults) if owner and around else found


def _is_fallback(statement: Node, node: Node) -> bool:
    first = field(statement, "body") or field(statement, "consequence")
    inside = first is not None and first.start_byte <= node.start_byte < first.end_byte
    return not inside or _PLATFORM.search(text_of(statement, "condition")) is not None


def _documentation(file: Reader, node: Node) -> str:
    first = first_of(field(node, "body"))
    return file.string(first_of(first)) if first and first.type == "expression_statement" else ""


def _defaults(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the functions and classes that stand in for a missing argument."""
    for node in nodes:
        if node.type in ("default_parameter", "typed_default_parameter"):
            yield from (text_of(n) for n in find(field(node, "value"), "identifier"))
        elif node.type == "boolean_operator" and text_of(node, "operator") == "or":
            yield text_of(node, "right").partition("(")[0]


def _base_names(node: Node) -> set[str]:
    """Return the names of a class's bases, without their modules and type arguments."""
    bases = [n for n in named(field(node, "superclasses")) if n.type != "keyword_argument"]
    return {text_of(base).split("[")[0].rpartition(".")[2] for base in bases}


def _is_abstract(node: Node, used_as_base: set[str], has_code: bool) -> bool:
    names, name = _base_names(node), text_of(node, "name")
    return (
        bool(names & {"ABC", "Protocol"})
        or "ABCMeta" in text_of(node, "superclasses")
        or (name in used_as_base and not (has_code and names - {"object", "Generic"}))
        or _BASE_NAMES.search(name) is not None
    )


def _method(
    file: Reader, node: Node, found: Function, used_as_base: set[str], defaults: set[str]
) -> Function:
    """Return *found* with what its class says about it."""
    kinds = {
        text_of(inner, "name"): file.body(inner, ()).kind
        for member in statements_of(field(node, "body"))
        for inner in [field(member, "definition") or member]
        if inner.type == "function_definition"
    }
    bases = {
        n
        for n in _base_names(node) - {"object"}
        if not _DATA_BASES.search(n) or re.match(r"Q[A-Z]|Abstract", n)
    }
    name = text_of(node, "name")
    idle = bool(kinds) and set(kinds.values()) == {"empty"}
    # A class of hooks that all do nothing is there to be overridden, or to be passed when nobody listens.
    listens = idle and (name in defaults or bool(_LISTENS & set(words_of(name))))
    short = found.name.rpartition(".")[2]
    return attrs.evolve(
        found,
        declared=found.declared
        or listens
        or (found.body == "unfinished" and bool(bases) and short.startswith("__"))
        or _is_abstract(node, used_as_base, "code" in kinds.values()),
        inherits=bool(bases),
        peers=any(kind == "code" and key != "__init__" for key, kind in kinds.items()),
    )


def _empty_classes(file: Reader) -> Iterator[Function]:
    """Yield the classes without content that nothing in the module explains or uses, as functions."""
    used = {
        text_of(n) for n in file.nodes if n.type == "identifier" and n.parent and field(n.parent, "name") != n
    }
    used_as_base = {name for n in file.nodes if n.type == "class_definition" for name in _base_names(n)}
    for node in file.nodes:
        name = text_of(node, "name")
        if (
            node.type != "class_definition"
            or field(node, "superclasses")
            or name in used
            or name.startswith("_")
        ):
            continue
        if node.parent and node.parent.type == "decorated_definition":
            continue
        content = statements_of(field(node, "body"))
        if _documentation(file, node) or not all(map(_does_nothing, content)):
            continue
        if not _is_abstract(node, used_as_base, False):
            conditional = any(n.type in ("if_statement", "try_statement") for n in lineage(node))
            yield Function(
                name=name,
                line=line_of(node),
                body="empty",
                parameters=("…",),
                returns=True,
                conditional=conditional,
            )
