"""Plugins run in the process of gsd: they cannot end it with success, and what they print is not its data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_core.testing.small_run import _make_project  # pyright: ignore[reportPrivateUsage] - no run is wanted

pytestmark = pytest.mark.slow

WORK = """
from gsd_core.testing.small_run import FILES, SmallWork
work = SmallWork(dict(FILES))
execute_step, run_agent, workspace, permit = work.execute_step, work.run_agent, work.workspace, work.permit
"""
START = """
import asyncio, os, signal, subprocess, sys, threading
from contextlib import asynccontextmanager
import attrs
from gsd_core import FileWrite, StepResult, StepType, implements
from gsd_core.hookspecs import *
"""
DETECTOR = """
@implements(gsd_find_gaps)
async def find(phase):
    {}
"""
NOISY = """
def noise():
    print("NOISE")
    print("NOISE", file=sys.__stdout__)
    sys.stdout.write("NOISE\\n")
    os.write(1, b"NOISE\\n")
    subprocess.run(["echo", "NOISE"])
noise()
@implements(gsd_find_gaps)
async def find(phase):
    noise()
@implements(gsd_settings)
def settings():
    noise()
    return []
@implements(gsd_panels)
def panels(project):
    noise()
    return []
@implements(gsd_doctor)
def doctor():
    noise()
    return []
@implements(gsd_lifespan)
def lifespan(run):
    noise()
    return []
@implements(gsd_cli_commands)
def commands():
    noise()
    import click
    yield click.Command("mine", callback=lambda: click.echo('{"mine": true}'), help="Mine.")
    yield click.Command("leaves", callback=lambda: sys.exit(7), help="Leaves.")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    _make_project(root, {})
    return root


def gsd(
    root: Path, *arguments: str | Path, plugin: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run ``gsd`` as a process, with a plugin called ``mine``."""
    file = root.parent / "mine.py"
    file.write_text(START + plugin)
    command = [sys.executable, "-m", "gsd_core", "-C", root, "-p", file, *arguments]
    environment = {**os.environ, "GSD_EXECUTE": "small", "GSD_WORKSPACE": "small", **more}
    return subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def run(root: Path, plugin: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the small project with scripted work."""
    small = root.parent / "small.py"
    small.write_text(WORK)
    given = ("--agent", "small", "--sandbox", "off", "--yes")
    return gsd(root, "-p", small, "resume", *given, *arguments, plugin=plugin)


def last_end(root: Path) -> dict[str, object]:
    shown: dict[str, object] = json.loads(gsd(root, "status", "--json").stdout)
    return shown


ENDS = [
    "os._exit(0)",
    "os.execvp('true', ['true'])",
    "await asyncio.to_thread(os._exit, 0)",
    "sys.exit(0)",
    "raise KeyboardInterrupt",
]


@pytest.mark.parametrize("body", ENDS)
def test_a_detector_that_ends_the_process_is_a_detector_that_failed(root: Path, body: str) -> None:
    done = gsd(root, "gaps", "1", "--json", plugin=DETECTOR.format(body))

    assert json.loads(done.stdout)["complete"] is False, done.stderr
    assert "plugin 'mine' failed in gsd_find_gaps" in done.stderr


@pytest.mark.parametrize("body", ENDS)
def test_a_run_whose_detector_ends_the_process_records_its_end_and_does_not_succeed(
    root: Path, body: str
) -> None:
    done = run(root, DETECTOR.format(body))

    assert done.returncode == 6, done.stderr
    assert "plugin 'mine' failed in gsd_find_gaps" in done.stdout
    assert last_end(root)["status"] == "gaps"


@pytest.mark.parametrize(
    "body",
    [
        "asyncio.get_running_loop().call_soon(sys.exit, 0); await asyncio.sleep(5)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "import atexit; atexit.register(os._exit, 0); raise RuntimeError; ",
        "threading.Timer(3, os._exit, [0]).start(); raise RuntimeError",
    ],
)
def test_whatever_a_plugin_does_a_run_that_did_not_succeed_is_not_0(root: Path, body: str) -> None:
    done = run(root, DETECTOR.format(body))

    assert done.returncode != 0, done.stderr
    if "call_soon" in body:
        assert "a plugin ended the command before it was done: SystemExit(0)" in done.stderr
        assert "raised at " in done.stderr


COMMANDS = [
    ["status", "--json"],
    ["gaps", "1", "--json"],
    ["settings", "show", "--json"],
    ["doctor", "--json"],
    ["panels", "--json"],
    ["plugins", "--json"],
    ["mine", "--json"],
    ["ps", "--json"],
    ["resume", "--dry-run", "--output-format", "json"],
    ["no-such-command", "--json"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_what_a_plugin_prints_is_not_in_the_json(root: Path, words: list[str], tmp_path: Path) -> None:
    done = gsd(root, *words, plugin=NOISY, GSD_STATE_DIR=str(tmp_path / "state"), GSD_EXECUTE="native")

    assert isinstance(json.loads(done.stdout), dict), done.stdout
    assert "NOISE" in done.stderr


def test_a_plugin_s_command_keeps_its_exit_code(root: Path) -> None:
    assert gsd(root, "leaves", plugin=NOISY).returncode == 7


def test_what_a_plugin_prints_is_not_in_a_completion(root: Path) -> None:
    shell = {"_GSD_COMPLETE": "bash_complete", "COMP_WORDS": "gsd resume --ag", "COMP_CWORD": "2"}
    folder = root / ".gsd-plugins"
    folder.mkdir()
    done = gsd(root, plugin=NOISY, GSD_PLUGINS_DIR=str(folder), **shell)

    assert "NOISE" not in done.stdout
    assert done.returncode == 0


FLOOD = """
import time
def flood():
    while True:
        time.sleep(0.001)
        print("NOISE", flush=True)
        os.write(1, b"NOISE\\n")
threading.Thread(target=flood, daemon=True).start()
print("NOISE")
"""


@pytest.mark.parametrize("plugin", [NOISY, FLOOD, NOISY + FLOOD], ids=["hooks", "thread", "both"])
def test_what_a_plugin_prints_is_not_in_what_an_mcp_client_reads(
    root: Path, tmp_path: Path, plugin: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(START + plugin)
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    done = subprocess.run(
        [sys.executable, "-m", "gsd_core", "-p", str(file), "mcp"],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env={**os.environ, "GSD_STATE_DIR": str(tmp_path / "state")},
    )

    [answer] = [json.loads(line) for line in done.stdout.splitlines()]
    assert answer["id"] == 1, done.stderr
    assert "NOISE" in done.stderr


def test_the_stream_of_a_run_has_only_its_events(root: Path) -> None:
    done = run(root, NOISY, "--output-format", "stream-json")

    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert (names[0], names[-1]) == ("run.started", "run.closed"), done.stderr
    assert "NOISE" in done.stderr


LIFESPAN = """
@implements(gsd_lifespan)
def lifespan(run):
    {0}
    @asynccontextmanager
    async def context():
        {1}
    return [context()]
"""
BODIES = [
    ("pass", "raise RuntimeError('no luck'); yield", 2, "cannot start"),
    ("raise RuntimeError('no luck')", "yield", 0, "the run works without what it sets up"),
    ("pass", "yield; raise RuntimeError('no luck')", 0, "at the end of the run, whose result stands"),
    ("pass", "yield; yield", 0, "at the end of the run, whose result stands"),
    ("pass", "\n            if 0: yield", 2, "cannot start"),
]


@pytest.mark.parametrize(("first", "body", "code", "said"), BODIES)
def test_a_lifespan_that_fails_says_what_it_means_for_the_run(
    root: Path, first: str, body: str, code: int, said: str
) -> None:
    done = run(root, LIFESPAN.format(first, body.replace("            if", "        if")))

    both = done.stdout + done.stderr
    assert done.returncode == code, both
    assert said in both
    assert "plugin 'mine'" in both
    assert "-p no:mine" in both


ALWAYS = """
@implements(gsd_steps)
def steps():
    return [StepType(kind="polish", before="verify", due=lambda now: True, title="Polish", writes=())]
@implements(gsd_execute_step)
async def execute(step, host):
    return StepResult(subject="polish") if step.kind == "polish" else None
"""


def test_a_step_that_is_always_due_ends_the_run_and_names_the_plugin_that_adds_it(root: Path) -> None:
    done = run(root, ALWAYS)

    assert done.returncode == 1, done.stderr
    assert "1/polish: completed 3 times, and plugin 'mine', which adds it" in " ".join(done.stdout.split())
    listed = json.loads(gsd(root, "plugins", "--json", plugin=ALWAYS).stdout)["plugins"]
    [mine] = [one for one in listed if one["name"] == "mine"]
    assert mine["last_failures"] == [{"hook": "gsd_steps", "error": "1/polish is always due"}]


WRAPPER = """
@implements(gsd_wrap_step)
async def wrap(step, call_next):
    {}
"""
FOREIGN = (
    "r = await call_next(step); "
    "return attrs.evolve(r, files=(FileWrite(path='.planning/STATE.md', text='x'),))"
)


@pytest.mark.parametrize("body", [FOREIGN, "return StepResult(subject='x')"])
def test_of_several_wrappers_the_one_that_is_wrong_is_named(root: Path, body: str, tmp_path: Path) -> None:
    arguments: list[str | Path] = []
    for name in ("aa", "zz"):
        other = tmp_path / f"{name}.py"
        other.write_text(
            START + WRAPPER.format("return attrs.evolve(await call_next(step), subject='docs: x')")
        )
        arguments += ["-p", other]

    done = run(root, WRAPPER.format(body), *arguments)

    assert done.returncode == 1, done.stderr
    assert "plugin 'mine' failed in gsd_wrap_step" in done.stdout
    assert "'aa'" not in done.stdout
    assert "'zz'" not in done.stdout


def test_a_default_of_the_wrong_type_is_found_by_the_check(root: Path) -> None:
    plugin = """
from typing import Literal
@attrs.frozen(kw_only=True)
class Mine:
    '''Settings.'''
    names: tuple[str, ...] = (1,)
@implements(gsd_settings)
def settings():
    return [Mine]
"""
    done = gsd(root, "plugins", "check", root.parent / "mine.py", "--json", plugin=plugin)

    rules = {one["id"]: one["problems"] for one in json.loads(done.stdout)["rules"]}
    assert rules["settings"] == [
        "gsd_settings: Mine.names: the default (1,) is not of the type tuple[str, ...]"
    ], done.stderr


def test_the_check_notices_output_of_child_processes_too(root: Path) -> None:
    plugin = DETECTOR.format("subprocess.run(['echo', 'CHILD'])")
    done = gsd(root, "plugins", "check", root.parent / "mine.py", "--json", plugin=plugin)

    rules = {one["id"]: one["problems"] for one in json.loads(done.stdout)["rules"]}
    assert "CHILD" in rules["says-nothing"][0]
