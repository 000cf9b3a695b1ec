"""Checks that still pass without the work of their plan are marked; those that fail without it are not."""

from __future__ import annotations

import asyncio
import re
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core import Mutant, SourceFile, implements
from gsd_core.git import Git
from gsd_core.hookspecs import gsd_find_mutants
from gsd_core.model.checks import CheckResult
from gsd_core.planning.model import PhaseView, Plan, Requirement, Task
from gsd_core.plugins.calling import Hooks
from gsd_core.run.ablation import Ablation, ablation, without_work
from gsd_core.run.checkout import checkout_of
from gsd_core.run.verification import check_plans
from gsd_core.settings import LimitSettings
from gsd_core.testing import make_hooks
from gsd_plugins import must_haves

from . import harness as h
from .test_checkout import Gate, commit, write

RUN = "python3 -m unittest -q test_adder"
HOOKS = make_hooks(must_haves)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a function that is not done yet, and no tests."""
    root = h.repository(tmp_path / "project")
    write(root, "adder.py", "def add(a, b):\n    raise NotImplementedError\n")
    commit(root)
    return root


def measured(
    root: Path,
    *checks: str,
    time: timedelta = timedelta(minutes=1),
    promised: tuple[Requirement, ...] = (),
    slower: int = 1,
    hooks: Hooks = HOOKS,
    of: str = "HEAD",
) -> Ablation:
    """Return what is known about the checks of the plan whose only commit is *of*.

    There is as much time for faults as if the checks had been *slower* so many times.
    """
    git, limits = Git(root), LimitSettings(ablation=time)
    tasks = tuple(Task(number=number, name="t", check=check) for number, check in enumerate(checks, 1))
    plan = Plan(id="01-01", phase="1", summary="01-01-SUMMARY.md", tasks=tasks)
    commits = {plan.id: (h.git(root, "rev-parse", of).strip(),)}
    phase = PhaseView(project=root, number="1", name="Adding", plans=(plan,), commits=commits)
    phase = evolve(phase, requirements=tuple(one.id for one in promised))

    async def measure() -> Ablation:
        found = await check_plans(Gate(), phase, limits.check, git)
        assert all(one.result.ok for one in found.results), found.results
        checked = evolve(phase, checks=found.results)
        return await ablation(Gate(), git, hooks, checked, promised, limits, found.took * slower)

    return asyncio.run(measure())


def passes_without(root: Path, *checks: str) -> list[bool]:
    """Return for each check of the plan whether it passes without that plan too."""
    return [one.result.passes_without for one in measured(root, *checks).checks]


def test_work_that_was_renamed_later_is_taken_out_by_its_name_of_today(root: Path) -> None:
    write(root, "sums.py", "def total(numbers):\n    return sum(numbers)\n")
    write(root, "test_sums.py", TEST.replace("adder", "sums").format("sums.total([1, 2])"))
    commit(root)
    first = h.git(root, "rev-parse", "HEAD").strip()
    h.git(root, "mv", "sums.py", "totals.py")
    write(root, "test_sums.py", TEST.replace("adder", "totals").format("totals.total([1, 2])"))
    commit(root)

    found = measured(root, "python3 -m unittest -q test_sums", of=first)

    assert [one.result.passes_without for one in found.checks] == [False]
    assert found.gaps == ()


def test_work_that_was_deleted_later_is_not_measured(root: Path) -> None:
    write(root, "old.py", "def total(numbers):\n    return sum(numbers)\n")
    write(root, "test_adder.py", TEST.format("3"))
    commit(root)
    first = h.git(root, "rev-parse", "HEAD").strip()
    (root / "old.py").unlink()
    commit(root)

    found = measured(root, RUN, of=first)

    assert ([one.result.passes_without for one in found.checks], found.gaps) == ([False], ())


def test_a_test_that_uses_the_work_fails_without_it(root: Path) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    write(root, "test_adder.py", TEST.format("adder.add(1, 2)"))
    commit(root)
    before = h.git(root, "status", "--porcelain")

    assert passes_without(root, RUN) == [False]
    assert h.git(root, "status", "--porcelain") == before
    assert "return a + b" in (root / "adder.py").read_text()


TEST = """import unittest
import adder

class Adding(unittest.TestCase):
    def test_it(self):
        self.assertEqual({}, 3)
"""


def test_a_test_that_repeats_the_constant_and_a_check_that_hides_its_failure_pass_without_it(
    root: Path,
) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    write(root, "test_adder.py", TEST.format("1 + 2"))
    commit(root)

    assert passes_without(root, RUN, "python3 -c 'import adder; adder.add(1, 2)' || true") == [True, True]


def test_what_a_plan_adds_is_taken_out_and_its_documents_are_work_too(root: Path) -> None:
    write(root, "subtracter.py", "def subtract(a, b):\n    return a - b\n")
    write(root, "README.md", "Usage: add and subtract\n")
    commit(root)

    checks = "python3 -c 'import subtracter'", "grep -q Usage README.md", "python3 -c 'import adder'"
    assert passes_without(root, *checks) == [False, False, True]


@pytest.mark.parametrize(
    ("path", "text", "measured"),
    [
        ("lib.rs", "pub fn add() {}\n#[cfg(test)]\nmod tests {}\n", False),
        ("notes.py", 'def add():\n    """\n    >>> add()\n    """\n', False),
        ("notes.js", "export const half = (x) => x >>> 1;\n", True),
    ],
)
def test_a_plan_with_a_file_that_has_its_own_tests_is_not_measured(
    root: Path, path: str, text: str, measured: bool
) -> None:
    write(root, path, text)
    write(root, "README.md", "Usage\n")
    commit(root)

    assert passes_without(root, "true") == [measured]


def test_a_file_that_the_plan_deleted_is_there_again(root: Path) -> None:
    (root / "adder.py").unlink()
    write(root, "sums.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    assert passes_without(root, "test ! -e adder.py", "test -e README.md || true") == [False, True]


def test_the_first_commit_of_a_repository_has_nothing_before_it(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "other")
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    assert passes_without(root, "python3 -c 'import adder'") == [False]


def test_what_is_not_measured_in_time_is_said_and_with_no_time_nothing_is(root: Path) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    found = measured(root, "sleep 0.3", "true", time=timedelta(seconds=0.2))
    assert [one.text for one in found.seen] == ["not measured: whether plan 01-01's checks need its work"]
    found = measured(root, "true", time=timedelta())
    assert ([one.result.passes_without for one in found.checks], found.seen) == ([False], ())


def test_added_tests_that_all_pass_without_the_work_are_a_gap(root: Path) -> None:
    write(root, "test_adder.py", TEST.format("1 + 2"))
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    [gap] = measured(root, RUN).gaps
    assert gap.truth == "Tests that plan 01-01 adds fail without its work"
    assert gap.reason == "all of them pass without it too: test_adder.Adding.test_it"


def test_one_added_test_that_needs_the_work_is_enough_and_earlier_tests_do_not_count(root: Path) -> None:
    write(
        root,
        "test_old.py",
        "import unittest\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        pass\n",
    )
    commit(root)
    both = TEST.format("1 + 2") + "\n    def test_add(self):\n        self.assertEqual(adder.add(1, 2), 3)\n"
    write(root, "test_adder.py", both)
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    found = measured(root, "python3 -m unittest -q")
    assert found.gaps == ()
    [result] = [one.result for one in found.checks]
    assert {case.name: case.passes_without for case in result.cases} == {
        "test_old.Old.test_old": True,
        "test_adder.Adding.test_it": True,
        "test_adder.Adding.test_add": False,
    }


class Limits:
    """Changes each number, also in a language that the built-in plugin does not know."""

    @implements(gsd_find_mutants)
    async def numbers(self, source: SourceFile) -> list[Mutant]:
        return [
            Mutant(
                kind="value",
                name=found[0],
                first=(line := source.text.count("\n", 0, found.start()) + 1),
                last=line,
                start=found.start(),
                end=found.end(),
                text=f"{found[0]}0",
            )
            for found in re.finditer(r"\d+", source.text)
        ]


class Broken:
    @implements(gsd_find_mutants)
    async def fails(self, source: SourceFile) -> list[Mutant]:
        raise RuntimeError("cannot read this")


@pytest.mark.slow
def test_it_is_known_that_there_was_no_time_for_all_faults(root: Path) -> None:
    functions = "".join(f"\n\ndef f{number}():\n    return {number}\n" for number in range(12))
    write(root, "adder.py", f"def add(a, b):\n    return a + b\n{functions}")
    write(root, "test_adder.py", f"import time\n{TEST.format('adder.add(1, 2)')}\ntime.sleep(1)\n")
    commit(root)

    assert measured(root, RUN).is_cut


def test_a_plugin_finds_faults_and_one_that_fails_changes_nothing(root: Path) -> None:
    write(root, "limits.ini", "most = 20\nleast = 3\nother = 77\n")
    commit(root)
    promised = Requirement(id="CART-01", text="At least 3 and at most 20 prices count.")

    found = measured(
        root,
        "grep -qx 'least = 3' limits.ini",
        promised=(promised,),
        slower=100,
        hooks=make_hooks(broken=Broken(), limits=Limits()),
    )

    assert [str(one) for one in found.unnoticed] == [
        "no test notices if `20` is replaced by `200` (limits.ini:1)"
    ]
    assert [one.text for one in found.seen] == ["no test notices if `20` is replaced by `200` (limits.ini:1)"]


CART = {
    "cart.py": """LIMIT = 20


def total(prices):
    return sum(prices[:LIMIT])


def cheapest(prices):
    if len(prices) < 1:
        return None
    return min(prices)
""",
    "cart.js": """const LIMIT = 20;
exports.total = (prices) => prices.slice(0, LIMIT).reduce((a, b) => a + b, 0);
exports.cheapest = function (prices) {
  if (prices.length < 1) return null;
  return Math.min(...prices);
};
""",
    "cart.go": """package cart

const Limit = 20

func Total(prices []int) int {
	sum := 0
	for i := 0; i < len(prices) && i < Limit; i++ {
		sum += prices[i]
	}
	return sum
}

func Cheapest(prices []int) int {
	if len(prices) < 1 {
		return -1
	}
	return prices[0]
}
""",
}
TESTS = {
    "test_cart.py": """import unittest
import cart

class Cart(unittest.TestCase):
    def test_total(self):
        self.assertEqual(cart.total([1, 2]), 3)

    def test_nothing(self):
        cart.cheapest
""",
    "cart.test.js": """const test = require("node:test");
const assert = require("node:assert");
const cart = require("./cart.js");
test("total", () => assert.equal(cart.total([1, 2]), 3));
test("nothing", () => assert.ok(cart.cheapest));
""",
    "cart_test.go": """package cart

import "testing"

func TestTotal(t *testing.T) {
	if Total([]int{1, 2}) != 3 {
		t.Fatal("not 3")
	}
}

func TestNothing(t *testing.T) { _ = Cheapest }
""",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "tests", "check", "names"),
    [
        ("cart.py", "test_cart.py", "python3 -m unittest -q", ("test_total", "test_nothing")),
        ("cart.js", "cart.test.js", "node --test", ("total", "nothing")),
        ("cart.go", "cart_test.go", "go test ./...", ("TestTotal", "TestNothing")),
    ],
)
def test_it_is_known_which_case_needs_which_function_and_which_faults_no_test_notices(
    root: Path, source: str, tests: str, check: str, names: tuple[str, str]
) -> None:
    write(root, source, CART[source])
    write(root, tests, TESTS[tests])
    write(root, "go.mod", "module example.com/cart\n\ngo 1.19\n")
    commit(root)
    promised = Requirement(id="CART-01", text="The total counts at most 20 prices.")

    found = measured(root, check, promised=(promised,), slower=100)

    [result] = [one.result for one in found.checks]
    needs = {case.name.rpartition(">")[2].strip().rpartition(".")[2]: case.needs for case in result.cases}
    total, cheapest = ("Total", "Cheapest") if source == "cart.go" else ("total", "cheapest")
    unnoticed = [(one.mutant.name, one.promised) for one in found.unnoticed]
    assert needs == {names[0]: (f"{source}: {total}",), names[1]: ()}
    assert not found.is_cut
    assert unnoticed[:2] == [(cheapest, False), ("20", True)]
    assert ("<", False) in unnoticed


def test_a_check_whose_pipe_hides_that_tests_fail_is_named(root: Path) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    write(root, "test_adder.py", TEST.format("adder.add(1, 2)"))
    commit(root)
    check = "python3 -m unittest -v 2>&1 | grep -c test_it"

    seen = [one.text for one in measured(root, check).seen]
    assert (
        f"the exit code of the check `{check}` says nothing: it exited with 0 although its tests failed"
        in seen
    )


def test_what_happened_to_the_tests_of_a_plan_is_said(root: Path) -> None:
    write(root, "test_adder.py", TEST.format("adder.__name__ and 3"))
    commit(root)
    write(root, "test_adder.py", TEST.format("2 + 1"))
    write(root, "test_sum.py", TEST.format("adder.add(1, 2)").replace("test_it", "test_sum"))
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    commit(root)

    seen = [one.text for one in measured(root, "python3 -m unittest -q", "python3 -c 'import adder'").seen]
    assert seen[:2] == [
        "the check `python3 -c 'import adder'` of plan 01-01 passes without its work too",
        "plan 01-01 changes or deletes tests that were there before: test_adder.py",
    ]


def test_tests_that_did_not_run_or_were_skipped_are_named(root: Path) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    write(root, "test_adder.py", TEST.format("adder.add(1, 2)"))
    later = TEST.format("adder.add(2, 1)").replace("test_it", "test_later")
    write(root, "test_later.py", later.replace("    def", "    @unittest.skip('later')\n    def"))
    write(root, "other/test_other.py", TEST.format("adder.add(0, 3)").replace("test_it", "test_other"))
    commit(root)

    seen = [one.text for one in measured(root, "python3 -m unittest -q").seen]

    assert seen == [
        "no check of plan 01-01 runs its tests in other/test_other.py",
        "these tests of plan 01-01 are skipped: test_later.Adding.test_later",
    ]


@pytest.mark.parametrize(
    ("index", "test"),
    [
        ('exports.add = require("./lib/add.js").add;', 'const { add } = require("./index.js");'),
        ('export { add } from "./lib/add.js";', 'import { add } from "./index.js";'),
    ],
    ids=["require", "export"],
)
def test_a_test_that_imports_a_new_index_file_is_measured_with_the_functions_out(
    root: Path, index: str, test: str
) -> None:
    is_module = index.startswith("export {")
    write(root, "package.json", f'{{"type": "{"module" if is_module else "commonjs"}"}}')
    export = "export const add =" if is_module else "exports.add ="
    write(root, "lib/add.js", f"{export} (a, b) => a + b;\n")
    write(root, "index.js", f"{index}\n")
    modules = [test, *(f'const {name} = require("{module}");' for name, module in NODE.items())]
    if is_module:
        modules = [test, *(f'import {name} from "{module}";' for name, module in NODE.items())]
    cases = ['test("adds", () => assert.equal(add(1, 2), 3));', 'test("throws", () => assert.ok(true));']
    write(root, "test/add.test.js", "\n".join([*modules, *cases]).replace("./index", "../index"))
    commit(root)

    [result] = [one.result for one in measured(root, "node --test test/add.test.js").checks]

    assert {case.name.rpartition("> ")[2]: case.passes_without for case in result.cases} == {
        "adds": False,
        "throws": True,
    }


NODE = {"assert": "node:assert", "test": "node:test"}


ONCE = """import os
import unittest
import adder

class Once(unittest.TestCase):
    def test_add(self):
        self.assertEqual(adder.add(1, 2), 3)

    def test_mark(self):
        adder.add(1, 2)
        self.assertFalse(os.path.exists("mark"))
        open("mark", "w").close()
"""


def test_of_a_check_that_passes_only_once_in_a_folder_nothing_is_known(root: Path) -> None:
    write(root, "adder.py", "def sub(a, b):\n    return a - b\n\n\ndef add(a, b):\n    return a + b\n")
    write(root, "test_once.py", ONCE)
    commit(root)

    found = measured(root, "python3 -m unittest -q", slower=100)

    assert [case.needs for one in found.checks for case in one.result.cases] == [(), ()]
    assert found.unnoticed == ()


PORT = """import socket
import time
import unittest
import adder

class Serve(unittest.TestCase):
    def test_add(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", {port}))
            time.sleep(0.5)
        self.assertEqual(adder.add(1, 2), 3)

    def test_other(self):
        self.assertTrue(adder.sub)
"""


@pytest.mark.slow
def test_checks_that_need_one_port_run_one_after_the_other(root: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write(root, "adder.py", "def sub(a, b):\n    return a - b\n\n\ndef add(a, b):\n    return a + b\n")
    write(root, "test_port.py", PORT.format(port=port))
    commit(root)

    found = measured(root, "python3 -m unittest -q", slower=100)

    cases = [case for one in found.checks for case in one.result.cases]
    assert {case.name.rpartition(".")[2]: case.needs for case in cases} == {
        "test_add": ("adder.py: add",),
        "test_other": (),
    }
    assert [one.mutant.name for one in found.unnoticed if one.mutant.kind == "function"] == ["sub"]


def trial(root: Path, command: str) -> CheckResult:
    """Return what is known of a command that a verifier tries, of a phase whose only commit is HEAD."""
    plan = Plan(id="01-01", phase="1", summary="01-01-SUMMARY.md")
    commits = {plan.id: (h.git(root, "rev-parse", "HEAD").strip(),)}
    phase = PhaseView(project=root, number="1", name="Adding", plans=(plan,), commits=commits)
    git, limits = Git(root), LimitSettings()

    async def tries() -> CheckResult:
        async with checkout_of(git) as clean:
            assert clean is not None
            result = await clean.run(command, Gate(), limits.check, reported=True)
        return await without_work(Gate(), git, HOOKS, phase, result, limits)

    return asyncio.run(tries())


@pytest.mark.parametrize(("tried", "passes"), [("test_it", False), ("test_other", True), ("", False)])
def test_a_trial_of_test_cases_proves_nothing_if_all_of_them_pass_without_the_work(
    root: Path, tried: str, passes: bool
) -> None:
    write(root, "adder.py", "def add(a, b):\n    return a + b\n")
    other = "\n    def test_other(self):\n        self.assertEqual(1 + 1, 2)\n"
    write(root, "test_adder.py", TEST.format("adder.add(1, 2)") + other)
    commit(root)

    command = f"python3 -m unittest test_adder{'.Adding.' * bool(tried)}{tried}"
    assert trial(root, command).passes_without == passes


def test_a_trial_shows_that_something_is_deleted_because_it_is_there_without_the_work(root: Path) -> None:
    write(root, "main.py", "def main():\n    return 1\n")
    (root / "adder.py").unlink()
    commit(root)

    assert not trial(root, 'test -z "$(grep -l add *.py)"').passes_without
    assert trial(root, "test -f main.py").passes_without
