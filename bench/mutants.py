"""Change one condition of the machine after another, and count the changes that its quick tests notice.

Run ``python bench/mutants.py [--show] [MODULE ...]`` from the root of the repository, in an environment with
the development requirements. MODULE is one of those in ``gsd_core/machine``; by default those that decide.
Each change is tried in a process of its own, with ``tests/machine``.

A condition is changed in three ways: a comparison becomes its opposite, ``and`` becomes ``or`` (and the other
way round), and the test of an ``if`` becomes its negation. A change that no test can notice, because it means
the same, counts as not noticed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import cast

import pytest

ROOT = Path(__file__).parents[1]
DECIDING = ("due", "fold", "claims", "obsolete")
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changed forms of a node that is a condition or a part of one."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        new = copy.deepcopy(node)
        new.ops = [OPPOSITES[type(node.ops[0])]()]
        yield new
    elif isinstance(node, ast.BoolOp):
        new_bool = copy.deepcopy(node)
        new_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new_bool
    elif isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, (ast.Compare, ast.NamedExpr)):
        new_if = copy.deepcopy(node)
        new_if.test = ast.UnaryOp(op=ast.Not(), operand=new_if.test)
        yield new_if


def mutants(source: str) -> Iterator[tuple[int, str, CodeType]]:
    """Yield the line, the text and the code of the module with each change."""
    for place, node in enumerate(ast.walk(ast.parse(source))):
        for new in changed(node):
            tree = ast.parse(source)
            old = list(ast.walk(tree))[place]
            for parent in ast.walk(tree):
                for name, value in ast.iter_fields(parent):
                    if value is old:
                        setattr(parent, name, new)
                    elif isinstance(value, list):
                        each = cast("list[ast.AST]", value)
                        setattr(parent, name, [new if one is old else one for one in each])
            text = ast.unparse(new).partition("\n")[0]
            code = compile(ast.fix_missing_locations(tree), "<changed>", "exec")
            yield getattr(node, "lineno", 0), text, code


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads a module from changed code."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the specification of the changed module."""
        return ModuleSpec(name, self) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed code in the new module."""
        exec(self.code, vars(module))


def is_noticed(name: str, code: CodeType) -> bool:
    """Whether the tests fail with this code in place of the module *name*."""
    if (child := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        sys.meta_path.insert(0, Changed(f"gsd_core.machine.{name}", code))
        # The tables first, because they are quick and notice the most.
        tables = ["tests/machine/test_decisions.py", "tests/machine/test_folding.py"]
        os._exit(
            int(
                pytest.main(
                    ["-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", *tables, "tests/machine"]
                )
            )
        )
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def main() -> None:
    """Print how many changes are noticed, and with ``--show`` those that are not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=DECIDING, metavar="MODULE")
    parser.add_argument("--show", action="store_true", help="print the changes that are not noticed")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in options.modules:
        found = list(mutants((ROOT / "gsd_core" / "machine" / f"{name}.py").read_text("utf-8")))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            noticed = list(pool.map(partial(is_noticed, name), [code for _, _, code in found]))
        print(f"{name}: {sum(noticed)} of {len(found)} changed conditions are noticed", flush=True)
        for (line, text, _), known in zip(found, noticed, strict=True):
            if options.show and not known:
                print(f"  {name}.py:{line}: {text}")


if __name__ == "__main__":
    main()
