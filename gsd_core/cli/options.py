"""Ranges of phases as one types them: ``1-3,5,7.1``.

Flags that come from settings classes: declared once, by whoever owns the setting.

A flag that was not typed says nothing, so it overrides no file and no variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin

import attrs
import click
from click.core import ParameterSource
from rich_click import RichCommand

from gsd_core.errors import ConfigError
from gsd_core.model.ids import normal_phase, phase_order
from gsd_core.plugins.loading import collect_settings
from gsd_core.settings import CORE_SECTIONS, Layer, Settings

from .global_options import GlobalOptions, global_options_of
from .plugin_loading import Loaded, load_installed

HINT = "phases look like 1-3,5,7.1"
_NUMBER = re.compile(r"\d+[A-Za-z]?(\.\d+[A-Za-z]?)*")


def parse_phases(text: str, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the numbers that *text* means, ``None`` (all) if it is empty.

    A range holds the whole numbers between its ends, and those of the *known* phases that lie
    between them: ``1-3`` includes an inserted 2.1, but not 3.1.
    """
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        low, dash, high = (end.strip() for end in part.partition("-"))
        found += _between(low, high, known, text) if dash else [_number(low, text)]
    return tuple(dict.fromkeys(found)) or None


def _between(low: str, high: str, known: Sequence[str], text: str) -> list[str]:
    first, last = phase_order(_number(low, text)), phase_order(_number(high, text))
    if first > last:
        raise ConfigError(f"not a range of phases: {text!r}: {low} comes after {high}", hint=HINT)
    whole = [str(n) for n in range(first[0][0], last[0][0] + 1)]
    everything = sorted({normal_phase(low), normal_phase(high), *whole, *known}, key=phase_order)
    return [number for number in everything if first <= phase_order(number) <= last]


def _number(text: str, whole: str) -> str:
    if not _NUMBER.fullmatch(text):
        raise ConfigError(f"not a range of phases: {whole!r}", hint=HINT)
    return normal_phase(text)


LOADED = "gsd.loaded"
Classes: TypeAlias = Sequence[tuple[str, type[Any]]]


class StartCommand(RichCommand):
    """A command that starts a run: its options are its own and those of the plugins' settings."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Load the plugins that *args* name, then read the flags that they declare."""
        ctx.meta[LOADED] = load_installed(ahead(global_options_of(ctx), args))
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return our own parameters and those of the settings."""
        loaded: Loaded = ctx.meta.get(LOADED) or load_installed(global_options_of(ctx))
        return [*super().get_params(ctx), *options(classes_of(loaded))]


def classes_of(loaded: Loaded) -> Classes:
    """Return the settings classes with their sections, the core's own first."""
    return (*CORE_SECTIONS, *collect_settings(loaded.hooks))


def ahead(where: GlobalOptions, args: Sequence[str]) -> GlobalOptions:
    """Return *where* with what *args* add to it: plugins have to be loaded before their flags are read."""
    found = list(_said(args))
    directories = [Path(value) for name, value in found if name == "-C"]
    return GlobalOptions(
        directory=directories[-1] if directories else where.directory,
        plugins=(*where.plugins, *(value for name, value in found if name == "-p")),
        plugin_dirs=(*where.plugin_dirs, *(Path(value) for name, value in found if name == "--plugins-dir")),
    )


def _said(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, arg in enumerate(args):
        if arg == "--":
            return
        following = args[at + 1] if at + 1 < len(args) else ""
        if arg in ("-p", "-C", "--plugins-dir") and following:
            yield arg, following
        elif arg[:2] in ("-p", "-C") and len(arg) > 2:
            yield arg[:2], arg[2:]
        elif arg.startswith("--plugins-dir="):
            yield "--plugins-dir", arg.partition("=")[2]


def options(classes: Classes) -> list[click.Option]:
    """Return an option for each field that declares a flag; two with the same flag are an error."""
    owners: dict[str, str] = {}
    found: list[click.Option] = []
    for section, attribute in _flagged(classes):
        flag: str = attribute.metadata["flag"]
        if flag in owners:
            message = f"plugins {owners[flag]!r} and {section!r} both declare {flag}"
            raise ConfigError(message, hint=f"block one of them: -p no:{section}")
        owners[flag] = section
        found.append(_option(section, attribute))
    return found


def typed(ctx: click.Context, classes: Classes) -> Layer:
    """Return what the user typed, as the strongest layer."""
    sections: dict[str, dict[str, Any]] = {}
    for section, attribute in _flagged(classes):
        name = _name(section, attribute)
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            sections.setdefault(section, {})[attribute.name] = ctx.params[name]
    return Layer(origin="command line", sections=sections)


def value_of(settings: Settings, flag: str) -> Any:
    """Return the value of the setting that declares *flag*, whoever owns it; ``None`` if nobody does."""
    for kind, value in settings.values.items():
        for attribute in attrs.fields(kind):
            if attribute.metadata.get("flag") == flag:
                return getattr(value, attribute.name)
    return None


def _flagged(classes: Classes) -> Iterator[tuple[str, attrs.Attribute[Any]]]:
    for section, kind in classes:
        for attribute in attrs.fields(attrs.resolve_types(kind)):
            if attribute.metadata.get("flag"):
                yield section, attribute


def _name(section: str, attribute: attrs.Attribute[Any]) -> str:
    return f"setting_{section}_{attribute.name}".replace("-", "_").lower()


def _option(section: str, attribute: attrs.Attribute[Any]) -> click.Option:
    kind = attribute.type
    declared = [attribute.metadata["flag"], _name(section, attribute)]
    about: dict[str, Any] = {"help": _help(attribute), "expose_value": True, "default": None}
    if kind is bool:
        return click.Option(declared, is_flag=True, **about)
    if get_origin(kind) is Literal:
        return click.Option(declared, type=click.Choice([str(value) for value in get_args(kind)]), **about)
    several = get_origin(kind) is tuple
    return click.Option(declared, multiple=several, metavar=_metavar(attribute), **about)


def _metavar(attribute: attrs.Attribute[Any]) -> str:
    names: Mapping[str, str] = {"urls": "URL", "answers": "FILE|-", "phases": "RANGE", "only": "PHASE"}
    return names.get(attribute.name, attribute.name.upper().replace("MAX_", ""))


def _help(attribute: attrs.Attribute[Any]) -> str:
    text: str = attribute.metadata.get("help", "")
    default: Any = attribute.default
    if isinstance(default, str) and default:
        return f"{text} (default: {default})"
    if isinstance(default, tuple) and default:
        names = cast("tuple[object, ...]", default)
        return f"{text} (default: {', '.join(map(str, names))})"
    return text
