"""Which module may import which, and what plugins may import from the core.

A module may import what a lower layer contains. When a module moves, edit the tables below.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import cache

import pytest

from tests.package.source import ROOT, Import, Module, imports, modules

LAYERS: dict[str, tuple[str, ...]] = {
    "values": (
        "errors",
        "exit_codes",
        "codec",
        "model",
        "protected_paths",
        "serializer",
        "planning.model",
        "planning.changes",
    ),
    "files": ("files", "supervise", "own_process"),
    "storage": ("planning", "machine", "journal", "git", "sanitize", "processes", "programs", "settings"),
    "plugin boundary": ("", "api", "hook_markers", "hookspecs", "plugins", "trust"),
    "engine": ("run",),
    "interfaces": ("views", "project", "project_details", "testing", "cli", "__main__"),
}
"""The parts of ``gsd_core``, lowest layer first.

A part is a package, with everything in it, or a single module; of two that match, the longer name counts.
The empty name is ``gsd_core/__init__.py``.
"""

OPEN_LAYERS = {"values", "plugin boundary"}
"""Layers whose parts may import one another freely."""

SIDEWAYS: dict[str, set[str]] = {
    "planning": {"sanitize"},
    "journal": {"sanitize", "machine"},
    "git": {"programs"},
    "project": {"views", "project_details"},
    "project_details": {"views"},
    "cli": {"views", "project", "testing"},
    "__main__": {"cli"},
}
"""In the other layers: which parts of the same layer a part may import."""

VIEWS_USE = {*LAYERS["values"], *LAYERS["files"], "machine", "journal", "planning", "sanitize"}
"""All that ``views`` may import: what a view shows is derived from files and the journal, not from a run."""

LIBRARIES: dict[str, set[str]] = {
    "click": {"cli", "testing"},
    "rich": {"cli"},
    "packaging": {"cli", "plugins"},
    "pluggy": {"hook_markers", "hookspecs", "plugins"},
    "apsw": {"journal"},
    "filelock": {"journal"},
    "cattrs": {"codec", "settings"},
    "psutil": {"processes", "run"},
    "ruamel": {"planning"},
    "platformdirs": {"settings", "run"},
    "jsonschema": {"run"},
    "referencing": {"run"},
    "pytest": {"testing"},
}
"""Which parts may import a third-party library at run time; attrs may be imported everywhere."""

CALLS_HOOKS = {"gsd_core.plugins.calling"}
"""The only modules that may call plugins through pluggy, because the others would bypass the isolation."""

PURE = "gsd_core/machine"
"""The folder whose modules compute the next step from values alone."""

PUBLIC = re.compile(r"gsd_core(\.hookspecs|\.project|\.planning(\.\w+)*|\.testing(\.\w+)*)?")
"""What plugins may import from the core: ``gsd_core`` itself and these subpackages."""

PLUGIN_ROOT = re.compile(r"gsd_plugins(\.\w+)?")
"""What a built-in plugin may import from another one: its top-level module or package."""

DISTRIBUTIONS = {"claude-agent-sdk": "claude_agent_sdk", "ruamel.yaml": "ruamel"}
"""Import names of dependencies, where replacing ``-`` by ``_`` does not yield it."""

PARTS = {part: name for name, parts in LAYERS.items() for part in parts}
CORE = modules("gsd_core")


def part_of(module: str) -> str:
    """Return the part that a module of the core belongs to: ``gsd_core.run.loop`` → ``run``."""
    rest = module.removeprefix("gsd_core").lstrip(".")
    while rest and rest not in PARTS:
        rest = rest.rpartition(".")[0]
    return rest


def may_import(part: str, other: str) -> bool:
    order = list(LAYERS)
    if PARTS[part] == PARTS[other]:
        return PARTS[part] in OPEN_LAYERS or other in SIDEWAYS.get(part, set())
    return order.index(PARTS[other]) < order.index(PARTS[part])


def imported_parts(module: Module) -> list[tuple[Import, str]]:
    """Return the other parts of the core that *module* imports, each with the import."""
    names = {module.name for module in CORE}
    found: list[tuple[Import, str]] = []
    for item in imports(module):
        if item.module.split(".")[0] != "gsd_core":
            continue
        # `from gsd_core.planning import model` imports a module, not a name of the package.
        submodule = f"{item.module}.{item.name}"
        other = part_of(submodule if submodule in names else item.module)
        if other != part_of(module.name):
            found.append((item, other))
    return found


def test_the_table_of_layers_names_every_module_and_nothing_else() -> None:
    names = {module.name.removeprefix("gsd_core").lstrip(".") for module in CORE}
    missing = {name for name in names if name and not part_of(f"gsd_core.{name}")}

    assert (missing, set(PARTS) - names) == (set(), set())


def test_a_module_imports_lower_layers_only() -> None:
    wrong = [
        f"{module.where}:{item.line}: {part_of(module.name) or 'the package'} may not import {other}"
        for module in CORE
        for item, other in imported_parts(module)
        if not may_import(part_of(module.name), other)
    ]

    assert wrong == []


def test_views_do_not_depend_on_a_run() -> None:
    for module in modules("gsd_core/views"):
        assert {other for _, other in imported_parts(module)} <= VIEWS_USE, module.where


def test_a_library_is_imported_only_by_the_parts_that_own_it() -> None:
    wrong = [
        f"{module.where}:{item.line} imports {library}"
        for module in CORE
        for item in imports(module)
        if (library := item.module.split(".")[0]) not in ("attrs", "gsd_core", *sys.stdlib_module_names)
        and part_of(module.name) not in LIBRARIES.get(library, set())
        and not item.typing
    ]

    assert wrong == []


def test_only_the_callers_use_pluggys_hook_object() -> None:
    users = {
        module.name
        for module in modules("gsd_core", "plugins")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "hook" and "manager" in ast.unparse(node.value)
    }

    assert users == CALLS_HOOKS


IMPURE_MODULES = {
    *("asyncio", "os", "io", "time", "socket", "subprocess", "threading", "random", "secrets", "pathlib"),
    *("tempfile", "shutil", "logging", "urllib", "http", "uuid"),
}
IMPURE_CALLS = {"now", "utcnow", "today", "open", "print", "input", "getenv", "read_text", "write_text"}


@pytest.mark.parametrize("module", modules(PURE), ids=lambda module: module.name)
def test_the_state_machine_is_pure(module: Module) -> None:
    used = {item.module.split(".")[0] for item in imports(module)} & IMPURE_MODULES
    called = {_called(node) for node in ast.walk(module.tree) if isinstance(node, ast.Call)} & IMPURE_CALLS
    waits = [node for node in ast.walk(module.tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]

    assert (used, called, waits) == (set(), set(), [])


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


VALUE_IMPORTS = {
    "__future__",
    "enum",
    "collections",
    "typing",
    "datetime",
    "decimal",
    "pathlib",
    "re",
    "hashlib",
    "secrets",  # For random ids.
    "errno",  # For telling errors of the machine apart.
    "functools",  # For what is computed once.
    "cattrs",  # Converts values to JSON data and back.
    "fnmatch",  # For comparing names, like unicodedata.
    "operator",
    "types",
    "unicodedata",
}


@pytest.mark.parametrize(
    "module", [m for m in CORE if PARTS[part_of(m.name)] == "values"], ids=lambda m: m.name
)
def test_values_do_no_io(module: Module) -> None:
    used = {item.module.split(".")[0] for item in imports(module)} - {"gsd_core", "attrs"}

    assert used <= VALUE_IMPORTS


USED_EXTRAS = {"web"}
"""The extras with libraries that plugins import; the others are for development."""


@cache
def dependencies(project: str) -> set[str]:
    """Return the packages that a ``pyproject.toml`` declares, by their import names; also those of extras."""
    about = tomllib.loads((ROOT / project).read_text("utf-8"))["project"]
    extras = about.get("optional-dependencies", {})
    lines = [
        *about.get("dependencies", []),
        *(line for name in extras if name in USED_EXTRAS for line in extras[name]),
    ]
    names = [re.split(r"[<>=~!\[; ]", line)[0] for line in lines]
    return {DISTRIBUTIONS.get(name, name.replace("-", "_")) for name in names}


def test_built_in_plugins_import_public_names_only() -> None:
    assert private_imports(modules("plugins"), lambda module: "pyproject.toml") == []


def test_example_packages_import_public_names_only() -> None:
    packages = [module for module in modules("contrib") if "/src/" in module.where]

    assert packages
    assert (
        private_imports(packages, lambda module: "/".join([*module.where.split("/")[:2], "pyproject.toml"]))
        == []
    )


def private_imports(among: Iterable[Module], project: Callable[[Module], str]) -> list[str]:
    return [
        f"{module.where}:{item.line} imports {item.module}"
        for module in among
        for item in imports(module)
        if not _is_public(item, module, project(module))
    ]


def _is_public(item: Import, module: Module, project: str) -> bool:
    root = item.module.split(".")[0]
    own = ".".join(module.name.split(".")[: 2 if root == "gsd_plugins" else 1])
    if item.module == own or item.module.startswith(f"{own}."):
        return True
    if root == "gsd_core":
        return PUBLIC.fullmatch(item.module) is not None
    if root == "gsd_plugins":
        return PLUGIN_ROOT.fullmatch(item.module) is not None
    return root in sys.stdlib_module_names or root in dependencies(project)


def test_every_declared_dependency_is_used() -> None:
    everything = (item for module in modules("gsd_core", "plugins") for item in imports(module))
    used = {item.module.split(".")[0] for item in everything}

    # uvicorn imports it for WebSockets.
    assert dependencies("pyproject.toml") - {"websockets"} <= used
