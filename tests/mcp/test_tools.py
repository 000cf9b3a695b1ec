"""The tools, with the official client and a server in the same process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError

from gsd_core import ConfigError
from gsd_core.project import Project
from gsd_plugins.mcp import tools
from gsd_plugins.mcp.catalog import MAX_OUTPUT_BYTES
from gsd_plugins.mcp.screen import shown, whole
from gsd_plugins.mcp.server import make_server
from gsd_plugins.sessions import host
from gsd_plugins.sessions.following import Harness
from gsd_plugins.sessions.registry import Registry, output_folder
from tests.e2e.project import no_problems
from tests.mcp.clients import EXAMPLE, FAKE, begin, begin_following, data, error, in_memory, until

MAX_TOKENS = 3_000


def test_the_list_of_tools_costs_few_tokens_and_its_schemas_are_valid() -> None:
    async def listed() -> list[dict[str, object]]:
        async with in_memory() as (client, _):
            found = await client.list_tools()
            return [tool.model_dump(by_alias=True, exclude_none=True) for tool in found.tools]

    found = asyncio.run(listed())

    assert len(json.dumps(found)) / 4 < MAX_TOKENS
    assert [tool["name"] for tool in found] == [tool.name for tool in tools()]
    for tool in tools():
        Draft202012Validator.check_schema(tool.takes)
        Draft202012Validator.check_schema(tool.returns)


def test_bad_calls_are_errors_with_a_hint_and_start_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path)
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "required": ("gsd_start_session", {}),
        "--trust": ("gsd_start_session", {"project": folder, "--trust": True}),
        "not an absolute path": ("gsd_start_session", {"project": "demo"}),
        "absolute path": ("gsd_start_session", {"project": "/a\0b"}),
        "cannot be combined": ("gsd_start_session", {"project": folder, "idea": "x", "command": "y"}),
        "belong together": ("gsd_start_session", {"project": folder, "step": "plan"}),
        "phases: '--trust' is invalid": ("gsd_start_session", {"project": folder, "phases": "--trust"}),
        "phase: '-C/' is invalid": ("gsd_start_session", {"project": folder, "step": "plan", "phase": "-C/"}),
        "agent: '--yes' is invalid": ("gsd_start_session", {"project": folder, "agent": "--yes"}),
        "idea: not valid Unicode": ("gsd_start_session", {"project": folder, "idea": "\ud800"}),
        "command: invalid": ("gsd_start_session", {"project": folder, "command": "a\0b"}),
        "no session 's7'": ("gsd_get_state", {"session": "s7"}),
        "no session 'nonsense": ("gsd_get_output", {"session": "nonsense\x1b[2J"}),
        "300": ("gsd_wait_for_change", {"seconds": 301}),
        "100000": ("gsd_get_output", {"session": "s1", "limit": 100_001}),
    }

    async def called() -> dict[str, str]:
        async with in_memory() as (client, _):
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool("gsd_trust", {})
            with pytest.raises(MCPError, match="no resource"):
                await client.read_resource("gsd://sessions/s1/../../etc")
            with pytest.raises(MCPError, match="no session"):
                await client.read_resource("gsd://sessions/s1/roadmap")
            return {words: error(await client.call_tool(*call)) for words, call in cases.items()}

    answers = asyncio.run(called())

    for words, said in answers.items():
        assert words in said
        assert "\x1b" not in said
    assert "hint: arguments: project, idea" in answers["--trust"]
    assert host.list_sessions() == []


def test_an_old_sdk_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    with pytest.raises(ConfigError) as caught:
        make_server(Harness())

    assert "pip install 'mcp>=" in caught.value.hint


def test_output_is_text_as_a_terminal_shows_it() -> None:
    frames = b"done 1\r\n\x1b[33mworking 1\x1b[0m\r\n\x1b[1A\x1b[2Kdone 2\r\n\x1b[Jworking\rW"

    assert shown(frames) == "done 1\ndone 2\nWorking"
    assert shown(b"\x1b]52;c;aGk=\x07a\x1b]8;;http://x\x1b\\b\x1b[9999999Cc\x1b[99999Ad").startswith("ab")
    assert "\u202e" not in shown("x\u202ey".encode())
    assert shown(b"\xffx\x00") == "x"
    assert len(shown(b"\x1b[9999Cx\n" * 10_000)) <= MAX_OUTPUT_BYTES


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"caf\xc3", b"caf"),
        (b"caf\xc3\xa9", b"caf\xc3\xa9"),
        (b"x\xf0\x9f\x99", b"x"),
        (b"a\x1b[3", b"a"),
        (b"a\x1b", b"a"),
        (b"a\x1b[31m", b"a\x1b[31m"),
        (b"\x1b[", b"\x1b["),
        (b"", b""),
    ],
)
def test_output_is_not_cut_within_a_character_or_a_sequence(data: bytes, kept: bytes) -> None:
    assert whole(data) == kept


def test_an_agent_of_a_run_cannot_steer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Registry() as registry:
        session = registry.add(project=tmp_path, folder=tmp_path, command=("run",)).id

    async def called() -> list[str]:
        async with in_memory() as (client, _):
            calls: dict[str, dict[str, Any]] = {
                "gsd_start_session": {"project": str(tmp_path), "command": "hello"},
                "gsd_end_session": {"session": session},
                "gsd_send_input": {"session": session, "text": "y"},
                "gsd_respond_checkpoint": {"session": session, "question": "q-1", "answer": "1"},
                "gsd_mark_verified": {"session": session, "question": "q-1", "passed": True},
            }
            return [error(await client.call_tool(name, given)) for name, given in calls.items()]

    with monkeypatch.context() as marked:
        marked.setenv("GSD_CALL", "c-1")
        found = asyncio.run(called())
    for said in found:
        assert "only a person" in said
        assert "GSD_CALL=c-1" in said


@pytest.mark.slow
def test_a_session_is_followed_read_by_cursor_and_ended(tmp_path: Path) -> None:
    session = begin_following(tmp_path / "a").id

    async def steered() -> None:
        async with in_memory() as (client, _):
            told: list[float] = []

            async def report(progress: float, total: float | None, message: str | None) -> None:
                told.append(progress)

            state = data(await client.call_tool("gsd_get_state", {"session": session}))
            assert (state["session"]["state"], state["run"]["status"]) == ("running", "none")
            waiting = {"session": session, "after": state["change"], "seconds": 1}
            waited = data(await client.call_tool("gsd_wait_for_change", waiting, progress_callback=report))
            assert (waited["timed_out"], waited["changes"], told[0] < 1) == (True, [], True)
            typed = await client.call_tool("gsd_send_input", {"session": session, "text": "y"})
            assert "has not begun" in error(typed)
            data(await client.call_tool("gsd_end_session", {"session": session}))
            after = waited["change"]
            while True:
                waiting = {"session": session, "after": after, "seconds": 60, "until": "checkpoint"}
                waited = data(await client.call_tool("gsd_wait_for_change", waiting))
                assert not waited["timed_out"]
                after = waited["change"]
                if waited["changes"][-1]["state"] == "stopped":
                    break
            at_once = data(await client.call_tool("gsd_wait_for_change", {"session": session}))
            assert at_once["changes"][0]["state"] == "stopped"
            assert "already ended" in error(await client.call_tool("gsd_end_session", {"session": session}))
            ended = data(await client.call_tool("gsd_list_sessions", {"ended": True}))
            assert [one["id"] for one in ended["sessions"]] == [session]
            assert data(await client.call_tool("gsd_list_sessions", {}))["sessions"] == []

    asyncio.run(steered())

    async def read() -> None:
        async with in_memory() as (client, _):
            written = b"\x1b[31mone\x1b[0m\r\n" + b"token=ghp_" + b"a1" * 18 + b"\r\n" + "é".encode() * 50
            folder = output_folder(session)
            for path in folder.glob("*.out"):
                path.unlink()
            (folder / f"{0:020d}.out").write_bytes(written)
            cursor, text = 0, ""
            while True:
                given = {"session": session, "since": cursor, "limit": 66, "raw": True}
                found = data(await client.call_tool("gsd_get_output", given))
                assert found["start"] == cursor
                cursor, text = found["cursor"], text + found["text"]
                if not found["more"] and not found["text"]:
                    break
            assert cursor == len(written)
            assert text.endswith("é" * 50)
            assert "\x1b[31m" in text
            assert "\ufffd" not in text
            plain = data(await client.call_tool("gsd_get_output", {"session": session}))["text"]
            assert plain.startswith("one\ntoken=[redacted]\né")

    asyncio.run(read())


UAT = """---
status: testing
phase: 01-greetings
---

## Tests

### 1. The colors can be read
expected: Dark text on a light ground
result: [pending]
"""


@pytest.mark.slow
def test_a_question_is_answered_and_a_manual_check_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in no_problems(QUESTION="1").items():
        monkeypatch.setenv(name, value)
    demo = tmp_path / "demo"
    session = begin(demo, "run", str(EXAMPLE), *FAKE).id

    async def wait(client: Client, session: str) -> None:
        """Wait for a checkpoint or the end of *session*."""
        after = 0
        while True:
            given = {"session": session, "after": after, "until": "checkpoint", "seconds": 100}
            found = data(await client.call_tool("gsd_wait_for_change", given))
            after = found["change"]
            if found["changes"][-1]["state"] != "running":
                return

    async def answered() -> None:
        async with in_memory() as (client, _):
            await wait(client, session)
            waiting = data(await client.call_tool("gsd_wait_for_change", {"session": session}))
            assert waiting["changes"][0]["state"] == "waiting_checkpoint"
            [question] = data(await client.call_tool("gsd_get_checkpoint", {"session": session}))["questions"]
            assert (question["header"], question["is_manual_check"]) == ("Ending", False)
            wrong = {"session": session, "question": question["id"]}
            said = await client.call_tool("gsd_mark_verified", {**wrong, "passed": True})
            assert "is not a manual check" in error(said)
            said = await client.call_tool("gsd_respond_checkpoint", {**wrong, "answer": "17"})
            assert "no option 17" in error(said)
            given = {"session": session, "answer": "2"}
            done = data(await client.call_tool("gsd_respond_checkpoint", given))
            assert done["answer"] == question["options"][1]["label"]
            await asyncio.to_thread(until, session, lambda one: one.has_ended)
            again = await client.call_tool("gsd_respond_checkpoint", {**wrong, "answer": "1"})
            assert "already answered" in error(again)
            state = data(await client.call_tool("gsd_get_state", {"session": session}))
            assert (state["run"]["status"], state["phases"][0]["status"]) == ("done", "completed")
            cost = data(await client.call_tool("gsd_get_cost", {"session": session, "by": "model"}))
            assert [group["model"] for group in cost["groups"]] == ["fake"]
            roadmap = await client.read_resource(f"gsd://sessions/{session}/roadmap")
            assert "# Roadmap: Greeter" in getattr(roadmap.contents[0], "text", "")

    asyncio.run(answered())
    project = Project(demo)
    [given] = [event.data["by"] for event in project.poll() if event.name == "question.answered"]
    project.close()
    assert "through" in given
    assert until(session, lambda one: one.has_ended).exit == 0

    [folder] = (demo / ".planning" / "phases").glob("01-*")
    (folder / "01-UAT.md").write_text(UAT)
    subprocess.run(["git", "-C", str(demo), "add", "."], check=True)
    subprocess.run(["git", "-C", str(demo), "commit", "-qm", "Add a test"], check=True)
    check = begin(demo, "verify", "1", *FAKE).id

    async def judged() -> None:
        async with in_memory() as (client, _):
            await wait(client, check)
            [question] = data(await client.call_tool("gsd_get_checkpoint", {"session": check}))["questions"]
            assert question["is_manual_check"], question
            verdict = {"session": check, "passed": False}
            assert "in a sentence" in error(
                await client.call_tool("gsd_mark_verified", {**verdict, "note": "works"})
            )
            said = data(await client.call_tool("gsd_mark_verified", {**verdict, "note": "grey on grey"}))
            assert said["answer"] == "grey on grey"
            await wait(client, check)

    asyncio.run(judged())
    until(check, lambda one: one.has_ended)
    assert "grey on grey" in (folder / "01-UAT.md").read_text()
