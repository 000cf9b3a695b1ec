"""The shape of the house: sizes, frozen values, no mocks, no trace of the machine that it was made on."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import ROOT, Import, functions, imports, lines_without_docstrings, modules
from tests.house.test_layers import LAYERS

OURS = modules("gsd_core", "plugins")
WRITTEN_IN_ONE_BREATH = {"StepId"}
"""Values without ``kw_only``: an id is one word."""


def test_a_module_is_one_noun() -> None:
    long = {module.where: n for module in OURS if (n := lines_without_docstrings(module.tree)) > 400}

    assert long == {}


def test_a_function_fits_in_a_glance() -> None:
    long = {
        f"{module.where}:{node.lineno} {node.name}": n
        for module in OURS
        for node in functions(module)
        if (n := lines_without_docstrings(node)) > 50
    }

    assert long == {}


def test_nine_functions_in_ten_are_short() -> None:
    lengths = sorted(lines_without_docstrings(node) for module in OURS for node in functions(module))

    assert lengths[len(lengths) // 2] <= 7
    assert lengths[len(lengths) * 9 // 10] <= 25


def test_every_return_is_annotated() -> None:
    bare = [f"{m.where}:{node.lineno} {node.name}" for m in OURS for node in functions(m) if not node.returns]

    assert bare == []


def test_every_module_and_every_public_name_says_what_it_is() -> None:
    silent = [module.where for module in OURS if module.tree.body and not ast.get_docstring(module.tree)]
    names = [
        f"{m.where}:{n.lineno} {n.name}" for m in OURS for n in _public(m.tree) if not ast.get_docstring(n)
    ]

    assert [*silent, *names] == []


def _public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name[0] == "_":
            continue
        if not node.name.startswith("test_") and "overload" not in map(ast.unparse, node.decorator_list):
            yield node


def test_nothing_is_mocked() -> None:
    everything = modules("gsd_core", "plugins", "contrib", "tests", "docs")
    mocked = [f"{m.where}:{f.line}" for m in everything for f in imports(m) if _is_mock(f)]

    assert mocked == []


def _is_mock(found: Import) -> bool:
    return "mock" in (found.name, *found.module.split("."))


@pytest.mark.parametrize("name", LAYERS["words"])
def test_values_are_frozen_and_take_keywords(name: str) -> None:
    [module] = [module for module in OURS if module.name == f"gsd_core.{name}"]
    classes = [node for node in module.tree.body if isinstance(node, ast.ClassDef)]
    loose = {node.name for node in classes if _is_loose(node)}

    assert loose <= WRITTEN_IN_ONE_BREATH


def _is_loose(node: ast.ClassDef) -> bool:
    bases = {ast.unparse(base) for base in node.bases}
    if bases:
        return False
    return [ast.unparse(decorator) for decorator in node.decorator_list] != ["frozen(kw_only=True)"]


HERE = ("/wo" + "rk/", "/tm" + "p/w", "py" + "pi.", "pythonhos" + "ted", "registry." + "npm")
"""Folders of the machine that this was made on, and hosts of registries: in pieces, not to be found here."""


def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    names = [name for name in listed.decode().split("\0") if name]
    return [ROOT / name for name in names] or [p for p in ROOT.rglob("*") if ".venv" not in p.parts]


def test_no_file_names_a_folder_of_this_machine_or_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)} names {word}"
        for path in files()
        if path.is_file()
        for word in HERE
        if word.encode() in path.read_bytes()
    ]

    assert found == []
