"""The policy as data: what it knows about programs, from ``programs.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Programs:
    """Sets of names by class, reasons by program, and options and subcommands by program."""

    classes: Mapping[str, frozenset[str]]
    outward: Mapping[str, str]
    denied: Mapping[str, str]
    asked: Mapping[str, str]
    subcommands: Mapping[str, frozenset[str]]
    local: Mapping[str, frozenset[str]]
    harmless: Mapping[str, frozenset[str]]
    options: Mapping[str, frozenset[str]]
    wrappers: Mapping[str, tuple[frozenset[str], int]]
    installs: Mapping[str, tuple[frozenset[str], int]]
    outputs: Mapping[str, frozenset[str]]
    commands: Mapping[str, frozenset[str]]
    git: Mapping[str, frozenset[str]]
    git_reading: Mapping[str, tuple[bool, tuple[str, ...]]]
    places: Mapping[str, tuple[str, ...]]
    known: frozenset[str]

    def is_a(self, program: str, kind: str) -> bool:
        """Whether a program is of a class."""
        return program in self.classes[kind]


@cache
def programs() -> Programs:
    """Return the table."""
    table = tomllib.loads((files("gsd_plugins.permissions") / "programs.toml").read_text("utf-8"))
    classes = _sets(table["classes"])
    reasons = [_reasons(table[name]) for name in ("outward", "denied", "asked")]
    wrappers = [_wrappers(table[name]) for name in ("wrappers", "installs")]
    tables = [_sets(table[name]) for name in ("subcommands", "harmless", "outputs")]
    first, required = table["git"].pop("first"), table["git"].pop("required")
    reading = {words[0]: (False, tuple(words[1:])) for words in map(str.split, first)}
    reading |= {words[0]: (True, tuple(words[1:])) for words in map(str.split, required)}
    return Programs(
        classes=classes,
        outward=reasons[0],
        denied=reasons[1],
        asked=reasons[2],
        subcommands=tables[0],
        local=_sets(table["local"]),
        harmless=tables[1],
        options=_sets(table["options"]),
        wrappers=wrappers[0],
        installs=wrappers[1],
        outputs=tables[2],
        commands=_sets(table["commands"]),
        git=_sets(table["git"]),
        git_reading=reading,
        places={key: tuple(value.split()) for key, value in table["places"].items()},
        known=frozenset[str]().union(*classes.values(), *reasons, *wrappers, *tables),
    )


def _sets(table: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {key: frozenset(value.split()) for key, value in table.items()}


def _reasons(table: Mapping[str, str]) -> dict[str, str]:
    return {program: reason for reason, names in table.items() for program in names.split()}


def _wrappers(table: Mapping[str, Sequence[Any]]) -> dict[str, tuple[frozenset[str], int]]:
    return {program: (frozenset(options.split()), count) for program, (options, count) in table.items()}
