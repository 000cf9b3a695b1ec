"""Reads functions, strings and comments in any language, given a table of its node types and idioms.

The tables, and what has no common form (exports, imports, classes), are in ``python``, ``javascript`` and
``go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from .source import NEUTRAL, UNFINISHED, UNFINISHED_STATUS, BodyKind, Function
from .trees import (
    Grammar,
    arguments_of,
    comments_before,
    field,
    first_of,
    line_of,
    masked,
    named,
    parse,
    statements_of,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from tree_sitter import Node

NEVER = re.compile(r"(?!)")
MIN_WORDS_OF_REASON = 5
MAX_IDLE = 200
"""Bytes of the longest statement that may do nothing."""

_PROMISES = re.compile(
    r"(?i)\b(?:yet|later|pending|phase|milestone|will|soon|todo|wip|future|next|stub|implement)\b"
)
_REFUSES = re.compile(
    r"(?i)\b(?:not (?:allowed|possible|applicable|defined)|cannot|must|invalid|instead|use \w+)\b"
)
_ALL_PARAMETERS = frozenset(("locals", "arguments"))
"""Names that stand for every parameter."""


@attrs.frozen(kw_only=True)
class Syntax:
    """What the common algorithm has to know about one language: types of nodes, and names of functions."""

    functions: frozenset[str]
    calls: frozenset[str]
    strings: frozenset[str]
    contents: frozenset[str]
    """The parts of strings that are not quotes, escapes or expressions."""
    literals: frozenset[str]
    containers: frozenset[str]
    """Nodes that are constant if everything in them is."""
    constants: re.Pattern[str]
    """Names of constants: ``undefined``, ``time.Second``, ``Status.DONE``."""
    makes: re.Pattern[str]
    """Functions whose results are as constant as their arguments."""
    fails: re.Pattern[str]
    """The beginning of a statement that fails."""
    rejects: re.Pattern[str]
    """The beginning of a returned value that is a failure."""
    prints: re.Pattern[str]
    answers: re.Pattern[str]
    """Functions that answer a request."""
    writers: re.Pattern[str] = NEVER
    """Arguments of such functions beside the answer."""
    waits: re.Pattern[str]
    idle: re.Pattern[str]
    """Statements that do nothing: ``pass``, ``void x``, ``_ = x``."""
    wrappers: frozenset[str]
    """Statements with a body that counts as the function's own if it only prints or returns literals."""
    explains: re.Pattern[str]
    """Functions whose strings are for people."""
    returns: str
    """The field of a function for the type of its result."""
    nothing: re.Pattern[str]
    """Types of results without a value, or which need none."""
    shown: Callable[[Node], str] = lambda node: ""
    """Returns the constant that an expression of the language's own (JSX) amounts to."""


@attrs.frozen(kw_only=True)
class Reader:
    """One parsed file."""

    syntax: Syntax
    text: str
    root: Node
    nodes: Sequence[Node]
    comments: Sequence[Node]
    remarks: Mapping[int, Sequence[str]]
    """The texts of the comments by their first line, counted from 0."""

    @classmethod
    def of(cls, syntax: Syntax, grammar: Grammar, text: str) -> Reader:
        """Parse *text*."""
        root = parse(grammar, text)
        nodes = list(walk(root))
        comments = [node for node in nodes if node.type == "comment"]
        remarks: dict[int, list[str]] = {}
        for comment in comments:
            remarks.setdefault(comment.start_point[0], []).append(text_of(comment))
        return cls(syntax=syntax, text=text, root=root, nodes=nodes, comments=comments, remarks=remarks)

    def code(self, comments: Iterable[Node]) -> str:
        """Return the text without *comments*."""
        return masked(self.text, comments)

    def bare(self, comments: Iterable[Node]) -> str:
        """Return the text without *comments* and the content of strings."""
        contents = (*self.syntax.contents, "jsx_text")
        return masked(self.text, [*comments, *(node for node in self.nodes if node.type in contents)])

    def strings(self) -> Iterator[str]:
        """Yield the strings that may name a file or a URL: not those that are printed, thrown or explain."""
        for node in self.nodes:
            if node.type in self.syntax.strings and node.parent is not None:
                if "argument" in node.parent.type and self.syntax.explains.match(callee(node.parent.parent)):
                    continue
                yield self.string(node)

    def string(self, node: Node | None) -> str:
        """Return the content of a string, without its quotes, escapes and expressions; else an empty one."""
        if node is None or node.type not in self.syntax.strings:
            return ""
        return "".join(text_of(child) for child in node.children if child.type in self.syntax.contents)

    def identifiers(self) -> frozenset[str]:
        """Return all names in the code."""
        return frozenset(text_of(node) for node in self.nodes if node.type.endswith("identifier"))

    # Functions

    def function(
        self,
        node: Node,
        name: str,
        at: Node,
        names: Sequence[str],
        *,
        doc: str = "",
        results: Iterable[str] = (),
    ) -> Function:
        """Return the function at *node*, documented by *doc* and the comments above *at*.

        *names* are those of its parameters, *results* of variables that it returns.
        """
        kind, value = self.body(node, names, results)
        block = field(node, "body") or node
        mentioned = set(self._names(block))
        brace = 1 if text_of(block).startswith("{") else 0
        values = tuple(n for n in names if n not in NEUTRAL and not n.startswith("_"))
        first, last = node.start_point[0], node.end_point[0]
        remarks = [remark for at in range(first, last + 1) for remark in self.remarks.get(at, ())]
        result = text_of(node, self.syntax.returns).lstrip(": ")
        return Function(
            name=name,
            line=line_of(node),
            span=(block.start_byte + brace, block.end_byte - brace),
            body=kind,
            value=value,
            parameters=values,
            unused=tuple(n for n in values if n not in mentioned and not _ALL_PARAMETERS & mentioned),
            ignored=tuple(n for n in names if n.startswith("_") and n.lstrip("_") not in NEUTRAL),
            length=last - first + 1,
            returns=bool(result) and not self.syntax.nothing.search(result),
            comment="\n".join(remarks),
            doc="\n".join(filter(None, (comments_before(at), doc))),
        )

    def _names(self, block: Node) -> Iterator[str]:
        """Yield the names that a body refers to, but not those that are only dropped (``void x``)."""
        for node in walk(block):
            parent = node.parent
            if parent is None or node.type not in ("identifier", "shorthand_property_identifier"):
                continue
            # The name of an attribute, of an argument, or of a field of Go (`Queue{capacity: 1}`).
            outer = parent.parent
            is_key = outer is not None and outer.type == "keyed_element" and outer.children[0] == parent
            if is_key or field(parent, "attribute") == node or field(parent, "name") == node:
                continue
            statement = parent if parent.type.endswith("statement") else parent.parent
            # The text of everything around each name would take quadratic time.
            is_short = statement is not None and statement.end_byte - statement.start_byte <= MAX_IDLE
            if not (is_short and self.syntax.idle.fullmatch(text_of(statement).rstrip(";"))):
                yield text_of(node)

    def body(self, function: Node, names: Sequence[str], results: Iterable[str] = ()) -> tuple[BodyKind, str]:
        """Return what a function's body is, and the value or statement that shows it."""
        block = field(function, "body")
        if block is None:
            return "code", ""
        if "block" not in block.type:  # an arrow function's only expression
            return self._returned([block], text_of(block), names, {})
        rest: list[Node] = []
        constants = {name: name for name in results}
        printed = unfinished = ""
        waited = False
        for statement in self._statements(block):
            text = text_of(statement).rstrip(";")
            called = callee(call_of(statement))
            prints = self.syntax.prints.fullmatch(called)
            answers = self.syntax.answers.fullmatch(called)
            if self.syntax.fails.match(text) and says_unfinished(text) and not answers:
                # After branches that return something, it refuses what none of them handles.
                return ("code", "") if any(map(self._computes, rest)) else ("unfinished", text)
            if (prints or answers) and UNFINISHED.search(_message(text)):
                unfinished = text
            if answers and UNFINISHED_STATUS.search(text):
                unfinished = text
            elif prints:
                printed = text
            elif self.syntax.waits.match(text):
                waited = True
            elif declared := self._constants(statement):
                constants |= declared
            elif not self.syntax.idle.fullmatch(text):
                rest.append(statement)
        if unfinished and all(s.type == "return_statement" or self._is_answer(s) for s in rest):
            return "unfinished", unfinished
        if not rest and (constants or waited) and not printed:
            return "code", ""
        if not rest or (printed and _returned_text(rest[0]) in ("", "nil")):
            return ("print", printed) if printed else ("empty", "")
        kind, value = self._result(rest, names, constants)
        # A message with a parameter is what such a function is for; its result only says that it went well.
        says = kind == "constant" and set(re.findall(r"\w+", printed)) & set(names)
        return ("print", printed) if says else (kind, value)

    def _result(
        self, rest: Sequence[Node], names: Sequence[str], constants: Mapping[str, str]
    ) -> tuple[BodyKind, str]:
        """Classify a body by the statements that neither print nor set *constants*."""
        if any(map(self._is_answer, rest)) and all(self._is_answer(s) or not named(s) for s in rest):
            return "constant", "; ".join(map(_returned_text, rest))
        [first, *others] = rest
        branches = returned_values(rest)
        if (others or not branches) and len({text_of(statement) for statement in branches}) != 1:
            call = call_of(first)
            # toast("Not implemented yet")
            says = call and not others and all(map(self.is_constant, arguments_of(call)))
            if says and UNFINISHED.search(_message(text_of(call))):
                return "unfinished", text_of(call)
            return "code", ""
        if first.type != "return_statement" and len({text_of(statement) for statement in branches}) != 1:
            return "code", ""
        values, text = _values(branches[0]), _returned_text(branches[0])
        return self._returned(values, text, names, constants) if text else ("empty", "")

    def _returned(
        self, values: Sequence[Node], text: str, names: Sequence[str], constants: Mapping[str, str]
    ) -> tuple[BodyKind, str]:
        """Classify a body that only returns *values*; *constants* are variables and their values."""
        is_unfinished = UNFINISHED.search(_message(text)) or UNFINISHED_STATUS.search(text)
        if is_unfinished and self.syntax.rejects.search(text):
            return "unfinished", text
        if len(values) == 1:
            [value] = values
            while value.type in _AROUND and (inner := first_of(value)):
                value = inner
            if text_of(value) in names and text_of(value) not in constants:
                return "identity", text
            if shown := self.syntax.shown(value):
                return "constant", shown
            if self.syntax.prints.fullmatch(callee(value)):
                return "print", text
        if any(set(self._names(value)) & set(names) for value in values):
            return "code", ""
        if all(self.is_constant(v) or text_of(v) in constants or self._answers(v) for v in values):
            return "constant", constants.get(text, text)
        return "code", ""

    def _statements(self, block: Node) -> Iterator[Node]:
        """Yield a block's statements; of a ``try`` or a loop around messages, only what is inside."""
        for statement in statements_of(block):
            inner = statements_of(field(statement, "body")) if statement.type in self.syntax.wrappers else []
            over = field(statement, "right")
            is_simple = (over is None or over.type == "identifier") and not field(statement, "finalizer")
            if inner and is_simple and all(map(self._is_idle, inner)):
                yield from inner
            else:
                yield statement

    def _is_idle(self, statement: Node) -> bool:
        """Whether a statement cannot fail: a message, an answer, or a literal that is returned."""
        if statement.type == "return_statement":
            return all(map(self.is_constant, _values(statement)))
        prints = self.syntax.prints.fullmatch(callee(call_of(statement)))
        does_nothing = self.syntax.idle.fullmatch(text_of(statement))
        return bool(prints) or self._is_answer(statement) or bool(does_nothing)

    def _is_answer(self, statement: Node) -> bool:
        """Whether a statement only answers with literals: ``c.JSON(http.StatusOK, gin.H{"ok": true})``."""
        return self._answers(call_of(statement)) and not self.syntax.fails.match(text_of(statement))

    def _answers(self, call: Node | None) -> bool:
        return (
            call is not None
            and self.syntax.answers.fullmatch(callee(call)) is not None
            and all(self.is_constant(a) or self.syntax.writers.match(text_of(a)) for a in arguments_of(call))
        )

    def _computes(self, statement: Node) -> bool:
        """Whether a branch or loop returns a value that is neither a literal nor an error."""
        return any(
            inner.type == "return_statement"
            and not all(self.is_constant(v) or re.search(r"(?i)err", text_of(v)) for v in _values(inner))
            for inner in walk(statement, skip=self.syntax.functions)
        )

    def _constants(self, statement: Node) -> dict[str, str]:
        """Return the variables that a statement sets, with their values, if all are zero or literals."""
        found: dict[str, str] = {}
        for node in walk(statement, skip=("block", "statement_block")):
            if node.type in ("assignment", "variable_declarator", "short_var_declaration", "var_spec"):
                value = field(node, "right") or field(node, "value")
                if value is not None and not self.is_constant(value):
                    return {}
                found |= dict.fromkeys(bound_names(node), text_of(value))
        return found if statement.type in _DECLARATIONS else {}

    def is_constant(self, node: Node | None) -> bool:
        """Whether an expression is a literal, or made of literals."""
        if node is None:
            return False
        if node.type in self.syntax.literals:
            return not {child.type for child in node.children} & {"interpolation", "template_substitution"}
        if node.type in self.syntax.calls:
            makes = self.syntax.makes.fullmatch(callee(node)) is not None
            return makes and all(map(self.is_constant, arguments_of(node)))
        if node.type in self.syntax.containers:
            inner = named(node)
            if node.type in _WITH_KEY:
                inner = inner[1:]
            elif node.type in _AROUND:
                inner = inner[:1]
            return all(map(self.is_constant, inner))
        return self.syntax.constants.fullmatch(text_of(node)) is not None


_AROUND = ("parenthesized_expression", "as_expression", "satisfies_expression", "await_expression", "await")
_WITH_KEY = ("pair", "keyed_element", "keyword_argument", "composite_literal")
_DECLARATIONS = (
    *("expression_statement", "lexical_declaration", "variable_declaration"),
    *("short_var_declaration", "var_declaration"),
)


def callee(call: Node | None) -> str:
    """Return the text of what a call calls, or of the class that it makes; empty if it is not a call."""
    return (text_of(call, "function") or text_of(call, "constructor")) if call else ""


def call_of(statement: Node) -> Node | None:
    """Return the call that a statement consists of, also if it is awaited, raised, returned or dropped."""
    node: Node | None = statement
    if statement.type == "assignment_statement":
        node = field(statement, "right")
    while node is not None and not callee(node):
        if not node.type.endswith(("statement", "await", "await_expression", "expression_list")):
            return None
        node = first_of(node)
    return node


def bound_names(node: Node | None) -> Iterator[str]:
    """Yield the names that a pattern, a parameter or a declaration binds."""
    if node is None or node.type in ("attribute", "subscript", "member_expression", "call"):
        return
    if node.type in ("identifier", "shorthand_property_identifier_pattern", "type_identifier"):
        yield text_of(node)
        return
    # What is right of `=` is a default or a value, and what is right of `:` is a type.
    only = next(filter(None, (field(node, key) for key in ("left", "pattern"))), None)
    inner = [only] if only else node.children_by_field_name("name") or named(node)
    for child in inner[:1] if node.type == "typed_parameter" else inner:
        yield from bound_names(child)


def returned_values(statements: Sequence[Node]) -> list[Node]:
    """Return the ``return`` statements of all branches, if branches and such are all that *statements* are.

    Only ``if`` counts as a branch; with anything else, or if the last one has no ``else``, there are none.
    """
    found: list[Node] = []
    for statement in statements:
        if statement.type == "return_statement":
            found.append(statement)
            continue
        if statement.type != "if_statement":
            return []
        others = statement.children_by_field_name("alternative")
        if statement == statements[-1] and (not others or others[-1].type == "elif_clause"):
            return []
        for branch in filter(None, (field(statement, "consequence"), *others)):
            block = branch
            if branch.type in ("elif_clause", "else_clause"):
                block = field(branch, "body") or field(branch, "consequence") or first_of(branch) or branch
            values = returned_values(statements_of(block) if "block" in block.type else [block])
            if not values:
                return []
            found += values
    return found


def says_unfinished(text: str) -> bool:
    """Whether a statement that fails says that something is not implemented, rather than why it refuses."""
    said = _message(text)
    if "NotImplementedError" in text.partition(said)[0]:
        # A sentence about something else ("use add_unredirected_header() instead") explains a refusal.
        long_enough = len(said.split()) >= MIN_WORDS_OF_REASON or _REFUSES.search(said)
        explains = long_enough and not UNFINISHED.search(said)
        return not explains or _PROMISES.search(said) is not None
    return UNFINISHED.search(said) is not None


def _message(text: str) -> str:
    """Return what follows the first quote; the whole text without one."""
    return re.sub(r"^[^'\"`]*['\"`]", "", text, count=1)


def _values(statement: Node) -> list[Node]:
    """Return what a ``return`` returns."""
    return [v for n in named(statement) for v in (named(n) if n.type == "expression_list" else [n])]


def _returned_text(statement: Node) -> str:
    return text_of(statement).removeprefix("return").strip(" ;")
