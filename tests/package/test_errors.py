"""Every error can be pickled, and the error tree in the documentation is complete."""

from __future__ import annotations

import importlib
import inspect
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from gsd_core import errors
from gsd_core.errors import GsdError
from tests.package.source import modules


def error_classes() -> list[type[GsdError]]:
    """Return every error class of the core and the built-in plugins, wherever it is defined."""
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


def test_every_error_of_the_core_is_in_the_documented_tree() -> None:
    own = [kind.__name__ for kind in error_classes() if kind.__module__ == "gsd_core.errors"]
    tree = f" {errors.__doc__} ".replace("\n", " ")

    assert [name for name in own if f" {name} " not in tree] == []
