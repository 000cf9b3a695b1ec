"""What only the run may change: each change is found, kept, and undone, and the user's files stay."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from gsd_core.codec import structure, unstructure
from gsd_core.git.command import Command
from gsd_core.run.seal import Changes, Seal, Sealer

from . import harness as h

USERS = {"mine.txt": "not committed\n", "notes.txt": "one\ntwo, not committed\n", "staged.txt": "staged\n"}
PLAN = "---\nmust_haves:\n  truths:\n    - It works\n---\n<verify>test -e x</verify>\n"


def sh(root: Path, text: str) -> str:
    done = subprocess.run(["/bin/sh", "-ec", text], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def project(root: Path) -> Path:
    """Make a repository with planning files, a second branch, a tag, and what the user has not committed."""
    h.repository(root)
    (root / "notes.txt").write_text("one\n")
    sh(root, "git add -A && git commit -qm start && git branch topic && git tag v0")
    phase = root / ".planning" / "phases" / "01-one"
    phase.mkdir(parents=True)
    (root / ".planning" / "ROADMAP.md").write_text("- [ ] **Phase 1: One**\n")
    (phase / "01-01-PLAN.md").write_text(PLAN)
    sh(root, "git add -A && git commit -qm plan")
    (root / "app.py").write_text("print(1)\n")
    sh(root, "git add -A && git commit -qm task")
    for name, text in USERS.items():
        (root / name).write_text(text)
    sh(root, "git add staged.txt")
    return root


def sealer(root: Path) -> Sealer:
    return Sealer(Command(root=root), root / ".git" / "gsd" / "guard")


def undone(root: Path, text: str, known: tuple[str, ...] = ()) -> Changes:
    """Seal the project, run a script in it, and undo what it did; return what that was."""
    guard = sealer(root)
    seal = guard.take()
    sh(root, text)
    changes = guard.compare(seal, known)
    # As after a crash: another process, with the seal from disk, and then everything once more.
    seal = structure(json.loads(json.dumps(unstructure(seal))), Seal)
    kept = sealer(root).save("test", changes)
    assert kept or not (changes.tips or any((root / path).exists() for path in changes.files))
    assert sealer(root).undo(seal, changes) == ()
    assert sealer(root).undo(seal, changes) == ()
    left = sealer(root).compare(seal, known)
    assert not left.differences, left.differences
    return changes


def users_files(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text() for name in USERS}


TICK = "sed -i 's/- \\[ \\] \\*\\*Phase/- [x] **Phase/' .planning/ROADMAP.md"
SUMMARY = "for plan in .planning/phases/*/*-PLAN.md; do echo done > ${plan%-PLAN.md}-SUMMARY.md; done"
VERIFICATION = (
    "cd .planning/phases/01-*; printf -- '---\\nstatus: passed\\nscore: 3/3\\n---\\n' > 01-VERIFICATION.md"
)
PROMISE_NOTHING = (
    "sed -i 's/^  truths:.*/  truths: []/; s/<verify>.*<.verify>/<verify>true<\\/verify>/' "
    ".planning/phases/*/01-01-PLAN.md; echo >> $(ls .planning/phases/*/01-01-PLAN.md)"
)
GRAVE = {
    "ticks the boxes": (TICK, "ROADMAP.md"),
    "writes its own summary": (SUMMARY, "01-01-SUMMARY.md"),
    "writes its own verdict": (VERIFICATION, "01-VERIFICATION.md"),
    "rewrites its plan": (PROMISE_NOTHING, "01-01-PLAN.md"),
    "commits what it ticked": (f"{TICK}; git commit -qam 'all done'", "ROADMAP.md"),
    "deletes the plan": ("rm -r .planning/phases", "01-01-PLAN.md"),
    "replaces the plans with a link": (
        "mv .planning ../elsewhere && ln -s ../elsewhere .planning",
        ".planning",
    ),
    "edits gsd.toml": ("printf '[run]\\nskip_verify = true\\n' > gsd.toml", "gsd.toml"),
    "makes settings for a person's shell": ("echo 'PATH=$PWD:$PATH' > .envrc", ".envrc"),
    "adds a plugin": ("mkdir -p .gsd/plugins; echo 'x = 1' > .gsd/plugins/easy.py", "easy.py"),
    "gives itself permissions": ("mkdir -p .claude; echo '{}' > .claude/settings.json", "settings.json"),
    "adds a hook": ("printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "hooks"),
    "edits git's settings": ("git config user.name Somebody", ".git/config"),
    "breaks git's settings": ("echo '[[' >> .git/config", ".git/config"),
    "edits the excludes": ("echo greeter >> .git/info/exclude", "info/exclude"),
    "borrows objects": ("echo ../../../x > .git/objects/info/alternates", "alternates"),
    "switches the branch": ("git switch -q -c other", "other"),
    "switches to a branch that exists": ("git stash -q && git switch -q topic && git stash pop -q", "topic"),
    "detaches HEAD": ("git checkout -q --detach", "no branch"),
    "deletes a branch": ("git branch -D topic", "topic"),
    "deletes the tag": ("git tag -d v0", "v0"),
    "packs and deletes refs": ("git pack-refs --all && git branch -D topic", "topic"),
    "amends the last commit": ("git add -A && git commit -q --amend -m mine", "rewritten"),
    "takes commits back": ("git reset -q --soft HEAD~2", "rewritten"),
    "throws commits away": ("git stash -q && git reset -q --hard HEAD~2 && git stash pop -q", "rewritten"),
    "replaces a commit": ("git replace HEAD HEAD~1", "refs/replace"),
    "deletes its branch": ("git checkout -q --detach && git branch -D main", "deleted"),
    "a branch in the place of another": ("git branch -D topic && git branch topic/x", "topic"),
}


@pytest.mark.parametrize("attack", GRAVE)
def test_what_only_the_run_may_change_is_found_and_undone(tmp_path: Path, attack: str) -> None:
    text, named = GRAVE[attack]
    root = project(tmp_path / "project")
    head, refs = h.git(root, "rev-parse", "HEAD"), h.git(root, "for-each-ref", "refs/heads", "refs/tags")

    changes = undone(root, text)

    assert not all(difference.mild for difference in changes.differences)
    assert any(named in difference.what for difference in changes.differences), changes.differences
    assert users_files(root) == USERS
    assert h.git(root, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert h.git(root, "rev-parse", "HEAD") == head
    assert h.git(root, "for-each-ref", "refs/heads", "refs/tags") == refs
    assert not h.git(root, "for-each-ref", "refs/replace")
    assert h.git(root, "config", "user.name") == "Tester\n"
    assert h.git(root, "status", "--porcelain", "--", ".planning", "app.py") == ""
    assert h.git(root, "fsck", "--strict", "--no-dangling") == ""


MILD = {
    "commits itself": "echo x > extra.txt; git add extra.txt; git commit -qm 'by me'",
    "commits with our trailers": (
        "git commit -q --allow-empty -m 'feat: it' "
        "-m 'GSD-Run: r-1\nGSD-Step: 1/execute/01-01\nGSD-Task: 01-01/1'"
    ),
    "amends the words of a commit": "git commit -q --amend --only -m mine",
    "creates a branch": "git branch mine",
    "stashes": "git stash -q -u",
    "hides changes from git": "git update-index --assume-unchanged notes.txt",
    "sets up husky": "mkdir -p .husky/_; git config core.hooksPath .husky/_",
    "leaves a lock": "touch .git/index.lock",
    "leaves a merge": "git rev-parse topic > .git/MERGE_HEAD",
}


@pytest.mark.parametrize("mistake", MILD)
def test_an_honest_mistake_is_undone_and_only_a_complaint(tmp_path: Path, mistake: str) -> None:
    root = project(tmp_path / "project")
    head, refs = h.git(root, "rev-parse", "HEAD"), h.git(root, "for-each-ref", "refs/heads", "refs/tags")

    changes = undone(root, MILD[mistake])

    assert changes.differences
    assert all(difference.mild for difference in changes.differences), changes.differences
    assert users_files(root) == USERS
    assert h.git(root, "rev-parse", "HEAD") == head
    assert h.git(root, "for-each-ref", "refs/heads", "refs/tags") == refs
    assert not (root / ".git" / "MERGE_HEAD").exists()
    assert not (root / ".git" / "index.lock").exists()


def test_the_files_of_an_agents_own_commit_stay_in_the_work_tree(tmp_path: Path) -> None:
    root = project(tmp_path / "project")

    changes = undone(root, "echo x > extra.txt; git add extra.txt; git commit -qm 'by me' extra.txt")

    assert "1 commit on main" in changes.differences[0].what
    assert (root / "extra.txt").read_text() == "x\n"
    assert h.git(root, "show", "refs/gsd/recover/test^:extra.txt") == "x\n"
    assert h.git(root, "status", "--porcelain", "extra.txt") == "A  extra.txt\n"


def test_a_commit_that_the_journal_knows_is_expected_and_so_is_what_is_below_it(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    seal = sealer(root).take()
    sh(root, "git commit -q --allow-empty -m hook && git commit -q --allow-empty -m task")
    task = h.git(root, "rev-parse", "HEAD").strip()

    assert not sealer(root).compare(seal, [task]).differences
    assert sealer(root).compare(seal, ["0" * 40]).differences


def test_what_others_do_meanwhile_is_left_alone(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    sh(root, "git worktree add -q ../other topic")
    seal = sealer(root).take()

    sh(tmp_path / "other", "git commit -q --allow-empty -m 'in another worktree'")
    sh(root, "git update-ref refs/remotes/origin/main HEAD; git tag v1")
    sh(root, "mkdir -p .planning/autopilot; echo '{}' > .planning/autopilot/autopilot-state.json")

    assert not sealer(root).compare(seal, ()).differences


def test_what_an_agent_in_a_worktree_makes_in_the_project_is_undone_and_a_persons_commit_stays(
    tmp_path: Path,
) -> None:
    main, other = project(tmp_path / "project"), tmp_path / "other"
    (main / "gsd.toml").write_text("# mine\n")
    sh(main, f"git worktree add -q --detach {other}")
    guard = Sealer(Command(root=other), main / ".git" / "gsd" / "guard", project=main)
    seal = guard.take()
    sh(main, "echo '{}' > .mcp.json; git add .mcp.json; git commit -qm mine .mcp.json")
    sh(main, "echo 'x = 1' >> gsd.toml; touch .envrc; echo >> .planning/ROADMAP.md")

    changes = guard.compare(seal, ())

    assert [one.what for one in changes.differences] == [
        f"{main / '.envrc'} was created",
        f"{main / 'gsd.toml'} was changed",
    ]
    assert guard.undo(seal, changes) == ()
    assert (main / "gsd.toml").read_text() == "# mine\n"
    assert not (main / ".envrc").exists()
    assert (main / ".mcp.json").exists()


def test_in_a_worktree_its_own_head_is_guarded_and_that_of_the_main_one_is_not(tmp_path: Path) -> None:
    main = project(tmp_path / "project")
    sh(main, "git worktree add -q ../other topic")
    root = tmp_path / "other"
    seal = sealer(main).take()
    there = Sealer(Command(root=root), main / ".git" / "gsd" / "guard-2")
    sealed = there.take()

    sh(root, "git switch -q -c mine; echo '[core]' >> $(git rev-parse --git-path config.worktree)")
    changes = there.compare(sealed, ())
    there.save("test", changes)

    assert there.undo(sealed, changes) == ()
    assert not there.compare(sealed, ()).differences
    assert h.git(root, "symbolic-ref", "HEAD") == "refs/heads/topic\n"
    assert not sealer(main).compare(seal, ()).differences


def test_commits_of_another_project_in_the_repository_are_none_of_this_ones_business(tmp_path: Path) -> None:
    top = project(tmp_path / "project")
    for name in ("one", "two"):
        (top / name).mkdir()
        (top / name / "readme").write_text(name)
    sh(top, "git add one two && git commit -qm two")
    (top / ".git" / "gsd").mkdir()
    guard = Sealer(Command(root=top / "one"), top / ".git" / "gsd" / "guard")
    seal = guard.take()

    sh(top, "echo more > two/readme; git commit -qm 'in two' two")
    assert not guard.compare(seal, ()).differences
    sh(top, "echo more > one/readme; git commit -qm 'in one' one")
    assert guard.compare(seal, ()).differences


def test_a_stash_of_the_user_survives_an_agent_that_drops_it(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    sh(
        root,
        "echo first > a.txt; git add a.txt; git stash -q; echo second > b.txt; git add b.txt; git stash -q",
    )
    for name, text in USERS.items():
        (root / name).write_text(text)
    before = h.git(root, "stash", "list")

    for text in ("git stash drop -q", "git stash clear"):
        undone(root, text)
        assert h.git(root, "stash", "list") == before
    assert users_files(root) == USERS


def test_many_and_large_files_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path / "project")
    for number in range(300):
        (root / ".planning" / f"{number}.md").write_text(f"{number}\n" * 1000)
    guard = sealer(root)
    seal = guard.take()
    (root / ".planning" / "7.md").write_text("changed\n")
    reads: list[Path] = []
    opened = Path.open

    def counting(path: Path, *args: object, **kwargs: object) -> object:
        reads.append(path)
        return opened(path, *args, **kwargs)  # type: ignore[call-overload]

    time.sleep(0.15)  # files that changed within one tick of the file system's clock are read again
    guard.compare(seal, ())
    monkeypatch.setattr(Path, "open", counting)
    changes = guard.compare(seal, ())

    assert [difference.what for difference in changes.differences] == [".planning/7.md was changed"]
    assert len(reads) <= 1
