"""``gsd plugins``: what is there, what is used, and why something is not."""

from __future__ import annotations

import attrs
import click
from rich.table import Table
from rich_click import RichCommand

from gsd_core.errors import UserError
from gsd_core.plugins import PluginInfo
from gsd_core.views.status import SCHEMA_VERSION

from .output import console, json_flag, print_json, styled
from .where import Where, anywhere, where_of

STYLES = {"active": "green", "blocked": "dim", "broken": "red", "untrusted": "yellow"}


@click.command("plugins", cls=RichCommand)
@anywhere
@click.option("--hook", metavar="NAME", default="", help="only plugins that implement this hook")
@json_flag
@click.pass_context
def command(ctx: click.Context, hook: str, as_json: bool) -> None:
    """List the plugins: name, source, status, version, hooks.

    The project's own plugins are listed without being imported, so their hooks are not known here.
    """
    infos = _infos(where_of(ctx))
    if hook:
        infos = [info for info in infos if _full_name(hook) in info.hooks]
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION, "plugins": [_json(info) for info in infos]})
    else:
        console().print(_table(infos))


def _infos(where: Where) -> list[PluginInfo]:
    from .loading import load_installed, trust_of

    trusted = trust_of(where.directory)
    return [_vouched(info, trusted) for info in load_installed(where).infos]


def _vouched(info: PluginInfo, trusted: frozenset[str]) -> PluginInfo:
    if info.status == "untrusted" and info.sha256 in trusted:
        return attrs.evolve(info, status="active", reason="trusted; loaded by gsd run only")
    return info


def _full_name(hook: str) -> str:
    """Return the hook's name; raise ``UserError`` with a suggestion if there is none like it."""
    from difflib import get_close_matches

    from gsd_core import hookspecs

    known = [name for name in dir(hookspecs) if name.startswith("gsd_")]
    name = hook if hook.startswith("gsd_") else f"gsd_{hook}"
    if name in known:
        return name
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"hooks: {', '.join(known)}"
    raise UserError(f"no hook {hook!r}", hint=hint)


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
