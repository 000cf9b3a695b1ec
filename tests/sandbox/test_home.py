"""The private home folder: what it has, what it keeps, and where it is."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gsd_core.run import private_home as homes
from gsd_core.run.places import prepare
from gsd_core.run.private_home import home_environment, home_places, private_home
from tests.sandbox.box import Box


def test_a_toolchain_is_found_and_cannot_be_changed(box: Box, user_home: Path) -> None:
    for path in (".cargo/bin/tool", ".local/bin/other"):
        tool = user_home / path
        tool.parent.mkdir(parents=True)
        tool.write_text("#!/bin/sh\necho works\n")
        tool.chmod(0o755)
    (user_home / ".cargo" / "credentials.toml").write_text("TOKEN")
    agent = Box.around(box.project)

    out = agent.out(
        """
        ~/.cargo/bin/tool; "$1/.local/bin/other"
        for file in ~/.cargo/bin/tool "$1/.cargo/bin/tool"; do
          (echo evil > "$file") 2>/dev/null && echo changed; (rm "$file") 2>/dev/null && echo removed
        done
        cat "$1/.cargo/credentials.toml" ~/.cargo/credentials.toml 2>/dev/null || true
        """,
        str(user_home),
    )

    assert out == "works\nworks"
    assert (user_home / ".cargo/bin/tool").read_text() == "#!/bin/sh\necho works\n"


def test_package_caches_are_copies(user_home: Path, box: Box) -> None:
    cache = user_home / ".cargo" / "registry" / "cache" / "index" / "crate.tar"
    cache.parent.mkdir(parents=True)
    cache.write_text("genuine")
    module = user_home / "go" / "pkg" / "mod" / "example" / "file.go"
    module.parent.mkdir(parents=True)
    module.write_text("genuine")
    module.parent.chmod(0o555)
    (box.project.parent / "second").mkdir()
    agent = Box.around(box.project.parent / "second")

    agent.out("cat ~/.cargo/registry/cache/index/crate.tar | grep genuine; cat ~/go/pkg/mod/example/file.go")
    agent.out("echo evil > ~/.cargo/registry/cache/index/crate.tar; echo kept > ~/.cargo/registry/cache/new")

    assert cache.read_text() == "genuine"
    again = Box.around(agent.project)
    assert again.out("cat ~/.cargo/registry/cache/new") == "kept"


def test_a_cache_that_is_too_large_is_not_copied(
    user_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(homes, "MAX_BYTES", 1000)
    (user_home / ".cache" / "pip").mkdir(parents=True)
    (user_home / ".cache" / "pip" / "large").write_bytes(b"x" * 2000)
    (user_home / ".npm" / "_cacache").mkdir(parents=True)
    (user_home / ".npm" / "_cacache" / "small").write_bytes(b"x" * 200)

    home = private_home(tmp_path)

    # On a file system that can share blocks, even a large one costs nothing.
    assert (home / ".npm" / "_cacache" / "small").exists()
    shares = subprocess.run(
        ["cp", "--reflink=always", str(user_home / ".cache/pip/large"), str(tmp_path / "copy")],
        capture_output=True,
        check=False,
    )
    assert (home / ".cache" / "pip" / "large").exists() == (shares.returncode == 0)


def test_a_new_run_keeps_caches_and_conversations_and_nothing_else(tmp_path: Path, user_home: Path) -> None:
    home = private_home(tmp_path)
    for name in (".cache/pip/x", ".claude/projects/x.jsonl", ".npm/_cacache/x", "go/pkg/mod/x/y"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("kept")
    for name in (
        ".bashrc",
        ".gitconfig",
        ".npm/other",
        "go/bin/evil",
        "node_modules/x/y",
        ".config/pip/pip.conf",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("removed")
    (home / ".ssh").symlink_to(user_home / ".ssh")
    shutil.rmtree(home / ".m2")
    (home / ".m2").symlink_to(user_home / "Documents")
    (home / "go" / "pkg" / "mod" / "x").chmod(0o500)
    (home / "locked").mkdir(mode=0)

    assert private_home(tmp_path) == home

    files = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert set(files.values()) - {"registry=http://mirror.example/\n"} == {"kept"}
    assert len(files) == 5
    assert (user_home / ".ssh" / "id_ed25519").read_text() == "PRIVATE-KEY"
    assert (user_home / "Documents" / "letter.txt").exists()
    assert not (home / "locked").exists()


def test_only_this_user_can_read_it(tmp_path: Path, user_home: Path) -> None:
    old = os.umask(0)
    try:
        home = private_home(tmp_path)
    finally:
        os.umask(old)

    for folder in (home, home.parent, home.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_each_project_has_its_own_and_unused_ones_are_removed(tmp_path: Path, user_home: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    first = private_home(old)
    then = time.time() - homes.UNUSED.total_seconds() - 60
    os.utime(first.parent / "used", (then, then))

    second = private_home(new)

    assert first != second
    assert not first.parent.exists()


WITHOUT_A_HOME = """
import os, sys
from pathlib import Path
from gsd_core.run.private_home import home_places, private_home, real_home
print(real_home())
home = private_home(Path(sys.argv[1]))
print(home.is_absolute(), home.is_dir(), os.access(home, os.W_OK))
print(len(home_places(home)) > 0)
"""


@pytest.mark.parametrize("kind", ["unset", "missing", "relative", "root"])
def test_it_works_without_a_home_folder(tmp_path: Path, kind: str) -> None:
    values = {"missing": str(tmp_path / "no" / "home"), "relative": "some/where", "root": "/"}
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    if kind in values:
        environment["HOME"] = values[kind]
    script = WITHOUT_A_HOME
    if kind == "unset":
        # As for a user id without an entry in the list of users.
        script = "import pwd\ndef unknown(uid): raise KeyError(uid)\npwd.getpwuid = unknown\n" + script

    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**environment, "PYTHONPATH": str(Path(homes.__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["None", "True True True", "True"]
    assert not (tmp_path / "no").exists()


def test_a_folder_of_another_kind_in_the_temporary_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user_home: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"gsd-homes-{os.getuid()}").symlink_to(user_home)

    with pytest.raises(OSError, match="belongs to somebody else"):
        private_home(tmp_path / "project")


def test_programs_ask_for_the_home_folder_in_several_ways(box: Box) -> None:
    assert (
        box.out("echo $HOME; getent passwd $(id -u) | cut -d: -f6; eval echo ~$(id -un)").splitlines()
        == [str(box.home)] * 3
    )


def test_variables_that_lead_out_are_dropped(tmp_path: Path) -> None:
    environment = {
        "PATH": "/usr/bin",
        "HOME": "/home/ada",
        "CARGO_HOME": "/home/ada/.cargo",
        "XDG_CONFIG_HOME": "/home/ada/.config",
        "SSH_AUTH_SOCK": "/run/user/1000/agent",
        "TMPDIR": "/home/ada/tmp",
        "RUSTUP_HOME": "/home/ada/.rustup",
    }

    assert home_environment(environment, tmp_path) == {
        "PATH": "/usr/bin",
        "HOME": str(tmp_path),
        "RUSTUP_HOME": "/home/ada/.rustup",
    }


@pytest.mark.parametrize("kind", ["home", "parent of home", "root"])
def test_a_path_entry_does_not_show_the_whole_home(
    user_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    entry = {"home": user_home / "bin", "parent of home": user_home.parent, "root": Path("/")}[kind]
    entry.mkdir(exist_ok=True)
    (user_home / "lib").mkdir()
    monkeypatch.setenv("PATH", f"{entry}:{user_home}:relative:")
    monkeypatch.setenv("JAVA_HOME", str(user_home))

    visible = [place.path for place in home_places(private_home(tmp_path))]

    assert [path for path in visible if user_home.is_relative_to(path)] == []


def test_an_installation_on_path_is_visible_as_a_whole(
    user_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sdk/bin", "sdk/lib", "repo/bin", "repo/lib", "repo/.git", "other/bin"):
        (user_home / name).mkdir(parents=True)
    entries = [str(user_home / name / "bin") for name in ("sdk", "repo", "other")]
    monkeypatch.setenv("PATH", ":".join(entries))

    visible = {place.path for place in home_places(private_home(tmp_path))}

    assert {user_home / "sdk", user_home / "repo" / "bin", user_home / "other" / "bin"} <= visible
    assert {user_home / "repo", user_home / "other"}.isdisjoint(visible)


def test_the_projects_own_environment_is_writable(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "pyvenv.cfg").touch()
    monkeypatch.setenv("VIRTUAL_ENV", str(project / ".venv"))
    monkeypatch.setenv("PATH", f"{project}/.venv/bin:/usr/bin")

    places = prepare(project, project, writable=True, git=None, home=private_home(project))

    assert [
        place.path for place in places if ".venv" in place.path.parts and place.path.is_relative_to(project)
    ] == []


def test_a_project_below_a_symlink_is_found(box: Box, user_home: Path) -> None:
    (user_home / "alias").symlink_to(user_home / "src")
    alias = user_home / "alias" / "shop"

    agent = Box.around(alias)

    assert agent.run("pwd; cat app.py", cwd=alias).stdout.splitlines() == [str(box.project), "print('hello')"]
