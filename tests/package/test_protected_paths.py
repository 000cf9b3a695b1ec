"""Everything that guards the protected paths uses the one list of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gsd_core import PROTECTED_NAMES, Allow, Deny, FileWrite, StepResult, ToolUse
from gsd_core.hookspecs import gsd_execute_step
from gsd_core.planning.check import invalid_path_reason
from gsd_core.protected_paths import SECRET_NAMES, fold_name, is_secret_name, protected_part
from gsd_core.run.delivery import may_commit
from gsd_plugins import permissions
from tests.run import harness as h

PATHS = [path for name in PROTECTED_NAMES for path in (name, f"src/{name}", f"{name}/x", name.upper())]
ORDINARY = ["src/a.py", ".gitignore", ".github/x.yml", "docs/planning.md", "claude.py", "profile", "a.git/x"]


def permitted(tree: Path, name: str, **given: str) -> object:
    use = ToolUse(step="s", name=name, input=given, asked_by="agent", tree=tree)
    return asyncio.run(permissions.default_policy(use))


@pytest.mark.parametrize("path", PATHS)
def test_an_agent_may_not_write_a_protected_path(path: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()

    assert isinstance(permitted(tmp_path, "Write", file_path=path), Deny)
    assert isinstance(permitted(tmp_path, "Bash", command=f"echo x > {path}"), Deny)


@pytest.mark.parametrize("path", PATHS)
def test_a_plan_may_not_name_and_a_task_may_not_commit_a_protected_path(path: str) -> None:
    assert invalid_path_reason(path)
    assert not may_commit(path)


@pytest.mark.parametrize("path", ORDINARY)
def test_other_paths_are_not_protected(path: str, tmp_path: Path) -> None:
    assert protected_part(path) == ""
    assert invalid_path_reason(path) == ""
    assert may_commit(path)
    assert permitted(tmp_path, "Write", file_path=path) == Allow()


@pytest.mark.parametrize(
    "path", ["src/.envrc", *(pytest.param(f"{name}/x", marks=pytest.mark.slow) for name in PROTECTED_NAMES)]
)
def test_a_step_may_return_files_in_planning_but_no_other_protected_path(path: str, tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    async def writes() -> Any:
        return StepResult(subject="docs: mine now", files=(FileWrite(path=path, text="x"),))

    request = h.request(
        root, h.one_phase(), given=h.idea(), run={"execute": ["bad"]}, bad=h.plugin(gsd_execute_step, writes)
    )
    end = h.do(request)

    assert ("may not write" in end.reason) == (not path.startswith(".planning/"))


@pytest.mark.parametrize("path", [".ｇit/config", ".gi\u200dt/config", ".GIT ./config", "src\\.git\\config"])
def test_a_protected_name_is_recognized_however_it_is_written(path: str) -> None:
    assert protected_part(path)
    assert not may_commit(path)


@pytest.mark.parametrize("pattern", SECRET_NAMES)
def test_files_that_usually_contain_secrets_are_not_committed(pattern: str) -> None:
    name = pattern.replace("*", "x")

    assert is_secret_name(name)
    assert is_secret_name(name.upper())
    assert not may_commit(f"src/{name}")


@pytest.mark.parametrize("name", [".env.example", ".env.local.sample", ".env.test", "env.py", "id_rsa.py"])
def test_files_that_are_made_to_be_shared_are_committed(name: str) -> None:
    assert not is_secret_name(name)
    assert may_commit(name)


def test_every_protected_name_is_in_the_form_in_which_names_are_compared() -> None:
    assert [name for name in PROTECTED_NAMES if fold_name(name) != name] == []
    assert all(PROTECTED_NAMES.values())
