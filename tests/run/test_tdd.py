"""Test-driven plans in whole runs: real tests, real commits, and agents that cut corners."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import CheckResult, Task
from gsd_core.exit_codes import ExitCode
from gsd_core.hookspecs import gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentTask
from gsd_core.model.step import RunStep, StepRequest, StepResult
from gsd_core.planning.plan import parse_plan
from gsd_core.run.runtime import RunEnd
from gsd_core.run.task_checks import problem_of

from . import harness as h
from .test_task_checks import PLAN, SUMMARY, Scripted, do, task

CHECK = "python3 -B -m unittest -q test_add"
TEST = "import unittest\n{}\n\nclass TestAdd(unittest.TestCase):\n    def test_add(self):\n        {}\n"
GOOD = TEST.format("import add", "self.assertEqual(add.add(1, 2), 3)")
WEAK = TEST.format("import add", "self.assertTrue(add)")
CODE = "def add(a, b):\n    return a + b\n"
FEATURE: dict[str, Any] = {
    "name": "Addition",
    "files": ["add.py", "test_add.py"],
    "behavior": "add(1, 2) is 3",
    "action": "A function add",
    "verify": "",
    "check": CHECK,
    "done": "The sum is right",
}


class Developer:
    """An executor: each step writes files and calls ``task_done`` for a task; *replies* are what it hears."""

    def __init__(self, *steps: tuple[int, dict[str, str]], issues: tuple[str, ...] = ("see above",)) -> None:
        self.steps, self.issues = steps, issues
        self.replies: list[str] = []

    async def __call__(self, task: AgentTask, host: AgentHost) -> dict[str, Any]:
        for number, files in self.steps if not self.replies else ():
            for path, text in files.items():
                await h.write(task, host, path, text)
            call = {"task": number, "files": list(files), "note": f"step {number}"}
            self.replies.append(await host.call("task_done", call))
        return {"issues": list(self.issues)}


def run(root: Path, developer: Developer) -> RunEnd:
    agent = Scripted([FEATURE], developer, more={"type": "tdd"})
    return do(root, agent, options=Options(skip_verify=True))


@pytest.mark.slow
def test_a_feature_is_three_commits_and_its_tests_are_seen_to_fail(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    developer = Developer((1, {"test_add.py": GOOD}), (2, {"add.py": CODE}), (3, {}))

    end = run(root, developer)

    assert end.outcome == "done", (end, developer.replies)
    subjects = h.git(root, "log", "--reverse", "--format=%s", "--", "add.py", "test_add.py").splitlines()
    assert [line.partition("(")[0] for line in subjects] == ["test", "feat"]
    checks = [fact.data["check"]["exit"] for fact in h.facts(root, "task.committed")]
    assert checks == [1, 0, 0]
    plan = parse_plan((root / PLAN).read_text(), path=PLAN, phase="1")
    assert (plan.type, [task.cycle for task in plan.tasks]) == ("tdd", ["red", "green", "refactor"])
    summary = (root / SUMMARY).read_text()
    assert f"Task 1: `{CHECK}` failed with exit code 1 before the implementation" in summary
    assert "[TDD]" not in summary


@pytest.mark.slow
def test_what_does_not_fail_for_the_right_reason_is_sent_back(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    vacuous = TEST.format("", "self.assertEqual(1, 1)")
    developer = Developer(
        (1, {"test_add.py": vacuous}),
        (1, {"test_add.py": "import unittest\n"}),
        (1, {"test_add.py": "import unittest\ndef (\n"}),
    )

    end = run(root, developer)

    assert end.exit == ExitCode.FAILED
    passes, none, invalid = developer.replies
    assert "passes although the feature is not there yet" in passes
    assert "ran no tests" in none
    assert "not valid code" in invalid
    assert h.facts(root, "task.committed") == []


@pytest.mark.slow
@pytest.mark.parametrize("insists", [False, True])
def test_a_weakened_test_is_refused_once_and_then_reported_as_a_deviation(
    tmp_path: Path, insists: bool
) -> None:
    root = h.repository(tmp_path / "project")
    first = {"add.py": CODE, "test_add.py": WEAK}
    second = {"add.py": CODE} if insists else {"add.py": CODE, "test_add.py": GOOD}
    developer = Developer((1, {"test_add.py": GOOD}), (2, first), (2, second), (3, {}))

    end = run(root, developer)

    assert end.outcome == "done", (end, developer.replies)
    assert "it changes tests of the first task:\n- test_add.py" in developer.replies[1]
    summary = (root / SUMMARY).read_text()
    # Although the agent did not name it: what is committed is what the check has run.
    assert ("[TDD] Task 2" in summary) is insists
    assert h.git(root, "show", "HEAD:test_add.py") == (WEAK if insists else GOOD)


ORDINARY = f"""
<tasks>
<task type="auto"><name>Task 1: Notes</name><files>notes.txt</files><action>Write them</action>
<verify><automated>test -s notes.txt</automated></verify><done>There</done></task>
<task type="auto" tdd="true"><name>Task 2: Addition</name><files>add.py</files>
<behavior>add(1, 2) is 3</behavior><action>A function add</action>
<verify><automated>{CHECK}</automated></verify><done>The sum is right</done></task>
</tasks>
"""


@pytest.mark.slow
def test_a_test_driven_task_of_an_ordinary_plan_needs_tests_that_fail_first(tmp_path: Path) -> None:
    """The plan is as GSD's own planner writes it."""
    root = h.repository(tmp_path / "project")

    async def with_task(step: StepRequest, call_next: RunStep) -> StepResult:
        result = await call_next(step)
        files = [
            evolve(file, text=re.sub(r"<tasks>.*</tasks>", ORDINARY.strip(), file.text, flags=re.S))
            if file.path == PLAN
            else file
            for file in result.files
        ]
        return evolve(result, files=tuple(files))

    developer = Developer(
        (1, {"notes.txt": "notes"}),
        (2, {"add.py": CODE, "test_add.py": GOOD}),
        (2, {"add.py": "", "test_add.py": GOOD}),
        (3, {"add.py": CODE}),
        (4, {}),
    )
    agent = Scripted([task("test -s notes.txt", files=("notes.txt",))], developer)
    end = do(root, agent, options=Options(skip_verify=True), editor=h.plugin(gsd_wrap_step, with_task))

    assert end.outcome == "done", (end, developer.replies)
    assert "passes although the feature is not there yet" in developer.replies[1]
    subjects = h.git(root, "log", "--reverse", "--format=%s", "--", "add.py", "test_add.py").splitlines()
    assert [line.partition("(")[0] for line in subjects] == ["test", "feat"]
    checks = [fact.data["check"]["exit"] for fact in h.facts(root, "task.committed")]
    assert checks == [0, 1, 0, 0]
    assert (
        f"Task 2: `{CHECK}` failed with exit code 1 before the implementation" in (root / SUMMARY).read_text()
    )
    assert '<task type="auto" tdd="true">' in (root / PLAN).read_text()


@pytest.mark.parametrize(
    ("code", "output", "flaw", "expected"),
    [
        (1, "AssertionError: 4 != 3", "", ""),
        (1, "E   ModuleNotFoundError: No module named 'add'", "", ""),
        (1, "file:///p/a.test.js:1\nimport {x} from 'y'\n\nSyntaxError: The requested module './y'", "", ""),
        (1, "/p/a.test.js:3\nlet = (\n    ^\nSyntaxError: Unexpected token", "", "not valid code"),
        (
            1,
            '  File "/p/a.test.js", line 1\n    def (\n        ^\nSyntaxError: invalid',
            "",
            "not valid code",
        ),
        (2, '  File "/p/other.py", line 1\n    def (\n        ^\nSyntaxError: invalid', "", ""),
        (127, "sh: 1: ./greet: not found", "", "cannot run"),
        (None, "timed out", "", "did not run to its end"),
        (5, "no tests ran in 0.01s", "ran no tests", "ran no tests"),
        (0, "1 passed in 0.01s", "", "passes although"),
    ],
)
def test_only_a_test_that_ran_and_failed_is_a_red_one(
    code: int | None, output: str, flaw: str, expected: str
) -> None:
    task = Task(number=1, name="Test", check="npm test", files=("src/a.test.js",), cycle="red")
    problem = problem_of(task, CheckResult(command="npm test", exit=code, output=output, flaw=flaw))

    assert (expected in problem) if expected else problem == ""
