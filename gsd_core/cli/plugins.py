"""``gsd plugins``: what is there, what is used, and why something is not; and the author's kit."""

from __future__ import annotations

import attrs
import click
from rich.table import Table
from rich_click import RichGroup

from gsd_core.plugins.loading import PluginInfo
from gsd_core.views.status import SCHEMA_VERSION

from . import plugins_check, plugins_new
from .global_options import Where, anywhere, where_of
from .output import console, json_flag, print_json, styled

STYLES = {"active": "green", "blocked": "dim", "broken": "red", "untrusted": "yellow"}


@click.group("plugins", cls=RichGroup, invoke_without_command=True)
@anywhere
@click.option("--hook", metavar="NAME", default="", help="only plugins that implement this hook")
@json_flag
@click.pass_context
def command(ctx: click.Context, hook: str, as_json: bool) -> None:
    """List the plugins: name, source, status, version, hooks. Or begin one, or check one.

    The project's own plugins are listed without being imported, so their hooks are not known here.
    """
    if ctx.invoked_subcommand is None:
        _list(where_of(ctx), hook, as_json)


command.add_command(plugins_new.command)
command.add_command(plugins_check.command)


def _list(where: Where, hook: str, as_json: bool) -> None:
    infos = _infos(where)
    if hook:
        infos = [info for info in infos if _full_name(hook) in info.hooks]
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, "plugins": [_json(info) for info in infos]})
    else:
        console().print(_table(infos))


def _infos(where: Where) -> list[PluginInfo]:
    from .plugin_loading import load_installed, trust_of

    trusted = trust_of(where.directory)
    return [_vouched(info, trusted) for info in load_installed(where).infos]


def _vouched(info: PluginInfo, trusted: frozenset[str]) -> PluginInfo:
    if info.status == "untrusted" and info.sha256 in trusted:
        return attrs.evolve(info, status="active", reason="trusted; loaded by gsd run only")
    return info


def _full_name(hook: str) -> str:
    from gsd_core.testing.new_package import full_hook

    return full_hook(hook)


def _json(info: PluginInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "source": info.source,
        "status": info.status,
        "reason": info.reason or None,
        "distribution": info.distribution or None,
        "version": info.version or None,
        "sha256": info.sha256 or None,
        "path": info.path or None,
        "hooks": list(info.hooks),
    }


def _table(infos: list[PluginInfo]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("plugin", "source", "status", "version", "hooks"):
        table.add_column(title, overflow="fold")
    for info in infos:
        status = f"{info.status}: {info.reason}" if info.reason else info.status
        version = " ".join(part for part in (info.distribution, info.version) if part)
        hooks = ", ".join(hook.removeprefix("gsd_") for hook in info.hooks)
        cells = (styled(info.name, "bold"), styled(info.source), styled(status, STYLES[info.status]))
        table.add_row(*cells, styled(version or info.sha256[:12]), styled(hooks))
    return table
