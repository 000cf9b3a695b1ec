"""Hostile surroundings: each ends with a documented code, its cause and what to do, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.e2e.project import EXAMPLE, FAKE, Done, Project, defects, gate, no_problems, plugin

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *FAKE, "--yes")
SLOW = pytest.mark.long


def can_mount() -> bool:
    """Whether this user may mount a file system in a new namespace."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


mounts = pytest.mark.skipif(not can_mount(), reason="needs mount namespaces for unprivileged users")


def shell(project: Project, script: str, *args: str | Path) -> Done:
    """Run *script* with ``"$@"`` being the command line of gsd."""
    command = ["bash", "-c", script, "bash", sys.executable, "-m", "gsd_core", *map(str, args or RUN)]
    done = subprocess.run(
        command,
        cwd=project.root,
        env=project.environ({}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Done(exit=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), seconds=0)


def is_explained(done: Done) -> bool:
    """Whether the output has a cause and a hint, and none of it looks like a bug."""
    text = done.out + done.err
    return "hint:" in text and not any(
        sign in text for sign in ("Traceback", "bug in gsd", "Exception ignored")
    )


@pytest.fixture
def ready(project: Project) -> Project:
    project.create()
    project.environment = no_problems()
    return project


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose first phase of two is done."""
    project = Project(tmp_path_factory.mktemp("finished"), no_problems(PHASES="2"))
    project.create()
    assert project.gsd(*RUN, "--phases", "1").exit == 0
    return project.base


READ_ONLY = "mount --bind {0} {0} && mount -o remount,bind,ro {0}"
IN_NAMESPACE = "unshare -rm bash -c '{} && exec \"$@\"' bash"
FULL = "mount -t tmpfs -o size={1} none {0}"
DISKS = [
    pytest.param(READ_ONLY.format(".git"), "Read-only", id="read-only-git", marks=SLOW),
    pytest.param(READ_ONLY.format(".planning"), "Read-only", id="read-only-planning", marks=SLOW),
    pytest.param(
        READ_ONLY.format('"$PWD"') + ' && cd "$PWD"', "Read-only", id="read-only-project", marks=SLOW
    ),
    pytest.param(FULL.format(".planning", "4k"), "No space left", id="full-planning", marks=SLOW),
    pytest.param(FULL.format(".git/gsd", "48k"), "no space left", id="full-at-the-start", marks=SLOW),
    pytest.param(FULL.format(".git/gsd", "160k"), "no space left", id="full-in-the-middle"),
]


@mounts
@pytest.mark.parametrize(("mount", "cause"), DISKS)
def test_a_disk_that_refuses_is_named_and_the_run_goes_on_afterwards(
    ready: Project, mount: str, cause: str
) -> None:
    for folder in (".planning", ".git/gsd"):
        (ready.root / folder).mkdir()

    done = shell(ready, f'unshare -rm bash -c \'{mount} && exec "$@"\' bash "$@"')
    # A journal on the disk that was full is gone with its mount: the files and the commits are left.
    planned = (ready.root / ".planning" / "ROADMAP.md").exists()
    later = ready.gsd(*(("resume", *FAKE, "--yes") if planned else RUN))

    assert done.exit == 2
    assert cause in done.out
    assert is_explained(done)
    assert later.exit == 0, later.err
    assert list(defects(ready)) == []


@pytest.mark.parametrize(
    ("limit", "cause"),
    [
        pytest.param("-n 12", "open files", marks=SLOW),
        pytest.param("-n 16", "open files", marks=SLOW),
        pytest.param("-f 40", "disk I/O error", marks=SLOW),
    ],
)
def test_a_limit_of_the_shell_is_named_and_the_run_goes_on_afterwards(
    ready: Project, limit: str, cause: str
) -> None:
    done = shell(ready, f'ulimit {limit}; exec "$@"')
    later = ready.gsd(*RUN)

    assert done.exit == 2
    assert cause in done.out
    assert is_explained(done)
    assert later.exit == 0, later.err


@SLOW
@pytest.mark.parametrize(
    "surroundings",
    [
        "export TMPDIR=/nonexistent",
        "export HOME=/nonexistent",
        "unset HOME",
        pytest.param(
            f'set -- {IN_NAMESPACE.format(READ_ONLY.format("$HOME"))} "$@"', marks=mounts, id="home"
        ),
        "umask 000",
    ],
)
def test_a_run_does_without(ready: Project, surroundings: str) -> None:
    done = shell(ready, f'{surroundings}; exec "$@"')

    assert done.exit == 0, done.err
    assert list(defects(ready)) == []


@mounts
def test_a_machine_without_a_folder_for_temporary_files_is_refused_before_anything_is_written(
    ready: Project,
) -> None:
    hidden = " && ".join(READ_ONLY.format(folder) for folder in ("/tmp", "/var/tmp"))
    # pytest's folders are usually in /tmp, so the project's is mounted once more, to be writable.
    own = f"mount --bind {ready.base} {ready.base} && {hidden} && cd {ready.root}"

    done = shell(ready, f'unset TMPDIR; {IN_NAMESPACE.format(own)} "$@"')

    assert done.exit == 2, done.err
    assert is_explained(done)
    assert "TMPDIR" in done.err
    assert not ready.journal_file.exists()


@pytest.mark.skipif(not can_mount(), reason="needs namespaces for unprivileged users")
def test_a_user_without_a_home_is_asked_to_name_one(ready: Project) -> None:
    user = "unshare --user --map-user=54321 --map-group=54321"

    done = shell(ready, f'unset HOME; {user} "$@"')

    assert (done.exit, is_explained(done)) == (2, True), done.err
    assert "HOME" in done.err
    assert not ready.journal_file.exists()


REFUSED = """
import errno
from gsd_core import implements
from gsd_core.hookspecs import gsd_wrap_step

@implements(gsd_wrap_step)
async def wrap(step, call_next):
    if step.kind == "execute":
        raise OSError(errno.ENOSPC, "No space left on device", "/var/cache/own")
    return await call_next(step)
"""


@SLOW
def test_what_the_machine_refuses_a_plugin_is_named_and_the_step_is_done_afterwards(ready: Project) -> None:
    done = ready.gsd(*RUN, *plugin(ready, REFUSED))
    later = ready.gsd("resume", *FAKE, "--yes")

    assert done.exit == 2, done.err
    assert is_explained(done)
    assert "'/var/cache/own': No space left on device" in done.err
    assert "-p no:own" not in done.err
    assert later.exit == 0, later.err
    assert list(defects(ready)) == []


CAPABILITIES = "+dac_override,+dac_read_search"
UNPRIVILEGED = (
    f"setpriv --reuid 54321 --clear-groups --inh-caps={CAPABILITIES} --ambient-caps={CAPABILITIES}"
    if os.geteuid() == 0
    else "env"
)


def can_limit_processes() -> bool:
    """Whether this user can start a program that cannot start another one; a limit does not hold for root."""
    script = f"{UNPRIVILEGED} bash -c 'ulimit -u 1; (true)'"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    return ran.returncode != 0 and "fork" in ran.stderr


@SLOW
@pytest.mark.skipif(not can_limit_processes(), reason="the limit on processes does not hold for this user")
def test_a_limit_on_processes_is_named_and_the_run_goes_on_afterwards(ready: Project) -> None:
    done = shell(ready, f'{UNPRIVILEGED} bash -c \'ulimit -u 1; exec "$@"\' bash "$@"')
    later = ready.gsd(*RUN)

    assert done.exit == 2, done.err
    assert is_explained(done)
    assert "ulimit -u" in done.err
    assert later.exit == 0, later.err


@pytest.mark.parametrize(
    ("umask", "mode"), [pytest.param("077", 0o600, marks=SLOW), pytest.param("027", 0o640, marks=SLOW)]
)
def test_files_of_the_project_have_the_users_mode_and_those_of_gsd_are_private(
    ready: Project, umask: str, mode: int
) -> None:
    done = shell(ready, f'umask {umask}; exec "$@"')

    def modes(*paths: Path) -> set[int]:
        return {path.stat().st_mode & 0o777 for path in paths}

    planning = ready.root / ".planning"
    private = [*(ready.root / ".git/gsd").glob("journal.db*"), *(planning / "autopilot").rglob("*.json*")]
    assert done.exit == 0, done.err
    assert modes(planning / "ROADMAP.md", planning / "STATE.md") == {mode}
    assert len(private) > 5
    assert modes(*private) == {0o600}


def test_a_git_that_is_too_old_is_refused_with_the_version_that_is_needed(ready: Project) -> None:
    script = ready.base / "bin" / "git"
    script.parent.mkdir()
    real = shutil.which("git")
    script.write_text(
        '#!/bin/sh\nfor last; do :; done\nif [ "$last" = version ]; then echo git version 2.20.1; '
        f'else exec {real} "$@"; fi\n'
    )
    script.chmod(0o755)

    done = ready.gsd(*RUN, PATH=f"{script.parent}{os.pathsep}{os.environ['PATH']}")

    assert done.exit == 2
    assert "2.20.1" in done.err
    assert "2.30" in done.err
    assert not ready.journal_file.exists()


def test_without_git_a_run_says_so(ready: Project) -> None:
    done = ready.gsd(*RUN, PATH="/nonexistent")

    assert (done.exit, is_explained(done)) == (2, True)
    assert "git is not installed" in done.err


# The output


@pytest.mark.parametrize(
    "redirection",
    [
        pytest.param(">&-", marks=SLOW),
        pytest.param("2>&-", marks=SLOW),
        pytest.param(">&- 2>&- <&-", marks=SLOW),
        pytest.param("> /dev/full", marks=SLOW),
        pytest.param("2> /dev/full", marks=SLOW),
        "> /dev/full 2>&1",
    ],
)
@pytest.mark.parametrize("output", ["text", pytest.param("stream-json", marks=SLOW)])
def test_a_run_ends_with_its_own_code_whatever_happens_to_its_output(
    ready: Project, redirection: str, output: str
) -> None:
    done = shell(ready, f'"$@" {redirection}', *RUN, "--output-format", output)

    assert done.exit == 0, done.err
    assert "Traceback" not in done.err
    assert "Exception ignored" not in done.err
    assert list(defects(ready)) == []


@SLOW
def test_a_reader_that_leaves_does_not_disturb_a_run(ready: Project) -> None:
    done = shell(ready, '"$@" | head -1; exit ${PIPESTATUS[0]}', *RUN, "--output-format", "stream-json")

    assert (done.exit, done.err) == (0, "")
    assert json.loads(done.out)["name"] == "run.started"


@SLOW
def test_a_reader_that_never_reads_does_not_hold_up_a_run(ready: Project) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    while True:
        try:
            os.write(writing, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writing, True)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "gsd_core", *map(str, RUN), "--output-format", "stream-json"],
            cwd=ready.root,
            env=ready.environ({}),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
        )
        code = process.wait(100)
    finally:
        os.close(reading)
        os.close(writing)

    assert code == 0
    assert list(defects(ready)) == []


@pytest.mark.parametrize(
    "command",
    [("status",), pytest.param(("status", "--json"), marks=SLOW), pytest.param(("log",), marks=SLOW)],
)
def test_a_command_whose_output_cannot_be_written_fails(
    project: Project, finished: Path, command: tuple[str, ...]
) -> None:
    shutil.copytree(finished, project.base, dirs_exist_ok=True)
    full = shell(project, '"$@" > /dev/full', *command)
    closed = shell(project, '"$@" >&-', *command)
    left = shell(project, '"$@" | true; exit ${PIPESTATUS[0]}', *command)

    assert (full.exit, is_explained(full)) == (2, True)
    assert "standard output" in full.err
    assert (closed.exit, closed.err, left.exit, left.err) == (0, "", 0, "")


@pytest.mark.parametrize(
    "ignored",
    [pytest.param(False, id="terminal-closed", marks=SLOW), pytest.param(True, id="nohup", marks=SLOW)],
)
def test_a_run_whose_terminal_goes_away_stops_and_can_be_resumed_unless_it_is_told_to_go_on(
    ready: Project, ignored: bool
) -> None:
    waits = gate(ready)
    waits.close()
    # Set in both cases: the tests themselves may have been started with nohup.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        started = ready.start(*RUN)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert started.until(waits.reached.exists)
    started.signal(signal.SIGHUP)
    if ignored:
        with pytest.raises(subprocess.TimeoutExpired):
            started.process.wait(2)
        waits.open()
        for process in ready.leftovers():
            if process.handle.name() == "sleep":
                process.signal(signal.SIGTERM)
    stopped = started.wait()
    waits.open()
    resumed = ready.gsd("resume", *FAKE[:2], "--yes")

    assert stopped.exit == (0 if ignored else 129), stopped.err
    assert resumed.exit == 0, resumed.err
    assert list(defects(ready)) == []


# The journal


def _sql(statement: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        connection = apsw.Connection(str(path))
        for _ in connection.execute(statement):  # pyright: ignore[reportUnknownMemberType]
            pass
        connection.close()

    return damage


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _text(path: Path) -> None:
    path.write_bytes(os.urandom(30_000))


def _cut(length: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, length)


DAMAGES = [
    pytest.param(_cut(20_000), id="truncated"),
    pytest.param(_cut(0), id="empty", marks=SLOW),
    pytest.param(_text, id="random", marks=SLOW),
    pytest.param(_folder, id="folder", marks=SLOW),
    pytest.param(_sql("UPDATE meta SET schema = 0"), id="schema", marks=SLOW),
    pytest.param(_sql("DROP TABLE epoch"), id="table", marks=SLOW),
    pytest.param(_sql("UPDATE event SET data = substr(data, 1, 5) WHERE seq = 3"), id="json", marks=SLOW),
    pytest.param(_sql("UPDATE event SET data = '{}' WHERE seq > 3"), id="fields"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_journal_is_named_by_each_command_and_left_as_it_is(
    project: Project, finished: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(finished, project.base, dirs_exist_ok=True)
    project.environment = no_problems(PHASES="2")
    path = project.journal_file
    damage(path)
    before = b"" if path.is_dir() else path.read_bytes()

    status, resume = project.gsd("status"), project.gsd("resume", *FAKE, "--yes")
    health = project.gsd("health")
    after = b"" if path.is_dir() else path.read_bytes()
    (shutil.rmtree if path.is_dir() else os.unlink)(path)  # the fixture reads it in the end

    assert (status.exit, resume.exit) == (2, 2)
    assert all(is_explained(done) and "move it away" in done.err for done in (status, resume))
    assert (health.exit, "E103" in health.out, "move it away" in health.out) == (1, True, True)
    assert after == before


def test_without_its_journal_a_run_continues_with_the_idea_that_the_project_keeps(
    project: Project, finished: Path
) -> None:
    shutil.copytree(finished, project.base, dirs_exist_ok=True)
    project.environment = no_problems(PHASES="2")
    shutil.rmtree(project.journal_file.parent)

    done = project.gsd("resume", *FAKE, "--yes", "--phases", "1-2")

    assert done.exit == 0, done.err
    assert list(defects(project)) == []
    [started] = project.facts("run.started")
    assert started.data["idea"]["name"] == EXAMPLE.name
    assert started.data["idea"]["text"] == EXAMPLE.read_text()


@mounts
def test_a_read_only_journal_can_be_read_and_not_resumed(project: Project, finished: Path) -> None:
    shutil.copytree(finished, project.base, dirs_exist_ok=True)
    mount = READ_ONLY.format(".git/gsd")
    read_only = f'unshare -rm bash -c \'{mount} && exec "$@"\' bash "$@"'

    shown, resumed = shell(project, read_only, "status"), shell(project, read_only, "resume", *FAKE, "--yes")

    assert (shown.exit, resumed.exit) == (0, 2)
    assert "Read-only" in resumed.err
    assert is_explained(resumed)
