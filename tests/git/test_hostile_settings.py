"""The repository's own settings run no program, and lead git nowhere else; the user's own do."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from gsd_core.errors import ProjectError
from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.errors import GitError, LayoutError, UntrustedFilter
from gsd_core.git.history import existing_commits
from gsd_core.git.refs import bring_back_stash
from gsd_core.git.untrusted import refuse_filters
from gsd_core.run.checkout import checkout_of
from tests.hostile.tricks import (
    FILTERS,
    LAYOUTS,
    PROGRAMS,
    SECRET,
    Hostile,
    Trick,
    diff_programs,
    filters,
    fsmonitor_included,
    hooks_of_other_commands,
    lazy_fetch,
    signing,
    submodule,
)

Run = Callable[..., str]


@pytest.fixture
def hostile(root: Path, sh: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hostile:
    """A repository with commits, an environment with secrets, and a place outside."""
    (root / "a.txt").write_text("a\n")
    (root / "src").mkdir()
    (root / "src" / "b.evil").write_text("b\n")
    sh("add", "-A")
    sh("commit", "-qm", "one")
    for name in ("ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF"):
        monkeypatch.setenv(name, SECRET)
    (tmp_path / "outside" / "home").mkdir(parents=True)
    return Hostile(root=root, outside=tmp_path / "outside")


async def use(at: Hostile) -> str:
    """Use git as a run does; return the commit that was made."""
    git = Git(at.root)
    await git.read_refs()
    await git.entries()
    await git.branch()
    # As after a stash that an agent made: with a conflict, for which git asks the merge driver.
    (at.root / "a.txt").write_text("stashed\n")
    git.command("-c", "submodule.inner.ignore=dirty", "stash", "push", "--quiet")
    (at.root / "a.txt").write_text("changed\n")
    await git.save_recovery("work")
    made = await git.commit(["a.txt"], "two", trailers={"GSD-Run": "r"}, verify=False)
    await git.find({"GSD-Run": "r"})
    assert not bring_back_stash(git.command, "stash@{0}")
    git.command("reset", "--hard", "--quiet")
    # A commit that does not exist: a partial clone would fetch it.
    existing_commits(git.command, ["0123456789" * 4])
    if (at.root / "inner").exists():
        inner = Command(root=at.root / "inner")
        inner("commit", "--allow-empty", "--quiet", "--message=new")
        # git has to read it again, through the filter, to know whether it changed.
        os.utime(at.root / "inner" / "a.txt", (2, 2))
        await git.save_recovery("submodule")
        assert await git.commit(["inner"], "three", trailers={}, verify=False)
        assert (await git.uncommitted(["inner"])) == ()
    await git.tree_facts()
    await git.uncommitted(["a.txt", "inner/a.txt"])
    await git.content_of(made)
    async with checkout_of(git) as checkout:
        assert checkout is not None
    return made


@pytest.mark.parametrize("trick", PROGRAMS, ids=lambda trick: trick.__name__)
def test_no_program_of_the_repository_runs(hostile: Hostile, trick: Trick) -> None:
    trick(hostile)
    (hostile.outside / "ran").unlink(missing_ok=True)  # planting it may have run it

    assert asyncio.run(use(hostile))

    assert hostile.ran == ""


def test_plain_git_would_have_run_them(hostile: Hostile) -> None:
    """The canaries work: without this, the tests above prove nothing."""
    for trick in (fsmonitor_included, hooks_of_other_commands, signing, diff_programs, submodule):
        trick(hostile)
    (hostile.outside / "ran").unlink(missing_ok=True)
    for command in (["status"], ["log", "-p", "-1"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        null = subprocess.DEVNULL
        subprocess.run(
            ["git", *command], cwd=hostile.root, check=False, stdin=null, capture_output=True, timeout=20
        )

    noted = {line for line in hostile.ran.splitlines() if "=" not in line}

    assert {"fsmonitor-included", "hook-reference-transaction", "inner-fsmonitor"} <= noted
    assert SECRET in hostile.ran


def test_a_file_monitor_of_the_user_that_is_in_the_repository_does_not_run(
    hostile: Hostile, sh: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path, as git's sample hook suggests, names a file of every repository."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile.outside / "gitconfig"))
    hook = hostile.root / ".git" / "hooks" / "query-watchman"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(hostile.program("watchman", "exit 1"), hook)
    sh("config", "--global", "core.fsmonitor", ".git/hooks/query-watchman")
    sh("status")
    assert hostile.ran.startswith("watchman\n")  # git itself runs it
    (hostile.outside / "ran").unlink()

    assert asyncio.run(use(hostile))

    assert hostile.ran == ""


OLDER_GIT = """#!/bin/sh
# Before 2.45, and the releases that it was ported back to, git did not know this variable.
unset GIT_NO_LAZY_FETCH
exec {git} "$@"
"""


@pytest.mark.parametrize(
    ("older", "hooks", "url"),
    [
        # Each case has one guard only: the variable, the forbidden protocols, the replaced settings.
        pytest.param(False, True, "ssh://git.invalid/x", id="a commit with hooks"),
        pytest.param(True, False, "ssh://git.invalid/x", id="an older git"),
        pytest.param(True, True, "ext::{program}", id="an older git and a commit with hooks"),
    ],
)
def test_a_missing_object_is_not_fetched(
    hostile: Hostile, sh: Run, monkeypatch: pytest.MonkeyPatch, older: bool, hooks: bool, url: str
) -> None:
    program = hostile.program("remote", "exit 1")
    tools = hostile.outside / "tools"
    tools.mkdir()
    shutil.copy(program, tools / "ssh")
    if older:
        (tools / "git").write_text(OLDER_GIT.format(git=shutil.which("git")))
        (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("GIT_SSH_COMMAND")
    lazy_fetch(hostile)
    sh("config", "--replace-all", "remote.origin.url", url.format(program=program))
    blob = sh("rev-parse", "HEAD:a.txt")
    (hostile.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    plain = subprocess.run(
        ["git", "cat-file", "-p", blob], cwd=hostile.root, check=False, capture_output=True
    )
    assert plain.returncode
    assert hostile.ran.startswith("remote\n")  # git itself runs it
    (hostile.outside / "ran").unlink()

    with pytest.raises(GitError):
        Command(root=hostile.root)("cat-file", "-p", blob, hooks=hooks)

    assert hostile.ran == ""


@pytest.mark.parametrize("trick", FILTERS, ids=lambda trick: trick.__name__)
def test_a_file_is_not_committed_without_its_filter(hostile: Hostile, trick: Trick, sh: Run) -> None:
    trick(hostile)
    name = "new.evil" if trick is filters else "new.evil2"
    (hostile.root / name).write_text("plain text\n")
    git = Git(hostile.root)

    with pytest.raises(UntrustedFilter, match=name) as caught:
        asyncio.run(git.commit([name], "two", trailers={}, verify=True))

    assert "gsd trust" in caught.value.hint
    assert hostile.ran == ""
    assert name not in sh("ls-files")


def test_a_filter_in_the_users_own_settings_runs_without_secrets(
    hostile: Hostile, sh: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile.outside / "gitconfig"))
    filters(hostile)
    sh("config", "--global", "filter.evil.clean", hostile.program("users-filter", "tr a-z A-Z"))
    sh("config", "--global", "filter.evil.smudge", "cat")
    (hostile.root / "new.evil").write_text("text\n")

    asyncio.run(Git(hostile.root).commit(["new.evil"], "two", trailers={}, verify=False))

    assert sh("show", "HEAD:new.evil") == "TEXT"
    assert hostile.ran.startswith("users-filter\n")
    assert SECRET not in hostile.ran


def test_a_trusted_filter_runs(hostile: Hostile, sh: Run) -> None:
    hostile.attributes("*.up filter=up")
    hostile.config("filter.up.clean", "tr a-z A-Z")
    (hostile.root / "new.up").write_text("text\n")
    git = Git(hostile.root)
    git.command = attrs.evolve(git.command, trusted=frozenset(git.command.local_programs()))

    asyncio.run(git.commit(["new.up"], "two", trailers={}, verify=False))

    assert sh("show", "HEAD:new.up") == "TEXT"


def test_git_lfs_installed_for_the_repository_alone_is_the_users_own(hostile: Hostile) -> None:
    hostile.config("filter.lfs.clean", "git-lfs clean -- %f")
    hostile.config("filter.lfs.smudge", "git-lfs smudge -- %f")
    hostile.config("filter.lfs.process", "git-lfs filter-process")
    hostile.config("filter.lfs.required", "true")
    assert Command(root=hostile.root).local_programs() == ()

    hostile.config("filter.lfs.process", "git-lfs filter-process; id")
    assert [one.value for one in Command(root=hostile.root).local_programs()] == [
        "git-lfs filter-process; id"
    ]


def test_a_filter_whose_name_hides_the_key_is_refused(hostile: Hostile) -> None:
    hostile.config("filter.a=b.clean", hostile.program("filter"))

    with pytest.raises(GitError, match="cannot be switched off"):
        Command(root=hostile.root)("status")


def test_settings_are_read_again_after_they_changed(hostile: Hostile) -> None:
    git = Command(root=hostile.root)
    git("status")
    assert git.local_programs() == ()

    filters(hostile)
    (hostile.root / "x.evil").write_text("x\n")

    assert {one.key for one in git.local_programs()} == {"filter.evil.clean", "filter.evil.smudge"}
    with pytest.raises(UntrustedFilter):
        refuse_filters(git, ["x.evil"])
    refuse_filters(git, ["a.txt"])


@pytest.mark.parametrize("trick", LAYOUTS, ids=lambda trick: trick.__name__)
def test_git_is_not_run_where_its_files_lead_elsewhere(hostile: Hostile, trick: Trick) -> None:
    trick(hostile)
    before = hostile.changes_outside()

    with pytest.raises(LayoutError) as caught:
        asyncio.run(use(hostile))

    assert caught.value.hint
    assert hostile.ran == ""
    assert hostile.changes_outside() == before


def test_linked_worktrees_and_submodules_work(hostile: Hostile, sh: Run, tmp_path: Path) -> None:
    sh("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    sh("clone", "-q", "--bare", str(hostile.root), str(tmp_path / "origin"))
    sh("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "origin"), "module")

    assert Command(root=tmp_path / "linked")("rev-parse", "--abbrev-ref", "HEAD") == "other"
    module = Command(root=hostile.root / "module")
    assert module("rev-parse", "--show-toplevel") == str(hostile.root / "module")
    assert Command(root=hostile.root / "module")("status", "--porcelain") == ""


def test_a_git_directory_that_the_caller_names_is_used(hostile: Hostile) -> None:
    own = hostile.root / ".git"
    git = Command(root=own, environment={"GIT_DIR": str(own)})
    assert git("config", "user.name") == "Ada"


def test_a_separate_git_directory_is_believed_once_it_names_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    own = tmp_path / "elsewhere.git"
    subprocess.run(["git", "init", "-q", f"--separate-git-dir={own}"], cwd=folder, check=True)
    with pytest.raises(LayoutError, match="another folder") as caught:
        Command(root=folder)("status")

    subprocess.run(caught.value.hint.partition(": ")[2].split(), cwd=folder, check=True)

    assert Command(root=folder)("rev-parse", "--show-toplevel") == str(folder)


def test_hooks_of_a_commit_run_without_the_secrets_of_the_environment(hostile: Hostile, sh: Run) -> None:
    hook = hostile.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(Path(hostile.program("pre-commit", "true")).read_text())
    hook.chmod(0o755)
    (hostile.root / "a.txt").write_text("changed\n")

    asyncio.run(Git(hostile.root).commit(["a.txt"], "two", trailers={}, verify=True))

    assert hostile.ran.startswith("pre-commit\n")
    assert SECRET not in hostile.ran
    assert f"HOME={os.environ['HOME']}" in hostile.ran


def test_a_signing_program_of_the_user_runs_and_reaches_the_agent(
    hostile: Hostile, sh: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile.outside / "gitconfig"))
    # It reads what it has to sign: git fails if it cannot write all of it.
    fake = "cat >/dev/null; printf '\\n[GNUPG:] SIG_CREATED \\n' >&2; echo signature"
    sh("config", "--global", "gpg.program", hostile.program("users-gpg", fake))
    sh("config", "--global", "commit.gpgSign", "true")
    hostile.config("gpg.program", hostile.program("repository-gpg", fake))
    (hostile.root / "a.txt").write_text("changed\n")

    asyncio.run(Git(hostile.root).commit(["a.txt"], "two", trailers={}, verify=False))

    assert hostile.ran.startswith("users-gpg\n")
    assert f"SSH_AUTH_SOCK={SECRET}" in hostile.ran
    assert "ANTHROPIC_API_KEY" not in hostile.ran
    assert "repository-gpg" not in hostile.ran


def test_a_folder_in_no_repository_has_no_programs(tmp_path: Path) -> None:
    assert Command(root=tmp_path).local_programs() == ()
    with pytest.raises(ProjectError):
        Command(root=tmp_path)("status")
