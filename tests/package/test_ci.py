"""The configuration of CI is valid, asks for no more rights than it needs, and names existing sessions."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.package.source import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text("utf-8"))  # pyright: ignore[reportUnknownMemberType]


def sessions() -> set[str]:
    """Return the names of the sessions that noxfile.py defines."""
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if "nox.session" in map(ast.unparse, node.decorator_list)}


def test_there_is_a_workflow() -> None:
    assert WORKFLOWS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_the_repository_and_uses_no_secrets(path: Path) -> None:
    workflow = load(path)

    assert workflow["permissions"] == {"contents": "read"}
    assert not [name for name, job in workflow["jobs"].items() if "permissions" in job]
    assert "secrets." not in path.read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_of_a_workflow_runs_existing_sessions(path: Path) -> None:
    for name, job in load(path)["jobs"].items():
        commands = "\n".join(step.get("run", "") for step in job["steps"])
        named = re.findall(r"nox -s (\w+)", commands)
        if "nox -s ${{ matrix.session }}" in commands:
            named += job["strategy"]["matrix"]["session"]

        assert named, name
        assert set(named) <= sessions(), name


def test_the_local_ci_runs_every_session() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    listed = re.search(r"for session in ([\w ]+);", script)
    assert listed is not None
    named = {*listed[1].split(), *re.findall(r"nox -s (\w+)", script)}

    # The README's command runs the quick tests, those of the documents among them; for the longest there
    # is no time.
    assert named == sessions() - {"tests", "docs", "long"}


def test_every_pre_commit_hook_runs_an_installed_tool() -> None:
    repositories = load(ROOT / ".pre-commit-config.yaml")["repos"]

    assert {repository["repo"] for repository in repositories} == {"local"}
    assert {hook["language"] for repository in repositories for hook in repository["hooks"]} <= {
        "system",
        "pygrep",
    }
