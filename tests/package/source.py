"""The project's source as syntax trees: its modules and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]


@attrs.frozen(kw_only=True)
class Module:
    """One Python file: its dotted *name*, its path and its syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def where(self) -> str:
        """Its path relative to the root of the repository, for messages."""
        return self.path.relative_to(ROOT).as_posix()


@attrs.frozen(kw_only=True)
class Import:
    """One imported name: the importing module, the module it comes from, and where."""

    by: str
    module: str
    name: str
    line: int
    typing: bool
    """Whether only a type checker sees it."""


@cache
def modules(*folders: str, containing: str = "") -> tuple[Module, ...]:
    """Return the modules below *folders*, which are relative to the root, whose text contains a word."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    visible = [path for path in paths if not any(part[0] == "." for part in path.relative_to(ROOT).parts)]
    texts = ((path, path.read_text("utf-8")) for path in visible)
    return tuple(Module(name=_dotted(p), path=p, tree=ast.parse(t)) for p, t in texts if containing in t)


def _dotted(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    # `plugins` and `contrib/*/src` are on the import path; they are not packages themselves.
    if parts[0] == "plugins":
        parts = parts[1:]
    if parts[0] == "contrib":
        parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: Module) -> Iterator[Import]:
    """Yield every import of *module*, including those inside functions; relative ones are resolved."""
    guards = [node for node in ast.walk(module.tree) if _is_type_checking(node)]
    guarded = {id(inner) for guard in guards for inner in ast.walk(guard)}
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                found = [(alias.name, "") for alias in names]
            case ast.ImportFrom(names=names):
                found = [(_resolved(module, node), alias.name) for alias in names]
            case _:
                continue
        for base, name in found:
            yield Import(by=module.name, module=base, name=name, line=node.lineno, typing=id(node) in guarded)


def _resolved(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
