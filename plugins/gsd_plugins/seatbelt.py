"""The sandbox on macOS: ``sandbox-exec`` with a profile that is generated for each process.

Untested: it is written against the documented profile language (``sandbox-exec(1)``, the comments in
``/System/Library/Sandbox/Profiles`` and Apple's Sandbox Guide 1.0), and no test of this project runs it.

A profile can forbid paths, but cannot show one path at another, as mounts can. So a place whose source is
elsewhere is read-only at its own path: an agent can read the repository's ``.git``, but cannot commit. There
is no process namespace either: a process that leaves its group outlives the call, confined as before.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gsd_core import ConfinedProcess, Place, SandboxedCommand, SandboxUnavailable, implements
from gsd_core.hookspecs import gsd_sandbox

NAME = "seatbelt"

READABLE = (
    *("/usr", "/bin", "/sbin", "/opt", "/Library", "/System", "/Applications", "/nix", "/private/etc"),
    *("/private/var/db/timezone", "/private/var/db/dyld", "/private/var/select"),
    *("/private/var/run/resolv.conf", "/dev"),
)
"""The operating system, and what is installed on it."""

HIDDEN = ("/Library/Keychains", "/private/etc/master.passwd", "/private/etc/sudoers", "/private/etc/ssh")
"""Parts of it that contain secrets."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/dtracehelper")

HEADER = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow ipc-posix-sem ipc-posix-shm)
(allow pseudo-tty)
(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger"))
"""
"""What every process may do. The keychain and the clipboard are services that are not in the list."""


@implements(gsd_sandbox)
async def confine(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
    """Start *process* with ``sandbox-exec``; on other systems than macOS, decline."""
    if sys.platform != "darwin":
        return None
    return confined(process, shutil.which("sandbox-exec", path="/usr/bin") or "")


def confined(process: ConfinedProcess, sandbox_exec: str) -> SandboxedCommand | SandboxUnavailable:
    """Return the command that starts *process* with the program *sandbox_exec*."""
    if not sandbox_exec:
        return SandboxUnavailable(reason="sandbox-exec is missing", fix="it is a part of macOS")
    temporary = process.home / "tmp"
    # /tmp is shared by all, so the process gets a private folder in its home.
    environment = {**process.environment, "TMPDIR": str(temporary)}
    make = 'mkdir -p -m 700 "$TMPDIR" && exec "$0" "$@"'
    command = (sandbox_exec, "-p", profile(process.places), "/bin/sh", "-c", make, *process.command)
    return SandboxedCommand(command=command, environment=environment, sandbox=NAME)


def profile(places: Sequence[Place]) -> str:
    """Return the profile that confines a process to *places*; of rules that match, the last one counts."""
    return HEADER + "".join(f"{rule}\n" for rule in _rules(places))


def _rules(places: Sequence[Place]) -> Iterator[str]:
    yield '(allow file-read* (literal "/"))'
    yield f"(allow file-read* {_subpaths(READABLE)})"
    yield f"(deny file-read* {_subpaths(HIDDEN)})"
    yield f"(allow file-read* file-write-data file-ioctl {' '.join(_literal(path) for path in DEVICES)})"
    yield r'(allow file-read* file-write* file-ioctl (regex #"^/dev/(ttys[0-9]+|ptmx|fd/[0-9]+)$"))'
    for place in places:
        here = _subpaths([str(place.path)])
        if place.path == place.source:
            yield f"(allow file-read* {here})"
            yield f"({'allow' if place.writable else 'deny'} file-write* {here})"
            continue
        yield f"(allow file-read* {_subpaths([str(place.source)])})"
        yield f"(deny file-write* {here})"
    # A folder that contains a protected path could be renamed, and the path with it.
    for path in _parents(places):
        yield f"(deny file-write-unlink {_literal(str(path))})"


def _parents(places: Sequence[Place]) -> list[Path]:
    """Return the folders between a writable place and a read-only one in it."""
    found: dict[Path, None] = {}
    for inner in places:
        for outer in places:
            if outer.writable and not inner.writable and outer.path in inner.path.parents:
                between = [path for path in inner.path.parents if path.is_relative_to(outer.path)]
                found |= dict.fromkeys(between)
    return list(found)


def _subpaths(paths: Sequence[str]) -> str:
    return " ".join(f"(subpath {quoted(path)})" for path in paths)


def _literal(path: str) -> str:
    return f"(literal {quoted(path)})"


def quoted(path: str) -> str:
    """Return *path* as a string of the profile language, which is a dialect of Scheme.

    Raises ``ValueError`` for a path with a control character: it cannot be told from a rule by a reader.
    """
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise ValueError(f"a path with a control character: {path!r}")
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
