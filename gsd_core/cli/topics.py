"""``gsd help``: the help of a command, or of a topic that concerns several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from textwrap import wrap

import click

from .global_options import gsd_command
from .output import print_line

WIDTH = 100


def exit_codes() -> Iterator[str]:
    """Yield what each exit code means."""
    from gsd_core.exit_codes import EXIT_CODE_MEANINGS

    for code, meaning in EXIT_CODE_MEANINGS.items():
        yield from wrap(meaning, WIDTH, initial_indent=f"{code:>5}  ", subsequent_indent=" " * 7)


def environment() -> Iterator[str]:
    """Yield the variables for the core's settings."""
    from gsd_core.settings import CORE_SECTIONS, variables_of

    yield "A variable counts more than the settings files and less than an option:"
    yield from (f"  {name}" for name in sorted(variables_of(CORE_SECTIONS)))
    yield "Plugins have their own. All settings, with values and where they come from:"
    yield "  gsd settings show --origin"


TOPICS: Mapping[str, Callable[[], Iterator[str]]] = {"environment": environment, "exit-codes": exit_codes}


@gsd_command("help", "gsd help settings set", "gsd help exit-codes")
@click.argument("topic", nargs=-1, metavar="[COMMAND|TOPIC]")
def command(ctx: click.Context, topic: tuple[str, ...]) -> None:
    """Show the help of a command, or of a topic: environment, exit-codes.

    Without an argument it is that of gsd itself.
    """
    if len(topic) == 1 and topic[0] in TOPICS:
        for line in TOPICS[topic[0]]():
            print_line(line)
        return
    found = ctx.find_root()
    for name in topic:
        group = found.command
        inner = group.get_command(found, name) if isinstance(group, click.Group) else None
        if inner is None:
            raise click.UsageError(f"{found.command_path!r} has no command {name!r}", ctx)
        found = inner.context_class(inner, info_name=name, parent=found, **inner.context_settings)
    print_line(found.get_help(), exact=True)
