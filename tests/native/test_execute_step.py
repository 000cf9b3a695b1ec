"""execute: a task counts once it is checked and committed, whatever the agent says."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import (
    AddDecisions,
    Answer,
    Artifact,
    MustHaves,
    Permanent,
    PhaseView,
    Plan,
    Planning,
    Question,
    SetPosition,
    StepRequest,
    StepResult,
    Task,
    TickPlan,
)
from gsd_core.testing.fakes import Agent, FakeHost, Parked, Turn
from gsd_plugins import native

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
NOTHING: dict[str, list[str]] = {"deviations": [], "decisions": [], "issues": []}
STORE = Task(
    number=1, name="Store notes", files=("notes.py",), action="Write them.", check="test -s notes.py"
)
LIST = Task(number=2, name="List notes", files=("notes.py", "test_notes.py"), action="Read them.")


def a_plan(*tasks: Task, **fields: Any) -> Plan:
    return Plan(
        id="01-01",
        phase="1",
        name="Notes",
        objective="Keep notes",
        tasks=tasks or (STORE, LIST),
        path=".planning/phases/01-notes/01-01-PLAN.md",
        text="<plan text>",
        **fields,
    )


def a_step(plan: Plan, *, others: tuple[Plan, ...] = (), **fields: Any) -> StepRequest:
    phase = PhaseView(number="1", name="Notes", project=Path("/p"), goal="Notes", plans=(*others, plan))
    return StepRequest(
        id="1/execute/01-01",
        run="r-1",
        kind="execute",
        project=Path("/p"),
        tree=Path("/p"),
        now=NOW,
        phase=phase,
        plan=plan,
        planning=fields.pop("planning", Planning(phases=(phase,))),
        **fields,
    )


def run(step: StepRequest, host: FakeHost) -> StepResult:
    result = asyncio.run(native.execute_step(step, host))
    assert result is not None
    return result


def does(*numbers: int, replies: list[str] | None = None, **report: list[str]) -> Agent:
    """An executor that calls task_done for each number in turn, in its first turn only."""

    async def play(turn: Turn) -> Any:
        for number in numbers if not turn.complaints else ():
            files = list(next(task.files for task in (STORE, LIST) if task.number == min(number, 2)))
            reply = await turn.call("task_done", task=number, files=files, note=f"did {number}")
            if replies is not None:
                replies.append(reply)
        return {**NOTHING, **report}

    return {"execute": play}


def test_each_task_is_committed_under_its_own_subject() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan()), host)

    assert [commit.subject for commit in host.commits] == [
        "feat(01-01): Store notes",
        "feat(01-01): List notes",
    ]
    assert host.commands == ["test -s notes.py"]


def test_the_end_is_a_summary_a_tick_the_position_and_the_decisions() -> None:
    result = run(a_step(a_plan()), FakeHost(agent=does(1, 2, decisions=["Plain text files"])))

    assert result.subject == "docs(01-01): complete Notes plan"
    assert [file.path for file in result.files] == [".planning/phases/01-notes/01-01-SUMMARY.md"]
    assert "Plain text files" in result.files[0].text
    tick, position, decisions = result.changes
    assert tick == TickPlan(phase="1", plan="01-01")
    assert isinstance(position, SetPosition)
    assert (position.plan, position.plans, position.percent) == (1, 1, 100)
    assert decisions == AddDecisions(phase="1", decisions=("Plain text files",))


def test_the_summary_names_each_commit() -> None:
    host = FakeHost(agent=does(1, 2))
    text = run(a_step(a_plan()), host).files[0].text
    commits = [asyncio.run(host.commit_task(task, "", ())).commit for task in (STORE, LIST)]

    assert all(commit[:7] in text for commit in commits)


def test_the_summary_says_how_long_it_took_from_the_first_attempt_to_the_last_commit() -> None:
    times = iter((NOW + timedelta(minutes=20), NOW + timedelta(hours=1, minutes=15)))
    host = FakeHost(agent=does(1, 2), clock=lambda: next(times))
    step = a_step(a_plan(), began=NOW)
    first = run(step, host).files[0].text
    again = run(evolve(step, attempt=2, now=NOW + timedelta(days=9), tasks_done=(1, 2)), host).files[0].text

    assert 'duration: "75min"' in first
    assert "- **Duration:** 1h 15m\n" in first
    assert again == first


def test_the_summary_tells_new_files_from_changed_ones() -> None:
    host = FakeHost(agent=does(1, 2), there=("notes.py",))
    text = run(a_step(a_plan()), host).files[0].text

    assert "key-files:\n  created:\n    - test_notes.py\n  modified:\n    - notes.py\n" in text
    assert "- `test_notes.py` - created\n- `notes.py` - modified\n" in text


def test_the_summary_says_what_only_a_person_could_do_and_what_is_left() -> None:
    key = Task(number=2, name="Get a key", type="checkpoint:human-action", action="Create the account")
    host = FakeHost(agent=does(1, 2, issues=["The key expires"]), answers=["Done"])
    text = run(a_step(a_plan(STORE, key)), host).files[0].text

    assert "## User Setup Required\n\n- Get a key\n" in text
    assert "## Next Phase Readiness\nEvery task is done, and the issues above are left.\n" in text
    assert "*Phase: 01-notes*\n" in text


def test_the_summary_names_no_file_that_was_not_committed() -> None:
    look = Task(number=2, name="Look", type="checkpoint:human-verify", files=("page.html",))
    host = FakeHost(agent=does(1, 2))
    text = run(a_step(a_plan(STORE, look)), host).files[0].text

    assert "page.html" not in text


@pytest.mark.parametrize(
    ("began", "committed"), [(None, NOW), (NOW, None), (NOW, NOW - timedelta(minutes=1))]
)
def test_a_duration_that_nobody_knows_is_unknown(began: datetime | None, committed: datetime | None) -> None:
    host = FakeHost(agent=does(1, 2), clock=(lambda: committed) if committed else None)
    text = run(a_step(a_plan(), began=began), host).files[0].text

    assert "duration: unknown\n" in text
    assert "- **Duration:** unknown\n" in text


def test_a_plan_done_at_once_took_less_than_a_minute() -> None:
    host = FakeHost(agent=does(1, 2), clock=lambda: NOW + timedelta(seconds=12))
    text = run(a_step(a_plan(), began=NOW), host).files[0].text

    assert 'duration: "<1min"' in text
    assert "- **Duration:** less than a minute\n" in text


def test_an_executor_that_only_says_that_it_is_done_is_not_done() -> None:
    host = FakeHost(agent=does())
    with pytest.raises(Permanent, match="rejected"):
        run(a_step(a_plan()), host)

    assert len(host.complaints) == 3
    assert "task 1 (Store notes) is not done" in host.complaints[0][0]


def test_an_executor_reminded_of_a_task_may_still_do_it() -> None:
    async def forgetful(turn: Turn) -> Any:
        number = 2 if turn.complaints else 1
        await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    host = FakeHost(agent={"execute": forgetful})
    run(a_step(a_plan()), host)

    assert [commit.task for commit in host.commits] == [1, 2]


def test_a_recorded_answer_without_commits_does_not_pass() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan()), host)
    host.commits.clear()
    with pytest.raises(Permanent, match=r"not committed by its executor: task 1 \(Store notes\), 2"):
        run(a_step(a_plan()), host)


def test_a_failing_check_is_told_and_may_be_mended() -> None:
    replies: list[str] = []
    host = FakeHost(agent=does(1, 1, 2, replies=replies), checks={"test -s notes.py": [1, 0]})
    run(a_step(a_plan()), host)

    assert "`test -s notes.py` exits 1" in replies[0]
    assert "try 1 of 3" in replies[0]
    assert replies[1].startswith("Task 1 is committed")


def test_the_third_failure_of_a_check_ends_the_plan_with_its_output() -> None:
    replies: list[str] = []
    host = FakeHost(agent=does(1, 1, 1, 2, replies=replies), checks={"test -s notes.py": [1]})
    with pytest.raises(Permanent, match=r"task 1 \(Store notes\) failed 3 times: .*exits 1") as caught:
        run(a_step(a_plan()), host)

    assert "it failed" in str(caught.value)
    assert "Stop here" in replies[2]
    assert replies[3].startswith("Stop here")
    assert host.commits == []


def test_tasks_are_done_in_their_order() -> None:
    replies: list[str] = []
    run(a_step(a_plan()), FakeHost(agent=does(2, 1, 2, replies=replies)))

    assert replies[0] == "Task 1 (Store notes) comes first."


def test_a_task_that_the_plan_does_not_have_is_refused() -> None:
    replies: list[str] = []
    run(a_step(a_plan()), FakeHost(agent=does(9, 1, 2, replies=replies)))

    assert replies[0] == "The plan has no task 9; its tasks are 1 to 2."


def test_arguments_that_cannot_be_read_are_told() -> None:
    replies: list[str] = []

    async def sloppy(turn: Turn) -> Any:
        replies.append(await turn.call("task_done", task="one"))
        for number in (1, 2):
            await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    run(a_step(a_plan()), FakeHost(agent={"execute": sloppy}))

    assert replies == [
        "Not understood: task: expected a whole number, not 'one'; files is missing; note is missing"
    ]


def test_a_task_that_is_committed_already_is_told_so_and_not_done_again() -> None:
    replies: list[str] = []
    host = FakeHost(agent=does(1, 2, replies=replies))
    asyncio.run(host.commit_task(STORE, "feat(01-01): Store notes", ("notes.py",)))
    run(a_step(a_plan(), tasks_done=(1,)), host)

    assert "Tasks committed already, not to be done again: 1." in host.task("execute").prompt
    assert replies[0].startswith("Task 1 is committed already")
    assert [commit.task for commit in host.commits] == [1, 2]


def test_a_step_broken_off_between_two_tasks_goes_on_with_the_second() -> None:
    async def killed(turn: Turn) -> Any:
        await turn.call("task_done", task=1, files=["notes.py"], note="")
        raise KeyboardInterrupt

    host = FakeHost(agent={"execute": killed})
    with pytest.raises(KeyboardInterrupt):
        run(a_step(a_plan()), host)
    host.agent = does(2)
    run(a_step(a_plan(), tasks_done=(1,)), host)

    assert [commit.task for commit in host.commits] == [1, 2]


def test_the_agent_may_write_and_gets_the_tools_of_an_executor() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan()), host)
    task = host.task("execute")

    assert (task.role, task.writable, task.model) == ("executor", True, "sonnet")
    assert task.tools == ("Read", "Write", "Edit", "Bash", "Glob", "Grep", "AskUserQuestion")
    assert [function.name for function in task.functions] == ["task_done"]
    assert "<plan text>" in task.prompt


def test_the_executor_is_told_what_its_plan_builds_on() -> None:
    artifact = Artifact(path="store.py", provides="the store", exports=("load", "save"))
    before = Plan(
        id="01-00", phase="1", name="Store", summary="S.md", must_haves=MustHaves(artifacts=(artifact,))
    )
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan(depends_on=("01-00",)), others=(before,)), host)

    assert "store.py: the store (load, save)" in host.task("execute").prompt


def test_the_projects_own_conventions_are_handed_on() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan(), planning=Planning(documents={"CLAUDE.md": "Use tabs."})), host)

    assert "Use tabs." in host.task("execute").prompt


@pytest.mark.parametrize(
    ("name", "files", "kind"),
    [
        ("Cover the store", ["tests/test_store.py"], "test"),
        ("Say how it is used", ["README.md", "docs/use.rst"], "docs"),
        ("Fix the store", ["store.py"], "fix"),
        ("Add the store", ["store.py", "tests/test_store.py"], "feat"),
    ],
)
def test_the_type_of_a_commit_follows_from_its_files(name: str, files: list[str], kind: str) -> None:
    async def play(turn: Turn) -> Any:
        await turn.call("task_done", task=1, files=files, note="")
        return NOTHING

    host = FakeHost(agent={"execute": play})
    run(a_step(a_plan(Task(number=1, name=name))), host)

    assert host.commits[0].subject == f"{kind}(01-01): {name}"


LOOK = Task(number=2, name="Look", type="checkpoint:human-verify", details={"what-built": "A list"})


def checks(*files: str, times: int, replies: list[str]) -> Agent:
    async def play(turn: Turn) -> Any:
        await turn.call("task_done", task=1, files=["notes.py"], note="")
        told = [await turn.call("task_done", task=2, files=list(files), note="") for _ in range(times)]
        replies.extend(told)
        return NOTHING

    return {"execute": play}


def test_a_checkpoint_asks_the_human_and_hands_the_answer_to_the_agent() -> None:
    replies: list[str] = []
    host = FakeHost(agent=checks(times=1, replies=replies))
    run(a_step(a_plan(STORE, LOOK)), host)

    assert replies == ["The human says: Works\nThat was the last one: answer now."]
    assert host.inquiries[0].kind == "checkpoint"
    assert host.inquiries[0].questions[0].text == "A list"
    assert [commit.task for commit in host.commits] == [1]


def test_what_a_human_finds_wrong_is_mended_committed_and_asked_again() -> None:
    replies: list[str] = []
    host = FakeHost(
        agent=checks("notes.py", times=2, replies=replies), answers=["it is upside down", "Works"]
    )
    run(a_step(a_plan(STORE, LOOK)), host)

    assert "The human says: it is upside down\nMend that" in replies[0]
    assert len(host.inquiries) == 2
    assert [commit.subject for commit in host.commits] == ["feat(01-01): Store notes", "fix(01-01): Look"]


def test_a_human_who_says_no_three_times_ends_the_plan() -> None:
    replies: list[str] = []
    host = FakeHost(agent=checks(times=3, replies=replies), answers=["no", "still no", "Does not work"])
    with pytest.raises(Permanent, match="the human said 3 times: Does not work"):
        run(a_step(a_plan(STORE, LOOK)), host)

    assert "Stop here" in replies[2]


def test_a_decision_offers_its_options_with_the_first_recommended() -> None:
    options = (
        '<option id="a"><name>Files</name><pros>plain</pros></option><option id="b"><name>SQL</name></option>'
    )
    details = {"decision": "Where do notes go?", "options": options}
    task = Task(number=2, name="Storage", type="checkpoint:decision", details=details)
    replies: list[str] = []
    host = FakeHost(agent=checks(times=1, replies=replies), answers=["SQL"])
    run(a_step(a_plan(STORE, task)), host)
    offered = host.inquiries[0].questions[0].options

    assert [(option.label, option.recommended) for option in offered] == [("Files", True), ("SQL", False)]
    assert offered[0].description == "pros: plain"
    assert replies[0].startswith("The human says: SQL")


def test_a_human_action_is_never_done_by_a_policy() -> None:
    task = Task(number=2, name="Get a key", type="checkpoint:human-action", action="Create the account")
    with pytest.raises(Parked):
        run(a_step(a_plan(STORE, task)), FakeHost(agent=checks(times=1, replies=[])))


def test_a_human_action_that_was_not_done_is_not_done() -> None:
    def answer(question: Question) -> Answer:
        text = "" if "Asked again" in question.text else "no time"
        return Answer(question="", text=text, chosen=() if text else ("Done",))

    task = Task(number=2, name="Get a key", type="checkpoint:human-action", action="Create the account")
    replies: list[str] = []
    run(a_step(a_plan(STORE, task)), FakeHost(agent=checks(times=2, replies=replies), answers=answer))

    assert [reply.splitlines()[0] for reply in replies] == ["The human says: no time", "The human says: Done"]
