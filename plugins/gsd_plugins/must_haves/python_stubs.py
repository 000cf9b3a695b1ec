"""Stubs in Python, by the syntax tree: functions that do nothing where something was promised.

What Python itself leaves empty is no stub: abstract methods, protocols, overloads, exceptions,
hooks of a base class that are overridden to do nothing, decorated functions (a click group).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from attrs import frozen

from .syntax import parsed

EMPTY_MODULES = ("__init__.py", "conftest.py", "__main__.py")

LITTLE_WORK = 10

Kind: TypeAlias = Literal["work", "empty", "raises"]
Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"

_BASES = re.compile(r"(?:Abstract|Base|Null|No|Dummy|Fake)(?=[A-Z]|$)|(?:Base|Interface|Protocol|Mixin|ABC)$")
_MARKERS = re.compile(r"#.*\b(?:TODO|FIXME)\b.*\b(?:implement|write|fill)|lorem ipsum", re.IGNORECASE)


@frozen(kw_only=True)
class Judged:
    """A function or class that could be a stub, by its name."""

    name: str
    kind: Kind


def python_stub(name: str, text: str, exports: Sequence[str] = ()) -> str:
    """Say what makes a module a stub; empty if nothing does, or if it cannot be parsed."""
    if (tree := parsed(text)) is None:
        return ""
    body = _without_docstring(tree.body)
    if all(_does_nothing(statement) for statement in body):
        return "" if name in EMPTY_MODULES else "it is a stub: it holds no code"
    return _empty_parts(list(_judged(tree.body, _subclassed(tree))), text, exports)


def _empty_parts(judged: Sequence[Judged], text: str, exports: Sequence[str]) -> str:
    raising = [part.name for part in judged if part.kind == "raises"]
    empty = [part.name for part in judged if part.kind == "empty"]
    wanted = [name for name in empty if name in exports or name.split(".")[-1] in exports]
    if raising:
        return f"it is a stub: not implemented: {_named(raising)}"
    if wanted or (empty and len(empty) * 2 > len(judged)):
        return f"it is a stub: nothing in the body of {_named(wanted or empty)}"
    if _work(text) <= LITTLE_WORK and (marker := _MARKERS.search(text)):
        return f"it is a stub: {marker[0].strip()[:80]!r}"
    return ""


def _work(text: str) -> int:
    dull = re.compile(r"\s*(?:#.*|import\b.*|from\b.*|\"\"\".*\"\"\"|pass|return None|return|\.\.\.)?\s*")
    return sum(1 for line in text.splitlines() if not dull.fullmatch(line))


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _judged(body: Sequence[ast.stmt], bases: frozenset[str]) -> Iterator[Judged]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if not statement.decorator_list:
                yield Judged(name=statement.name, kind=_kind(statement))
        elif isinstance(statement, ast.ClassDef):
            yield from _judged_class(statement, bases)


def _judged_class(statement: ast.ClassDef, bases: frozenset[str]) -> Iterator[Judged]:
    if statement.bases and all(_does_nothing(inner) for inner in statement.body):
        return
    if all(_does_nothing(inner) for inner in _without_docstring(statement.body)):
        yield Judged(name=statement.name, kind="empty")
        return
    open_base = _BASES.search(statement.name) or statement.name in bases or _is_abstract(statement)
    for inner in statement.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.decorator_list:
            kind = _kind(inner)
            by_design = open_base or (kind == "empty" and (statement.bases or _is_dunder(inner.name)))
            yield Judged(name=f"{statement.name}.{inner.name}", kind="work" if by_design else kind)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_abstract(statement: ast.ClassDef) -> bool:
    words = {ast.unparse(base).split("[")[0].rpartition(".")[2] for base in statement.bases}
    keywords = {ast.unparse(keyword.value).rpartition(".")[2] for keyword in statement.keywords}
    return bool(words & {"ABC", "Protocol"} or "ABCMeta" in keywords)


def _subclassed(tree: ast.Module) -> frozenset[str]:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return frozenset(base.id for node in classes for base in node.bases if isinstance(base, ast.Name))


def _kind(function: Function) -> Kind:
    body = _without_docstring(function.body)
    if len(body) == 1 and isinstance(body[0], ast.Raise) and body[0].exc is not None:
        raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
        return "raises" if ast.unparse(raised) == "NotImplementedError" else "work"
    return "empty" if all(_does_nothing(statement) for statement in body) else "work"


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None):
            return True
        case ast.Return(value=ast.Constant(value=None)):
            return True
        case _:
            return False


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return body
