"""Conventions that hold in the whole repository: docstrings, frozen values, no mocks, no local paths."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.package.source import ROOT, Import, Module, imports, modules
from tests.package.test_layers import PARTS, part_of

OURS = modules("gsd_core", "plugins")
VALUES = [
    module
    for module in OURS
    if module.name.startswith("gsd_core") and PARTS[part_of(module.name)] == "values"
]
POSITIONAL = {"StepId", "Serializer"}
"""Classes that take positional arguments: a step id is read as one word, a serializer like a namedtuple."""


def test_every_module_and_every_public_name_has_a_docstring() -> None:
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


@pytest.mark.slow
def test_nothing_is_mocked() -> None:
    everything = modules("gsd_core", "plugins", "contrib", "tests", "docs", containing="mock")
    mocked = [f"{m.where}:{item.line}" for m in everything for item in imports(m) if _is_mock(item)]

    assert mocked == []


def _is_mock(item: Import) -> bool:
    return "mock" in (item.name, *item.module.split("."))


@pytest.mark.parametrize("module", VALUES, ids=lambda module: module.name)
def test_values_are_frozen_and_take_keyword_arguments(module: Module) -> None:
    classes = [node for node in module.tree.body if isinstance(node, ast.ClassDef) and not node.bases]
    loose = {node.name for node in classes if not _is_frozen(node)}

    assert loose <= POSITIONAL


def _is_frozen(node: ast.ClassDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return decorators in (["frozen(kw_only=True)"], ["attrs.frozen(kw_only=True)"])


def test_only_one_place_knows_how_gsd_starts_itself() -> None:
    """Without ``-P``, Python imports modules from the repository it is started in (``own_command``)."""
    starts = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("gsd_core", "plugins", "contrib")
        for path in (ROOT / folder).rglob("*.py")
        if "tests" not in path.relative_to(ROOT).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.List, ast.Tuple))
        for one, two in pairwise(ast.unparse(element) for element in node.elts)
        if one == "sys.executable" and two not in ("'-P'", "'-I'", "'-c'")
    ]

    assert starts == []


LOCAL = ("/wo" + "rk/", "/tm" + "p/w", "py" + "pi.", "pythonhos" + "ted", "registry." + "npm")
"""Local folders and registry hosts; written in pieces so that this file does not contain them."""


def test_no_file_names_a_local_folder_or_a_package_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)} names {word}"
        for path in _files()
        if path.is_file()
        for word in LOCAL
        if word.encode() in path.read_bytes()
    ]

    assert found == []


def _files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout
    names = [name for name in listed.decode().split("\0") if name]
    # An unpacked source distribution is not a repository.
    return [ROOT / name for name in names] or [p for p in ROOT.rglob("*") if ".venv" not in p.parts]


def test_the_page_has_one_connection_for_all_that_it_follows() -> None:
    """A browser allows six connections to a server, and each ``EventSource`` keeps one."""
    sources = [*(ROOT / "plugins/gsd_plugins/web/frontend/src").rglob("*.ts*")]
    opened = [path.name for path in sources if "new WebSocket(" in path.read_text("utf-8")]
    streams = [path.name for path in sources if "EventSource(" in path.read_text("utf-8")]

    assert (opened, streams) == (["link.ts"], [])
