"""How help texts look: click's own layout, with bold headings on a terminal.

rich would draw boxes, but importing it takes longer than everything else that ``gsd --help`` does.
"""

from __future__ import annotations

import inspect
import os

import click

MAX_WIDTH = 100
EXAMPLES_HEADING = "Examples"
EXAMPLES = f"\b\n{EXAMPLES_HEADING}:\n"
"""What the examples in an epilog begin with; ``\\b`` keeps click from wrapping a paragraph."""
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": MAX_WIDTH}


class HelpFormatter(click.HelpFormatter):
    """A formatter whose headings stand out; click removes the styles when stdout is not a terminal."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line with the command's arguments."""
        super().write_usage(prog, args, _bold(prefix or "Usage:") + " ")

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        self.write(f"{'':>{self.current_indent}}{_bold(f'{heading}:')}\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs; examples get a heading like that of the options."""
        before, found, commands = inspect.cleandoc(text).partition(EXAMPLES)
        if before.strip() or not found:
            super().write_text(before)
        if found:
            # click indents an epilog.
            self.dedent()
            self.write_heading(EXAMPLES_HEADING)
            self.indent()
            super().write_text(f"\b\n{inspect.cleandoc(commands)}")


def examples(*lines: str) -> str:
    """Return the epilog of a command: command lines that can be pasted, and comments above them.

    The epilog of a plugin's command that is written like this looks the same.
    """
    return EXAMPLES + "".join(f"  {line}\n" for line in lines)


def _bold(text: str) -> str:
    """Return *text* in bold, unless the terminal says that it has no such thing."""
    return text if os.environ.get("TERM") == "dumb" else click.style(text, bold=True)


class HelpContext(click.Context):
    """A context that formats help with :class:`HelpFormatter`."""

    formatter_class = HelpFormatter


class Command(click.Command):
    """A subcommand of ``gsd``."""

    context_class = HelpContext

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return ``--help``, worded like our own options."""
        option = super().get_help_option(ctx)
        if option:
            option.help = "show this help and exit"
        return option


class Group(Command, click.Group):
    """A subcommand of ``gsd`` that has subcommands itself."""
