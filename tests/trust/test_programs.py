"""Programs that gsd starts are not taken from the project."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gsd_core import find_program, open_in_browser
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


def browser(folder: Path) -> None:
    """Put a browser into *folder* that starts another program, and writes its URL into the folder above."""
    folder.mkdir()
    program = trap(folder, "sailor")
    program.write_text(f"#!/bin/sh\nrudder\necho \"$1\" >> '{folder.parent / 'opened'}'\n")


@pytest.mark.parametrize("entry", [".", "bin", "{root}/bin"])
def test_neither_the_browser_nor_what_it_starts_is_taken_from_the_project(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    for folder in (bench.root, bench.root / "bin"):
        trap(folder, "sailor")
        trap(folder, "rudder")
    browser(tmp_path / "tools")
    monkeypatch.chdir(bench.root)
    monkeypatch.setenv("BROWSER", "sailor")
    path = [entry.format(root=bench.root), str(tmp_path / "tools"), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    (bench.root / ".planning").mkdir()
    target = tmp_path / "report.html"

    result = call("report", "--open", "-o", target)

    assert (result.exit_code, result.stderr) == (0, "")
    assert (tmp_path / "opened").read_text() == f"{target.as_uri()}\n"
    assert not (bench.root / "ran").exists()
    assert not (tmp_path / "ran").exists()


def test_without_a_browser_nothing_is_opened(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap(bench.root / "bin", "sailor")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BROWSER", "sailor")
    monkeypatch.setenv("PATH", str(bench.root / "bin"))

    assert not open_in_browser("http://127.0.0.1:1/", bench.root)
    assert not (bench.root / "ran").exists()
