"""The two plugins: when they work, what they say when they do not, and the profile for macOS."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from gsd_core import ConfinedProcess, Place, SandboxedCommand, SandboxUnavailable
from gsd_core.plugins.validation import hooks_of
from gsd_core.testing import make_manager
from gsd_plugins import bubblewrap, seatbelt
from tests.sandbox.box import Box, require_sandbox


def process(
    *places: Place, command: Sequence[str] = ("true",), home: Path = Path("/home/ada")
) -> ConfinedProcess:
    return ConfinedProcess(
        command=tuple(command), cwd=Path("/"), environment={"PATH": "/usr/bin"}, places=places, home=home
    )


def write_program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("plugin", [bubblewrap, seatbelt])
def test_a_plugin_implements_the_hook_and_nothing_else(plugin: ModuleType) -> None:
    assert hooks_of(make_manager(plugin), plugin) == ("gsd_sandbox",)


def test_without_bwrap_it_says_how_to_get_it() -> None:
    result = bubblewrap.launcher_of("")

    assert isinstance(result, SandboxUnavailable)
    assert "not installed" in result.reason
    assert "bubblewrap" in result.fix


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "setting up uid map"),
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "exit code -9"),
    ],
)
def test_a_bwrap_that_fails_is_not_used(tmp_path: Path, script: str, reason: str) -> None:
    result = bubblewrap.launcher_of(write_program(tmp_path / "bwrap", script))

    assert isinstance(result, SandboxUnavailable)
    assert reason in result.reason
    assert result.fix


def test_user_namespaces_that_the_kernel_forbids_are_noticed(tmp_path: Path) -> None:
    require_sandbox()
    # In a new user namespace, the limit on further ones can be set without touching the machine's.
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from gsd_plugins import bubblewrap\n"
        "print(bubblewrap.launcher_of(bubblewrap.program('bwrap')))\n"
    )
    paths = [str(Path(bubblewrap.__file__).parents[1]), str(Path(bubblewrap.__file__).parents[2])]
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    command = ["unshare", "-Ur", "sh", "-c", limit, "sh", sys.executable, "-c", script, *paths]

    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    if "unshare" in result.stderr:
        pytest.skip("unshare does not work here")

    assert "SandboxUnavailable" in result.stdout
    assert "max_user_namespaces" in result.stdout


def test_a_program_of_the_project_is_not_taken_for_bwrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_sandbox()
    write_program(tmp_path / "bwrap", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}:.:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)

    assert not Path(bubblewrap.program("bwrap", tmp_path)).is_relative_to(tmp_path)
    # Also if the operating system has none.
    monkeypatch.setattr(bubblewrap, "PROGRAM_FOLDERS", ())
    monkeypatch.setenv("PATH", f"{tmp_path}:.")
    assert bubblewrap.program("bwrap", tmp_path) == ""
    assert bubblewrap.program("bwrap", tmp_path / "elsewhere" / "..") == ""


def test_without_gnu_env_it_still_confines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_sandbox()
    # Like the env of busybox, which knows no such option.
    write_program(tmp_path / "env", "echo 'env: unrecognized option' >&2; exit 1")
    monkeypatch.setattr(bubblewrap, "PROGRAM_FOLDERS", (str(tmp_path), *bubblewrap.PROGRAM_FOLDERS))
    bubblewrap.launcher_of.cache_clear()
    try:
        launcher = bubblewrap.launcher_of(bubblewrap.program("bwrap"))
    finally:
        bubblewrap.launcher_of.cache_clear()

    assert not isinstance(launcher, SandboxUnavailable)
    assert launcher[1] == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_root_is_told_that_it_cannot_write_to_files_of_others(tmp_path: Path) -> None:
    require_sandbox()
    os.chown(tmp_path, 12345, 12345)

    result = bubblewrap.confined(process(Place(path=tmp_path, source=tmp_path, writable=True)))

    assert isinstance(result, SandboxUnavailable)
    assert "another user" in result.reason


def test_a_command_whose_name_contains_an_equals_sign_is_run(box: Box) -> None:
    write_program(box.project / "a=b", 'echo "ran $1"')
    started = box.confined(["./a=b", "c d"])

    result = subprocess.run(
        started.command, env=dict(started.environment), capture_output=True, text=True, check=True
    )

    assert result.stdout == "ran c d\n"


def test_a_project_in_a_folder_of_the_operating_system_is_protected_too(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in many containers, where the project is in /usr/src or /opt.
    monkeypatch.setattr(bubblewrap, "SYSTEM", (*bubblewrap.SYSTEM, str(box.project.parent)))
    box.run("echo more >> app.py; echo evil >> .planning/ROADMAP.md; echo evil >> ../other")

    assert (box.project / "app.py").read_text() == "print('hello')\nmore\n"
    assert (box.project / ".planning" / "ROADMAP.md").read_text() == "# Roadmap\n"
    assert not (box.project.parent / "other").exists()


PLACES = (
    Place(path=Path("/Users/ada/.nvm"), source=Path("/Users/ada/.nvm")),
    Place(path=Path("/Users/ada/home"), source=Path("/Users/ada/home"), writable=True),
    Place(path=Path("/Users/ada/shop"), source=Path("/Users/ada/shop"), writable=True),
    Place(path=Path("/Users/ada/shop/.planning"), source=Path("/Users/ada/shop/.planning")),
    Place(path=Path("/Users/ada/shop/.git"), source=Path("/private/tmp/copy"), writable=True),
)


def test_the_profile_allows_the_places_and_protects_what_is_in_them() -> None:
    rules = seatbelt.profile(PLACES).splitlines()

    def position(rule: str) -> int:
        return rules.index(rule)

    shop = position('(allow file-write* (subpath "/Users/ada/shop"))')
    assert position("(deny default)") == 1
    # The last rule that matches counts.
    assert shop < position('(deny file-write* (subpath "/Users/ada/shop/.planning"))')
    assert shop < position('(deny file-write* (subpath "/Users/ada/shop/.git"))')
    assert '(allow file-write* (subpath "/Users/ada/shop/.git"))' not in rules
    assert position('(deny file-write-unlink (literal "/Users/ada/shop"))') > shop
    assert not any("file-write*" in rule and '"/Users/ada"' in rule for rule in rules)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a b", '"/a b"'),
        (
            '/x")(allow default)(deny file-read* (subpath "',
            '"/x\\")(allow default)(deny file-read* (subpath \\""',
        ),
        ("/back\\slash\\", '"/back\\\\slash\\\\"'),
        ("/semi;colon #|comment|#", '"/semi;colon #|comment|#"'),
        ("/ünïcode", '"/ünïcode"'),
    ],
)
def test_a_path_in_the_profile_cannot_become_a_rule(path: str, expected: str) -> None:
    assert seatbelt.quoted(path) == expected
    profile = seatbelt.profile([Place(path=Path(path), source=Path(path), writable=True)])
    assert parse(profile)[-1] == ["allow", "file-write*", ["subpath", str(Path(path))]]


@pytest.mark.parametrize("path", ["/a\n(allow default)", "/a\x00", "/a\x1b[31m", "/a\x7f"])
def test_a_path_with_a_control_character_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        seatbelt.quoted(path)


def test_the_profile_is_well_formed() -> None:
    rules = parse(seatbelt.profile(PLACES))

    assert rules[:2] == [["version", "1"], ["deny", "default"]]
    assert {rule[0] for rule in rules[1:]} == {"allow", "deny"}


def parse(text: str) -> list[list[object]]:
    """Parse the profile language as far as a profile uses it: lists, names and strings of Scheme."""
    stack: list[list[object]] = [[]]
    tokens = re.findall(r'\(|\)|#?"(?:[^"\\]|\\.)*"|[^\s()"]+', text)
    assert "".join(tokens) == re.sub(r'("(?:[^"\\]|\\.)*")|\s', lambda found: found[1] or "", text)
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            is_string = token.startswith('"')
            stack[-1].append(re.sub(r"\\(.)", r"\1", token[1:-1]) if is_string else token)
    assert len(stack) == 1
    return [rule for rule in stack[0] if isinstance(rule, list)]


def test_the_command_for_macos_makes_a_temporary_folder_and_keeps_the_arguments(tmp_path: Path) -> None:
    # The part after the profile is plain shell, so it can run here; only sandbox-exec is left out.
    started = seatbelt.confined(process(*PLACES, command=("echo", "a  b", "$HOME"), home=tmp_path), "/x")
    assert isinstance(started, SandboxedCommand)
    assert started.command[:2] == ("/x", "-p")

    result = subprocess.run(
        started.command[3:], env=dict(started.environment), capture_output=True, text=True, check=True
    )

    assert result.stdout == "a  b $HOME\n"
    assert (tmp_path / "tmp").is_dir()


def test_each_plugin_declines_on_the_other_system() -> None:
    plugin = seatbelt.confine if sys.platform == "linux" else bubblewrap.confine

    assert asyncio.run(plugin(process())) is None
