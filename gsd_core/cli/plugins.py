"""``gsd plugins``: list plugins, install them, create a package for a new one, and check one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

import attrs
import click
from rich.text import Text

from gsd_core import hookspecs
from gsd_core.errors import ConfigError, GsdError
from gsd_core.git import data_directory
from gsd_core.hook_markers import mode_of, stability_of
from gsd_core.plugins.index import packages_by_name
from gsd_core.plugins.loading import PluginInfo, collect_settings
from gsd_core.plugins.validation import SETTINGS_OF_HOOKS, nearest
from gsd_core.sanitize import one_line, safe_text
from gsd_core.settings import RunSettings, Settings

from .commands import COMMANDS
from .global_options import GlobalOptions, global_options, global_options_of, gsd_command
from .help import Command, Group, examples
from .output import json_flag, print_json, print_line, print_table, styled
from .plugin_packages import install, list_known, outdated, uninstall

if TYPE_CHECKING:
    from .plugin_loading import Loaded

Failures: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""The hook and the error of each failure, by plugin."""

COLUMNS = ("plugin", "source", "status", "version", "hooks")
PLUGIN_STYLES = {"active": "green", "blocked": "dim", "broken": "red", "untrusted": "yellow"}
RULE_STYLES = {"holds": "green", "broken": "red", "skipped": "dim"}


@click.group(
    "plugins",
    cls=Group,
    epilog=examples(
        "gsd plugins", "gsd plugins install ./contrib/gsd-plugin-slack", "gsd plugins check ./my_plugin.py"
    ),
    invoke_without_command=True,
)
@global_options
@click.option("--hook", metavar="NAME", default="", help="list only plugins that implement this hook")
@json_flag
@click.pass_context
def command(ctx: click.Context, hook: str, as_json: bool) -> None:
    """List plugins, install them, create a new one, or check one.

    A plugin that failed in the last run of this project is listed with its errors. Plugins in the project's
    .gsd/plugins folder are listed without importing them, so their hooks are not shown.
    """
    if ctx.invoked_subcommand is not None:
        return
    infos = _load_infos(ctx)
    if hook:
        from gsd_core.testing.new import full_hook

        name = full_hook(hook)
        infos = [info for info in infos if name in info.hooks]
    failures = _last_failures(global_options_of(ctx))
    if as_json:
        rows = [_info_data(info, failures.get(info.name, ())) for info in infos]
        print_json({"plugins": rows})
        return
    print_table(COLUMNS, [_info_cells(info) for info in infos], {})
    for info in infos:
        for note in info.notes:
            print_line(styled(f"{info.name}: {note}", "yellow"))
        for hook, error in failures.get(info.name, ()):
            print_line(styled(f"{info.name} failed in the last run ({hook}): {one_line(error, 300)}", "red"))


@click.command("new", cls=Command, epilog=examples("gsd plugins new todos --hook find_gaps"))
@click.argument("name")
@click.option(
    "--hook", required=True, metavar="HOOK", help="hook to implement, such as find_gaps, or channel"
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="where to create the package's folder [default: current folder]",
)
def new(name: str, hook: str, directory: Path) -> None:
    """Create a package with an example plugin.

    The package is called gsd-plugin-NAME, and its plugin implements HOOK. A channel asks people and
    brings their answers back. The example is small but useful, and passes its own tests: change it into your
    plugin. Existing files are never overwritten.
    """
    from gsd_core.testing.new import NewPackage, write_package

    package = NewPackage.of(name, hook)
    folder = write_package(package, directory)
    for path in package.texts():
        print_line(f"  {folder / path}", exact=True)
    print_line(f"Created {package.package} with the plugin {package.name!r} for the hook {package.hook}.")
    print_line("Next:")
    print_line(f"  cd {folder} && pip install -e '.[dev]' && pytest && gsd plugins check .", exact=True)


@click.command(
    "check", cls=Command, epilog=examples("gsd plugins check budget", "gsd plugins check ./my_plugin.py")
)
@click.argument("target")
@click.option("--run-agent", is_flag=True, help="also call the plugin's agent, which may cost money")
@json_flag
@click.pass_context
def check(ctx: click.Context, target: str, run_agent: bool, as_json: bool) -> None:
    """Check a plugin.

    TARGET is an installed plugin, one in a folder of --plugins-dir, a module, a .py file, or the folder of
    a package. The command imports the plugin and calls its hooks, in a separate process and in an empty
    project. The exit code is 1 if a rule is broken.
    """
    from gsd_core.testing.check import SCHEMA_VERSION, check_plugin, find_target

    files = (folder / f"{target}.py" for folder in global_options_of(ctx).plugin_dirs)
    found = find_target(next((str(file) for file in files if file.is_file()), target))
    results = check_plugin(found, commands=COMMANDS, run_agent=run_agent)
    broken = any(result.status == "broken" for result in results)
    if as_json:
        rules: list[dict[str, Any]] = [
            {
                **attrs.asdict(result.rule),
                "status": result.status,
                "problems": list(result.problems),
                "reason": result.reason or None,
            }
            for result in results
        ]
        about = {"plugin": found.name, "kind": found.kind, "ok": not broken, "rules": rules}
        print_json({"schema_version": SCHEMA_VERSION, **about})
    else:
        rows = [
            (
                styled(result.rule.id, "bold"),
                result.status,
                f"{result.rule.what} ({result.reason})" if result.reason else result.rule.what,
            )
            for result in results
        ]
        print_table(("rule", "result", "meaning"), rows, RULE_STYLES)
        for result in results:
            if result.status == "broken":
                print_line()
                print_line(f"{result.rule.id}: {result.rule.what}")
                for problem in result.problems:
                    print_line(f"  - {problem}")
                print_line(f"  why: {result.rule.why}")
                print_line(f"  fix: {result.rule.fix}")
        counts = {status: sum(result.status == status for result in results) for status in RULE_STYLES}
        summary = f"{counts['holds']} rules hold, {counts['broken']} broken, {counts['skipped']} skipped"
        print_line()
        print_line(f"{found.name} ({found.kind}): {summary}")
    ctx.exit(int(broken))


@gsd_command("info", "gsd plugins info budget", "gsd plugins info uat --json", last=json_flag)
@click.argument("name")
def info_command(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show everything about the plugin NAME.

    Where it comes from, its hooks and how they are called, what it contributes, its settings with where their
    values come from, and how to turn it off. A plugin of the project is imported only if it is trusted.
    """
    from .plugin_loading import loaded_plugins
    from .project_settings import settings_that_count

    options = global_options_of(ctx)
    loaded, settings = loaded_plugins(ctx), None
    try:
        loaded, settings, _ = settings_that_count(loaded, options.directory.resolve())
    except GsdError as error:
        print_line(styled(f"the settings are invalid, so defaults are shown: {error}", "yellow"))
    same = [one for one in loaded.infos if one.name == name]
    if not same:
        if package := packages_by_name().get(name):
            raise ConfigError(f"the plugin {name!r} is not installed: it is in the package {package}")
        close = nearest(name, tuple(one.name for one in loaded.infos))
        raise ConfigError(f"no plugin {name!r}{close}", hint="'gsd plugins' lists the plugins")
    found = next((one for one in same if one.status != "blocked"), same[0])
    data: dict[str, Any] = _info_data(found, _last_failures(options).get(name, ()))
    data |= _contributions(loaded, found, settings)
    if as_json:
        print_json(data)
        return
    for label, value in data.items():
        rows: list[Any] = data[label] if isinstance(value, list) else []
        if data[label]:
            shown = "" if rows else safe_text(str(data[label]))
            print_line(styled(f"{label.replace('_', ' ')}: ", "bold").append(shown))
        for row in rows:
            about = cast("dict[str, Any]", row) if isinstance(row, dict) else {"": row}
            first, *rest = ((key, each) for key, each in about.items() if each is not None)
            more = (f"{key} {each if isinstance(each, str) else json.dumps(each)}" for key, each in rest)
            listed = ", ".join(more)
            print_line(f"  {one_line(f'{first[1]} ({listed})'.removesuffix(' ()'), 300)}", exact=True)


for subcommand in (new, info_command, check, list_known, install, uninstall, outdated):
    command.add_command(subcommand)


def _load_infos(ctx: click.Context) -> list[PluginInfo]:
    from .plugin_loading import loaded_plugins
    from .project_settings import settings_without_run
    from .project_trust import examine

    root = global_options_of(ctx).directory.resolve()
    loaded = loaded_plugins(ctx)
    run: RunSettings | None = None
    with suppress(GsdError):  # the list of plugins does not depend on valid settings
        # Whether the project's files are trusted is decided at the start of a run.
        run = settings_without_run(attrs.evolve(loaded, admitted=True), root).of(RunSettings)
    asks_trust = any(info.status == "untrusted" for info in loaded.infos)
    trusted = examine(loaded, root).plugin_hashes if asks_trust else frozenset[str]()
    infos: list[PluginInfo] = []
    for info in loaded.infos:
        if run and info.status == "active" and info.source != "default":
            # For those whose hook is called only if a setting lists them.
            info = attrs.evolve(info, notes=(*info.notes, *_unlisted(info, run)))
        elif info.status == "untrusted" and info.sha256 in trusted:
            info = attrs.evolve(info, status="active", reason="trusted; loaded only by gsd run")
        infos.append(info)
    return infos


def _unlisted(info: PluginInfo, run: RunSettings) -> Iterator[str]:

    for hook, setting in SETTINGS_OF_HOOKS.items():
        listed: Sequence[str] = getattr(run, setting)
        # The steps that a plugin adds itself are its own to execute, without being listed.
        own = hook == "gsd_execute_step" and "gsd_steps" in info.hooks
        if hook in info.hooks and info.name not in listed and not own:
            names = ", ".join(listed) or "none"
            yield f"{hook} is called only if the setting run.{setting} lists the plugin (now: {names})"


def _last_failures(options: GlobalOptions) -> Failures:
    """Return what failed in the project's last run, by plugin; nothing without a project or a journal."""
    failures: dict[str, list[tuple[str, str]]] = {}
    root = options.directory.resolve()
    try:
        # Without a run, nothing has to be imported to read it.
        directory = data_directory(root)
        if directory is None or not (directory / "journal.db").exists():
            return {}
        from gsd_core.run.last_run import plugin_failures

        from .project import open_journal

        with open_journal(root) as journal:
            for plugin, hook, error in plugin_failures(journal):
                failures.setdefault(plugin, []).append((hook, error))
    except (GsdError, OSError):
        return {}  # the list of plugins does not depend on a project
    return failures


def _info_data(info: PluginInfo, failures: Sequence[tuple[str, str]]) -> dict[str, object]:
    keys = ("name", "about", "source", "status", "reason", "distribution", "version", "sha256", "path")
    return {
        **{key: getattr(info, key) or None for key in keys},
        "hooks": list(info.hooks),
        "notes": list(info.notes),
        "last_failures": [{"hook": hook, "error": safe_text(error)} for hook, error in failures],
    }


def _contributions(loaded: Loaded, info: PluginInfo, settings: Settings | None) -> dict[str, object]:
    """Return what an active plugin adds, and how to turn a plugin off or on."""
    from gsd_core.run.step_types import collect_step_types
    from gsd_core.testing.new import KINDS

    from .plugin_commands import contributed_commands

    if info.status != "active":
        ways = {"blocked": f"-p {info.name}", "untrusted": "gsd trust"}
        nothing: dict[str, object] = {key: [] for key in ("provides", "commands", "steps", "settings")}
        return {**nothing, "turn_off": None, "turn_on": ways.get(info.status, "gsd plugins check")}
    hooks: list[Any] = []
    plugin = loaded.manager.get_plugin(info.name)
    for caller in sorted(loaded.manager.get_hookcallers(plugin) or (), key=lambda one: one.name):
        spec, setting = getattr(hookspecs, caller.name), SETTINGS_OF_HOOKS.get(caller.name)
        hooks += [
            {
                "hook": caller.name,
                "mode": mode_of(spec),
                "level": stability_of(spec).level,
                "order": "first" if impl.tryfirst else "last" if impl.trylast else None,
                "used": f"if run.{setting} lists it" if setting else None,
            }
            for impl in caller.get_hookimpls()
            if impl.plugin is plugin
        ]
    words = {f"gsd_{hook}": kind.replace("_", " ") for kind, hook in reversed(KINDS.items())}
    return {
        "provides": [words[hook] for hook in info.hooks if hook in words],
        "commands": [f"gsd {one.name}" for owner, one in contributed_commands(loaded) if owner == info.name],
        "steps": [
            {"kind": one.kind, "before": one.before or None, "title": one.title or None}
            for owner, one in collect_step_types(loaded.hooks).types
            if owner == info.name
        ],
        "hooks": hooks,
        "settings": [*_settings_data(loaded, info, settings)],
        "turn_off": f"-p no:{info.name}, or list it in the setting plugins.off",
        "turn_on": None,
    }


def _settings_data(loaded: Loaded, info: PluginInfo, settings: Settings | None) -> Iterator[dict[str, Any]]:

    from .settings import shown_values
    from .settings_file import known_settings

    classes = [(section, kind) for section, kind in collect_settings(loaded.hooks) if section == info.name]
    fields = known_settings(classes)
    for section, kind in classes:
        defaults = dict(shown_values(section, kind()))
        for name, value in shown_values(section, settings.of(kind) if settings else kind()):
            of_type: Any = fields[name][1].type
            yield {
                "name": name,
                "type": str(of_type) if get_args(of_type) else of_type.__name__,
                "value": value,
                "default": defaults[name],
                "origin": settings.origins.get(name, "default") if settings else "default",
            }


def _info_cells(info: PluginInfo) -> list[str | Text]:
    status = f"{info.status}: {info.reason}" if info.reason else info.status
    # A single file has no version; the start of its hash tells two of them apart.
    version = " ".join(part for part in (info.distribution, info.version) if part) or info.sha256[:12]
    hooks = ", ".join(hook.removeprefix("gsd_") for hook in info.hooks)
    name, state = styled(info.name, "bold"), styled(status, PLUGIN_STYLES[info.status])
    return [name, info.source, state, version, hooks]
