"""Starting a session for a client, such as MCP or the page: ``gsd … --bg`` itself does it.

The real command checks everything before it starts the session: the idea, the project, its trust. Without a
terminal it asks nothing, so what needs a person's consent is refused here, and never asked of a client.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from gsd_core import CommandOptions, Session, UserError, own_command, settings_of, slug, state_folder

SECONDS = 180
"""How long a command may take; a plugin's check of its login may need the network."""
KEEP_SECONDS = 3600
"""How long the text of an idea is kept after it was last needed."""

_STARTED = re.compile(rb"^started session (s\d+)\b", re.M)


class CommandRefused(UserError):
    """A command of gsd ended with an error; its message and its hint, which is for a person."""


async def start_session(arguments: Sequence[str], project: Path) -> str:
    """Start ``gsd`` with *arguments*, which begin with the subcommand, as a session; return its id.

    It gets the options ``-p`` and ``--plugins-dir`` of this process. Raise ``CommandRefused`` with what the
    command says if it does not start.
    """
    # In a folder that exists: the command makes that of a new project, or says why it cannot.
    folder = next(path for path in (project, *project.parents) if path.is_dir())
    verb, *rest = arguments
    options = settings_of(CommandOptions).plugin_options
    code, out, err = await run_gsd([*options, verb, "--bg", "-C", str(project), *rest], folder)
    found = _STARTED.search(out)
    if code == 0 and found:
        return found[1].decode()
    raise refusal(err or out, code)


async def run_gsd(arguments: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Run ``gsd`` with *arguments* in *folder*; return its exit code, its output and its messages."""
    process = await asyncio.create_subprocess_exec(
        *own_command(),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise CommandRefused(f"gsd took longer than {SECONDS} seconds") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out, err


def refusal(said: bytes, code: int) -> CommandRefused:
    """Return the error that a command has printed."""
    text = said.decode("utf-8", "replace").strip()
    _, _, text = f"\n{text}".rpartition("\nerror: ")
    message, _, hint = text.partition("\nhint: ")
    reason = message.strip()[-2000:] or f"gsd ended with exit code {code}"
    return CommandRefused(reason, hint=hint.strip()[:1000])


def store_idea(text: str, sessions: Iterable[Session]) -> Path:
    """Write an idea into a private file of the user, and return its path; the same text is the same file.

    Not into the project: a session may wait for a slot for hours, and an uncommitted file there would stop
    the run. The run copies the idea into the project's IDEA.md, so the file is needed until then only: those
    that none of *sessions*, the sessions that exist, needs any more are removed.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UserError("idea: not valid Unicode") from error
    folder = state_folder() / "ideas"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_old_ideas(folder, sessions)
    heading = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")
    name = slug(heading[:60]) if re.search("[A-Za-z0-9]", heading[:60]) else "idea"
    # The project keeps the file's name as the name of the idea.
    path = folder / hashlib.sha256(data).hexdigest()[:16] / f"{name}.md"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, data)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace a file as a whole; only its user may read it."""
    descriptor, draft = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    Path(draft).replace(path)


def _remove_old_ideas(folder: Path, sessions: Iterable[Session]) -> None:
    """Remove the ideas that no session needs any more; one that is just being started is not listed yet."""
    needed = {word for session in sessions if not session.has_ended for word in session.command}
    for path in folder.glob("*/*"):
        if str(path) not in needed and path.stat().st_mtime < time.time() - KEEP_SECONDS:
            path.unlink(missing_ok=True)
            with suppress(OSError):
                path.parent.rmdir()
