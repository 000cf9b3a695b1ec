"""The dashboard: ``gsd serve`` shows all sessions in a browser, ``gsd run --web`` one run."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gsd_core import implements
from gsd_core.hookspecs import gsd_cli_commands

if TYPE_CHECKING:
    import click

LIBRARIES = ("starlette", "uvicorn", "websockets")


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Contribute ``gsd serve``."""
    from . import cli

    yield cli.serve


def missing_libraries() -> str:
    """Return the libraries of the extra ``web`` that are not installed; empty if all are."""
    return ", ".join(name for name in LIBRARIES if importlib.util.find_spec(name) is None)
