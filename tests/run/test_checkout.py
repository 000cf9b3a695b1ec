"""A throwaway checkout of HEAD: only what is committed, removed in every case, and checks that run in it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import venv
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import define, field

from gsd_core.git import Git
from gsd_core.model.agent import Allow, Permission, ToolUse
from gsd_core.planning.model import PhaseView, Plan, Task
from gsd_core.run.checkout import Checkout, checkout_of
from gsd_core.run.sandbox import Sandbox
from gsd_core.run.temporary import sweep_folders
from gsd_core.run.verification import PlanChecks, check_plans

from . import harness as h

LIMIT = timedelta(minutes=2)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder of the test's own, so that leftovers are seen."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with one committed program, an ignored module and ignored dependencies."""
    root = h.repository(tmp_path / "project")
    write(root, "main.py", "print('hello')\n")
    write(root, ".gitignore", "secret.py\nnode_modules/\nbuild/\n.env\n__pycache__/\n")
    write(root, "secret.py", "VALUE = 1\n")
    write(root, "build/app", "old\n")
    write(root, "node_modules/left/index.js", "// installed\n")
    write(root, "packages/web/node_modules/right/index.js", "// installed\n")
    write(root, ".env", "DATABASE=test\n")
    commit(root)
    return root


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def commit(root: Path) -> str:
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "work")
    return h.git(root, "rev-parse", "HEAD").strip()


@define
class Gate:
    """Allows every command, and remembers what it was asked about."""

    step: str = "1/verify"
    uses: list[ToolUse] = field(factory=list[ToolUse])

    @property
    def mark(self) -> str:
        return "r-test"

    @property
    def sandbox(self) -> Sandbox:
        return h.no_sandbox()

    async def decide(self, use: ToolUse) -> Permission:
        self.uses.append(use)
        return Allow()


def outputs(root: Path, *commands: str, gate: Gate | None = None) -> list[str]:
    """Return the outputs of commands in one checkout of the project."""

    async def run() -> list[str]:
        async with checkout_of(Git(root)) as clean:
            assert clean is not None
            results = [await clean.run(each, gate or Gate(), LIMIT) for each in commands]
            return [result.output for result in results]

    return asyncio.run(run())


def paths(root: Path) -> set[str]:
    """Return the files in a checkout of the project; a link to a folder is one path."""

    async def look() -> set[str]:
        async with checkout_of(Git(root)) as clean:
            assert clean is not None
            found = {path for path in clean.tree.rglob("*") if path.is_symlink() or path.is_file()}
            return {path.relative_to(clean.tree).as_posix() for path in found}

    return {path for path in asyncio.run(look()) if not path.startswith(".git/")}


def test_it_has_what_is_committed_and_the_installed_dependencies(root: Path) -> None:
    write(root, "main.py", "print('changed')\n")
    write(root, "new.py", "\n")

    installed = {"node_modules/left", "packages/web/node_modules/right"}
    assert paths(root) == {"main.py", ".gitignore", ".env", *installed}
    assert outputs(root, f"{sys.executable} main.py", "git status --short") == ["hello", ""]


def test_installing_in_it_changes_nothing_in_the_project(root: Path) -> None:
    write(root, "node_modules/@types/node/index.d.ts", "// installed\n")
    write(root, "node_modules/.bin/left", "#!/bin/sh\n")

    outputs(root, "mkdir -p node_modules/new node_modules/@types/new && rm -r node_modules/left")
    outputs(root, "echo changed > .env; echo changed > node_modules/.bin/left")

    found = {path.relative_to(root).as_posix() for path in (root / "node_modules").rglob("*")}
    assert {"node_modules/left/index.js", "node_modules/@types/node"} <= found
    assert not any(path.endswith("new") for path in found)
    assert (root / ".env").read_text() == "DATABASE=test\n"
    assert (root / "node_modules/.bin/left").read_text() == "#!/bin/sh\n"


def test_a_package_that_is_installed_from_the_project_s_files_is_that_of_the_commit(root: Path) -> None:
    write(root, "src/app.py", "VALUE = 'committed'\n")
    write(root, ".gitignore", "node_modules\nbuild\n.env\nsecret.py\n__pycache__\n")
    commit(root)
    venv.create(root / ".venv", symlinks=True)
    # As pip and uv write them: a file for an editable install, a script, and what both of them ignore.
    [packages] = (root / ".venv").glob("lib/python3*/site-packages")
    write(packages, "app.pth", f"{root}/src\n")
    write(packages, "other.pth", f"{root}-2/src\n")
    write(root / ".venv", ".gitignore", "*\n")
    write(root / ".venv", "bin/app", f"#!{root}/.venv/bin/python\nimport app; print(app.VALUE)\n")
    (root / ".venv/bin/app").chmod(0o755)
    write(root, "src/app.py", "VALUE = 'edited'\n")

    look = f"cat .venv/lib/python3*/site-packages/other.pth; {root}/.venv/bin/app; git status --short"
    assert outputs(root, ".venv/bin/app", look) == ["committed", f"{root}-2/src\ncommitted"]
    assert subprocess.check_output([root / ".venv/bin/app"], text=True) == "edited\n"


def test_hooks_that_git_ignores_are_there_and_a_person_s_new_ones_are_not(root: Path) -> None:
    write(root, ".husky/_/pre-commit", "#!/bin/sh\n")
    write(root, ".husky/_/.gitignore", "*\n")
    write(root, ".husky/pre-commit", "#!/bin/sh\n")
    commit(root)
    h.git(root, "config", "core.hooksPath", ".husky/_")

    assert {".husky/pre-commit", ".husky/_/pre-commit"} <= paths(root)

    write(root, ".husky/pre-push", "#!/bin/sh\n")
    h.git(root, "config", "core.hooksPath", ".husky")

    assert ".husky/pre-push" not in paths(root)


def test_worktreeinclude_names_more_files(root: Path, tmp_path: Path) -> None:
    write(root, ".worktreeinclude", "*.local\n!b.local\nmain.py\nlarge.bin\nuntracked.txt\n")
    write(root, ".gitignore", "*.local\nlarge.bin\n")
    commit(root)
    for path in ("config/a.local", "b.local", "c.other", "untracked.txt"):
        write(root, path, path)
    write(root, "large.bin", "x" * 1_000_001)
    (tmp_path / "outside").mkdir()
    write(tmp_path, "outside/private.local", "private")
    (root / "linked.local").symlink_to(tmp_path / "outside")

    found = {path for path in paths(root) if not path.startswith(("node_modules", "packages", "build"))}
    more = {"config/a.local", "linked.local", "large.bin"}
    assert found == {".gitignore", ".worktreeinclude", "main.py", "secret.py", ".env"} | more


def test_nothing_is_left_of_it(root: Path, temporary: Path) -> None:
    outputs(root, "mkdir -p cache/mod && touch cache/mod/file && chmod -R a-w cache")

    assert list(temporary.iterdir()) == []
    assert (root / "node_modules/left/index.js").read_text() == "// installed\n"


def test_nothing_is_left_of_it_after_a_cancellation(root: Path, temporary: Path) -> None:
    async def run(entered: asyncio.Event) -> None:
        async with checkout_of(Git(root)):
            entered.set()
            await asyncio.Event().wait()

    async def cancel() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(run(entered))
        await entered.wait()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(cancel())

    assert list(temporary.iterdir()) == []


def test_it_is_removed_if_it_is_cancelled_while_git_fills_it(root: Path, temporary: Path) -> None:
    async def run() -> None:
        async with checkout_of(Git(root)):
            raise AssertionError("it was cancelled before")

    def has_begun() -> bool:
        return any(temporary.iterdir())

    async def cancel() -> None:
        task = asyncio.create_task(run())
        for _ in iter(has_begun, True):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancel())

    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_one(root: Path, temporary: Path) -> None:
    code = (
        "import asyncio, os, signal, sys, tempfile\nfrom pathlib import Path\n"
        "from gsd_core.git import Git\nfrom gsd_core.run.checkout import checkout_of\n"
        "tempfile.tempdir = sys.argv[2]\n"
        "async def main():\n"
        "    async with checkout_of(Git(Path(sys.argv[1]))):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code, root, temporary], check=False)
    [left] = temporary.iterdir()

    outputs(root, "true")

    assert not left.exists()


def test_the_checkout_of_a_process_that_runs_is_not_swept(root: Path, tmp_path: Path) -> None:
    async def run() -> tuple[int, bool, int]:
        async with checkout_of(Git(root)) as clean:
            assert clean is not None
            return sweep_folders(root), clean.tree.exists(), sweep_folders(tmp_path)

    assert asyncio.run(run()) == (0, True, 0)


def test_a_folder_that_only_looks_like_a_leftover_is_not_followed(root: Path, temporary: Path) -> None:
    async def name() -> str:
        async with checkout_of(Git(root)) as clean:
            assert clean is not None
            return clean.tree.parent.name

    dead = asyncio.run(name()).replace(f"-{os.getpid()}-", "-999999999-")
    (temporary / dead).symlink_to(root)

    sweep_folders(root)

    assert (root / "main.py").exists()


def test_nothing_that_runs_in_it_changes_the_real_history(root: Path) -> None:
    before = h.git(root, "for-each-ref"), h.git(root, "status", "--short")

    outputs(
        root,
        "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m forged",
        "git tag forged; git config core.hooksPath /nowhere; rm -rf .git/objects/info",
    )

    assert (h.git(root, "for-each-ref"), h.git(root, "status", "--short")) == before
    assert "forged" not in h.git(root, "log", "--all", "--format=%s")


def test_tags_and_branches_are_there(root: Path) -> None:
    h.git(root, "tag", "-a", "v1.2", "-m", "v1.2")

    assert outputs(root, "git describe", "git rev-parse --verify -q main")[0] == "v1.2"


def test_a_project_in_a_subfolder_has_its_siblings(root: Path) -> None:
    write(root, "packages/api/app.py", "print(open('../shared.txt').read())\n")
    write(root, "packages/shared.txt", "shared")
    commit(root)

    assert outputs(root / "packages" / "api", f"{sys.executable} app.py") == ["shared"]


def test_a_shallow_clone_and_a_worktree_have_their_own_head(root: Path, tmp_path: Path) -> None:
    write(root, "main.py", "print('second')\n")
    commit(root)
    h.git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    h.git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "worktree"), "HEAD~1")

    assert outputs(tmp_path / "shallow", f"{sys.executable} main.py", "git log --format=%s") == [
        "second",
        "work",
    ]
    assert outputs(tmp_path / "worktree", f"{sys.executable} main.py") == ["hello"]


@pytest.mark.parametrize("is_repository", [False, True])
def test_without_a_commit_there_is_none(tmp_path: Path, is_repository: bool) -> None:
    (tmp_path / "bare").mkdir()
    if is_repository:
        h.repository(tmp_path / "bare")

    async def look() -> Checkout | None:
        async with checkout_of(Git(tmp_path / "bare")) as clean:
            return clean

    assert asyncio.run(look()) is None


def test_the_project_s_path_in_a_command_means_the_checkout(root: Path, tmp_path: Path) -> None:
    h.repository(tmp_path / "project2")
    write(root, "main.py", "print('changed')\n")
    gate = Gate()

    command = f"cd {root} && {sys.executable} main.py && pwd && ls -d {tmp_path}/project2"
    [output] = outputs(root, command, gate=gate)

    assert output.splitlines() == ["hello", str(root), f"{tmp_path}/project2"]
    assert [(use.tree, use.input["command"]) for use in gate.uses] == [(root, command)]


def test_a_committed_symlink_does_not_divert_the_links(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "lib").symlink_to(outside)
    commit(root)
    (root / "lib").unlink()
    write(root, "lib/node_modules/x.js", "x")

    assert "lib/node_modules" not in paths(root)
    assert list(outside.iterdir()) == []


# The checks of plans


def a_phase(root: Path, *commands: str) -> PhaseView:
    tasks = tuple(Task(number=n, name="t", check=command) for n, command in enumerate(commands, start=1))
    plan = Plan(id="01-01", phase="1", tasks=tasks, summary="s.md", files_modified=("secret.py",))
    return PhaseView(number="1", name="n", project=root, plans=(plan,))


def checks(root: Path, *commands: str) -> PlanChecks:
    return asyncio.run(check_plans(Gate(), a_phase(root, *commands), LIMIT, Git(root)))


def test_a_check_that_needs_an_ignored_file_is_a_gap_that_names_it(root: Path) -> None:
    found = checks(root, f"{sys.executable} -c 'import secret'", f"{sys.executable} main.py")

    assert [result.result.ok for result in found.results] == [False, True]
    [gap] = found.gaps
    assert gap.about == "01-01/1"
    assert gap.reason.startswith("it passes only with files that are not committed: secret.py")


def test_a_check_that_fails_everywhere_is_left_to_the_detectors(root: Path) -> None:
    found = checks(root, "exit 3")

    assert ([result.result.exit for result in found.results], found.gaps, found.note) == ([3], (), "")


def test_a_check_that_fails_only_with_uncommitted_files_passes(root: Path) -> None:
    write(root, "main.py", "raise SystemExit(1)\n")

    assert checks(root, f"{sys.executable} main.py").results[0].result.ok


def test_without_a_repository_the_checks_run_in_the_folder_and_a_note_says_so(tmp_path: Path) -> None:
    write(tmp_path / "plain", "data.txt", "x")

    found = checks(tmp_path / "plain", "test -s data.txt")

    assert found.results[0].result.ok
    assert "not in a clean checkout" in found.note


@pytest.mark.slow
def test_submodules_are_filled_from_the_project_and_without_the_network(root: Path, tmp_path: Path) -> None:
    inner, library = h.repository(tmp_path / "inner"), h.repository(tmp_path / "library")
    write(inner, "deep.txt", "deep\n")
    commit(inner)
    allowed = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    write(library, "lib.txt", "library\n")
    h.git(library, *allowed, "add", str(inner), "inner")
    commit(library)
    h.git(root, *allowed, "add", str(library), "vendored/library")
    h.git(root, *allowed, "update", "--init", "--recursive")
    commit(root)
    for folder in (inner, library):
        folder.rename(folder.with_name(f"{folder.name} is away"))
    look = "cat vendored/library/lib.txt vendored/library/inner/deep.txt"

    assert outputs(root, look, "git status --porcelain") == ["library\ndeep", ""]
    assert checks(root, look).gaps == ()
    h.git(root, "submodule", "deinit", "-q", "-f", "vendored/library")
    assert outputs(root, "ls vendored/library") == [""]
