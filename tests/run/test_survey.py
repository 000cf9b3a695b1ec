"""Existing code is described before it is planned, and the prompts of later steps contain what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.errors import IdeaError
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.planning.codebase import SECTIONS
from gsd_plugins.native.codebase_facts import facts_of, source_files
from gsd_plugins.rehearsal import Scenario
from tests.cli.bench import call

from . import harness as h

FILES = {
    "shop/__init__.py": "",
    "shop/__main__.py": "print('shop')\n",
    "shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "shop/taxes.py": "RATE = 0.2\n",
    "tests/test_cart.py": "import unittest\n",
    "Makefile": "test:\n\tpython3 -m unittest\n",
}


def existing(root: Path) -> Path:
    """Return a repository with code and no planning files."""
    h.repository(root)
    for path, text in FILES.items():
        (root / path).parent.mkdir(exist_ok=True, parents=True)
        (root / path).write_text(text)
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "Existing code")
    return root


@pytest.mark.slow
def test_a_new_project_with_code_is_surveyed_first_and_all_prompts_respect_it(tmp_path: Path) -> None:
    root = existing(tmp_path / "project")
    (root / "CLAUDE.md").write_text("Use tabs.\n")
    key = "AKIA" + "QYLPMN5HNXKRZV3C"
    agent = h.Watched(h.one_phase(), before=leaking(key))

    end = h.do(h.request(root, agent, given=h.idea()))

    assert end.outcome == "done", end.reason
    steps = [fact.step for fact in h.facts(root, "step.completed")]
    assert steps[:2] == ["survey", "init"]
    folder = root / ".planning" / "codebase"
    assert sorted(path.name for path in folder.iterdir()) == sorted(SECTIONS)
    assert "GSD-Step: survey" in h.git(root, "log", "-1", "--format=%B", "--", str(folder))
    tests = (folder / "TESTING.md").read_text()
    assert tests.startswith("# Testing Patterns\n\n**Analysis Date:** 20")
    assert "`make test`" in tests
    assert [task.role for task in agent.tasks[:2]] == ["codebase-mapper"] * 2
    assert all(not task.writable for task in agent.tasks[:2])
    for role in ("roadmapper", "planner", "executor", "verifier"):
        prompt = agent.of(role)[0].prompt
        assert "Use its own test commands" in prompt, role
        assert "`make test`" in prompt, role
        assert "Where to Add New Code" in prompt, role
        assert key not in prompt, role
    assert key not in "".join(path.read_text() for path in folder.iterdir())


def leaking(key: str) -> h.Before:
    """Return what makes a mapper quote a secret."""

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "codebase-mapper":
            return None
        answer = Scenario(h.IDEA).codebase(task.prompt)
        for document in answer["documents"]:
            document["text"] = document["text"].replace("See ", f"The key is {key}. See ")
        return AgentResult(value=answer)

    return before


def test_a_mapper_that_invents_files_or_leaves_out_the_tests_is_sent_back(tmp_path: Path) -> None:
    root = existing(tmp_path / "project")
    complaints: list[str] = []
    asked: list[str] = []

    async def careless(task: AgentTask, host: AgentHost) -> AgentResult | None:
        resumed = task.conversation is not None and task.conversation.resume
        complaints.append(task.prompt)
        if not resumed:
            asked.append(task.prompt)
        answer = Scenario(h.IDEA).codebase(asked[-1])
        if not resumed:
            for document in answer["documents"]:
                text = document["text"].replace("make test", "nothing").replace("## Layers", "## Other")
                document["text"] = text.replace("shop/__init__.py", "shop/invented.py")
        return AgentResult(value=answer)

    agent = h.Watched(h.one_phase(), before=careless)
    request = h.request(root, agent, options=Options(only_asked=True))
    end = h.do(evolve(request, asked={"survey": ""}))

    said = "\n".join(complaints)
    assert end.exit == 0, end.reason
    assert "there is no `shop/invented.py` in the project" in said
    assert "these sections are missing: Layers" in said
    assert "the test command `make test` (from Makefile) is missing" in said
    assert "invented" not in (root / ".planning/codebase/STRUCTURE.md").read_text()


def test_a_survey_that_was_asked_for_leaves_the_project_to_its_idea(tmp_path: Path) -> None:
    root = existing(tmp_path / "project")
    agent = h.Watched(h.one_phase())
    request = h.request(root, agent, options=Options(only_asked=True))
    mapped = h.do(evolve(request, asked={"survey": ""}))

    with pytest.raises(IdeaError, match="no project here and no idea given"):
        h.do(h.request(root, agent))
    assert call("next", "-C", root).stdout == (
        f"init: the project has no idea yet\ncontinue with: gsd -C {root} run IDEA\n"
    )
    end = h.do(h.request(root, agent, given=h.idea(), options=Options(phases=())))

    assert (mapped.outcome, mapped.reason) == ("done", "survey complete")
    assert [fact.step for fact in h.facts(root, "step.completed")] == ["survey", "init"]
    assert [bool(fact.data["idea"]) for fact in h.facts(root, "run.started")] == [False, True]
    assert not h.facts(root, "run.started")[1].data["journal_lost"]
    assert end.run != mapped.run


@pytest.mark.parametrize(
    ("files", "tests"),
    [
        ({"a.py": "", "test_a.py": "import pytest\n"}, ["pytest"]),
        ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": "{not json", "Makefile": "test := 1\n"}, []),
        ({"go.mod": "module a", "a_test.go": ""}, ["go test ./..."]),
    ],
)
def test_test_commands_are_found_by_code(tmp_path: Path, files: dict[str, str], tests: list[str]) -> None:
    for path, text in files.items():
        (tmp_path / path).write_text(text)

    assert [command for command, _ in facts_of(tmp_path, [*files]).tests] == tests


def test_dependencies_builds_and_generated_files_are_no_source() -> None:
    paths = ["a.py", "vendor/b.go", "node_modules/c.js", "d.min.js", "e_pb2.py", "README.md", "src/f.ts"]

    assert source_files(paths) == ("a.py", "src/f.ts")
