"""What executing a plan changes in its files: replaced checks in the PLAN, files and notes in the SUMMARY."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve

from gsd_core.model.step import TaskCommit
from gsd_core.planning.model import Artifact, MustHaves, Plan, Task
from gsd_core.planning.plan import parse_plan, render_plan, with_checks
from gsd_core.planning.summary import FileChanges, changes_of, render_summary

PATH = ".planning/phases/01-notes/01-01-PLAN.md"
WRITTEN_BY_HAND = """\
---
phase: 01-notes
plan: 01
# a comment that must stay
must_haves: {truths: ["<task><verify><automated>not me</automated></verify></task>"]}
---
<context>A task looks like <task type="auto"><name>x</name></task>.</context>
<tasks>
<task type="auto">
  <name>Task 1: Store</name>
  <verify>Look: <automated>test -s a</automated> and <automated>test -s b</automated></verify>
</task>

<task type="auto"><name>List</name><verify>by eye</verify></task>
<task type="auto"><name>Twin</name><verify><automated>test -s a</automated></verify></task>
</tasks>
"""


def read(text: str) -> Plan:
    return parse_plan(text, path=PATH, phase="1")


def a_plan() -> Plan:
    tasks = (
        Task(
            number=1,
            name="Store",
            files=("a.py",),
            action="Write.",
            verify="It is there",
            check="test -s a.py",
        ),
        Task(number=2, name="List", files=("b.py",), action="Write.", check="test -s b.py"),
    )
    plan = Plan(id="01-01", phase="1", name="Notes", objective="Keep notes", tasks=tasks, path=PATH)
    return evolve(plan, text=render_plan(plan))


@pytest.mark.parametrize(
    "check", ["python3 -m unittest", "a && b < c > d", "echo '</automated>'", "x `y`", "a\nb"]
)
def test_a_replaced_check_is_read_back_and_nothing_else_changes(check: str) -> None:
    plan = a_plan()
    again = read(with_checks(plan, {2: check}))

    assert [task.check for task in again.tasks] == ["test -s a.py", check]
    assert evolve(again, tasks=(), text="") == evolve(read(plan.text), tasks=(), text="")


def test_the_list_of_checks_below_the_tasks_follows() -> None:
    text = with_checks(a_plan(), {1: "python3 -m unittest"})

    assert "- [ ] `python3 -m unittest`" in text
    assert "test -s a.py" not in text


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_plan_that_was_written_by_hand_keeps_every_other_byte(ends: str) -> None:
    plan = read(WRITTEN_BY_HAND.replace("\n", ends))
    text = with_checks(plan, {3: "make"})

    assert text == plan.text.replace(
        "<name>Twin</name><verify><automated>test -s a<", "<name>Twin</name><verify><automated>make<"
    )


def test_several_commands_of_a_task_become_one() -> None:
    plan = read(WRITTEN_BY_HAND)
    assert plan.tasks[0].check == "test -s a && test -s b"
    again = read(with_checks(plan, {1: "make", 2: "make"}))

    assert [task.check for task in again.tasks] == ["make", "", "test -s a"]


@pytest.mark.parametrize(
    ("commits", "created", "modified", "deleted"),
    [
        ([("a",), ()], ["a"], [], []),
        # created, then changed
        ([("a",), ("a",)], ["a"], [], []),
        # renamed
        ([("b", "-a")], ["b"], [], ["a"]),
        # created and deleted again
        ([("a", "b"), ("-a",)], ["b"], [], []),
        # changed, then deleted; deleted, then written again
        ([("=a",), ("-a",)], [], [], ["a"]),
        ([("-a",), ("a",)], [], ["a"], []),
        ([("=a",), ("=b", "c")], ["c"], ["a", "b"], []),
    ],
)
def test_the_files_of_several_commits_are_added_up(
    commits: list[tuple[str, ...]], created: list[str], modified: list[str], deleted: list[str]
) -> None:
    seen = set[str]()

    def commit(paths: tuple[str, ...]) -> TaskCommit:
        plain = [path.lstrip("-=") for path in paths]
        new = tuple(path for path in paths if path[0] not in "-=" and path not in seen)
        gone = tuple(path[1:] for path in paths if path[0] == "-")
        seen.update(plain)
        seen.difference_update(gone)
        return TaskCommit(commit="c", paths=tuple(plain), created=new, deleted=gone)

    expected = FileChanges(created=tuple(created), modified=tuple(modified), deleted=tuple(deleted))
    assert changes_of(map(commit, commits)) == expected


def test_a_summary_has_no_placeholders() -> None:
    artifacts = (Artifact(path="a.py", provides="the store"),)
    plan = evolve(a_plan(), name="", must_haves=MustHaves(artifacts=artifacts))
    text = render_summary(
        plan,
        date="2026-01-31",
        duration=timedelta(minutes=3),
        commits=[("Store", "0123456789")],
        created=["a.py"],
        modified=["README.md"],
        deleted=["old.py"],
        one_liner="Notes are kept in a file that survives a crash.",
        accomplishments=["Wrote `store()`, which appends and syncs"],
        checks=["Task 1: `test -s a.py` passed"],
        decisions=[],
        deviations=[],
        issues=[],
    )

    assert "**Notes are kept in a file that survives a crash.**" in text
    assert "- `old.py` - deleted" in text
    assert "- Wrote `store()`, which appends and syncs" in text
    assert "a.py: the store" in text
    assert "tags: []" not in text
    assert "Untitled" not in text
