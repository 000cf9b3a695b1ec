"""The test cases of a check, as data from the test runners that it starts.

Beside the output that people read, pytest, unittest, ``node --test``, Jest, Vitest and Mocha write their
cases into a folder: environment variables add a reporter to each. Go's and Cargo's cases are lines of the
output in a fixed form, those of any other runner are in a JUnit XML file that the check writes. A runner that
ignores the variables reports no cases, and its check counts as a whole.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree

from gsd_core.files import read_below
from gsd_core.model.checks import CaseResult, Outcome
from gsd_core.sanitize import one_line

REPORTERS = Path(__file__).with_name("reporters")
MAX_CASES = 5_000
MAX_NAME = 300
MAX_REPORT = 20_000_000
"""Bytes of a report; a longer one is not read."""

_GO_CASE = re.compile(r"^ *--- (?P<outcome>PASS|FAIL|SKIP): (?P<name>\S+) \(")
_GO_PACKAGE = re.compile(r"^(?:ok|FAIL)\s+(?P<package>\S+)\s+(?:[\d.]+s|\(cached\))")
_CARGO_CASE = re.compile(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<outcome>ok|FAILED|ignored)\b")
_SAID: dict[str, Outcome] = {
    "PASS": "passed",
    "FAIL": "failed",
    "SKIP": "skipped",
    "ok": "passed",
    "FAILED": "failed",
    "ignored": "skipped",
}
"""The words of Go and of Cargo."""
_JUNIT_ENDS = {"failure": "failed", "error": "failed", "skipped": "skipped"}


def variables(folder: Path, command: str) -> dict[str, str]:
    """Return the variables with which the test runners of *command* report their cases to *folder*."""
    script = f'"{REPORTERS / "cases.cjs"}"'
    # `go build -v` and `go vet -v` print what they have compiled, which differs from run to run.
    only_builds = re.search(r"\bgo [a-z]", command) and "go test" not in command
    return {
        "GSD_CASES": str(folder),
        "PYTHONPATH": str(REPORTERS / "python"),
        "PYTEST_ADDOPTS": f"--junitxml={shlex.quote(str(folder / 'pytest.xml'))} -o junit_family=xunit1",
        "NODE_OPTIONS": f"--require={script} --test-reporter=spec --test-reporter-destination=stdout"
        f" --test-reporter={script} --test-reporter-destination=stderr",
        "GOFLAGS": "" if only_builds else "-v",
    }


def keeping_variables(command: str) -> str:
    """Return *command*, where it sets one of these variables itself, with its own value beside ours."""
    named = r"(?<![\w$])({names})="
    command = re.sub(named.format(names="PYTHONPATH"), r'\g<0>"$\1:"', command)
    return re.sub(named.format(names="PYTEST_ADDOPTS|NODE_OPTIONS|GOFLAGS"), r'\g<0>"$\1 "', command)


def read_cases(folder: Path, tree: Path, output: str, began: float) -> tuple[CaseResult, ...]:
    """Return the cases that were reported to *folder*, in *output*, or to files that changed since *began*.

    *began* is a time as in ``os.stat``. One that has failed in any of several runs has failed. What a runner
    of the project wrote may be anything, so what cannot be read counts for nothing.
    """
    found = dict[str, Outcome]()
    for name, outcome in (*_in_folder(folder, tree), *_in_output(output), *_in_tree(tree, began)):
        if name and (found.get(name) != "failed" or outcome == "failed") and len(found) < MAX_CASES:
            found[one_line(name, MAX_NAME)] = outcome
    return tuple(CaseResult(name=name, outcome=outcome) for name, outcome in found.items())


def some_failed(folder: Path, tree: Path, output: str) -> bool:
    """Whether a runner reported a case that failed; XML in the tree may be what the project itself makes."""
    return any(outcome == "failed" for _, outcome in (*_in_folder(folder, tree), *_in_output(output)))


def _in_folder(folder: Path, tree: Path) -> Iterator[tuple[str, Outcome]]:
    for path in sorted(folder.iterdir()):
        text = _read(folder, path.name)
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if path.suffix == ".xml":
                yield from _junit(text)
            elif path.suffix == ".json":
                yield from _jest(json.loads(text), tree)
            else:
                for line in text.splitlines():
                    case = json.loads(line)
                    yield _name(case["file"], case["titles"], tree), _known(case["outcome"])


def _read(folder: Path, name: str) -> str:
    try:
        return read_below(folder, name, limit=MAX_REPORT).decode("utf-8", "replace")
    except OSError:
        return ""


def _name(file: str, titles: list[str], tree: Path) -> str:
    inside = {str(tree), str(tree.resolve())}
    bare = next((file.removeprefix(f"{one}/") for one in inside if file.startswith(f"{one}/")), file)
    return " > ".join(filter(None, [bare, *titles]))


def _known(outcome: str) -> Outcome:
    return outcome if outcome in get_args(Outcome) else "skipped"  # type: ignore[return-value]


def _jest(report: Any, tree: Path) -> Iterator[tuple[str, Outcome]]:
    """Yield the cases of Jest's ``--json``, which Vitest writes too."""
    for file in report["testResults"]:
        for case in file["assertionResults"]:
            titles = [*case.get("ancestorTitles", ()), case["title"]]
            yield _name(file["name"], titles, tree), _known(case["status"])


def _junit(text: str) -> Iterator[tuple[str, Outcome]]:
    """Yield the cases of a JUnit XML report; pytest's are named as on its command line."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return
    for case in root.iter("testcase"):
        name, group, file = (case.get(key, "") for key in ("name", "classname", "file"))
        if file.endswith(".py"):
            inner = group.removeprefix(file[:-3].replace("/", ".")).strip(".")
            name = "::".join(filter(None, [file, *inner.split("."), name]))
        else:
            name = ".".join(filter(None, [group, name]))
        ends = (_JUNIT_ENDS[child.tag] for child in case if child.tag in _JUNIT_ENDS)
        yield name, _known(next(ends, "passed"))


def _in_output(output: str) -> Iterator[tuple[str, Outcome]]:
    waiting = list[tuple[str, Outcome]]()
    for line in output.splitlines():
        if case := _GO_CASE.match(line):
            waiting.append((case["name"], _SAID[case["outcome"]]))
        elif package := _GO_PACKAGE.match(line):
            # The line that ends a package comes after its cases.
            for name, outcome in waiting:
                yield f"{package['package']}.{name}", outcome
            waiting.clear()
        elif case := _CARGO_CASE.match(line):
            yield case["name"], _SAID[case["outcome"]]


def _in_tree(tree: Path, began: float) -> Iterator[tuple[str, Outcome]]:
    for folder, inner, names in os.walk(tree):
        inner[:] = [name for name in inner if name not in (".git", "node_modules")]
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                if path.suffix == ".xml" and path.stat().st_mtime >= began:
                    text = _read(tree, str(path.relative_to(tree)))
                    if re.match(r"(?:<\?xml[^>]*>)?\s*<testsuites?\b", text):
                        yield from _junit(text)
