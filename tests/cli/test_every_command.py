"""Every command in nine surroundings: exit code, data alone on standard output, JSON as the schemas say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
from attrs import frozen
from jsonschema import Draft202012Validator

from gsd_core.cli.app import gsd
from gsd_core.views.schemas import SCHEMAS, schema_of
from tests.e2e.project import EXAMPLE, FAKE, Project, no_problems

AGENT = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")
DRY = (*AGENT, "--dry-run")


@frozen
class Case:
    """Arguments for a command, its documented exit *codes*, and whether it *changes* the project."""

    args: tuple[str, ...] = ()
    codes: tuple[int, ...] = (0,)
    changes: bool = False
    asking: bool = False
    """In a project that waits for an answer; otherwise in one with one finished phase of two."""


CASES: Mapping[str, Case] = {
    "demo": Case((".",), codes=(2,)),
    "run": Case((str(EXAMPLE), *DRY)),
    "resume": Case(DRY),
    "pause": Case(("before", "lunch"), changes=True),
    "stop": Case(),
    "discuss": Case(("2", *DRY)),
    "plan": Case(("2", *DRY)),
    "execute": Case(("2", *DRY), codes=(2,)),
    "verify": Case(("1", *DRY)),
    "quick": Case(("fix the typo", *DRY)),
    "debug": Case(("it is slow", *DRY)),
    "map": Case(DRY),
    "exec": Case(("say hello", *DRY)),
    "questions": Case(asking=True),
    "answer": Case(("QUESTION", "1"), asking=True, changes=True),
    "status": Case(asking=True),
    "next": Case(),
    "why": Case(asking=True),
    "panels": Case(),
    "progress": Case(),
    # A pager would wait for a key.
    "log": Case(("--no-pager",)),
    # Anywhere else it waits for a run.
    "watch": Case(("-C", "absent"), codes=(2,)),
    "cost": Case(),
    "report": Case(("-o", "-")),
    "phases": Case(),
    "plans": Case(("1",)),
    "plan-graph": Case(),
    "gaps": Case(("1", "--read-only")),
    "requirements": Case(),
    "phase add": Case(("Sync",), changes=True),
    "phase insert": Case(("1", "Sync"), changes=True),
    "phase remove": Case(("2",), changes=True),
    "milestone audit": Case(DRY),
    "milestone complete": Case(DRY, codes=(0, 2)),
    "todo add": Case(("Say", "hello"), changes=True),
    "todo done": Case(("none",), codes=(2,)),
    "todo list": Case(),
    "trust": Case(("--show",)),
    "plugins": Case(),
    "plugins check": Case(("budget",), codes=(0, 1)),
    "plugins new": Case(("gsd-plugin-own", "--hook", "find_gaps"), changes=True),
    "settings show": Case(),
    "plugins info": Case(("budget",)),
    "plugins list": Case(),
    "plugins install": Case(("--no-index", "not a name"), codes=(2,)),
    "plugins uninstall": Case(("gsd-plugin-absent",), codes=(2,)),
    "plugins outdated": Case(("--no-index",)),
    "settings unset": Case(("run.depth",), codes=(0, 2), changes=True),
    "settings set": Case(("run.depth", "quick"), changes=True),
    "doctor": Case(("-p", "no:claude"), codes=(0, 1)),
    "health": Case(codes=(0, 1)),
    "merge-driver": Case(("--remove",)),
    "paths": Case(),
    "completion": Case(("bash",)),
    "help": Case(("exit-codes",)),
    "schema": Case(("status",)),
    "version": Case(),
    "bug-report": Case(("-p", "no:claude")),
}

SURROUNDINGS: Mapping[str, tuple[str, Mapping[str, str | None]]] = {
    "terminal": ("terminal", {"TERM": "xterm-256color"}),
    "pipe": ("pipe", {}),
    "no color": ("terminal", {"TERM": "xterm-256color", "NO_COLOR": "1"}),
    "forced color": ("pipe", {"FORCE_COLOR": "1"}),
    "dumb terminal": ("terminal", {"TERM": "dumb"}),
    "40 columns": ("narrow", {"TERM": "xterm-256color"}),
    "no home": ("pipe", {"HOME": None}),
    "C locale": ("pipe", {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "closed input": ("closed", {}),
}
"""The streams, and what differs in the environment."""


def leaves(command: click.Command = gsd, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something by itself, with its name."""
    ctx = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            yield from leaves(inner, (*path, name))
    if path and not (isinstance(command, click.Group) and not command.invoke_without_command):
        yield " ".join(path), command


def flags(command: click.Command) -> set[str]:
    """Return the options of a command, without those of plugins."""
    return {name for param in command.params if isinstance(param, click.Option) for name in param.opts}


COMMANDS = dict(leaves())
WITH_JSON = {name for name, command in COMMANDS.items() if "--json" in flags(command)}
RUNS = {name for name, command in COMMANDS.items() if "--output-format" in flags(command)}


def test_every_command_has_a_case() -> None:
    assert set(CASES) == set(COMMANDS)


def test_every_command_with_json_has_a_schema_and_nothing_else_has() -> None:
    # "ps" is a command of a built-in plugin; tests/sessions checks what it prints.
    assert set(SCHEMAS) == WITH_JSON | {"run", "event", "ps"}
    assert "run" in RUNS


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_and_describes_its_objects(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)

    assert schema["title"]
    assert not mistakes({**schema, "required": []}, {})[1:]
    assert mistakes(schema, {})


def mistakes(schema: Mapping[str, Any], data: object) -> list[Any]:
    validator: Any = Draft202012Validator(schema)
    return list(validator.iter_errors(data))


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[bool, Project]:
    """Return a project with one finished phase of two, and by ``True`` one that waits for an answer."""
    done = Project(tmp_path_factory.mktemp("done"), no_problems(PHASES="2"))
    asking = Project(tmp_path_factory.mktemp("asking"), no_problems(QUESTION="1"))
    for project in (done, asking):
        project.create()
    assert done.gsd("run", EXAMPLE, *FAKE, "--yes", "--phases", "1").exit == 0
    assert asking.gsd("run", EXAMPLE, *FAKE, "--no-input").exit == 3
    return {False: done, True: asking}


@frozen
class Forked:
    """How a command ended, and what it wrote."""

    exit: int
    out: str
    err: str
    seconds: float
    peak: int


class Forks:
    """Runs commands in a process with *environment*, and with *streams* that are pipes or terminals."""

    def __init__(self, environment: Mapping[str, str], streams: str = "pipe") -> None:
        self.streams = streams
        reading, self._requests = os.pipe()
        self._answers, writing = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", SERVER, str(reading), str(writing)],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=(reading, writing),
        )
        os.close(reading)
        os.close(writing)
        self.requests = os.fdopen(self._requests, "w")
        self.answers = os.fdopen(self._answers, "r", encoding="utf-8")

    def run_in(self, folder: Path, *args: str) -> Forked:
        """Run ``gsd`` with *args* in a folder."""
        self.requests.write(json.dumps([args, str(folder), self.streams]) + "\n")
        self.requests.flush()
        return Forked(**json.loads(self.answers.readline()))

    def close(self) -> None:
        """End the process."""
        self.requests.close()
        self.process.wait(60)
        self.answers.close()


class Surrounded(Forks):
    """Runs the commands of cases in a surrounding."""

    def __init__(self, worlds: Mapping[bool, Project], surrounding: str, base: Path) -> None:
        self.worlds, self.base, self.count = worlds, base, 0
        streams, changes = SURROUNDINGS[surrounding]
        own = {"GSD_CONFIG": str(base / "config.toml"), "GSD_STATE_DIR": str(base / "state")}
        shutil.copytree(worlds[False].base / "home", base / "home")
        names = {"HOME": str(base / "home"), "XDG_STATE_HOME": str(base / "home" / ".local" / "state")}
        wanted = {**worlds[False].environ({}), **own, **names, **changes}
        super().__init__({name: value for name, value in wanted.items() if value is not None}, streams)

    def run(self, case: Case, *args: str) -> Forked:
        """Run ``gsd`` with *args* in the project of *case*, or in a copy of it."""
        root = self.worlds[case.asking].root
        if case.changes:
            self.count += 1
            copy = self.base / str(self.count)
            shutil.copytree(root, copy, symlinks=True)
            root = copy
        return self.run_in(root, *args)


SERVER = "tests.cli.forked"


def problems(name: str, done: Forked, codes: tuple[int, ...]) -> Iterator[str]:
    """Yield what is wrong with how a command ended."""
    # A log and a bug report quote the output of others.
    text = done.err if name in QUOTING else done.out + done.err
    if done.exit not in codes:
        yield f"exit code {done.exit}: {text[-500:]}"
    yield from (f"{sign}: {text[-1500:]}" for sign in SIGNS_OF_A_BUG if sign in text)
    if re.search("^(error|hint|warning|cause): ", done.out, re.M) and name not in QUOTING:
        yield f"messages on standard output: {done.out[-500:]}"
    if done.exit in (0, 1) and not done.out and name not in SILENT:
        yield "no data on standard output"


SIGNS_OF_A_BUG = ("Traceback", "bug in gsd", "Exception ignored", "ResourceWarning")
SILENT = {"plugins new"}
QUOTING = {"log", "bug-report"}
COLORS = re.compile(r"\x1b\[(3|4|9|10)\d?[;m\d]")


def wrong_controls(surrounding: str, text: str) -> str:
    """Return the control characters in *text* that do not belong in the surrounding."""
    allowed = {"terminal", "40 columns", "forced color"}
    if surrounding in allowed:
        return ""
    if surrounding == "no color":
        return "".join(match[0] for match in COLORS.finditer(text))
    return "".join(re.findall(r"\x1b.{5}", text))


def json_problems(name: str, done: Forked) -> Iterator[str]:
    """Yield where standard output is not the JSON that the schema describes."""
    schema = schema_of("run" if name in RUNS else name)
    try:
        read = (
            [json.loads(line) for line in done.out.splitlines()] if name == "log" else [json.loads(done.out)]
        )
    except ValueError as error:
        yield f"no JSON ({error}): {done.out[:300]!r}"
        return
    validator: Any = Draft202012Validator(schema)
    for value in read:
        yield from (f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value))


IN_CI = {"pipe", "terminal", "C locale", "closed input"}
ONE_OF_THEM = {"run", "verify"}
"""All commands that run steps share their code, so outside of a pipe these two are enough."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "surrounding",
    [pytest.param(name, marks=[] if name in IN_CI else [pytest.mark.long]) for name in SURROUNDINGS],
)
def test_every_command_works_in_its_surroundings(
    worlds: Mapping[bool, Project], surrounding: str, tmp_path: Path
) -> None:
    question = worlds[True].json("questions")["questions"][0]["id"]
    found: list[str] = []
    with closing(Surrounded(worlds, surrounding, tmp_path)) as forks:
        for name, case in CASES.items():
            if surrounding != "pipe" and name in RUNS - ONE_OF_THEM:
                continue
            found += problems_of(forks, surrounding, name, case, question)

    assert found == []


def problems_of(forks: Surrounded, surrounding: str, name: str, case: Case, question: str) -> Iterator[str]:
    """Yield what is wrong with a command: with its text, its JSON, its help, and a mistake of the user."""
    args = [*name.split(), *(question if arg == "QUESTION" else arg for arg in case.args)]
    texts = {"text": args, "help": [*name.split(), "--help"]}
    if surrounding == "pipe":
        texts["usage"] = [*name.split(), "--no-such-option"]
    if name in WITH_JSON and surrounding in ("pipe", "C locale", "forced color"):
        texts["json"] = [*args, "--json"]
    if name in RUNS and surrounding == "pipe":
        texts["json"] = [*args, "--output-format", "json"]
    for kind, words in texts.items():
        done = forks.run(case, *words)
        codes = {"help": (0,), "usage": (2,)}.get(kind, case.codes)
        wrong = [*problems(name, done, codes)]
        if kind == "json" and (done.exit in (0, 1) or name in RUNS):
            wrong += json_problems(name, done)
        if kind == "usage" and (done.out or "hint: " not in done.err):
            wrong.append(f"bad usage: {done.out!r} {done.err!r}")
        if controls := wrong_controls(surrounding, done.out + done.err):
            wrong.append(f"control characters: {controls!r}")
        yield from (f"gsd {' '.join(words)}: {one}" for one in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["status", "bug-report"])
def test_a_real_process_ends_as_its_fork(worlds: Mapping[bool, Project], name: str) -> None:
    project = worlds[True]
    command = [sys.executable, "-m", "gsd_core", name, *CASES[name].args]
    environment = project.environ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    script = 'exec "$@" <&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command],
        cwd=project.root,
        env=environment,
        capture_output=True,
        check=False,
    )

    assert done.returncode in CASES[name].codes
    assert b"Traceback" not in done.stdout + done.stderr
    assert done.stdout.isascii()
