"""The command of the session that a client asks for with ``gsd_start_session``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gsd_core import Session, UserError
from gsd_plugins.sessions import store_idea

MAX_COMMAND = 20_000

_PHASES = re.compile(r"\d[\d.,\- ]{0,99}")
_NAME = re.compile(r"[A-Za-z][\w-]{0,63}", re.ASCII)


def command_of(given: Mapping[str, Any], sessions: Iterable[Session]) -> tuple[list[str], Path]:
    """Return the arguments after ``gsd`` and the project for the arguments *given* to the tool.

    *sessions* are those that exist: idea documents that none of them needs any more are removed.
    """
    named: str = given["project"]
    project = Path(named).expanduser()
    if not project.is_absolute() or not _is_plain(named):
        raise UserError(f"project: {named!r} is not an absolute path", hint="such as /home/me/my-project")
    return _arguments(given, project, sessions), project


def _arguments(given: Mapping[str, Any], project: Path, sessions: Iterable[Session]) -> list[str]:
    """Return the arguments after ``gsd``; no value of the client can become an option."""
    common: list[str] = []
    if agent := given.get("agent"):
        common += ["--agent", _matching(_NAME, agent, "agent", "claude or rehearsal")]
    for unit, form in (("usd", ".2f"), ("tokens", "d"), ("turns", "d")):
        if budget := given.get(f"max_budget_{unit}"):
            common += [f"--max-budget-{unit}", format(budget, form)]
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
        return ["run", *common, "--", str(store_idea(text, sessions))]
    if file := given.get("idea_file"):
        if not _is_plain(file):
            raise UserError("idea_file: not a path")
        return ["run", *common, "--", str(project / Path(file).expanduser())]
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
