"""The real Claude Code as the client, with a scripted model that uses the tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gsd_core.project import Project
from gsd_plugins.claude.cli import find_cli
from gsd_plugins.mcp.cli import server_command
from gsd_plugins.rehearsal.api import ApiRequest, Blocks, MessagesApi, Text, ToolUseBlock
from gsd_plugins.sessions import host
from tests.e2e.project import no_problems
from tests.mcp.clients import EXAMPLE, until

pytestmark = pytest.mark.slow


class Model:
    """Starts a session, waits for its question, answers it, waits for its end; keeps the tools' results."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.results: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.tools: tuple[str, ...] = ()

    def reply(self, request: ApiRequest) -> Blocks:
        """Return the next turn; other requests of the CLI, such as for a title, get a word."""
        if "mcp__gsd__gsd_start_session" not in request.tools:
            return Blocks((Text("Sessions"),))
        self.tools = request.tools
        if self.asked:
            self.results.append(_result(request))
        name, arguments = self._next()
        if not name:
            return Blocks((Text("the session has ended"),))
        self.asked.append(name)
        return Blocks((ToolUseBlock(f"mcp__gsd__{name}", arguments),))

    def _next(self) -> tuple[str, dict[str, Any]]:
        if not self.results:
            start = {"project": str(self.project), "idea": EXAMPLE.read_text("utf-8"), "agent": "rehearsal"}
            return "gsd_start_session", start
        last, session = self.results[-1], {"session": "s1"}
        match self.asked[-1]:
            case "gsd_wait_for_change" if last["changes"] and last["changes"][-1]["state"] == "completed":
                return "gsd_get_state", session
            case "gsd_wait_for_change" if last["changes"] and last["changes"][-1].get("checkpoint"):
                return "gsd_get_checkpoint", session
            case "gsd_get_checkpoint" if last["questions"]:
                return "gsd_respond_checkpoint", {**session, "answer": "1"}
            case "gsd_get_state":
                return "", {}
            case _:
                more = {"after": last["change"], "until": "checkpoint", "seconds": 60}
                return "gsd_wait_for_change", {**session, **more}


def _result(request: ApiRequest) -> dict[str, Any]:
    """Return the result of the last tool call as the model sees it."""
    for message in reversed(request.messages):
        blocks: list[dict[str, Any]] | str = message["content"]
        for block in reversed(() if isinstance(blocks, str) else blocks):
            if block.get("type") == "tool_result":
                said: list[dict[str, Any]] | str = block["content"]
                text = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
                found: dict[str, Any] = json.loads(text)
                return found
    raise AssertionError("no result of a tool")


def test_claude_code_starts_a_session_answers_its_question_and_sees_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    variables = {**no_problems(QUESTION="1"), "GSD_SANDBOX_CACHES": "false"}
    variables |= {name: os.environ[name] for name in ("GSD_STATE_DIR", "GSD_CONFIG")}
    first, *rest = server_command()
    servers = {"gsd": {"type": "stdio", "command": first, "args": rest, "env": variables}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    model = Model(tmp_path / "demo")
    with MessagesApi(model.reply) as api:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "GSD_"))},
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CONFIG_DIR": str(tmp_path / "home" / "claude"),
            "DISABLE_AUTOUPDATER": "1",
            # Otherwise the model would have to search for the tools first.
            "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        done = subprocess.run(
            [
                *(str(find_cli()), "-p", "Build it with GSD.", "--output-format", "json"),
                *("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", "mcp__gsd"),
            ],
            env=environment,
            cwd=tmp_path / "work",
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["result"] == "the session has ended"
    assert {name for name in model.tools if name.startswith("mcp__gsd__")} >= {"mcp__gsd__gsd_send_input"}
    assert {"gsd_get_checkpoint", "gsd_respond_checkpoint"} <= set(model.asked)
    ended = until("s1", lambda one: one.has_ended)
    assert (ended.exit, ended.project) == (0, tmp_path / "demo"), host.output_of("s1").data.decode()
    project = Project(tmp_path / "demo")
    [by] = [event.data["by"] for event in project.poll() if event.name == "question.answered"]
    project.close()
    assert by.endswith("through claude-code")
    state = model.results[-1]
    assert [phase["status"] for phase in state["phases"]] == ["completed"]
    # The idea is kept by the project, under a name that says what it is.
    assert "greeter.md" in (tmp_path / "demo" / ".planning" / "IDEA.md").read_text("utf-8")
