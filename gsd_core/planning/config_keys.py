"""What each key of GSD's ``config.json`` does here: one table, for validation, warnings and the docs.

The table is ``config_keys.toml``. Its sources are the config of GSD v1.20.5, and gsd-core 1.14
(``config-schema.manifest.json``, and the keys that its capabilities add). A name may contain ``<x>``, which
matches one part of a dotted key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import attrs

from gsd_core.errors import ConfigError

Allowed: TypeAlias = "type | tuple[str, ...]"
Status: TypeAlias = Literal["honored", "not applicable"]


@attrs.frozen(kw_only=True)
class ConfigKey:
    """A key, and what it does here, or why it does nothing.

    *allowed* is the type of its values, or the strings that are allowed; ``None`` if they are not checked,
    because nothing here reads them. ``null`` always counts as not set. *legacy* are older names of the key.
    """

    name: str
    status: Status
    effect: str
    allowed: Allowed | None = None
    legacy: tuple[str, ...] = ()

    def matches(self, key: str) -> bool:
        """Whether a dotted *key* is this one, or one of its older names."""
        return any(_pattern(name).fullmatch(key) for name in (self.name, *self.legacy))

    def problem(self, value: object) -> str:
        """Return what is expected instead of *value*; empty if it is valid."""
        match self.allowed:
            case None:
                return ""
            case tuple() as words:
                # Names of other versions are valid: "fine" is "comprehensive".
                return "" if value in words else f"expected one of {', '.join(map(repr, words))}"
            case kind:
                is_number = kind in (int, float) and isinstance(value, int | float)
                # To Python, true is a number.
                valid = kind is bool if isinstance(value, bool) else isinstance(value, kind) or is_number
                return "" if valid else f"expected {_KINDS[kind]}"

    @property
    def values(self) -> str:
        """The allowed values, for people."""
        if self.allowed is None:
            return ""
        if isinstance(self.allowed, tuple):
            return ", ".join(f"`{word}`" for word in self.allowed)
        return _KINDS[self.allowed]


_KINDS: dict[type, str] = {
    bool: "true or false",
    str: "a string",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    object: "a path or a list of paths",
}
_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
GATES: Mapping[str, str] = _DATA["gates"]
"""GSD's gates, and when the question is asked."""


def _keys(entry: Mapping[str, Any]) -> Iterator[ConfigKey]:
    """Yield the keys of an entry of the table: of several, none is honored."""
    effect, legacy = entry["effect"], entry.get("legacy", ())
    if "keys" in entry:
        for name in entry["keys"].split():
            older = tuple(legacy[name]) if name in legacy else ()
            yield ConfigKey(name=name, status="not applicable", effect=effect, legacy=older)
        return
    kinds = {kind.__name__: kind for kind in _KINDS}
    allowed = kinds[entry["type"]] if "type" in entry else tuple(entry["values"])
    for gate, when in GATES.items() if "<gate>" in entry["name"] else [("", "")]:
        name, said = entry["name"].replace("<gate>", gate), effect.replace("{when}", when)
        yield ConfigKey(name=name, status="honored", effect=said, allowed=allowed, legacy=tuple(legacy))


KEYS = tuple(key for entry in _DATA["key"] for key in _keys(entry))
"""Every key that is known."""

_NAMES = tuple(name for key in KEYS for name in (key.name, *key.legacy))


def key_of(name: str) -> ConfigKey | None:
    """Return the entry of a dotted key; ``None`` if it is unknown."""
    return next((key for key in KEYS if key.matches(name)), None)


def unknown_keys(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of a config that no version of GSD has, each with the known key it resembles."""
    known = [name for name in _NAMES if "<" not in name]
    found: list[str] = []
    for name, _ in _entries(config):
        if key_of(name) is None:
            close = get_close_matches(name, known, 1, 0.8)
            found.append(f"{name!r} (did you mean {close[0]!r}?)" if close else repr(name))
    return tuple(found)


def validate_config(config: Mapping[str, Any], path: str) -> None:
    """Raise ``ConfigError`` with each invalid value of an honored key: the file, the key, what is allowed.

    Values of other keys are not read here, so they are never an error.
    """
    problems = [
        f"{path}: {name}: {problem}, got {value!r}"
        for name, value in _entries(config)
        if value is not None and (key := key_of(name)) and (problem := key.problem(value))
    ]
    if problems:
        lines = problems if len(problems) == 1 else [f"{len(problems)} values are invalid", *problems]
        raise ConfigError(
            "\n  ".join(lines), hint="correct or remove them; the reference of config.json lists all keys"
        )


def _entries(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys with their values; an object that is itself a known key's is not taken apart."""
    for name, value in config.items():
        key = f"{prefix}{name}"
        known = key_of(key)
        is_open = known is None or known.allowed in (None, bool)
        if isinstance(value, Mapping) and is_open and _may_contain(key):
            yield from _entries(cast("Mapping[str, Any]", value), f"{key}.")
        else:
            # A part that should be an object, as "workflow": 1.
            yield key, value


def _may_contain(key: str) -> bool:
    depth = key.count(".") + 1
    return any(
        len(parts := name.split(".")) > depth and _pattern(".".join(parts[:depth])).fullmatch(key)
        for name in _NAMES
    )


@cache
def _pattern(name: str) -> re.Pattern[str]:
    parts: Iterable[str] = re.split(r"(<\w+>)", name)
    # A phase's number has dots of its own: phase_commit_docs.2.1.
    wild = r".+" if "<phase>" in name else r"[^.]+"
    return re.compile("".join(wild if part.startswith("<") else re.escape(part) for part in parts))
