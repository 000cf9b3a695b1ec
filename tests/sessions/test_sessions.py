"""Sessions as real processes: started, watched, answered, stopped, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import psutil
import pytest

from gsd_core import Session, SessionRequest, UserError, bind_settings, boot_id, process_start
from gsd_core.hookspecs import gsd_session_host
from gsd_core.machine.state import Options
from gsd_core.plugins.validation import HOOKS
from gsd_core.project import Project
from gsd_core.testing.small_run import _make_project  # pyright: ignore[reportPrivateUsage] - no run is wanted
from gsd_plugins import sessions
from gsd_plugins.sessions import SessionsSettings, host
from gsd_plugins.sessions.registry import Registry, output_folder
from tests.e2e.project import EXAMPLE, FAKE, no_problems
from tests.e2e.project import Project as Folder
from tests.run.harness import do, idea, one_phase, repository, request

pytestmark = pytest.mark.slow


def begin(folder: Path, *arguments: str, slots: int = 3) -> Session:
    folder.mkdir(exist_ok=True)
    request = SessionRequest(arguments=arguments, folder=folder, project=folder)
    return host.start_session(request, SessionsSettings(slots=slots))


def until(session: str, condition: Callable[[Session], object], seconds: float = 60) -> Session:
    latest = time.monotonic() + seconds
    while not condition(found := host.find_session(session)):
        assert time.monotonic() < latest, f"{found}\n{host.output_of(session).data.decode()}"
        time.sleep(0.05)
    return found


def gsd(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "gsd_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)


def following(folder: Path) -> str:
    """Make a repository in which `gsd log --follow` waits for ever, and return the session that does."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return begin(folder, "log", "--follow").id


def test_a_session_runs_to_its_end_and_its_output_is_kept(tmp_path: Path) -> None:
    session = begin(tmp_path / "p", "version")

    ended = until(session.id, lambda one: one.has_ended)

    assert (ended.state, ended.exit, ended.slot) == ("completed", 0, 1)
    printed = host.output_of(session.id).data
    assert b"gsd 0." in printed
    assert gsd("logs", session.id).stdout == printed
    listed = json.loads(gsd("ps", "--json").stdout)["sessions"]
    assert [(one["id"], one["state"], one["exit"]) for one in listed] == [(session.id, "completed", 0)]
    assert gsd("rm", session.id).returncode == 0
    assert not output_folder(session.id).exists()
    assert gsd("logs", session.id).returncode == 2


def test_the_host_of_the_hook_lists_what_it_started(tmp_path: Path) -> None:
    settings = SessionsSettings(slots=2)
    with bind_settings({SessionsSettings: settings}):
        local = asyncio.run(sessions.local_host())
    assert local is not None
    request = SessionRequest(arguments=("version",), folder=tmp_path, project=tmp_path)

    session = local.start(request)

    assert [one.id for one in local.list()] == [session.id]
    assert gsd_session_host.__name__ in HOOKS
    until(session.id, lambda one: one.has_ended)


def test_a_failure_is_one(tmp_path: Path) -> None:
    session = begin(tmp_path / "p", "run", "missing.md")

    ended = until(session.id, lambda one: one.has_ended)

    assert (ended.state, ended.exit) == ("failed", 2)
    assert b"missing.md" in host.output_of(session.id).data


def test_more_sessions_than_slots_wait_their_turn(tmp_path: Path) -> None:
    first = following(tmp_path / "a")
    until(first, lambda one: one.pid)
    second = begin(tmp_path / "b", "version", slots=1)

    assert (second.state, second.slot) == ("idle", 0)
    assert "slot" in second.reason
    why = json.loads(gsd("-C", tmp_path / "b", "why", "--json").stdout)["waiting"]
    assert [(one["what"], one["cause"], one["reason"]) for one in why] == [
        (f"session {second.id}", "slot", second.reason)
    ]
    assert [way["command"] for way in why[0]["ways"]][-1].endswith(f"stop {second.id}")
    host.stop_session(first)

    assert until(first, lambda one: one.has_ended).state == "stopped"
    assert until(second.id, lambda one: one.has_ended).state == "completed"


def test_two_sessions_of_a_project_never_run_at_once(tmp_path: Path) -> None:
    first = following(tmp_path / "a")
    second = begin(tmp_path / "a", "version")

    assert (second.state, second.reason) == ("idle", f"waits for session {first} in the same project")
    host.stop_session(second.id)
    assert until(second.id, lambda one: one.has_ended).state == "stopped"


def test_a_killed_session_is_recognized_and_nothing_else_is_touched(tmp_path: Path) -> None:
    session = following(tmp_path / "a")
    until(session, lambda one: one.pid)
    with Registry() as registry:
        runner = registry.get(session).runner
    os.kill(runner, signal.SIGKILL)

    ended = until(session, lambda one: one.has_ended)

    assert (ended.state, ended.exit) == ("failed", None)
    assert "killed" in ended.reason
    assert not psutil.pid_exists(ended.pid) or psutil.Process(ended.pid).status() == psutil.STATUS_ZOMBIE


def test_a_process_that_only_has_the_same_id_is_left_alone(tmp_path: Path) -> None:
    session = following(tmp_path / "a")
    until(session, lambda one: one.pid)
    with Registry() as registry:
        row = registry.get(session)
        other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        registry.update(session, runner=other.pid, pid=other.pid)

        try:
            assert host.find_session(session).state == "failed"
            with pytest.raises(UserError, match="already ended"):
                host.stop_session(session)
            assert other.poll() is None
        finally:
            other.kill()
            other.wait()
            os.kill(row.runner, signal.SIGTERM)
    psutil.wait_procs([psutil.Process(row.runner)] if psutil.pid_exists(row.runner) else [], timeout=30)


@pytest.mark.slow
def test_a_run_in_the_background_waits_for_its_answer_and_takes_it(tmp_path: Path) -> None:
    idea = Path(__file__).parents[2] / "examples" / "greeter.md"
    started = gsd("run", idea, "--agent", "rehearsal", "-C", tmp_path / "demo", "--phases", "1", "--bg")
    assert started.returncode == 0, started.stderr
    session = host.list_sessions()[0].id

    waiting = until(session, lambda one: one.state == "waiting_checkpoint" or one.has_ended, 180)

    assert waiting.state == "waiting_checkpoint", host.output_of(session).data.decode()
    project = Project(tmp_path / "demo")
    names = [event.name for event in project.poll()]
    assert names.count("question.asked") == 1
    assert project.status()["status"] == "running"
    project.answer(waiting.checkpoint, "2", by="tester")
    with pytest.raises(UserError, match="no question"):
        project.answer("q-none", "2", by="tester")

    ended = until(session, lambda one: one.has_ended, 180)

    assert (ended.state, ended.exit) == ("completed", 0), host.output_of(session).data.decode()
    answered = [event for event in project.poll() if event.name == "question.answered"]
    assert [event.data["by"] for event in answered] == ["tester"]
    assert ended.run == project.status()["run"]
    project.close()


def test_a_step_waits_for_the_session_that_is_to_do_what_it_needs(tmp_path: Path) -> None:
    root = repository(tmp_path / "project")
    do(request(root, one_phase(phases=2), given=idea(), options=Options(phases=())))
    asked = request(root, one_phase(phases=2), options=Options(only_asked=True))
    assert do(attrs.evolve(asked, asked={"1/plan": "", "2/plan": ""})).outcome == "done"
    execute = ("-C", root, *FAKE[:2], "execute", "2", *FAKE[2:], "--bg")

    refused = gsd(*execute)
    assert refused.returncode == 2
    assert b"phase 2 depends on phase 1, which is not executed" in refused.stderr
    assert host.list_sessions() == []

    with Registry() as registry:
        # One that is just being started: it has no process yet.
        first = registry.add(project=root, folder=root, command=["execute", "1"])
        started = gsd(*execute)
        assert started.returncode == 0, started.stderr
        assert f"waits for session {first.id}, which is to execute phase 1".encode() in started.stdout
        assert b"which is to execute phase 1" in gsd("ps").stdout
        registry.end(first.id, "failed", exit_code=1, reason="")
    ended = until("s2", lambda one: one.has_ended)
    assert (ended.state, ended.exit) == ("failed", 2)
    assert b"which is not executed" in host.output_of("s2").data


def test_sessions_that_are_queued_together_plan_execute_and_verify_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path, no_problems(PHASES="2"))
    folder.create()
    for name, value in folder.environ({"GSD_STATE_DIR": os.environ["GSD_STATE_DIR"]}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GSD_SESSIONS_SLOTS", "1")
    begun = gsd("-C", folder.root, "run", EXAMPLE, *FAKE, "--yes", "--phases", "1")
    assert begun.returncode == 0, begun.stderr

    def queue(verb: str) -> subprocess.CompletedProcess[bytes]:
        return gsd("-C", folder.root, *FAKE[:2], verb, "2", "--yes", "--bg")

    for verb in ("execute", "verify"):
        refused = queue(verb)
        assert (refused.returncode, b"phase 2 has no plans" in refused.stderr) == (2, True), refused.stderr
    with Registry() as registry:
        # Another project has the only slot until all three are queued.
        first = registry.add(project=tmp_path, folder=tmp_path, command=["run"]).id
        mine = {"runner": os.getpid(), "runner_started": process_start(os.getpid()), "boot": boot_id()}
        registry.update(first, state="running", slot=1, **mine)
        queued = [queue(verb) for verb in ("plan", "execute", "verify")]
        assert [one.returncode for one in queued] == [0, 0, 0], [one.stderr for one in queued]
        assert b"waits for a slot" in queued[0].stdout
        assert b"waits for session s2, which is to plan phase 2" in queued[1].stdout
        assert b"waits for session s3, which is to execute phase 2" in queued[2].stdout
        registry.end(first, "completed", exit_code=0, reason="")

    over = [until(f"s{number}", lambda one: one.has_ended, 120) for number in (2, 3, 4)]

    said = [host.output_of(one.id).data.decode() for one in over]
    assert [(one.state, one.exit) for one in over] == [("completed", 0)] * 3, said
    assert [one.started for one in over] == sorted(one.started for one in over if one.started)
    [verified] = folder.root.glob(".planning/phases/02-*/02-VERIFICATION.md")
    assert "status: passed" in verified.read_text()


def test_a_session_whose_process_ended_with_0_but_without_the_end_of_its_run_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "p"
    _make_project(root, {})
    plugin = tmp_path / "leaves.py"
    plugin.write_text(
        "import ctypes\nfrom gsd_core import implements\nfrom gsd_core.hookspecs import gsd_wrap_step\n"
        "from gsd_core.testing.small_run import SmallWork\nwork = SmallWork({})\n"
        "execute, agent, workspace = work.execute_step, work.run_agent, work.workspace\n"
        "@implements(gsd_wrap_step)\nasync def wrap(step, call_next):\n    ctypes.CDLL(None)._exit(0)\n"
    )
    for name in ("EXECUTE", "WORKSPACE", "AGENT"):
        monkeypatch.setenv(f"GSD_{name}", "leaves")

    session = begin(root, "-p", str(plugin), "resume", "--sandbox", "off", "--yes")
    ended = until(session.id, lambda one: one.has_ended)

    assert (ended.state, ended.exit) == ("failed", 1), host.output_of(session.id).data.decode()
    assert "without recording the end of its run" in ended.reason
