"""The commands in what gsd prints, as somebody would paste them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from gsd_core.cli.app import gsd
from gsd_core.cli.commands import COMMANDS

_QUOTED = re.compile(r"`(gsd [^`]+)`")
_OWN_LINE = re.compile(r"^ +(gsd [a-z-].*)$", re.M)
_LABELED = re.compile(
    rf"(?:hint|with|see|run)(?:: | )(gsd (?:-[Cp] \S+ )*(?:{'|'.join(COMMANDS)})\b[^,;()`\n]*)"
)


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands that *text* tells its reader to run."""
    for pattern in (_QUOTED, _OWN_LINE, _LABELED):
        yield from (found.rstrip(" .") for found in pattern.findall(text))


def check(command: str) -> list[str]:
    """Parse *command* as gsd would; return its arguments, or raise what gsd would report."""
    args = shlex.split(command)[1:]
    if args in (["--version"], ["--help"]):
        return args
    ctx = click.Context(gsd, info_name="gsd", **gsd.context_settings)
    _, [verb, *rest], _ = gsd.make_parser(ctx).parse_args(list(args))
    found = gsd.get_command(ctx, verb)
    assert found is not None, command
    inner = found.make_context(verb, rest, parent=ctx)
    if isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        sub = found.get_command(inner, rest[0])
        assert sub is not None, command
        sub.make_context(rest[0], rest[1:], parent=inner).close()
    inner.close()
    return args
