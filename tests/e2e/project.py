"""A project in which tests run ``gsd`` as a separate process, without the user's home and settings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.processes import Process, processes
from tests.run.harness import git, now, repository, trailed

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "greeter.md"
FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")
REHEARSAL = ("--agent", "rehearsal")
LIMIT = 120.0
PAUSE = 0.01


@frozen(kw_only=True)
class Done:
    """How a process ended: *exit* is negative if a signal ended it; *seconds* is in seconds."""

    exit: int
    out: str
    err: str
    seconds: float

    @property
    def lines(self) -> list[Any]:
        """Standard output, each line read as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@define
class Started:
    """A running ``gsd``, the leader of its own session; its output goes to files."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    began: float = field(factory=time.monotonic)

    @property
    def pid(self) -> int:
        """Its process id, which is its group's as well."""
        return self.process.pid

    def until(self, holds: Callable[[], Any], limit: float = LIMIT) -> bool:
        """Wait until *holds* returns true; return whether it did before the process ended."""
        end = time.monotonic() + limit
        while not holds():
            if self.process.poll() is not None:
                return bool(holds())
            assert time.monotonic() < end, f"waited {limit} s in vain; output:\n{self.output}"
            time.sleep(PAUSE)
        return True

    def has_lines(self, count: int) -> Callable[[], bool]:
        """Return a condition: standard output has at least *count* lines."""
        return lambda: self.out.read_bytes().count(b"\n") >= count

    @property
    def output(self) -> str:
        """Its output so far, from both streams."""
        return self.out.read_text("utf-8", "replace") + self.err.read_text("utf-8", "replace")

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal, to its process alone or to its whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number) if group else os.kill(self.pid, number)

    def kill(self, *, group: bool = False) -> Done:
        """Kill it."""
        self.signal(signal.SIGKILL, group=group)
        return self.wait()

    def wait(self, limit: float = LIMIT) -> Done:
        """Wait for its end."""
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL, group=True)
            self.process.wait()
            raise AssertionError(f"it has not ended after {limit} s; output:\n{self.output}") from None
        seconds = time.monotonic() - self.began
        read = [path.read_text("utf-8", "replace") for path in (self.out, self.err)]
        return Done(exit=code, out=read[0], err=read[1], seconds=seconds)


@define
class Project:
    """A folder *base* with a home and a project in it, where ``gsd`` runs with *environment* and *python*."""

    base: Path
    environment: dict[str, str] = field(factory=dict[str, str])
    python: str = sys.executable
    started: list[Started] = field(factory=list["Started"])

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.base / "project"

    @property
    def journal_file(self) -> Path:
        """The path of its journal."""
        return self.root / ".git" / "gsd" / "journal.db"

    def create(self) -> None:
        """Create the project as a repository with an identity."""
        repository(self.root)

    def start(self, *args: str | Path, stdin: int | bytes = subprocess.DEVNULL, **env: str) -> Started:
        """Start ``gsd`` in the project's folder, or above it if it does not exist yet."""
        out, err = (self.base / f"{len(self.started)}.{name}" for name in ("out", "err"))
        given = stdin if isinstance(stdin, int) else subprocess.PIPE
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [self.python, "-m", "gsd_core", *map(str, args)],
                cwd=self.root if self.root.is_dir() else self.base,
                env=self.environ(env),
                stdin=given,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        if isinstance(stdin, bytes):
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
        self.started.append(Started(process, out, err))
        return self.started[-1]

    def gsd(self, *args: str | Path, stdin: bytes = b"", limit: float = LIMIT, **env: str) -> Done:
        """Run ``gsd`` to its end."""
        return self.start(*args, stdin=stdin or subprocess.DEVNULL, **env).wait(limit)

    def json(self, *args: str | Path) -> Any:
        """Return the JSON that ``gsd … --json`` prints."""
        done = self.gsd(*args, "--json")
        assert done.exit == 0, done.err
        return json.loads(done.out)

    def facts(self, *kinds: str) -> list[Record]:
        """Return the journal's records of those kinds; all, if none is named."""
        with Journal.open(self.journal_file, clock=now, writable=False) as journal:
            return list(journal.events(kinds=kinds or None))

    def leftovers(self) -> list[Process]:
        """Return the processes that carry the mark of a run of this project."""
        runs = {fact.run for fact in self.facts("run.opened")} if self.journal_file.exists() else set[str]()
        return [process for process in processes("GSD_RUN") if (process.mark or "").partition("@")[0] in runs]

    def clear(self) -> list[Process]:
        """Kill what still runs; return the processes that gsd left behind."""
        for started in self.started:
            started.kill(group=True)
        left = self.leftovers()
        for process in left:
            os.kill(process.pid, signal.SIGKILL)
        return left

    def environ(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a process, with *more* variables."""
        home = self.base / "home"
        home.mkdir(exist_ok=True)
        passed = ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_CONFIG")
        kept = {name: os.environ[name] for name in passed if name in os.environ}
        return {
            **kept,
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            # It takes longer than the rest of a rehearsal.
            "GSD_LIMITS_ABLATION": "0s",
            **self.environment,
            **more,
        }


@frozen
class Gate:
    """A program that blocks while the file *closed* exists; *reached* exists once it was called."""

    reached: Path
    closed: Path

    def close(self) -> None:
        """Block the next call."""
        self.reached.unlink(missing_ok=True)
        self.closed.touch()

    def open(self) -> None:
        """Let later calls through; a call that is blocked stays blocked."""
        self.closed.unlink(missing_ok=True)


def gate(project: Project, program: str = "python3") -> Gate:
    """Put a gate in front of *program* for the commands of agents and plans.

    Without a sandbox, because what is in one can write its mark only into the project.
    """
    project.environment["GSD_SANDBOX"] = "off"
    found = Gate(project.base / "reached", project.base / "closed")
    script = project.base / "bin" / program
    script.parent.mkdir(exist_ok=True)
    real = shutil.which(program)
    script.write_text(
        f"#!/bin/sh\n"
        f"if test -e {found.closed}; then touch {found.reached}; exec sleep 600; fi\n"
        f'exec {real} "$@"\n'
    )
    script.chmod(0o755)
    project.environment["PATH"] = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    return found


def door(project: Project) -> Gate:
    """Put a gate in front of ``python3`` that a call waits at until it is opened."""
    project.environment["GSD_SANDBOX"] = "off"
    gate = Gate(project.base / "reached", project.base / "closed")
    script = project.base / "bin" / "python3"
    script.parent.mkdir()
    script.write_text(
        f"#!/bin/sh\n"
        f"while test -e {gate.closed}; do touch {gate.reached}; sleep 0.05; done\n"
        f'exec {shutil.which("python3")} "$@"\n'
    )
    script.chmod(0o755)
    project.environment["PATH"] = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    return gate


def plugin(project: Project, text: str) -> tuple[str, ...]:
    """Write a plugin ``own``, and return the arguments that load it."""
    folder = project.base / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(text)
    return ("--plugins-dir", str(folder))


def no_problems(**more: str) -> dict[str, str]:
    """Return settings for one phase without problems, for the fake agent and the rehearsal."""
    trouble = {"PHASES": "1", "QUESTION": "0", "GAP": "0", "OVERLOADED": "0", **more}
    return {
        f"GSD_{agent}_{name}": value for agent in ("FAKE", "REHEARSAL") for name, value in trouble.items()
    }


def defects(project: Project) -> Iterator[str]:
    """Yield the defects of a finished project."""
    root = project.root
    found = trailed(root)
    yield from (f"committed twice: {pair}" for pair in set(found) if found.count(pair) > 1)
    plans = sorted((root / ".planning" / "phases").glob("*/*-PLAN.md"))
    yield from () if plans else ("there is no plan",)
    for plan in plans:
        if not plan.with_name(plan.name.replace("-PLAN", "-SUMMARY")).is_file():
            yield f"no summary: {plan.name}"
    if dirty := git(root, "status", "--porcelain"):
        yield f"not clean: {dirty}"
    yield from (f"left behind: {process}" for process in project.leftovers())
    yield from _failing(root, "git", "fsck", "--strict", "--no-dangling")
    yield from _failing(root, sys.executable, "-B", "-m", "unittest")
    yield from (f"lock left: {lock}" for lock in (root / ".git").glob("**/*.lock"))


def _failing(root: Path, *command: str) -> Iterator[str]:
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode:
        yield f"{' '.join(command)}: {ran.stdout}{ran.stderr}"
