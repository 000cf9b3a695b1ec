"""How a plugin stands on its shelf: entry point, package, tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from gsd_core.plugins.discovery import DEFAULT_PLUGINS, ENTRY_POINT_GROUP
from gsd_core.settings import CORE_SECTIONS

from .reading import parsed
from .target import Target

_TAKEN = {module.rpartition(".")[2] for module in DEFAULT_PLUGINS} | {name for name, _ in CORE_SECTIONS}


def wrong_entry_point(target: Target) -> Iterator[str]:
    """Say why the plugin would not be found, or not under its name."""
    points = _points(target)
    if not points:
        yield "pyproject.toml has no entry point in the group gsd"
    for name, value in points.items():
        module = str(value).partition(":")[0]
        if name in _TAKEN:
            yield f"the name {name!r} is taken by gsd itself"
        if not name.isidentifier():
            yield f"the name {name!r} is none that a section of gsd.toml or a variable can have"
        if not _is_there(target, module):
            yield f"the entry point {name!r} names {module!r}, which is not there"
    others = {point.value for point in entry_points(group=ENTRY_POINT_GROUP) if point.name == target.name}
    if others - set(map(str, points.values())) and points:
        yield f"another installed plugin has the name {target.name!r}: {', '.join(sorted(others))}"


def badly_packaged(target: Target) -> Iterator[str]:
    """Say what the package forgets to say."""
    project = target.project().get("project", {})
    if not project.get("requires-python"):
        yield "requires-python is missing"
    if not any(str(spec).startswith("gsd-core") for spec in project.get("dependencies", [])):
        yield "gsd-core is not among the dependencies"
    if target.sources and not (target.sources[0].parent / "py.typed").is_file():
        yield "py.typed is missing beside the module"


def untested(target: Target, hooks: Sequence[str]) -> Iterator[str]:
    """Name hooks of the plugin that none of its tests names."""
    texts = [path for path in _tests(target) if _is_about(path, target)]
    if not texts:
        yield "no test imports it"
        return
    words = {word for path in texts for word in _words(path)}
    for hook in hooks:
        short = hook.removeprefix("gsd_")
        if not words & {hook, short, f"check_{short}", *_implementations(target, hook)}:
            yield f"no test names {hook}"


def _points(target: Target) -> dict[str, Any]:
    groups = target.project().get("project", {}).get("entry-points", {})
    return dict(groups.get(ENTRY_POINT_GROUP, {}))


def _is_there(target: Target, module: str) -> bool:
    if target.path is None:
        return True
    base = target.path.joinpath(*module.split("."))
    return (base / "__init__.py").is_file() or base.with_suffix(".py").is_file()


def _tests(target: Target) -> list[Path]:
    folder = target.folder / "tests" if target.folder else None
    return sorted(folder.rglob("test_*.py")) if folder and folder.is_dir() else []


def _is_about(path: Path, target: Target) -> bool:
    """Whether a test speaks of the plugin: by an import, or as the one plugin of its package."""
    if target.kind != "built-in":
        return True
    package, _, name = target.module.rpartition(".")
    text = path.read_text(encoding="utf-8")
    return target.module in text or (f"from {package} import" in text and name in text)


def _words(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str(word)):
                yield word
            case _:
                pass


def _implementations(target: Target, hook: str) -> Iterator[str]:
    """Yield the names of the functions that implement *hook*: a test may call one by its own name."""
    for path in target.sources:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = " ".join(map(ast.unparse, node.decorator_list))
                if f"implements({hook}" in marks or f"implements(hookspecs.{hook}" in marks:
                    yield node.name
