"""The options of ``gsd run`` and ``gsd resume`` that come from settings, and ranges of phases.

The owner of a setting declares its flag, once. A flag that was not given sets nothing, so it overrides
neither a file nor a variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args, get_origin

import attrs
import click
from click.core import ParameterSource

from gsd_core.errors import ConfigError
from gsd_core.model.ids import normal_phase, phase_order
from gsd_core.plugins.loading import collect_settings
from gsd_core.settings import COMMAND_LINE, CORE_SECTIONS, Layer, RunSettings, Settings

from .global_options import GlobalOptions, global_options, global_options_of
from .help import Command
from .plugin_loading import Loaded, loaded_plugins

if TYPE_CHECKING:
    from gsd_core.machine.state import Options

SettingsClasses: TypeAlias = Sequence[tuple[str, type[Any]]]
"""Settings classes with their sections."""


class StartCommand(Command):
    """A command that starts a run: it also takes the flags that plugins' settings declare."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Load the plugins that *args* name, then parse *args* with the flags of these plugins."""
        options = options_ahead(global_options_of(ctx), args)
        loaded_plugins(ctx, options, with_trusted_ones=True)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, after what an earlier one has left undone."""
        from .editing import finish_interrupted

        if not ctx.params.get("dry_run"):
            finish_interrupted(global_options_of(ctx))
        return super().invoke(ctx)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and those of the settings."""
        settings = setting_options(classes_of(loaded_plugins(ctx)))
        help_option = self.get_help_option(ctx)
        return [*self.params, *settings, *([help_option] if help_option else [])]


class StepCommand(StartCommand):
    """A command that starts a run for one step: it takes no flag that only decides which steps are due."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters without those that have no effect on a step that is asked for."""
        return [one for one in super().get_params(ctx) if LIFECYCLE_FLAGS.isdisjoint(one.opts)]


LIFECYCLE_FLAGS = frozenset({"--phases", "--only", "--skip-verify", "--skip-discuss"})


@click.command("ahead")
@global_options
def _ahead() -> None:
    """Parse the global options only."""


def options_ahead(options: GlobalOptions, args: Sequence[str]) -> GlobalOptions:
    """Return *options* with the global options in *args*, whose other options are not known yet."""
    ctx = click.Context(_ahead, ignore_unknown_options=True, allow_extra_args=True, resilient_parsing=True)
    # `-h` among them would otherwise be taken for our own.
    ctx.help_option_names = []
    ctx.obj = attrs.evolve(options)
    parsed, _, order = _ahead.make_parser(ctx).parse_args([*args])
    for parameter in dict.fromkeys(order):
        parameter.handle_parse_result(ctx, parsed, [])
    return global_options_of(ctx)


def classes_of(loaded: Loaded) -> SettingsClasses:
    """Return the core's settings classes, then those of the plugins."""
    return (*CORE_SECTIONS, *collect_settings(loaded.hooks))


def setting_options(classes: SettingsClasses) -> list[click.Option]:
    """Return an option for each setting with a flag; raise ``ConfigError`` if two have the same flag."""
    owners: dict[str, str] = {}
    found: list[click.Option] = []
    for section, attribute in _with_flags(classes):
        flag: str = attribute.metadata["flag"]
        if flag in owners:
            message = f"plugins {owners[flag]!r} and {section!r} both declare {flag}"
            raise ConfigError(message, hint=f"leave one of them out: -p no:{section}")
        owners[flag] = section
        found.append(_option(section, attribute))
    return found


def typed_settings(ctx: click.Context, classes: SettingsClasses) -> Layer:
    """Return the settings that were given as flags; paths are absolute, for later commands elsewhere."""
    sections: dict[str, dict[str, Any]] = {}
    for section, attribute in _with_flags(classes):
        name = _parameter_name(section, attribute)
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            value = ctx.params[name]
            if value and Path in (attribute.type, *get_args(attribute.type)):
                value = str(Path(value).absolute())
            sections.setdefault(section, {})[attribute.name] = value
    return Layer(origin=COMMAND_LINE, sections=sections)


def value_of(settings: Settings, flag: str) -> Any:
    """Return the value of the setting that declares *flag*; ``None`` if no loaded plugin does."""
    for kind, value in settings.values.items():
        for attribute in attrs.fields(kind):
            if attribute.metadata.get("flag") == flag:
                return getattr(value, attribute.name)
    return None


def origin_of(settings: Settings, classes: SettingsClasses, flag: str) -> str:
    """Return where the value of the setting that declares *flag* comes from; empty for a default."""
    names = [f"{section}.{a.name}" for section, a in _with_flags(classes) if a.metadata["flag"] == flag]
    return next((settings.origins[name] for name in names if name in settings.origins), "")


def _with_flags(classes: SettingsClasses) -> Iterator[tuple[str, attrs.Attribute[Any]]]:
    for section, kind in classes:
        for attribute in attrs.fields(attrs.resolve_types(kind)):
            if attribute.metadata.get("flag"):
                yield section, attribute


def _parameter_name(section: str, attribute: attrs.Attribute[Any]) -> str:
    return f"setting_{section}_{attribute.name}".replace("-", "_").lower()


_METAVARS: Mapping[str, str] = {"urls": "URL", "answers": "FILE|-", "phases": "RANGE", "only": "PHASE"}


def _option(section: str, attribute: attrs.Attribute[Any]) -> click.Option:
    kind = attribute.type
    metadata = attribute.metadata
    names = [metadata["flag"], _parameter_name(section, attribute)]
    if short := metadata.get("short"):
        names.insert(0, short)
    text: str = attribute.metadata.get("help", "")
    default: Any = attribute.default
    if isinstance(default, tuple):
        default = ", ".join(map(str, cast("tuple[object, ...]", default)))
    if isinstance(default, str) and default:
        text += f" (default: {default})"
    # click must not fill in a default, because a flag that was not given must not override anything.
    more: dict[str, Any] = {"help": text, "expose_value": True, "default": None}
    if kind is bool:
        return click.Option(names, is_flag=True, **more)
    if get_origin(kind) is Literal:
        return click.Option(names, type=click.Choice([str(value) for value in get_args(kind)]), **more)
    metavar = _METAVARS.get(attribute.name, attribute.name.upper().replace("MAX_", ""))
    return click.Option(names, multiple=get_origin(kind) is tuple, metavar=metavar, **more)


def lifecycle_options(run: RunSettings, known: Sequence[str]) -> Options:
    """Return what the machine needs to know of the settings of a run; *known* are the project's phases."""
    from gsd_core.machine.state import Options

    return Options(
        phases=parse_phases(run.only or run.phases, known),
        skip_verify=run.skip_verify,
        skip_discuss=run.skip_discuss,
        gap_rounds=run.gap_rounds,
    )


_RANGE_HINT = "write phases like 1-3,5,7.1"
_NUMBER = re.compile(r"\d+[A-Za-z]?(\.\d+[A-Za-z]?)*")


def parse_phases(text: str, known: Sequence[str]) -> tuple[str, ...] | None:
    """Return the phase numbers in *text*, such as ``1-3,5,7.1``; ``None`` (all phases) if it is empty.

    A range contains the whole numbers from its start to its end, and the *known* phases between them:
    ``1-3`` includes an inserted 2.1, but not 3.1.
    """
    found: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        low, dash, high = (end.strip() for end in part.partition("-"))
        found += _between(low, high, known, text) if dash else [_parse_number(low, text)]
    return tuple(dict.fromkeys(found)) or None


def _between(low: str, high: str, known: Sequence[str], text: str) -> list[str]:
    first, last = phase_order(_parse_number(low, text)), phase_order(_parse_number(high, text))
    if first > last:
        raise ConfigError(f"not a range of phases: {text!r}: {low} comes after {high}", hint=_RANGE_HINT)
    whole = [str(n) for n in range(first[0][0], last[0][0] + 1)]
    candidates = sorted({normal_phase(low), normal_phase(high), *whole, *known}, key=phase_order)
    return [number for number in candidates if first <= phase_order(number) <= last]


def _parse_number(number: str, text: str) -> str:
    if not _NUMBER.fullmatch(number):
        raise ConfigError(f"not a range of phases: {text!r}", hint=_RANGE_HINT)
    return normal_phase(number)
