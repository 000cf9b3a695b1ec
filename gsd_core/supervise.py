"""A program that starts a command and ends everything that the command started when it ends (Linux).

``python -I -S supervise.py PROCESSES BYTES KEYRING COMMAND...`` exits as the command does. A process that
leaves its session and clears its environment cannot be found by a mark, and once its parent has ended, not by
its ancestors either. Here it can, because the kernel hands orphans to the nearest ancestor that asked for
them (``PR_SET_CHILD_SUBREAPER``, see ``prctl(2)``).

The command gets a new session, so it has no controlling terminal, and none as a standard stream. If KEYRING
is 1, its keyring is new too. If it and its descendants are more than PROCESSES or need more than BYTES of
memory, they are ended, and its standard error says so; 0 is no limit. The user's limits for processes
(``RLIMIT_NPROC``) would not do: they count what the user does elsewhere, and do not apply to root.

There are two processes around the command. The outer one is what the caller knows: it passes signals on, and
watches whether the caller still lives. The inner one adopts the orphans. It is in another session, so a
caller that kills the outer one, with its process group, does not kill the one that cleans up.

The module imports little, and only the standard library, because it is started for every command: this takes
about 20 milliseconds.
"""

# ruff: noqa: PTH112, PTH116, PTH123, PTH208 -- pathlib takes longer to import than all the rest

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
GRACE = 1.0
"""Seconds that processes have to end after SIGTERM; less than those after which gsd kills this program."""
GIVE_UP = 5.0
"""Seconds after which processes that cannot be killed (of another user) are left alone."""
POLL = 0.5
ENDED = "gsd ended this command"
KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}
"""The number of the system call ``keyctl(2)``, for which the C library has no function."""
KEYCTL_JOIN_SESSION_KEYRING = 1
OOM_SCORE = b"500"
"""If memory runs out all the same, the kernel ends this and nothing of the user's: see ``proc(5)``."""
TEMPORARY = ("tmp", "var/tmp", "run", "dev/shm")
"""Folders that are in memory inside of a sandbox."""
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOT_STARTED = 127


def main(processes: int, memory: int, keyring: bool, command: list[str]) -> int:
    """Run *command* to its end and return its wait status, after all its descendants have ended."""
    caller = os.getppid()
    _adopt_orphans()
    signals, wake = _signal_pipe()
    orders, order = os.pipe()
    inner = os.fork()
    if inner == 0:
        os.close(order)
        os._exit(_exit_code(_inner(processes, memory, keyring, command, orders)))
    os.close(orders)
    _let_go_of_files(keep={signals, wake, order})
    status = None
    while status is None:
        readable, _, _ = select.select([signals], [], [], POLL)
        if readable:
            with suppress(OSError):
                os.write(order, os.read(signals, 100))
        if os.getppid() != caller:
            break  # gsd was killed: the inner process sees the end of the pipe
        done, found = os.waitpid(inner, os.WNOHANG)
        status = found if done else None
    os.close(order)
    if status is None:
        _, status = os.waitpid(inner, 0)
    _end_descendants(0.0)  # there are none, unless the command killed the inner process
    return status


def _inner(processes: int, memory: int, keyring: bool, command: list[str], orders: int) -> int:
    """Run *command* and end what it leaves; return its wait status."""
    os.setsid()
    _adopt_orphans()
    signals, wake = _signal_pipe()
    child = os.fork()
    if child == 0:
        _run(keyring, command)
    errors = os.dup(2)
    _let_go_of_files(keep={signals, wake, orders, errors})
    with suppress(OSError):  # only root may: among thousands of processes, this one still gets its turn
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    deadline = float("inf")
    while True:
        readable, _, _ = select.select([signals, orders], [], [], POLL if deadline == float("inf") else 0.02)
        received = b"".join(os.read(one, 100) for one in readable)
        if orders in readable and not received:
            received = bytes([signal.SIGTERM])  # the outer process is gone
            deadline = min(deadline, time.monotonic())
        for number in received:
            if number in PASSED_ON:
                _signal_group(child, number)
                deadline = min(deadline, time.monotonic() + GRACE)
        status = _reap(child)
        if status is None and (excess := _excess(processes, memory)):
            with suppress(OSError):
                os.write(errors, f"{ENDED}: {excess}\n".encode())
            _signal_group(child, signal.SIGKILL)
            deadline = 0.0
        if status is not None or time.monotonic() > deadline:
            break
    left = _end_descendants(GRACE if status is not None else 0.0, child)
    return status if status is not None else left if left is not None else signal.SIGKILL


def _excess(processes: int, memory: int) -> str:
    """Return of what the descendants have too much, if so. Only if the machine has that much, it counts."""
    with suppress(OSError, LookupError, ValueError):
        with open("/proc/loadavg", "rb") as file:
            running = int(file.read().split()[3].partition(b"/")[2])
        if 0 < processes < running and len(_descendants()) > processes:
            return f"it had more than {processes} processes (limits.max_processes)"
        with open("/proc/meminfo", "rb") as file:
            sizes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(b":") for line in file)}
        used = (sizes[b"MemTotal"] - sizes[b"MemAvailable"]) * 1024
        if 0 < memory < used and _memory_of(_descendants()) > memory:
            return f"it needed more than {memory >> 20} MiB of memory (limits.max_memory)"
    return ""


def _memory_of(pids: list[int]) -> int:
    """Return the bytes of memory that processes need, with the files in their private temporary folders."""
    total, folders = 0, {os.stat(f"/{name}").st_dev for name in TEMPORARY if os.path.isdir(f"/{name}")}
    for pid in pids:
        with suppress(OSError, LookupError, ValueError):
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith(b"Pss:")) * 1024
            for name in TEMPORARY:
                if (device := os.stat(f"/proc/{pid}/root/{name}").st_dev) not in folders:
                    folders.add(device)
                    found = os.statvfs(f"/proc/{pid}/root/{name}")
                    total += (found.f_blocks - found.f_bfree) * found.f_frsize
    return total


def _run(keyring: bool, command: list[str]) -> None:
    """Become *command*, in a new session, as if it had been started directly."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in filter(os.isatty, (0, 1, 2)):
            os.dup2(null, number)
        if keyring and (call := KEYCTL.get(os.uname().machine)):
            ctypes.CDLL(None).syscall(call, KEYCTL_JOIN_SESSION_KEYRING, None)
        with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:
            file.write(OOM_SCORE)
        signal.set_wakeup_fd(-1)
        for number in (*PASSED_ON, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _end_descendants(grace: float, child: int = 0) -> int | None:
    """End every descendant, and return the wait status of *child*, if it is among them."""
    found: int | None = None
    began, asked = time.monotonic(), grace == 0.0
    while True:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                found = ended[1] if ended[0] == child else found
        except ChildProcessError:
            return found  # no child is left, so no descendant is: orphans would be children
        elapsed = time.monotonic() - began
        if elapsed > grace + GIVE_UP:
            return found
        if not asked or elapsed >= grace:
            for pid in _descendants():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if asked and elapsed >= grace else signal.SIGTERM)
            asked = True
        time.sleep(0.005)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of the program, in parentheses, may contain anything.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found, todo = list[int](), [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _reap(child: int) -> int | None:
    """Collect what has ended; return the wait status of *child* once it has."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                return ended[1]
    return None


def _signal_group(child: int, number: int) -> None:
    for target in (-child, child):  # the group does not exist before the child made it
        with suppress(ProcessLookupError, PermissionError):
            os.kill(target, number)
            return


def _adopt_orphans() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _signal_pipe() -> tuple[int, int]:
    """Return a pipe that receives the numbers of the signals that arrive."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*PASSED_ON, signal.SIGCHLD):
        signal.signal(number, _do_nothing)
    return reading, writing


def _do_nothing(_number: int, _frame: object) -> None:
    """Handle a signal: Python writes its number to the pipe only if the signal has a handler."""


def _let_go_of_files(keep: set[int]) -> None:
    """Close what only the command should have: a pipe ends when it does, and secrets are in others."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    for name in os.listdir("/proc/self/fd"):
        if (number := int(name)) > 2 and number not in keep:
            with suppress(OSError):
                os.close(number)


def _exit_code(status: int) -> int:
    """Return the exit code for a wait status; end by the same signal if there was one."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        # The command has left a core dump already, if it should.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    os._exit(_exit_code(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1", sys.argv[4:])))
