"""Change one value in a TOML file of settings; everything else in it, comments too, stays byte for byte.

There is no general editor of TOML here: the line of the value is replaced, or one is added, and the result
is read again. If it differs in anything but this value, nothing is written.
"""

from __future__ import annotations

import copy
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


def checked_value(
    classes: Sequence[tuple[str, type]], section: str, key: str, text: str
) -> tuple[attrs.Attribute[Any], Any]:
    """Return the field of a setting, and *text* as its value in TOML.

    Raises ``ConfigError`` if there is no such setting, or if its class rejects the value.
    """
    fields = {
        f"{name}.{field.name}": (kind, field)
        for name, kind in classes
        for field in attrs.fields(attrs.resolve_types(kind))
        if field.init
    }
    name = f"{section}.{key}"
    if name not in fields:
        close = get_close_matches(name, list(fields), 1)
        hint = f"did you mean {close[0]!r}?" if close else "gsd settings show lists all settings"
        raise ConfigError(f"no setting {name!r}", hint=hint)
    kind, field = fields[name]
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
    resolve([(section, kind)], [Layer(origin="the value", sections={section: {key: value}})])
    return field, value


def set_in_file(path: Path, section: str, key: str, value: Any, *, inside: Path | None) -> None:
    """Set a value in the file at *path*, which need not exist; *inside* is the project it belongs to.

    A link that leads out of *inside* is not followed. Raises ``ConfigError`` if the file is not valid TOML,
    or if its form does not allow the change.
    """
    # The user's own settings may be a link to anywhere.
    real = path if inside else Path(os.path.realpath(path))
    folder = inside or real.parent
    try:
        text = read_below(folder, real.name).decode("utf-8") if folder.is_dir() else ""
        before = tomllib.loads(text)
    except FileNotFoundError:
        text, before = "", dict[str, Any]()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", hint="fix the file, or move it away") from error
    line = f"{key} = {_literal(value)}"
    after = _edited(text, section, key, line)
    wanted = copy.deepcopy(before)
    wanted.setdefault(section, {})[key] = value
    if not _means(after, wanted):
        hint = f"edit the file: [{section}] {line}"
        raise ConfigError(f"{path} is written in a way that cannot be changed here", hint=hint)
    folder.mkdir(parents=True, exist_ok=True)
    write_below(folder, real.name, after.encode("utf-8"))


def _edited(text: str, section: str, key: str, line: str) -> str:
    lines = text.splitlines(keepends=True)
    header = next(
        (n for n, one in enumerate(lines) if re.match(rf"\s*\[\s*{re.escape(section)}\s*\]", one)), None
    )
    if header is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[{section}]\n{line}\n"
    last = header
    for number in range(header + 1, len(lines)):
        if lines[number].lstrip().startswith("["):
            break
        if found := re.match(rf"(\s*){re.escape(key)}\s*=[^#\n]*?(\s*#.*)?(\r?\n|$)", lines[number]):
            lines[number] = f"{found[1]}{line}{found[2] or ''}{found[3]}"
            return "".join(lines)
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            last = number
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
