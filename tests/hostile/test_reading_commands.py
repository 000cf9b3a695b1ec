"""The commands that only read, in the projects of adversaries."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import attrs
import click
import pytest

from gsd_core.cli.app import gsd
from gsd_core.cli.commands import PLUGIN_COMMANDS
from gsd_core.cli.global_options import GlobalOptions
from gsd_core.exit_codes import ExitCode
from tests.cli.test_every_command import COMMANDS, RUNS, Forked, Forks, flags
from tests.e2e.project import FAKE, Project
from tests.hostile.projects import FORBIDDEN, OWNERS, Owner, make
from tests.hostile.test_server import OUTSIDE, add_session, wrong_texts
from tests.hostile.tricks import Hostile

SECONDS = 20.0
MEMORY = 700 << 20
DRY = (*FAKE, "--dry-run")

READING: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "resume": (DRY,),
    "discuss": (("3", *DRY),),
    "plan": (("3", *DRY), ("../../x", *DRY)),
    "execute": (("3", *DRY),),
    "verify": (("3", *DRY),),
    "quick": (("fix the typo", *DRY),),
    "debug": (("it is slow", *DRY),),
    "map": (DRY,),
    "exec": (("say hello", *DRY),),
    "milestone audit": (DRY,),
    "milestone complete": (DRY,),
    "questions": ((),),
    "status": ((),),
    "next": ((),),
    "why": ((), ("3/execute/03-01",)),
    "progress": ((),),
    "log": (("--no-pager",), ("--no-pager", "--step", "3/execute/03-01")),
    "cost": ((), ("--all", "--by", "model")),
    "report": (("-o", "-"),),
    "panels": ((),),
    "phases": ((), ("--all",)),
    "plans": (("3",), ("../../x",)),
    "plan-graph": ((), ("3", "--mermaid")),
    "gaps": (("3", "--read-only"),),
    "requirements": ((),),
    "todo list": ((),),
    "todo done": (("../../../outside/home/note",),),
    "trust": (("--show",),),
    "plugins": ((),),
    "plugins info": (("uat",),),
    "plugins list": ((),),
    "settings show": ((), ("run", "--origin")),
    "doctor": (("-p", "no:claude"),),
    "health": ((),),
    "paths": ((),),
    "bug-report": (("-p", "no:claude"),),
    # There is no run that it could stop, or that would take an answer.
    "stop": ((),),
    "answer": (("q-9", "1"), ("q-1", "99999")),
    "ps": (("--all",),),
    "logs": (("SESSION", "--plain"),),
}
"""The commands that read a project, and the arguments to try."""
OTHERS: Mapping[str, str] = {
    "demo": "makes a project of its own",
    "run": "needs an idea, and is tried in test_commands.py",
    "watch": "waits for a run; tests/terminal/test_live_view.py has what it shows",
    "merge-driver": "changes git's settings; its input is tried in tests/cli/test_merge_driver.py",
    "pause": "writes a handoff",
    "phase add": "changes the roadmap",
    "phase insert": "changes the roadmap",
    "phase remove": "changes the roadmap",
    "todo add": "writes a file",
    "plugins check": "runs a plugin that the user names",
    "plugins install": "runs pip",
    "plugins uninstall": "runs pip",
    "plugins outdated": "runs pip",
    "plugins new": "writes a plugin",
    "settings set": "writes settings",
    "settings unset": "writes settings",
    "completion": "does not read the project",
    "help": "does not read the project",
    "schema": "does not read the project",
    "version": "does not read the project",
    "attach": "needs a terminal, and passes on bytes as they are",
    "rm": "forgets sessions",
    "serve": "test_server.py",
    "mcp": "test_sinks.py",
    "mcp install": "changes the settings of another program",
}
"""The other commands, and why they are not here."""


def plugin_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of built-in plugins, with their subcommands."""
    ctx = click.Context(gsd, info_name="gsd", obj=GlobalOptions(arguments=()))
    for name in PLUGIN_COMMANDS:
        command = gsd.get_command(ctx, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {one}", inner) for one, inner in command.commands.items())


WITH_JSON = {
    name for name, command in (*COMMANDS.items(), *plugin_commands()) if "--json" in flags(command)
} - {"logs"}
"""The commands with ``--json``; that of ``gsd logs`` is for its errors."""


def test_every_command_is_tried_or_has_a_reason_why_not() -> None:
    known = set(COMMANDS) | {name for name, _ in plugin_commands()}

    assert set(READING) | set(OTHERS) == known
    assert set(READING) & set(OTHERS) == set()


@attrs.frozen(kw_only=True)
class World:
    """A hostile project with an ended session, and what runs commands in it."""

    forks: Forks
    at: Hostile
    session: str


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("base")


@pytest.fixture(scope="module")
def forks(base: Path) -> Generator[Forks]:
    environment = Project(base).environ(
        {"GSD_CONFIG": str(base / "no-config.toml"), "GSD_STATE_DIR": str(base / "state")}
    )
    with closing(Forks(environment)) as forks:
        yield forks


def world_of(owner: Owner, forks: Forks, folder: Path) -> World:
    """Make the project of an owner."""
    at = make(folder / "project", folder / "outside")
    at.victim("note.md")
    owner(at)
    session = add_session(at.root)
    (at.outside / "ran").unlink(missing_ok=True)  # planting some tricks runs them
    return World(forks=forks, at=at, session=session)


@pytest.fixture(autouse=True)
def state(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_STATE_DIR", str(base / "state"))


def command_lines() -> Iterator[tuple[str, ...]]:
    """Yield all command lines; the session's id is ``SESSION``."""
    for name, variants in READING.items():
        for given in variants:
            yield (*name.split(), *given)
            if name in WITH_JSON:
                yield (*name.split(), *given, "--json")
            if name in RUNS:
                yield (*name.split(), *given, "--output-format", "json")


def all_problems(world: World, lines: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield what is wrong after these commands."""
    before = world.at.changes_outside()
    for line in lines:
        words = [world.session if word == "SESSION" else word for word in line]
        yield from problems(world, words, is_json=line[-1] in ("--json", "json"))
    yield from ([f"ran: {world.at.ran[:300]}"] if world.at.ran else [])
    if (after := world.at.changes_outside()) != before:
        yield f"changed outside: {after}"


SHARE = 12


@pytest.mark.slow
def test_a_share_of_the_reading_commands_in_every_hostile_project(forks: Forks, tmp_path: Path) -> None:
    """Each command is tried in some of them, and each project has some commands; the next test tries all."""
    lines = [*command_lines()]
    wrong: list[str] = []
    for number, owner in enumerate(OWNERS):
        world = world_of(owner, forks, tmp_path / owner.__name__)
        # Neighbours are variants of one command, so they go to different projects.
        found = all_problems(world, lines[number % SHARE :: SHARE])
        wrong += [f"{owner.__name__}: {one}" for one in found]

    assert len(OWNERS) >= SHARE
    assert wrong == [], "\n".join(wrong)


@pytest.mark.long
@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_no_reading_command_is_harmed_by_a_hostile_project(
    owner: Owner, forks: Forks, tmp_path: Path
) -> None:
    assert [*all_problems(world_of(owner, forks, tmp_path), command_lines())] == []


def problems(world: World, words: list[str], *, is_json: bool) -> Iterator[str]:
    """Yield what is wrong with how a command ended, and with what it printed."""
    done = world.forks.run_in(world.at.root, *words)
    found = [*_problems(done)]
    if is_json and done.exit != ExitCode.USAGE:
        found += json_problems(done, is_lines=words[0] == "log")
    yield from (f"gsd {' '.join(words)} (exit {done.exit}, {done.seconds:.1f} s): {one}" for one in found)


def _problems(done: Forked) -> Iterator[str]:
    text = done.out + done.err
    # Nothing here stops a command by a signal, and 1 without a reason would be an error of gsd.
    if done.exit not in {code.value for code in ExitCode if code < ExitCode.HUNG_UP}:
        yield f"exit code {done.exit}: {text[-300:]!a}"
    if done.seconds > SECONDS:
        yield f"{done.seconds:.1f} seconds"
    if done.peak > MEMORY:
        yield f"{done.peak >> 20} MB"
    for name, stream in (("standard output", done.out), ("standard error", done.err)):
        for found in sorted(FORBIDDEN & set(stream)):
            where = stream.index(found)
            yield f"{name} has {found!a}: {stream[max(0, where - 150) : where + 60]!a}"
    for sign in ("Traceback", "bug in gsd", "please report", *(one.decode() for one in OUTSIDE)):
        if sign in text:
            where = text.index(sign)
            yield f"{sign}: {text[max(0, where - 300) : where + 1500]!a}"


def json_problems(done: Forked, *, is_lines: bool) -> Iterator[str]:
    """Yield where standard output is not JSON without control characters."""
    try:
        read = [json.loads(line) for line in (done.out.splitlines() if is_lines else [done.out])]
    except ValueError as error:
        yield f"no JSON ({error}): {done.out[:300]!a}"
        return
    yield from [*wrong_texts(read)][:1]
