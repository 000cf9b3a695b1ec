"""Commands that do one thing, killed at any moment and typed again; also for ``bench/kills.py``.

What is left then is compared with what the same command leaves when nobody disturbs it. The moments are
times, and calls of the system: strace delays each call that changes something, and prints it, so that the
whole process group is killed at the call that was chosen.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from attrs import define, field, frozen

from tests.cli.test_plugin_packages import wheel
from tests.e2e.project import EXAMPLE, FAKE, Project, Started, no_problems
from tests.run.harness import git

CALLS = (
    "write,pwrite64,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,ftruncate,"
    "link,linkat,symlink,symlinkat,fchmod,fchmodat,flock,execve"
)
"""The calls of the system at which a process is killed."""
DELAY = 1500
"""How long each of them takes, in microseconds."""
SITE = "lib/python*/site-packages"
MINE = "gsd_plugin_mine-1.0-py3-none-any.whl"
DRAFT = "*.gsd-*.tmp"
RECORDS = ("edit.json", "asked.json", "request.json", "commit-paths")
_CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b\d{8}T\d{12}\b"), "TIME"),
    (re.compile(r"\b[0-9a-f]{7,64}\b"), "ID"),
    (re.compile(r"\b20\d{6}-\d{6}-\w+"), "RUN"),
    (re.compile(r"(?m)^(duration|\*\*Duration:?\*\*:?).*$"), "DURATION"),
    (re.compile(r"pid \d+"), "PID"),
)


@frozen(kw_only=True)
class Case:
    """A command, and what is done before it; *exit* is the code with which it ends when it is repeated."""

    name: str
    arguments: tuple[str, ...]
    before: Callable[[Project], None]
    steps: bool = False
    exit: int = 0


def begun(project: Project) -> None:
    """Make a project with two phases, one of them complete, and a todo."""
    project.create()
    project.environment = {
        **no_problems(PHASES="2"),
        "GSD_SANDBOX": "off",
        "TMPDIR": str(project.base / "tmp"),
    }
    (project.base / "tmp").mkdir()
    _do(project, "run", EXAMPLE, *FAKE, "--yes", "--phases", "1")
    _do(project, "todo", "add", "an old one")


def without_state(project: Project) -> None:
    """Commit that STATE.md is gone."""
    begun(project)
    git(project.root, "rm", "-q", ".planning/STATE.md")
    git(project.root, "commit", "-qm", "lose it")


def after(*commands: tuple[str, ...]) -> Callable[[Project], None]:
    """Return what makes the project in which the *commands* were typed."""

    def make(project: Project) -> None:
        begun(project)
        for command in commands:
            _do(project, *command, *_more(command))

    return make


def own_environment(project: Project) -> None:
    """Make an environment that has gsd and pip, and a package with a plugin to install."""
    begun(project)
    environment = project.base / "env"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    [site] = environment.glob(SITE)
    (site / "gsd.pth").write_text("\n".join(path for path in sys.path if path))
    wheel(project.base, "1.0").rename(project.base / MINE)
    project.python = str(environment / "bin" / "python")
    project.environment["PYTHONDONTWRITEBYTECODE"] = "1"


def finished(project: Project) -> None:
    """Make a project whose milestone can be completed."""
    begun(project)
    _do(project, "run", *FAKE, "--yes")


def _more(command: tuple[str, ...]) -> tuple[str, ...]:
    starts = command[0] in ("plan", "execute", "verify", "discuss", "quick", "debug", "map", "milestone")
    return (*FAKE, "--yes", "--no-input") if starts else ()


def _do(project: Project, *arguments: str | Path) -> None:
    done = project.gsd(*arguments)
    assert done.exit == 0, (arguments, done.out, done.err)


def _step(*arguments: str, before: Callable[[Project], None]) -> Case:
    return Case(name=" ".join(arguments[:2]), arguments=arguments, before=before, steps=True)


def with_a_setting(project: Project) -> None:
    """Make a project with a setting of its own."""
    begun(project)
    _do(project, "settings", "set", "run.gap_rounds", "1")


CASES = (
    Case(name="phase add", arguments=("phase", "add", "Export to CSV", "--goal", "It exports"), before=begun),
    Case(name="phase insert", arguments=("phase", "insert", "1", "Hot fix"), before=begun),
    Case(
        name="phase remove",
        arguments=("phase", "remove", "1.1"),
        before=after(
            ("phase", "insert", "1", "A"), ("phase", "insert", "1", "B"), ("phase", "insert", "1", "C")
        ),
    ),
    Case(name="todo add", arguments=("todo", "add", "translate it", "--area", "ui"), before=begun),
    Case(name="todo done", arguments=("todo", "done", "old"), before=begun),
    Case(name="pause", arguments=("pause", "the keys come later"), before=begun),
    Case(name="settings set", arguments=("settings", "set", "run.gap_rounds", "1"), before=begun),
    Case(name="health --repair", arguments=("health", "--repair", "--yes"), before=without_state),
    Case(name="plugins new", arguments=("plugins", "new", "notes", "--hook", "find_gaps"), before=begun),
    Case(
        name="plugins install",
        arguments=("plugins", "install", f"../{MINE}", "--no-index"),
        before=own_environment,
    ),
    Case(name="settings unset", arguments=("settings", "unset", "run.gap_rounds"), before=with_a_setting),
    _step("discuss", "2", "use SQLite", before=begun),
    _step("plan", "2", before=begun),
    _step("execute", "2", before=after(("plan", "2"))),
    _step("verify", "2", before=after(("plan", "2"), ("execute", "2"))),
    _step("quick", "add a version option", before=begun),
    _step("debug", "the list is empty", before=begun),
    _step("map", before=begun),
    _step("milestone", "audit", before=finished),
    _step("milestone", "complete", before=finished),
)


@define
class Campaign:
    """One command that is killed again and again, each time in the same project as it was before."""

    case: Case
    project: Project
    expected: dict[str, Any] = field(factory=dict[str, Any])
    seconds: float = 0.0
    calls: int = 0
    said: str = ""
    hit: Counter[str] = field(factory=Counter[str])

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line."""
        return (*self.case.arguments, *_more(self.case.arguments))

    def prepare(self) -> None:
        """Make the project, and look at what the command does when nobody disturbs it."""
        self.project.base.mkdir(parents=True, exist_ok=True)
        self.case.before(self.project)
        shutil.copytree(self.project.base, self._kept, symlinks=True)
        done = self.project.gsd(*self.arguments)
        assert done.exit == self.case.exit, done.out + done.err
        self.seconds, self.said = done.seconds, _normal(done.out or done.err).splitlines()[-1]
        self.expected = self.picture()
        self.restore()
        self.calls = self._traced(None)
        self.restore()

    @property
    def _kept(self) -> Path:
        return self.project.base.with_name(f"{self.project.base.name}-kept")

    def restore(self) -> None:
        """Make the project as it was before the command."""
        self.end()
        # The same folder, because a copied journal is not one's own.
        shutil.rmtree(self.project.base)
        shutil.copytree(self._kept, self.project.base, symlinks=True)

    def end(self) -> None:
        """End what the project's runs have left running."""
        # Those that were started have ended, and their ids may be those of other processes by now.
        self.project.started.clear()
        self.project.clear()

    def kill_once(self, chance: random.Random, *, at_call: bool) -> Iterator[str]:
        """Kill the command at a random moment, repeat it, and yield what is wrong afterwards."""
        self.restore()
        if at_call:
            moment = chance.randint(1, self.calls)
            where = f"call {moment} of {self.calls}"
            self._traced(moment)
        else:
            moment_of_time = chance.uniform(0.2, 1.0) * self.seconds
            where = f"{moment_of_time:.3f} s"
            started = self.project.start(*self.arguments)
            time.sleep(moment_of_time)
            started.signal(signal.SIGKILL, group=True)
            started.process.wait()
        for defect in self._repeat(self.said in _normal(self.project.started[-1].output)):
            yield f"{self.case.name}, killed at {where}: {defect}"

    def _repeat(self, said: bool) -> Iterator[str]:
        pending = [name for name in RECORDS if (self.project.journal_file.parent / name).exists()]
        self.hit["said" if said else " and ".join(pending) or "before or after it"] += 1
        if "edit.json" in pending and not said:
            following = self.project.gsd("next", "--json")
            named = json.loads(following.out)["command"] if following.exit == 0 else following.err
            if not named.endswith(f"gsd {_typed(self.case.arguments)}"):
                yield f"next names {named!r}"
        if not said:
            again = self.project.gsd(*self.arguments)
            if again.exit != self.case.exit:
                yield f"repeated, it exits with {again.exit}: {again.out}{again.err}"
        found = self.picture()
        if said:
            found["left"] = [one for one in found["left"] if one not in RECORDS]
        for key, value in self.expected.items():
            if found[key] != value:
                yield f"{key} differ: {_difference(value, found[key])}"

    def picture(self) -> dict[str, Any]:
        """Return what is in the project, without times and ids."""
        root, base = self.project.root, self.project.base
        files = {
            _normal(path.relative_to(root).as_posix()): _normal(path.read_text("utf-8", "replace"))
            for path in sorted(root.rglob("*"))
            if path.is_file() and not {".git", "autopilot", "__pycache__"} & {*path.relative_to(root).parts}
        }
        left = [_normal(path.relative_to(base).as_posix()) for path in base.rglob(DRAFT)]
        left += [path.name for path in (root / ".git").rglob("*.lock")]
        left += [path.name for path in (root / ".git" / "gsd").rglob("*") if path.name in RECORDS]
        left += [path.name for path in base.glob("env/*.json")]
        # pip unpacks there, and leaves it to the system when it is killed; so does Python with the empty file
        # by which it finds out whether it can write there.
        left += [
            path.name
            for path in (base / "tmp").iterdir()
            if not (path.name.startswith("pip-") or (path.is_file() and path.stat().st_size <= len(b"blat")))
        ]
        installed = {
            path.relative_to(base).as_posix(): path.read_text("utf-8") if "plugin_mine" in path.name else ""
            for path in base.glob(f"env/{SITE}/**/*")
            if path.is_file() and path.suffix != ".pyc"
        }
        facts = Counter(
            f"{fact.kind} {fact.step}"
            for fact in self.project.facts("step.completed", "task.committed", "question.asked")
        )
        fsck = subprocess.run(
            ["git", "fsck", "--strict", "--no-dangling"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        return {
            "files": files,
            "commits": git(root, "log", "--format=%s").splitlines(),
            "uncommitted": git(root, "status", "--porcelain"),
            "tags": git(root, "tag"),
            "installed": installed,
            "left": sorted(left),
            "facts": dict(facts),
            "fsck": fsck.stdout + fsck.stderr if fsck.returncode else "",
            "processes": [process.pid for process in self.project.leftovers()],
        }

    def _traced(self, stop: int | None) -> int:
        """Run the command below strace, kill its group at the *stop*-th call, and return their number."""
        read, write = os.pipe()
        traced = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", f"trace={CALLS}", "-e", "signal=none"]
        traced += ["-e", f"inject={CALLS}:delay_exit={DELAY}", "-s", "0", "-o", f"/dev/fd/{write}"]
        out, err = (self.project.base / f"traced.{name}" for name in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [*traced, self.project.python, "-m", "gsd_core", *self.arguments],
                cwd=self.project.root,
                env=self.project.environ({}),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(write,),
                start_new_session=True,
            )
        os.close(write)
        self.project.started.append(Started(process, out, err))
        number = 0
        with os.fdopen(read, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                number += "resumed>" not in line
                if number == stop:
                    os.killpg(process.pid, signal.SIGKILL)
                    break
        process.wait()
        return number


def _typed(arguments: tuple[str, ...]) -> str:
    return " ".join(f"'{word}'" if " " in word else word for word in arguments)


def _normal(text: str) -> str:
    for pattern, name in _CHANGING:
        text = pattern.sub(name, text)
    return text


def _difference(before: Any, now: Any) -> str:
    if not isinstance(before, dict):
        return f"{before!r} → {now!r}"
    was, found = cast("dict[str, object]", before), cast("dict[str, object]", now)
    keys = sorted(key for key in {*was, *found} if was.get(key) != found.get(key))
    return "; ".join(f"{key}: {was.get(key)!r} → {found.get(key)!r}" for key in keys)[:3000]
