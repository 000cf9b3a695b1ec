"""A session whose run ended because nobody could answer: it waits without a process, and continues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gsd_core import SessionRequest
from gsd_core.views.schemas import schema_of
from gsd_plugins.sessions import SessionsSettings, host
from tests.e2e.project import EXAMPLE, FAKE, Project, no_problems
from tests.sessions.test_adversaries import ended, until

pytestmark = pytest.mark.slow


def check(name: str, data: object) -> None:
    """Compare *data* with the published schema of a command."""
    validator: Any = Draft202012Validator(schema_of(name))
    validator.validate(data)


def test_an_answer_from_elsewhere_continues_a_session_that_nobody_could_answer(tmp_path: Path) -> None:
    project = Project(tmp_path, no_problems(QUESTION="1"))
    project.create()
    environment = {**project.environ({}), "GSD_STATE_DIR": os.environ["GSD_STATE_DIR"]}

    def gsd(*arguments: str | Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gsd_core", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=project.root,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    started = json.loads(gsd("run", EXAMPLE, *FAKE, "--no-input", "--bg", "--output-format", "json"))
    check("run", started)
    session = started["session"]["id"]

    waiting = until(session, lambda one: (one.state == "waiting_checkpoint" and not one.pid) or ended(one))

    assert (waiting.state, waiting.slot, waiting.exit) == ("waiting_checkpoint", 0, None)
    assert waiting.checkpoint
    listed = gsd("ps")
    assert f"{session} 1/execute/01-01 asks: " in listed
    assert f"{session} waits for an answer: gsd -C" in listed
    # Others of the project need not wait for it.
    assert until(another("status"), ended).state == "completed"

    said = gsd("answer", waiting.checkpoint, "1")

    assert f"session {session} continues by itself" in said
    assert "gsd resume" not in said
    done = until(session, ended, 120)
    assert (done.state, done.exit, done.reason) == ("completed", 0, ""), host.output_of(session).data.decode()
    spent = json.loads(gsd("status", "--json"))["cost"]["dollars"]
    assert spent is not None
    costs = {one["id"]: one["dollars"] for one in json.loads(gsd("ps", "--json"))["sessions"]}
    assert costs[session] == spent
    printed = host.output_of(session).data
    assert b"\x1b[" in printed, "a session prints in color"
    assert b"\x1b[2K" not in printed, "nothing is redrawn"


def test_a_session_that_only_waits_for_an_answer_gives_its_slot_to_one_that_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path, no_problems(QUESTION="1"))
    project.create()
    for name, value in project.environ({}).items():
        if os.environ.get(name) != value and name != "GSD_STATE_DIR":
            monkeypatch.setenv(name, value)
    settings = SessionsSettings(slots=1, park_seconds=1)
    arguments = ("run", str(EXAMPLE), *FAKE)
    request = SessionRequest(arguments=arguments, folder=project.root, project=project.root)
    asking = host.start_session(request, settings).id
    until(asking, lambda one: one.state == "waiting_checkpoint" and one.pid)
    # Nobody wants the slot, so the process that knows everything stays.
    other = tmp_path / "other"
    other.mkdir()
    request = SessionRequest(arguments=("version",), folder=other, project=other)
    queued = host.start_session(request, settings).id

    assert until(queued, ended, 60).state == "completed"

    parked = host.find_session(asking)
    assert (parked.state, parked.slot, parked.pid) == ("waiting_checkpoint", 0, 0)
    assert parked.reason == "its slot is for others until then; it continues when the question is answered"
    project.gsd("answer", parked.checkpoint, "1")
    done = until(asking, ended, 120)
    assert (done.state, done.exit, done.reason) == ("completed", 0, ""), host.output_of(asking).data.decode()


def another(*arguments: str) -> str:
    """Start a command of the session's project directly, as the harness does, and return its session."""
    project = host.list_sessions()[0].project
    request = SessionRequest(arguments=arguments, folder=project, project=project)
    return host.start_session(request, SessionsSettings(slots=3)).id


def test_the_json_of_sessions_is_as_the_schemas_say(tmp_path: Path) -> None:
    request = SessionRequest(arguments=("version",), folder=tmp_path, project=tmp_path)
    session = host.start_session(request, SessionsSettings(slots=3)).id
    until(session, ended)

    def printed(*arguments: str) -> Any:
        command = [sys.executable, "-m", "gsd_core", *arguments]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    listed = printed("ps", "--json")
    check("ps", listed)
    assert [(one["id"], one["dollars"]) for one in listed["sessions"]] == [(session, None)]
    assert printed("rm", session, "--json") == {"schema_version": 1, "removed": [session]}
