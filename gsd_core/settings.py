"""Make a setting's value of what a file, a variable or a flag says.

Settings as plugins see them: classes with defaults, bound to a run.

Two runs may share a process, so there is no module-level state: the values are found through
a context variable that the run sets before it calls any plugin.

Settings in layers: flag > ``GSD_*`` > project ``gsd.toml`` > ``.planning/config.json`` > user > default.

Each plugin contributes classes (``gsd_settings``); a class's section in the files is the plugin's
name, its variables are ``GSD_SECTION_FIELD`` (``GSD_FIELD`` for the core's own section ``run``).
Unknown keys are errors with a suggestion, all of them at once.
"""

from __future__ import annotations

import os
import re
import tomllib
import types
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import attrs
from attrs import field, frozen

from .errors import ConfigError
from .model.step import Depth, Profile

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def structure_setting(value: Any, kind: Any) -> Any:
    """Return *value* as *kind* (a field's type); raise ``ValueError`` saying what was expected."""
    origin = get_origin(kind)
    if origin is Literal:
        return _one_of(value, get_args(kind))
    if origin is tuple:
        return tuple(structure_setting(part, get_args(kind)[0]) for part in _parts(value))
    if origin in (Union, types.UnionType):
        inner = [k for k in get_args(kind) if k is not type(None)]
        return None if value is None or value == "" else structure_setting(value, inner[0])
    return _scalar(value, kind)


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, not {value!r}")
    return cast("Sequence[Any]", value)


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise ValueError(f"expected one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def _scalar(value: Any, kind: Any) -> Any:
    if kind is bool:
        return _boolean(value)
    if kind is timedelta:
        return _duration(value)
    if kind is Decimal:
        return _decimal(value)
    if kind is str:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ValueError(f"expected a text, not {value!r}")
        return str(value)
    if kind is int:
        if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
            raise ValueError(f"expected a whole number, not {value!r}")
        return int(value)
    if kind is float:
        return float(value)
    return Path(value) if kind is Path else value


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"expected true or false, not {value!r}")


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
    if not match:
        raise ValueError(f"expected seconds or a time like '10m', not {value!r}")
    return timedelta(seconds=float(match[1]) * _UNITS[match[2] or "s"])


def _decimal(value: Any) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"expected a number, not {value!r}") from None
    if not number.is_finite() or number < 0:
        raise ValueError(f"expected an amount, not {value!r}")
    return number


T = TypeVar("T")

_bound: ContextVar[Mapping[type, object] | None] = ContextVar("gsd_settings", default=None)


def setting(default: Any, *, flag: str = "", help: str = "") -> Any:  # noqa: A002 - click's own word
    """Declare a field of a settings class: its *default*, and its *flag* on ``gsd run``, if any.

    *default* may be a callable, called for each instance. A flag's values are those of the
    field's type; a tuple's flag may be repeated.
    """
    metadata = {"flag": flag, "help": help}
    if callable(default):
        return attrs.field(factory=default, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


def settings_of(kind: type[T]) -> T:
    """Return the run's values of the settings class *kind*; its defaults outside any run."""
    values = _bound.get() or {}
    return cast("T", values[kind]) if kind in values else kind()


@contextmanager
def bind_settings(values: Mapping[type, object]) -> Generator[None]:
    """Let :func:`settings_of` find *values*, by their class, in this context and its tasks."""
    token = _bound.set(values)
    try:
        yield
    finally:
        _bound.reset(token)


Section: TypeAlias = Mapping[str, Any]


@frozen(kw_only=True)
class RunSettings:
    """The core's own settings, section ``run``.

    *agent*, *execute*, *workspace*: the plugins to ask, in that order. *phases*: a range like
    ``1-3,5,7.1``.
    """

    agent: tuple[str, ...] = setting(("claude",), flag="--agent", help="who does the work")
    execute: tuple[str, ...] = setting(("native",))
    workspace: tuple[str, ...] = setting(("inplace",))
    phases: str = setting("", flag="--phases", help="phases to do, e.g. 1-3,5,7.1")
    only: str = setting("", flag="--only", help="the one phase to do")
    skip_verify: bool = setting(False, flag="--skip-verify", help="do not verify (said in the last line)")
    skip_discuss: bool = setting(False)
    depth: Depth = setting("standard", flag="--depth", help="how finely to divide the work")
    profile: Profile = setting("balanced")
    model: str = setting("", flag="--model", help="one model for every step")
    gap_rounds: int = setting(3)
    commit_docs: bool = setting(True)
    allow_dirty: bool = setting(False, flag="--allow-dirty", help="start although tracked files are changed")
    wait_for_answers: timedelta = setting(timedelta(0))


@frozen(kw_only=True)
class LimitSettings:
    """How long things may take, section ``limits``; times in seconds or ``10m``.

    *idle*, *hard*: an agent without a sign of life; any agent call. *check*, *detector*: a plan's
    command; a gap detector. *max_wait*: for a usage limit to pass. *park_after*: how long an
    agent's process lives while a human is asked; then it is ended, and resumed with the answer.
    """

    idle: timedelta = setting(timedelta(minutes=10))
    hard: timedelta = setting(timedelta(hours=1))
    max_wait: timedelta = setting(timedelta(hours=6))
    park_after: timedelta = setting(timedelta(minutes=5))
    check: timedelta = setting(timedelta(minutes=10))
    detector: timedelta = setting(timedelta(minutes=10))


CORE_SECTIONS: tuple[tuple[str, type], ...] = (("run", RunSettings), ("limits", LimitSettings))


@frozen(kw_only=True)
class Layer:
    """Where values come from, and the values by section; *strict*: an unknown key is an error."""

    origin: str
    sections: Mapping[str, Section]
    strict: bool = True


@frozen(kw_only=True)
class Settings:
    """The values by their class, and the origin of each value that is not a default (``run.model``)."""

    values: Mapping[type, object]
    origins: Mapping[str, str] = field(factory=dict[str, str])

    def of(self, kind: type[Any]) -> Any:
        """Return the value of a settings class."""
        return self.values.get(kind) or kind()


def resolve(
    classes: Sequence[tuple[str, type]], layers: Sequence[Layer], *, tolerated: Sequence[str] = ()
) -> Settings:
    """Merge *layers*, the strongest first, into the settings *classes* (section, class).

    *tolerated* are sections of plugins that are installed but not loaded.
    Raises ``ConfigError`` that lists every unknown key and every value of a wrong type.
    """
    known: dict[str, dict[str, attrs.Attribute[Any]]] = {}
    for section, kind in classes:
        known.setdefault(section, {}).update({a.name: a for a in attrs.fields(attrs.resolve_types(kind))})
    problems = [p for layer in layers if layer.strict for p in _unknown(layer, known, tolerated)]
    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in reversed(layers):
        for section, key, value in _items(layer, known):
            try:
                found[f"{section}.{key}"] = _structure(value, known[section][key].type)
                origins[f"{section}.{key}"] = layer.origin
            except (ValueError, TypeError, ArithmeticError) as exc:
                problems.append(f"{layer.origin}: {section}.{key}: {exc}")
    if problems:
        raise ConfigError("; ".join(problems), hint="the reference of settings lists every key")
    return Settings(
        values={kind: _instance(section, kind, found) for section, kind in classes}, origins=origins
    )


def _items(layer: Layer, known: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    for section, values in layer.sections.items():
        for key, value in values.items():
            if key in known.get(section, {}):
                yield section, key, value


def _unknown(layer: Layer, known: Mapping[str, Mapping[str, Any]], tolerated: Sequence[str]) -> Iterator[str]:
    for section, values in layer.sections.items():
        if section in tolerated:
            continue
        if section not in known:
            yield f"{layer.origin}: unknown section {section!r}{_suggest(section, [*known, *tolerated])}"
            continue
        for key in values:
            if key not in known[section]:
                yield f"{layer.origin}: unknown key {section}.{key}{_suggest(key, known[section])}"


def _suggest(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    close = get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known)) or 'none'}"


def _instance(section: str, kind: type, found: Mapping[str, Any]) -> object:
    given = {
        a.name: found[f"{section}.{a.name}"] for a in attrs.fields(kind) if f"{section}.{a.name}" in found
    }
    return kind(**given)


def _structure(value: Any, kind: Any) -> Any:

    return structure_setting(value, kind)


def environment_layer(classes: Sequence[tuple[str, type]], environ: Mapping[str, str]) -> Layer:
    """Return what ``GSD_*`` variables say."""
    sections: dict[str, dict[str, Any]] = {}
    for section, kind in classes:
        prefix = "GSD_" if section == "run" else f"GSD_{section.upper()}_"
        for attribute in attrs.fields(kind):
            name = prefix + attribute.name.upper()
            if name in environ:
                sections.setdefault(section, {})[attribute.name] = environ[name]
    return Layer(origin="environment", sections=sections)


def toml_layer(path: Path, origin: str) -> Layer:
    """Return what a TOML file says; an absent one says nothing."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Layer(origin=origin, sections={})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"{origin}: {path.name}: {exc}", hint="mend the file, or move it away") from exc
    loose = [key for key, value in data.items() if not isinstance(value, dict)]
    if loose:
        raise ConfigError(f"{origin}: {loose[0]!r} stands outside a section", hint="put it under [run]")
    return Layer(origin=origin, sections=data)


def planning_layer(config: Mapping[str, Any]) -> Layer:
    """Return what GSD's own ``config.json`` says about things that are settings of ours too."""
    workflow, planning = _table(config, "workflow"), _table(config, "planning")
    depths = {"coarse": "quick", "fine": "comprehensive"}
    depth = config.get("depth", config.get("granularity"))
    said: dict[str, Any] = {
        "depth": depths.get(str(depth), depth),
        "profile": config.get("model_profile"),
        "skip_verify": True if workflow.get("verifier", config.get("verifier")) is False else None,
        "skip_discuss": workflow.get("skip_discuss"),
        "commit_docs": planning.get("commit_docs", config.get("commit_docs")),
    }
    run = {key: value for key, value in said.items() if value is not None}
    return Layer(origin=".planning/config.json", sections={"run": run})


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def user_config() -> Path:
    """Return where the user's own settings lie."""
    if override := os.environ.get("GSD_CONFIG"):
        return Path(override)
    import platformdirs

    return platformdirs.user_config_path("gsd") / "config.toml"
