"""Programs that gsd starts are not taken from the project."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gsd_core import find_program
from tests.cli.bench import Bench, call


def trap(folder: Path, name: str = "git") -> Path:
    """Put a program into *folder* that leaves a mark in the folder above it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\ntouch '{folder.parent / 'ran'}'\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.parametrize("entry", [".", "", "bin", "{root}/bin", "{root}/sub/../bin", "{link}"])
def test_git_is_not_started_from_the_project(
    bench: Bench, idea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    trap(bench.root / "bin")
    trap(bench.root)
    (tmp_path / "link").symlink_to(bench.root / "bin")
    monkeypatch.chdir(bench.root)
    given = entry.format(root=bench.root, link=tmp_path / "link")
    monkeypatch.setenv("PATH", os.pathsep.join([given, os.environ["PATH"]]))

    for arguments in (("status",), ("run", idea, "--agent", "rehearsal", "--dry-run")):
        result = call(*arguments)
        assert result.exit_code == 0, result.stderr

    assert not (bench.root / "ran").exists()
    assert not (tmp_path / "ran").exists()


def test_a_program_beside_the_project_is_found_and_one_above_a_subfolder_is_not(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, inside = trap(tmp_path / "tools", "box"), trap(bench.root / "tools", "box")
    folder = bench.root / "services" / "one"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{inside.parent}:{outside.parent}")

    assert find_program("box", folder) == outside
    assert find_program("box", tmp_path / "elsewhere") == inside
    assert find_program("no-such-program", folder) is None
