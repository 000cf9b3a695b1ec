"""How to try what a run built, from the project's own files: nothing is made up, and nothing is run."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core.errors import GsdError
from gsd_core.files import kind_below, list_below, start_as_text

MAX_BYTES = 200_000
MAX_COMMANDS = 4
MAX_LENGTH = 300
"""A longer line is not a command that somebody tries."""

READMES = ("README.md", "readme.md", "Readme.md", "README.markdown")
SHELLS = ("sh", "bash", "shell", "console", "zsh", "shell-session", "sh-session")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*?)[ \t#]*$")
_USE = re.compile(
    r"\b(usage|use|quick ?start|getting started|try|run|running|command line|examples?)\b", re.I
)
_NOT_USE = re.compile(
    r"\b(tests?|testing|develop\w*|contribut\w*|build\w*|releases?|releasing|deploy\w*)\b", re.I
)
_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)")


@attrs.frozen(kw_only=True)
class TryIt:
    """Commands that *source* names; *checked* are those that were part of a check that passed."""

    source: str
    commands: tuple[str, ...]
    checked: frozenset[str] = frozenset()


def how_to_try(root: Path, checks: Collection[str]) -> TryIt | None:
    """Return how to try the project at *root*; ``None`` if its files do not say.

    Its README comes first, then what its package files declare. *checks* are the commands of the plans
    whose last result was good.
    """
    found = next(_candidates(root), None)
    if found is None:
        return None
    parts = {part.strip() for check in checks for part in re.split(r"&&|\|\||[;|]", check)}
    return attrs.evolve(found, checked=frozenset(c for c in found.commands if c in parts or c in checks))


def _candidates(root: Path) -> Iterator[TryIt]:
    for name in READMES:
        if commands := _readme_commands(start_as_text(root, name, MAX_BYTES)):
            yield TryIt(source=name, commands=commands)
    scripts = _table(_parsed(root, "pyproject.toml", tomllib.loads), "project", "scripts")
    if scripts:
        name = next(iter(scripts))
        yield TryIt(source="the scripts in pyproject.toml", commands=("pip install .", f"{name} --help"))
    for folder in _packages(root):
        yield TryIt(source=f"{folder}/__main__.py", commands=(f"python3 -m {folder}",))
    if "start" in _table(_parsed(root, "package.json", json.loads), "scripts"):
        yield TryIt(source="the scripts in package.json", commands=("npm install", "npm start"))
    if start_as_text(root, "Cargo.toml", MAX_BYTES) and kind_below(root, "src/main.rs") == "file":
        yield TryIt(source="Cargo.toml", commands=("cargo run",))
    if start_as_text(root, "go.mod", MAX_BYTES) and kind_below(root, "main.go") == "file":
        yield TryIt(source="go.mod", commands=("go run .",))


def _readme_commands(text: str) -> tuple[str, ...]:
    """Return the shell commands of the first section about usage that has any."""
    heading, language, fence, lines = "", "", "", list[str]()
    for line in text.splitlines():
        if fence:
            if line.strip().startswith(fence) and not line.strip(" \t`~"):
                found = _commands(lines, language) if _USE.search(heading) else ()
                if found and not _NOT_USE.search(heading):
                    return found
                fence = ""
            else:
                lines.append(line)
        elif opened := _FENCE.match(line):
            fence, language, lines = opened[1], opened[2].lower(), []
        elif title := _HEADING.match(line):
            heading = title[1]
    return ()


def _commands(lines: list[str], language: str) -> tuple[str, ...]:
    """Return the commands of a block of shell; of one with prompts only what is behind a prompt."""
    prompted = [line.strip()[2:].strip() for line in lines if line.strip().startswith("$ ")]
    if language not in SHELLS and not (prompted and not language):
        return ()
    found = prompted or [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    # Half of a command that goes on in the next line does something else.
    if any(line.endswith("\\") or "<<" in line or "```" in line or len(line) > MAX_LENGTH for line in found):
        return ()
    return tuple(found[:MAX_COMMANDS])


def _packages(root: Path) -> Iterator[str]:
    with suppress(OSError, GsdError):
        for found in list_below(root, "."):
            if found.kind == "folder" and found.name.isidentifier() and found.name not in ("tests", "test"):
                with suppress(OSError, GsdError):
                    if kind_below(root, f"{found.name}/__main__.py") == "file":
                        yield found.name


def _parsed(root: Path, path: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(start_as_text(root, path, MAX_BYTES))
    except (ValueError, RecursionError):
        return {}


def _table(data: Any, *names: str) -> dict[str, Any]:
    for name in names:
        data = cast("dict[str, Any]", data).get(name) if isinstance(data, dict) else None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}
