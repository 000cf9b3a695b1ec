"""``gsd panels``: shows what plugins have to say about the project."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from gsd_core.sanitize import one_line, safe_text

from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, print_table, styled, warn

if TYPE_CHECKING:
    from gsd_core.model.panel import Panel

MAX_CELL = 300


@gsd_command("panels", "gsd panels", "gsd panels --json", last=json_flag)
def command(ctx: click.Context, as_json: bool) -> None:
    """Show what plugins have to say about the project.

    The dashboard shows the same texts, figures and tables. A plugin in the project's .gsd/plugins folder is
    asked only if you trust the project.
    """
    from gsd_core.hookspecs import gsd_panels
    from gsd_core.settings import bind_settings

    from .plugin_loading import loaded_plugins
    from .project import project_root
    from .project_settings import settings_without_run

    root = project_root(global_options_of(ctx))
    loaded = loaded_plugins(ctx, with_trusted_ones=True)
    number = count()

    def key(panel: Panel) -> str:
        # What cannot be shown has to fail here, where the failure is the plugin's.
        _safe(panel)
        return str(next(number))

    with bind_settings(settings_without_run(loaded, root).values):
        found = loaded.hooks.collect(gsd_panels, key, root)
    failures = [(fault.plugin, _line(fault)) for fault in found.failures]
    panels = [(plugin, _safe(panel)) for plugin, panel in found.items]
    if as_json:
        rows = [{"plugin": plugin, **panel} for plugin, panel in panels]
        failed = [{"plugin": plugin, "reason": reason} for plugin, reason in failures]
        print_json({"panels": rows, "failures": failed})
        return
    warn([reason for _, reason in failures])
    for plugin, shown in panels:
        print_line(styled(f"{shown['title']} ({plugin})", "bold"))
        if shown["text"]:
            print_line(shown["text"])
        for name, value in shown["figures"].items():
            print_line(f"{name}: {value}")
        if shown["rows"]:
            cells = [tuple(one_line(cell, MAX_CELL) for cell in row) for row in shown["rows"]]
            print_table(tuple(shown["columns"]), cells, {})
        print_line("")
    if not panels:
        print_line("no plugin has anything to show")


def _safe(panel: Panel) -> Mapping[str, Any]:
    """Return the panel as JSON data, sanitized; raise an exception if it has no such texts.

    A plugin may have put anything into a field, and may quote what agents wrote.
    """
    for row in panel.rows:
        if len(row) != len(panel.columns):
            texts = f"a row has {len(row)} texts for {len(panel.columns)} columns"
            raise ValueError(f"panel {_line(panel.name)!r}: {texts}")
    return {
        "name": _line(panel.name),
        "title": _line(panel.title),
        "text": safe_text(str(panel.text)),
        "figures": {_line(name): _line(value) for name, value in panel.figures.items()},
        "columns": [_line(name) for name in panel.columns],
        "rows": [[_line(cell) for cell in row] for row in panel.rows],
    }


def _line(text: object) -> str:
    return safe_text(str(text), multiline=False)
