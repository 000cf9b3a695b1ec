"""The sandbox: a process that runs something a model or a repository wrote, and how to start it confined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs


@attrs.frozen(kw_only=True)
class Place:
    """A file or folder of the host that a confined process sees at *path*.

    *source* is what it sees there: usually the same path, else a private copy or folder that stands for it.
    *writable*: whether it may change it.
    """

    path: Path
    source: Path
    writable: bool = False


@attrs.frozen(kw_only=True)
class ConfinedProcess:
    """A process to confine, and all that it may see and change.

    *command* is its command line and *cwd* its working directory. *environment* is its whole environment.
    *places* are listed from the outside in: a later one lies over an earlier one that contains it. Of the
    rest of the host, the process sees only the operating system, read-only. *home* is one of the places, its
    private home folder; its ``/tmp`` is private too. *descriptors* are open file descriptors to pass on.
    *max_processes* and *max_memory* (bytes) are limits for it and all that it starts, 0 if there is none. The
    core ends it soon after it exceeds them; a sandbox that can enforce them at once should.
    """

    command: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    places: tuple[Place, ...]
    home: Path
    descriptors: tuple[int, ...] = ()
    max_processes: int = 0
    max_memory: int = 0


@attrs.frozen(kw_only=True)
class SandboxedCommand:
    """The command line that starts a confined process, and the environment to start it with.

    *sandbox* is the name of the plugin that confines it, empty if nothing does. Pass the same descriptors
    to it as the process gets. What the core returns has a session of its own, no terminal, and a new keyring.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    sandbox: str = ""


@attrs.frozen(kw_only=True)
class SandboxUnavailable:
    """A sandbox does not work on this machine: the *reason*, and what to do about it (*fix*)."""

    reason: str
    fix: str = ""
