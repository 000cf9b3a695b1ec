"""Settings in layers: flag > ``GSD_*`` > project ``gsd.toml`` > ``.planning/config.json`` > user > default.

Each plugin contributes classes (``gsd_settings``); a class's section in the files is the plugin's
name, its variables are ``GSD_SECTION_FIELD`` (``GSD_FIELD`` for the core's own section ``run``).
Unknown keys are errors with a suggestion, all of them at once.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs
from attrs import field, frozen

from .bound import bind_settings, setting, settings_of
from .errors import ConfigError
from .step import Depth, Profile

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
    from .convert import structure_setting

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


__all__ = [
    "CORE_SECTIONS", "Layer", "LimitSettings", "RunSettings", "Settings", "bind_settings",
    "environment_layer", "planning_layer", "resolve", "setting", "settings_of", "toml_layer", "user_config",
]  # fmt: skip
