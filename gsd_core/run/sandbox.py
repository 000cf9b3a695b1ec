"""The sandbox of a run: chosen once, and used to start everything that a model or a repository wrote.

The core says what such a process may see and change (:mod:`gsd_core.run.places`); a plugin
(``gsd_sandbox``) says how to start it so. Which plugin works is found out by starting a program in it,
because a missing program, a kernel without user namespaces and a container that forbids them all look the
same from outside.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import attrs

from gsd_core.errors import ConfigError, GsdError, NoSandbox, Permanent, PluginError, ProjectError
from gsd_core.git.command import Command
from gsd_core.git.throwaway import make, refresh
from gsd_core.hookspecs import gsd_sandbox
from gsd_core.model.sandbox import ConfinedProcess, Place, SandboxedCommand, SandboxUnavailable
from gsd_core.plugins.calling import Hooks
from gsd_core.processes import supervised, total_memory
from gsd_core.sanitize import clip, sanitize
from gsd_core.settings import LimitSettings, RunSettings, settings_of

from .places import hold_folders, make_mount_points, owned_places, prepare, remove_empty
from .private_home import check_home, empty_home, home_environment, home_places, private_home
from .temporary import make_folder, remove_folder

START_LIMIT = timedelta(seconds=20)
"""How long a sandbox may take to start ``true``, before it counts as one that does not work."""
TURNED_OFF = "turned off by the setting run.sandbox"
CONTINUE_WITHOUT = "--sandbox off continues without one"
SLOT = "GSD_SLOT"
"""Tells processes of several workspaces apart, for example to choose a port or the name of a database."""
MAX_OUTPUT = 300
UNLOCKED = ".gsd-unlocked"
"""Names the private home of commands without a run; there is no such file."""


@attrs.frozen(kw_only=True)
class Sandbox:
    """How a run starts processes: *name* is that of the sandbox's plugin, empty if nothing is confined.

    *home* is the private home of all its processes. *slot* is that of the workspace, for ``GSD_SLOT``.
    *shares_caches*: checks use the package caches in it. *why* says why nothing is confined; *fixes* is what
    to do about it. *root* is the project. *entered* are the confinements in use.
    """

    root: Path
    hooks: Hooks
    name: str = ""
    home: Path | None = None
    slot: int = 0
    shares_caches: bool = False
    why: str = ""
    fixes: tuple[str, ...] = ()
    entered: list[Confinement] = attrs.field(factory=lambda: list[Confinement](), init=False, eq=False)

    async def close(self) -> None:
        """Remove what the sandbox has put into the project. Call it when the run ends."""
        if self.home is not None:
            await asyncio.to_thread(remove_empty, self.root)

    async def show_commits(self) -> None:
        """Show the agents at work the commit that the core has just made."""
        for inside in self.entered:
            if inside.git is not None:
                await asyncio.to_thread(refresh, Command(root=inside.tree), inside.git)

    @asynccontextmanager
    async def around(
        self,
        tree: Path,
        *,
        writable: bool = True,
        owns_planning: bool = False,
        places: Sequence[Place] = (),
        new_home: bool = False,
    ) -> AsyncGenerator[Confinement]:
        """Provide what processes in *tree* may see: it, a throwaway git directory, the private home.

        *owns_planning*: they may write ``.planning/``, and use the real git directory instead, without its
        settings, hooks and journal. *places* are more of them. With *new_home*, the home has nothing that
        other processes left: see :func:`gsd_core.run.private_home.check_home`. All processes that are
        started in the same confinement share its git directory, so that a stash of one is there for the
        next. It is removed at the end.
        """
        home = self.home
        if home is None:
            yield Confinement(sandbox=self, tree=tree)
            return
        folder = make_folder(self.root)
        held: int | None = None
        try:
            held = await asyncio.to_thread(hold_folders, self.root)
            command = Command(root=tree)
            git = None if owns_planning else await asyncio.to_thread(make, command, folder)
            owned = await asyncio.to_thread(owned_places, command, folder) if owns_planning else None
            before: tuple[Place, ...] = ()
            variables: Mapping[str, str] = {}
            if new_home:
                make_home = partial(check_home, home, folder, shares_caches=self.shares_caches)
                made, before, variables = await asyncio.to_thread(make_home)
                home = made
            prepared = partial(prepare, self.root, tree, writable=writable, git=git, home=home)
            found = await asyncio.to_thread(partial(prepared, before=before, owned=owned))
            inside = Confinement(
                sandbox=self, tree=tree, places=(*found, *places), home=home, git=git, variables=variables
            )
            self.entered.append(inside)
            try:
                yield inside
            finally:
                self.entered.remove(inside)
        finally:
            if held is not None:
                os.close(held)
            await asyncio.shield(asyncio.to_thread(remove_folder, folder))


@attrs.frozen(kw_only=True)
class Confinement:
    """What processes in *tree* may see and change; without a sandbox, everything that the user may.

    *git* is the throwaway git directory that they see instead of the real one, *home* their private home,
    and *variables* are added to their environment.
    """

    sandbox: Sandbox
    tree: Path
    places: tuple[Place, ...] = ()
    home: Path | None = None
    git: Path | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict[str, str])

    async def command(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        places: Sequence[Place] = (),
        descriptors: Sequence[int] = (),
    ) -> SandboxedCommand:
        """Return how to start *command* in the tree; raise ``PluginError`` if the sandbox fails.

        Nothing runs unconfined because a sandbox that worked at the start works no longer.
        """
        limits = settings_of(LimitSettings)
        memory = limits.max_memory * 2**20 or total_memory() * 4 // 5
        started = partial(supervised, processes=limits.max_processes, memory=memory)
        environment = {**environment, SLOT: str(self.sandbox.slot)}
        if self.home is None:
            return SandboxedCommand(command=started(command), environment=environment)
        seen = (*self.places, *places)
        if self.git is not None:
            await asyncio.to_thread(make_mount_points, seen, self.git)
        process = ConfinedProcess(
            command=tuple(command),
            cwd=self.tree,
            environment={**home_environment(environment, self.home), **self.variables},
            places=seen,
            home=self.home,
            descriptors=tuple(descriptors),
            max_processes=limits.max_processes,
            max_memory=memory,
        )
        name = self.sandbox.name
        value = await _confined(self.sandbox, process)
        if isinstance(value, SandboxUnavailable):
            why = f"{value.reason}; {value.fix}".removesuffix("; ")
            raise PluginError(name, "gsd_sandbox", f"cannot start {command[0]!r}: {why}")
        return attrs.evolve(value, command=started(value.command, keyring=True), sandbox=name)

    def protects(self, path: Path) -> bool:
        """Whether no process in here can change the file of the host at *path*."""
        return self.home is not None and is_protected(path, self.places)


def is_protected(path: Path, places: Sequence[Place]) -> bool:
    """Whether a process that sees *places* cannot change the file of the host at *path*."""
    for place in reversed(places):
        if path == place.path or place.path in path.parents:
            return not place.writable or place.source != place.path
    return True


async def choose_sandbox(
    hooks: Hooks,
    settings: RunSettings,
    root: Path,
    *,
    used_before: str = "",
    is_locked: bool = True,
    home: Path | None = None,
) -> Sandbox:
    """Return the first sandbox of ``run.sandboxes`` that works, by starting a program in it.

    *used_before* is the sandbox that the run to resume used. Raises ``NoSandbox`` if none works, and the
    settings require one or the run had one: a confined run must not continue unconfined without notice.
    It prepares the private home, which belongs to the process that has the project's lock; if that is not
    this one (*is_locked*), it is another one. With a *home*, that one is used as it is.
    """
    if settings.sandbox == "off":
        return Sandbox(root=root, hooks=hooks, why=TURNED_OFF)
    refused: list[SandboxUnavailable] = []
    installed = hooks.plugins_of(gsd_sandbox)
    for name in settings.sandboxes:
        if name not in installed:
            refused.append(SandboxUnavailable(reason=f"the plugin {name!r} is not loaded"))
            continue
        if home is None:
            owner = root if is_locked else root / UNLOCKED
            home = await asyncio.to_thread(private_home, owner, caches=settings.sandbox_caches)
        shares = settings.checks_share_caches
        sandbox = Sandbox(root=root, hooks=hooks, name=name, home=home, shares_caches=shares)
        problem = await _problem_with(sandbox)
        if problem is None:
            return sandbox
        if problem.reason:
            refused.append(attrs.evolve(problem, reason=f"{name}: {problem.reason}"))
    why = "; ".join(each.reason for each in refused) or f"none of {', '.join(settings.sandboxes)} is for this"
    fixes = tuple(dict.fromkeys(each.fix for each in refused if each.fix))
    if used_before or settings.sandbox == "required":
        needed = f"the run used {used_before!r}" if used_before else "one is required"
        hint = "; or ".join([*fixes, CONTINUE_WITHOUT])
        raise NoSandbox(f"no sandbox works, and {needed}: {why}", hint=hint)
    return Sandbox(root=root, hooks=hooks, why=why, fixes=fixes)


async def can_confine(hooks: Hooks, settings: RunSettings, root: Path) -> bool:
    """Whether :func:`choose_sandbox` finds a sandbox for the project at *root*; needs no lock.

    The project itself decides too: one with a symlink in the place of a protected folder cannot be confined.
    It may leave empty folders in the project: see :func:`gsd_core.run.places.remove_empty`.
    """
    with tempfile.TemporaryDirectory(prefix="gsd-") as folder:
        home = await asyncio.to_thread(empty_home, Path(folder))
        try:
            sandbox = await choose_sandbox(hooks, settings, root, home=home)
        except (NoSandbox, ProjectError, Permanent):
            return False
    return bool(sandbox.name)


def check_sandbox_names(hooks: Hooks, settings: RunSettings) -> None:
    """Raise ``ConfigError`` for a name in ``run.sandboxes`` that no plugin and no default has."""
    installed = hooks.plugins_of(gsd_sandbox)
    known = {*installed, *RunSettings().sandboxes}
    for name in settings.sandboxes:
        if name not in known:
            listed = ", ".join(map(repr, sorted(installed))) or "none"
            raise ConfigError(f"unknown sandbox {name!r}; installed: {listed}", hint="gsd plugins")


def warning_about(sandbox: Sandbox) -> str:
    """Return what the user has to know about a run that is not confined; empty if it is."""
    if sandbox.name:
        return ""
    fix = f" ({'; or '.join(sandbox.fixes)})" if sandbox.fixes else ""
    return f"no sandbox: agents and commands can change all that you can: {sandbox.why}{fix}"


async def _problem_with(sandbox: Sandbox) -> SandboxUnavailable | None:
    """Return why the sandbox does not work, if so; an empty reason: it is for another system."""
    try:
        async with asyncio.timeout(START_LIMIT.total_seconds()), sandbox.around(sandbox.root) as inside:
            environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            home = inside.home
            assert home is not None, "a sandbox with a name confines"
            environment = home_environment(environment, home)
            process = ConfinedProcess(
                command=("true",), cwd=sandbox.root, environment=environment, places=inside.places, home=home
            )
            problem: SandboxUnavailable | None = None
            # Twice, because what is to be mounted may have changed in between.
            for _ in range(2):
                command = await _confined(sandbox, process)
                if isinstance(command, SandboxUnavailable):
                    return command
                problem = await _started(command, sandbox.root)
                if problem is None:
                    return None
            assert problem is not None
            plain = attrs.evolve(process, cwd=home, places=home_places(home))
            elsewhere = await _confined(sandbox, plain)
            if isinstance(elsewhere, SandboxedCommand) and await _started(elsewhere, home) is None:
                message = f"the sandbox {sandbox.name} works, but not for this project: {problem.reason}"
                raise Permanent(message, hint=CONTINUE_WITHOUT)
            return problem
    except TimeoutError:
        return SandboxUnavailable(reason=f"`true` did not end in it within {START_LIMIT}")
    except (ProjectError, Permanent):
        # Something in the project is in the way: a repository must not turn the sandbox off by that.
        raise
    except (GsdError, OSError) as exc:
        return SandboxUnavailable(reason=sanitize(str(exc), multiline=False))


async def _confined(sandbox: Sandbox, process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable:
    """Return what the plugin says about *process*; an empty reason: the sandbox is for another system."""
    outcome = await sandbox.hooks.pick(gsd_sandbox, (sandbox.name,), object, process)
    value: object = outcome.value if outcome else None
    if value is None:
        return SandboxUnavailable(reason="")
    if isinstance(value, SandboxUnavailable) or (isinstance(value, SandboxedCommand) and value.command):
        return value
    return SandboxUnavailable(reason=f"it returned {value!r:.200}, not a SandboxedCommand")


async def _started(command: SandboxedCommand, folder: Path) -> SandboxUnavailable | None:
    process = await asyncio.create_subprocess_exec(
        *command.command,
        cwd=folder,
        env=dict(command.environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, error = await process.communicate()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode == 0:
        return None
    said = clip(sanitize(error.decode("utf-8", "replace").strip(), multiline=False), MAX_OUTPUT)
    return SandboxUnavailable(reason=f"`true` failed in it with exit code {process.returncode}: {said}")
