"""Questions: without an answer, answered through the inbox, raced, refused; checkpoints and permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_answer, gsd_run_agent
from gsd_core.journal.store import Journal
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, Deny, Permission, ToolUse
from gsd_core.model.question import Answer, Inquiry, Question
from gsd_core.testing import ScriptedHuman
from gsd_plugins.rehearsal import Scenario

from . import harness as h

SCENARIO = Scenario(h.IDEA, phases=1, question=True, gap=False, overloaded=False)


def asking() -> h.Watched:
    return h.Watched(h.one_phase(question=True))


def test_a_question_that_nobody_can_answer_ends_the_run_and_is_open(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, asking(), given=h.idea(), yes=False))

    [question] = h.asked(root)
    assert (end.outcome, end.exit) == ("blocked", 3)
    assert "1/execute/01-01" in end.reason
    assert f"gsd answer {question} CHOICE, then gsd resume" in end.reason
    assert h.facts(root)[-1].kind == "run.closed"


def test_a_question_s_hint_names_the_folder_that_the_user_named(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    request = h.request(root, asking(), given=h.idea(), yes=False)

    end = h.do(evolve(request, info=evolve(request.info, command="gsd -C demo")))

    [question] = h.asked(root)
    assert f"gsd -C demo answer {question} CHOICE, then gsd -C demo resume" in end.reason


def test_without_an_answer_the_agent_is_not_called_again(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, asking(), given=h.idea(), yes=False))
    agent = asking()

    end = h.do(h.request(root, agent, yes=False))

    assert (end.exit, agent.tasks) == (3, [])


@pytest.mark.slow
def test_an_answer_given_between_two_runs_is_in_the_code_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, asking(), given=h.idea(), yes=False))
    [question] = h.asked(root)
    label, ending = SCENARIO.product.endings[2]
    h.answer(root, question, label)

    end = h.do(h.request(root, asking(), yes=False))

    assert (end.outcome, h.asked(root)) == ("done", [question])
    assert f'ENDING = "{ending}"' in code(root)
    [answered] = h.facts(root, "question.answered")
    assert (answered.data["answer"]["via"], answered.data["answer"]["by"]) == ("inbox", "tester")


@pytest.mark.slow
def test_an_answer_that_no_run_has_taken_yet_can_be_replaced(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, asking(), given=h.idea(), yes=False))
    [question] = h.asked(root)
    (first, _), (second, ending) = SCENARIO.product.endings[1:3]
    h.answer(root, question, first)
    h.answer(root, question, second)
    h.answer(root, question, "Purple")

    end = h.do(h.request(root, asking(), yes=False))

    assert end.outcome == "done"
    assert f'ENDING = "{ending}"' in code(root)
    [answered] = h.facts(root, "question.answered")
    assert answered.data["answer"]["chosen"] == [second]
    [refused] = h.facts(root, "answer.refused")
    assert refused.data["answer"]["chosen"] == ["Purple"]
    with Journal.open(h.journal(root), clock=h.now, writable=False) as journal:
        assert journal.take_inbox() == ()


def code(root: Path) -> str:
    return "".join(path.read_text() for path in root.glob("*/*.py"))


@define
class Hanging:
    """Answers nothing and waits; does something when it is asked, and notes when it is cancelled."""

    root: Path
    label: str = ""
    cancelled: int = 0

    @implements(gsd_answer)
    async def wait(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        if self.label:
            h.answer(self.root, inquiry.questions[0].id, self.label)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return None


@pytest.mark.slow
def test_an_answer_through_the_inbox_beats_a_plugin_that_hangs(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    hanging = Hanging(root, label=SCENARIO.product.endings[1][0])

    end = h.do(h.request(root, asking(), given=h.idea(), yes=False, hanging=hanging))

    assert (end.outcome, hanging.cancelled) == ("done", 1)
    assert f'ENDING = "{SCENARIO.product.endings[1][1]}"' in code(root)


@pytest.mark.slow
def test_an_agent_that_waits_too_long_is_ended_and_resumed_with_the_answer(
    tmp_path: Path,
) -> None:
    root = h.repository(tmp_path / "project")
    agent, human = asking(), Slow(SCENARIO.product.endings[1][0])

    end = h.do(
        h.request(
            root, agent, given=h.idea(), yes=False, human=human, sections={"limits": {"park_after": 0.1}}
        )
    )

    first, second = agent.of("executor")
    assert end.outcome == "done"
    assert human.during == [False, True]
    assert first.conversation is not None
    assert second.conversation is not None
    assert (second.conversation.id, second.conversation.resume) == (first.conversation.id, True)
    assert [fact.data["why"] for fact in h.facts(root, "attempt.lost")] == ["parked"]


@define
class Slow:
    """Hangs when it is asked first, and answers the second time."""

    label: str
    during: list[bool] = field(factory=list[bool])

    @implements(gsd_answer)
    async def wait(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        self.during.append(bool(self.during))
        if len(self.during) == 1:
            await asyncio.Event().wait()
        return [Answer(question=inquiry.questions[0].id, chosen=(self.label,))]


TWO = (Question(text="Which color?"), Question(text="Which size?"))


async def asks_two(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Ask two questions in one inquiry before the agent does its work."""
    if task.role == "executor":
        answers = await host.ask(TWO)
        await h.write(task, host, "choice.txt", " ".join(answer.words for answer in answers))
    return None


@pytest.mark.slow
def test_a_partial_answer_is_recorded_and_the_rest_is_asked_again(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    color, size = ScriptedHuman({"color": "red"}), Later(ScriptedHuman({"size": "big"}))

    end = h.do(
        h.request(root, h.Watched(h.one_phase(), asks_two), given=h.idea(), yes=False, color=color, size=size)
    )

    assert end.outcome == "done"
    assert (root / "choice.txt").read_text() == "red big"
    assert [len(inquiry.questions) for inquiry in size.inquiries] == [2, 1]
    vias = [fact.data["answer"]["via"] for fact in h.facts(root, "question.answered")]
    assert vias == ["color", "size"]


@define
class Later:
    """Answers only the last open question of an inquiry."""

    human: ScriptedHuman
    inquiries: list[Inquiry] = field(factory=list[Inquiry])

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        self.inquiries.append(inquiry)
        return await self.human.answer(inquiry) if len(inquiry.questions) == 1 else None


@pytest.mark.slow
def test_a_refused_answer_of_a_plugin_is_named_and_another_wins(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def nonsense(inquiry: Inquiry) -> Sequence[Answer] | None:
        return [Answer(question=inquiry.questions[0].id, chosen=("Purple",))]

    bad = h.plugin(gsd_answer, nonsense, tryfirst=True)
    good = ScriptedHuman({"greeting end": SCENARIO.product.endings[1][0]})

    end = h.do(h.request(root, asking(), given=h.idea(), yes=False, bad=bad, good=good))

    [failed] = h.facts(root, "plugin.failed")
    assert end.outcome == "done"
    assert failed.data["plugin"] == "bad"
    assert "no option 'Purple'" in failed.data["error"]
    assert f'ENDING = "{SCENARIO.product.endings[1][1]}"' in code(root)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"question": "QUESTION", "chosen": ["Purple"]}, "no option 'Purple'"),
        ({"question": "q-0000000000", "text": "x"}, "no such question"),
        ({"question": "QUESTION", "chosen": [], "text": "x", "how": "policy", "at": "yesterday"}, "not a"),
        ({"nonsense": 1}, "not a"),
    ],
)
def test_a_refused_answer_in_the_inbox_is_recorded_and_the_question_stays_open(
    tmp_path: Path, data: dict[str, Any], reason: str
) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, asking(), given=h.idea(), yes=False))
    [question] = h.asked(root)
    given = {key: question if value == "QUESTION" else value for key, value in data.items()}
    h.put(h.journal(root), "answer", given, by="tester")

    end = h.do(h.request(root, asking(), yes=False))

    [refused] = h.facts(root, "answer.refused")
    assert end.exit == 3
    assert reason in refused.data["reason"]


async def asks_for_a_human(task: AgentTask, host: AgentHost) -> AgentResult | None:
    if task.role == "executor":
        await host.ask([Question(text="Are you there?", human_only=True)])
    return None


def test_a_policy_does_not_answer_what_only_a_human_may(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def policy(inquiry: Inquiry) -> Sequence[Answer] | None:
        return [Answer(question=question.id, text="yes", how="policy") for question in inquiry.questions]

    agent = h.Watched(h.one_phase(), asks_for_a_human)

    end = h.do(h.request(root, agent, given=h.idea(), policy=h.plugin(gsd_answer, policy)))

    assert end.exit == 3
    assert "only a human" in h.facts(root, "plugin.failed")[0].data["error"]
    assert h.facts(root, "question.answered") == []


CHECKPOINTS = {
    "checkpoint:human-verify": (
        "<what-built>A greeting.</what-built><how-to-verify>Look at it.</how-to-verify>",
        "Works",
    ),
    "checkpoint:decision": (
        "<decision>Which tone?</decision><options><option id='a'><name>Warm</name></option>"
        "<option id='b'><name>Cold</name></option></options>",
        "Warm",
    ),
    "checkpoint:human-action": (
        "<action>Get a key.</action><instructions>Ask for it.</instructions>",
        "Done",
    ),
}


@define(eq=False)
class CheckpointAgent:
    """Plans one task and one checkpoint, and does them; remembers the human's answers."""

    kind: str
    replies: list[str] = field(factory=list[str])

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            await host.permit(use("Write", task))
            (task.tree / "greeting.txt").write_text("hello\nworld\n")
            await host.call("task_done", {"task": 1, "files": ["greeting.txt"], "note": "there"})
            self.replies.append(await host.call("task_done", {"task": 2, "files": [], "note": "asked"}))
            return AgentResult(value={"deviations": [], "decisions": [], "issues": []})
        return await h.one_phase().run_agent(task, host)


def use(name: str, task: AgentTask, **given: str) -> ToolUse:
    return ToolUse(step=task.step, name=name, input=given, asked_by="agent", tree=task.tree, writable=True)


def plan_with(kind: str) -> str:
    details, _ = CHECKPOINTS[kind]
    return f"""---
phase: 01-greet
plan: 01
type: execute
wave: 1
depends_on: []
files_modified: [greeting.txt]
autonomous: false
requirements: []
must_haves:
  truths:
    - "There is a greeting"
---
<objective>Greet.</objective>
<tasks>
<task type="auto"><name>Task 1: Greet</name><files>greeting.txt</files>
<action>Greet.</action><verify>test -s greeting.txt</verify><done>There.</done></task>
<task type="{kind}" gate="blocking"><name>Task 2: Ask</name>{details}</task>
</tasks>
"""


def project_with(root: Path, plan: str) -> Path:
    """Make a project of another tool: one phase, one plan, nothing done."""
    h.repository(root)
    folder = root / ".planning" / "phases" / "01-greet"
    folder.mkdir(parents=True)
    (root / ".planning" / "ROADMAP.md").write_text(ROADMAP)
    (folder / "01-CONTEXT.md").write_text("# Context\n")
    (folder / "01-01-PLAN.md").write_text(plan)
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "begun elsewhere")
    return root


ROADMAP = """# Roadmap: Greeter

## Phases

- [ ] **Phase 1: Greet** - Greet people

## Phase Details

### Phase 1: Greet
**Goal**: Greet people
**Depends on**: Nothing
**Success Criteria** (what must be TRUE):
  1. There is a greeting
**Plans**: 1 plan

Plans:
- [ ] 01-01-PLAN.md — Greet
"""


KINDS = [pytest.param(kind, marks=[pytest.mark.slow] * ("verify" in kind)) for kind in CHECKPOINTS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_is_a_human_s_answer_to_the_agent(tmp_path: Path, kind: str) -> None:
    root = project_with(tmp_path / "project", plan_with(kind))
    agent, human = CheckpointAgent(kind), ScriptedHuman({"Please": CHECKPOINTS[kind][1]})

    end = h.do(h.request(root, agent, yes=False, human=human))

    assert end.outcome == "done", end
    # What a person looks at waits for the end of the phase, and is asked there.
    later = kind == "checkpoint:human-verify"
    expected = "at the end of the phase" if later else f"The human says: {CHECKPOINTS[kind][1]}"
    assert [expected in reply for reply in agent.replies] == [True]
    assert [fact.data["answer"]["chosen"] for fact in h.facts(root, "question.answered")] == [
        [CHECKPOINTS[kind][1]]
    ]
    assert ("1/execute/01-01", "01-01/1") in h.trailed(root)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("checkpoint:human-verify", 0),
        pytest.param("checkpoint:decision", 0, marks=pytest.mark.slow),
        ("checkpoint:human-action", 3),
    ],
)
def test_yes_passes_every_checkpoint_but_a_human_s_own_work(tmp_path: Path, kind: str, expected: int) -> None:
    root = project_with(tmp_path / "project", plan_with(kind))

    end = h.do(h.request(root, CheckpointAgent(kind)))

    assert end.exit == expected, end
    answers = [fact.data["answer"] for fact in h.facts(root, "question.answered")]
    assert [answer["how"] for answer in answers] == ([] if expected else ["policy"])


@define(eq=False)
class Publishing:
    """Wants to run a command with effects outside the project before it executes."""

    permissions: list[Permission] = field(factory=list[Permission])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            wanted = use("Bash", task, command="npm publish")
            asked = await host.permit(wanted)
            reason = getattr(asked, "reason", "")
            self.permissions.append(await host.confirm(wanted, reason))
        return None


@pytest.mark.slow
@pytest.mark.parametrize(("yes", "expected"), [(True, Deny), (False, Allow)])
def test_yes_never_permits_what_a_human_may_permit(tmp_path: Path, yes: bool, expected: type) -> None:
    root = h.repository(tmp_path / "project")
    publishing, human = Publishing(), ScriptedHuman({} if yes else {"npm publish": "Allow"})
    agent = h.Watched(h.one_phase(), publishing)

    end = h.do(h.request(root, agent, given=h.idea(), yes=yes, human=human))

    assert end.outcome == "done"
    assert [type(permission) for permission in publishing.permissions] == [expected]
    [fact] = h.facts(root, "question.asked")
    assert fact.data["inquiry"]["kind"] == "permission"


@pytest.mark.slow
def test_nothing_is_asked_if_discuss_is_skipped_and_no_question_is_open(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    options = Options(skip_discuss=True)

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), yes=False, options=options))

    assert (end.outcome, h.asked(root)) == ("done", [])
