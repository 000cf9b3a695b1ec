"""The sandbox on Linux: bubblewrap (``bwrap``), which needs no daemon and no root.

A confined process gets new namespaces for users, mounts, processes, IPC and the host name, and no
capabilities. It sees the operating system read-only, a private ``/tmp``, ``/var/tmp`` and ``/run``, and the
places of the run. It keeps the network. When bwrap or its parent ends, every process inside is killed.

The options used exist since bubblewrap 0.4; see ``bwrap(1)``.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from gsd_core import (
    ConfinedProcess,
    Permanent,
    Place,
    SandboxedCommand,
    SandboxUnavailable,
    find_program,
    implements,
)
from gsd_core.hookspecs import gsd_sandbox

NAME = "bubblewrap"

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt"),
    # Other package managers, and NixOS.
    *("/nix", "/gnu", "/snap", "/home/linuxbrew/.linuxbrew", "/run/current-system"),
    # The certificates of openSUSE: /etc/ssl/certs is a link to them.
    "/var/lib/ca-certificates",
    # Runtimes read from here how many processors and how much memory they may use.
    *("/sys/devices/system/cpu", "/sys/fs/cgroup"),
)
"""The operating system: what exists of it is visible, read-only."""

PROGRAM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Where to look for programs first: a folder on PATH may belong to the project."""

KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/acpi", "/proc/scsi", "/proc/mtrr")
"""Settings of the kernel. Its checks compare the user with root, not capabilities: with ``/proc/sys``, a
confined root could name a program that the kernel starts outside. bwrap makes them read-only only if it finds
their folders writable, which it does not in a user namespace."""

KERNEL_MEMORY = ("/proc/kcore", "/proc/kmsg", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/timer_list")
"""Files about the kernel that only root can read."""

LOADER_VARIABLES = re.compile(r"LD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|MALLOC_.*")
"""Variables that can make a program run other code. They are set only inside, because bwrap
itself is started outside."""

NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    # With capabilities, root could unmount what protects the project's files.
    *("--cap-drop", "ALL"),
    # Not --new-session: SIGTERM to the caller's process group would no longer reach the confined process.
    # The caller starts bwrap in a new session, so there is no terminal to push input into either.
    "--die-with-parent",
)

PROBE_SECONDS = 10
LISTINGS = 10
"""How often to list what is to be hidden, while it changes between that and the start."""


@implements(gsd_sandbox)
async def confine(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
    """Start *process* with bwrap; on other systems than Linux, decline."""
    if sys.platform != "linux":
        return None
    return await asyncio.to_thread(confined, process)


def confined(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable:
    """Return the command that starts *process* with bwrap; raise ``Permanent`` if a place cannot be mounted.

    Blocks: it looks at the files to mount.
    """
    launcher = launcher_of(program("bwrap", process.cwd))
    if isinstance(launcher, SandboxUnavailable):
        return launcher
    if unusable := _unusable(process.places):
        return unusable
    outer, inner = launcher
    if process.max_processes and (prlimit := program("prlimit")):
        # Set inside, where it counts only what is in the sandbox. It has no effect on root.
        inner = (prlimit, f"--nproc={process.max_processes}", *inner)
    given = process.environment.items()
    environment = {name: value for name, value in given if not LOADER_VARIABLES.fullmatch(name)}
    inside = [part for name, value in given if name not in environment for part in ("--setenv", name, value)]
    # `env` would take a name with `=` for a variable.
    shell = ("/bin/sh", "-c", 'exec "$0" "$@"') if "=" in process.command[0] else ()
    command = (
        *(*outer, *system(), *_mounts(process.places), "--remount-ro", "/", *inside),
        *("--chdir", os.path.realpath(process.cwd), "--", *inner, *shell, *process.command),
    )
    # bwrap gets no other variables: it is process 1 inside, where its environment can be read.
    return SandboxedCommand(command=command, environment=environment, sandbox=NAME)


@cache
def launcher_of(bwrap: str) -> tuple[tuple[str, ...], tuple[str, ...]] | SandboxUnavailable:
    """Return what to put before the mounts, and what before the confined command; or why it does not work.

    It starts ``true`` confined, once for each *bwrap*: a user namespace may be forbidden in many ways.
    """
    if not bwrap:
        fix = "install the package bubblewrap (apt, dnf, pacman, zypper and apk call it that)"
        return SandboxUnavailable(reason="bwrap is not installed", fix=fix)
    plain = ((bwrap, *NAMESPACES), ())
    # SIGTERM to the process group would end bwrap at once, and with it all that runs inside. So it ignores
    # the signal, and the confined process, which inherits that, gets the default back.
    env = shutil.which("env", path=os.pathsep.join(PROGRAM_FOLDERS))
    ways: list[tuple[tuple[str, ...], tuple[str, ...]]] = [plain]
    if env:
        ways.insert(0, ((env, "--ignore-signal=TERM", *plain[0]), (env, "--default-signal=TERM")))
    error, has_changed = "", False
    for outer, inner in ways:
        for _ in range(LISTINGS):
            visible = system()
            error = _error_of((*outer, *visible, "--remount-ro", "/", "--", *inner, "true"))
            if not error:
                return outer, inner
            has_changed = has_changed or system() != visible
            if "/etc/" not in error and not has_changed:
                break
    if has_changed:
        # This must not be a reason to go without a sandbox: nobody knows whether one works.
        problem = f"a sandbox cannot be made while files in /etc come and go: {error}"
        raise Permanent(problem, hint="try again")
    return SandboxUnavailable(reason=f"bwrap does not work here: {error}", fix=_fix())


def _error_of(command: Sequence[str]) -> str:
    """Return the end of the error output if *command* fails, else an empty string."""
    try:
        result = subprocess.run(
            command,
            env={"PATH": "/usr/bin:/bin:/run/current-system/sw/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if result.returncode == 0:
        return ""
    return " ".join(result.stderr.split())[-300:] or f"exit code {result.returncode}"


def _fix() -> str:
    """Return what to do so that user namespaces work, as far as the kernel says why they do not."""
    if _kernel("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor allows user namespaces only to programs with a profile: install apparmor-profiles, "
            "copy /usr/share/apparmor/extra-profiles/bwrap-userns-restrict to /etc/apparmor.d, and reload it"
        )
    if _kernel("kernel/unprivileged_userns_clone") == "0":
        return "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1"
    if _kernel("user/max_user_namespaces") == "0":
        return "allow user namespaces: sysctl user.max_user_namespaces=15000"
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return (
            "a container has to allow user namespaces and a new /proc: start it with --security-opt "
            "seccomp=unconfined --security-opt systempaths=unconfined, or run gsd outside of it"
        )
    return "allow this user to make user namespaces (see docs/explanation/sandbox.md)"


def _kernel(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def program(name: str, tree: Path | None = None) -> str:
    """Return the absolute path of a program, preferably of the operating system; empty if it is missing.

    It is never one in the repository of *tree*.
    """
    found = shutil.which(name, path=os.pathsep.join(PROGRAM_FOLDERS)) or find_program(name, tree)
    return str(found or "")


def system() -> tuple[str, ...]:
    """Return the options that show the operating system: read-only, without its secrets as they are now.

    A file that has been removed since makes bwrap fail, and a new one would be visible.
    """
    arguments = ["--proc", "/proc", "--dev", "/dev", "--symlink", "/run", "/var/run"]
    if os.geteuid() == 0:
        for name in filter(os.path.exists, KERNEL):
            arguments += ["--ro-bind", name, name]
        for name in filter(os.path.exists, KERNEL_MEMORY):
            arguments += ["--ro-bind", "/dev/null", name]
    for name in ("/tmp", "/var/tmp", "/run"):
        arguments += ["--tmpfs", name]
    bound: list[str] = []
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink() and path.parent == Path("/"):
            arguments += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            arguments += ["--ro-bind", name, name]
            bound.append(name)
    for path in map(Path, _unreadable("/etc")):
        arguments += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    # Often a link into /run or, in WSL, into /mnt.
    resolver = Path("/etc/resolv.conf").resolve()
    if resolver.is_file() and not any(resolver.is_relative_to(name) for name in bound):
        arguments += ["--ro-bind", str(resolver), str(resolver)]
    return tuple(arguments)


def _unreadable(folder: str) -> Iterator[str]:
    """Yield what is not readable by everybody below *folder*, but is by this user: root, or by its group."""
    entries: list[os.DirEntry[str]] = []
    with suppress(FileNotFoundError):
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_symlink():
            continue
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue
        needed = stat.S_IROTH | (stat.S_IXOTH if entry.is_dir() else 0)
        if mode & needed == needed and not entry.is_dir():
            continue
        if not os.access(entry.path, os.R_OK):
            continue
        if mode & needed != needed:
            yield entry.path
        else:
            yield from _unreadable(entry.path)


def _unusable(places: Sequence[Place]) -> SandboxUnavailable | None:
    """Return why the user of this process cannot use these places in a sandbox, if so.

    Raises ``Permanent`` if they cannot be mounted: this must not be a reason to go without a sandbox, because
    a confined process may have brought it about.
    """
    for index, place in enumerate(places):
        if not place.source.exists():
            raise Permanent(f"{str(place.source)!r} does not exist, so a sandbox cannot show it")
        outer = _outer(places, index)
        # bwrap follows symlinks where it mounts, and makes folders there, even outside of the sandbox.
        if outer and (link := _link_on_the_way(outer.source, place.path.relative_to(outer.path))):
            hint = "replace it by a folder or a file"
            raise Permanent(f"{str(link)!r} is a symlink, so a sandbox cannot protect it", hint=hint)
        if place.writable and os.geteuid() == 0 and place.source.stat().st_uid != 0:
            # Without capabilities, and with only its own user mapped, root is a user like any other.
            reason = f"in a sandbox, root cannot write to {place.source}, which belongs to another user"
            return SandboxUnavailable(reason=reason, fix="run gsd as the owner of the project")
    return None


def _link_on_the_way(folder: Path, path: Path) -> Path | None:
    for part in path.parts:
        folder /= part
        if folder.is_symlink():
            return folder
    return None


def _mounts(places: Sequence[Place]) -> Iterator[str]:
    for count, place in enumerate(places):
        # What is part of the operating system is there already, and a folder on its way may be a link.
        is_covered = _outer(places, count) is not None
        is_system = any(place.path.is_relative_to(name) for name in SYSTEM if name != "/etc")
        if place.writable or is_covered or place.path != place.source or not is_system:
            yield from ("--bind" if place.writable else "--ro-bind", str(place.source), str(place.path))


def _outer(places: Sequence[Place], index: int) -> Place | None:
    """Return the place that the one at *index* is mounted in, if any."""
    path = places[index].path
    return next((one for one in reversed(places[:index]) if path.is_relative_to(one.path)), None)
