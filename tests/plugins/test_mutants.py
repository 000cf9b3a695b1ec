"""The built-in faults: each file stays valid, and says what was changed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gsd_core import SourceFile
from gsd_plugins.must_haves.mutants import mutants_of
from gsd_plugins.must_haves.trees import parse

PYTHON = """import os

class Cart:
    \"\"\"A cart of 20 items.\"\"\"

    def total(self, prices):
        \"\"\"Return the sum of 20.\"\"\"
        if len(prices) >= 20 and prices:
            return "é too many"
        return sum(prices)

    def half(self): return self.total / 2
"""
TYPESCRIPT = """import { a } from "./a20";
export const half = (x: number): number => x / 2;
export class Cart {
  total(prices: number[]): number {
    return prices.length === 0 || !prices ? 0 : prices.reduce((a, b) => a + b);
  }
}
exports.twice = function (x) { return x * 2 }
"""
GO = """package cart

import "fmt"

func (c *Cart) Total(prices []int) (int, error) {
	if len(prices) > 20 {
		return 0, fmt.Errorf("too many")
	}
	return sum(prices), nil
}

func Print(c Cart) { fmt.Println(c) }
"""


def found(path: str, text: str) -> list[tuple[str, str]]:
    mutants = mutants_of(SourceFile(root=Path(), path=path, text=text))
    return [(one.name, one.kind) for one in mutants]


def test_functions_values_and_conditions_are_found_but_no_documentation_and_no_imports() -> None:
    assert found("cart.py", PYTHON) == [
        ("Cart.total", "function"),
        (">=", "condition"),
        ("20", "value"),
        ("and", "condition"),
        ("é too many", "value"),
        ("Cart.half", "function"),
        ("2", "value"),
    ]
    assert [name for name, kind in found("cart.ts", TYPESCRIPT) if kind == "function"] == [
        "half",
        "Cart.total",
        "twice",
    ]
    assert [name for name, kind in found("cart.go", GO) if kind == "function"] == ["Cart.Total", "Print"]
    assert found("cart.rb", "def total\n  20\nend\n") == []


@pytest.mark.parametrize(("path", "text"), [("cart.py", PYTHON), ("cart.ts", TYPESCRIPT), ("cart.go", GO)])
def test_the_file_stays_valid(path: str, text: str) -> None:
    grammar = {"cart.py": "python", "cart.ts": "typescript", "cart.go": "go"}[path]
    mutants = [*mutants_of(SourceFile(root=Path(), path=path, text=text))]

    assert mutants
    for mutant in mutants:
        changed = mutant.apply(text)
        assert changed != text
        assert not parse(grammar, changed).has_error, changed  # type: ignore[arg-type]
        if path == "cart.py":
            ast.parse(changed)


def test_what_a_go_function_returns_instead_has_its_types() -> None:
    [total, *_] = mutants_of(SourceFile(root=Path(), path="cart.go", text=GO))

    assert total.text == " if true { return *new(int), *new(error) };"
