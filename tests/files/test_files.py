"""Files below a folder: no link is followed out of it, no pipe blocks, no large file is read."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gsd_core.files import (
    FileRefused,
    append_below,
    kind_below,
    list_below,
    make_folder,
    read_below,
    read_start,
    write_below,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project beside a folder with a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    root = tmp_path / "project"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("a")
    return root


def test_links_inside_the_project_are_followed(root: Path) -> None:
    (root / "link").symlink_to("docs")
    (root / "docs" / "deep" / "up").symlink_to("../a.md")
    (root / "absolute").symlink_to(root / "docs")

    assert read_below(root, "link/a.md") == b"a"
    assert read_below(root, "docs/deep/up") == b"a"
    assert read_below(root, "absolute/deep/../a.md") == b"a"
    assert [found.name for found in list_below(root, "link")] == ["a.md", "deep"]


@pytest.mark.parametrize(
    ("at", "target"),
    [
        ("docs/b.md", "{outside}/secret"),
        ("docs/b.md", "../../outside/secret"),
        ("docs/b.md", "deep/../../../outside/secret"),
        ("docs/x", "{outside}"),
        ("docs/x", ".."),
    ],
)
def test_nothing_is_read_or_written_through_a_link_out_of_the_project(
    root: Path, at: str, target: str
) -> None:
    outside = root.parent / "outside"
    (root / at).symlink_to(target.format(outside=outside))
    path = at if at.endswith(".md") else f"{at}/../../outside/secret" if target == ".." else f"{at}/secret"

    with pytest.raises(FileRefused, match="leads out of the project"):
        read_below(root, path)
    assert kind_below(root, path) == "other"
    if at.endswith(".md"):
        write_below(root, path, b"new")  # replaces the link
        assert not (root / at).is_symlink()
        assert (root / at).read_bytes() == b"new"
    else:
        with pytest.raises(FileRefused):
            write_below(root, path, b"new")
        with pytest.raises(FileRefused), append_below(root, path):
            pass
        with pytest.raises(FileRefused):
            make_folder(root, f"{path}/folder")
    assert (outside / "secret").read_text() == "secret"
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]


def test_a_log_is_not_appended_to_through_a_link(root: Path) -> None:
    (root / "docs" / "log").symlink_to(root.parent / "outside" / "secret")
    with pytest.raises(OSError, match="symbolic links"), append_below(root, "docs/log"):
        pass


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside/secret", "docs/../../outside/secret"])
def test_paths_out_of_the_project_are_refused(root: Path, path: str) -> None:
    with pytest.raises(FileRefused):
        read_below(root, path)
    with pytest.raises(FileRefused):
        write_below(root, path, b"new")


def test_loops_end(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(FileRefused, match="loop"):
        read_below(root, "a")
    assert kind_below(root, "a") == "other"


def test_pipes_devices_and_folders_are_no_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for path in ("pipe", "docs", "."):
        with pytest.raises(FileRefused, match="not a regular file"):
            read_start(root, path, 10)
    with pytest.raises(OSError, match=r"pipe|device"), append_below(root, "pipe"):
        pass


def test_a_large_file_is_not_read(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(FileRefused, match="larger than 8 MB"):
        read_below(root, "large")
    assert read_start(root, "large", 3) == b"\0\0\0"


def test_modes(root: Path) -> None:
    old = os.umask(0o027)
    try:
        write_below(root, "new/file", b"x")
        write_below(root, "private", b"x", mode=0o600)
        (root / "docs" / "a.md").chmod(0o755)
        write_below(root, "docs/a.md", b"x")
        with append_below(root, "new/log") as file:
            os.write(file, b"line\n")
    finally:
        os.umask(old)
    modes = {
        name: stat.S_IMODE((root / name).stat().st_mode) for name in ("new/file", "private", "docs/a.md")
    }
    assert modes == {"new/file": 0o640, "private": 0o600, "docs/a.md": 0o755}
    assert stat.S_IMODE((root / "new" / "log").stat().st_mode) == 0o600
    assert not list(root.rglob("*.tmp"))


def test_a_folder_that_is_swapped_for_a_link_all_the_time_never_leads_out(root: Path) -> None:
    """A thread exchanges a folder and a link to the outside; reads and writes stay inside or fail."""
    (root / "real").mkdir()
    (root / "real" / "secret").write_text("own")
    (root / "real" / "new").write_text("own")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (root / "real").rename(root / "kept")
            # The other thread may create the folder again in each gap.
            with suppress(OSError):
                (root / "real").symlink_to(root.parent / "outside")
                (root / "real").unlink()
            while (root / "kept").exists():
                shutil.rmtree(root / "real", ignore_errors=True)
                with suppress(OSError):
                    (root / "kept").rename(root / "real")

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes = set[str]()
    try:
        for _ in range(3000):
            try:
                outcomes.add(read_below(root, "real/secret").decode())
                write_below(root, "real/new", b"new", durable=False)
            except OSError as error:
                outcomes.add(type(error).__name__)
    finally:
        done.set()
        swapping.join()

    assert "own" in outcomes
    assert "secret" not in outcomes
    assert sorted(path.name for path in (root.parent / "outside").iterdir()) == ["secret"]


WRITER = """
import os, sys
from pathlib import Path
from typing import Any
from gsd_core import files
os.replace = lambda *arguments, **options: (print("written", flush=True), sys.stdin.read())
files.write_below(Path(sys.argv[1]), "a.txt", b"half")
"""


def test_what_a_killed_process_was_writing_is_removed_by_the_next_one(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        [draft] = tmp_path.iterdir()
        write_below(tmp_path, "b.txt", b"whole")
        assert draft.exists()  # its process is still at work

        writer.kill()
        # Not waited for: its id still exists, as that of a zombie.
        os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)
        write_below(tmp_path, "b.txt", b"whole")

    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_a_program_that_locks_what_is_being_written_does_not_hold_up_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    real = os.open

    def lock_first(path: str | Path, flags: int, *more: Any, **options: Any) -> int:
        descriptor = real(path, flags, *more, **options)
        if str(path).startswith(".gsd-") and flags & os.O_CREAT and not held:
            held.append(real(tmp_path / path, os.O_RDONLY))
            fcntl.flock(held[0], fcntl.LOCK_EX)
        return descriptor

    monkeypatch.setattr(os, "open", lock_first)
    write_below(tmp_path, "a.txt", b"whole")
    os.close(held[0])

    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
