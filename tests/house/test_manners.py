"""What holds for the whole: quick starts, errors that travel, built-in plugins that keep every contract."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from gsd_core.errors import GsdError
from tests.house.source import ROOT, modules

HEAVY = ("claude_agent_sdk", "mcp", "apprise", "starlette", "tenacity", "cattrs", "ruamel")
ASKED = (["--help"], ["run", "--help"], ["plugins"], ["status"], ["--version"])
TOLD = """
import sys
from gsd_core.cli import main
sys.argv = ["gsd", *{args!r}]
try:
    main()
except SystemExit as end:
    code = end.code
loaded = [name for name in {heavy!r} if name in sys.modules]
sys.stderr.write(f"exit {{code}}, loaded {{loaded}}")
"""


@pytest.mark.parametrize("args", ASKED, ids=" ".join)
def test_looking_loads_nothing_heavy(args: list[str]) -> None:
    heavy = HEAVY if args != ["status"] else HEAVY[:4]
    code = TOLD.format(args=args, heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True, check=False
    )

    assert done.stderr.endswith("exit 0, loaded []"), done.stderr


def error_classes() -> list[type[GsdError]]:
    """Return every error of ours, wherever it is declared."""
    for module in modules("gsd_core", "plugins"):
        if module.name.startswith(("gsd_core.", "gsd_plugins.")) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[GsdError]] = [GsdError]
    for kind in found:
        found += [
            sub for sub in kind.__subclasses__() if sub not in found and sub.__module__.startswith("gsd_")
        ]
    return found


def filled(kind: type[GsdError]) -> GsdError:
    """Make an error with something in every argument that it takes."""
    if kind.__init__ is Exception.__init__:
        return kind("it broke")
    given: dict[str, Any] = {}
    parameters = inspect.signature(kind).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for parameter in named:
        given[parameter.name] = _value(str(parameter.annotation), parameter.name)
    return kind(**given)


def _value(annotation: str, name: str) -> Any:
    if "datetime" in annotation:
        return datetime(2026, 1, 2, tzinfo=UTC)
    if "int" in annotation:
        return 7
    if "tuple" in annotation:
        return (f"a {name}",)
    return f"a {name}"


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling_with_all_that_it_carries(kind: type[GsdError]) -> None:
    error = filled(kind)
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is kind
    assert (again.args, vars(again), str(again)) == (error.args, vars(error), str(error))


def test_every_error_of_the_core_stands_in_the_tree_of_its_page() -> None:
    from gsd_core import errors

    own = [kind.__name__ for kind in error_classes() if kind.__module__ == "gsd_core.errors"]

    assert [name for name in own if f" {name} " not in f" {errors.__doc__} ".replace("\n", " ")] == []
