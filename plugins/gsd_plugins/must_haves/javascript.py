"""Reads JavaScript and TypeScript, with JSX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from .reader import Reader, Syntax, bound_names, callee
from .source import Function, Reference, Source, overrides, word_set, words_of
from .trees import field, find, first_of, lineage, named, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_DECLARATIONS = word_set("function_declaration generator_function_declaration")
_FUNCTIONS = _DECLARATIONS | word_set(
    "arrow_function function_expression generator_function method_definition"
)
_CLASSES = word_set("class_declaration abstract_class_declaration class")
_SHOWS_A_REMARK = word_set("soon badge banner label notice placeholder tag teaser todo chip tooltip")
_STATES = word_set("found forbidden unauthorized offline")
"""Words of components whose name is all that there is to say."""


_LOG = (
    r"(?:this\.)?(?:\w+\.)?#?_?(?:console|log|logger|logging)(?:\.\w+)?|alert|print"
    r"|process\.std(?:out|err)\.write"
)
_SYNTAX = Syntax(
    functions=_FUNCTIONS,
    calls=word_set("call_expression new_expression"),
    strings=word_set("string template_string"),
    contents=word_set("string_fragment"),
    literals=word_set("number string true false null undefined regex template_string"),
    containers=word_set(
        "array object pair parenthesized_expression as_expression satisfies_expression unary_expression"
    ),
    constants=re.compile("undefined"),
    makes=re.compile(
        r"Promise\.(?:resolve|reject)|(?:Next)?Response(?:\.json)?|json|Object\.freeze|of|useCallback|useMemo"
        r"|Map|Set|WeakMap"
    ),
    fails=re.compile(r"throw\b"),
    rejects=re.compile(r"^Promise\.reject\("),
    prints=re.compile(_LOG),
    answers=re.compile(
        r"(?:res|reply|response|ctx|c|h)(?:\.\w+(?:\([^()]*\))?)*\.(?:json|send|end|render|text|body|sendStatus)"
    ),
    waits=re.compile(
        r"await (?:new Promise\(.*\bsetTimeout\b|(?:\w+\.)?(?:sleep|delay|wait|setTimeout)\()", re.DOTALL
    ),
    idle=re.compile(r"|void \w+|\w+\.preventDefault\(\)|['\"]use \w+['\"]"),
    wrappers=word_set("try_statement for_in_statement"),
    explains=re.compile(rf"{_LOG}|\w*Error$|(?:test|it|describe)\b"),
    returns="return_type",
    nothing=re.compile(r"^(?:Promise<)?(?:void|undefined|never|unknown|any|asserts .*)>?$"),
    shown=lambda node: "null" if _is_empty_markup(node) else "",
)
_WRAPS = re.compile(
    r"(?:memo|forwardRef|cache|observer|[hH]andler|catchAsync|catchErrors|wrap\w*|with[A-Z]\w*|action|procedure)$"
)
_EXPORTS = re.compile(r"(?:module\.)?exports(?:\.(\w+)|\[['\"](\w+)['\"]\])?$")


def read(text: str, *, typed: bool = False) -> Source:
    """Read a module; *typed*: it is TypeScript without JSX."""
    # The grammar does not know this form; without `type`, it means the same here.
    known = re.sub(r"(?m)^(\s*export )type( \*)", r"\1    \2", text)
    file = Reader.of(_SYNTAX, "typescript" if typed else "tsx", known)
    comments = [n for n in file.comments if not text_of(n).startswith("/// <reference")]
    exports = _Exports(file=file)
    names: set[str] = set()
    for node in file.root.named_children:
        exports.add(node)
        names |= _declared_by(field(node, "declaration") or node)
    imports = "require" in text or "import_statement" in {n.type for n in file.root.children}
    if not exports.found and not imports:  # a script of a page: its declarations are global
        exports.names |= names
    functions = _functions(file)
    heritages = {
        text_of(n.parent, "name"): {text_of(base) for base in find(n, "identifier", "type_identifier")}
        for n in file.nodes
        if n.type == "class_heritage"
    }
    return Source(
        language="javascript",
        code=file.code(comments),
        bare=file.bare(comments),
        functions=tuple(functions),
        exports=frozenset(exports.names),
        defined=frozenset(names | {function.name for function in functions}),
        overrides=overrides(functions, heritages),
        star=tuple(exports.star),
        open=exports.open,
        references=tuple(_references(file)),
        strings=tuple(file.strings()),
        identifiers=file.identifiers(),
        # Types in JSDoc are what such a file is for.
        empty=all(map(_is_nothing, file.root.named_children))
        and not any(re.search(r"@(?:typedef|callback)\b", text_of(node)) for node in comments),
        faulty=file.root.has_error,
    )


def _is_nothing(node: Node) -> bool:
    if node.type in ("comment", "hash_bang_line", "empty_statement"):
        return True
    if node.type == "import_statement":  # `import "./polyfills"` runs a module; names alone do nothing
        return any(child.type == "import_clause" for child in node.children)
    if node.type == "expression_statement":
        return text_of(node).strip("'\"; ") in ("use strict", "use client", "use server")
    return node.type == "export_statement" and text_of(node).replace(" ", "").rstrip(";") == "export{}"


def _declared_by(node: Node) -> set[str]:
    """Return the names that one declaration binds."""
    if node.type in ("lexical_declaration", "variable_declaration"):
        return {name for inner in named(node) for name in bound_names(field(inner, "name"))}
    return {text_of(node, "name").strip("'\"")} - {""}


# Exports and imports


@attrs.define(kw_only=True)
class _Exports:
    """Collects what a module exports, from its top-level statements."""

    file: Reader
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
        source = self.file.string(field(node, "source"))
        if "*" in kinds:
            self.star.append(source)
        if "default" in kinds or "=" in kinds:
            self.names.add("default")
        for child in named(node):
            if child.type == "namespace_export":
                self.names |= set(bound_names(child))
            elif child.type == "export_clause":
                for specifier in named(child):
                    name = text_of(field(specifier, "alias") or field(specifier, "name")).strip("'\"")
                    self.names.add(name)
            elif child.type == "identifier":
                self.names.add(text_of(child))
            elif child.type in _FUNCTIONS | _CLASSES:
                self.names |= {text_of(child, "name")} - {""}
        if declaration := field(node, "declaration"):
            self.names |= _declared_by(declaration)

    def _add_assignment(self, node: Node) -> None:
        if node.type == "call_expression" and re.search(r"\bexports\b", text_of(node)[:200]):
            self.open = self.found = True  # Object.assign(exports, …), __exportStar(…)
        if node.type != "assignment_expression":
            return
        left, right = text_of(node, "left"), field(node, "right")
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
        elif right.type in _FUNCTIONS | _CLASSES:
            self.names.add(text_of(right, "name"))
        else:
            self.open = True


def _references(file: Reader) -> Iterator[Reference]:
    for node in file.nodes:
        if node.type in ("import_statement", "export_statement"):
            if module := file.string(field(node, "source")):
                yield Reference(module=module, names=tuple(map(text_of, find(node, "identifier"))))
            for child in named(node):
                if child.type == "import_require_clause":
                    yield Reference(module=file.string(field(child, "source")))
        elif node.type == "call_expression":
            called = text_of(node, "function")
            argument = first_of(field(node, "arguments"))
            imports = re.fullmatch(r"import|require|require\.resolve|import\.meta\.(?:glob|resolve)", called)
            if imports and argument:
                yield Reference(module=file.string(argument))


# Functions


def _functions(file: Reader) -> list[Function]:
    heritages = [n for n in file.nodes if n.type == "class_heritage"]
    bases = {text_of(base) for n in heritages for base in find(n, "identifier", "type_identifier")}
    defaults = set(_defaults(file.nodes))
    found = [f for n in file.nodes if n.type in _FUNCTIONS and (f := _function(file, n, bases, defaults))]
    working = {_owner(f) for f in found if f.body == "code"}
    result: list[Function] = []
    for function in found:
        owner, short = _owner(function), function.name.rpartition(".")[2]
        # `function Encoder() {}` with methods in its prototype is a class without fields.
        if short == "constructor" or (function.body == "empty" and f"{short}.prototype." in file.text):
            continue
        if function.method:
            # A class that does nothing at all and is a default is a null object.
            is_null = owner in defaults and owner not in working
            declared = function.declared or is_null
            function = attrs.evolve(function, peers=owner in working, declared=declared)
        result.append(function)
    return result


def _owner(function: Function) -> str:
    return function.name.partition(".")[0] if function.method else ""


def _function(file: Reader, node: Node, bases: set[str], defaults: set[str]) -> Function | None:
    holder = _holder(node)
    outer = list(lineage(holder))[1:]
    own = text_of(field(holder, "name") or field(holder, "key") or field(node, "name"))
    parent = outer[0] if outer else file.root
    nested = any(n.type in _FUNCTIONS for n in outer)
    statement = next((n for n in (holder, *outer) if n.parent == file.root), holder)
    if parent.type == "class_body":
        owner = parent.parent or parent
        if nested or any(child.type in ("get", "set") for child in holder.children):
            return None
        name = text_of(owner, "name")
        found = _read(file, node, f"{name}.{own}", holder)
        abstract = owner.type == "abstract_class_declaration" or re.match(r"(?:Abstract|Base)[A-Z]", name)
        heritage = any(child.type == "class_heritage" for child in owner.children)
        return attrs.evolve(
            found, method=True, component=False, inherits=heritage, declared=bool(abstract) or name in bases
        )
    if any(n.type == "class_body" for n in outer):
        return None
    if holder.type == "assignment_expression" and not nested:
        left = text_of(holder, "left")
        if member := re.search(r"(\w+)\.prototype\.(\w+)$", left):
            found = _read(file, node, f"{member[1]}.{member[2]}", statement)
            return attrs.evolve(found, method=True, component=False)
        own = match[1] or own or "default" if (match := _EXPORTS.match(left)) else ""
    elif holder.type == "export_statement":
        own = own or "default"
    if own and not nested and parent.type != "object":
        found = _read(file, node, own, statement)
        return attrs.evolve(found, callback=own in defaults)
    # One for what no other takes: ``app.use(…)``, ``route.all(…)``.
    takes_the_rest = re.search(r"\.(?:all|use)$", callee(parent)) is not None
    return attrs.evolve(_read(file, node, own or "callback", node), nested=True, callback=takes_the_rest)


def _read(file: Reader, node: Node, name: str, at: Node) -> Function:
    parameters = field(node, "parameters") or field(node, "parameter")
    children = named(parameters) if parameters and parameters.type == "formal_parameters" else [parameters]
    names = [bound for child in children for bound in bound_names(child)]
    found = file.function(node, name, at, names)
    short = name.rpartition(".")[2]
    component = (short[:1].isupper() and not short.isupper()) or name == "default"
    return attrs.evolve(
        found,
        declared=text_of(node, "return_type").endswith("never")
        and set(found.unused) != set(found.parameters),
        component=component and found.body == "constant" and (found.value == "null" or "<" in found.value),
    )


def _holder(node: Node) -> Node:
    """Return what names a function, around ``forwardRef(…)``, ``memo(…)`` or ``(… as T)``."""
    if node.type in _DECLARATIONS or node.type == "method_definition":
        return node
    holder = node.parent or node
    while holder.parent and (
        holder.type in ("parenthesized_expression", "as_expression", "satisfies_expression")
        or (holder.type == "arguments" and _WRAPS.search(callee(holder.parent)))
        or (holder.type == "call_expression" and _WRAPS.search(callee(holder)))
    ):
        holder = holder.parent
    return holder


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


def _is_empty_markup(node: Node) -> bool:
    """Whether JSX shows nothing: no attributes, and no text but its own name or a remark."""
    if not node.type.startswith("jsx_"):
        return False
    kinds = [i.type for i in walk(node) if i.type != "jsx_expression" or named(i)]  # {/* a comment */}
    shown = " ".join(text_of(inner).strip() for inner in find(node, "jsx_text")).strip()
    if {"jsx_expression", "jsx_self_closing_element"} & set(kinds):
        return False
    if not shown and re.search(r"\b(?:TODO|FIXME)\b", text_of(node)):
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
    # <div>Page</div> in Page: the scaffold of a generator. <p>Loading…</p> in Loading is all there is to say.
    scaffold = kinds.count("jsx_element") == 1 and bool(component) and words_of(shown) == component
    return scaffold and not _STATES & set(component) and not shown.endswith(("…", "..."))
