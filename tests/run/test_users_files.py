"""The user's files: copied before a plan may change them, and in no commit unless somebody names them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gsd_core.errors import Permanent
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.testing import ScriptedHuman

from . import harness as h
from .test_events import Watcher

pytestmark = pytest.mark.slow

MODULE = "greeter/__init__.py"
Does = Callable[[AgentTask, AgentHost], Awaitable[None]]


def while_executing(*works: Does) -> h.Watched:
    """Return an agent that does the next of *works* at the start of each call for a plan."""
    left = list(works)

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and left:
            await left.pop(0)(task, host)
        return None

    return h.Watched(h.one_phase(), before)


def exclude(root: Path, rule: str) -> None:
    file = root / ".git/info/exclude"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{rule}\n")


def refs(root: Path) -> list[str]:
    return h.git(root, "for-each-ref", "--format=%(refname)", "refs/gsd/recover").split()


def user_file(root: Path, name: str, text: str = "the user's text\n") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_a_listed_file_with_uncommitted_text_is_copied_and_committed_first(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    user_file(root, MODULE)

    end = h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert end.outcome == "done", end
    [kept] = h.facts(root, "files.kept")
    assert kept.data["paths"] == [MODULE]
    assert refs(root) == [kept.data["ref"]]
    assert h.git(root, "show", f"{kept.data['ref']}:{MODULE}") == "the user's text\n"
    [settled] = h.facts(root, "files.settled")
    assert h.git(root, "show", f"{settled.data['commit']}:{MODULE}") == "the user's text\n"
    assert h.git(root, "show", "--name-only", "--format=", settled.data["commit"]).split() == [MODULE]
    assert h.git(root, "status", "--porcelain") == ""


def test_a_human_may_let_the_plan_change_it(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    user_file(root, MODULE)
    human = ScriptedHuman({"uncommitted changes": "Let the plan change them"})

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), human=human))

    assert end.outcome == "done", end
    assert h.git(root, "show", f"{refs(root)[0]}:{MODULE}") == "the user's text\n"
    assert "before the plan" not in h.git(root, "log", "--format=%s")
    assert h.git(root, "status", "--porcelain") == ""


def test_stop_ends_the_run_and_the_question_is_asked_again(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    user_file(root, MODULE)
    human = ScriptedHuman({"uncommitted changes": "Stop"})
    agent = h.Watched(h.one_phase())

    watcher = Watcher()

    first = h.do(h.request(root, agent, given=h.idea(), human=human, watcher=watcher))
    second = h.do(h.request(root, agent, human=human))

    assert [(end.outcome, end.exit) for end in (first, second)] == [("stopped", 130)] * 2
    [withdrawn] = watcher.of("question.withdrawn")
    assert withdrawn.data["questions"] == [question.id for question in human.asked[:1]]
    assert len([q for q in human.asked if q.header == "Uncommitted"]) == 2
    assert agent.of("executor") == []
    assert (root / MODULE).read_text() == "the user's text\n"
    (root / MODULE).unlink()
    assert h.do(h.request(root, h.one_phase())).outcome == "done"


def test_without_an_answer_the_run_waits_and_nothing_is_spent_on_the_plan(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    user_file(root, MODULE)
    agent = h.Watched(h.one_phase())

    end = h.do(h.request(root, agent, given=h.idea(), yes=False))
    assert (end.outcome, end.exit, agent.of("executor")) == ("blocked", 3, [])
    h.answer(root, h.asked(root)[-1], "Commit them first")
    end = h.do(h.request(root, agent, yes=False))

    assert end.outcome == "done", end
    assert len(refs(root)) == 1


def test_a_file_that_git_ignores_is_copied_too(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    exclude(root, "greeter/")
    user_file(root, MODULE)

    h.do(h.request(root, h.one_phase(), given=h.idea()))

    [kept] = h.facts(root, "files.kept")
    assert h.git(root, "show", f"{kept.data['ref']}:{MODULE}") == "the user's text\n"


async def fails(task: AgentTask, host: AgentHost) -> None:
    raise Permanent("no")


def test_text_that_a_person_adds_after_the_answer_is_copied_and_asked_about_again(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    user_file(root, MODULE, "first\n")
    human = ScriptedHuman({"uncommitted changes": "Let the plan change them"})
    h.do(h.request(root, while_executing(fails), given=h.idea(), human=human))
    user_file(root, MODULE, "second\n")

    end = h.do(h.request(root, h.one_phase()))

    assert end.outcome == "done", end
    assert [h.git(root, "show", f"{ref}:{MODULE}") for ref in refs(root)] == ["first\n", "second\n"]
    settled = h.facts(root, "files.settled")
    assert [fact.data["how"] for fact in settled] == ["plan", "committed"]
    assert h.git(root, "show", f"{settled[1].data['commit']}:{MODULE}") == "second\n"


async def edits_notes(task: AgentTask, host: AgentHost) -> None:
    (task.tree / "notes.txt").write_text("changed by a command, or by a person\n")


async def names_nothing(task: AgentTask, host: AgentHost) -> None:
    (task.tree / "generated.json").write_text("{}\n")


def test_what_nobody_named_is_reported_asked_about_and_left(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = while_executing(names_nothing)

    end = h.do(h.request(root, agent, given=h.idea()))

    assert end.outcome == "done", end
    assert h.git(root, "status", "--porcelain") == "?? generated.json\n"
    assert [fact.data["paths"] for fact in h.facts(root, "files.left")] == [["generated.json"]]
    assert "generated.json" in str(h.facts(root, "question.asked")[-1].data)


def test_a_human_may_commit_what_nobody_named(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    human = ScriptedHuman({"no task named": "Commit them with the plan"})

    end = h.do(h.request(root, while_executing(names_nothing), given=h.idea(), human=human))

    assert end.outcome == "done", end
    assert h.git(root, "status", "--porcelain") == ""
    assert "generated.json" in h.git(root, "ls-files")


def test_what_the_agent_wrote_with_a_tool_is_committed_unnamed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def writes(task: AgentTask, host: AgentHost) -> None:
        await h.write(task, host, "docs/more.md", "text\n")

    end = h.do(h.request(root, while_executing(writes), given=h.idea()))

    assert end.outcome == "done", end
    assert h.git(root, "status", "--porcelain") == ""
    assert h.facts(root, "files.left") == []


async def fails_after_writing(task: AgentTask, host: AgentHost) -> None:
    await h.write(task, host, "docs/more.md", "half\n")
    raise Permanent("no")


def test_what_a_person_edits_between_two_runs_is_not_swept_into_a_commit(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, while_executing(fails_after_writing), given=h.idea()))
    user_file(root, "todo.txt")
    user_file(root, "docs/more.md", "half, and a person's thoughts\n")

    end = h.do(h.request(root, h.one_phase()))

    assert end.outcome == "done", end
    assert (root / "docs/more.md").read_text() == "half, and a person's thoughts\n"
    assert h.git(root, "status", "--porcelain") == "?? docs/\n?? todo.txt\n"
    kept = h.git(root, "show", f"{refs(root)[-1]}:docs/more.md")
    assert kept == "half, and a person's thoughts\n"


def test_what_an_interrupted_agent_wrote_is_committed_by_the_next_one(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, while_executing(fails_after_writing), given=h.idea()))

    end = h.do(h.request(root, h.one_phase()))

    assert end.outcome == "done", end
    assert h.git(root, "show", "HEAD:docs/more.md") == "half\n"
    assert h.git(root, "status", "--porcelain") == ""


def test_a_dirty_file_that_the_plan_does_not_list_is_copied_before_an_agent_can_spoil_it(
    tmp_path: Path,
) -> None:
    root = h.repository(tmp_path / "project")
    user_file(root, "notes.txt")

    end = h.do(h.request(root, while_executing(edits_notes), given=h.idea()))

    assert end.outcome == "done", end
    assert h.git(root, "show", f"{refs(root)[0]}:notes.txt") == "the user's text\n"
    assert h.git(root, "log", "--format=%s", "--", "notes.txt") == ""
    assert [fact.data["paths"] for fact in h.facts(root, "files.left")] == [["notes.txt"]]


def test_a_nested_project_is_left_alone(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def other_project(task: AgentTask, host: AgentHost) -> None:
        user_file(task.tree, "packages/b/.planning/STATE.md")
        await h.write(task, host, "packages/b/app.py", "theirs\n")

    end = h.do(h.request(root, while_executing(other_project), given=h.idea()))

    assert end.outcome == "done", end
    assert h.git(root, "ls-files", "packages") == ""
    assert h.facts(root, "files.left") == []


HIDES: dict[str, Callable[[Path], Any]] = {
    "info/exclude:1: greeter/": lambda root: exclude(root, "greeter/"),
    "a separate git repository": lambda root: h.git(root, "init", "-q", "greeter"),
}


@pytest.mark.parametrize("reason", HIDES)
def test_code_that_git_does_not_see_is_not_a_committed_task(tmp_path: Path, reason: str) -> None:
    root = h.repository(tmp_path / "project")
    HIDES[reason](root)

    end = h.do(h.request(root, h.one_phase(), given=h.idea()))

    assert end.exit == 1
    assert MODULE in end.reason
    assert reason in end.reason


def test_a_listed_file_that_is_changed_after_its_commit_is_a_gap_of_the_phase(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def spoils(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and task.step.endswith("01-01"):
            result = await h.one_phase().run_agent(task, host)
            (task.tree / MODULE).write_text("not what was committed\n")
            return result
        return None

    h.do(h.request(root, h.Watched(h.one_phase(), spoils), given=h.idea()))

    first = next(fact for fact in h.facts(root, "step.result") if fact.step == "1/verify")
    gaps = first.data["result"]["outcome"]["report"]["gaps"]
    assert [(gap["about"], gap["found_by"]) for gap in gaps if gap["about"] == MODULE] == [(MODULE, "gsd")]
