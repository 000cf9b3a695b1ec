"""``gsd settings``: shows the settings with their origins, and changes one (``set``, ``unset``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import click

from gsd_core.errors import ConfigError

from .global_options import global_options_of, gsd_command
from .help import Group, examples
from .output import json_flag, print_json, print_line, styled, warn

HIDDEN = "(hidden)"


@click.group(
    "settings",
    cls=Group,
    epilog=examples(
        "gsd settings show --origin", "gsd settings set run.model opus", "gsd settings unset run.model"
    ),
)
def command() -> None:
    """Show the settings and where they come from, or change one."""


@gsd_command("show", "gsd settings show", "gsd settings show run --origin", last=json_flag)
@click.argument("prefix", default="", required=False)
@click.option("--origin", is_flag=True, help="also show where each value comes from")
def show(ctx: click.Context, prefix: str, origin: bool, as_json: bool) -> None:
    """Show the settings of a run that would start now, all or those that begin with PREFIX (run.model).

    What the project's files set counts only if it is harmless or trusted, as in a run. Secrets are hidden.
    """
    from .options import classes_of
    from .plugin_loading import loaded_plugins
    from .project import project_root
    from .project_settings import settings_that_count
    from .settings_file import unknown_setting

    options = global_options_of(ctx)
    # A run would make the folder.
    root = project_root(options) if options.directory.exists() else options.directory.resolve()
    loaded, settings, ignored = settings_that_count(loaded_plugins(ctx), root)
    rows = [
        (name, value, settings.origins.get(name, "default"))
        for section, kind in classes_of(loaded)
        for name, value in shown_values(section, settings.of(kind))
        if name.startswith(prefix)
    ]
    if not rows:
        raise unknown_setting(classes_of(loaded), prefix)
    if as_json:
        listed = [{"name": name, "value": value, "origin": source} for name, value, source in rows]
        print_json({"settings": listed, "not_trusted": list(ignored)})
        return
    warn(f"not trusted, so it has no effect: {name}" for name in ignored)
    for name, value, source in rows:
        text = f"{name} = {json.dumps(value, ensure_ascii=False)}"
        line = styled(text, "" if source == "default" else "bold")
        print_line(line.append_text(styled(f"  # {source}", "dim")) if origin else line)


@gsd_command(
    "set", "gsd settings set run.depth quick", "gsd settings set --user limits.idle 20m", last=json_flag
)
@click.argument("name")
@click.argument("value")
@click.option("--user", is_flag=True, help="in your own settings, for all projects, instead of the project's")
def set_command(ctx: click.Context, name: str, value: str, user: bool, as_json: bool) -> None:
    """Set NAME (such as run.model) to VALUE in the project's gsd.toml.

    The rest of the file stays as it is, with its comments. VALUE is written as in TOML, or as plain text:
    gsd settings set limits.idle 20m. The value is checked before anything is written.
    """
    from .options import classes_of, parse_phases
    from .plugin_loading import loaded_plugins
    from .project_settings import settings_that_count
    from .settings_file import checked_value, set_in_file

    root, path = _file_to_change(ctx, user=user)
    section, _, key = name.partition(".")
    loaded = loaded_plugins(ctx)
    field, checked = checked_value(classes_of(loaded), section, key, value)
    if name in ("run.phases", "run.only"):
        parse_phases(checked, ())
    metadata = field.metadata
    if not user and (metadata.get("consent") or metadata.get("secret")):
        why = "a secret does not belong into" if metadata.get("secret") else "consent cannot come from"
        raise ConfigError(f"{name}: {why} a project's files", hint=f"gsd settings set --user {name} VALUE")
    set_in_file(path, section, key, checked, inside=None if user else root)
    # What is in the project's file may have come with it, so the user is asked for it like for anything else.
    if not user and name in settings_that_count(loaded, root)[2]:
        warn([f"{name} has no effect until you trust the project: gsd trust"])
    shown = HIDDEN if metadata.get("secret") else checked
    if as_json:
        print_json({"name": name, "value": shown, "path": str(path)})
    else:
        print_line(f"{path}: {name} = {json.dumps(shown, ensure_ascii=False)}")


@gsd_command("unset", "gsd settings unset run.depth", "gsd settings unset --user limits.idle", last=json_flag)
@click.argument("name")
@click.option("--user", is_flag=True, help="in your own settings, for all projects, instead of the project's")
def unset_command(ctx: click.Context, name: str, user: bool, as_json: bool) -> None:
    """Remove NAME (such as run.model) from the project's gsd.toml.

    The rest of the file stays as it is, with its comments. A name that is no setting, such as a misspelled
    one, can be removed too. If it is not set there, nothing is done.
    """
    from .options import classes_of
    from .plugin_loading import loaded_plugins
    from .settings_file import known_settings, unknown_setting, unset_in_file

    root, path = _file_to_change(ctx, user=user)
    section, _, key = name.partition(".")
    if not (was_set := unset_in_file(path, section, key, inside=None if user else root)):
        classes = classes_of(loaded_plugins(ctx))
        if name not in known_settings(classes):
            raise unknown_setting(classes, name)
        warn([f"it was not set there; see where its value comes from: gsd settings show --origin {name}"])
    if as_json:
        print_json({"name": name, "path": str(path)})
    else:
        print_line(f"{path}: {name} is {'no longer' if was_set else 'not'} set")


for subcommand in (show, set_command, unset_command):
    command.add_command(subcommand)


def _file_to_change(ctx: click.Context, *, user: bool) -> tuple[Path, Path]:
    """Return the project's folder and the settings file; raise ``UserError`` for an agent."""
    from gsd_core.processes import refuse_agents
    from gsd_core.settings import user_config

    from .project import holder_of, project_root
    from .project_trust import PROJECT_SETTINGS

    root = project_root(global_options_of(ctx))
    holder = None if user else holder_of(root)
    refuse_agents("change the settings", run_pid=holder.pid if holder else None)
    return root, user_config() if user else root / PROJECT_SETTINGS


def shown_values(section: str, settings: object) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each setting of a class, as JSON data; a secret one is hidden."""
    from .settings_file import known_settings

    for name, (_, field) in known_settings([(section, type(settings))]).items():
        value: Any = getattr(settings, field.name)
        is_hidden = field.metadata.get("secret") and value
        yield name, HIDDEN if is_hidden else _plain(value)


def _plain(value: Any) -> Any:
    """Return a setting's value as JSON data, written as in a settings file."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            return f"{value.total_seconds():g}s"
        case Decimal() | Path():
            return str(value)
        case list() | tuple() | set() | frozenset():
            items = cast("Sequence[object]", value)
            return [_plain(item) for item in items]
        case dict():
            return {str(key): _plain(item) for key, item in cast("dict[object, object]", value).items()}
        case _:
            return str(value)
