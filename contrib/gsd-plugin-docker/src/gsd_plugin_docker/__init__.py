"""The sandbox ``docker`` for GSD: each process runs in its own container, started by docker or podman.

The core says what the process may see; everything else in it comes from an image. The options are those of
``docker run``: https://docs.docker.com/reference/cli/docker/container/run/
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import attrs

from gsd_core import (
    ConfinedProcess,
    Place,
    RunInfo,
    SandboxedCommand,
    SandboxUnavailable,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_lifespan, gsd_sandbox, gsd_settings

__all__ = ["DockerSettings", "confine", "lifespan", "settings"]

LABEL = "gsd.home"
CLIENT_VARIABLES = (
    "HOME",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "CONTAINER_HOST",
    "XDG_RUNTIME_DIR",
)
"""What docker and podman themselves need. The container does not get them."""
OWN_IN_IMAGE = frozenset({"PATH", "LD_LIBRARY_PATH"})
"""Variables that the image sets, and that mean nothing in it as they are outside."""


@attrs.frozen(kw_only=True)
class DockerSettings:
    """Settings of the sandbox, section ``docker``.

    *image*: the image to run everything in; without one the sandbox is not available. *program*: ``docker``,
    ``podman`` or the path of one. *network*: the container's network; ``host`` keeps localhost the same.
    *options*: more options of ``docker run``.
    """

    image: str = setting("")
    program: str = setting("docker")
    network: str = setting("host")
    options: tuple[str, ...] = setting(())


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the settings section ``docker``."""
    yield DockerSettings


@implements(gsd_sandbox)
async def confine(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
    """Start *process* in a new container that is removed when it ends."""
    configured = settings_of(DockerSettings)
    program = shutil.which(configured.program)
    if not configured.image:
        fix = "set docker.image in your own settings to an image with the project's tools"
        return SandboxUnavailable(reason="no image is set", fix=fix)
    if program is None:
        return SandboxUnavailable(
            reason=f"{configured.program!r} is not on PATH",
            fix="install docker or podman, or set docker.program",
        )
    if process.descriptors:
        fix = 'set claude.environment to ["ANTHROPIC_API_KEY"]; the agent\'s commands can then read the key'
        reason = "a container cannot get the open file through which an API key is passed"
        return SandboxUnavailable(reason=reason, fix=fix)
    variables = {name: value for name, value in process.environment.items() if name not in OWN_IN_IMAGE}
    client = {name: os.environ[name] for name in ("PATH", *CLIENT_VARIABLES) if name in os.environ}
    command = (
        *(program, "run", "--rm", "--interactive", "--init", "--pull", "never"),
        *("--name", f"gsd-{secrets.token_hex(8)}", "--label", f"{LABEL}={_label(process.home)}"),
        *("--network", configured.network, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *_user(program),
        *(part for place in _visible(process.places) for part in ("--mount", _mount(place))),
        *_environment(variables, client),
        *("--workdir", str(process.cwd), *configured.options),
        # Instead of the image's own: the command is not an argument for it.
        *("--entrypoint", process.command[0], configured.image, *process.command[1:]),
    )
    return SandboxedCommand(command=command, environment={**variables, **client}, sandbox="docker")


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Remove the containers that outlive their client, at the start and at the end of a run."""
    return (_without_leftovers(run.project),) if settings_of(DockerSettings).image else ()


@asynccontextmanager
async def _without_leftovers(project: Path) -> AsyncGenerator[None]:
    await _remove_containers(project)
    try:
        yield
    finally:
        await _remove_containers(project)


async def _remove_containers(project: Path) -> None:
    """Remove the containers with a mount of *project*; without docker there are none."""
    program = shutil.which(settings_of(DockerSettings).program)
    if program is None:
        return
    listed = await _output(
        program, "ps", "--all", "--quiet", "--filter", f"label={LABEL}", "--filter", f"volume={project}"
    )
    if found := listed.split():
        await _output(program, "rm", "--force", *found)


async def _output(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        return (await process.communicate())[0].decode(errors="replace")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _label(home: Path) -> str:
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:16]


def _user(program: str) -> tuple[str, ...]:
    """Return the options that make files belong to the same user inside and outside."""
    user = ("--user", f"{os.getuid()}:{os.getgid()}")
    # Without root, podman maps this user to root inside; this keeps the id.
    is_podman = Path(program).resolve().name.startswith("podman")
    return ("--userns=keep-id", *user) if is_podman and os.getuid() else user


def _visible(places: Sequence[Place]) -> Iterator[Place]:
    """Yield the places that no later one covers: docker mounts by depth, and not in the order given."""
    for number, place in enumerate(places):
        later = places[number + 1 :]
        if not any(place.path.is_relative_to(other.path) for other in later):
            yield place


def _mount(place: Place) -> str:
    """Return the value of ``--mount``, a line of CSV: a path may contain a comma."""
    line = io.StringIO()
    fields = ["type=bind", f"source={place.source}", f"target={place.path}"]
    csv.writer(line, lineterminator="").writerow([*fields, *([] if place.writable else ["readonly"])])
    return line.getvalue()


def _environment(variables: dict[str, str], client: dict[str, str]) -> Iterator[str]:
    """Yield the options for the variables: by name, so that no value is in the list of processes.

    One that docker needs for itself has another value for it, and is not a secret.
    """
    for name, value in variables.items():
        yield from ("--env", f"{name}={value}" if name in client else name)
