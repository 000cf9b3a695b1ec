"""The throwaway git directory: git works as usual for the agent, in every kind of repository."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gsd_core.git import throwaway
from gsd_core.git.command import Command
from gsd_core.git.errors import LayoutError
from tests.sandbox.box import Box, git, require_sandbox


@pytest.fixture(autouse=True)
def sandbox() -> None:
    require_sandbox()


def test_an_agent_uses_git_as_usual(box: Box) -> None:
    git(box.project, "tag", "-a", "-m", "one", "v1")
    (box.project / "notes.txt").write_text("staged by the user\n")
    git(box.project, "add", "notes.txt")
    agent = Box.around(box.project)

    status = agent.out("git status --porcelain --untracked-files=no; git describe; git log --format=%s,%an")
    assert status.splitlines() == ["A  notes.txt", "v1", "first,Ada"]
    agent.out("git commit -qm staged && echo more >> app.py && git stash -q")
    assert (box.project / "app.py").read_text() == "print('hello')\n"
    # Another process of the same call.
    assert agent.out("git stash pop -q && git log -1 --format=%s,%ae") == "staged,ada@example.org"
    assert "more" in (box.project / "app.py").read_text()
    agent.out("git switch -qc topic && git commit -qam topic && git gc -q && git fsck --strict && git status")

    assert git(box.project, "log", "--all", "--format=%s") == "first"
    assert git(box.project, "diff", "--cached", "--name-only") == "notes.txt"


def test_the_users_own_stash_is_out_of_reach(box: Box) -> None:
    (box.project / "app.py").write_text("the user's draft")
    git(box.project, "stash", "-q")
    agent = Box.around(box.project)

    assert agent.out("git stash list; git stash pop 2>&1 || true") == "No stash entries found."
    assert "draft" in git(box.project, "stash", "show", "-p")


def test_commits_of_the_core_become_visible_during_a_call(box: Box) -> None:
    (box.project / "app.py").write_text("the task's work")
    git(box.project, "commit", "-qam", "task 1")
    assert box.out("git log -1 --format=%s; git status --porcelain") != "task 1"
    assert box.throwaway

    throwaway.refresh(Command(root=box.project), box.throwaway)

    assert box.out("git log -1 --format=%s; git status --porcelain") == "task 1"


@pytest.mark.parametrize(
    "trick",
    [
        'ln -sf "$1" .git/index; ln -sf "$1" .git/packed-refs',
        "rm -f .git/index; mkdir .git/index",
        'rm -rf .git/refs; ln -s "$(dirname "$1")" .git/refs',
        "rm .git/HEAD; mkfifo .git/HEAD",
        'rm .git/HEAD; ln -s "$1" .git/HEAD',
    ],
)
def test_a_refresh_follows_no_link_of_the_agents(box: Box, user_home: Path, trick: str) -> None:
    key = user_home / ".ssh" / "id_ed25519"
    box.out(trick, str(key))
    assert box.throwaway
    git(box.project, "commit", "-qm", "task 1", "--allow-empty")

    with suppress(OSError):
        throwaway.refresh(Command(root=box.project), box.throwaway)

    assert key.read_text() == "PRIVATE-KEY"
    assert [path.name for path in key.parent.iterdir()] == ["id_ed25519"]


def test_settings_that_start_programs_or_hold_passwords_are_not_copied(box: Box) -> None:
    for key, value in {
        "core.fsmonitor": "touch fsmonitor-ran",
        "core.sshCommand": "touch ssh-ran",
        "core.editor": "evil",
        "filter.evil.clean": "touch filter-ran",
        "diff.evil.textconv": "evil",
        "alias.st": "!evil",
        "credential.helper": "!evil",
        "include.path": "/etc/evil",
        "http.extraHeader": "Authorization: TOKEN",
        "url.https://TOKEN@example.org/.insteadOf": "https://example.org/",
        "remote.origin.url": "https://ada:TOKEN@example.org/shop.git",
        "submodule.lib.update": "!evil",
        "core.hooksPath": "/outside/hooks",
        "branch.main.description": 'quotes " and \\ and\nlines',
        "commit.gpgSign": "true",
    }.items():
        git(box.project, "config", key, value)
    git(box.project, "config", 'branch.we"ird\\.merge', "refs/heads/a b;c#d")
    agent = Box.around(box.project)

    text = agent.out("cat .git/config; git config --list; echo x >> app.py; git commit -qam signed")

    assert [word for word in ("evil", "TOKEN", "-ran", "/outside", "store") if word in text] == []
    assert "remote.origin.url=https://example.org/shop.git" in text
    assert 'branch.we"ird\\.merge=refs/heads/a b;c#d' in text


@pytest.mark.parametrize("kind", ["committed folder", "git's own"])
def test_hooks_run_inside(box: Box, kind: str) -> None:
    folder = ".githooks" if kind == "committed folder" else ".git/hooks"
    hook = box.project / folder / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho the hook ran\nls ~/.ssh || true\n")
    hook.chmod(0o755)
    if kind == "committed folder":
        git(box.project, "config", "core.hooksPath", ".githooks")
    agent = Box.around(box.project)

    result = agent.run("git commit --allow-empty -qm x")

    assert "the hook ran" in result.stdout + result.stderr
    assert "No such file" in result.stderr


def test_a_hook_manager_installs_itself_without_an_effect_outside(box: Box) -> None:
    # What husky's installer does: it sets core.hooksPath and writes the scripts of that folder.
    box.out(
        """
        mkdir -p .husky/_ && printf '*' > .husky/_/.gitignore
        printf '#!/bin/sh\\necho husky >&2\\n' > .husky/_/pre-commit && chmod +x .husky/_/pre-commit
        git config core.hooksPath .husky/_
        git commit --allow-empty -qm x 2>&1 | grep -q husky
        """
    )

    config = subprocess.run(
        ["git", "config", "core.hooksPath"], cwd=box.project, capture_output=True, check=False
    )
    assert config.returncode == 1
    assert (box.project / ".husky" / "_" / "pre-commit").exists()


def make_linked(project: Path) -> Path:
    git(project, "worktree", "add", "-q", "-b", "topic", str(project.parent / "linked"))
    return project.parent / "linked"


def make_subfolder(project: Path) -> Path:
    (project / "packages" / "api").mkdir(parents=True)
    (project / "packages" / "api" / "app.py").write_text("print('hello')\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "add a package")
    return project / "packages" / "api"


def make_shallow(project: Path) -> Path:
    git(project, "commit", "-qm", "second", "--allow-empty")
    git(project.parent, "clone", "-q", "--depth", "1", f"file://{project}", "shallow")
    return project.parent / "shallow"


def make_borrowing(project: Path) -> Path:
    git(project.parent, "clone", "-q", "--shared", str(project), "borrowing")
    git(project.parent, "clone", "-q", "--shared", "borrowing", "twice")
    return project.parent / "twice"


def make_sha256(project: Path) -> Path:
    return make_new(project, "--object-format=sha256")


def make_new(project: Path, *options: str) -> Path:
    folder = project.parent / "new"
    git(project.parent, "init", "-q", *options, "new")
    (folder / "app.py").write_text("print('hello')\n")
    if options:
        git(folder, "add", "app.py")
        git(folder, "commit", "-qm", "first")
    return folder


def make_with_submodule(project: Path) -> Path:
    library = project.parent / "library"
    git(project.parent, "init", "-q", "library")
    (library / "lib.py").write_text("x = 1\n")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "library")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "vendor/lib")
    git(project, "commit", "-qm", "add a submodule")
    return project


def make_submodule(project: Path) -> Path:
    return make_with_submodule(project) / "vendor" / "lib"


def make_packed(project: Path) -> Path:
    git(project, "tag", "-a", "-m", "one", "v1")
    git(project, "gc", "-q")
    return project


def make_detached(project: Path) -> Path:
    git(project, "checkout", "-q", "--detach")
    return project


def make_split_index(project: Path) -> Path:
    git(project, "update-index", "--split-index")
    return project


def make_oddly_named(project: Path) -> Path:
    odd = project.parent / "odd näme 'q\" \\ $(x)"
    project.rename(odd)
    return odd


KINDS = {
    name.removeprefix("make_"): value for name, value in sorted(globals().items()) if name.startswith("make_")
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_repository_works(project: Path, kind: str) -> None:
    folder = KINDS[kind](project)
    agent = Box.around(folder)
    real = (
        git(folder, "for-each-ref"),
        git(folder, "status", "--porcelain", "--branch"),
        everything(project.parent),
    )

    agent.out(
        """
        git status --porcelain | { ! grep -v '^??'; }
        git log --oneline >/dev/null 2>&1 || true
        echo more > extra.txt; git add extra.txt; git commit -qm extra; git stash list
        echo again >> extra.txt; git stash -q; git stash pop -q
        git fsck 2>&1 | { ! grep -E 'missing|broken|error'; }
        rm extra.txt
        """
    )

    after = (
        git(folder, "for-each-ref"),
        git(folder, "status", "--porcelain", "--branch"),
        everything(project.parent),
    )
    assert after == real


def everything(folder: Path) -> dict[str, bytes]:
    """Return the content of all git directories below *folder*."""
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and ".git" in path.parts
        and not any(part.startswith("call-") for part in path.parts)
        # The status above may write the times of files into it.
        and path.name != "index"
    }


def test_the_pointer_of_a_worktree_or_submodule_cannot_be_changed(project: Path) -> None:
    top = make_with_submodule(project)
    linked = make_linked(top)
    for folder, mark in ((top, "vendor/lib/.git"), (linked, ".git")):
        agent = Box.around(folder)
        before = (folder / mark).read_text()
        agent.run(
            f"echo 'gitdir: /tmp/evil' > {mark}; rm -f {mark}; mv {mark} x; mv vendor/lib y; mv vendor z"
        )

        assert (folder / mark).read_text() == before


def test_an_agent_works_in_a_submodule(project: Path) -> None:
    folder = make_with_submodule(project)
    agent = Box.around(folder)
    real = everything(folder)

    out = agent.out("cd vendor/lib && echo y >> lib.py && git commit -qam inner && git log -1 --format=%s")

    assert out == "inner"
    assert everything(folder) == real


@pytest.mark.parametrize("name", ["info/exclude", "packed-refs", "shallow", "sharedindex.1"])
def test_a_git_directory_with_a_symlink_to_a_file_of_the_user_is_refused(
    project: Path, user_home: Path, name: str
) -> None:
    link = project / ".git" / name
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(user_home / ".ssh" / "id_ed25519")
    folder = user_home / "copy"
    folder.mkdir()

    with pytest.raises(LayoutError, match="is a link to"):
        throwaway.make(Command(root=project), folder)

    copied = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"PRIVATE" not in copied


def test_alternates_and_submodules_show_only_git_directories(project: Path, user_home: Path) -> None:
    own = project / ".git"
    (own / "modules").mkdir()
    (own / "modules" / "x").symlink_to(user_home)
    (own / "objects" / "info" / "alternates").write_text(f"{user_home}\n{user_home}/.ssh\n")
    folder = user_home / "copy"
    folder.mkdir()

    throwaway.make(Command(root=project), folder)

    sources = {place.source for place in throwaway.describe(folder).places}
    assert sources == {folder / "repository", own / "objects"}


def test_a_folder_in_no_repository_has_none(user_home: Path) -> None:
    assert throwaway.make(Command(root=user_home / "Documents"), user_home) is None


@pytest.mark.slow
def test_it_costs_little_more_than_two_git_commands(project: Path) -> None:
    for number in range(3000):
        path = project / f"d{number % 50}" / f"file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(number))
    git(project, "add", "-A")
    git(project, "commit", "-qm", "many files")
    head = git(project, "rev-parse", "HEAD")
    names = "".join(f"create refs/heads/b{number} {head}\n" for number in range(500))
    subprocess.run(["git", "update-ref", "--stdin"], cwd=project, input=names, text=True, check=True)
    ratios: list[float] = []
    for number in range(15):
        folder = project.parent / f"copy{number}"
        folder.mkdir()
        began = time.perf_counter()
        throwaway.make(Command(root=project), folder)
        made = time.perf_counter()
        # It reads the same index and refs. Milliseconds would measure the machine's load.
        git(project, "status", "--short")
        git(project, "for-each-ref")
        ratios.append((made - began) / (time.perf_counter() - made))
        shutil.rmtree(folder)

    assert statistics.median(ratios) < 1.5, ratios
