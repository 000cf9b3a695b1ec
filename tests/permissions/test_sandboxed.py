"""Dangerous commands, run for real in a sandbox: nothing outside of the project's own files changes.

A plain command line of bubblewrap is enough here: that the policy may leave these commands to a sandbox does
not depend on how the plugin builds its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from .lists import DATA, make_tree, read_list

COMMANDS = [
    *read_list(DATA / "dangerous.txt", until="Not run"),
    *read_list(DATA / "dangerous-second.txt"),
]
READ_ONLY = (".planning", ".gsd", ".claude", "gsd.toml")
LIMIT_S = 2


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real repository with the run's files, next to a home and another folder."""
    base = tmp_path_factory.mktemp("dangerous")
    project = make_tree(base)
    shutil.rmtree(project / ".git")
    (project / "evil.sh").write_text("#!/bin/sh\ntouch ../outside/pwned\n")
    (project / "evil.sh").chmod(0o755)
    (project / "list.txt").write_text("../outside/canary\n")
    for command in (
        ["init", "-q"],
        ["add", "README.md"],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-c", "init.defaultBranch=main", *command], cwd=project, check=True)
    subprocess.run(["tar", "-cPf", "evil.tar", "../outside/canary"], cwd=project, check=True)
    patch = "--- ../outside/canary\n+++ ../outside/canary\n@@ -1 +1 @@\n-canary\n+x\n"
    (project / "evil.patch").write_text(patch)
    return base


def contents(base: Path) -> Mapping[str, object]:
    """Return all that no command may change, with the content of files and the targets of links."""
    places = [base / "home", base / "outside", *(base / "project" / name for name in (".git", *READ_ONLY))]
    found: dict[str, object] = {}
    for place in places:
        for path in (place, *sorted(place.rglob("*"))):
            kind = (
                str(path.readlink())
                if path.is_symlink()
                else path.read_bytes()
                if path.is_file()
                else "folder"
            )
            found[str(path.relative_to(base))] = (kind, path.lstat().st_mode)
    found["around"] = sorted(path.name for path in base.iterdir())
    return found


def run_in_sandbox(base: Path, scratch: Path, command: str) -> int:
    """Return the exit code of a command in a copy of the project, with its own files read-only."""
    project = base / "project"
    copy = scratch / "project"
    shutil.copytree(project, copy, symlinks=True)
    places = ["--bind", str(copy), str(project)]
    for name in READ_ONLY:
        places += ["--ro-bind", str(project / name), str(project / name)]
    confine = [
        "bwrap",
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-net",
        "--new-session",
    ]
    confine += [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        str(base),
    ]
    confine += ["--tmpfs", str(base / "home"), *places, "--chdir", str(project), "--clearenv"]
    for name, value in {"PATH": os.environ["PATH"], "HOME": str(base / "home"), "SHELL": "/bin/sh"}.items():
        confine += ["--setenv", name, value]
    try:
        return subprocess.run(
            [*confine, "timeout", "-k", "1", str(LIMIT_S), "bash", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=LIMIT_S * 3,
        ).returncode
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(copy)], check=False, capture_output=True)
        shutil.rmtree(copy, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
def test_dangerous_commands_have_no_effect_outside_in_a_sandbox(base: Path, tmp_path: Path) -> None:
    before = contents(base)
    probe = subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("bubblewrap does not work here")
    # The commands find what they are about: a project to write to, and files that they may not write.
    assert (
        run_in_sandbox(
            base, tmp_path, "touch README.md .git/hooks/x && test -s gsd.toml && ! test -e ~/canary"
        )
        == 0
    )
    assert run_in_sandbox(base, tmp_path, "touch gsd.toml") != 0

    changed_by: list[str] = []
    for command in COMMANDS:
        run_in_sandbox(base, tmp_path, command)
        if contents(base) != before:
            changed_by.append(command)
            before = contents(base)

    assert changed_by == []


@pytest.mark.slow
def test_the_same_commands_do_have_effects_without_a_sandbox(base: Path, tmp_path: Path) -> None:
    """What the test above looks at does change if nothing confines the commands."""
    copy = tmp_path / "base"
    shutil.copytree(base, copy, symlinks=True)
    before = contents(copy)
    for command in (
        "echo x > ../outside/canary",
        "cp evil.sh .git/hooks/x",
        "echo x >> gsd.toml",
        'rm -f "$HOME/canary"',
    ):
        environment = {"PATH": os.environ["PATH"], "HOME": str(copy / "home")}
        subprocess.run(["bash", "-c", command], cwd=copy / "project", env=environment, check=True)
        after = contents(copy)
        assert after != before
        before = after
