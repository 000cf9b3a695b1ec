"""An MCP server: Claude Code, and any other MCP client, starts, watches and answers sessions.

``gsd mcp`` serves one client over its standard streams; :func:`http_app` serves several over HTTP. Both have
the same tools, which work on the same sessions as ``gsd ps`` and ``gsd run --bg``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gsd_core import implements
from gsd_core.hookspecs import gsd_cli_commands

if TYPE_CHECKING:
    import click

    from gsd_plugins.sessions import Source

    from .catalog import ToolSpec
    from .http import HttpApp as HttpApp


@implements(gsd_cli_commands)
def commands() -> Iterable[click.Command]:
    """Contribute ``gsd mcp``."""
    from . import cli

    yield cli.mcp


def http_app(harness: Source) -> HttpApp:
    """Return an ASGI application that serves MCP over Streamable HTTP, at any path.

    It neither authenticates clients nor checks the ``Host`` and ``Origin`` headers: its caller has to.
    It starts by itself with the first request, and ends with the event loop; ``aclose`` ends it earlier.
    *harness* is one of :func:`gsd_plugins.sessions.harness`, entered for as long as it is used.
    """
    from .http import HttpApp as HttpApp

    return HttpApp(harness)


def tools() -> Sequence[ToolSpec]:
    """Return the tools of the server, for the reference documentation."""
    from .catalog import TOOLS

    return TOOLS
