"""The tasks of plans as people and models write them, and their commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_core.planning.model import Plan, Task
from gsd_core.planning.plan import parse_plan, render_plan, with_checks
from gsd_core.planning.plan_tasks import HUMAN_CHECK, read_command, render_command
from tests.planning.trees import plan_text

PATH = ".planning/phases/01-core/01-02-PLAN.md"


def tasks_of(body: str, **frontmatter: str) -> tuple[Task, ...]:
    head = "".join(f"{key}: {value}\n" for key, value in frontmatter.items())
    return parse_plan(plan_text(body=body, frontmatter=head), path=PATH, phase="1").tasks


TDD = """
<objective>Parse durations.</objective>
<feature>
  <name>Duration parser</name>
  <files>src/duration.py, tests/test_duration.py</files>
  <behavior>1h30m is 5400 seconds</behavior>
  <implementation>One pass over the text</implementation>
</feature>
<verification>
- [ ] `pytest tests/test_duration.py`
- [ ] `src/duration.py`
- Run `rm -rf build` by hand if it fails
</verification>
"""


def test_a_feature_of_a_tdd_plan_is_three_tasks_with_the_plans_check() -> None:
    red, green, refactor = tasks_of(TDD)

    assert [task.number for task in (red, green, refactor)] == [1, 2, 3]
    assert [task.cycle for task in (red, green, refactor)] == ["red", "green", "refactor"]
    assert {task.check for task in (red, green, refactor)} == {"pytest tests/test_duration.py"}
    assert (red.files, green.files) == (("tests/test_duration.py",), ("src/duration.py",))
    assert "5400 seconds" in red.action
    assert "One pass" in green.action
    assert all("Duration parser" in task.name for task in (red, green, refactor))


def test_of_several_features_only_the_last_has_the_check_of_the_whole_plan() -> None:
    other = "<feature><name>Formatter</name><behavior>5400 is 1h30m</behavior></feature>\n"
    tasks = tasks_of(other + TDD)

    assert [task.number for task in tasks] == [1, 2, 3, 4, 5, 6]
    assert [task.check for task in tasks] == [""] * 3 + ["pytest tests/test_duration.py"] * 3


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("npm test -- duration", "npm test -- duration"),
        ("```bash\npytest tests/test_duration.py\n```", "pytest tests/test_duration.py"),
        ("go through the pages", ""),
        ("make sure that it works", ""),
        ("pytest passes\nand nothing else changes", ""),
    ],
)
def test_a_verification_that_is_nothing_but_a_test_command_is_the_check(text: str, check: str) -> None:
    body = f"<feature><name>X</name></feature><verification>\n{text}\n</verification>"

    assert {task.check for task in tasks_of(body)} == {check}


def test_a_test_driven_plan_is_written_as_a_feature_and_read_as_the_same_plan() -> None:
    path = ".planning/phases/01-x/01-01-PLAN.md"
    plan = parse_plan(f"---\ntype: tdd\n---\n{TDD}", path=path, phase="1")
    text = render_plan(plan)

    assert "<tasks>" not in text
    assert "<behavior>1h30m is 5400 seconds</behavior>" in text
    assert "<implementation>One pass over the text</implementation>" in text
    again = parse_plan(text, path=path, phase="1")
    assert (again.tasks, again.type) == (plan.tasks, "tdd")
    changed = parse_plan(with_checks(again, {2: "pytest -x"}), path=path, phase="1")
    assert {task.check for task in changed.tasks} == {"pytest -x"}


MIXED = """
<tasks>
<task type="auto"><name>Task 1: Set up</name><files>setup.cfg</files><action>Write it</action>
<verify><automated>test -f setup.cfg</automated></verify><done>There</done></task>
<task type="auto" tdd="true">
  <name>Task 2: Duration parser</name>
  <files>src/duration.py, tests/test_duration.py</files>
  <behavior>1h30m is 5400 seconds</behavior>
  <action>One pass over the text</action>
  <verify><human-check>Try it</human-check><automated>pytest tests/test_duration.py</automated></verify>
  <done>It parses</done>
</task>
<task type="auto"><name>Task 3: Wire it</name><files>app.py</files><action>Call it</action>
<verify><automated>./app 1h</automated></verify><done>Wired</done></task>
</tasks>
"""


def test_a_test_driven_task_of_an_ordinary_plan_is_three_tasks_and_written_as_one() -> None:
    path = ".planning/phases/01-x/01-01-PLAN.md"
    plan = parse_plan(f"---\ntype: execute\n---\n{MIXED}", path=path, phase="1")
    text = render_plan(plan)
    again = parse_plan(text, path=path, phase="1")

    assert [(task.number, task.cycle) for task in plan.tasks] == [
        (1, ""),
        (2, "red"),
        (3, "green"),
        (4, "refactor"),
        (5, ""),
    ]
    _, red, green, _, _ = plan.tasks
    assert (red.files, green.files) == (("tests/test_duration.py",), ("src/duration.py",))
    assert (red.action, green.action) == ("1h30m is 5400 seconds", "One pass over the text")
    assert [task.number for task in plan.tasks if HUMAN_CHECK in task.details] == [3]
    assert text.count("<task ") == 3
    assert text.count('tdd="true"') == 1
    assert (again.tasks, again.type) == (plan.tasks, "execute")


def test_a_replaced_check_of_a_test_driven_task_is_that_of_all_three() -> None:
    path = ".planning/phases/01-x/01-01-PLAN.md"
    plan = parse_plan(f"---\ntype: execute\n---\n{MIXED}", path=path, phase="1")
    changed = parse_plan(with_checks(plan, {3: "pytest -x", 5: "./app 2h"}), path=path, phase="1")

    assert [task.check for task in changed.tasks] == ["test -f setup.cfg", *["pytest -x"] * 3, "./app 2h"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('tdd="true"', 'tdd="false"'),
        ('type="auto" tdd="true"', 'type="checkpoint:human-verify" tdd="true"'),
        ("<behavior>1h30m is 5400 seconds</behavior>", "<behavior> </behavior>"),
        ("src/duration.py, tests/test_duration.py", "tests/test_duration.py, docs/duration.md, .env.local"),
    ],
)
def test_a_task_that_adds_no_behavior_is_not_test_driven(old: str, new: str) -> None:
    assert old in MIXED
    tasks = tasks_of(MIXED.replace(old, new))

    assert [task.cycle for task in tasks] == ["", "", ""]


@pytest.mark.parametrize(
    ("body", "name", "action"),
    [
        (
            "# Phase 1 Plan 02: Doctor command\n\nIt checks the hooks.\n",
            "Doctor command",
            "checks the hooks",
        ),
        ("## Tasks\n\n1. **Model**: the table\n2. **Route**: GET /x\n", "Plan 01-02", "GET /x"),
        ("<tasks>\n- [ ] Add the model\n- [x] Add the route\n</tasks>\n", "Plan 01-02", "Add the model"),
        ("<tasks>\nFirst the model, then the route.\n</tasks>\n", "Plan 01-02", "then the route"),
        ('<tasks>\n<task type="auto"><name>Cut off\n</tasks>\n', "Plan 01-02", "Cut off"),
        ("<tasks>\n</tasks>\n<objective>Store notes.</objective>\n", "Plan 01-02", "Store notes."),
    ],
)
def test_a_plan_without_task_elements_is_one_task_with_its_text(body: str, name: str, action: str) -> None:
    [task] = tasks_of(body)

    assert (task.number, task.type, task.name, task.files) == (1, "auto", name, ("a.py",))
    assert action in task.action


def test_a_plan_of_frontmatter_alone_is_a_task_that_keeps_its_promises() -> None:
    text = plan_text(frontmatter='must_haves:\n  truths: ["Notes survive a restart"]\n', body="\n")
    [task] = parse_plan(text, path=PATH, phase="1").tasks

    assert "Notes survive a restart" in task.action


def test_texts_about_a_plan_are_not_part_of_its_whole_task() -> None:
    body = "<context>\n@.planning/PROJECT.md\n</context>\nDo it.\n<output>A summary</output>\n"
    [task] = tasks_of(body)

    assert task.action == "Do it."


def test_a_long_title_becomes_a_short_name() -> None:
    [task] = tasks_of(f"# {'word ' * 60}\n\nText\n")

    assert len(task.name) <= 80


def test_the_elements_below_a_task_heading_are_its_parts() -> None:
    body = (
        "## Tasks\n\n### Task A-1: Store `notes`\n\n<files>notes.py</files>\n<action>\nWrite it.\n</action>\n"
        "<verify><automated>pytest -q &amp;&amp; ruff check</automated></verify>\n\n"
        "### Task A-2: Show them\n\n**Files**: `show.py`, `main`\n\nPrint each line.\n"
    )
    first, second = tasks_of(body)

    assert (first.name, first.files, first.action) == ("Store `notes`", ("notes.py",), "Write it.")
    assert first.check == "pytest -q && ruff check"
    assert (second.name, second.files) == ("Show them", ("show.py",))


@pytest.mark.parametrize(
    ("inside", "command"),
    [
        ("a &amp;&amp; b", "a && b"),
        ("a 2&gt;&amp;1 | tee &quot;x&quot;", 'a 2>&1 | tee "x"'),
        ("test 1 -lt 2 &#38;&#x26; true", "test 1 -lt 2 && true"),
        ("<![CDATA[a && b < c]]>", "a && b < c"),
        ("\n    <![CDATA[\n  a &amp; b\n]]>\n", "a &amp; b"),
        ("`npm test`", "npm test"),
        ("```bash\nnpm test\n```", "npm test"),
        ("echo `date`", "echo `date`"),
        ("a && grep '&lt;b&gt;' out.html", "a && grep '&lt;b&gt;' out.html"),
        ("cd x && ls 2&gt;&amp;1", "cd x && ls 2>&1"),
        ("grep -c '&lt;b&gt;' out.html", "grep -c '<b>' out.html"),
        ("&amp;lt;", "&lt;"),
        ("curl 'http://h/?a=1&copy=2'", "curl 'http://h/?a=1&copy=2'"),
        ("MISSING — an earlier task creates tests/test_x.py", ""),
        ("none", ""),
        ("", ""),
    ],
)
def test_a_command_is_what_a_shell_should_run(inside: str, command: str) -> None:
    assert read_command(inside) == command


COMMANDS = st.lists(
    st.sampled_from(
        [
            "a",
            " ",
            "&",
            "&&",
            "<",
            ">",
            "&amp;",
            "&lt;",
            "<task>",
            "</automated>",
            "'",
            '"',
            "`",
            "]]>",
            "<![CDATA[",
            "MISSING",
            "none",
            "\n",
            "```",
            "&amp;lt;task",
            ";",
        ]
    ),
    min_size=1,
    max_size=12,
).map(lambda parts: "".join(parts).strip())


@given(COMMANDS)
def test_every_command_that_is_written_is_read_again(command: str) -> None:
    assert read_command(render_command(command)) == command


@given(COMMANDS.filter(bool))
def test_no_command_breaks_the_plan_around_it(command: str) -> None:
    tasks = (Task(number=1, name="One", check=command), Task(number=2, name="Two", done="Seen"))
    plan = Plan(id="01-02", phase="1", tasks=tasks, path=PATH)
    read = parse_plan(render_plan(plan), path=PATH, phase="1").tasks

    assert [(task.name, task.done) for task in read] == [("One", ""), ("Two", "Seen")]
    assert read[0].check == " ".join(command.split()) or read[0].check == command
