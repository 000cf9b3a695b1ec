"""execute: a task counts once it is checked and committed, regardless of the agent's report."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import (
    AddDecisions,
    Answer,
    Artifact,
    BadArtifact,
    CheckResult,
    DeferredTask,
    Gap,
    GapReport,
    KeyLink,
    MustHaves,
    Permanent,
    PhaseView,
    Plan,
    Planning,
    Question,
    ReplacedCheck,
    Requirement,
    SetPosition,
    StepRequest,
    StepResult,
    Task,
    TickPlan,
    Truth,
)
from gsd_core.planning.config_keys import validate_config
from gsd_core.planning.model import Verdict
from gsd_core.planning.plan import parse_plan, render_plan
from gsd_core.testing.fakes import Agent, FakeHost, Parked, Turn
from gsd_plugins import native
from gsd_plugins.native.unfinished import with_unfinished
from gsd_plugins.rehearsal.scenario import is_accepted

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


def does(*numbers: int, replies: list[str] | None = None, **report: Any) -> dict[str, Any]:
    """An executor that calls task_done for each number in turn, in its first turn only."""

    async def play(turn: Turn) -> Any:
        for number in numbers if not turn.complaints else ():
            files = list(next(task.files for task in (STORE, LIST) if task.number == min(number, 2)))
            reply = await turn.call("task_done", task=number, files=files, note=f"did {number}")
            if replies is not None:
                replies.append(reply)
        return {**NOTHING, **report}

    return {"execute": play, "dispute-1": KEPT}


def test_each_task_is_committed_under_its_own_subject() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan()), host)

    assert [commit.subject for commit in host.commits] == [
        "feat(01-01): Store notes",
        "feat(01-01): List notes",
    ]
    assert host.commands == ["test -s notes.py"]


def test_the_result_has_the_summary_the_tick_the_position_and_the_decisions() -> None:
    result = run(a_step(a_plan()), FakeHost(agent=does(1, 2, decisions=["Plain text files"])))

    assert result.subject == "docs(01-01): complete Notes plan"
    assert [file.path for file in result.files] == [".planning/phases/01-notes/01-01-SUMMARY.md"]
    assert "Plain text files" in result.files[0].text
    tick, position, decisions = result.changes
    assert tick == TickPlan(phase="1", plan="01-01")
    assert isinstance(position, SetPosition)
    assert position.activity == "Completed 01-01"
    assert decisions == AddDecisions(phase="1", decisions=("Plain text files",))


def test_the_summary_names_each_commit() -> None:
    host = FakeHost(agent=does(1, 2))
    text = run(a_step(a_plan()), host).files[0].text
    commits = [asyncio.run(host.commit_task(task, "", ())).commit for task in (STORE, LIST)]

    assert all(commit[:7] in text for commit in commits)


def test_the_duration_runs_from_the_first_attempt_to_the_last_commit() -> None:
    times = iter((NOW + timedelta(minutes=20), NOW + timedelta(hours=1, minutes=15)))
    host = FakeHost(agent=does(1, 2), clock=lambda: next(times))
    step = a_step(a_plan(), began=NOW)
    first = run(step, host).files[0].text
    again = run(evolve(step, attempt=2, now=NOW + timedelta(days=9), tasks_done=(1, 2)), host).files[0].text

    assert 'duration: "75min"' in first
    assert "- **Duration:** 1h 15m\n" in first
    assert again == first


def test_the_summary_distinguishes_created_and_modified_files() -> None:
    host = FakeHost(agent=does(1, 2), there=("notes.py",))
    text = run(a_step(a_plan()), host).files[0].text

    assert "key-files:\n  created:\n    - test_notes.py\n  modified:\n    - notes.py\n" in text
    assert "- `test_notes.py` - created\n- `notes.py` - modified\n" in text


def test_the_summary_lists_user_setup_and_open_issues() -> None:
    key = Task(number=2, name="Get a key", type="checkpoint:human-action", action="Create the account")
    host = FakeHost(agent=does(1, 2, issues=["The key expires"]), answers=["Done"])
    text = run(a_step(a_plan(STORE, key)), host).files[0].text

    assert "## User Setup Required\n\n- Get a key\n" in text
    assert "issues above" in text.partition("## Next Phase Readiness\n")[2]
    assert "*Phase: 01-notes*\n" in text


def test_the_summary_lists_only_committed_files() -> None:
    look = Task(number=2, name="Look", type="checkpoint:human-verify", files=("page.html",))
    host = FakeHost(agent=does(1, 2))
    text = run(a_step(a_plan(STORE, look)), host).files[0].text

    assert "page.html" not in text


@pytest.mark.parametrize(
    ("began", "committed"), [(None, NOW), (NOW, None), (NOW, NOW - timedelta(minutes=1))]
)
def test_a_duration_that_cannot_be_computed_is_unknown(
    began: datetime | None, committed: datetime | None
) -> None:
    host = FakeHost(agent=does(1, 2), clock=(lambda: committed) if committed else None)
    text = run(a_step(a_plan(), began=began), host).files[0].text

    assert "duration: unknown\n" in text
    assert "- **Duration:** unknown\n" in text


def test_a_short_duration_is_less_than_a_minute() -> None:
    host = FakeHost(agent=does(1, 2), clock=lambda: NOW + timedelta(seconds=12))
    text = run(a_step(a_plan(), began=NOW), host).files[0].text

    assert 'duration: "<1min"' in text
    assert "- **Duration:** less than a minute\n" in text


def test_an_executor_that_only_claims_to_be_done_is_rejected() -> None:
    host = FakeHost(agent=does())
    with pytest.raises(Permanent, match="rejected"):
        run(a_step(a_plan()), host)

    assert len(host.complaints) == 3
    assert "task 1 (Store notes) is not done" in host.complaints[0][0]


def test_an_executor_can_do_a_forgotten_task_after_the_complaint() -> None:
    async def forgetful(turn: Turn) -> Any:
        number = 2 if turn.complaints else 1
        await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    host = FakeHost(agent={"execute": forgetful})
    run(a_step(a_plan()), host)

    assert [commit.task for commit in host.commits] == [1, 2]


def test_a_recorded_answer_without_commits_fails() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan()), host)
    host.commits.clear()
    with pytest.raises(Permanent, match=r"not commit.*1 \(Store notes\), 2 \(List notes\)"):
        run(a_step(a_plan()), host)


def test_a_failing_check_is_reported_and_can_be_fixed() -> None:
    replies: list[str] = []
    host = FakeHost(agent=does(1, 1, 2, replies=replies), checks={"test -s notes.py": [1, 0]})
    run(a_step(a_plan()), host)

    assert "`test -s notes.py` exits 1" in replies[0]
    assert "1 of 3" in replies[0]
    assert replies[1].startswith("Task 1 is committed")


def test_the_third_failure_of_a_check_fails_the_plan_with_its_output() -> None:
    replies: list[str] = []
    host = FakeHost(agent=does(1, 1, 1, 2, replies=replies), checks={"test -s notes.py": [1]})
    with pytest.raises(Permanent, match=r"task 1 \(Store notes\) failed 3 times: .*exits 1") as caught:
        run(a_step(a_plan()), host)

    assert "it failed" in str(caught.value)
    assert "Stop here" in replies[2]
    assert replies[3].startswith("Stop here")
    assert host.commits == []


def test_tasks_must_be_done_in_order() -> None:
    replies: list[str] = []
    run(a_step(a_plan()), FakeHost(agent=does(2, 1, 2, replies=replies)))

    assert replies[0].startswith("Task 1 (Store notes)")
    assert not is_accepted(replies[0])


def test_an_unknown_task_number_is_refused() -> None:
    replies: list[str] = []
    run(a_step(a_plan()), FakeHost(agent=does(9, 1, 2, replies=replies)))

    assert "no task 9" in replies[0]
    assert not is_accepted(replies[0])


def test_invalid_arguments_are_refused_with_every_problem() -> None:
    replies: list[str] = []

    async def sloppy(turn: Turn) -> Any:
        replies.append(await turn.call("task_done", task="one"))
        for number in (1, 2):
            await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    run(a_step(a_plan()), FakeHost(agent={"execute": sloppy}))

    assert not is_accepted(replies[0])
    assert all(part in replies[0] for part in ("task: ", "'one'", "files is missing", "note is missing"))


def test_a_committed_task_is_not_committed_again() -> None:
    replies: list[str] = []
    host = FakeHost(agent=does(1, 2, replies=replies))
    asyncio.run(host.commit_task(STORE, "feat(01-01): Store notes", ("notes.py",)))
    run(a_step(a_plan(), tasks_done=(1,)), host)

    assert re.search(r"already committed.*: 1\.$", host.task("execute").prompt, re.MULTILINE)
    assert replies[0].startswith("Task 1 is already committed")
    assert [commit.task for commit in host.commits] == [1, 2]


def test_an_interrupted_step_continues_with_the_next_task() -> None:
    async def killed(turn: Turn) -> Any:
        await turn.call("task_done", task=1, files=["notes.py"], note="")
        raise KeyboardInterrupt

    host = FakeHost(agent={"execute": killed})
    with pytest.raises(KeyboardInterrupt):
        run(a_step(a_plan()), host)
    host.agent = does(2)
    run(a_step(a_plan(), tasks_done=(1,)), host)

    assert [commit.task for commit in host.commits] == [1, 2]


def test_the_executor_can_write_and_run_commands() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan()), host)
    task = host.task("execute")

    assert (task.role, task.writable, task.model) == ("executor", True, "sonnet")
    assert task.tools == ("Read", "Write", "Edit", "Bash", "Glob", "Grep", "AskUserQuestion")
    assert [function.name for function in task.functions] == [
        "task_done",
        "need_authentication",
        "ask_architecture",
    ]
    assert "<plan text>" in task.prompt


def test_the_prompt_lists_the_plans_that_the_plan_depends_on() -> None:
    artifact = Artifact(path="store.py", provides="the store", exports=("load", "save"))
    before = Plan(
        id="01-00", phase="1", name="Store", summary="S.md", must_haves=MustHaves(artifacts=(artifact,))
    )
    host = FakeHost(agent=does(1, 2))
    run(a_step(a_plan(depends_on=("01-00",)), others=(before,)), host)

    assert "store.py: the store (load, save)" in host.task("execute").prompt


def test_the_prompt_says_what_detectors_look_for_and_what_the_open_plans_build() -> None:
    artifact = Artifact(path="store.py", provides="the store", exports=("load", "save"), min_lines=20)
    link = KeyLink(source="cli.py", target="store.py", via="import", pattern="import store")
    told, untold = Truth(id="T1", text="Do it well"), Truth(id="T2", text="Guests are still there")
    promised = MustHaves(truths=(told, untold), artifacts=(artifact,), key_links=(link,))
    text = """---
phase: 1
---
<objective>
Do it well
</objective>

<output>
After completion, create the SUMMARY
</output>
"""
    other = Plan(
        id="01-02", phase="1", name="Page", must_haves=MustHaves(artifacts=(Artifact(path="page.py"),))
    )
    host = FakeHost(agent=does(1, 2))
    run(a_step(evolve(a_plan(must_haves=promised), text=text), others=(other,)), host)
    prompt = host.task("execute").prompt

    assert "- store.py: the store; exports load, save; has at least 20 lines\n" in prompt
    assert (
        "- cli.py refers to store.py, with a match of the regular expression `import store`: import\n"
        in prompt
    )
    assert "- Guests are still there\n" in prompt
    assert prompt.count("Do it well") == 1
    assert "After completion" not in prompt
    assert "- 01-02 Page\n  page.py" in prompt


def test_the_prompt_contains_the_project_s_conventions() -> None:
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
def test_the_commit_type_follows_from_files_and_name(name: str, files: list[str], kind: str) -> None:
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
        call = {"task": 2, "files": list(files), "note": ""}
        replies.extend([await turn.call("task_done", **call) for _ in range(times)])
        return NOTHING

    return {"execute": play}


def test_a_checkpoint_asks_the_human_and_returns_the_answer_to_the_agent() -> None:
    replies: list[str] = []
    host = FakeHost(agent=checks(times=1, replies=replies))
    run(a_step(a_plan(STORE, LOOK)), host)

    assert [reply.splitlines()[0] for reply in replies] == ["The human says: Works"]
    assert host.inquiries[0].kind == "checkpoint"
    assert host.inquiries[0].questions[0].text == "A list"
    assert [commit.task for commit in host.commits] == [1]


def test_a_rejected_checkpoint_is_fixed_asked_again_and_committed() -> None:
    replies: list[str] = []
    host = FakeHost(
        agent=checks("notes.py", times=2, replies=replies), answers=["it is upside down", "Works"]
    )
    run(a_step(a_plan(STORE, LOOK)), host)

    assert replies[0].startswith("The human says: it is upside down\n")
    assert len(host.inquiries) == 2
    assert [commit.subject for commit in host.commits] == ["feat(01-01): Store notes", "fix(01-01): Look"]


def test_the_third_rejection_of_a_checkpoint_fails_the_plan() -> None:
    replies: list[str] = []
    host = FakeHost(agent=checks(times=3, replies=replies), answers=["no", "still no", "Does not work"])
    with pytest.raises(Permanent, match="the human rejected it 3 times: Does not work"):
        run(a_step(a_plan(STORE, LOOK)), host)

    assert "Stop here" in replies[2]


def test_the_executor_of_a_gap_plan_is_told_the_gap_and_not_that_the_file_is_done() -> None:
    issue = BadArtifact(path="README.md", issue="it has no usage")
    gap = Gap(truth="README.md has usage", reason="it has no usage", about="README.md", artifacts=(issue,))
    other = Gap(truth="Notes are sorted", reason="they are not", about="NOTE-09")
    readme = MustHaves(artifacts=(Artifact(path="README.md", provides="usage"),))
    earlier = Plan(id="01-00", phase="1", name="Docs", summary="S.md", must_haves=readme)
    plan = evolve(a_plan(), gap_closure=True, objective="README.md has usage")
    verdict = Verdict(status="gaps_found", gaps=(gap, other))
    phase = a_step(plan, others=(earlier,)).phase
    assert phase is not None
    phase = evolve(phase, verdict=verdict)
    host = FakeHost(agent=does(1, 2))
    run(evolve(a_step(plan, planning=Planning(phases=(phase,))), phase=phase), host)
    prompt = host.task("execute").prompt

    assert "- gap README.md\n  truth: README.md has usage\n  reason: it has no usage\n" in prompt
    assert "Notes are sorted" not in prompt
    assert "  README.md: usage (gap: it has no usage)" in prompt


def test_a_decision_offers_its_options_with_the_first_recommended() -> None:
    options = (
        '<option id="a"><name>Files</name><pros>plain</pros></option><option id="b"><name>SQL</name></option>'
    )
    details = {"decision": "Where do notes go?", "options": options}
    task = Task(number=2, name="Storage", type="checkpoint:decision", details=details)
    replies: list[str] = []
    host = FakeHost(agent=checks(times=1, replies=replies), answers=["SQL"])
    summary = run(a_step(a_plan(STORE, task)), host).files[0].text
    offered = host.inquiries[0].questions[0].options

    assert [(option.label, option.recommended) for option in offered] == [("Files", True), ("SQL", False)]
    assert offered[0].description == "pros: plain"
    assert replies[0].startswith("The human says: SQL")
    assert '  - "[Asked] Where do notes go? SQL"\n' in summary


def test_no_policy_answers_for_a_human_action() -> None:
    task = Task(number=2, name="Get a key", type="checkpoint:human-action", action="Create the account")
    with pytest.raises(Parked):
        run(a_step(a_plan(STORE, task)), FakeHost(agent=checks(times=1, replies=[])))


def test_a_human_action_is_asked_again_until_it_is_done() -> None:
    def answer(question: Question) -> Answer:
        text = "" if "Asked again" in question.text else "no time"
        return Answer(question="", text=text, chosen=() if text else ("Done",))

    task = Task(number=2, name="Get a key", type="checkpoint:human-action", action="Create the account")
    replies: list[str] = []
    host = FakeHost(agent=checks(times=2, replies=replies), answers=answer)
    assert "[Asked]" not in run(a_step(a_plan(STORE, task)), host).files[0].text

    assert [reply.splitlines()[0] for reply in replies] == ["The human says: no time", "The human says: Done"]


# Checks that prove something


BETTER = {"check": "python3 -m unittest tests.test_notes", "reason": "It tests what is stored."}
KEPT = {"check": "", "reason": "A refactoring changes no behavior."}
REAL = evolve(STORE, verify="It is there")


def real_plan(*tasks: Task) -> Plan:
    plan = a_plan(*(tasks or (REAL, LIST)))
    return evolve(plan, text=render_plan(plan))


def test_a_check_that_passes_before_its_task_is_replaced_once_and_written_into_the_plan() -> None:
    plan = real_plan()
    host = FakeHost(agent={**does(1, 2), "check-1": BETTER}, passes_before=[STORE.check])
    result = run(a_step(plan), host)

    assert host.keys == ("check-1", "execute")
    assert host.task("check-1").role == "planner"
    assert host.commands == [BETTER["check"]]
    written = {file.path: file.text for file in result.files}
    again = parse_plan(written[plan.path], path=plan.path, phase="1")
    assert [task.check for task in again.tasks] == [BETTER["check"], ""]
    assert BETTER["reason"] in next(text for path, text in written.items() if "SUMMARY" in path)
    assert BETTER["check"] in host.task("execute").prompt


def test_a_check_that_the_planner_keeps_is_called_regression_evidence() -> None:
    host = FakeHost(agent={**does(1, 2), "check-1": KEPT}, passes_before=[STORE.check])
    [summary] = run(a_step(real_plan()), host).files

    assert "passed before the task too" in summary.text
    assert KEPT["reason"] in summary.text
    assert [(each.check, each.because) for each in host.replaced] == [(STORE.check, "passes before")]


def test_the_reason_of_a_check_that_is_kept_is_told_also_if_the_task_commits_a_test() -> None:
    async def play(turn: Turn) -> Any:
        await turn.call("task_done", task=1, files=["notes.py", "test_notes.py"], note="")
        await turn.call("task_done", task=2, files=["notes.py"], note="")
        return NOTHING

    host = FakeHost(agent={"execute": play, "check-1": KEPT}, passes_before=[STORE.check])
    [summary] = run(a_step(real_plan()), host).files

    assert KEPT["reason"] in summary.text
    assert "as it did with the tests" not in summary.text


def test_a_better_check_that_passes_before_too_is_not_asked_about_again() -> None:
    host = FakeHost(agent={**does(1, 2), "check-1": BETTER}, passes_before=[STORE.check, BETTER["check"]])
    files = run(a_step(real_plan()), host).files

    assert host.keys == ("check-1", "execute")
    assert "passed before the task too" in files[0].text


def test_a_check_that_runs_tests_which_its_task_changes_may_pass_before(tmp_path: Path) -> None:
    (tmp_path / "test_notes.py").write_text("", encoding="utf-8")
    plan = real_plan(evolve(REAL, files=("notes.py", "test_notes.py")), LIST)

    async def play(turn: Turn) -> Any:
        await turn.call("task_done", task=1, files=["notes.py", "test_notes.py"], note="")
        await turn.call("task_done", task=2, files=["notes.py"], note="")
        return NOTHING

    host = FakeHost(agent={"execute": play}, passes_before=[STORE.check])
    [summary] = run(evolve(a_step(plan), tree=tmp_path), host).files

    assert host.keys == ("execute",)
    assert "passed, as it did with the tests that were there before" in summary.text


def test_the_check_of_a_later_task_runs_right_after_the_task_before_it() -> None:
    later = evolve(LIST, check="test -s test_notes.py")
    order: list[str] = []

    async def play(turn: Turn) -> Any:
        for number in (1, 2):
            order.append(f"work on {number}")
            await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    def look(turn: Turn) -> Any:
        order.append(turn.key)
        return BETTER

    host = FakeHost(agent={"execute": play, "check-2": look}, passes_before=[later.check])
    run(a_step(real_plan(REAL, later)), host)

    assert order == ["work on 1", "check-2", "work on 2"]


@pytest.mark.parametrize("files", [(), (".planning/STATE.md",)])
def test_a_task_that_only_verifies_may_have_a_check_that_passes_before(files: tuple[str, ...]) -> None:
    task = Task(number=1, name="Verify", files=files, check="make check")
    host = FakeHost(agent={"execute": finishes(1)}, passes_before=["make check"])
    run(a_step(real_plan(task)), host)

    assert host.keys == ("execute",)
    assert [commit.task for commit in host.commits] == [1]


def finishes(*numbers: int, **report: Any) -> Any:
    async def play(turn: Turn) -> Any:
        for number in numbers if not turn.complaints else ():
            await turn.call("task_done", task=number, files=["notes.py"], note=f"wrote {number}")
        return {**NOTHING, **report}

    return play


def test_recorded_decisions_about_checks_are_used_without_asking() -> None:
    plan = real_plan()
    decision = ReplacedCheck(
        task=1, was=STORE.check, check="make notes", reason="It is better.", because="passes before"
    )
    host = FakeHost(agent=does(1, 2), passes_before=[STORE.check, "make notes"])
    result = run(a_step(plan, replaced_checks=(decision,)), host)

    assert host.keys == ("execute",)
    assert host.commands == ["make notes"]
    assert any("make notes" in file.text for file in result.files if file.path == plan.path)


def unusable(command: str) -> CheckResult:
    if command == STORE.check:
        return CheckResult(command=command, exit=127, output="not found", unusable="`jq` is not installed")
    return CheckResult(command=command, exit=0)


def test_a_check_that_cannot_run_is_repaired_without_costing_an_attempt() -> None:
    replies: list[str] = []
    agent = {**does(1, 2, replies=replies), "repair-1": BETTER}
    host = FakeHost(agent=agent, checks=unusable)
    result = run(a_step(real_plan()), host)

    assert replies[0].startswith("Task 1 is committed")
    assert any(BETTER["check"] in file.text for file in result.files if file.path.endswith("PLAN.md"))
    assert host.replaced[0].because == "cannot run"


def test_without_another_check_the_failure_names_the_program_and_the_plan() -> None:
    host = FakeHost(agent={**does(1, 2), "repair-1": {**KEPT, "reason": "jq is needed."}}, checks=unusable)
    with pytest.raises(Permanent) as caught:
        run(a_step(real_plan()), host)

    assert all(part in str(caught.value) for part in ("task 1", "`jq`", STORE.check, "jq is needed."))
    assert all(part in caught.value.hint for part in ("install", "task 1", "01-01-PLAN.md"))
    assert host.keys == ("execute", "repair-1")


def disputes(*disputed: str, replies: list[str], then: Sequence[int] = ()) -> dict[str, Any]:
    """An executor that calls task_done for task 1 with each dispute, then for the tasks *then*."""

    async def play(turn: Turn) -> Any:
        for number, said in [*((1, said) for said in disputed), *((number, "") for number in then)]:
            call = {"task": number, "files": ["notes.py"], "note": "stored", "dispute": said}
            replies.append(await turn.call("task_done", **call))
        return {**NOTHING, "issues": ["The check is wrong."]}

    return {"execute": play}


def test_a_disputed_check_is_replaced_by_the_planner_and_costs_no_attempt() -> None:
    replies: list[str] = []
    agent = {**disputes("", "The path is wrong.", replies=replies, then=[2]), "dispute-1": BETTER}
    host = FakeHost(agent=agent, checks={STORE.check: [1]})
    result = run(a_step(real_plan()), host)

    assert replies[1].startswith("Task 1 is committed")
    assert "The path is wrong." in host.task("dispute-1").prompt
    texts = {file.path.rpartition("-")[2]: file.text for file in result.files}
    assert (
        f"was replaced, because it was wrong: `{STORE.check}` became `{BETTER['check']}`"
        in texts["SUMMARY.md"]
    )
    assert BETTER["check"] in texts["PLAN.md"]


def test_a_disputed_check_that_the_planner_keeps_is_not_disputed_again() -> None:
    replies: list[str] = []
    agent = {**disputes(*["It is wrong."] * 4, replies=replies), "dispute-1": KEPT}
    host = FakeHost(agent=agent, checks={STORE.check: [1]})
    with pytest.raises(Permanent, match="failed 3 times"):
        run(a_step(real_plan()), host)

    assert host.keys == ("execute", "dispute-1")
    assert f"The planner keeps the check: {KEPT['reason']}" in replies[0]
    assert ["costs no attempt" in reply for reply in replies] == [True, False, False, False]
    assert "attempt 1 of 3" in replies[1]


@pytest.mark.parametrize("fails_too", [False, True])
def test_before_work_is_taken_back_the_planner_is_asked_about_the_check(fails_too: bool) -> None:
    replies: list[str] = []
    last = [""] if fails_too else []
    agent = {**disputes("", "", "", *last, replies=replies, then=[2]), "dispute-1": BETTER}
    host = FakeHost(agent=agent, checks={STORE.check: [1], BETTER["check"]: [int(fails_too), 0]})
    run(a_step(real_plan(), will_be_verified=True), host)

    assert host.deferred == []
    assert ("costs no attempt" in replies[2]) is fails_too
    assert replies[-2].startswith("Task 1 is committed")


def test_the_work_of_a_deferred_task_is_named_to_the_next_attempt_and_in_its_gap(tmp_path: Path) -> None:
    class Keeps(FakeHost):
        async def defer_task(self, task: Task, reason: str, paths: Sequence[str] = ()) -> DeferredTask:
            deferred = await super().defer_task(task, reason, paths)
            return evolve(deferred, ref=f"refs/gsd/recover/{task.number}")

    def host(*then: int, exits: int) -> FakeHost:
        agent = {**disputes("", "", "", replies=[], then=then), "dispute-1": KEPT, "dispute-2": KEPT}
        return Keeps(agent=agent, checks={STORE.check: [1], other.check: [exits]})

    other = evolve(LIST, files=("list.py",), check="test -s list.py")
    step = a_step(real_plan(REAL, other), will_be_verified=True)
    with pytest.raises(Permanent, match="kept in refs/gsd/recover/1"):
        run(step, host(2, 2, 2, exits=1))
    (tmp_path / "S.md").write_text(run(step, host(2, exits=0)).files[0].text)
    assert step.plan is not None
    plan = evolve(step.plan, summary="S.md")
    found = Gap(truth="The check passes", reason="it fails", about="01-01/1", missing=("a fix",))
    phase = PhaseView(number="1", name="Notes", project=tmp_path, plans=(plan,))
    [gap] = with_unfinished(phase, GapReport(gaps=(found,))).gaps
    assert gap.missing[0] == "a fix"
    assert "git show refs/gsd/recover/1" in gap.missing[1]


class WrongSyntax(FakeHost):
    """A host that finds the syntax of the check of :data:`STORE` wrong."""

    async def check_before(self, task: Task) -> CheckResult:
        wrong = "its shell syntax is wrong" if task.check == STORE.check else ""
        return CheckResult(command=task.check, exit=2, unusable=wrong)


def test_wrong_syntax_is_repaired_before_the_executor_begins() -> None:
    host = WrongSyntax(agent={**does(1, 2), "repair-1": BETTER})
    run(a_step(real_plan()), host)

    assert host.keys == ("repair-1", "execute")


def test_a_planner_whose_check_cannot_fail_is_complained_at_and_then_keeps_the_old_one() -> None:
    trivial = {"check": "true", "reason": "It is quick."}
    host = FakeHost(agent={**does(1, 2), "check-1": [trivial, BETTER]}, passes_before=[STORE.check])
    run(a_step(real_plan()), host)

    assert "cannot fail" in host.complaints[0][0]
    assert host.commands == [BETTER["check"]]


# What a person and a later attempt are told


def test_the_failure_contains_the_executors_diagnosis_and_the_hint_names_the_plan() -> None:
    agent = does(1, 1, 1, issues=["The sensor answers in feet, the plan says meters."])
    host = FakeHost(agent=agent, checks={STORE.check: [1]})
    with pytest.raises(Permanent, match="answers in feet") as caught:
        run(a_step(real_plan()), host)

    assert all(part in caught.value.hint for part in ("task 1", "01-01-PLAN.md"))
    assert STORE.check in str(caught.value)
    assert host.complaints == []


def test_an_executor_without_a_diagnosis_is_asked_for_it_once() -> None:
    host = FakeHost(agent=does(1, 1, 1), checks={STORE.check: [1]})
    with pytest.raises(Permanent, match="did 1"):
        run(a_step(real_plan()), host)

    assert [len(complaints) for complaints in host.complaints] == [1]
    assert "issues" in host.complaints[0][0]


def test_a_long_output_does_not_push_the_diagnosis_out_of_the_message() -> None:
    noise = CheckResult(command=STORE.check, exit=1, output="x\n" * 2000 + "AssertionError: 3 != 4")
    agent = does(1, 1, 1, issues=["Rounding."])
    host = FakeHost(agent=agent, checks=lambda command: noise)
    with pytest.raises(Permanent) as caught:
        run(a_step(real_plan()), host)

    assert len(str(caught.value)) < 2000
    assert "AssertionError: 3 != 4" in str(caught.value)
    assert "Rounding." in str(caught.value)


def test_the_plan_is_the_executors_task_and_not_data() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(real_plan()), host)
    prompt = host.task("execute").prompt
    outside = re.sub(r"<(data-\w+).*?</\1>", "", prompt, flags=re.DOTALL)

    assert "Write them." in outside
    assert "must_haves:" not in prompt


def test_the_executor_is_told_how_the_last_attempt_ended() -> None:
    host = FakeHost(agent=does(1, 2))
    left = tuple(f"src/part{number}.py" for number in range(40))
    run(a_step(real_plan(), last_failure="the check failed: 3 != 4", left_behind=left), host)
    prompt = host.task("execute").prompt

    assert "3 != 4" in prompt
    assert "src/part0.py" in prompt
    assert "src/part39.py" not in prompt
    assert "and 10 more" in prompt


def test_a_first_attempt_is_told_of_no_other() -> None:
    host = FakeHost(agent=does(1, 2))
    run(a_step(real_plan()), host)

    assert "last attempt" not in host.task("execute").prompt


def test_the_executor_gets_the_requirements_and_the_decisions() -> None:
    plan = real_plan()
    step = a_step(plan)
    assert step.phase is not None
    phase = evolve(step.phase, requirements=("CORE-01",), context="Use plain text files.")
    planning = Planning(phases=(phase,), requirements=(Requirement(id="CORE-01", text="Notes are kept"),))
    host = FakeHost(agent=does(1, 2))
    run(evolve(step, phase=phase, planning=planning), host)

    assert "Notes are kept" in host.task("execute").prompt
    assert "Use plain text files." in host.task("execute").prompt


def test_the_summary_says_what_was_done() -> None:
    host = FakeHost(agent=does(1, 2, summary="Notes survive a restart."))
    text = run(a_step(real_plan()), host).files[0].text

    assert "**Notes survive a restart.**" in text
    assert "- did 1\n- did 2\n" in text
    assert [commit.note for commit in host.commits] == ["did 1", "did 2"]


def test_a_summary_of_a_resumed_step_has_the_earlier_notes() -> None:
    host = FakeHost(agent=does(1, 2))
    first = run(a_step(real_plan()), host).files[0].text
    again = run(a_step(real_plan(), tasks_done=(1, 2), attempt=2), host).files[0].text

    assert again == first


# What is left for later, and logins


def test_what_does_not_belong_to_the_plan_is_deferred_and_listed(tmp_path: Path) -> None:
    folder = tmp_path / ".planning/phases/01-notes"
    folder.mkdir(parents=True)
    (folder / "deferred-items.md").write_text(
        "# Deferred Items\n\n## 01-00\n\n- Old\n\n## 01-01\n\n- Stale\n"
    )
    host = FakeHost(agent=does(1, 2, deferred=["test_old fails\n# since May"]))
    step = evolve(a_step(a_plan()), project=tmp_path)
    result = run(step, host)
    texts = {file.path.rpartition("/")[2]: file.text for file in result.files}

    assert "## Deferred Issues\n\n- test_old fails # since May\n" in texts["01-01-SUMMARY.md"]
    assert texts["deferred-items.md"] == (
        "# Deferred Items\n\n## 01-00\n\n- Old\n\n## 01-01\n\n- test_old fails # since May\n"
    )
    (folder / "deferred-items.md").write_text(texts["deferred-items.md"])
    again = run(evolve(step, tasks_done=(1, 2)), host).files
    assert [file.path[-10:] for file in again] == ["SUMMARY.md"], "repeated without a change"


def test_the_prompt_has_an_index_of_the_projects_skills(tmp_path: Path) -> None:
    def write(folder: str, text: str) -> None:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text(text)

    write(".agents/skills/charts", "---\nname: charts\ndescription: Draw\n  charts\n---\nSECRET BODY\n")
    write(".claude/skills/charts", "---\nname: charts\ndescription: Another\n---\n")
    write(".claude/skills/broken", "---\nname: [\n---\n")
    write(".claude/skills/silent", "no frontmatter\n")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    write(str(outside), "---\nname: outside\ndescription: Elsewhere\n---\n")
    (tmp_path / ".agents/skills/linked").symlink_to(outside)
    host = FakeHost(agent=does(1, 2))
    run(evolve(a_step(a_plan()), project=tmp_path, tree=tmp_path), host)
    prompt = host.task("execute").prompt

    assert "- charts (.agents/skills/charts/SKILL.md): Draw charts" in prompt
    assert not any(text in prompt for text in ("SECRET BODY", "Another", "broken", "silent", "Elsewhere"))


LOGIN = {"service": "the registry", "message": "401 not logged in", "action": "Run: registry login"}


def logs_in(replies: list[str], *calls: dict[str, Any]) -> Agent:
    async def play(turn: Turn) -> Any:
        replies.extend([await turn.call("need_authentication", **call) for call in calls])
        for number in (1, 2):
            await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    return {"execute": play}


def test_a_missing_login_is_asked_of_a_person_and_costs_no_attempt() -> None:
    replies: list[str] = []
    host = FakeHost(agent=logs_in(replies, LOGIN, LOGIN), answers=["Done", "no account"])
    result = run(a_step(a_plan()), host)
    first, second = (inquiry.questions[0] for inquiry in host.inquiries)

    assert first.human_only
    assert all(text in first.text for text in LOGIN.values())
    assert first.text != second.text
    assert replies[0].startswith("The human has done it")
    assert "no account" in replies[1]
    assert "the registry: Run: registry login (done)" in result.files[0].text
    assert [commit.task for commit in host.commits] == [1, 2]


def test_no_policy_logs_in() -> None:
    with pytest.raises(Parked):
        run(a_step(a_plan()), FakeHost(agent=logs_in([], LOGIN)))


def test_a_login_is_not_asked_for_again_and_again() -> None:
    replies: list[str] = []
    calls = [LOGIN] * 7
    host = FakeHost(agent=logs_in(replies, *calls), answers=["Done"] * 7)
    run(a_step(a_plan()), host)

    assert len(host.inquiries) == 5
    assert "issues" in replies[5]
    assert "Not valid" in asyncio.run(_reply_to({**LOGIN, "action": " "}))


async def _reply_to(call: dict[str, Any]) -> str:
    replies: list[str] = []
    await native.execute_step(a_step(a_plan()), FakeHost(agent=logs_in(replies, call)))
    return replies[0]


PAGE = Task(
    number=2,
    name="Look at the page",
    type="checkpoint:human-verify",
    details={"what-built": "The page", "how-to-verify": "It is blue"},
)


@pytest.mark.parametrize(
    ("mode", "verified", "asked"),
    [
        ({}, True, False),
        ({"human_verify_mode": "end-of-phase"}, True, False),
        ({"human_verify_mode": "mid-flight"}, True, True),
        # Otherwise nobody would ever be asked.
        ({"human_verify_mode": "end-of-phase"}, False, True),
    ],
)
def test_a_check_by_a_person_waits_for_the_end_of_the_phase_where_the_config_says_so(
    mode: dict[str, str], verified: bool, asked: bool, tmp_path: Path
) -> None:
    plan = a_plan(STORE, PAGE)
    step = a_step(plan, will_be_verified=verified)
    step = evolve(step, planning=evolve(step.planning, config={"workflow": mode}))
    host = FakeHost(agent=does(1, 2), answers=["Works"])
    text = run(step, host).files[0].text

    assert (host.inquiries != []) is asked
    assert ("- Task 2: Look at the page" in text) is not asked
    # The verification asks what the summary says was left to it.
    (tmp_path / "S.md").write_text(text)
    done = evolve(plan, summary="S.md")
    phase = PhaseView(number="1", name="Notes", project=tmp_path, plans=(done,))
    left = with_unfinished(phase, GapReport()).human
    expected = [] if asked else [("The page", "It is blue", "01-01/2")]
    assert [(check.test, check.expected, check.about) for check in left] == expected


@pytest.mark.parametrize("kind", ["checkpoint:decision", "checkpoint:human-action"])
def test_decisions_and_actions_stop_where_they_are_needed(kind: Any) -> None:
    task = Task(number=2, name="Do it", type=kind, action="Choose", details={"options": "- A\n- B"})
    host = FakeHost(agent=does(1, 2), answers=lambda question: question.options[0].label)
    run(a_step(a_plan(STORE, task), will_be_verified=True), host)

    [inquiry] = host.inquiries
    assert "Choose" in inquiry.questions[0].text


def test_the_human_checks_of_a_task_are_left_to_the_verification(tmp_path: Path) -> None:
    text = (
        '---\nphase: x\n---\n<tasks><task type="auto"><name>Wire it</name><files>a.py</files>'
        "<verify>Look<automated>make test</automated><human-check><test>Open the page</test>"
        "<expected>Two columns</expected><why_human>Layout</why_human></human-check></verify></task></tasks>"
    )
    plan = parse_plan(text, path="01-01-PLAN.md", phase="1")
    assert (plan.tasks[0].verify, plan.tasks[0].check) == ("Look", "make test")
    assert parse_plan(render_plan(plan), path=plan.path, phase="1").tasks == plan.tasks
    phase = PhaseView(number="1", name="X", project=tmp_path, plans=(evolve(plan, summary="S.md"),))
    [check] = with_unfinished(phase, GapReport()).human
    assert (check.test, check.expected, check.why) == ("Open the page", "Two columns", "Layout")


def asks(change: str, *options: str, replies: list[str]) -> dict[str, Any]:
    async def play(turn: Turn) -> Any:
        replies.append(await turn.call("ask_architecture", change=change, options=list(options)))
        for number in (1, 2):
            await turn.call("task_done", task=number, files=["notes.py"], note="")
        return NOTHING

    return {"execute": play}


@pytest.mark.parametrize(
    ("answers", "reply", "ruling"),
    [
        (["SQLite"], "Do that", "[Rule 4] Another store: SQLite"),
        (["Use JSON"], "Do that", "[Rule 4] Another store: Use JSON"),
        # The recommended option, which is also what --yes takes, changes nothing.
        (None, "Do not make this change", "[Rule 4] Another store: Keep to the plan"),
    ],
)
def test_a_change_of_the_architecture_is_a_question_and_its_answer_a_decision(
    answers: list[str] | None, reply: str, ruling: str
) -> None:
    replies: list[str] = []
    host = FakeHost(agent=asks("Another store", "SQLite", "Postgres", replies=replies), answers=answers)
    result = run(a_step(a_plan()), host)

    assert reply in replies[0]
    assert ruling in result.files[0].text
    assert AddDecisions(phase="1", decisions=(ruling,)) in result.changes
    [question] = host.inquiries[0].questions
    assert [option.label for option in question.options] == ["Keep to the plan", "SQLite", "Postgres"]


def test_a_change_of_the_architecture_that_nobody_answers_parks_the_step() -> None:
    replies: list[str] = []
    agent = asks("Another store", replies=replies)
    with pytest.raises(Parked):
        run(a_step(a_plan()), FakeHost(agent=agent, answers={"something else": "x"}))
    assert replies == []

    run(a_step(a_plan()), FakeHost(agent=agent, answers={"Another store": "Make the change"}))
    assert "Do that" in replies[0]


def test_skills_that_the_config_assigns_are_named_if_they_are_in_the_project(tmp_path: Path) -> None:
    for name in ("style", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text("# How to\n")
    skills: dict[str, Any] = {"gsd-executor": ["./style/", "../out", "global:x"], "gsd-planner": "other"}
    step = a_step(a_plan())
    step = evolve(step, tree=tmp_path, planning=evolve(step.planning, config={"agent_skills": skills}))
    host = FakeHost(agent=does(1, 2))
    run(step, host)

    prompt = host.task("execute").prompt
    assert "Skills assigned to you" in prompt
    assert "style/SKILL.md" in prompt
    assert not any(name in prompt for name in ("other/SKILL", "../out", "global:"))
    validate_config({"agent_skills": skills}, "config.json")
