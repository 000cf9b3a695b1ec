"""``gsd plugins new``: a package for a plugin of one's own, that passes its tests as it is."""

from __future__ import annotations

from pathlib import Path

import click
from rich_click import RichCommand

from .output import print_line


@click.command("new", cls=RichCommand)
@click.argument("name")
@click.option("--hook", required=True, metavar="HOOK", help="the hook that it implements, such as find_gaps")
@click.option(
    "--directory", type=click.Path(path_type=Path), default=Path(), metavar="DIR",
    help="where to put the package's folder; the current one, if you do not say",
)  # fmt: skip
def command(name: str, hook: str, directory: Path) -> None:
    """Write a package gsd-plugin-NAME that implements HOOK and passes its own tests.

    It is small and does something useful: change it into yours. Nothing that is there is overwritten.
    """
    from gsd_core.testing.new_package import NewPackage, write_package

    package = NewPackage.of(name, hook)
    folder = write_package(package, directory)
    for path in package.texts():
        print_line(f"  {folder / path}")
    print_line(f"wrote {package.package}: plugin {package.name!r}, hook {package.hook}")
    print_line(f"next: cd {folder} && pip install -e '.[dev]' && pytest && gsd plugins check .")
