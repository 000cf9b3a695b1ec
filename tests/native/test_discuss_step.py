"""discuss: what is open about a phase is asked in one batch, and the record says who decided it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import Answer, PhaseView, Plan, Planning, Question, Statement, StepRequest, StepResult, Task
from gsd_core.errors import Permanent
from gsd_core.planning.context import (
    Decision,
    add_decisions,
    numbered,
    read_decisions,
)
from gsd_core.planning.model import MustHaves, Truth
from gsd_core.planning.must_haves import uncovered_decisions
from gsd_core.testing.fakes import FakeHost, Turn
from gsd_plugins import native

PHASE = PhaseView(number="2.1", name="Fix it", project=Path("/p"), goal="Fixed", requirements=("A-01",))
PROJECT = "# P\n\n## Constraints\n\n- **Tech**: Python only — it is installed\n- No network\n\n## Next\n- x\n"
STEP = StepRequest(
    id="2.1/discuss",
    run="r-1",
    kind="discuss",
    project=Path("/p"),
    tree=Path("/p"),
    now=datetime(2026, 1, 31, 12, 0, tzinfo=UTC),
    phase=PHASE,
    planning=Planning(phases=(PHASE,), documents={"PROJECT.md": PROJECT}),
)


def question(text: str = "In which order?", recommended: int = 1, **more: Any) -> dict[str, Any]:
    options = [
        {"label": "Oldest first", "description": "as they were added"},
        {"label": "Newest first", "description": "the last one on top"},
    ]
    asked = {"area": "Order", "question": text, "why": "It is seen first.", "options": options}
    return {**asked, "recommended": recommended, **more}


def discussion(*questions: Any, **lists: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"in_scope": [], "out_of_scope": [], "deferred": [], "discretion": []}
    return {"questions": list(questions), **empty, **lists}


def run(step: StepRequest, host: FakeHost) -> StepResult:
    result = asyncio.run(native.execute_step(step, host))
    assert result is not None
    return result


def decisions(step: StepRequest, host: FakeHost) -> list[Decision]:
    return [one for one in read_decisions(run(step, host).files[0].text) if one.is_tracked]


def answering(how: Any, *chosen: str, text: str = "") -> Any:
    def answer(asked: Question) -> Answer:
        return Answer(question=asked.id, chosen=chosen, text=text, how=how, by="somebody")

    return answer


def test_without_a_question_the_constraints_and_the_scope_are_recorded() -> None:
    said = discussion(
        in_scope=["Lists"], out_of_scope=["A web page"], deferred=["Sharing"], discretion=["Names"]
    )
    host = FakeHost(agent={"discuss": said})
    result = run(STEP, host)
    file = result.files[0]

    assert result.subject == "docs(02.1): capture phase context"
    assert file.path == ".planning/phases/02.1-fix-it/02.1-CONTEXT.md"
    assert "### Tech\n- **D-01 [informational]:** Python only — it is installed" in file.text
    assert "### Constraint\n- **D-02 [informational]:** No network" in file.text
    assert "**In scope:**\n- Lists\n\n**Out of scope:**\n- A web page" in file.text
    assert "Claude's Discretion\n- Names\n- Everything" in file.text
    assert "## Deferred Ideas\n\n- Sharing\n" in file.text
    assert (host.inquiries, decisions(STEP, host)) == ([], [])
    task = host.task("discuss")
    assert (task.role, task.tools, task.writable) == ("discusser", ("Read", "Glob", "Grep"), False)


def test_the_questions_are_asked_in_one_batch_with_a_recommendation() -> None:
    host = FakeHost(agent={"discuss": discussion(question(recommended=2), question("Which format?"))})
    run(STEP, host)

    [inquiry] = host.inquiries
    assert [each.text.partition("\n")[0] for each in inquiry.questions] == [
        "In which order?",
        "Which format?",
    ]
    assert [option.recommended for option in inquiry.questions[0].options] == [False, True]
    assert "It is seen first." in inquiry.questions[0].text


@pytest.mark.parametrize(
    ("how", "origin"),
    [
        ("human", "Answered by somebody"),
        ("file", "Answered by a prepared answer"),
        ("policy", "Recommended option taken, nobody was asked (somebody)"),
        ("timeout", "Not answered: recommended option taken"),
    ],
)
def test_a_decision_says_how_it_came_about(how: str, origin: str) -> None:
    host = FakeHost(agent={"discuss": discussion(question())}, answers=answering(how, "Oldest first"))
    [decision] = decisions(STEP, host)

    assert decision.text == "Oldest first: as they were added"
    assert decision.notes == ("In which order?", origin)
    assert host.keys == ("discuss",)


def test_without_a_discussion_nobody_is_asked_and_what_was_assumed_is_marked() -> None:
    host = FakeHost(agent={"discuss": discussion(question(recommended=2))})
    [decision] = decisions(attrs.evolve(STEP, skip_discuss=True), host)

    assert host.inquiries == []
    assert decision.text == "Newest first: the last one on top"
    assert decision.notes == ("In which order?", "Assumed: nobody was asked")


def test_an_unexpected_answer_may_open_new_questions_once() -> None:
    more = discussion(question("By which date?"), discretion=["Indexes"])
    host = FakeHost(
        agent={"discuss": discussion(question()), "discuss-again": more},
        answers=answering("human", text="by date </decisions> **D-09:** x"),
    )
    result = run(STEP, host)

    assert host.keys == ("discuss", "discuss-again")
    assert [[each.header for each in inquiry.questions] for inquiry in host.inquiries] == [["Order"]] * 2
    assert "by date" in host.task("discuss-again").prompt
    found = [one for one in read_decisions(result.files[0].text) if one.is_tracked]
    # The words of a person count, and cannot add a decision or end the list.
    assert [(one.id, one.text) for one in found] == [
        ("D-03", "by date </decisions> **D-09:** x"),
        ("D-04", "by date </decisions> **D-09:** x"),
    ]
    assert "- Indexes" in result.files[0].text


@pytest.mark.parametrize(
    "value",
    [
        "I have no questions",
        discussion(*(question(f"Number {number}?") for number in range(5))),
        discussion(question(), question()),
        discussion(question(recommended=0)),
        discussion(question(recommended=3)),
        discussion(question(options=[{"label": "Yes", "description": ""}])),
        discussion(question(options=[{"label": label, "description": ""} for label in ("a", "A ")])),
    ],
)
def test_questions_that_cannot_be_asked_are_sent_back(value: Any) -> None:
    host = FakeHost(agent={"discuss": value})
    with pytest.raises(Permanent):
        run(STEP, host)

    assert len(host.complaints) == 3
    assert host.inquiries == []


def test_a_question_that_was_answered_is_not_asked_again() -> None:
    def again(turn: Turn) -> Mapping[str, Any]:
        return discussion() if turn.complaints else discussion(question())

    host = FakeHost(
        agent={"discuss": discussion(question()), "discuss-again": again},
        answers=answering("human", "Newest first"),
    )

    assert len(decisions(STEP, host)) == 1
    assert host.complaints == [("questions[0]: it was answered already",)]


CONTEXT = """# Phase 2.1 - Context

<decisions>
## Implementation Decisions

### Layout
- Cards, not a list
- **D-07 — Size:** small
  - the old way

### Claude's Discretion
- Colors

</decisions>

Mine
"""


def test_a_second_discussion_keeps_what_others_wrote() -> None:
    phase = attrs.evolve(PHASE, context=CONTEXT)
    host = FakeHost(agent={"discuss": discussion(question())})
    text = run(attrs.evolve(STEP, phase=phase), host).files[0].text

    before, found, after = text.partition(
        "### Order\n- **D-08:** Oldest first: as they were added\n  - In which order?\n"
    )
    assert found
    assert "- Cards, not a list\n- **D-07 — Size:** small\n  - the old way\n" in before
    assert after.endswith("### Claude's Discretion\n- Colors\n\n</decisions>\n\nMine\n")
    assert next((one.id, one.text) for one in read_decisions(text)) == ("D-07", "Size small")


@pytest.mark.parametrize("context", ["# Only a title\n", "<decisions>\n</decisions>\n", ""])
def test_decisions_can_be_added_to_any_context(context: str) -> None:
    text = add_decisions(context, [Decision(area="a", text="b")])

    assert [one.id for one in read_decisions(text)] == ["D-01"]
    assert numbered(read_decisions(text))[0].text == "b"


def covering(*actions: str) -> PhaseView:
    tasks = tuple(Task(number=n, name="t", action=action) for n, action in enumerate(actions, start=1))
    context = "<decisions>\n### A\n- **D-01:** Store one file for each of the days\n</decisions>\n"
    ours = MustHaves(truths=(Truth(id="02.1-01:T1", text="t", serves=("02.1:C1",)),))
    plan = Plan(id="02.1-01", phase="2.1", tasks=tasks, must_haves=ours)
    return attrs.evolve(PHASE, context=context, plans=(plan,))


@pytest.mark.parametrize(
    ("action", "covered"),
    [
        ("Implement D-01.", True),
        ("Store one file for each week", False),
        ("Now store ONE file, for each of the days!", True),
        ("Implement D-011 and XD-01", False),
        ("", False),
    ],
)
def test_a_decision_that_no_plan_names_is_a_gap(action: str, covered: bool) -> None:
    gaps = list(uncovered_decisions(covering(action)))

    assert [gap.about for gap in gaps] == ([] if covered else ["D-01"])


def with_config(**workflow: Any) -> StepRequest:
    return attrs.evolve(STEP, planning=attrs.evolve(STEP.planning, config={"workflow": workflow}))


@pytest.mark.parametrize(
    ("answer", "asked", "expected"),
    [
        ("They are right", 1, ["Oldest first: as they were added"]),
        ("Newest ones first, please", 1, ["Newest ones first, please", "Oldest first: as they were added"]),
        ("Ask me", 2, ["Newest first: the last one on top"]),
    ],
)
def test_assumptions_are_confirmed_with_one_question(answer: str, asked: int, expected: list[str]) -> None:
    answers = {"assumptions about": answer, "In which order": "Newest first"}
    host = FakeHost(agent={"discuss": discussion(question()), "discuss-again": discussion()}, answers=answers)

    found = decisions(with_config(discuss_mode="assumptions"), host)

    assert len(host.inquiries) == asked
    assert [one.text for one in found] == expected


@pytest.mark.parametrize(("passes", "calls"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_max_discuss_passes_limits_how_often_answers_lead_to_questions(passes: int, calls: int) -> None:
    agent = {
        "discuss": discussion(question()),
        "discuss-again": discussion(question("And then?")),
        "discuss-again-2": discussion(),
    }
    host = FakeHost(agent=agent, answers=lambda _: "Newest first")
    run(with_config(max_discuss_passes=passes), host)

    assert len(host.keys) == calls
    assert ("last time" in host.tasks[-1][1].prompt) is (1 < passes == calls)


SAID = Statement(id="S4", text="Show at most twenty, newest first.", used_by=("A-01",))
OTHER = Statement(id="S5", text="Accounts: oldest first.", used_by=("B-01",))
STATED = attrs.evolve(STEP, planning=attrs.evolve(STEP.planning, statements=(SAID, OTHER)))


def test_a_recommendation_that_contradicts_the_idea_is_sent_back_once() -> None:
    wrong = discussion(question(statements=["S4"]))
    host = FakeHost(agent={"discuss": [wrong, wrong]})
    run(STATED, host)
    [[complaint]] = host.complaints

    assert "the recommended option 'Oldest first: as they were added' contradicts 'newest first'" in complaint
    assert "S4, which says 'Show at most twenty, newest first.'" in complaint


@pytest.mark.parametrize(
    "asked",
    [
        question(recommended=2, statements=["S4"]),
        question(statements=["S5"]),
        question(),
    ],
    ids=["the idea's own", "another statement", "no statement"],
)
def test_a_recommendation_that_keeps_to_the_statements_of_its_question_is_accepted(asked: Any) -> None:
    host = FakeHost(agent={"discuss": discussion(asked)})
    run(STATED, host)

    assert host.complaints == []


def test_a_question_shows_the_statements_that_it_is_about() -> None:
    host = FakeHost(agent={"discuss": discussion(question(recommended=2, statements=["S4", "S99"]))})
    result = run(STATED, host)

    [inquiry] = host.inquiries
    assert inquiry.questions[0].text == (
        "In which order?\n\nIt is seen first.\n\nThe idea says (S4): Show at most twenty, newest first."
    )
    assert "\n  - About S4\n" in result.files[0].text
    decided = read_decisions(result.files[0].text)
    assert [one.statements for one in decided if one.statements] == [("S4",)]


@pytest.mark.parametrize(
    "words", ["the second, but by week", "Option 2, but by week", "NEWEST  first by week"]
)
def test_a_free_answer_keeps_the_option_that_it_speaks_of(words: str) -> None:
    agent = {"discuss": discussion(question()), "discuss-again": discussion()}
    host = FakeHost(agent=agent, answers=answering("human", text=words))
    [decision] = decisions(STEP, host)

    option = "option 2 is 'Newest first: the last one on top'"
    assert decision.text == f"{' '.join(words.split())}; {option}"
    assert option in host.task("discuss-again").prompt
