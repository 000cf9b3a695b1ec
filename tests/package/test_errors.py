"""Every error can be pickled and has one exit code, and the documented error tree is complete."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from gsd_core import errors
from gsd_core.errors import GsdError
from gsd_core.exit_codes import EXIT_CODE_MEANINGS, ExitCode, error_kind, exit_code, exit_code_of_kind
from tests.package.source import modules


def error_classes() -> list[type[GsdError]]:
    """Return every error class of the core and the built-in plugins, from any module."""
    for module in modules("gsd_core", "plugins"):
        if module.name.startswith(("gsd_core.", "gsd_plugins.")) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[GsdError]] = [GsdError]
    for kind in found:
        found += [
            sub for sub in kind.__subclasses__() if sub not in found and sub.__module__.startswith("gsd_")
        ]
    return found


def example(kind: type[GsdError]) -> GsdError:
    """Create an error with a value for every argument it takes."""
    if kind.__init__ is Exception.__init__:
        return kind("it broke")
    parameters = inspect.signature(kind).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return kind(**{p.name: _value(str(p.annotation), p.name) for p in named})


def _value(annotation: str, name: str) -> Any:
    if "datetime" in annotation:
        return datetime(2026, 1, 2, tzinfo=UTC)
    if "int" in annotation:
        return 7
    if "tuple" in annotation:
        return (f"a {name}",)
    return f"a {name}"


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling_with_all_its_data(kind: type[GsdError]) -> None:
    error = example(kind)
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is kind
    assert (again.args, vars(again), str(again)) == (error.args, vars(error), str(error))


def documented_tree() -> dict[str, tuple[str, int]]:
    """Return the documented parent and exit code of each error class in the docstring of the module."""
    tree: dict[str, tuple[str, int]] = {}
    ancestors: list[str] = []
    for line in inspect.cleandoc(errors.__doc__ or "").partition("::")[2].strip("\n").splitlines():
        indent, name, meaning = re.fullmatch(r"( *)(\w+) +(.*)", line).groups()  # type: ignore[union-attr]
        ancestors = [*ancestors[: len(indent) // 2 - 2], name]
        parent = ancestors[-2] if len(ancestors) > 1 else "Exception"
        code = re.search(r"\(exit (\d+)\)", meaning)
        tree[name] = (parent, int(code[1]) if code else tree[parent][1])
    return tree


def test_the_documented_tree_has_every_error_of_the_core_with_its_parent_and_exit_code() -> None:
    own = [kind for kind in error_classes() if kind.__module__ == "gsd_core.errors"]
    actual = {kind.__name__: (kind.__base__.__name__, int(exit_code(example(kind)))) for kind in own}  # type: ignore[union-attr]

    assert documented_tree() == actual


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_the_journal_keeps_the_exit_code_of_an_error(kind: type[GsdError]) -> None:
    derived: Any = type("FromAPlugin", (kind,), {"__module__": "some_plugin"})
    both: Any = type("AlsoAValueError", (ValueError, kind), {"__module__": "some_plugin"})
    for error in (example(kind), derived.__new__(derived), both.__new__(both)):
        assert exit_code_of_kind(error_kind(error)) == exit_code(error) == exit_code(example(kind))


def test_a_usage_limit_that_ends_a_run_counts_as_exhausted() -> None:
    assert exit_code_of_kind("Transient", limited=True) == ExitCode.EXHAUSTED
    assert exit_code_of_kind("Permanent", limited=True) == ExitCode.FAILED


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), json.JSONDecodeError("x", "", 0)])
def test_the_journal_keeps_the_built_in_class_of_any_other_error(error: Exception) -> None:
    assert error_kind(error) in ("ZeroDivisionError", "ValueError")
    assert exit_code_of_kind(error_kind(error)) == exit_code(error) == ExitCode.FAILED


def test_every_exit_code_is_explained() -> None:
    assert set(EXIT_CODE_MEANINGS) == set(ExitCode)
