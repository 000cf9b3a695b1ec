"""``gsd serve``."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from pathlib import Path

import click

from gsd_core import open_in_browser, settings_of

DEFAULT_PORT = 3333


EXAMPLES = """\b
Examples:
  gsd serve --open
  # Behind a tunnel or proxy.
  gsd serve --public-url https://gsd.example.org
"""


@click.command("serve", epilog=EXAMPLES)
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="port to listen on; if it is taken, the next free one",
)
@click.option(
    "--public-url",
    "public_urls",
    multiple=True,
    metavar="URL",
    help="also answer at this URL of a tunnel or proxy (repeatable)",
)
@click.option("--keep-token", is_flag=True, help="use the token of the last start with this option again")
@click.option("--open", "open_it", is_flag=True, help="open the page in a browser")
def serve(host: str, port: int, public_urls: tuple[str, ...], keep_token: bool, open_it: bool) -> None:
    """Serve the dashboard and the MCP server of all sessions."""
    from .access import is_any_address

    if is_any_address(host) and not public_urls:
        raise click.UsageError("--host for all addresses needs --public-url, the URL that browsers use")
    sys.exit(asyncio.run(_serve(host, port, public_urls, keep_token=keep_token, open_it=open_it)))


async def _serve(
    host: str, port: int, public_urls: tuple[str, ...], *, keep_token: bool, open_it: bool
) -> int:
    from gsd_plugins.sessions import SessionsSettings, cancel_tasks, harness

    from .server import serving

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with (
        harness() as source,
        serving(
            source,
            host=host,
            port=port,
            public_urls=public_urls,
            slots=settings_of(SessionsSettings).slots,
            keep_token=keep_token,
        ) as running,
    ):
        if port and running.port != port:
            click.echo(f"port {port} is taken, so this is {running.port}", err=True)
        click.echo(running.url)
        click.echo(f"to watch only: {running.watch_url}", err=True)
        if open_it:
            # Not in the event loop: a browser in the terminal wants the page from this server.
            about = (running.url, Path.cwd())
            threading.Thread(target=open_in_browser, args=about, name="browser", daemon=True).start()
        ahead = asyncio.create_task(running.site.read_ahead(), name="read ahead")
        running.task.add_done_callback(lambda _: ended.set())
        await ended.wait()
        code = int(running.task.done())  # nobody has asked it to end
        await cancel_tasks(ahead)
    return code
