"""The rules that need only the files of a plugin: imports, types, docstrings, packaging, tests."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions, requires
from pathlib import Path
from typing import TypeAlias

from gsd_core.errors import UserError
from gsd_core.plugins.discovery import ENTRY_POINT_GROUP
from gsd_core.testing.new import TAKEN_NAMES

from .target import Target, find_module

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# packages_distributions() does not know the packages of an editable installation.
_OWN_PACKAGES = {"gsd_core": ["gsd-core"], "gsd_plugins": ["gsd-core"]}
_PUBLIC = re.compile(r"gsd_core(\.hookspecs|\.project|\.planning(\.\w+)*|\.testing(\.\w+)*)?")


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file; raise ``UserError`` if it is not valid Python."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, ValueError, SyntaxError) as error:
        raise UserError(f"cannot read {str(path)!r}: {error}", hint="fix the file") from error


def private_imports(target: Target) -> Iterator[str]:
    """Yield imports of modules of gsd, or of other plugins, that are not public."""
    for path, line, module in _imports(target):
        root = module.split(".")[0]
        if root == "gsd_core" and not _PUBLIC.fullmatch(module):
            yield f"{path.name}:{line} imports {module}"
        if root == "gsd_plugins" and module.count(".") > 1 and not _is_own(module, target):
            yield f"{path.name}:{line} imports {module}, which is private to another plugin"


def undeclared_imports(target: Target) -> Iterator[str]:
    """Yield imports of distributions that the package does not depend on."""
    declared = {_distribution_name(spec) for spec in declared_dependencies(target)}
    providers = {**packages_distributions(), **_OWN_PACKAGES}
    for path, line, module in _imports(target):
        root = module.split(".")[0]
        if root in sys.stdlib_module_names or _is_own(module, target):
            continue
        names = {_distribution_name(name) for name in providers.get(root, [root])}
        if not names & declared:
            yield f"{path.name}:{line} imports {root}, but {' or '.join(sorted(names))} is not a dependency"


def declared_dependencies(target: Target) -> list[str]:
    """Return the dependencies of the package, and the package itself."""
    if project := target.project:
        extras = project.get("optional-dependencies", {}).values()
        specs = [*project.get("dependencies", []), *(spec for extra in extras for spec in extra)]
        return [*map(str, specs), str(project.get("name", ""))]
    try:
        return [*(requires(target.distribution) or []), target.distribution]
    except (PackageNotFoundError, ValueError):
        return []


def missing_types(target: Target) -> Iterator[str]:
    """Yield functions that lack the type of a parameter or of the return value."""
    for path, node in _nodes(target):
        if not isinstance(node, Function):
            continue
        named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments = [*named, node.args.vararg, node.args.kwarg]
        missing = [a.arg for a in arguments if a and not a.annotation and a.arg not in ("self", "cls")]
        missing += [] if node.returns else ["the return value"]
        if missing:
            yield f"{path.name}:{node.lineno} {node.name}: no type for {', '.join(missing)}"


def missing_docs(target: Target) -> Iterator[str]:
    """Yield modules and public functions and classes without a docstring, and a missing README."""
    for path in target.sources:
        tree = parse(path)
        if tree.body and not ast.get_docstring(tree):
            yield f"{path.name} has no docstring"
        for node in tree.body:
            if isinstance(node, ast.ClassDef | Function) and _is_public(node) and not ast.get_docstring(node):
                yield f"{path.name}:{node.lineno} {node.name} has no docstring"
    if target.folder and not any(target.folder.glob("README*")):
        yield "no README next to pyproject.toml"


def global_statements(target: Target) -> Iterator[str]:
    """Yield functions that assign to module variables with ``global``."""
    for path, node in _nodes(target):
        if isinstance(node, ast.Global):
            yield f"{path.name}:{node.lineno} assigns to the global {', '.join(node.names)}"


def entry_point_problems(target: Target) -> Iterator[str]:
    """Yield why the plugin would not be found, or not under its own name."""
    declared = target.entry_points
    if not declared:
        yield "pyproject.toml has no entry point in the group gsd"
    for name, value in declared.items():
        module = value.partition(":")[0]
        if name in TAKEN_NAMES:
            yield f"gsd itself uses the name {name!r}"
        if not name.isidentifier():
            yield f"the name {name!r} cannot be a section of gsd.toml; use letters, digits and underscores"
        if target.path and not find_module(target.path, module):
            yield f"the entry point {name!r} refers to the module {module!r}, which does not exist"
    installed = {point.value for point in entry_points(group=ENTRY_POINT_GROUP) if point.name == target.name}
    if declared and (others := installed - set(declared.values())):
        yield f"another installed plugin has the name {target.name!r}: {', '.join(sorted(others))}"


def packaging_problems(target: Target) -> Iterator[str]:
    """Yield what the package's metadata lacks."""
    if not target.project.get("requires-python"):
        yield "requires-python is missing"
    if not any(str(spec).startswith("gsd-core") for spec in target.project.get("dependencies", [])):
        yield "the dependency gsd-core is missing"
    if target.sources and not (target.sources[0].parent / "py.typed").is_file():
        yield "py.typed is missing next to the module"


def untested_hooks(target: Target, hooks: Sequence[str]) -> Iterator[str]:
    """Yield those of the plugin's *hooks* that its tests do not mention."""
    folder = target.folder / "tests" if target.folder else None
    files = sorted(folder.rglob("test_*.py")) if folder and folder.is_dir() else []
    tests = [parse(path) for path in files if _tests_plugin(path, target)]
    if not tests:
        yield "no test imports the plugin"
        return
    words = {word for tree in tests for word in _words(tree)}
    for hook in hooks:
        short = hook.removeprefix("gsd_")
        if not words & {hook, short, f"check_{short}", *_implementations(target, hook)}:
            yield f"no test mentions {hook}"


def _tests_plugin(path: Path, target: Target) -> bool:
    """Return whether a test is about the plugin; those of a package with one plugin all are."""
    if target.kind != "built-in":
        return True
    package, _, name = target.module.rpartition(".")
    text = path.read_text(encoding="utf-8")
    return target.module in text or (f"from {package} import" in text and name in text)


def _words(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str(word)):
                yield word
            case _:
                pass


def _implementations(target: Target, hook: str) -> Iterator[str]:
    """Yield the functions that implement *hook*: a test may call one by its own name."""
    for _, node in _nodes(target):
        if isinstance(node, Function):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if f"implements({hook}" in decorators or f"implements(hookspecs.{hook}" in decorators:
                yield node.name


def _imports(target: Target) -> Iterator[tuple[Path, int, str]]:
    for path, node in _nodes(target):
        if isinstance(node, ast.Import):
            yield from ((path, node.lineno, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield path, node.lineno, node.module or ""


def _nodes(target: Target) -> Iterator[tuple[Path, ast.AST]]:
    """Yield the nodes of the syntax trees of the plugin's files."""
    return ((path, node) for path in target.sources for node in ast.walk(parse(path)))


def _is_own(module: str, target: Target) -> bool:
    own = target.module or target.name
    return module == own or module.startswith(f"{own}.")


def _distribution_name(spec: str) -> str:
    """Return the name in a requirement such as ``attrs>=24.2``, normalized as PEP 503 says."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=~!\[; ]", spec)[0]).lower()


def _is_public(node: ast.ClassDef | Function) -> bool:
    # The variants of an overloaded function are documented at its implementation.
    return not node.name.startswith("_") and "overload" not in map(ast.unparse, node.decorator_list)
