"""Has ``unittest`` write the result of each test case into the folder ``$GSD_CASES``.

Python imports this module when it starts, because its folder is in ``PYTHONPATH``; it imports the one that it
hides. ``unittest`` itself is not imported before a program does, which would take time in each process.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

HERE = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes longer to import than all of this


class _Finder:
    """Changes ``unittest.result`` when it is imported, and finds nothing else."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != "unittest.result":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def execute(module: ModuleType) -> None:
                run(module)
                _report(module.TestResult)

            spec.loader.exec_module = execute  # type: ignore[method-assign]
        return spec


def _report(result: Any) -> None:
    outcomes = {"addSuccess": "passed", "addExpectedFailure": "passed", "addSkip": "skipped"}
    failures = dict.fromkeys(("addFailure", "addError", "addUnexpectedSuccess"), "failed")
    for name, outcome in {**outcomes, **failures}.items():
        setattr(result, name, _writing(getattr(result, name), outcome))


def _writing(method: Any, outcome: str) -> Any:
    def add(self: Any, test: Any, *rest: Any) -> Any:
        path = os.path.join(os.environ["GSD_CASES"], f"unittest-{os.getpid()}.jsonl")  # noqa: PTH118
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
            print(json.dumps({"file": "", "titles": [test.id()], "outcome": outcome}), file=file)
        return method(self, test, *rest)

    return add


def _start() -> None:
    sys.meta_path.insert(0, _Finder())
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    itself = sys.modules.pop(__name__)
    hidden = find_spec(__name__)
    if hidden and hidden.loader:
        itself = sys.modules[__name__] = module_from_spec(hidden)
        hidden.loader.exec_module(itself)
    sys.modules[__name__] = itself


if __name__ == "sitecustomize" and os.environ.get("GSD_CASES"):
    _start()
