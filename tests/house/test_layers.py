"""Who may import whom: the order of the rooms, and the public doors that plugins use."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest

from tests.house.source import ROOT, Import, Module, imports, modules

LAYERS: dict[str, tuple[str, ...]] = {
    "words": (
        "errors", "ids", "checks", "usage", "gap", "question", "notice", "event", "agent", "step",
        "planning.model", "planning.changes",
    ),
    "ground": (
        "planning", "machine", "journal", "git", "text", "processes", "bound", "convert", "settings", "trust",
        "importing",
    ),
    "doors": (
        "", "mark", "hookspecs", "hooks", "plugins", "discovery", "fit", "shapes", "border", "guard", "calls",
        "onion", "contribute", "subscribe", "watchdog",
    ),
    "work": ("run",),
    "faces": ("views", "testing", "cli", "__main__"),
}  # fmt: skip
"""The rooms in their layers; a room may use what lies below its own layer."""

BESIDE = {
    "settings": {"bound", "convert"},
    "planning": {"text"},
    "testing": set[str](),
    "views": set[str](),
    "cli": {"views", "testing"},
    "__main__": {"cli"},
}
"""Neighbours that may use one another; words and doors may as they like."""

KEPT_IN: dict[str, set[str]] = {
    "click": {"cli", "testing"},
    "rich": {"cli"},
    "rich_click": {"cli"},
    "pluggy": {"mark", "hookspecs", "hooks", "plugins", "fit", "calls", "onion", "contribute"},
    "apsw": {"journal"},
    "filelock": {"journal"},
    "cattrs": {"journal"},
    "ruamel": {"planning"},
    "platformdirs": {"settings"},
    "pytest": {"testing"},
}
"""Which rooms of the core may use a library; attrs is everywhere, and no other library anywhere."""

DISTRIBUTIONS = {"claude-agent-sdk": "claude_agent_sdk", "rich-click": "rich_click", "ruamel.yaml": "ruamel"}


def room(name: str) -> str:
    """Return the room of a module of the core: ``gsd_core.run.loop`` → ``run``."""
    rest = name.removeprefix("gsd_core").lstrip(".")
    return rest if rest in LAYERS["words"] else rest.partition(".")[0]


def layer(of: str) -> int:
    return next(n for n, rooms in enumerate(LAYERS.values()) if of in rooms)


def target(found: Import) -> str:
    """Return the module that is meant: a name imported from a package may be a module of it."""
    whole = f"{found.module}.{found.name}"
    return whole if whole in {module.name for module in modules("gsd_core")} else found.module


def steps(found: Import) -> Iterator[tuple[str, str]]:
    if found.module.split(".")[0] == "gsd_core":
        here, there = room(found.by), room(target(found))
        if here != there:
            yield here, there


def test_a_module_imports_only_what_lies_below_its_room() -> None:
    wrong = [
        f"{module.where}:{found.line}: {here or 'the package'} may not use {there}"
        for module in modules("gsd_core")
        for found in imports(module)
        for here, there in steps(found)
        if not may_use(here, there)
    ]

    assert wrong == []


def may_use(here: str, there: str) -> bool:
    if layer(there) == layer(here):
        return list(LAYERS)[layer(here)] in ("words", "doors") or there in BESIDE.get(here, set())
    return layer(there) < layer(here)


def test_views_know_nothing_of_the_running_of_a_run() -> None:
    for module in modules("gsd_core/views"):
        used = {there for found in imports(module) for _, there in steps(found)}

        assert used <= {*LAYERS["words"], "machine", "journal", "planning", "text"}, module.where


def test_a_library_stays_in_its_room() -> None:
    wrong = [
        f"{module.where}:{found.line} uses {library}"
        for module in modules("gsd_core")
        for found in imports(module)
        if (library := found.module.split(".")[0]) not in ("attrs", "gsd_core", *sys.stdlib_module_names)
        and room(module.name) not in KEPT_IN.get(library, set())
        and not found.typing
    ]

    assert wrong == []


def test_only_the_callers_touch_pluggys_hook_object() -> None:
    users = {
        module.name
        for module in modules("gsd_core", "plugins")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "hook" and "manager" in ast.unparse(node.value)
    }

    assert users == {"gsd_core.plugins.calling"}


IMPURE = {"asyncio", "os", "io", "time", "socket", "subprocess", "threading", "random", "secrets", "pathlib",
          "tempfile", "shutil", "logging", "urllib", "http", "uuid"}  # fmt: skip
ASKS_THE_WORLD = {"now", "utcnow", "today", "open", "print", "input", "getenv", "read_text", "write_text"}


@pytest.mark.parametrize("module", modules("gsd_core/machine"), ids=lambda module: module.name)
def test_the_machine_is_pure(module: Module) -> None:
    used = {found.module.split(".")[0] for found in imports(module)} & IMPURE
    called = {_called(node) for node in ast.walk(module.tree) if isinstance(node, ast.Call)} & ASKS_THE_WORLD
    waits = [node for node in ast.walk(module.tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]

    assert (used, called, waits) == (set(), set(), [])


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return ""


QUIET = {"__future__", "collections", "typing", "datetime", "decimal", "pathlib", "re", "hashlib", "secrets"}


@pytest.mark.parametrize("name", LAYERS["words"])
def test_words_do_no_io(name: str) -> None:
    [module] = [module for module in modules("gsd_core") if module.name == f"gsd_core.{name}"]
    used = {found.module.split(".")[0] for found in imports(module)} - {"gsd_core", "attrs"}

    assert used <= QUIET


@cache
def dependencies(project: str) -> set[str]:
    """Return the packages that a ``pyproject.toml`` declares, as they are imported."""
    data = tomllib.loads((ROOT / project).read_text("utf-8"))
    names = [re.split(r"[<>=~!\[; ]", line)[0] for line in data["project"].get("dependencies", [])]
    return {DISTRIBUTIONS.get(name, name.replace("-", "_")) for name in names}


PUBLIC = re.compile(r"gsd_core(\.hookspecs|\.planning(\.\w+)*|\.testing(\.\w+)*)?")
PLUGIN_ROOT = re.compile(r"gsd_plugins(\.\w+)?")


def test_built_in_plugins_use_public_doors_only() -> None:
    assert private(modules("plugins"), lambda module: "pyproject.toml") == []


def test_example_packages_use_public_doors_only() -> None:
    packages = tuple(module for module in modules("contrib") if "/src/" in module.where)

    assert packages
    assert private(packages, lambda module: "/".join([*module.where.split("/")[:2], "pyproject.toml"])) == []


def private(among: Iterable[Module], project: Callable[[Module], str]) -> list[str]:
    return [
        f"{module.where}:{found.line} imports {found.module}"
        for module in among
        for found in imports(module)
        if not _is_public(found, module, project(module))
    ]


def _is_public(found: Import, module: Module, project: str) -> bool:
    root = found.module.split(".")[0]
    own = ".".join(module.name.split(".")[: 2 if root == "gsd_plugins" else 1])
    if found.module == own or found.module.startswith(f"{own}."):
        return True
    if root == "gsd_core":
        return PUBLIC.fullmatch(found.module) is not None
    if root == "gsd_plugins":
        return PLUGIN_ROOT.fullmatch(found.module) is not None
    return root in sys.stdlib_module_names or root in dependencies(project)


def test_every_declared_dependency_is_used() -> None:
    everything = (found for module in modules("gsd_core", "plugins") for found in imports(module))
    used = {found.module.split(".")[0] for found in everything}

    assert dependencies("pyproject.toml") <= used
