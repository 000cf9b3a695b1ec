"""The tools, with the official client and a server in the same process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError

from gsd_core import ConfigError, UserError
from gsd_core.project import Project
from gsd_plugins.mcp import tools
from gsd_plugins.mcp.calls import Calls
from gsd_plugins.mcp.catalog import MAX_OUTPUT_BYTES
from gsd_plugins.mcp.screen import shown
from gsd_plugins.mcp.server import described, make_server
from gsd_plugins.mcp.starting import command_of
from gsd_plugins.sessions import host, whole
from gsd_plugins.sessions.following import Harness
from gsd_plugins.sessions.registry import Registry, output_folder
from tests.e2e.project import no_problems
from tests.mcp.clients import EXAMPLE, FAKE, SECONDS, begin, begin_following, data, error, in_memory, until

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
        "less than the minimum": ("gsd_start_session", {"project": folder, "max_budget_turns": 0}),
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


def test_a_budget_is_in_dollars_tokens_or_turns(tmp_path: Path) -> None:
    given = {"project": str(tmp_path), "max_budget_usd": 1.5, "max_budget_tokens": 10, "max_budget_turns": 3}

    command, _ = command_of(given, ())

    limits = ("--max-budget-usd", "1.50", "--max-budget-tokens", "10", "--max-budget-turns", "3")
    assert command == ["resume", *limits]


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
    assert (whole(data) or data) == kept


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
            [first, *_] = data(await client.call_tool("gsd_why", {"session": session}))["waiting"]
            assert (first["cause"], question["id"] in first["ways"][0]["command"]) == ("question", True)
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
            assert (state["run"]["phases_complete"], state["run"]["phases_total"]) == (1, 1)
            assert state["run"]["agent"] == "fake"
            assert state["run"]["sandbox"]["name"]
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


def test_each_tool_has_a_title_and_each_argument_a_description() -> None:
    for tool in described():
        assert tool.title
        for name, about in tool.input_schema["properties"].items():
            assert about.get("description"), (tool.name, name)


def test_prompts_are_listed_and_take_exactly_their_arguments() -> None:
    async def asked() -> None:
        async with in_memory() as (client, _):
            listed = (await client.list_prompts()).prompts
            assert [prompt.name for prompt in listed] == ["overview", "answer", "build"]
            assert all(prompt.title and prompt.description for prompt in listed)
            given = {"project": "/home/me/{demo}", "idea": "a clock"}
            [message] = (await client.get_prompt("build", given)).messages
            assert "in the folder /home/me/{demo}: a clock" in getattr(message.content, "text", "")
            for name, wrong in (("build", {}), ("overview", {"x": "y"}), ("nothing", {})):
                with pytest.raises(MCPError, match="no prompt"):
                    await client.get_prompt(name, wrong)

    asyncio.run(asked())


@pytest.mark.slow
def test_a_client_is_told_when_a_document_changes(tmp_path: Path) -> None:
    session = begin(tmp_path / "a", "version").id
    uri = f"gsd://sessions/{session}/state"

    async def listened() -> None:
        async with in_memory() as (client, _), client.listen(resource_subscriptions=[uri]) as events:
            planning = tmp_path / "a" / ".planning"
            planning.mkdir()
            (planning / "ROADMAP.md").write_text("# Roadmap")
            (planning / "STATE.md").write_text("# State")
            # Documents are looked at when something happens to a session.
            begin(tmp_path / "b", "version")
            async with asyncio.timeout(30):
                assert getattr(await anext(aiter(events)), "uri", None) == uri

    asyncio.run(listened())


@pytest.mark.slow
def test_a_change_right_after_a_slow_start_of_the_server_is_not_missed(tmp_path: Path) -> None:
    session = begin(tmp_path / "a", "version").id
    uri = f"gsd://sessions/{session}/state"

    async def listened() -> None:
        async with asyncio.timeout(SECONDS), Harness() as harness:
            # A machine so busy that what a thread is asked to read is read a second later.
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))
            busy = asyncio.create_task(asyncio.to_thread(time.sleep, 1))
            await asyncio.sleep(0)
            async with (
                Client(make_server(harness)) as client,
                client.listen(resource_subscriptions=[uri]) as events,
            ):
                planning = tmp_path / "a" / ".planning"
                planning.mkdir()
                (planning / "STATE.md").write_text("# State")
                await busy
                begin(tmp_path / "b", "version")
                async with asyncio.timeout(30):
                    assert getattr(await anext(aiter(events)), "uri", None) == uri

    asyncio.run(listened())


@pytest.mark.slow
def test_sessions_are_waited_for_together_paused_stopped_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in no_problems(QUESTION="1").items():
        monkeypatch.setenv(name, value)
    first = begin(tmp_path / "a", "run", str(EXAMPLE), *FAKE).id
    second = begin_following(tmp_path / "b").id

    async def steered() -> None:
        async with in_memory() as (client, _):

            async def call(tool: str, **given: Any) -> dict[str, Any]:
                return data(await client.call_tool(tool, given))

            told: list[str] = []

            async def report(progress: float, total: float | None, message: str | None) -> None:
                told.append(message or "")

            given = {"session": [first, second], "after": 0, "seconds": 100, "until": "checkpoint"}
            waited = data(await client.call_tool("gsd_wait_for_change", given, progress_callback=report))
            assert waited["changes"]
            await asyncio.to_thread(until, first, lambda one: one.state == "waiting_checkpoint")
            [due] = (await call("gsd_wait_for_change", session=[first, second]))["changes"]
            assert (due["session"], due["state"]) == (first, "waiting_checkpoint")
            later = {"session": [second], "after": due["change"], "seconds": 1}
            await client.call_tool("gsd_wait_for_change", later, progress_callback=report)
            assert f"{second}: running" in told

            said = await client.call_tool("gsd_remove_session", {"session": second})
            assert "has not ended" in error(said)
            stopped = await call("gsd_end_session", session=second)
            assert (stopped["stopped"], stopped["session"]["state"]) == (True, "stopped")
            assert (await call("gsd_remove_session", session=second))["removed"] == second
            assert (await call("gsd_pause_session", session=first))["asked"]
            await asyncio.to_thread(until, first, lambda one: one.has_ended or not one.pid)
            listed = (await call("gsd_list_sessions", ended=True))["sessions"]
            assert [one["id"] for one in listed] == [first]

    asyncio.run(steered())


CHECK = {"id": "q-1", "kind": "checkpoint", "header": "Look", "free_text": False, "answer_given": False}


@pytest.mark.parametrize(
    ("labels", "recommended", "given", "words"),
    [
        # Which of them would mean that it works?
        (("It looks bad", "It looks good"), None, {"passed": True}, "no option that means this verdict"),
        (("Works", "Blurred", "Wrong color"), 0, {"passed": False}, "no option that means this verdict"),
        (("Works", "Broken"), 0, {"passed": False, "note": "grey on grey"}, "no note"),
    ],
)
def test_a_verdict_that_is_none_of_the_options_is_refused(
    labels: tuple[str, ...], recommended: int | None, given: dict[str, Any], words: str, tmp_path: Path
) -> None:
    options = [
        {"number": number + 1, "label": label, "description": "", "recommended": number == recommended}
        for number, label in enumerate(labels)
    ]

    class Asking(Harness):
        async def status(self, session: str) -> dict[str, Any]:
            return {"questions": [{**CHECK, "inspection": True, "options": options}], "owner": None}

    async def judged() -> str:
        async with Asking() as harness:
            calls = Calls(harness=harness)
            with pytest.raises(UserError) as caught:
                await calls.call("gsd_mark_verified", {"session": "s1", **given}, no_progress)
            return str(caught.value)

    assert words in asyncio.run(judged())


async def no_progress(progress: float, total: float, message: str) -> None:
    """Tell nobody."""
