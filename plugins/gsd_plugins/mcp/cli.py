"""``gsd mcp`` and ``gsd mcp install``."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click

from gsd_core import CommandOptions, UserError, data_output, find_program, own_command, settings_of

NAME = "gsd"


EXAMPLES = """\b
Examples:
  # Register the server with Claude Code, which then starts it.
  gsd mcp install
  # What to enter in other clients.
  gsd mcp install --print
"""


class Server(click.Group):
    """A command whose standard output only a client reads, except for its help."""

    serves_stdout = True


@click.group("mcp", cls=Server, invoke_without_command=True, epilog=EXAMPLES)
@click.pass_context
def mcp(ctx: click.Context) -> None:
    """Serve MCP on standard input and output, for Claude Code and other clients.

    Its tools start, watch, answer and stop sessions.
    """
    if ctx.invoked_subcommand is None:
        import asyncio

        if sys.stdin.isatty():
            note = "this is a server for MCP clients; Ctrl-D ends it. For Claude Code: gsd mcp install"
            click.echo(note, err=True)
        # A thread waits for input and cannot be interrupted; there is nothing to lose here either.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        asyncio.run(_serve())


async def _serve() -> None:
    from gsd_plugins.sessions import harness

    from .server import make_server

    out = data_output(reserve=True)
    async with harness() as sessions:
        server = make_server(sessions)
        import anyio
        from mcp.server.stdio import stdio_server

        protocol = await anyio.open_file(out.fileno(), "w", encoding="utf-8", closefd=False)
        async with stdio_server(stdout=protocol) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        # The client reads JSON-RPC only: what anything prints at the exit goes to standard error, too.
        out.flush()
        os.dup2(2, out.fileno())


@mcp.command()
@click.option("--print", "only_print", is_flag=True, help="print the command instead of running it")
@click.option(
    "--scope",
    type=click.Choice(["user", "local"]),
    default="user",
    help="in all projects, or only in this one (default: user)",
)
def install(only_print: bool, scope: str) -> None:
    """Register the server with Claude Code: runs 'claude mcp add'.

    The server gets the options -p and --plugins-dir that this command has.
    """
    plugins = settings_of(CommandOptions).plugin_options
    words = ["mcp", "add", "--scope", scope, NAME, "--", *server_command(), *plugins]
    line = shlex.join(["claude", *words])
    if only_print:
        click.echo(line)
        return
    program = find_program("claude", Path.cwd())
    if program is None:
        raise UserError("the program 'claude' is not on PATH", hint=f"where it is, run: {line}")
    code = subprocess.run([str(program), *words], check=False, stdout=data_output()).returncode
    if code:
        raise UserError(f"claude mcp add failed with exit code {code}", hint=f"try it yourself: {line}")


def server_command() -> list[str]:
    """Return the command that serves, with absolute paths: clients start it in any folder."""
    script = Path(sys.executable).with_name("gsd")
    return [str(script), "mcp"] if os.access(script, os.X_OK) else [*own_command(), "mcp"]
