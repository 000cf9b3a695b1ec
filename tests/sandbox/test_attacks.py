"""A command of an agent looks for credentials and the terminal, and takes all it can. Harmless payloads."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import pty
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from gsd_core import Place, SandboxedCommand, bind_settings
from gsd_core.run.commands import Ran, environment, run_inside
from gsd_core.run.sandbox import Confinement, Sandbox, choose_sandbox
from gsd_core.settings import LimitSettings, RunSettings
from gsd_core.testing import FakeAgentHost, make_hooks
from gsd_plugins import bubblewrap
from gsd_plugins.claude import run_claude
from gsd_plugins.rehearsal.api import MessagesApi
from tests.claude.harness import Harness, by_turn, says, uses
from tests.sandbox.box import require_sandbox
from tests.sandbox.test_checks import LIMIT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc, keyrings and sandbox")

PLANTED = "".join(("sk-ant-", "planted-", "5d1f0c4e"))

SEARCH = r"""
import ctypes, os, re, sys
wanted, found = ("sk-ant-" + "planted-").encode(), []
own = os.getpid()
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if wanted + b"5d1f" in file.read():
                    found.append(f"{name} of {pid}")
        except OSError:
            pass
    if int(pid) == own:
        continue
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            looked = 0
            for line in maps:
                start, end = (int(each, 16) for each in line.split()[0].split("-"))
                if line.split()[1][:2] != "rw" or end - start > 1 << 28:
                    continue
                try:
                    memory.seek(start)
                    data = memory.read(end - start)
                except (OSError, ValueError, OverflowError):
                    continue
                looked += len(data)
                if wanted + b"5d1f" in data:
                    found.append(f"memory of {pid}")
            print("looked into", pid, looked > 0)
    except OSError:
        pass
for root, folders, names in os.walk(os.environ.get("CLAUDE_CONFIG_DIR", "/nowhere")):
    for name in names:
        if wanted + b"5d1f" in open(os.path.join(root, name), "rb").read():
            found.append(name)
print("keys:", open("/proc/keys").read().count("gsd-test-key"))
try:
    os.open("/dev/tty", os.O_RDWR)
    print("terminal: opened")
except OSError as error:
    print("terminal:", error.strerror)
print("terminals:", [number for number in (0, 1, 2) if os.isatty(number)])
print("FOUND", found)
"""


@attrs.define(kw_only=True)
class SandboxHost(FakeAgentHost):
    """An agent's host whose processes are in the real sandbox."""

    inside: Confinement

    async def confine(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[Place] = (),
        descriptors: Sequence[int] = (),
    ) -> SandboxedCommand:
        """Return how the core starts *command*."""
        return await self.inside.command(command, environment, places=places, descriptors=descriptors)


def choose(project: Path, how: str) -> Sandbox:
    if how == "required":
        require_sandbox()
    settings = RunSettings(sandbox=how, sandboxes=("bubblewrap",), sandbox_caches=False)  # type: ignore[arg-type]
    return asyncio.run(choose_sandbox(make_hooks(bubblewrap=bubblewrap), settings, project))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "login"]
)
def test_a_command_of_claude_code_finds_no_credentials(
    project: Path, user_home: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = choose(project, "required")
    (project / "search.py").write_text(SEARCH)
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE_CODE_", "AWS_"))]:
        monkeypatch.delenv(name)
    if kind == "login":
        tokens = {"accessToken": PLANTED, "refreshToken": PLANTED, "expiresAt": 10**13 - 1}
        login = {**tokens, "scopes": ["user:inference"]}
        (user_home / ".claude").mkdir()
        (user_home / ".claude" / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    else:
        monkeypatch.setenv(kind, PLANTED)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PLANTED)
    command = f"{sys.executable} search.py"

    async def call() -> str:
        with MessagesApi(by_turn(uses("Bash", command=command), says("done"))) as api:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
            async with sandbox.around(project) as inside:
                harness = Harness(project, user_home)
                task = harness.task(tools=("Bash",), writable=True)
                assert (await run_claude(task, SandboxHost(inside=inside))).text == "done"
        assert {PLANTED in str(request.headers) for request in api.requests} == {True}
        return api.requests[-1].last

    output = asyncio.run(call())

    # It did look into the memory of Claude Code, its parent.
    assert output.count("True") >= 2, output
    assert "FOUND []" in output, output
    assert "terminal: No such device" in output


KEYRING = 250


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of a system call")
def test_a_confined_process_has_no_key_of_the_session(project: Path) -> None:
    """Another process joins a keyring with a key, and starts gsd's process from it."""
    sandbox = choose(project, "required")
    read = (
        "import ctypes; libc = ctypes.CDLL(None); "
        "print('found', libc.syscall(250, 10, -3, b'user', b'gsd-test-key', 0) > 0)"
    )

    async def look() -> tuple[Ran, int]:
        libc = ctypes.CDLL(None)
        libc.syscall(KEYRING, 1, None)
        libc.syscall(248, b"user", b"gsd-test-key", b"hush", 4, -3)
        async with sandbox.around(project) as inside:
            ran = await run_inside(inside, (sys.executable, "-c", read), environment("r"), LIMIT)
        return ran, int(libc.syscall(KEYRING, 10, -3, b"user", b"gsd-test-key", 0))

    ran, key = asyncio.run(look())

    assert key > 0, "keyrings do not work here"
    assert ran.output == "found False\n"


TERMINAL = """
import asyncio, os, sys
from pathlib import Path
from gsd_core.run.sandbox import choose_sandbox
from gsd_core.settings import RunSettings
from gsd_core.testing import make_hooks
from gsd_plugins import bubblewrap

LOOK = '''
import os
print([number for number in (0, 1, 2) if os.isatty(number)], file=open("seen", "w"))
for name in ("/dev/tty", *(f"/proc/self/fd/{number}" for number in (0, 1, 2))):
    try:
        print(name, os.isatty(os.open(name, os.O_RDWR | os.O_NOCTTY)), file=open("seen", "a"))
    except OSError as error:
        print(name, "no", file=open("seen", "a"))
'''

async def main(how):
    root = Path.cwd()
    settings = RunSettings(sandbox=how, sandboxes=("bubblewrap",), sandbox_caches=False)
    sandbox = await choose_sandbox(make_hooks(bubblewrap=bubblewrap), settings, root)
    async with sandbox.around(root) as inside:
        # As a careless author would: with this process's own streams, in its session.
        started = await inside.command((sys.executable, "-c", LOOK), {"PATH": os.environ["PATH"]})
        process = await asyncio.create_subprocess_exec(*started.command, env=dict(started.environment))
        assert await process.wait() == 0

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize("how", ["required", "off"])
def test_no_agent_gets_the_terminal_even_if_its_author_passes_it_on(project: Path, how: str) -> None:
    choose(project, how)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        os.execv(sys.executable, [sys.executable, "-c", TERMINAL, how])
    output = b""
    while True:
        try:
            output += os.read(terminal, 4096)
        except OSError:
            break
    os.close(terminal)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, output.decode()
    seen = (project / "seen").read_text()
    assert seen.splitlines()[0] == "[]"
    assert "True" not in seen, seen


BOMB = "for i in $(seq 300); do sleep 20 & done; wait; echo survived"
MEMORY = f"{sys.executable} -c 'x = bytearray(300 * 2**20); import time; time.sleep(20)'; echo survived"
FILES = "head -c 300M /dev/zero > /tmp/large; sleep 20; echo survived"


@pytest.mark.parametrize("how", ["required", "off"])
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (BOMB, "more than 100 processes"),
        (MEMORY, "more than 150 MiB of memory"),
        (FILES, "more than 150 MiB of memory"),
    ],
    ids=["processes", "memory", "files in memory"],
)
def test_too_many_processes_and_too_much_memory_are_ended(
    project: Path, how: str, script: str, reason: str
) -> None:
    if how == "off" and script == FILES:
        pytest.skip("without a sandbox, /tmp is the user's")
    sandbox = choose(project, how)

    async def run() -> Ran:
        async with sandbox.around(project) as inside:
            return await run_inside(inside, ("bash", "-c", script), environment("r"), LIMIT)

    began = time.monotonic()
    limits = LimitSettings(max_processes=100, max_memory=150)
    with bind_settings({LimitSettings: limits}):
        ran = asyncio.run(run())

    assert re.search(rf"gsd ended this command: it (had|needed) {reason}", ran.output), ran
    assert (ran.exit, ran.problems) == (-9, ()), "it was run again"
    assert "survived" not in ran.output
    assert time.monotonic() - began < 15
