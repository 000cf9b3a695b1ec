"""Whether the project's own plugins may run: asked once for each content of a file.

Plugins for the command line: which are loaded when, and what they contribute to it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from attrs import frozen

from gsd_core.git import git_common_dir
from gsd_core.hookspecs import gsd_cli_commands
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.discovery import Choice
from gsd_core.plugins.importing import Trust
from gsd_core.plugins.loading import PluginInfo, build_manager, load
from gsd_core.sanitize import sanitize

from .global_options import GlobalOptions


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


@frozen(kw_only=True)
class Loaded:
    """The plugins that are there, and the way to call those that are active."""

    hooks: Hooks
    infos: tuple[PluginInfo, ...]
    choice: Choice


def load_installed(where: GlobalOptions) -> Loaded:
    """Load built-in, installed and named plugins; those of the project are listed, not imported."""
    return load_plugins(choice_of(where), frozenset())


def choice_of(where: GlobalOptions) -> Choice:
    """Return which plugins the user wants."""
    return Choice.of(os.environ, named=where.plugins, directories=where.plugin_dirs, project=where.directory)


def load_plugins(choice: Choice, trusted: frozenset[str]) -> Loaded:
    """Load what *choice* wants into a manager of its own."""
    manager = build_manager()
    infos = load(manager, choice, trusted)
    return Loaded(hooks=Hooks(manager=manager, strict=choice.strict), infos=infos, choice=choice)


def plugin_commands(loaded: Loaded) -> Mapping[str, click.Command]:
    """Return the subcommands that plugins contribute, by name."""
    found = loaded.hooks.collect(gsd_cli_commands, lambda command: command.name or "")
    return {command.name or "": command for _, command in found.items}


def trust_of(root: Path) -> frozenset[str]:
    """Return the hashes that the user vouched for in the project in *root*."""
    trust = trust_file(root)
    return trust.trusted() if trust else frozenset()


def trust_file(root: Path) -> Trust | None:
    """Return where trust in the project's plugins is remembered; ``None`` without a repository."""
    common = git_common_dir(root) if root.is_dir() else None
    return Trust(common / "gsd" / "trust.json") if common else None
