"""What an agent that owns the planning may do: in the sandbox, and according to the permission policy."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

import attrs
import pytest

from gsd_core import Allow, Ask, Deny, ToolUse
from gsd_core.git.command import Command
from gsd_core.model.sandbox import Place
from gsd_core.run.places import owned_places, prepare
from gsd_plugins import permissions
from tests.run.harness import git, repository
from tests.sandbox.box import Box, require_sandbox

FORBIDDEN = (
    "echo x > .git/hooks/pre-commit",
    "git config core.fsmonitor evil",
    "rm -rf .git/hooks",
    "mv .git elsewhere",
    "echo x >> .git/info/attributes",
    "echo x > gsd.toml",
    "echo x > .claude/settings.json",
    "mv .claude other && mkdir .claude && echo x > .claude/settings.json",
)


@attrs.define(kw_only=True)
class OwnedBox(Box):
    """A sandbox for an agent that owns the planning."""

    owned: tuple[Place, ...] = ()

    def places(self) -> tuple[Place, ...]:
        return prepare(self.project, self.tree, writable=True, git=None, home=self.home, owned=self.owned)


@pytest.mark.parametrize("where", ["repository", "linked worktree", "subfolder"])
def test_it_commits_to_the_real_repository_and_changes_nothing_that_starts_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    require_sandbox()
    # The private home of the sandbox would get copies of this user's package caches.
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    main = repository(tmp_path / "main")
    git(main, "config", "credential.helper", "!echo password=secret")
    git(main, "commit", "-qm", "first", "--allow-empty")
    project = main
    if where == "subfolder":
        project = main / "packages" / "one"
        project.mkdir(parents=True)
        (main / "packages" / "other.txt").write_text("of another package")
        git(main, "add", "-A")
        git(main, "commit", "-qm", "another package")
    if where == "linked worktree":
        project = tmp_path / "linked"
        git(main, "worktree", "add", "-q", "-b", "other", str(project))
    (project / "gsd.toml").write_text("")
    own = Path(git(project, "rev-parse", "--absolute-git-dir").strip())
    for folder in {own, main / ".git"}:
        (folder / "gsd").mkdir(exist_ok=True)
        (folder / "gsd" / "journal.db").write_text("private")
    made = Box.around(project)
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    owned = owned_places(Command(root=project), folder)
    box = OwnedBox(project=project, tree=project, home=made.home, folder=folder, owned=owned)

    done = box.run(
        "mkdir -p .planning && echo x > .planning/STATE.md && git add -A && git commit -qm 'docs: state' "
        "&& git tag v1.0 && git log -1 --format=%an; git config --list; cat $(git rev-parse --git-dir)/gsd/*"
    )

    assert "Tester" in done.stdout, done.stderr
    assert "secret" not in done.stdout
    assert "private" not in done.stdout
    assert git(project, "log", "-1", "--format=%s") == "docs: state\n"
    assert git(main, "tag") == "v1.0\n"
    # Nothing beside the project is deleted by the commit.
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "show", "--name-status", "--format=", "HEAD").count("D\t") == 0
    config = (main / ".git" / "config").read_text()
    commands = [line.replace(".git/", "$(git rev-parse --git-common-dir)/") for line in FORBIDDEN]
    assert box.run("\n".join(f"( {line} ) && echo CHANGED: '{line}'" for line in commands)).stdout == ""
    assert (main / ".git" / "config").read_text() == config
    assert not (main / ".git" / "hooks" / "pre-commit").exists()
    assert (main / ".git" / "gsd" / "journal.db").read_text() == "private"
    assert (project / "gsd.toml").read_text() == ""
    assert subprocess.run(["git", "fsck", "--strict"], cwd=main, check=False).returncode == 0


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git commit -m 'docs: plan'", Allow),
        ("git add .planning/ && git commit -m x", Allow),
        ("git tag -a v1.0 -m x", Allow),
        ("git branch topic", Allow),
        ("gsd-sdk query commit 'docs: x' --files .planning/STATE.md", Allow),
        ("mkdir -p .planning/phases && echo x > .planning/STATE.md", Allow),
        ("git commit --amend -m x", Deny),
        ("git commit --no-verify -m x", Deny),
        ("git branch -D main", Deny),
        ("git tag -d v1.0", Deny),
        ("git reset --hard HEAD~1", Deny),
        ("git push", Deny | Ask),
        ("echo x > .git/hooks/pre-commit", Deny),
        ("echo x > .planning/../.git/config", Deny),
        ("echo x > .planning/.claude/settings.json", Deny),
        ("echo x > .claude/settings.json", Deny),
    ],
)
def test_the_policy_without_a_sandbox(tmp_path: Path, command: str, expected: type) -> None:
    (tmp_path / ".planning").mkdir()
    use = ToolUse(step="1/plan", name="Bash", input={"command": command}, asked_by="agent", tree=tmp_path)

    found = asyncio.run(_permit(attrs.evolve(use, owns_planning=True)))

    assert isinstance(found, expected), found
    assert not isinstance(asyncio.run(_permit(use)), Allow)


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("Write", ".planning/ROADMAP.md", Allow),
        ("Edit", ".planning/config.json", Allow),
        ("Write", ".git/config", Deny),
        ("Write", ".gsd/plugins/x.py", Deny),
        ("Agent", "", Allow),
        ("Task", "", Allow),
    ],
)
def test_its_tools(tmp_path: Path, name: str, argument: str, expected: type) -> None:
    arguments = {"file_path": str(tmp_path / argument), "content": "x"} if argument else {"prompt": "plan"}
    use = ToolUse(step="1/plan", name=name, input=arguments, asked_by="agent", tree=tmp_path)

    for confined in (False, True):
        owner = attrs.evolve(use, owns_planning=True, confined=confined)
        assert isinstance(asyncio.run(_permit(owner)), expected)
        assert isinstance(asyncio.run(_permit(attrs.evolve(use, confined=confined))), Deny)


async def _permit(use: ToolUse) -> object:
    return await permissions.default_policy(use)
