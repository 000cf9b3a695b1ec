"""Reads Rust."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .source import (
    BY_SUBCLASS,
    NEUTRAL,
    UNFINISHED,
    UNFINISHED_STATUS,
    BodyKind,
    Function,
    Reference,
    Source,
    Test,
    pretends,
)
from .trees import (
    arguments_of,
    comments_before,
    comments_in,
    field,
    find,
    first_of,
    line_of,
    lineage,
    masked,
    named,
    parse,
    returned_values,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_ITEMS = ("function_item", "function_signature_item", "struct_item", "enum_item", "union_item", "trait_item")
_VALUES = ("const_item", "static_item", "type_item", "mod_item", "macro_definition")
_STRINGS = ("string_literal", "raw_string_literal")
_PRINT = re.compile(r"(?:e?print(?:ln)?|dbg|(?:tracing::|log::)?(?:info|debug|trace|warn|error))")
_ASSERTS = re.compile(
    r"(?:\w+::)*(?:debug_)?(?:prop_)?(?:assert\w*|panic|unreachable|expect\w*|matches_snapshot|bail|ensure)$"
)
_TEST_ATTRIBUTE = re.compile(
    r"#\[(?:\w+::)*(?:test|rstest|test_case|wasm_bindgen_test|quickcheck|case|apply|proptest)\b"
)
_UNIMPLEMENTED = re.compile(
    r"(?:Err\()?(?:\w+::)*(?:NotImplemented|NOT_IMPLEMENTED|Unimplemented)(?:\.into\(\))?\)?"
    r"|(?:Err\()?(?:\w+::)*unimplemented\([^()]*\)\)?"
)
_DROPS = r"let _ = (?:&?\w+|\([\w\s,&]*\));"
_SLEEP = re.compile(r"(?:\w+::)*sleep\(")
_LET = re.compile(r"let (?:mut )?(\w+)(?:\s*:[^=]*)?\s*=\s*(.*);", re.DOTALL)
_CHOICES = re.compile(r"(?:\w+::)*[A-Z]\w*")
"""The path of a constant or of a variant without fields: ``StatusCode::OK``, ``LIMIT``."""
_WRAPPERS = re.compile(
    r"(?:\w+::)*(?:Ok|Some|Json|Html|(?:Box|Rc|Arc|Cow|Mutex|RwLock)::new|(?:\w+(?:::<[^>]*>)?::)?(?:new|default|with_capacity|from)"
    r"|[A-Z]\w*)"
)
_NULL = re.compile(
    r"(?:Ok|Some|Json|Err|Html|Box::new|Rc::new|Arc::new)\((.*)\)|(?:\w+(?:::<[^>]*>)?::)*(?:new|default)\(\)"
    r"|vec!\[\]|String::from\(\"[^\"]*\"\)|\"[^\"]*\"\.(?:to_string|to_owned|into|to_vec)\(\)|None|\(\)"
    r"|-?\d[\w.]*|\"[^\"]*\"|'.'|true|false|\[\]|&\[\]|Vec::with_capacity\(\d+\)",
    re.DOTALL,
)


def read(text: str, *, typed: bool = False) -> Source:
    """Read a file."""
    root = parse("rust", text)
    nodes = list(walk(root))
    comments = [n for n in nodes if n.type in ("line_comment", "block_comment")]
    strings = [n for n in nodes if n.type in ("string_content", *_STRINGS)]
    exports, defined = set[str](), set[str]()
    _items(root, "", exports, defined)
    use = [n for n in nodes if n.type == "use_declaration"]
    modules = tuple(text_of(n, "name") for n in nodes if n.type == "mod_item" and not field(n, "body"))
    macros = {text_of(inner) for n in find(root, "macro_invocation") if n.parent == root for inner in walk(n)}
    content = [
        n for n in named(root) if n.type not in ("use_declaration", "inner_attribute_item", "attribute_item")
    ]
    return Source(
        language="rust",
        code=masked(text, comments),
        bare=masked(text, [*comments, *strings]),
        functions=tuple(_functions(nodes)),
        exports=frozenset(exports | macros),
        defined=frozenset(defined),
        internal=frozenset(
            text_of(n, "name")
            for n in nodes
            if n.type in (*_ITEMS, *_VALUES)
            and any(c.type == "visibility_modifier" and "(" in text_of(c) for c in n.children)
        ),
        modules=modules,
        star=tuple(_globs(use)),
        open=any(text_of(n).startswith("pub") and "*" in text_of(n) for n in use),
        references=(
            *(Reference(module=text_of(n, "argument")) for n in use),
            *(Reference(module=name) for name in modules),
        ),
        strings=tuple(text_of(n).strip('r#"') for n in nodes if n.type in _STRINGS),
        identifiers=frozenset(
            text_of(n) for n in nodes if n.type.endswith("identifier") or n.type == "crate"
        ),
        paths=frozenset(
            part
            for n in nodes
            if n.type
            in ("scoped_identifier", "scoped_type_identifier", "use_declaration", "mod_item", "token_tree")
            and not (n.type == "mod_item" and field(n, "body"))
            for part in re.findall(r"\w+", text_of(n, "name") if n.type == "mod_item" else _path_text(n))
        ),
        tests=tuple(_tests(nodes)),
        empty=not content and not any(text_of(n).startswith("pub") for n in use),
        faulty=root.has_error,
    )


def _globs(use: Sequence[Node]) -> Iterator[str]:
    """Yield the paths of ``pub use path::*``."""
    for node in use:
        if not _is_public(node):
            continue
        for inner in find(node, "use_wildcard"):
            path = text_of(inner).removesuffix("*").removesuffix("::")
            for outer in lineage(inner):  # `pub use inner::{deeper::*, other}`
                if outer.type == "scoped_use_list":
                    path = f"{text_of(outer, 'path')}::{path}"
            yield re.sub(r"\s", "", path)


def _path_text(node: Node) -> str:
    if node.type != "token_tree":
        return text_of(node)
    # Macros are not parsed further: take what comes before `::`.
    words = [text_of(child) for child in node.children]
    return " ".join(word for word, after in itertools.pairwise(words) if after == "::")


def _is_public(node: Node) -> bool:
    return any(child.type == "visibility_modifier" for child in node.children)


def _is_test_module(node: Node) -> bool:
    return node.type == "mod_item" and "cfg(test)" in _attributes(node)


def _attributes(node: Node) -> str:
    """Return the attributes directly above an item."""
    found: list[str] = []
    previous = node.prev_sibling
    while previous and (previous.type == "attribute_item" or "comment" in previous.type):
        if previous.type == "attribute_item":
            found.append(text_of(previous))
        previous = previous.prev_sibling
    return "\n".join(found)


def _items(parent: Node, owner: str, exports: set[str], defined: set[str], *, trait: bool = False) -> None:
    for node in named(parent):
        name = text_of(node, "name")
        if node.type in (*_ITEMS, *_VALUES) and name and not _is_test_module(node):
            names = {f"{owner}.{name}", name} if owner else {name}
            defined |= names
            if (
                _is_public(node)
                or trait
                or (node.type == "macro_definition" and "macro_export" in _attributes(node))
            ):
                exports |= names
                if node.type == "macro_definition":
                    exports.add(f"{name}!")
        if node.type in ("impl_item", "trait_item") and (body := field(node, "body")):
            kind = re.sub(r"<.*", "", text_of(field(node, "type") or field(node, "name")))
            prescribed = node.type == "trait_item" or field(node, "trait") is not None
            _items(body, kind.rpartition("::")[2], exports, defined, trait=prescribed)
        elif node.type == "mod_item" and (body := field(node, "body")) and not _is_test_module(node):
            _items(body, "", exports, defined)
        elif node.type in ("struct_item", "enum_item") and (body := field(node, "body")):
            for member in named(body):
                if (key := field(member, "name")) and (node.type == "enum_item" or _is_public(member)):
                    exports.add(f"{name}.{text_of(key)}")
        elif node.type == "use_declaration":
            names = {
                text_of(inner, "alias") if inner.type == "use_as_clause" else text_of(inner)
                for inner in find(field(node, "argument"), "identifier", "type_identifier", "use_as_clause")
            }
            defined |= names
            if _is_public(node):
                exports |= names


# Functions


def _functions(nodes: Sequence[Node]) -> Iterator[Function]:
    units = {text_of(n, "name") for n in nodes if n.type == "struct_item" and not field(n, "body")}
    items = [n for n in nodes if n.type == "function_item"]
    real = {_owner(n)[0] for n in items if _body_of(n)[0] == "code"}
    for node in items:
        if _in_tests(node):
            continue
        kind, value, body = _body_of(node)
        name = text_of(node, "name")
        owner, prescribed = _owner(node)
        names = [
            name
            for child in named(field(node, "parameters"))
            if child.type == "parameter"
            # `Path(id): Path<u32>` binds `id`.
            for name in re.findall(r"(?<![\w:])(?!mut\b|ref\b)[a-z_]\w*", text_of(child, "pattern"))
        ]
        used = set(map(text_of, find(body, "identifier")))
        values = tuple(n for n in names if n not in NEUTRAL and not n.startswith("_"))
        whole = text_of(node, "body")
        dropped = re.findall(rf"{_DROPS}|drop\(\w+\);", whole)
        used -= {name for text in dropped for name in re.findall(r"\w+", text)}
        rest = re.sub(rf"{_DROPS}|//[^\n]*", "", whole)
        # Also of the modules and blocks that contain it.
        conditions = "\n".join(map(_attributes, lineage(node)))
        yield Function(
            name=f"{owner}.{name}" if owner else name,
            line=line_of(node),
            body=kind,
            value=value,
            parameters=values,
            length=node.end_point[0] - node.start_point[0] + 1,
            unused=tuple(n for n in values if not re.search(rf"\b{re.escape(n)}\b", rest)),
            ignored=tuple(n for n in names if n.startswith("_")),
            uses_parameters=bool(used & set(names)),
            returns="nothing" if text_of(node, "return_type") in ("", "()") else "value",
            comment=comments_in(body),
            doc=comments_before(node),
            # A trait's method with a body has a default on purpose.
            declared=(prescribed == "trait" and kind != "unfinished") or _is_bound_check(node),
            inherits=prescribed == "impl" or owner in units,
            method=bool(owner),
            exported=_is_public(node),
            peers=owner in real,
            conditional="#[cfg(" in conditions,
            fallback="#[cfg(not(" in conditions.replace(" ", ""),
        )


def _is_bound_check(node: Node) -> bool:
    """Whether a function has nothing but bounds on its types, which the compiler checks in each call."""
    bounds = ":" in text_of(node, "type_parameters") or any(n.type == "where_clause" for n in named(node))
    values = [c for c in named(field(node, "parameters")) if not text_of(c, "pattern").startswith("_")]
    return bounds and not values and not named(field(node, "body")) and field(node, "return_type") is None


def _owner(node: Node) -> tuple[str, str]:
    """Return the type of a method, and ``trait`` or ``impl`` if a trait prescribes the method."""
    item = node.parent.parent if node.parent else None
    if item and item.type == "impl_item":
        kind = re.sub(r"<.*", "", text_of(item, "type")).rpartition("::")[2]
        return kind, "impl" if field(item, "trait") else ""
    if item and item.type == "trait_item":
        return text_of(item, "name"), "trait"
    return "", ""


def _in_tests(node: Node) -> bool:
    return any(
        _is_test_module(outer)
        or (outer.type == "function_item" and _TEST_ATTRIBUTE.search(_attributes(outer)))
        for outer in lineage(node)
    )


def _body_of(function: Node) -> tuple[BodyKind, str, Node]:
    body = field(function, "body")
    assert body is not None
    names = {text_of(c, "pattern").removeprefix("mut ") for c in named(field(function, "parameters"))}
    rest: list[Node] = []
    constants: dict[str, str] = {}
    printed = refused = ""
    slept = False
    for statement in named(body):
        inner = first_of(statement) if statement.type == "expression_statement" else statement
        text = text_of(statement)
        macro = text_of(inner, "macro") if inner and inner.type == "macro_invocation" else ""
        if macro in ("todo", "unimplemented") or (
            macro in ("panic", "bail", "anyhow::bail") and UNFINISHED.search(text[text.find('"') :])
        ):
            if any(find(other, "return_expression") for other in rest):
                return "code", "", body  # it refuses what no branch handles
            return "unfinished", text, body
        if _PRINT.fullmatch(macro):
            printed = text
            if UNFINISHED.search(text[text.find('"') :]):
                refused = text
        elif _SLEEP.match(text):
            slept = True
        elif (let := _LET.fullmatch(text)) and _is_constant(let[2].strip()):
            constants[let[1]] = let[2].strip()
        elif not re.fullmatch(rf"{_DROPS}|;|\(\)|drop\(\w+\);", text):
            rest.append(statement)
    if unfinished := [macro for macro in find(body, "macro_invocation") if _is_unfinished(macro)]:
        return "unfinished", text_of(unfinished[0]), body
    if not rest:
        if constants or slept:
            return "code", "", body
        return ("print", printed, body) if printed else ("empty", "", body)
    if len(rest) > 1:
        returned = returned_values(rest[:-1], "return_expression")
        values = {re.sub(r"^return\s+", "", text_of(node)) for node in returned}
        values.add(re.sub(r"^return\s+|;$", "", text_of(rest[-1])).strip())
        if returned and len(values) == 1 and _is_constant(value := values.pop()):
            return "constant", value, returned[0]
        return "code", "", body
    text = re.sub(r"^return\s+|;$", "", text_of(rest[0])).strip()
    text = constants.get(text, text)
    if refused and _is_constant(text):
        return "unfinished", refused, body
    error = re.match(r'(?s)Err\([^"]*(".*)', text)
    status = UNFINISHED_STATUS.search(text) and re.fullmatch(r"(?:\w+::)*\w+(?:\.into_response\(\))?", text)
    if _UNIMPLEMENTED.fullmatch(text) or (error and UNFINISHED.search(error[1])) or status:
        return "unfinished", text, body
    if printed and text == "Ok(())":
        return "print", printed, body
    if text in names:
        return "identity", text, body
    last = rest[0]
    while last.type in ("expression_statement", "return_expression"):
        last = first_of(last) or body
    return ("constant", text, body) if _is_constant(text) or _is_literal(last) else ("code", "", body)


def _is_unfinished(macro: Node) -> bool:
    """Whether a macro says that a part is missing; ``_ => unimplemented!()`` refuses the rest."""
    name, text = text_of(macro, "macro"), text_of(macro)
    if name != "unimplemented":
        return name == "todo"
    arm = macro.parent
    rest = arm is not None and arm.type == "match_arm" and text_of(arm, "pattern").startswith("_")
    return not rest and BY_SUBCLASS.search(text) is None


def _is_constant(text: str) -> bool:
    match = _NULL.fullmatch(text)
    return match is not None and (not match[1] or _is_constant(match[1].strip()))


def _is_literal(node: Node) -> bool:
    """Whether an expression is made of literals: ``Ok(Json(Created { code: "abc".to_string() }))``."""
    match node.type:
        case "call_expression":
            called = re.sub(r"::<.*?>", "", text_of(node, "function"))
            if method := re.fullmatch(r"(?s)(.*)\.(?:to_string|to_owned|into|to_vec)", called):
                return re.fullmatch(r'(?s)b?".*"|\d+', method[1]) is not None
            return bool(_WRAPPERS.fullmatch(called)) and all(map(_is_literal, arguments_of(node)))
        case "struct_expression":
            members = named(field(node, "body"))
            values = [field(m, "value") if m.type == "field_initializer" else None for m in members]
            return bool(members) and all(value is not None and _is_literal(value) for value in values)
        case "macro_invocation":
            inner = text_of(node).partition("!")[2]
            words = re.findall(r"[A-Za-z_]\w*", re.sub(r'"(?:[^"\\]|\\.)*"', "", inner))
            return text_of(node, "macro").rpartition("::")[2] in ("vec", "json") and not (
                set(words) - {"true", "false", "null", "None"}
            )
        case "reference_expression" | "tuple_expression" | "array_expression" | "parenthesized_expression":
            return all(map(_is_literal, named(node)))
        case _:
            return bool(_CHOICES.fullmatch(text_of(node))) or _is_constant(text_of(node))


# Tests


def _tests(nodes: Sequence[Node]) -> Iterator[Test]:
    functions = {text_of(n, "name"): n for n in nodes if n.type == "function_item"}
    outside = {text_of(n, "name") for n in nodes if n.type == "mod_item" and not field(n, "body")}
    called = {text_of(n, "function").rpartition("::")[2] for n in nodes if n.type == "call_expression"}
    for node in nodes:
        if node.type == "token_tree":
            called |= {text_of(inner) for inner in node.children if inner.type == "identifier"}
    # `fn is_send<T: Send>() {}` fails when it is compiled.
    known = {name for name, node in functions.items() if _is_bound_check(node)}
    for _ in range(3):
        known |= {name for name, node in functions.items() if _can_fail(node, known, outside)}
    for name, node in functions.items():
        attributes = _attributes(node)
        if _TEST_ATTRIBUTE.search(attributes):
            yield Test(
                name=name,
                line=line_of(node),
                asserts="should_panic" in attributes
                or ("quickcheck" in attributes and field(node, "return_type") is not None)
                or _can_fail(node, known, outside),
                pretends=pretends(text_of(node, "body").lstrip("{")),
                skipped=bool(re.search(r"#\[ignore\b|cfg\(any\(\)\)", attributes)),
            )
        elif (
            name.startswith("test_")
            and name not in called
            and _in_tests(node)
            and not named(field(node, "parameters"))
        ):
            yield Test(name=name, line=line_of(node), runs=False)
    for node in nodes:
        if node.type == "macro_invocation" and re.search(r"proptest|quickcheck", text_of(node, "macro")):
            yield Test(name=text_of(node, "macro"), line=line_of(node))


def _can_fail(function: Node, known: set[str], outside: set[str]) -> bool:
    for node in walk(field(function, "body") or function):
        if node.type == "macro_invocation":
            macro = text_of(node, "macro")
            arguments = text_of(node).partition("!")[2].strip("([{}]) ")
            if _ASSERTS.search(macro) and not ("assert" in macro and _is_trivial(arguments)):
                return True
            if any(re.search(rf"\b{re.escape(name)}\s*\(", arguments) for name in known):
                return True
        elif node.type == "try_expression":
            return True
        elif node.type == "call_expression":
            called = text_of(node, "function")
            plain = re.sub(r"::<.*", "", called, flags=re.DOTALL)
            last = plain.rpartition("::")[2].rpartition(".")[2]
            if last == "compile_fail" or (last == "pass" and "trybuild" in text_of(function)):
                return True
            if last in known or last in ("unwrap", "expect", "unwrap_err", "expect_err", "exit"):
                return True
            if called.partition("::")[0] in outside and "::" in called:
                return True
            if re.match(r"(?:assert|check|verify|expect|ensure|must)_?", last):
                return True
    return False


def _is_trivial(arguments: str) -> bool:
    """``assert!(true)``, ``assert_eq!(1, 1)``: only literals."""
    first = arguments.split(",")
    literal = re.compile(r"\s*(?:true|\d+(?:\s*==\s*\d+)?|\"[^\"]*\")\s*")
    if literal.fullmatch(first[0]) and (len(first) == 1 or first[0].strip() == "true"):
        return True
    return len(first) >= 2 and all(map(literal.fullmatch, first[:2])) and first[0].strip() == first[1].strip()
