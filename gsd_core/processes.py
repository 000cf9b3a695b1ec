"""Processes that outlive a run: found by a variable in their environment, and ended.

After a SIGKILL of ``gsd`` alone, its agents keep running and writing. Every process of a run carries
``GSD_RUN``: the run's id and the file of its journal (:meth:`gsd_core.journal.store.Journal.mark_of`). The
next start takes the project's lock and then ends all processes that carry the mark of one of the project's
runs. The id alone is not enough: a copy of the project has the same runs, and may be at work beside it.

Only that variable decides. The journal records process ids and start times too, but only
for people to read: an id may belong to another process by now, and earlier versions recorded start times
in other units (clock ticks since boot, or the text that ``ps`` prints).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import attrs

from .errors import ProjectError, UserError

# psutil is imported where it is used: most commands do not need it.
if TYPE_CHECKING:
    import psutil

GRACE = timedelta(seconds=2)
"""How long a process may take to end after SIGTERM, and again after SIGKILL."""


@attrs.frozen(kw_only=True)
class Process:
    """A process at the moment it was seen.

    *handle* is its identity: psutil compares the start time too, so a later process with the same id is
    another one. *mark* is the value of the environment variable that was looked for, ``None`` if it has
    none or cannot be read.
    """

    handle: psutil.Process
    parent: int
    mark: str | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        return int(self.handle.pid)

    def is_running(self) -> bool:
        """Whether this very process still runs; a zombie has ended."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            return bool(self.handle.is_running() and self.handle.status() != psutil.STATUS_ZOMBIE)
        return False

    def is_ours(self) -> bool:
        """Whether it belongs to the user of this process."""
        import psutil

        with suppress(psutil.Error):
            return bool(self.handle.uids().effective == os.geteuid())
        return False

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal unless the process has ended; return whether it was sent."""
        import psutil

        with suppress(psutil.Error):
            self.handle.send_signal(number)
            return True
        return False


def supervised(
    command: Sequence[str], *, processes: int = 0, memory: int = 0, keyring: bool = False
) -> tuple[str, ...]:
    """Return a command line that runs *command*, and ends all that it started when it ends.

    It has no terminal. If it and what it started are more than so many *processes*, or need more bytes of
    *memory*, they are ended; 0 is no limit. *keyring*: it gets a new one.

    On systems without adoption of orphans (all but Linux) it is the same command: what leaves its process
    group there is found by its mark only. See :mod:`gsd_core.supervise`.
    """
    if sys.platform != "linux" or not sys.executable:
        return tuple(command)
    options = (str(processes), str(memory), str(int(keyring)))
    # Not -m: the package would be imported, and -I keeps the working directory from being a place of modules.
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("supervise.py")), *options, *command)


def total_memory() -> int:
    """Return the size of this machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


ListProcesses: TypeAlias = Callable[[str], Iterable[Process]]


def end_marked(
    marks: Collection[str] | None,
    *,
    env_name: str = "GSD_RUN",
    spare: Collection[int] = (),
    grace: timedelta = GRACE,
    listed: ListProcesses | None = None,
) -> tuple[int, ...]:
    """End this user's processes whose environment has *env_name* set to one of *marks*; return their ids.

    ``None`` as *marks* is any run. Their descendants are ended too, marked or not. They get a SIGTERM,
    and after *grace* a SIGKILL. This process, its ancestors and *spare* are never ended. Blocks.
    Raises ``ProjectError`` if a process survives even that.
    """
    if listed is None and not _is_any_marked(env_name, marks):
        return ()
    listed = listed or processes
    known: set[psutil.Process] = set()

    def find() -> list[Process]:
        found = {process.pid: process for process in listed(env_name)}
        spared = {*spare, *_ancestry(found, os.getpid())}
        marked = {
            pid
            for pid, process in found.items()
            # A descendant without the mark is no longer one once its parent has ended.
            if process.handle in known
            or (process.mark is not None and (marks is None or process.mark in marks))
        }
        family = marked - spared
        while more := {pid for pid, process in found.items() if process.parent in family} - family:
            family |= more
        targets = [found[pid] for pid in sorted(family - spared) if found[pid].is_ours()]
        known.update(process.handle for process in targets)
        return targets

    targets = find()
    ended = {process.pid for process in targets if process.signal(signal.SIGTERM)}
    # Poll, because waiting for our own child would take its exit status away from asyncio.
    end = time.monotonic() + grace.total_seconds()
    while any(process.is_running() for process in targets) and time.monotonic() < end:
        time.sleep(0.01)
    end = time.monotonic() + grace.total_seconds()
    # The processes may have started others before they ended, so look again until none is left.
    while targets and (targets := find()):
        ended |= {process.pid for process in targets if process.signal(signal.SIGKILL)}
        if time.monotonic() > end:
            pids = " ".join(str(process.pid) for process in targets)
            hint = f"end them yourself: kill -9 {pids}"
            raise ProjectError(f"processes of an earlier run cannot be ended: {pids}", hint=hint)
        time.sleep(0.01)
    return tuple(sorted(ended))


def _is_any_marked(env_name: str, marks: Collection[str] | None) -> bool:
    """Whether a process has one of *marks*; on Linux, far cheaper than to ask psutil about each process."""
    if sys.platform != "linux":
        return True
    wanted = os.fsencode(env_name)
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # of another user, or ended meanwhile
            for name, _, mark in (entry.partition(b"=") for entry in file.read_bytes().split(b"\0")):
                if name == wanted and (marks is None or os.fsdecode(mark) in marks):
                    return True
    return False


def _ancestry(found: dict[int, Process], pid: int) -> set[int]:
    """Return *pid* and its ancestors."""
    line: set[int] = set()
    while pid not in line:
        line.add(pid)
        pid = found[pid].parent if pid in found else pid
    return line


def processes(env_name: str = "") -> Iterator[Process]:
    """Yield the running processes, with the value of the variable *env_name* where it can be read."""
    import psutil

    # Not process_iter(): its cached handles hide a process that took over an id since the last call.
    for pid in psutil.pids():
        mark = None
        with suppress(psutil.Error):
            handle = psutil.Process(pid)
            with handle.oneshot():
                if handle.status() == psutil.STATUS_ZOMBIE:
                    continue
                parent = handle.ppid()
            if env_name:
                # This fails for other users' processes, and the kernel's own have no environment.
                with suppress(psutil.Error, OSError):
                    mark = handle.environ().get(env_name)
            yield Process(handle=handle, parent=parent, mark=mark)


def works_in(name: str, folder: Path) -> bool:
    """Whether a program of that *name* runs in *folder* or below it, as far as this user may know."""
    import psutil

    running = [process.info for process in psutil.process_iter(["name", "cwd"])]
    return any(one["name"] == name and Path(one["cwd"] or "/").is_relative_to(folder) for one in running)


def start_time(pid: int) -> str | None:
    """Return when the process *pid* was started (ISO 8601, UTC); ``None`` if it does not run."""
    import psutil

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            return datetime.fromtimestamp(process.create_time(), UTC).isoformat(timespec="milliseconds")
    return None


def process_start(pid: int) -> str:
    """Return a text that tells the process *pid* from a later one with its id; empty if it does not run.

    It means something until the machine is restarted (see :func:`boot_id`), and it stays the same when the
    clock is set: :func:`start_time`, which is for people, is then another one.
    """
    if sys.platform != "linux":
        return start_time(pid) or ""
    try:
        # proc(5): the name of the program in parentheses may contain anything; then state is the first
        # field, and the start in clock ticks since the boot is the twentieth.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def signal_process(pid: int, start: str, number: signal.Signals) -> bool:
    """Send a signal to the process that :func:`process_start` was *start* of; return whether it was sent."""
    if not pid or not start:
        return False
    with suppress(OSError):
        # A descriptor of a process keeps its id from becoming that of another one between check and signal.
        held = os.pidfd_open(pid) if sys.platform == "linux" else -1
        try:
            if process_start(pid) != start:
                return False
            if sys.platform == "linux":
                signal.pidfd_send_signal(held, number)
            else:
                os.kill(pid, number)
            return True
        finally:
            if held >= 0:
                os.close(held)
    return False


@cache
def boot_id() -> str:
    """Return an id of this boot of the machine; a process id means nothing after the next one."""
    if sys.platform == "linux":
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    command = ["sysctl", "-n", "kern.bootsessionuuid"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def is_git_at_work(files: Collection[Path], folders: Collection[Path]) -> bool:
    """Whether a process has one of *files* open, or a git of this user works in one of *folders*.

    The processes of other users cannot be looked into; those that are called git count if a file is theirs.
    """
    import psutil

    wanted = {str(path) for path in files}
    owners: set[int] = set()
    for path in files:
        with suppress(OSError):
            owners.add(path.stat().st_uid)
    for process in psutil.process_iter():
        try:
            is_git = process.name() == "git" or process.name().startswith("git-")
            if not wanted.isdisjoint(file.path for file in process.open_files()):
                return True
            cwd = Path(process.cwd()) if is_git else None
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        except (psutil.Error, OSError):
            with suppress(psutil.Error):
                if process.name() == "git" and process.uids().effective in owners - {os.geteuid()}:
                    return True
            continue
        if cwd and any(cwd.is_relative_to(folder) for folder in folders):
            return True
    return False


RUN_MARKS = ("GSD_RUN", "GSD_STEP", "GSD_CALL")
"""Variables that every process of a run's agents and checks gets."""


def refuse_agents(what: str, *, run_pid: int | None = None) -> None:
    """Raise ``UserError`` if this process belongs to a run's agent or check; *what* only a person may do.

    *run_pid* is the process of the run that is active in the project, if any. Without a sandbox, a process
    that hides where it comes from can get past this.

    The evidence is a mark in the environment of this process, of an ancestor, or of the leader of its session
    or group: ``env -i`` clears only its own. What the active run started is not a person, and neither is a
    process that was detached from its parents since then, has no terminal, and is in the run's control
    group. A process that opens a pseudo terminal in a detached session, or that moves to another control
    group, leaves no evidence. Only a sandbox keeps it out.
    """
    if why := _why_not_a_person(run_pid):
        hint = "do it in your own terminal, outside of the run"
        raise UserError(f"only a person may {what}, and {why}", hint=hint)


def remember_origin() -> None:
    """Look now at where this process comes from, for later calls of :func:`refuse_agents`.

    For servers, when they start: the terminal that one was started in may be closed later, and then it would
    look like a process that was detached.
    """
    _origin(os.getpid())


@attrs.frozen(kw_only=True)
class _Origin:
    """Where a process comes from, at the first look: itself and its *ancestors*, in this order.

    *mark* says which of them has a mark of a run, if any. *orphan* is the eldest that was not there from the
    start of the machine or the container, if it lost its parent and none of them has a terminal.
    """

    ancestors: tuple[psutil.Process, ...]
    mark: str = ""
    orphan: psutil.Process | None = None


def _why_not_a_person(run_pid: int | None) -> str:
    if mark := next((name for name in RUN_MARKS if name in os.environ), ""):
        return f"this process has {mark}={os.environ[mark]} in its environment"
    origin = _origin(os.getpid())
    if origin.mark or run_pid is None:
        return origin.mark
    import psutil

    with suppress(psutil.Error):
        run = psutil.Process(run_pid)
        if run in origin.ancestors[1:]:
            return f"this process was started by the active run (pid {run_pid})"
        orphan = origin.orphan
        # A service or a session that was started in the meantime has its own control group.
        if (
            orphan
            and orphan.create_time() > run.create_time()
            and _control_group(orphan.pid) == _control_group(run_pid)
        ):
            return f"this process was detached from its parents since the active run began (pid {run_pid})"
    return ""


@cache
def _origin(pid: int) -> _Origin:
    """Return the origin of this process, whose id is *pid*: a fork has another one."""
    import psutil

    line = [psutil.Process(pid)]
    with suppress(psutil.Error):
        line += line[0].parents()
    pids = {process.pid for process in line}
    leaders = [leader for leader in {os.getsid(0), os.getpgrp()} - pids if leader > 0]
    marked = ""
    for process in [*line, *(psutil.Process(one) for one in leaders if psutil.pid_exists(one))]:
        with suppress(psutil.Error, OSError):
            environment = process.environ()
            if mark := next((name for name in RUN_MARKS if name in environment), ""):
                about = f"process {process.pid}, which it comes from"
                marked = f"{about}, has {mark}={environment[mark]} in its environment"
                break
    return _Origin(ancestors=tuple(line), mark=marked, orphan=_orphan(line))


def _orphan(line: list[psutil.Process]) -> psutil.Process | None:
    import psutil

    # Orphans get a new parent: process 1, or a service manager.
    adopters = [process for process in line if process.pid == 1 or _is_service_manager(process)]
    family = [process for process in line if process not in adopters]
    if not adopters or not family:
        return None
    with suppress(psutil.Error):
        return None if any(process.terminal() for process in family) else family[-1]
    return None


def _is_service_manager(process: psutil.Process) -> bool:
    import psutil

    with suppress(psutil.Error):
        return process.name() in ("systemd", "launchd")
    return False


def _control_group(pid: int) -> str:
    """Return the control group of a process; empty on macOS, which has none, or if it cannot be read."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    return ""
