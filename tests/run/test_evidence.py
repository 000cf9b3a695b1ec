"""Evidence: the tools of a conversation are recorded by the core, and the matrix shows what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core.codec import structure
from gsd_core.errors import Transient
from gsd_core.hookspecs import gsd_answer, gsd_on_event, gsd_permit_tool
from gsd_core.journal.store import Journal
from gsd_core.machine.state import Options
from gsd_core.model.agent import (
    AgentHost,
    AgentResult,
    AgentTask,
    Allow,
    Ask,
    Permission,
    ToolRecord,
    ToolUse,
)
from gsd_core.model.event import Event
from gsd_core.model.question import Answer, Inquiry
from gsd_core.planning.survey import read_planning
from gsd_plugins.rehearsal import Scenario
from tests.cli.bench import said

from . import harness as h

pytestmark = pytest.mark.slow

PLAN = "01-01"
NO_REPAIRS = Options(gap_rounds=0)


def verifier_uses(root: Path) -> list[tuple[ToolRecord, ...]]:
    """Return the tools that each answer of a verifier came with."""
    closed = [fact for fact in h.facts(root, "agent.closed") if fact.step == "1/verify"]
    return [structure(fact.data["value"], AgentResult).uses for fact in closed if fact.data.get("value")]


def reads(task: AgentTask, path: str) -> ToolUse:
    given = {"file_path": str(task.tree / path)}
    return ToolUse(step=task.step, name="Read", input=given, asked_by="agent", tree=task.tree, writable=False)


def asked(task: AgentTask) -> list[str]:
    """Return the ids that a verifier is asked about."""
    return [*Scenario(h.IDEA, phases=1).asked_in(task.prompt, "1")]


def verdicts(names: list[str], *citations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    given = {"status": "holds", "evidence": "seen", "reason": "", "missing": [], "citations": [*citations]}
    return {"verdicts": [{"id": name, **given, **fields} for name in names], "findings": []}


README = {"file": "README.md", "first": 1, "last": 1}


def test_the_tools_of_a_verifier_are_recorded_with_its_answer(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert end.exit == 0, end
    [uses] = verifier_uses(root)
    assert [(use.tool, use.exit) for use in uses] == [("Read", None), ("run_command", 0)]
    assert (root / uses[0].target).is_file()
    assert uses[1].target.startswith("python3 -m unittest")


def test_each_prompt_is_kept_and_only_for_gsd_log(tmp_path: Path) -> None:
    root, seen = h.repository(tmp_path / "project"), list[Event]()

    async def watch(event: Event) -> None:
        seen.append(event)

    h.do(h.request(root, h.one_phase(), given=h.idea(), watcher=h.plugin(gsd_on_event, watch)))

    with Journal.open(h.journal(root), clock=h.now, writable=False) as journal:
        notes = [*journal.events(kinds=["agent.activity"])]
    kept = [note for note in notes if note.data["kind"] == "prompt"]
    opened = h.facts(root, "agent.opened")
    assert [(fact.step, fact.data["key"], fact.data["tool"]) for fact in kept] == [
        (fact.step, fact.data["key"], fact.data["role"]) for fact in opened
    ]
    assert all("[System]\n" in fact.data["text"] and "[Answer]\n{" in fact.data["text"] for fact in kept)
    assert "[Functions]\ntask_done: " in next(f.data["text"] for f in kept if f.data["tool"] == "executor")
    assert all(event.data.get("kind") != "prompt" for event in seen if event.name == "agent.activity")


def test_what_an_agent_claims_to_have_used_is_not_believed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def forges(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        use = ToolRecord(tool="Read", target="README.md")
        return AgentResult(value=verdicts(asked(task), README), uses=(use,))

    end = h.do(h.request(root, h.Watched(h.one_phase(), forges), given=h.idea(), options=NO_REPAIRS))

    assert end.exit == 6, end
    assert set(verifier_uses(root)) == {()}


def test_a_tool_that_was_denied_is_not_recorded(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def deny(use: ToolUse) -> Permission | None:
        return Ask(reason="not this one") if "README" in str(use.input) and use.name == "Read" else None

    async def tries(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        use = reads(task, "README.md")
        permission = await host.permit(use)
        assert isinstance(permission, Ask)
        assert not isinstance(await host.confirm(use, permission.reason), Allow)
        return AgentResult(value=verdicts(asked(task), README))

    policy = h.plugin(gsd_permit_tool, deny)
    agent = h.Watched(h.one_phase(), tries)
    end = h.do(h.request(root, agent, given=h.idea(), options=NO_REPAIRS, policy=policy))

    assert end.exit == 6, end
    assert set(verifier_uses(root)) == {()}


def test_what_was_read_before_a_failure_counts_in_the_resumed_conversation(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    conversations: list[str] = []

    async def fails_once(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        assert task.conversation is not None
        conversations.append(task.conversation.id)
        if len(conversations) == 1:
            await host.permit(reads(task, "README.md"))
            raise Transient("the connection was lost")
        return AgentResult(value=verdicts(asked(task), README))

    request = h.request(root, h.Watched(h.one_phase(), fails_once), given=h.idea())
    end = h.do(request)
    if end.exit:  # without a retry in the same process, the run continues the conversation in the next
        end = h.do(evolve(request, idea=None))

    assert end.exit == 0, end
    assert len(set(conversations)) == 1
    assert verifier_uses(root) == [(ToolRecord(tool="Read", target="README.md", shown=(1, 2000)),)]


def test_complaints_that_got_no_answer_are_made_again_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    prompts: list[str] = []
    ids: list[str] = []

    async def fails_after_complaints(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        prompts.append(task.prompt)
        if len(prompts) == 1:
            ids.extend(asked(task))
        if len(prompts) == 2:
            raise Transient("the connection was lost")
        if len(prompts) == 3:
            await host.permit(reads(task, "README.md"))
        # It cites at first what it has not read.
        return AgentResult(value=verdicts(ids, README))

    request = h.request(root, h.Watched(h.one_phase(), fails_after_complaints), given=h.idea())
    end = h.do(request)
    if end.exit:
        end = h.do(evolve(request, idea=None))

    assert end.exit == 0, end
    first, second, third = prompts
    assert "Your answer cannot be used yet" not in first
    assert second.startswith("Your answer cannot be used yet")
    assert third == second


def test_a_command_of_the_verifier_runs_on_what_is_committed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    replies: list[str] = []

    async def looks(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        (task.tree / "scratch.txt").write_text("not committed\n")
        commands = ("cat scratch.txt", "echo x > README.md && cat README.md", "head -c 1 README.md")
        replies.extend([await host.call("run_command", {"command": command}) for command in commands])
        (task.tree / "scratch.txt").unlink()
        cited = {"command": "head -c 1 README.md", "exit": 0}
        return AgentResult(value=verdicts(asked(task), cited))

    end = h.do(h.request(root, h.Watched(h.one_phase(), looks), given=h.idea()))

    assert end.exit == 0, end
    assert replies[0].startswith("exit 1")
    assert replies[1:] == ["exit 0\nx", "exit 0\n#"]
    assert (root / "README.md").read_text().startswith("#")


def test_a_check_that_nobody_looked_at_is_counted_in_the_last_line_and_the_status(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def needs_a_human(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "verifier":
            return None
        await host.permit(reads(task, "README.md"))
        first, *rest = asked(task)
        value = verdicts(rest, README)
        look = verdicts([first], README, status="human", evidence="Look at it", reason="It is blue")
        return AgentResult(value={**value, "verdicts": [*look["verdicts"], *value["verdicts"]]})

    end = h.do(h.request(root, h.Watched(h.one_phase(), needs_a_human), given=h.idea()))

    assert end.exit == 0, end
    assert "1 check assumed, nobody looked" in end.reason
    [phase] = read_planning(root).phases
    assert phase.verdict is not None
    assert [check.result for check in phase.verdict.human] == ["assumed"]
    shown = said("status", "-C", root)["assumed"]
    assert (shown["count"], [check["step"] for check in shown["checks"]]) == (1, ["1/verify"])


def test_the_matrix_goes_from_the_requirement_to_the_evidence(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))

    shown = said("requirements", "-C", root)

    assert shown["schema_version"] == 1
    rows = {row["id"]: row for row in shown["requirements"]}
    core = rows["CORE-01"]
    tasks = h.git(root, "log", "--reverse", "--format=%H", "--grep=GSD-Task: 01-01").split()
    assert core["plans"] == [PLAN]
    assert core["commits"] == tasks
    assert [(check["id"], check["status"]) for check in core["checks"]] == [
        ("01-01/1", "holds"),
        ("01-01/2", "holds"),
    ]
    assert core["evidence"][0]["about"] == "CORE-01"
    assert {one["status"] for one in core["evidence"]} == {"holds"}
    assert (core["status"], core["reason"]) == ("Complete", "")


def test_a_requirement_that_a_plan_lost_is_an_error_in_the_matrix(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(), given=h.idea()))
    [plan] = root.glob(".planning/phases/*/01-01-PLAN.md")
    plan.write_text(plan.read_text().replace("DOC-01", "DOC-99"))

    rows = {row["id"]: row for row in said("requirements", "-C", root)["requirements"]}

    assert rows["DOC-01"]["status"] == "Error"
    assert "no plan of phase 1 lists DOC-01" in rows["DOC-01"]["reason"]


def test_a_command_that_a_person_allows_runs_once(tmp_path: Path) -> None:
    root, marks = h.repository(tmp_path / "project"), tmp_path / "marks"
    command = f"echo ran >> {marks}; false"

    async def asks(use: ToolUse) -> Permission | None:
        return Ask(reason="it changes something outside") if str(marks) in str(use.input) else None

    async def tries(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "verifier":
            await host.call("run_command", {"command": command})
        return None

    async def allows(inquiry: Inquiry) -> list[Answer] | None:
        [question, *_] = inquiry.questions
        return [Answer(question=question.id, chosen=("Allow",))] if inquiry.kind == "permission" else None

    policy, human = h.plugin(gsd_permit_tool, asks), h.plugin(gsd_answer, allows)
    agent = h.Watched(h.one_phase(), tries)
    h.do(
        h.request(
            root, agent, given=h.idea(), policy=policy, human=human, ablation=True, without=("permissions",)
        )
    )

    assert marks.read_text().splitlines() == ["ran"]
