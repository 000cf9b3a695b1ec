"""Names that a file is to export: in Python what the module binds, elsewhere words of the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .syntax import parsed

_NAME = re.compile(r"[\w$]+(?:(?:\.|::|#|->)[\w$]+)*")


def missing_exports(path: Path, text: str, exports: Sequence[str]) -> list[str]:
    """Return those of *exports* that are not there; a description in prose is no name and not judged."""
    names = [name for name in map(_bare, exports) if _NAME.fullmatch(name)]
    bound = _bound(text) if path.suffix == ".py" else None
    if bound is None:
        return [name for name in names if not _worded(name, text)]
    if bound & {"*", "__getattr__"}:
        return []
    return [name for name in names if name not in bound]


def _bare(export: str) -> str:
    """``greet()``, ``def greet`` and ``greet(name: str)`` all mean ``greet``."""
    return re.sub(
        r"^(?:async |export |default |def |class |function |const |type |interface )+|[(<:=].*$",
        "",
        export.strip().replace("::", "."),
    ).strip()


def _worded(name: str, text: str) -> bool:
    parts = re.split(r"\.|#|->", name)
    return all(re.search(rf"(?<![\w$]){re.escape(part)}(?![\w$])", text) for part in parts)


def _bound(text: str) -> set[str] | None:
    """Return the names that a Python module binds, ``None`` if it is no Python that we can read.

    ``*`` (it imports everything from another) and ``__getattr__`` (it makes names on demand) are
    among them: then it may bind any other.
    """
    if (tree := parsed(text)) is None:
        return None
    return set(_names(tree.body, ""))


def _names(body: Sequence[ast.stmt], inside: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield inside + name
            case ast.ClassDef(name=name):
                yield inside + name
                yield from _names(statement.body, f"{inside}{name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield inside + (alias.asname or alias.name.split(".")[0])
            case _:
                yield from _assigned(statement, inside)
                for block in _blocks(statement):
                    yield from _names(block, inside)


def _assigned(statement: ast.stmt, inside: str) -> Iterator[str]:
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield inside + node.id
    elif type(statement).__name__ == "TypeAlias":
        yield inside + ast.unparse(statement).split()[1].split("[")[0]


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The branches of ``if``, ``try`` and ``with`` bind names of the module too."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for handler in getattr(statement, "handlers", []):
        yield handler.body
