"""Reads Python with its own ``ast`` and ``tokenize``."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Literal

import attrs

from .source import (
    NEUTRAL,
    REFUSAL_STATUS,
    UNFINISHED,
    UNFINISHED_STATUS,
    BodyKind,
    Function,
    Reference,
    Source,
    blank,
    word_set,
    words_of,
)

_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_DECLARING = re.compile(
    r"(?:^|\.)(?:abstract\w*|overload|group|callback|hookspec|singledispatch\w*|type_check_only|result_callback)$"
)
_BASE_NAMES = re.compile(r"(?:Abstract|Base|I)(?=[A-Z])|(?:Base|Interface|Protocol|Mixin|ABC|Spec)$")
_DATA_BASES = re.compile(
    r"(?:Model|SQLModel|BaseModel|NamedTuple|TypedDict|Enum|IntEnum|StrEnum|Flag|Document)$"
)
"""Bases that give fields a meaning: methods that take arguments are a class's own, not overrides."""
_LISTENS = word_set("hook hooks listener observer callback callbacks visitor events plugin extension")
_PRINT = re.compile(
    r"print|(?:\w+\.)*(?:echo|secho|print|debug|info|warning|log)|(?:\w+\.)*_?std(?:out|err)\.write"
    r"|(?:\w+\.)*_?(?:log|logger|logging|LOG|LOGGER)\.\w+"
)
_ANSWERS = re.compile(r"\.(?:post|put|patch|delete|route|api_route)$")
_STATUS = re.compile(
    r"(?:\w+\.)*(?:abort|abort_with_status|set_code|HTTPException|HTTPError|\w*Response|jsonify)"
)
_SLEEP = re.compile(r"(?:await )?(?:\w+\.)?sleep\(")
_PLATFORM = re.compile(r"\bplatform\b|\bos\.name\b|version_info|TYPE_CHECKING")
MIN_WORDS_OF_REASON = 5
_PROMISES = re.compile(
    r"(?i)\b(?:yet|later|pending|phase|milestone|will|soon|todo|wip|future|next|stub|implement)\b"
)
_REFUSES = re.compile(
    r"(?i)\b(?:not (?:allowed|possible|applicable|defined)|cannot|must|invalid|instead|use \w+)\b"
)


def read(text: str, *, typed: bool = False) -> Source | None:
    """Read a module; ``None`` if it is invalid, too deep, or newer than our Python."""
    with warnings.catch_warnings():
        # A doubtful escape in a project's file is not our warning to show.
        warnings.simplefilter("ignore")
        try:
            module = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    nodes = list(ast.walk(module))
    comments, strings = _spans(text)
    remarks = {at: text[start:end] for at, (start, end) in comments.items()}
    documentation = _documentation(text, nodes)
    bound = frozenset(_bound_names(module.body)) | {
        name for node in nodes if isinstance(node, ast.Global) for name in node.names
    }
    listed, open_list = _listed(module) if "__all__" in text else (None, False)
    return Source(
        language="python",
        code=blank(text, [*comments.values(), *documentation]),
        bare=blank(text, [*comments.values(), *documentation, *strings]),
        functions=tuple(_functions(module, nodes, remarks)),
        exports=bound,
        defined=bound,
        overrides=frozenset(_overrides(nodes)),
        open=bool(bound & {"*", "__getattr__"}) or open_list,
        listed=listed,
        references=tuple(_references(nodes)),
        strings=tuple(_path_strings(nodes)),
        identifiers=frozenset(
            [node.id for node in nodes if isinstance(node, ast.Name)]
            + [node.attr for node in nodes if isinstance(node, ast.Attribute)]
        ),
        empty=all(map(_does_nothing, module.body)),
    )


def _spans(text: str) -> tuple[dict[int, tuple[int, int]], list[tuple[int, int]]]:
    """Return the comments by line, and the strings, as spans of characters."""
    starts = _line_starts(text)
    comments: dict[int, tuple[int, int]] = {}
    strings: list[tuple[int, int]] = []
    with suppress(tokenize.TokenError, SyntaxError, IndexError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            span = (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
            if token.type == tokenize.COMMENT:
                comments[token.start[0]] = span
            elif token.type == tokenize.STRING:
                strings.append(span)
    return comments, strings


def _line_starts(text: str) -> list[int]:
    return [0, *accumulate(map(len, text.splitlines(keepends=True)))]


def _documentation(text: str, nodes: Sequence[ast.AST]) -> list[tuple[int, int]]:
    """Return the spans of strings that are statements: docstrings, and code that was put into quotes."""
    lines, starts = text.splitlines(keepends=True), _line_starts(text)

    def position(line: int, column: int) -> int:
        # The columns of ast count bytes.
        prefix = lines[line - 1].encode()[:column].decode("utf-8", "ignore") if line <= len(lines) else ""
        return starts[line - 1] + len(prefix)

    return [
        (position(node.lineno, node.col_offset), position(node.end_lineno or 0, node.end_col_offset or 0))
        for node in nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


# Names


def _bound_names(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the names that statements bind, those in classes with the class's name as *prefix*."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
                if prefix:  # attributes that methods set
                    for node in ast.walk(statement):
                        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                            yield prefix + node.attr
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _bound_names(statement.body, f"{prefix}{name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield prefix + (alias.asname or alias.name.split(".")[0])
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)) if not (
                prefix or name.isupper()
            ):
                # A name for later; it counts if some function sets it with `global`.
                yield f"{name}?"
            case _:
                if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
                    for node in ast.walk(statement):
                        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                            yield prefix + node.id
                elif type(statement).__name__ == "TypeAlias":  # ``type X = …``: ast has it from Python 3.12
                    yield prefix + ast.unparse(statement).split()[1].split("[")[0]
                # Branches of ``if``, ``try`` and ``with`` bind names of the module, too.
                for block in _blocks(statement):
                    yield from _bound_names(block, prefix)


def _blocks(statement: ast.stmt) -> Sequence[Sequence[ast.stmt]]:
    """Return the blocks of an ``if``, a ``try`` or another statement that has some."""
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    return blocks + [handler.body for handler in getattr(statement, "handlers", [])]


def _listed(module: ast.Module) -> tuple[frozenset[str] | None, bool]:
    """Return the names in ``__all__``, if it is one literal, and whether it is computed instead."""
    names: frozenset[str] | None = None
    for node in ast.walk(module):
        if not (isinstance(node, ast.Name) and node.id == "__all__"):
            continue
        owner = next((s for s in module.body if node in ast.walk(s)), None)
        match owner:
            case ast.Assign(targets=[ast.Name()], value=ast.List(elts=items) | ast.Tuple(elts=items)) if (
                names is None and all(isinstance(i, ast.Constant) and isinstance(i.value, str) for i in items)
            ):
                names = frozenset(str(item.value) for item in items if isinstance(item, ast.Constant))
            case _:
                return None, True
    return names, False


def _references(nodes: Sequence[ast.AST]) -> Iterator[Reference]:
    for node in nodes:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield Reference(module=alias.name)
            case ast.ImportFrom(module=base, names=aliases, level=level):
                yield Reference(
                    module="." * level + (base or ""), names=tuple(alias.name for alias in aliases)
                )
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if ast.unparse(
                function
            ).endswith(("import_module", "__import__")):
                yield Reference(module=name)
            case _:
                pass


def _path_strings(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the strings that are arguments, values or items: not those that are printed or explain."""
    for node in nodes:
        items: Sequence[ast.expr | None]
        match node:
            case ast.Call(func=function):
                if _PRINT.fullmatch(ast.unparse(function)) or ast.unparse(function).endswith("Error"):
                    continue
                items = [*node.args, *(keyword.value for keyword in node.keywords)]
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                items = parts
            case ast.BinOp(left=left, right=right):
                items = [left, right]
            case ast.Assign(value=item) | ast.AnnAssign(value=item) | ast.Return(value=item):
                items = [item]
            case ast.Subscript(slice=index):
                items = [index]
            case _:
                continue
        for item in items:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield item.value
            elif isinstance(item, ast.JoinedStr):
                yield "".join(str(v.value) for v in item.values if isinstance(v, ast.Constant))


# Functions


@attrs.frozen(kw_only=True)
class _Class:
    """What a class says about its methods; without a name, it is the module."""

    name: str = ""
    abstract: bool = False
    inherits: bool = False
    peers: bool = False


def _functions(module: ast.Module, nodes: Sequence[ast.AST], remarks: dict[int, str]) -> Iterator[Function]:
    bases = {name for node in nodes if isinstance(node, ast.ClassDef) for name in _base_names(node)}
    defaults = {
        inner.id
        for node in nodes
        if isinstance(node, ast.arguments)
        for default in [*node.defaults, *node.kw_defaults]
        if default is not None
        for inner in ast.walk(default)
        if isinstance(inner, ast.Name)
    } | {
        ast.unparse(value.func if isinstance(value, ast.Call) else value)
        for node in nodes
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
        for value in node.values[1:]
    }
    # `class Retry: pass` is a marker if the module itself makes or compares it.
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for function in _Reader(bases=bases, defaults=defaults, remarks=remarks).functions(module.body, _Class()):
        if function.parameters != ("…",) or function.name not in used:
            yield function


def _base_names(node: ast.ClassDef) -> set[str]:
    """Return the names of a class's bases, without their modules and type arguments."""
    return {ast.unparse(base).split("[")[0].rpartition(".")[2] for base in node.bases}


def _overrides(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ClassDef) and node.bases:
            for method in node.body:
                if isinstance(method, _Def) and _classify(method.body, ())[0] != "unfinished":
                    yield from (f"{base}.{method.name}" for base in _base_names(node))


@attrs.frozen(kw_only=True)
class _Reader:
    """Reads functions, given the names of all *bases*, what stands in as *defaults*, and comments by line."""

    bases: set[str]
    defaults: set[str]
    remarks: dict[int, str]

    def functions(self, body: Sequence[ast.stmt], owner: _Class) -> Iterator[Function]:
        for statement in body:
            if isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
                continue  # a demonstration
            if isinstance(statement, ast.If | ast.Try | ast.With):
                for block in _blocks(statement):
                    fallback = not owner.name and (
                        block is not statement.body
                        or (isinstance(statement, ast.If) and _PLATFORM.search(ast.unparse(statement.test)))
                    )
                    for function in self.functions(block, owner):
                        yield attrs.evolve(function, conditional=True, fallback=bool(fallback))
            if isinstance(statement, ast.ClassDef):
                yield from self._methods(statement)
            if isinstance(statement, _Def):
                yield self._function(statement, owner)
                inner = [node for node in statement.body if isinstance(node, _Def)]
                decorated = [node for node in inner if node.decorator_list]
                yield from self.functions(decorated, _Class())
                for closure in inner:
                    if closure not in decorated:
                        yield attrs.evolve(self._function(closure, _Class()), nested=True)

    def _methods(self, node: ast.ClassDef) -> Iterator[Function]:
        names = _base_names(node)
        metaclasses = {ast.unparse(keyword.value).rpartition(".")[2] for keyword in node.keywords}
        kinds = [(m.name, _classify(m.body, ())[0]) for m in node.body if isinstance(m, _Def)]
        has_code = any(kind == "code" for _, kind in kinds)
        abstract = (
            bool(names & {"ABC", "Protocol"})
            or "ABCMeta" in metaclasses
            or (node.name in self.bases and not (has_code and names - {"object", "Generic"}))
            or _BASE_NAMES.search(node.name) is not None
        )
        content = _without_docstring(node.body)
        if not node.bases and not node.decorator_list and all(map(_does_nothing, content)) and not abstract:
            # A marker or a namespace has a docstring that says so.
            if not ast.get_docstring(node) and not node.name.startswith("_"):
                yield Function(
                    name=node.name, line=node.lineno, body="empty", parameters=("…",), returns="value"
                )
            return
        peers = any(kind == "code" and name != "__init__" for name, kind in kinds)
        idle = bool(kinds) and all(kind == "empty" for _, kind in kinds)
        # A class of hooks that all do nothing is there to be overridden, or to be passed when nobody listens.
        abstract |= idle and (node.name in self.defaults or bool(_LISTENS & set(words_of(node.name))))
        prescribing = {
            n for n in names - {"object"} if not _DATA_BASES.search(n) or re.match(r"Q[A-Z]|Abstract", n)
        }
        owner = _Class(name=node.name, abstract=abstract, inherits=bool(prescribing), peers=peers)
        yield from self.functions(node.body, owner)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: _Class) -> Function:
        decorators = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
        given = node.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        names = [argument.arg for argument in arguments if argument]
        if owner.name and names and "staticmethod" not in decorators:
            names = names[1:]
        kind, value, rest = _classify(node.body, names)
        used = {
            inner.id for statement in rest for inner in ast.walk(statement) if isinstance(inner, ast.Name)
        }
        returned = ast.unparse(node.returns) if node.returns else ""
        returns: Literal["value", "nothing", "unknown"] = "unknown"
        if returned:
            returns = "nothing" if returned in ("None", "'None'") or "Never" in returned else "value"
            if kind == "empty" and re.search(
                r"NoReturn|Generator|Iterator|\bAny\b|\bobject\b|Optional|None", returned
            ):
                returns = "unknown"
        mentioned = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        values = tuple(n for n in names if n not in NEUTRAL and not n.startswith("_"))
        handles = any(map(_ANSWERS.search, decorators)) or bool({"request", "req"} & set(names))
        calls = [ast.unparse(inner.func) for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        printing = [called for called in calls if _PRINT.fullmatch(called)]
        last = node.end_lineno or node.lineno
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        return Function(
            name=f"{owner.name}.{node.name}" if owner.name else node.name,
            line=node.lineno,
            body=kind,
            value=value,
            parameters=values,
            announces=bool(printing),
            idle=len(printing) + calls.count("len") == len(calls),
            length=last - node.lineno + 1,
            unused=tuple(n for n in values if n not in mentioned and "locals" not in mentioned),
            answers=handles
            and kind == "constant"
            and "(" in value.replace("{", "(")
            and not REFUSAL_STATUS.search(value),
            ignored=tuple(n for n in names if n.startswith("_") and n != "_"),
            uses_parameters=bool(used & set(names)),
            returns=returns,
            comment="\n".join(self.remarks[at] for at in range(node.lineno, last + 1) if at in self.remarks),
            doc="\n".join([ast.get_docstring(node) or "", self.remarks.get(first - 1, "")]),
            declared=any(map(_DECLARING.search, decorators))
            or (kind == "unfinished" and owner.inherits and node.name.startswith("__"))
            or any(d.endswith(("fixture", ".register", ".setter", ".deleter")) for d in decorators)
            or owner.abstract,
            inherits=owner.inherits,
            method=bool(owner.name),
            exported=not node.name.startswith("_"),
            callback=node.name in self.defaults or (bool(names) and set(names) == {"_"}),
            peers=owner.peers,
        )


def _classify(body: Sequence[ast.stmt], names: Sequence[str]) -> tuple[BodyKind, str, list[ast.stmt]]:
    """Return what the body is, the value or statement that shows it, and its statements."""
    statements = list(_flat(_without_docstring(body)))
    constants: dict[str, str] = {}
    rest: list[ast.stmt] = []
    printed = unfinished = ""
    slept = False
    for statement in statements:
        match statement:
            case ast.Raise(exc=raised) if raised is not None and _is_unfinished(raised):
                # After branches that return something, it refuses what none of them handles.
                if any(_computes(other) for other in rest):
                    return "code", "", statements
                return "unfinished", ast.unparse(statement), statements
            case ast.Raise(exc=ast.Call() as call) | ast.Expr(value=ast.Call() as call) if _says_unfinished(
                call
            ):
                unfinished = ast.unparse(statement)
            case ast.Return(value=ast.Call() as call) if len(statements) == 1 and _says_unfinished(call):
                return "unfinished", ast.unparse(statement), statements
            case ast.Expr(value=ast.Call(func=function)) if _PRINT.fullmatch(ast.unparse(function)):
                printed = ast.unparse(statement)
                if UNFINISHED.search(printed.partition("(")[2].lstrip("f'\"")):
                    unfinished = printed
            case ast.Expr() if _SLEEP.match(ast.unparse(statement)):
                slept = True
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_constant(value):
                constants[name] = ast.unparse(value)
            case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
                pass
            case ast.Delete(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
                pass
            case ast.Assign(targets=[ast.Name(id="_")], value=ast.Name()):
                pass
            case _:
                rest.append(statement)
    if unfinished and all(isinstance(s, ast.Return) for s in rest):
        return "unfinished", unfinished, statements
    returned_everywhere = _values(rest) if len(rest) > 1 or isinstance(next(iter(rest), None), ast.If) else []
    texts = {ast.unparse(value) for value in returned_everywhere}
    if len(texts) == 1 and _is_constant(returned_everywhere[0]):
        return "constant", texts.pop(), []
    match rest:
        case []:
            if (constants or slept) and not printed:
                return "code", "", statements
            return ("print", printed, statements) if printed else ("empty", "", statements)
        case [ast.Return(value=ast.Constant(value=None))] if any(
            isinstance(s, ast.Import | ast.ImportFrom) for s in statements
        ):  # something is imported and not used
            return "empty", "", statements
        case [ast.Expr(value=ast.Call(args=[_, *_] as items))] if all(map(_is_constant, items)) and any(
            isinstance(item, ast.Constant) and UNFINISHED.search(str(item.value)) for item in items
        ):  # status.showMessage("Not implemented yet")
            return "unfinished", ast.unparse(rest[0]), statements
        case [ast.Return(value=None)]:
            return ("print", printed, statements) if printed else ("empty", "", statements)
        case [ast.Return(value=ast.Name(id=name))] if name in constants:
            return "constant", constants[name], statements
        case [ast.Return(value=ast.Name(id=name))] if name in names:
            return "identity", name, statements
        case [ast.Return(value=returned)] if returned is not None and _is_made_of_constants(returned):
            return "constant", ast.unparse(returned), statements
        case _:
            return "code", "", statements


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements; of a ``try`` or a loop around messages and literals, only what is inside."""
    for statement in body:
        match statement:
            case ast.Try(body=inner) if all(map(_is_idle, inner)):
                yield from inner
            case ast.For(iter=ast.Name(), body=inner) if all(map(_is_message, inner)):
                yield from inner
            case _:
                yield statement


def _is_message(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            return _PRINT.fullmatch(ast.unparse(function)) is not None
        case _:
            return False


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement cannot fail: a message, or a literal that is returned."""
    match statement:
        case ast.Pass() | ast.Return(value=None):
            return True
        case ast.Return(value=value) if value is not None:
            return _is_made_of_constants(value)
        case _:
            return _is_message(statement)


def _says_unfinished(call: ast.Call) -> bool:
    """Whether a call answers with the status of what is not implemented: ``abort(501)``."""
    name = ast.unparse(call.func)
    return bool(_STATUS.fullmatch(name) and UNFINISHED_STATUS.search(ast.unparse(call)))


def _values(statements: Sequence[ast.stmt]) -> list[ast.expr]:
    """Return the values of all branches, if there is nothing but branches and returns."""
    found: list[ast.expr] = []
    for statement in statements:
        match statement:
            case ast.Return(value=value) if value is not None:
                found.append(value)
            case ast.If(body=body, orelse=orelse):
                inner = [_values(branch) for branch in (body, orelse) if branch]
                if not all(inner):
                    return []
                found += [value for values in inner for value in values]
            case _:
                return []
    # Without an `else`, nothing is returned if the condition does not hold.
    match statements[-1:]:
        case [ast.Return()] | [ast.If(orelse=[_, *_])]:
            return found
        case _:
            return []


def _computes(statement: ast.stmt) -> bool:
    """Whether a branch or loop returns a value that is not a literal."""
    return isinstance(statement, ast.If | ast.For | ast.While | ast.Match | ast.Try | ast.With) and any(
        isinstance(inner, ast.Return) and inner.value is not None and not _is_constant(inner.value)
        for inner in ast.walk(statement)
    )


def _is_unfinished(raised: ast.expr) -> bool:
    called = raised.func if isinstance(raised, ast.Call) else raised
    texts = [item.value for item in ast.walk(raised) if isinstance(item, ast.Constant)]
    said = " ".join(text for text in texts if isinstance(text, str))
    if ast.unparse(called).rpartition(".")[2] == "NotImplementedError":
        # A sentence about something else ("use add_unredirected_header() instead") explains a refusal.
        long_enough = len(said.split()) >= MIN_WORDS_OF_REASON or _REFUSES.search(said)
        explains = long_enough and not UNFINISHED.search(said)
        return not explains or _PROMISES.search(said) is not None
    return UNFINISHED.search(said) is not None


def _is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return all(map(_is_constant, items))
        case ast.Dict(keys=keys, values=values):
            return all(_is_constant(item) for item in [*keys, *values] if item is not None)
        case ast.Call(func=ast.Name(id="list" | "dict" | "set" | "tuple" | "str"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Name(id="Decimal" | "float" | "int" | "jsonify"), args=items):
            return all(map(_is_constant, items))
        case _:
            return False


def _is_made_of_constants(node: ast.expr) -> bool:
    """Whether a value is a constant, a member of an enumeration, or an object made of such."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=items, keywords=keywords) if (
            name[:1].isupper() and not name.endswith(("Error", "Exception", "Warning"))
        ):  # Order(id=1, total=0)
            return all(map(_is_made_of_constants, [*items, *(keyword.value for keyword in keywords)]))
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner[:1].isupper() and name.isupper():
            return True  # Status.DONE
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return all(map(_is_made_of_constants, items))
        case _:
            return _is_constant(node)


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.ImportFrom(module="__future__"):
            return True
        case ast.Return(value=None | ast.Constant(value=None)):
            return True
        case _:
            return False


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return body
