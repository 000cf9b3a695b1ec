"""The dashboard: ``gsd serve`` shows all sessions in a browser, ``gsd run --web`` one run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import attrs

from gsd_core import Notice, RunInfo, implements, setting, settings_of
from gsd_core.hookspecs import gsd_cli_commands, gsd_lifespan, gsd_links, gsd_settings

if TYPE_CHECKING:
    import click

MAX_PORT = 65_535


@attrs.frozen(kw_only=True)
class WebSettings:
    """*enabled*: serve a page about each run while it lasts; *port*: where, or the next free one."""

    # A project's files must not open ports on its user's machine.
    enabled: bool = setting(False, flag="--web", help="serve a page about this run", consent=True)
    port: int = setting(3847, flag="--web-port", help="port of that page", harmless=False)

    def __attrs_post_init__(self) -> None:
        """Refuse what is no port; 0 is any free one."""
        if not 0 <= self.port <= MAX_PORT:
            raise ValueError(f"expected a port from 0 to {MAX_PORT}, got {self.port}")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``web``."""
    yield WebSettings


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Contribute ``gsd serve``."""
    from . import cli

    yield cli.serve


@implements(gsd_lifespan)
def page_of_run(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Serve a page about the run, if it was asked for."""
    chosen = settings_of(WebSettings)
    if chosen.enabled and not run.watching:
        from .single import serve_run

        yield serve_run(run, chosen.port)


@implements(gsd_links)
def links_to_pages(notice: Notice) -> Iterable[str]:
    """Link to the page about the run, or about the question; the browser needs the token to open it."""
    from .access import pages_of_servers

    session = os.environ.get("GSD_SESSION", "")
    for pid, page in pages_of_servers():
        # `gsd serve` shows sessions only; a server in this process shows this run only.
        if pid == os.getpid() or session:
            run = "run" if pid == os.getpid() else session
            yield f"{page}/#/q/{notice.question}" if notice.question else f"{page}/#/s/{run}"
