"""Files with secrets: no task commits them unless a person says so."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.protected_paths import is_secret_name
from gsd_core.run.secret_files import secrets_in
from gsd_core.sanitize import find_secrets
from gsd_core.testing import ScriptedHuman
from tests.run import harness as h
from tests.sanitize.corpus import shapes

SHAPES = shapes()
TOKEN = SHAPES["github classic"]


def writing(files: dict[str, str]) -> h.Watched:
    """Return an agent that also writes *files* with a command, and names them with each task."""

    async def call(function: str, arguments: Mapping[str, Any], host: AgentHost) -> str:
        if function == "task_done":
            arguments = {**arguments, "files": [*arguments["files"], *files]}
        return await host.call(function, arguments)

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "executor":
            return None
        for path, text in files.items():
            (task.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (task.tree / path).write_text(text)
        return await agent.agent.run_agent(task, cast("AgentHost", Listening(host, call)))

    agent = h.Watched(h.one_phase(), before)
    return agent


def committed(root: Path) -> set[str]:
    return set(h.git(root, "ls-tree", "-r", "--name-only", "HEAD").split())


SECRET_FILES = {
    ".npmrc": SHAPES["npmrc"][0],
    "settings.py": f'API = "{TOKEN[0]}"\n',
    "deploy/key.pem": SHAPES["rsa key"][0],
    "store.p12": "binary",
    "deploy/key.b64": SHAPES["base64 in lines"][0],
    "deploy/key.hex": SHAPES["hex of a key"][0],
    "service-account-prod.json": SHAPES["gcp service account"][0],
    "wide.txt": f"first\n{TOKEN[0]}\n",
    f"dump-{TOKEN[0]}.txt": "the name is the secret\n",
}
ORDINARY_FILES = {
    "web/.npmrc": "engine-strict=true\nregistry=https://registry.invalid/\n",
    "certificate.pem": "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ\n-----END CERTIFICATE-----\n",
    "id_rsa.pub": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 user@host\n",
    "app.py": 'KEY = os.environ["SECRET_KEY"]\npassword = "test-password"\ntoken: str = next_token()\n',
    "example.env.md": "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
}


@pytest.mark.slow
def test_secrets_stay_uncommitted_with_yes_and_are_named_and_ordinary_files_are_committed(
    tmp_path: Path,
) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, writing({**SECRET_FILES, **ORDINARY_FILES}), given=h.idea()))

    assert end.outcome in ("done", "gaps"), end
    assert committed(root) & set(SECRET_FILES) == set()
    assert set(ORDINARY_FILES) <= committed(root)
    left = {path for fact in h.facts(root, "files.left") for path in fact.data["paths"]}
    assert set(SECRET_FILES) <= left
    assert all((root / path).exists() for path in SECRET_FILES)
    # `--yes` is a policy: nobody has answered.
    assert not [f for f in h.facts(root, "question.answered") if "secrets" in str(f.data)]
    objects = h.git(root, "log", "--all", "-p")
    assert TOKEN[1] not in objects


@pytest.mark.slow
def test_a_person_may_have_them_committed(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    human = ScriptedHuman({"Commit files with secrets": "Commit them"})

    end = h.do(
        h.request(root, writing({"settings.py": SECRET_FILES["settings.py"]}), given=h.idea(), human=human)
    )

    assert end.outcome == "done", end
    assert "settings.py" in committed(root)
    [asked] = [question for question in human.asked if question.header == "Secrets"]
    assert asked.human_only
    assert "GitHub token in line 1" in asked.text
    assert TOKEN[1] not in asked.text


@pytest.mark.slow
def test_the_agent_is_told_once_and_may_take_the_secret_out(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    told = list[str]()

    async def call(function: str, arguments: Mapping[str, Any], host: AgentHost) -> str:
        reply = await host.call(function, arguments)
        if "contain secrets" in reply:
            told.append(reply)
            (root / "settings.py").write_text('API = os.environ["API"]\n')
        return reply

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "executor":
            return None
        await h.write(task, host, "settings.py", SECRET_FILES["settings.py"])
        return await agent.agent.run_agent(task, cast("AgentHost", Listening(host, call)))

    agent = h.Watched(h.one_phase(), before)
    end = h.do(h.request(root, agent, given=h.idea()))

    assert end.outcome == "done", end
    [reply] = told
    assert "settings.py: GitHub token in line 1" in reply
    assert TOKEN[1] not in reply
    assert "settings.py" in committed(root)
    assert not h.facts(root, "files.left")


class Listening:
    """An agent's host whose functions are called through *call*."""

    def __init__(self, host: AgentHost, call: Callable[..., Awaitable[str]]) -> None:
        self._host, self._call = host, call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    async def call(self, function: str, arguments: Mapping[str, Any]) -> str:
        return await self._call(function, arguments, self._host)


@pytest.mark.slow
def test_a_secret_that_is_in_the_history_already_is_no_question(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    (root / "old.py").write_text(f'OLD = "{TOKEN[0]}"\n')
    h.git(root, "add", ".")
    h.git(root, "commit", "-qm", "old")

    end = h.do(h.request(root, writing({"old.py": f'OLD = "{TOKEN[0]}"\nnew = 1\n'}), given=h.idea()))

    assert end.outcome == "done", end
    assert "new = 1" in h.git(root, "show", "HEAD:old.py")


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_is_found_in_a_file(name: str) -> None:
    text, _ = SHAPES[name]

    assert list(find_secrets(f"a\n{text}\n", suspect=True))


@pytest.mark.parametrize(
    "name", [".env", "a.p12", "_netrc", "x.keystore", "id_ed25519", ".git-credentials", "PROD.PFX"]
)
def test_names_of_secret_files(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["id_rsa.pub", ".env.example", "id_card.py", "keystore.py", ".npmrc", "a.pem"]
)
def test_names_that_say_nothing_about_the_content(name: str) -> None:
    assert not is_secret_name(name)


def test_a_key_in_any_encoding_is_found_in_a_file(tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "genrsa", "-out", str(tmp_path / "x.pem"), "1024"], check=True, capture_output=True
    )
    convert = ["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", str(tmp_path / "x.pem"), "-outform", "der"]
    subprocess.run([*convert, "-out", str(tmp_path / "a.bin")], check=True)
    der = (tmp_path / "a.bin").read_bytes()
    for name, data in {
        "b.txt": base64.encodebytes(der),
        "c.txt": base64.encodebytes((tmp_path / "x.pem").read_bytes()),
        "d.txt": der.hex(" ", 2).encode(),
        "e.json": json.dumps({"key": base64.encodebytes(der).decode()}).encode(),
    }.items():
        (tmp_path / name).write_bytes(data)

    for name in ("a.bin", "b.txt", "c.txt", "d.txt", "e.json"):
        assert [kind for kind, _, _ in secrets_in(tmp_path / name, suspect=False)] != [], name
    (tmp_path / "public.txt").write_bytes(
        subprocess.run(
            ["openssl", "rsa", "-in", str(tmp_path / "x.pem"), "-pubout"], check=True, capture_output=True
        ).stdout
    )
    assert secrets_in(tmp_path / "public.txt", suspect=False) == []
