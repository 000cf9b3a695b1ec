"""Processes that outlive us: known by a mark in their environment, ended before a run goes on.

After a SIGKILL of ``gsd`` alone, its agents live on and go on writing. Every process of a run
carries ``GSD_RUN``; the next start, holding the project's lock, first ends all that do.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from attrs import define, field, frozen

from .errors import ProjectError

GRACE = timedelta(seconds=2)
"""How long a process may take to end after SIGTERM, and again after SIGKILL."""

_PROC = Path("/proc")


@frozen(kw_only=True)
class Process:
    """A process as it was seen; *start* tells it from a later one with the same id.

    *mark* is the value of the variable that was looked for, ``None`` if it has none.
    """

    pid: int
    parent: int
    owner: int
    start: str
    mark: str | None


Table: TypeAlias = Callable[[str], Iterable[Process]]


def end_marked(
    run_ids: Collection[str] | None,
    *,
    env_name: str = "GSD_RUN",
    spare: Collection[int] = (),
    grace: timedelta = GRACE,
    table: Table | None = None,
) -> tuple[int, ...]:
    """End every process of this user whose environment says ``env_name=RUN``, and return their ids.

    *run_ids* ``None`` is any run. Their descendants are ended with them, marked or not.
    SIGTERM first, SIGKILL after *grace*. Never this process, its ancestors, or *spare*.
    Blocks. Raise ``ProjectError`` if a process outlives even that.
    """
    find = _Finder(table or processes, env_name, run_ids, frozenset(spare))
    seen = _signal(find(), signal.SIGTERM)
    _wait(find, grace)
    end = time.monotonic() + grace.total_seconds()
    # What was ended may have started others meanwhile: look again until there is nothing.
    while left := find():
        seen |= _signal(left, signal.SIGKILL)
        if time.monotonic() > end:
            pids = ", ".join(str(process.pid) for process in left)
            raise ProjectError(
                f"processes of an earlier run do not end: {pids}", hint=f"end them: kill -9 {pids}"
            )
        time.sleep(0.01)
    return tuple(sorted(seen))


def start_time(pid: int) -> str | None:
    """Return when *pid* was started, as text to compare; ``None`` if it does not run (any more)."""
    if sys.platform == "linux":
        process = _read_process(pid, "")
        return process.start if process else None
    fields = _ps("-o", "stat=,lstart=", "-p", str(pid)).split()
    return " ".join(fields[1:]) if fields and not fields[0].startswith("Z") else None


def boot_id() -> str:
    """Return what identifies this boot of the machine: process ids mean nothing beyond it."""
    if sys.platform == "linux":
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    command = ["sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def processes(env_name: str) -> Iterator[Process]:
    """Yield the processes that run now, with the value of *env_name* where it can be seen."""
    return by_proc(env_name) if sys.platform == "linux" else by_ps(env_name)


@define
class _Finder:
    """Finds what is to be ended, again and again; whom it found once it knows without a marked parent."""

    table: Table
    env_name: str
    run_ids: Collection[str] | None
    spare: frozenset[int]
    known: set[tuple[int, str]] = field(factory=set[tuple[int, str]], init=False)

    def __call__(self) -> tuple[Process, ...]:
        """Return the processes to end, as they are now."""
        every = {process.pid: process for process in self.table(self.env_name)}
        spared = self.spare | _ancestry(every, os.getpid())
        roots = {pid for pid, process in every.items() if pid not in spared and self._is_meant(process)}
        doomed = [every[pid] for pid in sorted(_with_descendants(every, roots) - spared)]
        found = tuple(process for process in doomed if process.owner == os.geteuid())
        self.known |= {(process.pid, process.start) for process in found}
        return found

    def _is_meant(self, process: Process) -> bool:
        if (process.pid, process.start) in self.known:
            return True
        return process.mark is not None and (self.run_ids is None or process.mark in self.run_ids)


def _ancestry(every: dict[int, Process], pid: int) -> frozenset[int]:
    """Return *pid* and its ancestors."""
    found: set[int] = set()
    while pid not in found:
        found.add(pid)
        pid = every[pid].parent if pid in every else pid
    return frozenset(found)


def _with_descendants(every: dict[int, Process], roots: set[int]) -> set[int]:
    found = set(roots)
    while more := {pid for pid, process in every.items() if process.parent in found} - found:
        found |= more
    return found


def _signal(targets: Iterable[Process], number: signal.Signals) -> set[int]:
    """Send a signal to each of *targets* that is still the process it was, and return their ids."""
    reached: set[int] = set()
    for process in targets:
        if start_time(process.pid) == process.start:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
                reached.add(process.pid)
    return reached


def _wait(find: Callable[[], tuple[Process, ...]], grace: timedelta) -> None:
    end = time.monotonic() + grace.total_seconds()
    while find() and time.monotonic() < end:
        time.sleep(0.02)


def by_proc(env_name: str) -> Iterator[Process]:
    """Yield the processes that Linux's ``/proc`` shows; zombies have ended."""
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and (process := _read_process(int(entry.name), env_name)):
            yield process


def _read_process(pid: int, env_name: str) -> Process | None:
    """Read one process. Source: proc_pid_stat(5); fields are counted from 1, the second may hold spaces."""
    folder = _PROC / str(pid)
    try:
        fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        owner = folder.stat().st_uid
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    mark = _mark(folder / "environ", env_name) if env_name else None
    return Process(pid=pid, parent=int(fields[1]), owner=owner, start=fields[19].decode(), mark=mark)


def _mark(environ: Path, env_name: str) -> str | None:
    try:
        variables = environ.read_bytes().split(b"\0")
    except OSError:
        return None
    prefix = f"{env_name}=".encode()
    return next(
        (os.fsdecode(line.removeprefix(prefix)) for line in variables if line.startswith(prefix)), None
    )


def by_ps(env_name: str) -> Iterator[Process]:
    """Yield the processes that ``ps`` shows (macOS, BSD).

    ``ps`` writes the environment behind the command: what it says without it is taken off first.
    """
    columns = "pid=,ppid=,uid=,stat=,lstart=,command="
    plain = dict(_ps_lines(_ps("axww", "-o", columns)))
    pattern = re.compile(rf"(?:^|\s){re.escape(env_name)}=(\S*)")
    for pid, (fields, command) in _ps_lines(_ps("axeww", "-o", columns)):
        if fields[3].startswith("Z") or pid not in plain:
            continue
        mark = pattern.search(command.removeprefix(plain[pid][1]))
        yield Process(
            pid=pid,
            parent=int(fields[1]),
            owner=int(fields[2]),
            start=" ".join(fields[4:9]),
            mark=mark[1] if mark else None,
        )


def _ps_lines(text: str) -> Iterator[tuple[int, tuple[list[str], str]]]:
    for line in text.splitlines():
        fields = line.split(None, 9)
        if len(fields) == 10:
            yield int(fields[0]), (fields[:9], fields[9])


def _ps(*arguments: str) -> str:
    environment = {**os.environ, "LC_ALL": "C", "COLUMNS": "100000"}
    done = subprocess.run(["ps", *arguments], capture_output=True, env=environment, check=False)
    return os.fsdecode(done.stdout)
