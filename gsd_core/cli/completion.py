"""``gsd completion``: prints the script with which a shell completes the commands of gsd."""

from __future__ import annotations

import click

from .app import VARIABLE, gsd
from .global_options import gsd_command


@gsd_command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
def command(_: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in SHELL.

    In bash, add this line to ~/.bashrc: eval "$(gsd completion bash)"

    In zsh, add this line to ~/.zshrc: eval "$(gsd completion zsh)"

    In fish, run this once: gsd completion fish > ~/.config/fish/completions/gsd.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    # click would start bash to see whether it is new enough; `source_vars` and the template need no process.
    made = kind(gsd, {}, "gsd", VARIABLE)
    click.echo(made.source_template % made.source_vars())
