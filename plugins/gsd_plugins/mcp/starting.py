"""Starting a session: the command line for what a client asks for, run by ``gsd … --bg`` itself.

The real command checks everything before it starts the session: the idea, the project, its trust. Without a
terminal it asks nothing, so what needs a person's consent is refused here, and never asked of a client.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gsd_core import Session, UserError, gsd_command, slug, state_folder

SECONDS = 180
"""How long a command may take; a plugin's check of its login may need the network."""
KEEP_SECONDS = 3600
MAX_COMMAND = 20_000

_PHASES = re.compile(r"\d[\d.,\- ]{0,99}")
_NAME = re.compile(r"[A-Za-z][\w-]{0,63}", re.ASCII)
_STARTED = re.compile(rb"^started session (s\d+)\b", re.M)


async def start(given: Mapping[str, Any], sessions: Iterable[Session]) -> str:
    """Start the session that the arguments *given* to the tool describe, and return its id.

    *sessions* are those that exist: idea documents that none of them needs any more are removed.
    """
    project = _project(given["project"])
    # In a folder that exists: the command makes that of a new project, or says why it cannot.
    folder = next(path for path in (project, *project.parents) if path.is_dir())
    arguments = _arguments(given, project, folder, sessions)
    code, out, err = await run_gsd(arguments, folder)
    found = _STARTED.search(out)
    if code == 0 and found:
        return found[1].decode()
    raise failure(err or out, code)


async def run_gsd(arguments: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
    """Run ``gsd`` with *arguments* in *folder*; return its exit code, its output and its messages."""
    command = [*gsd_command(), *arguments]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise UserError(f"gsd {arguments[0]} took longer than {SECONDS} seconds") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out, err


def failure(said: bytes, code: int) -> UserError:
    """Return the error that a command has printed."""
    text = said.decode("utf-8", "replace").strip()
    _, _, text = f"\n{text}".rpartition("\nerror: ")
    message, _, hint = text.partition("\nhint: ")
    # It names a command, and mostly one that a person should decide about.
    hint = f"for your user, in a terminal: {hint.strip()[:1000]}" if hint else ""
    return UserError(message.strip()[-2000:] or f"gsd ended with exit code {code}", hint=hint)


def _project(given: str) -> Path:
    path = Path(given).expanduser()
    if not path.is_absolute() or not _is_plain(given):
        raise UserError(f"project: {given!r} is not an absolute path", hint="such as /home/me/my-project")
    return path


def _arguments(
    given: Mapping[str, Any], project: Path, folder: Path, sessions: Iterable[Session]
) -> list[str]:
    """Return the arguments after ``gsd``; no value of the client can become an option."""
    common = ["--bg", "-C", str(project)]
    if agent := given.get("agent"):
        common += ["--agent", _matching(_NAME, agent, "agent", "claude or rehearsal")]
    if budget := given.get("max_budget_usd"):
        common += ["--max-budget-usd", f"{budget:.2f}"]
    ways = [name for name in ("idea", "idea_file", "step", "command") if given.get(name)]
    if len(ways) > 1:
        raise UserError(f"{ways[0]} and {ways[1]} cannot be combined", hint="start one session for each")
    if bool(given.get("phase")) != bool(given.get("step")):
        raise UserError("step and phase belong together", hint='such as step "plan" and phase "2"')
    if given.get("phases") and ways not in ([], ["idea"], ["idea_file"]):
        raise UserError(f"phases cannot be combined with {ways[0]}")
    if step := given.get("step"):
        return [step, *common, "--", _matching(_PHASES, given["phase"], "phase", "2 or 2.1")]
    if command := given.get("command"):
        if not _is_plain(command) or len(command) > MAX_COMMAND:
            raise UserError(f"command: invalid, or longer than {MAX_COMMAND} characters")
        return ["exec", *common, "--", command]
    if phases := given.get("phases"):
        common += ["--phases", _matching(_PHASES, phases, "phases", "1-3,5")]
    if text := given.get("idea"):
        return ["run", *common, "--", str(_stored(text, sessions))]
    if file := given.get("idea_file"):
        if not _is_plain(file):
            raise UserError("idea_file: not a path")
        return ["run", *common, "--", str(folder / Path(file).expanduser())]
    return ["run" if phases else "resume", *common]


def _matching(pattern: re.Pattern[str], value: str, name: str, example: str) -> str:
    if not pattern.fullmatch(value):
        raise UserError(f"{name}: {value[:100]!r} is invalid", hint=f"such as {example}")
    return value


def _is_plain(text: str) -> bool:
    """Whether *text* can be an argument of a process."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _stored(text: str, sessions: Iterable[Session]) -> Path:
    """Write an idea into a private file of the user, and return its path.

    Not into the project: a session may wait for a slot for hours, and an uncommitted file there would stop
    the run. The run copies the idea into the project's IDEA.md, so the file is needed until then only.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise UserError("idea: not valid Unicode") from error
    folder = state_folder() / "mcp" / "ideas"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_old(folder, sessions)
    heading = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")
    name = slug(heading[:60]) if re.search("[A-Za-z0-9]", heading[:60]) else "idea"
    # The project keeps the file's name as the name of the idea. The same text is the same file.
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}" / f"{name}.md"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb"
    ) as file:
        file.write(data)
    draft.replace(path)
    return path


def _remove_old(folder: Path, sessions: Iterable[Session]) -> None:
    """Remove the ideas that no session needs any more; one that is just being started is not listed yet."""
    needed = {word for session in sessions if not session.has_ended for word in session.command}
    for path in folder.glob("*/*"):
        if str(path) not in needed and path.stat().st_mtime < time.time() - KEEP_SECONDS:
            path.unlink(missing_ok=True)
            try:
                path.parent.rmdir()
            except OSError:
                continue
