"""Checks of tasks in whole runs: real commands, real commits, and agents that cut corners."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from gsd_core.errors import Transient
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_run_agent, gsd_wrap_step
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.step import RunStep, StepRequest, StepResult
from gsd_core.run.runtime import RunEnd
from gsd_plugins.rehearsal import FakeAgent

from . import harness as h
from .test_crash import Crash, Fuse, with_crash

pytestmark = pytest.mark.slow

PHASE = ".planning/phases/01-greetings"
PLAN = f"{PHASE}/01-01-PLAN.md"
SUMMARY = f"{PHASE}/01-01-SUMMARY.md"
WEAK = "test -d .git"
BETTER = "test -s made.txt"
NOTHING: dict[str, list[str]] = {"deviations": [], "decisions": [], "issues": []}

Work = Callable[[AgentTask, AgentHost], Awaitable[Any]]


def task(
    check: str = BETTER, *, files: tuple[str, ...] = ("made.txt",), name: str = "Make it"
) -> dict[str, Any]:
    return {
        "name": name,
        "files": list(files),
        "action": "Do it.",
        "verify": "Look at it",
        "check": check,
        "done": "Done",
    }


@define(eq=False)
class Scripted:
    """The rehearsal's agent, but with the *tasks* in its plan and *work* in place of its executor.

    *decisions* are the planner's answers about checks, in turn; after them it keeps each check. *more* are
    other fields of the plan.
    """

    tasks: list[dict[str, Any]]
    work: Work
    decisions: list[dict[str, str]] = field(factory=list[dict[str, str]])
    more: dict[str, Any] = field(factory=dict[str, Any])
    seen: list[AgentTask] = field(factory=list[AgentTask], init=False)
    agent: FakeAgent = field(factory=h.one_phase, init=False)

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        self.seen.append(task)
        if task.role == "planner" and "execute" in task.step:
            kept = {"check": "", "reason": "It is right."}
            return AgentResult(value=self.decisions.pop(0) if self.decisions else kept)
        if task.role == "executor":
            return AgentResult(value={**NOTHING, **(await self.work(task, host) or {})})
        result = await self.agent.run_agent(task, host)
        if result is not None and task.role == "planner":
            plan = {**result.value["plans"][0], "tasks": self.tasks, **self.more}
            plan["files_modified"] = sorted({path for each in self.tasks for path in each["files"]})
            plan["artifacts"], plan["key_links"] = [], []
            result = evolve(result, value={**result.value, "plans": [plan]})
        return result

    def of(self, role: str) -> list[AgentTask]:
        """Return the tasks of that role in the execute step."""
        return [task for task in self.seen if task.role == role and "execute" in task.step]


def do(root: Path, agent: Scripted, **more: Any) -> RunEnd:
    return h.do(h.request(root, agent, given=h.idea(), **more))


async def done(host: AgentHost, number: int = 1, note: str = "wrote it", *files: str) -> str:
    return await host.call("task_done", {"task": number, "files": list(files), "note": note})


def writes(text: str = "made\n", *, times: int = 1) -> Work:
    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text(text)
        for _ in range(times):
            await done(host)

    return work


def committed(root: Path) -> dict[str, Any]:
    return {fact.data["task"]: fact.data for fact in h.facts(root, "task.committed")}


def failure(root: Path) -> str:
    [fact] = h.facts(root, "step.failed")
    return f"{fact.data['error']['message']}\n{fact.data['error']['hint']}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return h.repository(tmp_path / "project")


# Before and after


def test_a_check_that_passes_before_its_task_is_replaced_in_the_plan_and_the_commit(root: Path) -> None:
    agent = Scripted([task(WEAK)], writes(), [{"check": BETTER, "reason": "It looks at the file."}])
    do(root, agent)

    assert committed(root)["01-01/1"]["check"]["command"] == BETTER
    plan = h.git(root, "show", f"HEAD:{PLAN}")
    assert f"<automated>{BETTER}</automated>" in plan
    assert WEAK not in plan
    assert "It looks at the file." in h.git(root, "show", f"HEAD:{SUMMARY}")


def test_a_check_that_the_planner_keeps_is_known_as_regression_evidence(root: Path) -> None:
    agent = Scripted([task(WEAK)], writes(), [{"check": WEAK, "reason": "It is a refactoring."}])
    do(root, agent)

    assert committed(root)["01-01/1"]["check"]["passed_before"] is True
    assert "passed before the task too" in (root / SUMMARY).read_text()
    assert "It is a refactoring." in (root / SUMMARY).read_text()


def test_the_planner_can_be_asked_in_the_middle_of_the_execution(root: Path) -> None:
    second = task(WEAK, files=("more.txt",), name="Make more")
    better = {"check": "test -s more.txt", "reason": "It looks at the file."}
    replies: list[str] = []

    async def work(task: AgentTask, host: AgentHost) -> None:
        for number, name in ((1, "made.txt"), (2, "more.txt")):
            (task.tree / name).write_text("made\n")
            replies.append(await done(host, number, "wrote", name))

    do(root, Scripted([task(), second], work, [better]))

    assert all("is committed" in reply for reply in replies)
    assert committed(root)["01-01/2"]["check"]["command"] == "test -s more.txt"


def test_a_crash_at_any_point_around_a_decision_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", h.BEGAN.isoformat())

    def start(root: Path, fuse: Fuse) -> Scripted:
        decision = {"check": BETTER, "reason": "It looks at the file."}
        agent = Scripted([task(WEAK)], writes(), [decision])
        h.do(with_crash(h.request(root, agent, given=h.idea()), fuse))
        return agent

    fuse = Fuse()
    reference = h.repository(tmp_path / "reference")
    start(reference, fuse)
    in_step = [number for number, point in enumerate(fuse.points) if "1/execute" in point]
    # From the first check to the commit of the result, every other point.
    for number in in_step[2::2]:
        root = h.repository(tmp_path / str(number))
        with pytest.raises(Crash):
            start(root, Fuse(limit=number))
        start(root, Fuse())

        assert h.git(root, "show", f"HEAD:{PLAN}") == h.git(reference, "show", f"HEAD:{PLAN}"), fuse.points[
            number
        ]
        decisions = {str(dict(fact.data)) for fact in h.facts(root, "check.replaced")}
        assert len(decisions) == 1
        assert committed(root)["01-01/1"]["check"]["command"] == BETTER


# Cheating


@pytest.mark.parametrize(
    "tests",
    [
        "",
        "import unittest\n",
        "import unittest\n@unittest.skip('later')\nclass A(unittest.TestCase):\n def test_a(self): pass\n",
    ],
)
def test_a_check_that_passes_because_its_tests_were_removed_does_not_count(root: Path, tests: str) -> None:
    async def work(task: AgentTask, host: AgentHost) -> dict[str, list[str]]:
        (task.tree / "tests").mkdir()
        (task.tree / "tests" / "__init__.py").touch()
        (task.tree / "tests" / "test_notes.py").write_text(tests)
        replies = [await done(host, 1, "tested") for _ in range(3)]
        assert "ran no tests" in replies[0]
        return {"issues": ["The tests were in the way."]}

    check = "python3 -m unittest -q tests.test_notes"
    end = do(root, Scripted([task(check, files=("tests/test_notes.py",))], work))

    assert end.exit != 0
    assert committed(root) == {}
    assert all(part in failure(root) for part in ("ran no tests", "The tests were in the way.", PLAN, check))


@pytest.mark.parametrize(
    "wrapper", ["exit 0\n", "echo '12 tests passed'\n", "python3 -m unittest -q broken\nexit 0\n"]
)
def test_a_wrapper_that_always_succeeds_does_not_count(root: Path, wrapper: str) -> None:
    async def work(task: AgentTask, host: AgentHost) -> None:
        text = "import unittest\nclass A(unittest.TestCase):\n def test_a(self): self.fail()\n"
        (task.tree / "broken.py").write_text(text)
        (task.tree / "check.sh").write_text(f"#!/bin/sh\n{wrapper}")
        for _ in range(3):
            await done(host)

    do(root, Scripted([task("sh check.sh", files=("check.sh",))], work))

    assert committed(root) == {}
    assert "the check `sh check.sh`" in failure(root)


def test_a_note_cannot_forge_the_trailers_of_another_task(root: Path) -> None:
    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text("made\n")
        await done(host, 1, f"wrote it\n\nGSD-Run: {task.run}\nGSD-Step: {task.step}\nGSD-Task: 01-01/2")

    do(root, Scripted([task(), task("test -s more.txt", files=("more.txt",))], work))

    assert list(committed(root)) == ["01-01/1"]
    assert ("1/execute/01-01", "01-01/2") not in h.trailed(root)


# Checks that cannot run


def test_a_missing_program_goes_to_the_planner_and_costs_no_attempt(root: Path) -> None:
    agent = Scripted(
        [task("no-such-program-7 made.txt")], writes(), [{"check": BETTER, "reason": "Only sh is needed."}]
    )
    do(root, agent)

    assert len(agent.of("planner")) == 1
    assert committed(root)["01-01/1"]["check"]["command"] == BETTER
    assert f"<automated>{BETTER}</automated>" in h.git(root, "show", f"HEAD:{PLAN}")


def test_a_program_that_cannot_be_replaced_is_named_with_the_file_to_edit(root: Path) -> None:
    command = "no-such-program-7 made.txt"
    agent = Scripted([task(command)], writes(), [{"check": command, "reason": "Nothing else can read it."}])
    end = do(root, agent)

    assert end.exit != 0
    message = failure(root)
    for part in ("`no-such-program-7` is not installed", command, PLAN, "install"):
        assert part in message
    assert "Nothing else can read it." in message
    assert "3 times" not in message


def test_a_check_that_is_refused_is_the_plans_fault_and_found_before_the_work(root: Path) -> None:
    agent = Scripted(
        [task("test -s made.txt && git push")], writes(), [{"check": BETTER, "reason": "It pushes nothing."}]
    )
    do(root, agent)

    assert [each.role for each in agent.seen if "execute" in each.step] == ["planner", "executor"]
    assert committed(root)["01-01/1"]["check"]["command"] == BETTER


def test_an_executor_that_gives_up_is_quoted(root: Path) -> None:
    async def work(task: AgentTask, host: AgentHost) -> dict[str, list[str]]:
        return {"issues": ["The sensor's protocol is not documented."]}

    do(root, Scripted([task()], work))

    assert all(part in failure(root) for part in ("protocol is not documented", "task 1", PLAN))


# Tasks without files, and what a commit says


@pytest.mark.parametrize("files", [(), (".planning/NOTES.md",)])
@pytest.mark.parametrize("check", ["", "test -s made.txt"])
def test_a_task_with_nothing_to_change_is_done_with_an_empty_commit(
    root: Path, files: tuple[str, ...], check: str
) -> None:
    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text("made\n")
        await done(host, 1, "wrote it", "made.txt")
        await done(host, 2, "looked at it: it is fine")

    async def as_a_person_writes_it(step: StepRequest, call_next: RunStep) -> StepResult:
        # Our own planner may not plan such a task.
        result = await call_next(step)
        if step.kind != "plan":
            return result
        [file] = result.files
        text = file.text.replace("  - look.txt\n", "").replace(
            "<files>look.txt<", f"<files>{', '.join(files)}<"
        )
        return evolve(result, files=(evolve(file, text=text),))

    agent = Scripted([task(), task(check, files=("look.txt",), name="Look at it")], work)
    do(root, agent, wrapper=h.plugin(gsd_wrap_step, as_a_person_writes_it))

    assert committed(root)["01-01/2"]["paths"] == []
    assert (root / SUMMARY).exists()
    assert "looked at it: it is fine" in (root / SUMMARY).read_text()


def test_a_task_that_names_a_file_needs_a_change(root: Path) -> None:
    async def work(task: AgentTask, host: AgentHost) -> None:
        for _ in range(3):
            await done(host, 1, "it was there already")

    do(root, Scripted([task("")], work))

    assert committed(root) == {}
    assert "no file of the task has changed" in failure(root)


def test_a_task_whose_files_the_task_before_it_committed_is_done_without_a_change(root: Path) -> None:
    second = task("test -s more.txt", files=("more.txt",), name="Make more")

    async def work(task: AgentTask, host: AgentHost) -> None:
        for name in ("made.txt", "more.txt"):
            (task.tree / name).write_text("made\n")
        await done(host, 1, "wrote both", "made.txt", "more.txt")
        await done(host, 2, "done with the first task")

    do(root, Scripted([task(), second], work, [{"check": "", "reason": "It was done with task 1."}]))

    assert committed(root)["01-01/2"]["paths"] == []
    assert committed(root)["01-01/2"]["check"]["passed_before"] is True


def test_commits_and_summary_say_what_was_done_to_which_file(root: Path) -> None:
    (root / "old.txt").write_text("old\n" * 20)
    (root / "gone.txt").write_text("gone\n")
    h.git(root, "add", ".")
    h.git(root, "commit", "-qm", "before")

    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text("made\n")
        (task.tree / "draft.txt").write_text("draft\n")
        await done(host, 1, "Wrote the file.\nIt has one line.", "made.txt", "draft.txt")
        (task.tree / "old.txt").rename(task.tree / "new.txt")
        for name in ("gone.txt", "draft.txt"):
            (task.tree / name).unlink()
        (task.tree / "made.txt").write_text("made again\n")
        await done(host, 2, "Renamed old to new.", "new.txt", "old.txt", "gone.txt", "made.txt", "draft.txt")

    files = ("made.txt", "draft.txt")
    second = task("test -s new.txt", files=("new.txt", "old.txt", "gone.txt", *files), name="Tidy")
    do(root, Scripted([task(files=files), second], work))

    bodies = h.git(root, "log", "--format=%s|%b%x00", "--grep=GSD-Task").split("\0")
    assert any("Wrote the file.\nIt has one line." in body for body in bodies)
    text = (root / SUMMARY).read_text()
    lines = {line for line in text.splitlines() if line.endswith(("created", "modified", "deleted"))}
    assert lines == {
        "- `made.txt` - created",
        "- `new.txt` - created",
        "- `gone.txt` - deleted",
        "- `old.txt` - deleted",
    }


def test_a_file_that_was_never_there_cannot_be_named(root: Path) -> None:
    replies: list[str] = []

    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text("made\n")
        replies.append(await done(host, 1, "wrote it and its tests", "made.txt", "tests/test_made.py"))
        replies.append(await done(host, 1, "wrote it", "made.txt"))

    do(root, Scripted([task()], work))

    assert "tests/test_made.py: it does not exist" in replies[0]
    assert "is committed" in replies[1]


def test_output_is_to_be_ignored_and_not_committed(root: Path) -> None:
    replies: list[str] = []

    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text("made\n")
        (task.tree / "dist").mkdir()
        (task.tree / "dist" / "made.js").write_text("made\n")
        (task.tree / "helper.py").write_text("made = 1\n")
        replies.append(await done(host, 1, "wrote it", "made.txt"))
        (task.tree / ".gitignore").write_text("/dist/\n")
        replies.append(await done(host, 1, "wrote it", "made.txt", "helper.py", ".gitignore"))

    do(root, Scripted([task()], work))

    named, _, output = replies[0].partition("; output or data")
    assert "helper.py. Name in `files`" in named
    assert "dist/made.js. Add it to .gitignore" in output
    assert "dist" not in named
    assert committed(root)["01-01/1"]["paths"] == [".gitignore", "helper.py", "made.txt"]


def test_a_dependency_that_a_plan_adds_and_nothing_uses_is_a_gap(root: Path) -> None:
    (root / "requirements.txt").write_text("long-known\n")
    h.git(root, "add", ".")
    h.git(root, "commit", "-qm", "before")

    async def work(task: AgentTask, host: AgentHost) -> None:
        (task.tree / "made.txt").write_text("made\n")
        (task.tree / "requirements.txt").write_text("long-known\nleft-pad\n")
        await done(host, 1, "wrote it", "made.txt", "requirements.txt")

    do(root, Scripted([task()], work), options=Options(gap_rounds=0))

    gaps = next(fact.data["gaps"] for fact in h.facts(root, "step.completed") if "/verify" in fact.step)
    assert [gap for gap in gaps if "requirements" in gap] == ["requirements.txt: left-pad"]


# What the next attempt is told


def test_the_next_attempt_knows_the_failure_and_what_was_left(root: Path) -> None:
    attempts: list[AgentTask] = []

    async def work(task: AgentTask, host: AgentHost) -> None:
        attempts.append(task)
        (task.tree / "made.txt").write_text("made\n")
        if len(attempts) == 1:
            raise Transient("the line was cut (503)")
        await done(host)

    do(root, Scripted([task()], work), sections={"retry": {"wait": 0.01}})

    assert "the line was cut" not in attempts[0].prompt
    assert "the line was cut (503)" in attempts[1].prompt
    assert "made.txt" in attempts[1].prompt.partition("503")[2]


# Without the work

ADDER = "def add(a, b):\n    return a + b\n"
TEST = """import unittest
{imports}
class Adding(unittest.TestCase):
    def test_it(self):
        self.assertEqual({sum}, 3)
"""


@pytest.mark.parametrize("careless", [False, True])
def test_the_verifier_is_told_which_check_passes_without_the_work_of_its_plan(
    root: Path, careless: bool
) -> None:
    async def work(task: AgentTask, host: AgentHost) -> None:
        imports, result = ("", "1 + 2") if careless else ("import adder\n", "adder.add(1, 2)")
        (task.tree / "adder.py").write_text(ADDER)
        (task.tree / "test_adder.py").write_text(TEST.format(imports=imports, sum=result))
        await done(host)

    check = "python3 -m unittest -q test_adder"
    agent = Scripted([task(check, files=("adder.py", "test_adder.py"))], work)
    do(root, agent, ablation=True)

    told = next(one.prompt for one in agent.seen if one.role == "verifier")
    assert f"{check}: exit 0" in told
    assert ("also without the work of this plan" in told) is careless
