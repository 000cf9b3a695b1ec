"""Reads JavaScript and TypeScript, with JSX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

from .source import (
    NEUTRAL,
    REFUSAL_STATUS,
    UNFINISHED,
    BodyKind,
    Function,
    Reference,
    Source,
    word_set,
    words_of,
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

_FUNCTIONS = ("arrow_function", "function_expression", "function", "generator_function")
_DECLARATIONS = ("function_declaration", "generator_function_declaration")
_CLASSES = ("class_declaration", "abstract_class_declaration", "class")
_STRINGS = ("string", "template_string")
_AROUND = ("parenthesized_expression", "as_expression", "satisfies_expression")
_PRINT = re.compile(
    r"(?:this\.)?(?:\w+\.)?#?_?(?:console|log|logger|logging)(?:\.\w+)?|alert|print"
    r"|process\.std(?:out|err)\.write"
)
_WAITS = re.compile(
    r"await (?:new Promise\(.*\bsetTimeout\b|(?:\w+\.)?(?:sleep|delay|wait|setTimeout)\()", re.DOTALL
)
_CHANGES = re.compile(r"\.(?:post|put|patch|delete)$")
_REFUSES = re.compile(r"(?:res|reply|response)\.(?:sendStatus\(501\)|status\(501\)\.(?:end|send|json)\(\))")
_RESPONSE = re.compile(
    r"(?:res|reply|response|ctx|c|h)(?:\.\w+(?:\([^()]*\))?)*\.(?:json|send|end|render|text|body|sendStatus)"
)
_WRAPS = re.compile(
    r"(?:Promise\.(?:resolve|reject)|(?:Next)?Response\.json|json|(?:new )?(?:Next)?Response|Object\.freeze"
    r"|of"
    r"|(?:useCallback|useMemo))$"
)
_TEST_CALL = re.compile(r"(?:test|it|specify|fit|xit|xtest|xspecify|Deno\.test|t\.test|t\.step)\b")
_HOLDERS_OF_PATHS = word_set(
    "pair array jsx_attribute binary_expression variable_declarator return_statement "
    "arrow_function ternary_expression assignment_expression public_field_definition "
    "assignment_pattern template_substitution as_expression object_assignment_pattern"
)
_SHOWS_A_REMARK = frozenset(
    ("soon", "badge", "banner", "label", "notice", "placeholder", "tag", "teaser", "todo", "chip", "tooltip")
)
_STATES = frozenset(("found", "forbidden", "unauthorized", "offline"))
"""Words of components whose name is all that there is to say."""
_EXPORTS = re.compile(r"(?:module\.)?exports(?:\.(\w+)|\[['\"](\w+)['\"]\])?$")


def read(text: str, *, typed: bool = False) -> Source:
    """Read a module; *typed*: it is TypeScript without JSX."""
    # The grammar does not know this form; without `type`, it means the same here.
    known = re.sub(r"(?m)^(\s*export )type( \*)", r"\1    \2", text)
    root = parse("typescript" if typed else "tsx", known)
    nodes = list(walk(root))
    comments = [n for n in nodes if n.type == "comment" and not text_of(n).startswith("/// <reference")]
    contents = [n for n in nodes if n.type in ("string_fragment", "jsx_text")]
    exports = _Exports()
    names: set[str] = set()
    for node in root.named_children:
        exports.add(node)
        declared = field(node, "declaration") if node.type == "export_statement" else node
        names |= _declared_by(declared) if declared else set()
    imports = "require" in text or "import_statement" in {n.type for n in root.children}
    if not exports.found and not imports:  # a script of a page: its declarations are global
        exports.names |= names
    functions = list(_functions(root, nodes, exports.names))
    functions += _nested(nodes, {function.line for function in functions})
    # `function Encoder() {}` with methods in its prototype is a class without fields.
    functions = [f for f in functions if f.body != "empty" or f"{f.name}.prototype." not in text]
    return Source(
        language="javascript",
        code=masked(text, comments),
        bare=masked(text, [*comments, *contents]),
        functions=tuple(functions),
        exports=frozenset(exports.names | _members(nodes, exports.names)),
        defined=frozenset(names | {function.name for function in functions}),
        overrides=frozenset(_overrides(nodes)),
        star=tuple(exports.star),
        open=exports.open,
        references=tuple(_references(nodes)),
        strings=tuple(_path_strings(nodes)),
        identifiers=frozenset(text_of(n) for n in nodes if n.type.endswith("identifier")),
        # Types in JSDoc are what such a file is for.
        empty=all(_is_nothing(node) for node in root.named_children)
        and not any(re.search(r"@(?:typedef|callback)\b", text_of(node)) for node in comments),
        faulty=root.has_error,
    )


def _is_nothing(node: Node) -> bool:
    if node.type in ("comment", "hash_bang_line", "empty_statement"):
        return True
    if node.type == "import_statement":  # `import "./polyfills"` runs a module; names alone do nothing
        return any(child.type == "import_clause" for child in node.children)
    if node.type == "expression_statement":
        return text_of(node).strip("'\"; ") in ("use strict", "use client", "use server")
    return node.type == "export_statement" and text_of(node).replace(" ", "").rstrip(";") == "export{}"


def _string(node: Node | None) -> str:
    return text_of(node)[1:-1] if node and node.type in _STRINGS else ""


def _declared_by(node: Node) -> set[str]:
    """Return the names that one declaration binds."""
    if node.type in ("lexical_declaration", "variable_declaration"):
        return {name for inner in named(node) for name in _pattern_names(field(inner, "name"))}
    return {text_of(node, "name")} - {""}


def _pattern_names(node: Node | None) -> Iterator[str]:
    if node is None:
        return
    if node.type in ("identifier", "shorthand_property_identifier_pattern", "type_identifier"):
        yield text_of(node)
    # What is right of `=` is a default, and binds nothing.
    inner = [field(node, "left")] if node.type.endswith("assignment_pattern") else node.children
    for child in inner:
        yield from _pattern_names(child)


# Exports and imports


@attrs.define(kw_only=True)
class _Exports:
    """Collects what a module exports, from its top-level statements."""

    names: set[str] = attrs.field(factory=set[str])
    star: list[str] = attrs.field(factory=list[str])
    open: bool = False
    found: bool = False

    def add(self, node: Node) -> None:
        """Take the exports of one statement."""
        if node.type == "export_statement":
            self.found = True
            self._add_export(node)
        elif node.type == "expression_statement":
            for child in named(node):
                self._add_assignment(child)
        elif node.type == "ambient_declaration":
            self.open = True
        elif node.type in ("if_statement", "statement_block", "else_clause"):
            for child in named(node):
                self.add(child)

    def _add_export(self, node: Node) -> None:
        kinds = {child.type for child in node.children}
        source = _string(field(node, "source"))
        if "*" in kinds:
            self.star.append(source)
        if "default" in kinds or "=" in kinds:
            self.names.add("default")
        for child in named(node):
            if child.type == "namespace_export":
                self.names |= set(_pattern_names(child))
            elif child.type == "export_clause":
                for specifier in named(child):
                    name = text_of(field(specifier, "alias") or field(specifier, "name")).strip("'\"")
                    self.names.add(name)
            elif child.type == "identifier":
                self.names.add(text_of(child))
            elif child.type in (*_FUNCTIONS, *_CLASSES, *_DECLARATIONS):
                self.names |= {text_of(child, "name")} - {""}
        if declaration := field(node, "declaration"):
            self.names |= {name.strip("'\"") for name in _declared_by(declaration)}

    def _add_assignment(self, node: Node) -> None:
        if node.type == "call_expression" and re.search(r"\bexports\b", text_of(node)[:200]):
            self.open = self.found = True  # Object.assign(exports, …), __exportStar(…)
        if node.type != "assignment_expression":
            return
        left, right = text_of(node, "left"), field(node, "right")
        if re.match(r"(?:window|globalThis|self|global)\.", left):
            self.names.add(left.partition(".")[2])
            return
        match = _EXPORTS.match(left)
        if not match or right is None:
            return
        self.found = True
        if name := match[1] or match[2]:
            self.names.add(name)
            return
        self.names.add("default")
        while right.type == "assignment_expression":
            self._add_assignment(right)
            right = field(right, "right") or right
        if right.type == "object":
            for pair in named(right):
                key = pair if pair.type == "shorthand_property_identifier" else field(pair, "key")
                self.names.add(text_of(key or field(pair, "name")).strip("'\""))
                self.open |= pair.type == "spread_element"
        elif right.type == "identifier":
            self.names.add(text_of(right))
        elif right.type in (*_FUNCTIONS, *_CLASSES):
            self.names.add(text_of(right, "name"))
        else:
            self.open = True


def _members(nodes: Sequence[Node], exports: set[str]) -> set[str]:
    """Return the members of exported classes, interfaces and objects: ``Cart.total`` and ``total``."""
    found: set[str] = set()
    for node in nodes:
        is_type = node.type in (*_CLASSES, "interface_declaration", "enum_declaration")
        owner, body = text_of(node, "name"), field(node, "body" if is_type else "value")
        if owner not in exports or body is None or not (is_type or node.type == "variable_declarator"):
            continue
        for inner in walk(body, skip=("statement_block",)):
            key = field(inner, "name") or field(inner, "key")
            if inner.type == "shorthand_property_identifier":
                key = inner
            if key and key.type.endswith("identifier"):
                found |= {f"{owner}.{text_of(key)}", text_of(key)}
    return found


def _references(nodes: Sequence[Node]) -> Iterator[Reference]:
    for node in nodes:
        if node.type in ("import_statement", "export_statement"):
            if module := _string(field(node, "source")):
                yield Reference(module=module, names=tuple(map(text_of, find(node, "identifier"))))
            for child in named(node):
                if child.type == "import_require_clause":
                    yield Reference(module=_string(field(child, "source")))
        elif node.type == "call_expression":
            called = text_of(node, "function")
            argument = first_of(field(node, "arguments"))
            imports = re.fullmatch(r"import|require|require\.resolve|import\.meta\.(?:glob|resolve)", called)
            if imports and argument:
                yield Reference(module=_string(argument))


def _path_strings(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the strings that may name a file or a URL; not those that are printed, thrown or explain."""
    for node in nodes:
        if node.type not in _STRINGS or node.parent is None:
            continue
        parent = node.parent
        if parent.type == "arguments" and parent.parent:
            called = text_of(field(parent.parent, "function") or field(parent.parent, "constructor"))
            if _PRINT.match(called) or called.endswith("Error") or _TEST_CALL.match(called):
                continue
        elif parent.type not in _HOLDERS_OF_PATHS:
            continue
        yield re.sub(r"\$\{[^}]*\}", "*", _string(node))


# Functions


def _functions(root: Node, nodes: Sequence[Node], exports: set[str]) -> Iterator[Function]:
    bases = {base for node in nodes if node.type == "class_heritage" for base in _bases(node)}
    defaults = set(_defaults(nodes))
    for statement in root.named_children:
        node = field(statement, "declaration") or field(statement, "value") or statement
        if statement.type == "export_statement" and node is statement:
            continue
        if node.type in _DECLARATIONS or (statement.type == "export_statement" and node.type in _FUNCTIONS):
            name = text_of(node, "name") or "default"
            yield _function(node, name, statement, exports | {"default"}, defaults)
        elif node.type in ("lexical_declaration", "variable_declaration"):
            for declarator in named(node):
                value = _unwrapped(field(declarator, "value"))
                name = text_of(declarator, "name")
                if value and value.type in _FUNCTIONS:
                    yield _function(value, name, statement, exports, defaults)
                elif value and value.type == "object":
                    yield from _object(value, name, statement, exports, defaults)
        elif node.type in _CLASSES:
            yield from _class(node, statement, bases, exports, defaults)
        elif node.type == "expression_statement":
            for assignment in named(node):
                left, value = text_of(assignment, "left"), field(assignment, "right")
                if assignment.type != "assignment_expression" or value is None:
                    continue
                value = _unwrapped(value) or value
                match = _EXPORTS.match(left)
                if member := re.search(r"(\w+)\.prototype\.(\w+)$", left):
                    if value.type in _FUNCTIONS:
                        name = f"{member[1]}.{member[2]}"
                        found = _function(value, name, statement, exports, defaults, method=True)
                        yield attrs.evolve(found, peers=True)
                elif match and value.type in _FUNCTIONS:
                    name = match[1] or text_of(value, "name") or "default"
                    yield _function(value, name, statement, exports | {"default"}, defaults)
                elif match and value.type == "object":
                    yield from _object(value, "exports", statement, exports | {"exports"}, defaults)
                elif match and value.type in _CLASSES:
                    yield from _class(value, statement, bases, exports, defaults)


def _defaults(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the functions and classes that stand in for a missing argument."""
    for node in nodes:
        is_default = node.type.endswith(("assignment_pattern", "required_parameter", "optional_parameter"))
        if is_default or (node.type == "binary_expression" and text_of(node, "operator") in ("??", "||")):
            value = field(node, "right") or field(node, "value")
            if value and value.type == "new_expression":
                value = field(value, "constructor")
            if value and value.type == "identifier":
                yield text_of(value)


def _nested(nodes: Sequence[Node], seen: set[int]) -> Iterator[Function]:
    """Yield the functions inside of others: members of returned objects, handlers, closures."""
    for node in nodes:
        if node.type not in (*_FUNCTIONS, *_DECLARATIONS, "method_definition") or line_of(node) in seen:
            continue
        parent = node.parent
        if parent is None or parent.type in ("assignment_pattern", "binary_expression", "class_body"):
            continue
        name = text_of(field(node, "name") or field(parent, "name") or field(parent, "key")) or "callback"
        # The default of a context fails on purpose: a component is used outside of its provider.
        if any(
            outer.type == "class_body" or "createContext" in text_of(outer, "function")
            for outer in lineage(parent)
        ):
            continue
        found = _function(node, name, node, set(), set())
        # One for what no other takes: ``app.use(…)``, ``route.all(…)``.
        takes_the_rest = bool(re.search(r"\.(?:all|use)$", text_of(parent.parent, "function")))
        changes = found.answers and _changes(parent.parent)
        yield attrs.evolve(found, nested=True, callback=takes_the_rest, answers=changes)


def _changes(call: Node | None) -> bool:
    """Whether an inline handler is for a request that changes something: ``router.post("/orders", …)``."""
    if call is None or not _CHANGES.search(text_of(call, "function")):
        return False
    path = text_of(first_of(field(call, "arguments")))
    return re.search(r"(?i)health|ping|log-?out|hook|echo|csp|report|ready|telemetry", path) is None


def _unwrapped(node: Node | None) -> Node | None:
    """Return the function inside of ``forwardRef(…)``, ``memo(…)`` or ``(… as T)``."""
    for _ in range(3):
        if node is None or node.type in _FUNCTIONS:
            return node
        if node.type in _AROUND:
            node = first_of(node)
        elif node.type == "call_expression" and re.search(
            r"(?:memo|forwardRef|cache|observer|[hH]andler|catchAsync|catchErrors|wrap\w*|with[A-Z]\w*|action|procedure)$",
            text_of(node, "function"),
        ):
            node = first_of(field(node, "arguments"))
    return node


def _object(
    node: Node, owner: str, statement: Node, exports: set[str], defaults: set[str], *, nested: bool = False
) -> Iterator[Function]:
    members = [m for m in named(node) if m.type in ("method_definition", "pair")]
    functions = [(m, m if m.type == "method_definition" else field(m, "value")) for m in members]
    real = [value for _, value in functions if value and value.type in (*_FUNCTIONS, "method_definition")]
    for member, value in functions:  # the resolvers of a schema, the actions of a store
        if value and value.type == "object":
            inner = f"{owner}.{text_of(member, 'key')}"
            yield from _object(value, inner, statement, exports, defaults, nested=True)
    everything = walk(statement) if nested else real
    peers = any(
        inner.type in (*_FUNCTIONS, "method_definition") and _body_of(inner)[0] == "code"
        for inner in everything
    )
    for member, value in functions:
        if value and value in real:
            name = f"{owner}.{text_of(field(member, 'key') or field(member, 'name'))}"
            # Members of an object without any real code are defaults, or a null object.
            found = _function(value, name, member, exports, defaults, method=True)
            yield attrs.evolve(
                found,
                nested=nested,
                peers=peers,
                inherits=not peers,
                doc=f"{found.doc}\n{comments_before(statement)}",
            )


def _class(
    node: Node, statement: Node, bases: set[str], exports: set[str], defaults: set[str]
) -> Iterator[Function]:
    name = text_of(node, "name")
    body = field(node, "body")
    heritage = any(child.type == "class_heritage" for child in node.children)
    abstract = (
        node.type == "abstract_class_declaration"
        or name in bases
        or bool(re.match(r"(?:Abstract|Base)[A-Z]", name))
    )
    members: list[tuple[Node, Node]] = []
    for member in named(body):
        is_field = member.type in ("public_field_definition", "field_definition")
        value = field(member, "value") if is_field else member
        if value and value.type in (*_FUNCTIONS, "method_definition"):
            members.append((member, value))
    peers = any(_body_of(value)[0] == "code" for _, value in members)
    for member, value in members:
        method = text_of(field(member, "name") or field(member, "property"))
        accessor = any(child.type in ("get", "set") for child in member.children)
        if method == "constructor" or accessor:
            continue
        found = _function(value, f"{name}.{method}", member, exports, defaults, method=True)
        # A class that does nothing at all and is a default is a null object.
        declared = abstract or (name in defaults and not peers)
        yield attrs.evolve(found, declared=declared, inherits=heritage, peers=peers)


def _bases(heritage: Node) -> list[str]:
    return [text_of(name) for name in find(heritage, "identifier", "type_identifier")]


def _overrides(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        heritage = next((c for c in node.children if c.type == "class_heritage"), None)
        if node.type not in _CLASSES or heritage is None:
            continue
        for member in named(field(node, "body")):
            if member.type == "method_definition" and _body_of(member)[0] != "unfinished":
                yield from (f"{base}.{text_of(member, 'name')}" for base in _bases(heritage))


def _function(
    node: Node, name: str, at: Node, exports: set[str], defaults: set[str], *, method: bool = False
) -> Function:
    kind, value, body = _body_of(node)
    parameters = field(node, "parameters") or field(node, "parameter")
    names: list[str] = []
    for child in named(parameters) if parameters and parameters.type == "formal_parameters" else [parameters]:
        if child is not None:
            names += _pattern_names(field(child, "pattern") or child)
    returned = text_of(node, "return_type").lstrip(": ")
    returns: Literal["value", "nothing", "unknown"] = "unknown"
    if returned:
        empty = re.fullmatch(r"(?:Promise<)?(?:void|undefined|never|unknown|any|asserts .*)>?", returned)
        returns = "nothing" if empty else "value"
    used = {text_of(n) for n in walk(body) if n.type.endswith("identifier")} if body else set[str]()
    values = tuple(n for n in names if n not in NEUTRAL and not n.startswith("_"))
    mentioned = {
        text_of(name)
        for name in find(body or node, "identifier", "shorthand_property_identifier")
        if not (name.parent and name.parent.type == "unary_expression" and text_of(name.parent)[:4] == "void")
    }
    calls = [
        text_of(field(call, "function") or field(call, "constructor"))
        for call in find(body or node, "call_expression", "new_expression")
    ]
    printing = [called for called in calls if _PRINT.fullmatch(called)]
    response = kind == "constant" and _RESPONSE.match(value)
    short = name.rpartition(".")[2]
    component = short[:1].isupper() and not short.isupper() and not method
    return Function(
        name=name,
        line=line_of(node),
        body=kind,
        value=value,
        parameters=values,
        announces=bool(printing),
        idle=len(printing) == len(calls),
        length=node.end_point[0] - node.start_point[0] + 1,
        unused=tuple(n for n in values if n not in mentioned and "arguments" not in mentioned),
        answers=bool(response) and not REFUSAL_STATUS.search(value),
        ignored=tuple(n for n in names if n.startswith("_") and n.lstrip("_") not in {"", *NEUTRAL}),
        uses_parameters=bool(used & set(names)) and not response,
        returns=returns,
        comment=comments_in(body),
        doc=comments_before(at),
        method=method,
        exported=name in exports,
        callback=name in defaults,
        declared=returned == "never" and bool(used & set(names)),
        component=(component or name == "default")
        and (kind == "constant" and (value == "null" or "<" in value)),
    )


def _body_of(function: Node) -> tuple[BodyKind, str, Node | None]:
    """Return what a function's body is, the value or statement that shows it, and the body."""
    body = field(function, "body")
    if body is None:
        return "code", "", None
    names = set(_pattern_names(field(function, "parameters") or field(function, "parameter")))
    if body.type != "statement_block":
        return (*_value(body, names, {}), body)
    constants: dict[str, str] = {}
    rest: list[Node] = []
    printed = unfinished = ""
    waits = False
    for statement in _flat(body):
        text = text_of(statement)
        if statement.type == "throw_statement" and UNFINISHED.search(re.sub(r".*?['\"`]", "", text, count=1)):
            # After branches that return something, it refuses what none of them handles.
            return ("code", "", body) if any(map(_computes, rest)) else ("unfinished", text, body)
        if statement.type == "expression_statement":
            call = first_of(statement)
            if call and call.type == "await_expression":
                call = first_of(call) or call
            called = text_of(call, "function") if call and call.type == "call_expression" else ""
            if _PRINT.fullmatch(called):
                printed = text
                if UNFINISHED.search(re.sub(r".*?['\"`]", "", text, count=1)):
                    unfinished = text
            elif _WAITS.match(text):
                waits = True
            elif called and (_RESPONSE.fullmatch(called) or _REFUSES.match(text)) and call is not None:
                rest.append(call)
            elif text.startswith("void ") or re.match(r"\w+\.preventDefault\(\)|['\"]use ", text):
                pass
            else:
                rest.append(statement)
        elif statement.type in ("lexical_declaration", "variable_declaration") and all(
            _is_constant(field(inner, "value")) for inner in named(statement)
        ):
            constants |= {text_of(d, "name"): text_of(d, "value") for d in named(statement)}
        elif statement.type != "empty_statement":
            rest.append(statement)
    if unfinished and all(statement.type == "return_statement" for statement in rest):
        return "unfinished", unfinished, body
    if not rest:
        if (constants or waits) and not printed:
            return "code", "", body
        return ("print", printed, body) if printed else ("empty", "", body)
    if len(rest) > 1:
        returned = returned_values(rest, "return_statement")
        values = list(map(first_of, returned))
        if len({text_of(value) for value in values}) == 1 and _is_constant(values[0]):
            return "constant", text_of(values[0]), returned[0]
        return "code", "", body
    [last] = rest
    if last.type == "call_expression":
        if all(map(_is_constant, arguments_of(last))):
            return "constant", text_of(last), body
        return "code", "", body
    if last.type != "return_statement":
        call = first_of(last) if last.type == "expression_statement" else None
        items = arguments_of(call) if call and call.type == "call_expression" else []
        if all(map(_is_constant, items)) and any(UNFINISHED.search(_string(item)) for item in items):
            return "unfinished", text_of(last), body  # toast("Not implemented yet")
        return "code", "", body
    answer = first_of(last)
    if answer is None:
        return ("print", printed, body) if printed else ("empty", "", body)
    return (*_value(answer, names, constants), body)


def _flat(body: Node) -> Iterator[Node]:
    """Yield the statements of a block; of a ``try`` or a loop around messages, only what is inside."""
    for statement in named(body):
        inner = field(statement, "body")
        loops = statement.type == "for_in_statement" and text_of(statement, "right").isidentifier()
        opens = loops or statement.type == "try_statement"
        block = inner if opens and inner and inner.type == "statement_block" else None
        if block and all(map(_is_idle, named(block))) and field(statement, "finalizer") is None:
            yield from named(block)
        else:
            yield statement


def _is_idle(statement: Node) -> bool:
    """Whether a statement cannot fail: a message, an answer, or a literal that is returned."""
    if statement.type == "return_statement":
        return all(map(_is_constant, named(statement)))
    call = first_of(statement)
    called = text_of(call, "function") if call and call.type == "call_expression" else ""
    if call and _RESPONSE.fullmatch(called):
        return all(map(_is_constant, arguments_of(call)))
    return bool(_PRINT.fullmatch(called))


def _computes(statement: Node) -> bool:
    """Whether a branch or loop returns a value that is not a literal."""
    return any(
        inner.type == "return_statement" and named(inner) and not _is_constant(named(inner)[0])
        for inner in walk(statement, skip=_FUNCTIONS)
    )


def _value(node: Node, names: set[str], constants: dict[str, str]) -> tuple[BodyKind, str]:
    while node.type in (*_AROUND, "await_expression") and (inner := first_of(node)):
        node = inner
    text = text_of(node)
    if node.type.startswith("jsx_") and not any(map(named, find(node, "jsx_expression"))):
        said = " ".join(text_of(inner).strip() for inner in find(node, "jsx_text"))
        if not _is_empty_markup(node):
            return "constant", f"<>{said}</>"
    if node.type == "identifier" and text in constants:
        return "constant", constants[text]
    if node.type == "identifier" and text in names:
        return "identity", text
    if re.match(r"Promise\.reject\(", text) and UNFINISHED.search(re.sub(r".*?['\"`]", "", text, count=1)):
        return "unfinished", text
    if text == "undefined" or _is_empty_markup(node) or _is_constant(node):
        return "constant", "null" if _is_empty_markup(node) else text
    if node.type == "call_expression" and _PRINT.fullmatch(text_of(node, "function")):
        return "print", text
    is_response = node.type == "call_expression" and _RESPONSE.fullmatch(text_of(node, "function"))
    is_answer = is_response and all(map(_is_constant, arguments_of(node)))
    return ("constant", text) if is_answer else ("code", "")


def _is_empty_markup(node: Node) -> bool:
    """Whether JSX shows nothing: no attributes, and no text but its own name or a remark."""
    if not node.type.startswith("jsx_"):
        return False
    kinds = [i.type for i in walk(node) if i.type != "jsx_expression" or named(i)]  # {/* a comment */}
    shown = " ".join(text_of(inner).strip() for inner in find(node, "jsx_text")).strip()
    if {"jsx_expression", "jsx_self_closing_element"} & set(kinds):
        return False
    if not shown and re.search(r"\b(?:TODO|FIXME)\b", comments_in(node)):
        return True
    if not shown:
        return "jsx_attribute" not in kinds
    owner = next((outer for outer in lineage(node) if field(outer, "name")), None)
    component = words_of(text_of(owner, "name"))
    if re.search(
        r"(?i)coming soon|placeholder|\btodo\b|under construction|not (?:yet )?implemented|lorem ipsum", shown
    ):
        # A component that is named after such a remark is there to show it.
        return kinds.count("jsx_element") <= 3 and not _SHOWS_A_REMARK & set(component)
    if "jsx_attribute" in kinds:
        return False
    # <div>Page</div> in Page: the scaffold of a generator. <p>Loading…</p> in Loading is all there is to say.
    scaffold = kinds.count("jsx_element") == 1 and bool(component) and words_of(shown) == component
    return scaffold and not _STATES & set(component) and not shown.endswith(("…", "..."))


def _is_constant(node: Node | None) -> bool:
    if node is None:
        return False
    match node.type:
        case "number" | "string" | "true" | "false" | "null" | "undefined" | "regex":
            return True
        case "identifier":
            return text_of(node) == "undefined"
        case "template_string":
            return not any(child.type == "template_substitution" for child in node.children)
        case (
            "array"
            | "parenthesized_expression"
            | "as_expression"
            | "satisfies_expression"
            | "unary_expression"
        ):
            first = named(node)[:1] if node.type.endswith("_expression") else named(node)
            return all(map(_is_constant, first))
        case "object":
            return all(pair.type == "pair" and _is_constant(field(pair, "value")) for pair in named(node))
        case "new_expression":
            name = text_of(node, "constructor")
            arguments = arguments_of(node)
            if name in ("Map", "Set", "Date", "WeakMap"):
                return not arguments and name != "Date"
            return name in ("Response", "NextResponse") and all(map(_is_constant, arguments))
        case "call_expression":
            wraps = _WRAPS.match(text_of(node, "function"))
            return wraps is not None and all(map(_is_constant, arguments_of(node)))
        case _:
            return False
