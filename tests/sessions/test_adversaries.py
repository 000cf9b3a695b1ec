"""Sessions in a hostile world: kills, full disks, deleted files, floods, and what a terminal can do."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import apsw
import psutil
import pytest

from gsd_core import Session, SessionRequest, SessionState, UserError, boot_id, process_start
from gsd_plugins.sessions import SessionsSettings, host
from gsd_plugins.sessions.registry import SCHEMA, Registry, RegistryError, output_folder

pytestmark = pytest.mark.slow

RUNNING = ("running", "waiting_checkpoint")


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """Return a folder with the plugin that has ``gsd probe``."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("probe.py"), folder / "probe.py")
    return folder


def probe(plugins: Path, *words: object, project: str = "p", keep_megabytes: int = 1, slots: int = 9) -> str:
    folder = plugins.parent / project
    folder.mkdir(exist_ok=True)
    arguments = ("--plugins-dir", str(plugins), "probe", *map(str, words))
    request = SessionRequest(arguments=arguments, folder=folder, project=folder)
    return host.start_session(request, SessionsSettings(slots=slots, keep_megabytes=keep_megabytes)).id


def until(session: str, condition: Callable[[Session], object], seconds: float = 60) -> Session:
    latest = time.monotonic() + seconds
    while not condition(found := host.find_session(session)):
        assert time.monotonic() < latest, f"{found}\n{host.output_of(session).data[-2000:]!r}"
        time.sleep(0.05)
    return found


def printed(session: str, text: bytes) -> Callable[[Session], bool]:
    return lambda _: text in host.output_of(session, -100_000).data


def ended(session: Session) -> bool:
    return session.has_ended


def gsd(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "gsd_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, **options)  # type: ignore[call-overload,no-any-return]


def runner_of(session: str) -> int:
    with Registry() as registry:
        return registry.get(session).runner


def long_ago(*_: object) -> float:
    """Return a time of the boot that the clock cannot have."""
    return 1.0


def test_modules_of_the_repository_are_never_imported(plugins: Path) -> None:
    """A cloned repository may have a ``click.py``: it would be executed by every Python that looks there."""
    repository = plugins.parent / "p"
    repository.mkdir()
    for name in ("click", "attr", "attrs", "json", "gsd_plugins", "gsd_core"):
        (repository / f"{name}.py").write_text("open('executed', 'w')\n")
    session = probe(plugins, "hostile")
    until(session, ended)
    assert b"owned" in host.output_of(session, -100_000).data
    assert not (repository / "executed").exists()


def test_stop_by_name_for_a_running_and_a_queued_session(plugins: Path) -> None:
    first = probe(plugins, "wait")
    until(first, printed(first, b"ready"))
    second = probe(plugins, "wait")

    queued = gsd("stop", second, "--json")
    running = gsd("stop", first)

    assert json.loads(queued.stdout)["session"]["id"] == second
    assert f"asked session {first} of p to stop".encode() in running.stdout
    assert until(first, ended).state == "stopped"
    assert until(second, ended).reason == "stopped before it started"
    again, unknown = gsd("stop", first), gsd("stop", "s99")
    assert (again.returncode, unknown.returncode) == (2, 2)
    assert b"already ended (stopped)" in again.stderr
    assert b"no session" in unknown.stderr
    assert b"Traceback" not in again.stderr + unknown.stderr


def test_a_runner_killed_at_any_point_leaves_no_process_and_a_reason(plugins: Path) -> None:
    sessions = [probe(plugins, "wait", project=f"p{number}") for number in range(6)]
    pids: dict[int, str] = {}
    for number, session in enumerate(sessions):
        time.sleep(0.08 * number)
        runner = psutil.Process(runner_of(session))
        family = (runner.pid, *(child.pid for child in runner.children(recursive=True)))
        pids |= {pid: start for pid in family if (start := process_start(pid))}
        runner.kill()

    lost = [until(session, ended) for session in sessions]

    assert {one.state for one in lost} == {"failed"}
    for one in lost:
        assert one.reason == f"its process was killed{'' if one.started else '; start it again'}"
    latest = time.monotonic() + 60
    while left := [pid for pid, start in pids.items() if process_start(pid) == start]:
        assert time.monotonic() < latest, left
        time.sleep(0.05)


def test_a_process_that_survived_its_runner_can_be_stopped(plugins: Path) -> None:
    session = probe(plugins, "ignore-hang-up")
    pid = until(session, printed(session, b"ready")).pid
    os.kill(runner_of(session), signal.SIGKILL)
    time.sleep(0.2)
    assert host.find_session(session).state == "running"

    host.stop_session(session)

    assert until(session, ended).state == "failed"
    assert process_start(pid) == ""


def test_a_restarted_machine_is_recognized_and_no_process_is_touched(plugins: Path) -> None:
    session = probe(plugins, "wait")
    found = until(session, printed(session, b"ready"))
    runner = runner_of(session)
    with Registry() as registry:
        registry.update(session, boot="another boot")

    lost = host.find_session(session)

    assert (lost.state, lost.reason) == ("failed", "the machine was restarted")
    assert psutil.pid_exists(found.pid)
    os.kill(runner, signal.SIGTERM)
    psutil.wait_procs([psutil.Process(runner)] if psutil.pid_exists(runner) else [], timeout=30)


def test_a_queued_session_survives_a_restart_of_the_machine(plugins: Path) -> None:
    first = probe(plugins, "wait")
    until(first, printed(first, b"ready"))
    second = probe(plugins, "exit", 0)
    until(second, lambda one: one.reason)
    for session in (first, second):
        psutil.Process(runner_of(session)).kill()
        psutil.wait_procs(
            [psutil.Process(runner_of(session))] if psutil.pid_exists(runner_of(session)) else []
        )
    with Registry() as registry:
        for session in (first, second):
            registry.update(session, boot="another boot")

    # Two commands at once: it gets one process all the same.
    looks = [
        subprocess.Popen([sys.executable, "-m", "gsd_core", "ps", "--json"], stdout=-3) for _ in range(2)
    ]
    assert [look.wait() for look in looks] == [0, 0]

    assert until(first, ended).state == "failed"
    done = until(second, ended)
    assert (done.state, done.exit) == ("completed", 0)


def test_a_clock_that_is_set_does_not_lose_a_session(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = probe(plugins, "wait")
    until(session, printed(session, b"ready"))
    # What psutil says about the start of a process follows the clock.
    for name in ("boot_time", "BOOT_TIME"):
        monkeypatch.setattr(f"psutil._pslinux.{name}", long_ago, raising=False)

    assert host.find_session(session).state == "running"
    host.stop_session(session)
    assert until(session, ended).state == "stopped"


def test_a_deleted_registry_is_made_anew_and_the_session_is_found_again(plugins: Path, state: Path) -> None:
    session = probe(plugins, "wait")
    until(session, printed(session, b"ready"))
    for path in (state / "sessions").glob("registry.db*"):
        path.unlink()

    other = probe(plugins, "exit", 0, project="q")
    latest = time.monotonic() + 20
    while session not in [one.id for one in host.list_sessions()]:
        assert time.monotonic() < latest
        time.sleep(0.1)

    assert other != session
    assert host.find_session(session).state == "running"
    host.stop_session(session)
    assert until(session, ended).state == "stopped"
    assert until(other, ended).state == "completed"


@pytest.mark.parametrize("content", [b"no database at all" * 1000, b""])
def test_a_damaged_registry_is_an_error_with_a_way_out(state: Path, content: bytes) -> None:
    folder = state / "sessions"
    folder.mkdir(parents=True)
    (folder / "registry.db").write_bytes(content)

    listed = gsd("ps", "--all")

    if content:
        assert listed.returncode == 2
        assert b"registry.db" in listed.stderr
        assert b"move it away" in listed.stderr
    else:
        assert listed.stdout.startswith(b"no sessions")
    assert b"Traceback" not in listed.stderr
    (folder / "registry.db").unlink()


def test_an_older_registry_is_upgraded_and_a_newer_one_refused(state: Path) -> None:
    folder = state / "sessions"
    with Registry() as registry:
        registry.add(project=Path("/p"), folder=Path("/p"), command=["version"])
    database: Any = apsw.Connection(str(folder / "registry.db"))
    drops = [f"ALTER TABLE session DROP COLUMN {name}" for name in ("gate", "agents", "asked")]
    database.execute("; ".join([*drops, "UPDATE session SET state = 'running', slot = 2"]))
    database.execute("PRAGMA user_version=1")

    with Registry() as registry:
        assert registry.get("s1").gate == ""
        # It was started by a version that did not count its agents.
        assert registry.slots_in_use() == 1
    database.execute(f"PRAGMA user_version={SCHEMA + 1}")
    database.close()
    with pytest.raises(UserError, match="newer gsd"):
        Registry()
    for path in folder.glob("registry.db*"):
        path.unlink()


def test_a_full_disk_neither_ends_a_session_nor_loses_its_end(plugins: Path) -> None:
    with Registry() as registry:
        registry.add(project=Path("/filler"), folder=Path("/filler"), command=["x" * 50_000])
    script = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))\n"
        "from pathlib import Path\n"
        "from tests.sessions.test_adversaries import probe\n"
        "print(probe(Path(sys.argv[1]), 'flood', 3000))\n"
    )
    command = [sys.executable, "-c", script, str(plugins)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    session = done.stdout.strip()

    found = until(session, ended)

    assert (found.state, found.exit) == ("completed", 0)
    assert found.reason == "its output is incomplete: File too large"
    assert 0 < len(host.output_of(session).data) <= 200_000


def test_a_registry_that_cannot_be_written_is_an_error_without_a_traceback(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry():
        pass
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(RegistryError, match=r"registry\.db"), Registry() as registry:
            registry.add(project=Path("/p"), folder=Path("/p"), command=["x" * 5000])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_flood_is_bounded_and_its_end_is_kept(plugins: Path) -> None:
    session = probe(plugins, "flood", 30_000, keep_megabytes=4)

    until(session, ended, 120)

    stored = sum(path.stat().st_size for path in output_folder(session).glob("*.out"))
    assert stored <= 4_000_000 + 2 * (1 << 20)
    last = gsd("logs", session, "--cursor", "-81").stdout
    assert last == b"x" * 79 + b"\r\n"
    whole = gsd("logs", session)
    assert b"older output is not kept" in whole.stderr
    assert len(whole.stdout) == stored


def test_a_child_that_keeps_the_terminal_open_does_not_keep_the_session(plugins: Path) -> None:
    session = probe(plugins, "leave-a-child")

    assert until(session, ended, 30).state == "completed"


def test_hostile_output_is_stored_as_it_is_and_can_be_read_as_text(plugins: Path) -> None:
    session = probe(plugins, "hostile")
    until(session, ended)

    raw, plain = gsd("logs", session).stdout, gsd("logs", session, "--plain").stdout

    assert b"\x1b]0;owned\x07" in raw
    assert b"\x9b5n\xff\xfe" in raw
    assert b"\x1b" not in plain
    assert b"\x07" not in plain
    assert "\u202e".encode() not in plain
    assert b"red" in plain
    assert gsd("logs", session, "--since", "1h").stdout == raw
    assert gsd("logs", session, "--since", "2099-01-01").stdout == raw  # the last piece is never left out
    assert gsd("logs", session, "--since", "soon").returncode == 2


def test_a_long_paste_reaches_a_command_that_reads_slowly(plugins: Path) -> None:
    session = probe(plugins, "read", 1000)
    until(session, printed(session, b"ready"))
    with host.Control(session) as control:
        control.send(b"".join(b"y" * 999 + b"\n" for _ in range(50)))

        until(session, ended)

    assert b"read 50000 bytes" in host.output_of(session, -2000).data


def test_input_and_size_reach_the_terminal_of_a_session(plugins: Path) -> None:
    session = probe(plugins, "size")
    until(session, printed(session, b"ready"))
    with host.Control(session) as control:
        control.resize(91, 17)
        until(session, printed(session, b"columns=91, lines=17"))
        control.send(b"\x03")

    assert until(session, ended).exit == 130


def test_a_session_survives_the_terminal_that_started_it(plugins: Path, tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    script = (
        "import sys\nfrom pathlib import Path\nfrom tests.sessions.test_adversaries import probe\n"
        "print(probe(Path(sys.argv[1]), 'wait'), flush=True)\nsys.stdin.read()\n"
    )
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(Path(__file__).parents[2])
        os.execv(sys.executable, [sys.executable, "-c", script, str(plugins)])
    name = os.read(terminal, 100).decode().strip()
    os.close(terminal)
    os.waitpid(pid, 0)

    until(name, printed(name, b"ready"))
    assert host.find_session(name).state == "running"
    host.stop_session(name)
    assert until(name, ended).state == "stopped"


def test_many_sessions_share_few_slots_and_all_end(plugins: Path) -> None:
    sessions = [probe(plugins, "exit", number % 3, project=f"p{number}", slots=2) for number in range(12)]

    found = [until(session, ended, 120) for session in sessions]

    assert [one.exit for one in found] == [number % 3 for number in range(12)]
    assert [one.state for one in found] == ["completed", "failed", "failed"] * 4
    assert {one.slot for one in found} == {1, 2}
    began = [one.started for one in found]
    assert began == sorted(began, key=str)


def test_old_sessions_and_output_of_nobody_are_removed_at_the_next_start(plugins: Path, state: Path) -> None:
    old = probe(plugins, "exit", 0)
    until(old, ended)
    orphan = state / "sessions" / "s77"
    orphan.mkdir()
    for path in (orphan, output_folder(old), *output_folder(old).iterdir()):
        os.utime(path, (0, 0))
    with Registry() as registry:
        registry.update(old, ended="2020-01-01T00:00:00+00:00")
    folder = plugins.parent / "p"
    request = SessionRequest(arguments=("version",), folder=folder, project=folder)

    new = host.start_session(request, SessionsSettings(slots=3, keep_days=30))

    assert [one.id for one in host.list_sessions()] == [new.id]
    assert not orphan.exists()
    assert not output_folder(old).exists()
    until(new.id, ended)


def test_a_session_that_nobody_reads_and_that_prints_nothing_for_long_is_left_alone(plugins: Path) -> None:
    session = probe(plugins, "wait")
    until(session, printed(session, b"ready"))
    for path in (output_folder(session), *output_folder(session).iterdir()):
        os.utime(path, (0, 0))

    # Each start removes what is old.
    folder = plugins.parent / "p2"
    folder.mkdir()
    request = SessionRequest(arguments=("version",), folder=folder, project=folder)
    other = host.start_session(request, SessionsSettings(slots=9, keep_days=0)).id
    until(other, ended)

    assert host.find_session(session).state == "running"
    assert printed(session, b"ready")(host.find_session(session))
    host.stop_session(session)
    assert until(session, ended).state == "stopped"


def test_settings_that_would_let_sessions_wait_for_ever_are_refused(tmp_path: Path) -> None:
    environment = {**os.environ, "GSD_SESSIONS_SLOTS": "0"}

    done = gsd("-C", tmp_path, "ps", env=environment)

    assert done.returncode == 2
    assert b"slots must be at least 1" in done.stderr


def test_a_run_cannot_start_a_session(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    idea = Path(__file__).parents[2] / "examples" / "greeter.md"
    arguments = ("run", idea, "--agent", "rehearsal", "-C", tmp_path / "demo", "--bg")

    done = gsd(*arguments, env={**os.environ, "GSD_RUN": "r-1"})

    assert done.returncode == 2
    assert b"only a person may start a session" in done.stderr
    assert host.list_sessions() == []


def test_the_list_fits_a_narrow_terminal_and_its_names_control_nothing(tmp_path: Path) -> None:
    hostile = tmp_path / "\x1b]0;owned\x07evil\u202e project with a rather long name"
    # Something that lives, and that may be stopped if the test fails.
    living = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    own = {"runner": living.pid, "runner_started": process_start(living.pid), "boot": boot_id()}
    with Registry() as registry:
        command = ["run", "an idea\x1b[2J with a long name.md", "--phases", "1-3"]
        session = registry.add(project=hostile, folder=tmp_path, command=command).id
        registry.update(session, state="waiting_checkpoint", slot=1, checkpoint="q-1", **own)
        queued = registry.add(project=tmp_path, folder=tmp_path, command=["version"]).id
        registry.update(queued, reason="waits for a slot: 3 of 3 are in use", **own)

    wide = gsd("ps").stdout.decode()
    narrow = screen_of(["ps"], columns=40)
    living.kill()
    living.wait()

    for text in (wide, narrow):
        assert not set(text) & set("\x07\u202e\x9b")
        assert "\x1b]" not in text
        assert "\x1b[2J" not in text
    assert [line.split()[0] for line in wide.splitlines()[1:]] == [session, queued, session, queued]
    assert f"{queued} waits for a slot: 3 of 3 are in use" in wide
    assert "waits for an answer: gsd -C" in wide
    plain = re.sub(r"\x1b\[[\d;]*m", "", narrow)
    assert all(len(line) <= 40 for line in plain.splitlines() if "gsd -C" not in line), plain


def test_the_list_of_ended_sessions_says_when_they_ended(plugins: Path) -> None:
    session = probe(plugins, "exit", 0)
    until(session, ended)

    headings, row = gsd("ps", "--all").stdout.decode().splitlines()

    assert headings.split() == [
        "session",
        "state",
        "slots",
        "agents",
        "for",
        "ended",
        "cost",
        "project",
        "command",
    ]
    found = host.find_session(session).ended
    assert found
    assert f"{found.astimezone():%b %d %H:%M}" in row
    assert gsd("ps").stdout.startswith(b"no sessions are active")


def test_the_last_session_of_a_project_that_ended_early_says_how_to_continue_its_run(tmp_path: Path) -> None:
    with Registry() as registry:
        ended: dict[str, str] = {}
        for project, state, run in (
            ("a", "stopped", "r-1"),
            ("a", "failed", "r-1"),
            ("b", "completed", "r-2"),
            ("c", "stopped", ""),
        ):
            session = registry.add(project=tmp_path / project, folder=tmp_path, command=["run"]).id
            registry.update(session, run=run)
            registry.end(session, cast("SessionState", state), exit_code=None, reason="killed by signal 9")
            ended[session] = project

    said = gsd("ps", "--all").stdout.decode()

    continued = [line for line in said.splitlines() if "continue it with" in line]
    assert continued == [f"s2 continue it with: gsd -C {tmp_path / 'a'} resume --bg"]
    assert said.count("killed by signal 9") == len(ended)


def screen_of(arguments: list[str], *, columns: int) -> str:
    """Return what a command prints on a terminal."""
    import fcntl
    import pty
    import struct
    import termios

    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # Readline sets COLUMNS behind the back of os.environ.
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
        os.execve(sys.executable, [sys.executable, "-m", "gsd_core", *arguments], environment)
    found = b""
    try:
        while data := os.read(terminal, 4096):
            found += data
    except OSError:
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return found.decode().replace("\r\n", "\n")
