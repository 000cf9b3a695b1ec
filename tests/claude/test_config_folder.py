"""Claude Code's private configuration folder in a sandbox: what goes in, and what comes back."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import AgentResult, Place, SandboxedCommand
from gsd_core.testing import FakeAgentHost, a_task
from gsd_plugins.claude import run_claude
from gsd_plugins.claude.config_folder import config_folder
from gsd_plugins.rehearsal.api import ApiRequest, MessagesApi
from tests.claude.harness import Harness, by_turn, says, uses

LOGIN: Mapping[str, Any] = {
    "accessToken": "sk-ant-oat01-old",
    "refreshToken": "sk-ant-ort01-old",
    "expiresAt": 1000,
    "scopes": ["user:inference"],
    "subscriptionType": "max",
}
FOREIGN = {"mcpOAuth": {"db": {"accessToken": "hush"}}}


@attrs.define(kw_only=True)
class ConfinedHost(FakeAgentHost):
    """A host in a run with a sandbox, which starts processes as they are and keeps their places."""

    places: list[Place] = attrs.field(factory=list[Place])

    async def confine(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[Place] = (),
        descriptors: Sequence[int] = (),
    ) -> SandboxedCommand:
        """Return the same command, which counts as confined."""
        self.places += places
        return SandboxedCommand(command=tuple(command), environment=environment, sandbox="test")


@pytest.fixture
def own(harness: Harness) -> Path:
    """Return the user's folder, with a login, settings and other projects; the tree is a repository."""
    subprocess.run(["git", "init", "-q", harness.tree], check=True)
    own = harness.home / ".claude"
    own.mkdir()
    (own / ".credentials.json").write_text(json.dumps({"claudeAiOauth": LOGIN, **FOREIGN}))
    (own / "settings.json").write_text('{"hooks": {}}')
    account = {
        "oauthAccount": {"name": "Ada"},
        "primaryApiKey": "hush",
        "mcpServers": {"db": {"env": {"PASSWORD": "hush"}}},
    }
    (harness.home / ".claude.json").write_text(json.dumps(account))
    return own


def files_in(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def call(harness: Harness, inside: Callable[[Path], object] | None = None, **changes: Any) -> ConfinedHost:
    """Make a call whose agent does *inside* with the private folder; return its host."""
    host = ConfinedHost()

    async def enter() -> None:
        task = a_task(harness.tree, **changes)
        async with config_folder(task, host, {"HOME": str(harness.home)}, given=False) as config:
            host.places += config.places
            config.write_login("token")
            if inside:
                inside(Path(config.environment["CLAUDE_CONFIG_DIR"]))

    asyncio.run(enter())
    return host


def login(folder: Path) -> Any:
    return json.loads((folder / ".credentials.json").read_text())


def test_the_private_folder_has_no_credentials_of_the_user(harness: Harness, own: Path) -> None:
    seen: list[Path] = []

    def look(private: Path) -> None:
        seen.append(private)
        known = {"scopes": ["user:inference"], "subscriptionType": "max"}
        token = {"accessToken": "token", "refreshToken": None, "expiresAt": 10**13}
        assert login(private) == {"claudeAiOauth": {**known, **token}}
        assert json.loads((private / ".claude.json").read_text()) == {"oauthAccount": {"name": "Ada"}}
        assert sorted(path.name for path in private.iterdir()) == [".claude.json", ".credentials.json"]

    host = call(harness, look)

    [private] = seen
    assert private.is_relative_to(harness.tree / ".git")
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert stat.S_IMODE((private / ".credentials.json").stat().st_mode) == 0o600
    assert host.places == [Place(path=private, source=private, writable=True)]


def test_the_users_settings_are_visible_read_only_for_a_task_that_uses_them(
    harness: Harness, own: Path
) -> None:
    host = call(harness, user_settings=True)

    private, *others = host.places
    # In the private folder, and where the texts of the user's own commands say it is.
    paths = [private.path / "settings.json", own / "settings.json"]
    assert others == [Place(path=path, source=own / "settings.json") for path in paths]


def test_nothing_comes_back_from_the_private_folder(harness: Harness, own: Path) -> None:
    before = files_in(own)

    def forge(private: Path) -> None:
        changed = {**LOGIN, "accessToken": "sk-ant-oat01-new", "expiresAt": 2000}
        (private / ".credentials.json").write_text(json.dumps({"claudeAiOauth": changed}))
        (private / "settings.json").write_text('{"hooks": "evil"}')

    call(harness, forge)

    assert files_in(own) == before


def test_links_in_the_private_folder_lead_nowhere(harness: Harness, own: Path) -> None:
    elsewhere = harness.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "victim").write_text("{}")
    before = files_in(own)

    def link(private: Path) -> None:
        (private / ".credentials.json").unlink()
        (private / ".credentials.json").symlink_to(elsewhere / "victim")
        (private / ".claude.json").unlink()
        (private / ".claude.json").symlink_to(elsewhere / "account")
        (private / "projects").symlink_to(elsewhere)

    call(harness, link)
    (own / "projects" / "x").mkdir(parents=True)
    (own / "projects" / "x" / f"{harness.conversation.id}.jsonl").write_text("{}")
    call(harness, conversation=attrs.evolve(harness.conversation, resume=True))

    (own / "projects" / "x" / f"{harness.conversation.id}.jsonl").unlink()
    assert files_in(own) == before
    assert (elsewhere / "victim").read_text() == "{}"
    assert not list(elsewhere.rglob("*.jsonl"))
    assert sorted(path.name for path in elsewhere.iterdir() if path.is_file()) == ["victim"]


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [(ConfinedHost, FakeAgentHost), (FakeAgentHost, ConfinedHost)])
def test_a_conversation_is_resumed_with_and_without_a_sandbox(
    harness: Harness, own: Path, hosts: Sequence[type[FakeAgentHost]]
) -> None:
    def speak(request: ApiRequest) -> Any:
        return by_turn(says("first"), says("second"))(request)

    def run(host: FakeAgentHost, *, resume: bool) -> tuple[AgentResult, tuple[ApiRequest, ...]]:
        with MessagesApi(speak) as api:
            environment = harness.environment(api)
            del environment["CLAUDE_CONFIG_DIR"]
            conversation = attrs.evolve(harness.conversation, resume=resume)
            task = harness.task(conversation=conversation)
            return asyncio.run(run_claude(task, host, env=environment)), tuple(api.requests)

    first, _ = run(hosts[0](), resume=False)
    second, requests = run(hosts[1](), resume=True)

    assert (first.text, second.text) == ("first", "second")
    assert "do it" in json.dumps(requests[-1].body)


LOGINS: Mapping[str, tuple[Mapping[str, Any] | None, Mapping[str, str], tuple[str, str]]] = {
    "a file": (
        {"claudeAiOauth": {**LOGIN, "expiresAt": 10**13 - 1}},
        {},
        ("authorization", "Bearer sk-ant-oat01-old"),
    ),
    "a key of the console": (None, {"primaryApiKey": "hush-console"}, ("x-api-key", "hush-console")),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOGINS)
def test_a_login_reaches_the_api_and_not_the_agent(
    harness: Harness, own: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials, account, sent = LOGINS[kind]
    (own / ".credentials.json").unlink()
    if credentials:
        (own / ".credentials.json").write_text(json.dumps(credentials))
    (harness.home / ".claude.json").write_text(json.dumps(account))
    host = ConfinedHost()
    command = "env; cat -v /proc/$PPID/environ; grep -rh . $CLAUDE_CONFIG_DIR"
    script = by_turn(uses("Bash", command=command), says("done"))
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with MessagesApi(script) as api:
        environment = {"ANTHROPIC_BASE_URL": api.url, "HOME": str(harness.home)}
        task = harness.task(tools=("Bash",), writable=True)
        result = asyncio.run(run_claude(task, host, env=environment))

    header, value = sent
    assert result.text == "done"
    assert {request.headers[header] for request in api.requests} == {value}
    assert "CLAUDE_CONFIG_DIR" in api.requests[-1].last
    assert "sk-ant-o" not in api.requests[-1].last
    assert "hush" not in api.requests[-1].last
