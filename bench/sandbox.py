"""Measure what it costs to start a process in the sandbox, compared with starting it directly.

Run ``python bench/sandbox.py [ROUNDS]`` where gsd is installed and bubblewrap works; it takes a few seconds.

The project is a new repository, and the places are those of a run: the operating system, the toolchains of
this machine, a private home and a throwaway git directory. ``true`` is started directly and confined,
alternately, because a machine's load changes. The results are the medians, with the quartiles: milliseconds
that the sandbox adds, the ratio of the two, and the times in which the throwaway git directory and the new
home of a check are made.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gsd_core import ConfinedProcess, SandboxUnavailable
from gsd_core.git import throwaway
from gsd_core.git.command import Command
from gsd_core.run import private_home
from gsd_core.run.places import prepare
from gsd_plugins import bubblewrap

LIMIT_MS = 50
ROUNDS = 40


def main() -> int:
    """Print the results; return 1 if the sandbox adds more than the limit, 2 if there is none."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    launcher = bubblewrap.launcher_of(bubblewrap.program("bwrap"))
    if isinstance(launcher, SandboxUnavailable):
        print(f"no sandbox: {launcher.reason}")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        os.environ["XDG_CACHE_HOME"] = str(Path(folder, "cache"))
        # The copies of caches are made once for each project.
        private_home.MAX_BYTES = 0
        added, ratios, copies, homes = measure(project, rounds)
    print(f"sandbox: {spread(added)} ms added to each start, {spread(ratios)} times a direct start")
    print(
        f"throwaway git directory: {spread(copies)} ms ({rounds} rounds, limit {LIMIT_MS} ms for the sandbox)"
    )
    print(f"new home of a check: {spread(homes)} ms")
    return 1 if statistics.median(added) > LIMIT_MS else 0


def measure(project: Path, rounds: int) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return for each round the milliseconds added, the ratio, and those for git and for the home."""
    run = ("git", "-C", str(project))
    subprocess.run([*run, "init", "-q"], check=True)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*run, *author, "commit", "-qm", "first", "--allow-empty"], check=True)
    home = private_home.private_home(project)
    added: list[float] = []
    ratios: list[float] = []
    copies: list[float] = []
    homes: list[float] = []
    for _ in range(rounds):
        folder = Path(tempfile.mkdtemp(dir=project.parent))
        began = time.perf_counter()
        copy = throwaway.make(Command(root=project), folder)
        copies.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        private_home.check_home(home, folder)
        homes.append((time.perf_counter() - began) * 1000)
        direct = milliseconds("true")
        began = time.perf_counter()
        started = bubblewrap.confined(
            ConfinedProcess(
                command=("true",),
                cwd=project,
                environment={"PATH": os.environ["PATH"]},
                places=prepare(project, project, writable=True, git=copy, home=home),
                home=home,
            )
        )
        assert not isinstance(started, SandboxUnavailable)
        confined = (time.perf_counter() - began) * 1000 + milliseconds(*started.command)
        added.append(confined - direct)
        ratios.append(confined / direct)
        shutil.rmtree(folder)
    return added, ratios, copies, homes


def milliseconds(*command: str) -> float:
    """Return the wall time of a process."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def spread(values: list[float]) -> str:
    """Return the median of *values* and their quartiles as text."""
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.1f} (quartiles {low:.1f} and {high:.1f})"


if __name__ == "__main__":
    sys.exit(main())
