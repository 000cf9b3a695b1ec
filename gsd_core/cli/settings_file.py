"""Change or remove one value in a TOML file of settings; everything else, comments too, stays as it is.

There is no general editor of TOML here: the line of the value is replaced, added or removed, and the result
is read again. If it differs in anything but this value, nothing is written.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast, get_origin

import attrs

from gsd_core.errors import ConfigError
from gsd_core.files import read_below, write_below
from gsd_core.settings import Layer, resolve

MAX_SUGGESTED = 3
CLOSE = 0.75
"""How similar a suggested name has to be, from 0 to 1; below that, most suggestions are wrong."""


def checked_value(
    classes: Sequence[tuple[str, type]], section: str, key: str, text: str
) -> tuple[attrs.Attribute[Any], Any]:
    """Return the field of a setting, and *text* as its value in TOML.

    Raises ``ConfigError`` if there is no such setting, or if its class rejects the value.
    """
    fields = known_settings(classes)
    if f"{section}.{key}" not in fields:
        raise unknown_setting(classes, f"{section}.{key}" if key else section)
    kind, field = fields[f"{section}.{key}"]
    value: Any = text
    # Text stays text: phase "1.10" is not the number 1.1.
    if field.type is not str and get_origin(field.type) is not Literal:
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        # An amount such as 2.10 is kept as it was typed.
        value = text if isinstance(value, float) else value
    if isinstance(value, str) and get_origin(field.type) is tuple:
        value = [part.strip() for part in value.split(",") if part.strip()]
    resolve([(section, kind)], [Layer(origin="", sections={section: {key: value}})])
    return field, value


def unknown_setting(classes: Sequence[tuple[str, type]], name: str) -> ConfigError:
    """Return the error that there is no setting *name*; its hint suggests those that may be meant."""
    known = [*known_settings(classes)]
    if any(one.startswith(f"{name}.") for one in known):
        hint = f"it is a section: gsd settings show {name} lists its settings"
        return ConfigError(f"no setting {name!r}", hint=hint)
    last = name.rpartition(".")[2]
    # A name without its section is likelier than one that is spelled similarly.
    same = [one for one in known if one.rpartition(".")[2] == last]
    close = same or get_close_matches(name, known, MAX_SUGGESTED, CLOSE)
    if not close:
        lasts = get_close_matches(last, {one.rpartition(".")[2] for one in known}, MAX_SUGGESTED, CLOSE)
        close = [one for one in known if one.rpartition(".")[2] in lasts]
    listed = " or ".join(map(repr, close[:MAX_SUGGESTED]))
    hint = f"did you mean {listed}?" if close else "gsd settings show lists all settings"
    return ConfigError(f"no setting {name!r}", hint=hint)


def known_settings(classes: Sequence[tuple[str, type]]) -> dict[str, tuple[type, attrs.Attribute[Any]]]:
    """Return the class and the field of each setting, by its name (``run.model``)."""
    return {
        f"{section}.{field.name}": (kind, field)
        for section, kind in classes
        for field in attrs.fields(attrs.resolve_types(kind))
        if field.init
    }


def set_in_file(path: Path, section: str, key: str, value: Any, *, inside: Path | None) -> None:
    """Set a value in the file at *path*, which need not exist; *inside* is the project it belongs to.

    A link that leads out of *inside* is not followed. Raises ``ConfigError`` if the file is not valid TOML,
    or if its form does not allow the change.
    """
    folder, name, text, wanted = _read(path, inside)
    line = f"{key} = {_literal(value)}"
    after = _edited(text, section, key, line)
    # What has the section's name may be something else: `run = 3`.
    table = wanted.setdefault(section, {})
    if isinstance(table, dict):
        table[key] = value
    if not isinstance(table, dict) or not _means(after, wanted):
        hint = f"edit the file: [{section}] {line}"
        raise ConfigError(f"{path} is written in a way that cannot be changed here", hint=hint)
    folder.mkdir(parents=True, exist_ok=True)
    write_below(folder, name, after.encode("utf-8"))


def unset_in_file(path: Path, section: str, key: str, *, inside: Path | None) -> bool:
    """Remove a value from the file at *path*; return whether it was there. See :func:`set_in_file`."""
    folder, name, text, wanted = _read(path, inside)
    values = wanted.get(section)
    if not isinstance(values, dict) or key not in values:
        return False
    del values[key]
    after = _edited(text, section, key, "")
    if not _means(after, wanted):
        hint = f"edit the file: remove {key} from [{section}]"
        raise ConfigError(f"{path} is written in a way that cannot be changed here", hint=hint)
    write_below(folder, name, after.encode("utf-8"))
    return True


def _read(path: Path, inside: Path | None) -> tuple[Path, str, str, dict[str, Any]]:
    """Return the folder, the name, the text and the content of a file, which need not exist."""
    # The user's own settings may be a link to anywhere.
    real = inside / path.name if inside else Path(os.path.realpath(path))
    folder, name, text = real.parent, real.name, ""
    try:
        if folder.is_dir():
            text = read_below(folder, name).decode("utf-8")
        return folder, name, text, tomllib.loads(text)
    except FileNotFoundError:
        return folder, name, "", {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", hint="fix the file, or move it away") from error


def _edited(text: str, section: str, key: str, line: str) -> str:
    """Return *text* with *line* for a key, or without the key's line if *line* is empty."""
    lines = text.splitlines(keepends=True)
    is_header = re.compile(rf"\s*\[\s*{re.escape(section)}\s*\]").match
    header = next((number for number, one in enumerate(lines) if is_header(one)), None)
    if header is None:
        if not line:
            return text
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[{section}]\n{line}\n"
    last = header
    for number in range(header + 1, len(lines)):
        if lines[number].lstrip().startswith("["):
            break
        if found := re.match(rf"(\s*){re.escape(key)}\s*=[^#\n]*?(\s*#.*)?(\r?\n|$)", lines[number]):
            lines[number] = f"{found[1]}{line}{found[2] or ''}{found[3]}" if line else ""
            return "".join(lines)
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            last = number
    if not line:
        return text
    end = "" if lines[last].endswith("\n") else "\n"
    lines[last] += f"{end}{line}\n"
    return "".join(lines)


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _literal(value: object) -> str:
    """Return *value* in TOML; JSON writes strings, numbers, booleans and lists the same way."""
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        pairs = (f"{json.dumps(key)} = {_literal(one)}" for key, one in table.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, cast('list[object]', value)))}]"
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007F")
