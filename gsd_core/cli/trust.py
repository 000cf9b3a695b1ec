"""Whether the project's own plugins may run: asked once for each content of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gsd_core.plugins import PluginInfo
from gsd_core.text import sanitize

from .loading import trust_file, trust_of


def vouched_for(root: Path, untrusted: Sequence[PluginInfo], *, yes: bool, ask: bool) -> frozenset[str]:
    """Return the hashes that may be loaded: those trusted before, and those trusted now.

    With *yes* all are; with *ask* the user is asked at the terminal, once for each; else nobody
    is, and the files stay out of the run.
    """
    for info in untrusted:
        if yes or (ask and _agreed(info)):
            _remember(root, info)
        else:
            _say_untrusted(info)
    return trust_of(root)


def _agreed(info: PluginInfo) -> bool:
    """Ask at the terminal. Code from a repository runs with all the rights that its user has."""
    about = f"{info.name} ({info.path}, sha256 {info.sha256[:12]})"
    click.echo(f"the project brings its own plugin: {sanitize(about, multiline=False)}", err=True)
    return click.confirm("it may do whatever you may do. Trust it?", default=False, err=True)


def _remember(root: Path, info: PluginInfo) -> None:
    if trust := trust_file(root):
        trust.add(info.sha256, info.name)


def _say_untrusted(info: PluginInfo) -> None:
    about = f"{info.name} ({info.path}, sha256 {info.sha256[:12]})"
    line = f"warning: plugin {about} is not trusted and stays out; read it, then start with --yes to trust it"
    click.echo(sanitize(line, multiline=False), err=True)
