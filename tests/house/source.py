"""The house as text: its modules, what they import, and how long their functions are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

ROOT = Path(__file__).parents[2]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Documented: TypeAlias = Function | ast.ClassDef | ast.Module


_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


@frozen(kw_only=True)
class Module:
    """One file of Python: its dotted *name*, and what stands in it."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """What its relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def where(self) -> str:
        """The path as it is told to people."""
        return self.path.relative_to(ROOT).as_posix()


@frozen(kw_only=True)
class Import:
    """One imported name: the *module* that it comes from, and whether only a type checker sees it."""

    by: str
    module: str
    name: str
    line: int
    typing: bool


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Return the modules below *folders*, relative to the root (``plugins`` and ``src`` are no packages)."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    shown = [path for path in paths if not any(part[0] == "." for part in path.relative_to(ROOT).parts)]
    return tuple(Module(name=_dotted(p), path=p, tree=ast.parse(p.read_text("utf-8"))) for p in shown)


def _dotted(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "plugins":
        parts = parts[1:]
    if parts[0] == "contrib":
        parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: Module) -> Iterator[Import]:
    """Yield what *module* imports, wherever it does so; relative imports are resolved."""
    guards = [node for node in ast.walk(module.tree) if _for_types(node)]
    guarded = {id(inner) for guard in guards for inner in ast.walk(guard)}
    for node in ast.walk(module.tree):
        for base, name in _named(module, node):
            yield Import(by=module.name, module=base, name=name, line=_line(node), typing=id(node) in guarded)


def _named(module: Module, node: ast.AST) -> list[tuple[str, str]]:
    if isinstance(node, ast.Import):
        return [(alias.name, "") for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(_base(module, node), alias.name) for alias in node.names]
    return []


def _line(node: ast.AST) -> int:
    return node.lineno if isinstance(node, ast.stmt) else 0


def _base(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def functions(module: Module) -> Iterator[Function]:
    """Yield every function and method."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_without_docstrings(node: Documented) -> int:
    """Return how many lines *node* takes, without its own docstring and those within it."""
    whole = _last_line(node) - (1 if isinstance(node, ast.Module) else node.lineno) + 1
    return whole - sum(_docstring_lines(inner) for inner in ast.walk(node) if isinstance(inner, _DOCUMENTED))


def _last_line(node: Documented) -> int:
    if not isinstance(node, ast.Module):
        return node.end_lineno or node.lineno
    return max((inner.end_lineno or 0 for inner in node.body), default=0)


def _docstring_lines(node: Documented) -> int:
    if ast.get_docstring(node) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1
