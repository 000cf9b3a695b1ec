"""Reads Go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .source import (
    NEUTRAL,
    REFUSAL_STATUS,
    UNFINISHED,
    UNFINISHED_STATUS,
    BodyKind,
    Function,
    Reference,
    Source,
    word_set,
)
from .trees import (
    arguments_of,
    comments_before,
    comments_in,
    field,
    find,
    first_of,
    line_of,
    masked,
    named,
    parse,
    returned_values,
    statements_of,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_PRINT = re.compile(
    r"fmt\.Print\w*|(?:\w+\.)*(?:slog|log|logger|Logger)\.(?!Fatal|Panic|With|New)\w+|print|println"
)
_ANSWER = re.compile(
    r"(?:c|ctx|gc|w|rw|res|resp|writer)\.(?:JSON|IndentedJSON|String|HTML|XML|Status|SendStatus|SendString|NoContent"
    r"|AbortWithStatus(?:JSON)?|WriteHeader|Write|WriteString|Header\(\)\.Set|Status\([\w.]+\)\.(?:JSON|SendString))"
    r"|fmt\.Fprint(?:ln|f)?|io\.WriteString|http\.Error|json\.NewEncoder\(\w+\)\.Encode"
    r"|(?:\w+\.)?(?:[wW]rite|[rR]espond|[sS]end|[rR]ender)\w*JSON|render\.(?:JSON|Status|NoContent)"
)
_WRITES = ("http.Error", "w.Write", "io.WriteString")
_WRITERS = re.compile(r"(?:w|rw|r|c|ctx|res|resp|writer|req)")
_SAYS_UNFINISHED = re.compile(r"\w+\.WriteHeader\(http\.StatusNotImplemented\)")
_MADE_OF_PARTS = word_set(
    "unary_expression literal_value literal_element keyed_element parenthesized_expression"
)
_STRINGS = ("interpreted_string_literal", "raw_string_literal")
_ERROR = re.compile(r"(?:errors\.New|fmt\.Errorf|status\.Errorf?)\([^\"`]*[\"`]|\bErrNotImplemented\b")
_UNIMPLEMENTED = re.compile(r"(?:nil,\s*)?status\.Errorf?\(codes\.Unimplemented\b")
_DROPS = re.compile(r"_(?:,\s*_)*\s*=\s*\w+(?:,\s*\w+)*")
_DIRECTIVE = re.compile(r"//go:(?:embed|generate|linkname)")


def read(text: str, *, typed: bool = False) -> Source:
    """Read a file."""
    root = parse("go", text)
    nodes = list(walk(root))
    comments = [n for n in nodes if n.type == "comment" and not _DIRECTIVE.match(text_of(n))]
    directives = [text_of(n) for n in nodes if n.type == "comment" and _DIRECTIVE.match(text_of(n))]
    imports = [n for n in nodes if n.type == "import_spec"]
    paths = [inner for n in imports for inner in find(n, *_STRINGS)]
    strings = [n for n in nodes if n.type in _STRINGS and n not in paths]
    defined = set(_defined(root))
    content = [n for n in named(root) if n.type not in ("package_clause", "import_declaration")]
    return Source(
        language="go",
        code=masked(text, comments),
        bare=masked(text, [*comments, *strings]),
        functions=tuple(_functions(root)),
        exports=frozenset(defined),
        defined=frozenset(defined),
        references=tuple(
            Reference(module=text_of(n, "path")[1:-1], names=(text_of(n, "name"),)) for n in imports
        ),
        strings=(
            *(text_of(n)[1:-1] for n in strings if _may_be_path(n)),
            *(word for line in directives for word in line.split()[1:]),
        ),
        identifiers=frozenset(text_of(n) for n in nodes if n.type.endswith("identifier")),
        empty=not content and not any(text_of(n, "name") == "_" for n in imports),
        faulty=root.has_error,
    )


def _may_be_path(node: Node) -> bool:
    parent = node.parent
    called = text_of(parent.parent, "function") if parent and parent.type == "argument_list" else ""
    return not (_PRINT.match(called) or called in ("errors.New", "fmt.Errorf", "panic"))


def _defined(root: Node) -> Iterator[str]:
    for node in named(root):
        name = text_of(node, "name")
        if node.type == "function_declaration":
            yield name
        elif node.type == "method_declaration":
            yield from (name, f"{_receiver(node)}.{name}")
        elif node.type in ("type_declaration", "const_declaration", "var_declaration"):
            for spec in find(node, "type_spec", "type_alias"):
                owner = text_of(spec, "name")
                yield owner
                for inner in find(spec, "field_declaration", "method_elem", "method_spec"):
                    member = text_of(inner, "name")
                    yield from (member, f"{owner}.{member}")
            for spec in find(node, "const_spec", "var_spec"):
                yield from _names(spec)


def _receiver(node: Node) -> str:
    return re.sub(r"\[.*", "", text_of(node, "receiver").strip("()").split(" ")[-1].lstrip("*"))


# Functions


def _functions(root: Node) -> Iterator[Function]:
    bare_types = {  # `type Null struct{}`: without fields, its methods can only be constant
        text_of(spec, "name")
        for spec in find(root, "type_spec")
        if re.fullmatch(r"struct\s*\{\s*\}", text_of(spec, "type"))
    }
    methods = [n for n in named(root) if n.type == "method_declaration" and field(n, "body")]
    real = {_receiver(n) for n in methods if _body_of(n)[0] == "code"}
    for node in named(root):
        if node.type not in ("function_declaration", "method_declaration"):
            continue
        kind, value, body = _body_of(node)
        owner = _receiver(node) if node.type == "method_declaration" else ""
        names = _parameters(node)
        result = text_of(node, "result")
        used = set(map(text_of, find(body, "identifier")))
        name = text_of(node, "name")
        values = tuple(n for n in names if n not in NEUTRAL and n != "_")
        whole = field(node, "body") or node
        mentioned = {text_of(n) for n in find(whole, "identifier") if not _is_dropped(n)}
        calls = [text_of(n, "function") for n in find(whole, "call_expression")]
        printing = [called for called in calls if _PRINT.fullmatch(called)]
        yield Function(
            name=f"{owner}.{name}" if owner else name,
            line=line_of(node),
            body=kind,
            value=value,
            parameters=values,
            announces=bool(printing),
            idle=len(printing) + calls.count("len") == len(calls),
            length=node.end_point[0] - node.start_point[0] + 1,
            unused=tuple(n for n in values if n not in mentioned),
            answers=kind == "constant"
            and _ANSWER.match(value) is not None
            and not REFUSAL_STATUS.search(value),
            ignored=("_",) if "_" in names else (),
            uses_parameters=bool(used & set(names)),
            returns="value" if result and kind == "empty" else "nothing",
            comment=comments_in(body),
            doc=comments_before(node),
            inherits=bool(owner) and (owner in bare_types or not names or "_" in names),
            method=bool(owner),
            exported=name[:1].isupper(),
            # Parameters without names are those of a signature that the function only has to fit.
            callback=kind == "empty" and not owner and not result and _has_unnamed_parameters(node),
            peers=owner in real,
        )


def _is_dropped(name: Node) -> bool:
    """Whether a name is only assigned to ``_``, for the compiler."""
    return bool(name.parent and _DROPS.fullmatch(text_of(name.parent.parent)))


def _has_unnamed_parameters(node: Node) -> bool:
    parameters = named(field(node, "parameters"))
    return bool(parameters) and not any(field(child, "name") for child in parameters)


def _parameters(node: Node) -> list[str]:
    found: list[str] = []
    for child in named(field(node, "parameters")):
        if re.search(r"http\.|context\.|testing\.", text_of(child, "type")):
            continue
        found += _names(child)
    return found


def _names(node: Node) -> list[str]:
    """Return the names that a declaration of one or more has."""
    return [text_of(name) for name in node.children_by_field_name("name") if name.type != ","]


def _body_of(function: Node) -> tuple[BodyKind, str, Node]:
    body = field(function, "body")
    if body is None:  # it is in assembly
        return "code", "", function
    names = set(_parameters(function))
    # Names that have their first value when they are returned: results, and variables of literals.
    constants = {name for child in named(field(function, "result")) for name in _names(child)}
    rest: list[Node] = []
    printed = refused = ""
    slept = False
    for statement in statements_of(body):
        text = text_of(statement)
        call = first_of(statement) if statement.type == "expression_statement" else None
        called = text_of(call, "function") if call else ""
        says_unfinished = UNFINISHED.search(re.sub(r".*?[\"`]", "", text, count=1))
        if called == "panic" and says_unfinished:
            returned = [node for other in rest for node in find(other, "return_statement")]
            if all(map(_is_refusal, returned)):
                return "unfinished", text, body
            return "code", "", body  # it refuses what no branch handles
        if (
            _SAYS_UNFINISHED.fullmatch(text)
            or (called in _WRITES and UNFINISHED.search(text.partition('"')[2]))
            or (UNFINISHED_STATUS.search(text) and _ANSWER.fullmatch(called))
        ):
            refused = text
        elif _PRINT.fullmatch(called) or re.match(r"fmt\.Fprint\w*\(os\.Std", text):
            printed = text
            refused = text if says_unfinished else refused
        elif called == "time.Sleep":
            slept = True
        elif _DROPS.fullmatch(text) or statement.type == "empty_statement":
            pass
        elif declared := _constants(statement):
            constants |= declared
        else:
            rest.append(statement)
    if refused and all(statement.type == "return_statement" for statement in rest):
        return "unfinished", refused, body
    if rest and all(map(_is_answer, rest)):
        return "constant", "; ".join(map(text_of, rest)), body
    idle: tuple[BodyKind, str, Node] = ("print", printed, body) if printed else ("empty", "", body)
    if not rest:
        return ("code", "", body) if slept else idle
    returned = returned_values(rest, "return_statement") if len(rest) > 1 else []
    if len({text_of(node) for node in returned}) == 1:
        values = _returned(returned[0])
        if values and all(map(_is_constant, values)):
            return "constant", text_of(returned[0]).removeprefix("return").strip(), returned[0]
    if len(rest) > 1 or rest[0].type != "return_statement":
        return "code", "", body
    values = _returned(rest[0])
    text = text_of(rest[0]).removeprefix("return").strip()
    if (_ERROR.search(text) and UNFINISHED.search(text)) or _UNIMPLEMENTED.match(text):
        return "unfinished", text_of(rest[0]), body
    if not values or (printed and text == "nil"):
        return idle
    if len(values) == 1 and text in names:
        return "identity", text, body
    constant = all(_is_constant(value) or text_of(value) in constants for value in values)
    # `func rsa() KeyAgreement { return rsaAgreement{} }` chooses an implementation.
    made = re.match(r"&?([\w.]+)\{\}$", text)
    if made and made[1] != text_of(function, "result").lstrip("*"):
        constant = False
    return ("constant", text, body) if constant else ("code", "", body)


def _is_answer(statement: Node) -> bool:
    """Whether a statement only answers with literals: ``c.JSON(http.StatusOK, gin.H{"ok": true})``."""
    call = first_of(statement)
    if call and call.type == "expression_list":
        call = first_of(call)
    elif call and statement.type == "assignment_statement":  # _ = json.NewEncoder(w).Encode(…)
        call = first_of(field(statement, "right"))
    if statement.type not in ("expression_statement", "return_statement", "assignment_statement"):
        return False
    if call is None or call.type != "call_expression":
        return call is None and statement.type == "return_statement"
    if not _ANSWER.fullmatch(text_of(call, "function")):
        return False
    return all(
        _is_constant(a)
        or _WRITERS.fullmatch(text_of(a))
        or re.match(r"http\.Status\w+$|\[\]byte\(\"", text_of(a))
        for a in arguments_of(call)
    )


def _is_refusal(node: Node) -> bool:
    """Whether a ``return`` returns only literals, an error or nothing."""
    return all(_is_constant(value) or re.search(r"(?i)err", text_of(value)) for value in _returned(node))


def _returned(statement: Node) -> list[Node]:
    return [
        value
        for child in named(statement)
        for value in (named(child) if child.type == "expression_list" else [child])
    ]


def _constants(statement: Node) -> set[str]:
    """Return the variables that a statement declares, if their values are zero or literals."""
    if statement.type == "short_var_declaration":
        names, values = named(field(statement, "left")), named(field(statement, "right"))
    elif statement.type == "var_declaration":
        specs = find(statement, "var_spec")
        names = [name for spec in specs for name in spec.children_by_field_name("name")]
        values = [value for spec in specs for value in named(field(spec, "value"))]
    else:
        return set()
    return set(map(text_of, names)) if all(map(_is_constant, values)) else set()


def _is_constant(node: Node) -> bool:
    if node.type in (*_STRINGS, "nil", "true", "false", "int_literal", "float_literal", "rune_literal"):
        return True
    if node.type in _MADE_OF_PARTS:
        inner = named(node)
        return all(map(_is_constant, inner[1:] if node.type == "keyed_element" else inner))
    if node.type == "composite_literal":
        return all(map(_is_constant, named(field(node, "body"))))
    if node.type == "selector_expression":  # time.Second
        return re.fullmatch(r"[a-z]\w*\.(?!Err|EOF|Std)[A-Z]\w*", text_of(node)) is not None
    return text_of(node) in ("nil", "true", "false")
