"""The test cases of a check are read from what its runner reports as data."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from gsd_core.git import Git
from gsd_core.model.checks import CheckResult
from gsd_core.run.check_output import HIDDEN_FAILURE
from gsd_core.run.checkout import checkout_of
from gsd_core.run.test_cases import read_cases

from . import harness as h
from .test_checkout import Gate, commit, write

PYTHON = """
import unittest

class Adding(unittest.TestCase):
    def test_good(self):
        self.assertEqual(1 + 1, 2)

    def test_bad(self):
        self.assertEqual(1 + 1, 3)

    @unittest.skip("later")
    def test_later(self):
        pass
"""
JAVASCRIPT = """
const { describe, it } = require("node:test");
const assert = require("node:assert");

describe("adding", () => {
  it("good", () => assert.equal(1 + 1, 2));
  it("bad", () => assert.equal(1 + 1, 3));
  it("later", { skip: true }, () => {});
});
"""
RUN_ANYWHERE = """
IMPORTS

describe("adding", () => {
  it("good", () => {});
  it("bad", () => { throw new Error("not 3"); });
  it.skip("later", () => {});
});
"""
GO = """
package adder

import "testing"

func TestGood(t *testing.T) { t.Run("inner", func(t *testing.T) {}) }
func TestBad(t *testing.T)  { t.Fatal("not 3") }
func TestLater(t *testing.T) { t.Skip() }
"""
CARGO = "\nrunning 2 tests\ntest it_adds ... ok\ntest it_fails ... FAILED\ntest later ... ignored\n"
JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="s">
<testcase classname="org.Adding" name="good"/>
<testcase classname="org.Adding" name="bad"><failure message="no"/></testcase>
</testsuite></testsuites>"""


def run(root: Path, command: str) -> CheckResult:
    """Return the result of *command* in a checkout of the project."""

    async def checked() -> CheckResult:
        async with checkout_of(Git(root)) as clean:
            assert clean is not None
            return await clean.run(command, Gate(), timedelta(minutes=2))

    return asyncio.run(checked())


def ends(result: CheckResult) -> dict[str, str]:
    return {case.name: case.outcome for case in result.cases}


@pytest.mark.parametrize(
    ("name", "text", "command", "cases"),
    [
        ("test_adder.py", PYTHON, "{python} -m unittest", "test_adder.Adding.test_"),
        ("test_adder.py", PYTHON, "{python} -m pytest -q", "test_adder.py::Adding::test_"),
        ("adder.test.js", JAVASCRIPT, "node --test", "adder.test.js > adding > "),
        ("test_adder.py", PYTHON, "PYTHONPATH=. {python} -m unittest", "test_adder.Adding.test_"),
        ("adder.test.js", JAVASCRIPT, "NODE_OPTIONS=--no-warnings node --test", "adder.test.js > adding > "),
    ],
)
def test_the_cases_of_a_runner_are_known_and_what_it_prints_for_people_stays(
    tmp_path: Path, name: str, text: str, command: str, cases: str
) -> None:
    root = h.repository(tmp_path / "project")
    write(root, name, text)
    commit(root)
    command = command.format(python=sys.executable)

    result = run(root, command)

    assert ends(result) == {f"{cases}good": "passed", f"{cases}bad": "failed", f"{cases}later": "skipped"}
    assert result.exit == 1
    assert "GSD_CASES" not in result.output
    assert "junitxml" not in result.output
    assert h.git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize("hidden", ["| grep -c test_good", "; echo ended"])
def test_a_check_that_hides_that_test_cases_fail_does_not_pass(tmp_path: Path, hidden: str) -> None:
    root = h.repository(tmp_path / "project")
    write(root, "test_adder.py", PYTHON)
    commit(root)

    result = run(root, f"{sys.executable} -m pytest -v {hidden}")

    assert (result.exit, result.ok, result.flaw) == (0, False, HIDDEN_FAILURE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "imports"),
    [
        ("npx --offline jest", 'const { describe, it } = require("@jest/globals");'),
        ("npx --offline vitest run", 'import { describe, it } from "vitest";'),
        ("npx --offline mocha '*.test.js'", ""),
    ],
)
def test_the_cases_of_the_runners_of_javascript_are_known(tmp_path: Path, command: str, imports: str) -> None:
    tools = Path(os.environ.get("GSD_PEER_DIR", "/nowhere"), "tools", "node_modules")
    if not (tools / "jest").is_dir():
        reason = "no runners of JavaScript tests: see tests/peer/install.sh"
        pytest.fail(reason) if "GSD_PEER_DIR" in os.environ else pytest.skip(reason)
    root = h.repository(tmp_path / "project")
    shutil.copytree(tools, root / "node_modules", symlinks=True)
    write(root, ".gitignore", "node_modules\n")
    write(root, "package.json", '{"type": "module"}' if "import " in imports else "{}")
    write(root, "adder.test.js", RUN_ANYWHERE.replace("IMPORTS", imports))
    commit(root)

    result = run(root, command)

    name = "adder.test.js > adding > "
    assert ends(result) == {f"{name}good": "passed", f"{name}bad": "failed", f"{name}later": "skipped"}
    assert result.exit


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_the_cases_of_go_have_their_package_and_its_subtests(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    write(root, "go.mod", "module example.com/adder\n\ngo 1.19\n")
    write(root, "adder_test.go", GO)
    commit(root)

    assert ends(run(root, "go test ./...")) == {
        "example.com/adder.TestGood": "passed",
        "example.com/adder.TestGood/inner": "passed",
        "example.com/adder.TestBad": "failed",
        "example.com/adder.TestLater": "skipped",
    }


def test_a_check_that_does_not_work_with_reporters_runs_without_them(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    write(root, "adder.test.js", JAVASCRIPT.replace("1 + 1, 3", "1 + 1, 2"))
    commit(root)

    # Node.js refuses a reporter without a destination beside others with one.
    result = run(root, "node --test --test-reporter=tap")

    assert (result.ok, result.cases) == (True, ())


def test_the_cases_of_any_other_runner_are_in_the_xml_that_the_check_wrote(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    write(root, "old.xml", JUNIT.replace("good", "of yesterday"))
    write(root, "new.xml.in", JUNIT)
    commit(root)

    result = run(root, "mkdir -p build && cp new.xml.in build/report.xml")

    assert ends(result) == {"org.Adding.good": "passed", "org.Adding.bad": "failed"}
    assert result.ok, "the report may be what the project makes"


def test_reports_that_cannot_be_read_count_for_nothing(tmp_path: Path) -> None:
    reports, tree = tmp_path / "reports", tmp_path / "tree"
    reports.mkdir()
    tree.mkdir()
    (reports / "a.jsonl").write_text('{"file": "x", "titles": ["one"], "outcome": "passed"}\nnot JSON\n')
    (reports / "b.xml").write_text("<testsuite><testcase")
    (reports / "c.json").write_text('{"testResults": [{"name": 3}]}')
    (reports / "d.jsonl").symlink_to("/etc/passwd")
    (reports / "e.json").write_text("[" * 200_000)
    (reports / "f.xml").write_text("<a>" * 100_000)

    found = read_cases(reports, tree, CARGO, 0)

    assert [(case.name, case.outcome) for case in found] == [
        ("x > one", "passed"),
        ("it_adds", "passed"),
        ("it_fails", "failed"),
        ("later", "skipped"),
    ]
