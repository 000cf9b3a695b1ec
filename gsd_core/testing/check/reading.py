"""What can be seen without running anything: imports, types, docstrings, state."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import TypeAlias

from gsd_core.errors import UserError

from .target import Target

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_OURS = {"gsd_core": ["gsd-core"], "gsd_plugins": ["gsd-core"]}  # an editable installation does not say so
_PUBLIC = re.compile(r"gsd_core(\.hookspecs|\.planning(\.\w+)*|\.testing(\.\w+)*)?")


@cache
def parsed(path: Path) -> ast.Module:
    """Return a file's syntax tree; raise ``UserError`` if it is no Python."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, ValueError, SyntaxError) as error:
        raise UserError(f"cannot read {str(path)!r}: {error}", hint="mend the file") from error


def private_doors(target: Target) -> Iterator[str]:
    """Name imports of modules of gsd that are not public."""
    for path, line, module in _imports(target):
        root = module.split(".")[0]
        if root == "gsd_core" and not _PUBLIC.fullmatch(module):
            yield f"{path.name}:{line} imports {module}"
        if root == "gsd_plugins" and module.count(".") > 1 and not _is_own(module, target):
            yield f"{path.name}:{line} imports {module}, which is inside another plugin"


def undeclared(target: Target) -> Iterator[str]:
    """Name imports of distributions that the package does not depend on."""
    declared = {_plain(spec) for spec in declared_dependencies(target)}
    providers = {**packages_distributions(), **_OURS}
    for path, line, module in _imports(target):
        root = module.split(".")[0]
        if root in sys.stdlib_module_names or _is_own(module, target):
            continue
        names = {_plain(name) for name in providers.get(root, [root])}
        if not names & declared:
            yield f"{path.name}:{line} imports {root}, and {' or '.join(sorted(names))} is no dependency"


def declared_dependencies(target: Target) -> list[str]:
    """Return the dependencies of the package, and the package itself."""
    project = target.project().get("project", {})
    if project:
        extras = project.get("optional-dependencies", {}).values()
        named = [*project.get("dependencies", []), *(spec for extra in extras for spec in extra)]
        return [*map(str, named), str(project.get("name", ""))]
    try:
        return [*(requires(target.distribution) or []), target.distribution]
    except (PackageNotFoundError, ValueError):
        return []


def untyped(target: Target) -> Iterator[str]:
    """Name functions without the type of a parameter or of what they return."""
    for path in target.sources:
        for node in _functions(parsed(path)):
            if missing := _missing_types(node):
                yield f"{path.name}:{node.lineno} {node.name}: no type for {', '.join(missing)}"


def undocumented(target: Target) -> Iterator[str]:
    """Name modules, public classes and hooks without a docstring; an empty module needs none."""
    for path in target.sources:
        tree = parsed(path)
        if tree.body and not ast.get_docstring(tree):
            yield f"{path.name} has no docstring"
        for node in tree.body:
            if isinstance(node, ast.ClassDef | Function) and _is_shown(node) and not ast.get_docstring(node):
                yield f"{path.name}:{node.lineno} {node.name} has no docstring"
    if target.folder and not any(target.folder.glob("README*")):
        yield "no README beside pyproject.toml"


def global_statements(target: Target) -> Iterator[str]:
    """Name functions that change a module's variables by ``global``."""
    for path in target.sources:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Global):
                yield f"{path.name}:{node.lineno} changes {', '.join(node.names)} by a global statement"


def _imports(target: Target) -> Iterator[tuple[Path, int, str]]:
    for path in target.sources:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                yield from ((path, node.lineno, alias.name) for alias in node.names)
            if isinstance(node, ast.ImportFrom) and not node.level:
                yield path, node.lineno, node.module or ""


def _is_own(module: str, target: Target) -> bool:
    own = target.module or target.name
    return module == own or module.startswith(f"{own}.")


def _plain(name: str) -> str:
    """Return a distribution's name without its versions, as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=~!\[; ]", name)[0]).lower()


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _missing_types(node: Function) -> list[str]:
    every = [
        *node.args.posonlyargs,
        *node.args.args,
        *node.args.kwonlyargs,
        node.args.vararg,
        node.args.kwarg,
    ]
    bare = [arg.arg for arg in every if arg and not arg.annotation and arg.arg not in ("self", "cls")]
    return [*bare, *([] if node.returns else ["what it returns"])]


def _is_shown(node: ast.ClassDef | Function) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return not node.name.startswith("_") and "overload" not in decorators
