"""``gsd plugins list``, ``install``, ``uninstall`` and ``outdated``: packages with plugins.

They only call the tool that manages the environment in which gsd runs: pipx, uv or pip.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal, TypeAlias, cast

import attrs
import click

from gsd_core.errors import UserError
from gsd_core.files import write_below
from gsd_core.plugins.discovery import ENTRY_POINT_GROUP
from gsd_core.plugins.index import known_plugins, packages_by_name
from gsd_core.plugins.validation import nearest
from gsd_core.processes import refuse_agents

from .global_options import with_options
from .help import Command, examples
from .output import json_flag, print_json, print_labeled, print_line, print_table, warn

Tool: TypeAlias = Literal["pipx", "uv", "pip"]

CORE_PACKAGE = "gsd-core"
BEGUN = "gsd-install.json"
"""The file in the environment with the packages that are being installed."""


@attrs.frozen(kw_only=True)
class Installer:
    """The tool that manages the environment, and its *command*, to which a subcommand is appended."""

    tool: Tool
    command: tuple[str, ...]

    def install(self, packages: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
        """Return the command line that installs or upgrades *packages*."""
        if self.tool == "pipx":
            pip = ("--pip-args", " ".join(options)) if options else ()
            return (*self.command, "inject", *pip, CORE_PACKAGE, *packages)
        return (*self.command, "install", "--upgrade", *options, *self._python, *packages)

    def repair(self, packages: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
        """Return the command line that writes all files of *packages* again, also if they are half there."""
        if self.tool == "pipx":
            return (*self.install(packages, options), "--force")
        again = "--reinstall" if self.tool == "uv" else "--ignore-installed"
        return self.install(packages, [*options, again, "--no-deps"])

    def uninstall(self, packages: Sequence[str]) -> tuple[str, ...]:
        """Return the command line that removes *packages*."""
        if self.tool == "pipx":
            return (*self.command, "uninject", CORE_PACKAGE, *packages)
        sure = ("--yes",) if self.tool == "pip" else ()
        return (*self.command, "uninstall", *sure, *self._python, *packages)

    def outdated(self, options: Sequence[str]) -> tuple[str, ...]:
        """Return the command line that lists outdated packages as JSON."""
        pip = (*self.command, "runpip", CORE_PACKAGE) if self.tool == "pipx" else self.command
        return (*pip, "list", "--outdated", "--format", "json", *options, *self._python)

    @property
    def _python(self) -> tuple[str, ...]:
        return ("--python", sys.executable) if self.tool == "uv" else ()


def find_installer(prefix: Path | None = None) -> Installer:
    """Return the tool that made the environment at *prefix*, by default this one; raise ``UserError``."""
    root = prefix or Path(sys.prefix)
    if (root / "pipx_metadata.json").exists() and (pipx := shutil.which("pipx")):
        return Installer(tool="pipx", command=(pipx,))
    if (root / "uv-receipt.toml").exists():
        message = "gsd is installed as a tool of uv, which installs all packages of a tool together"
        raise UserError(message, hint=f"uv tool install {CORE_PACKAGE} --with PACKAGE")
    uv, has_pip = shutil.which("uv"), importlib.util.find_spec("pip") is not None
    made_by_uv = False
    with suppress(OSError):
        text = (root / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
        made_by_uv = re.search(r"^uv = ", text, re.M) is not None
    if uv and (made_by_uv or not has_pip):
        return Installer(tool="uv", command=(uv, "pip"))
    if has_pip:
        pip = (sys.executable, "-P", "-m", "pip", "--disable-pip-version-check")
        return Installer(tool="pip", command=pip)
    problem = f"neither pip nor uv can install packages for {sys.executable}"
    raise UserError(problem, hint="python -m ensurepip, or install uv")


source_options = partial(
    with_options,
    options=(
        click.option("--no-index", is_flag=True, help="use no package index, only --find-links"),
        click.option(
            "--find-links",
            type=click.Path(exists=True, file_okay=False),
            multiple=True,
            metavar="DIR",
            help="folder with packages (repeatable)",
        ),
    ),
)


def _options(no_index: bool, find_links: Sequence[str]) -> list[str]:
    links = [word for link in find_links for word in ("--find-links", link)]
    return [*(["--no-index"] if no_index else []), *links]


@click.command("list", cls=Command)
@json_flag
def list_known(as_json: bool) -> None:
    """List the known plugins that can be installed.

    The list is part of gsd; nothing is downloaded. Those that are not published yet are installed from a path
    in a copy of GSD's repository. gsd plugins lists the plugins that are there.
    """
    found = [point.dist for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist]
    versions = {_normal(package.name): package.version for package in found}
    rows = [(known, versions.get(_normal(known.package), "")) for known in known_plugins()]
    if as_json:
        data = [
            {
                **attrs.asdict(known),
                "hooks": [f"gsd_{hook}" for hook in known.hooks],
                "installed": version or None,
            }
            for known, version in rows
        ]
        print_json({"plugins": data})
        return
    table = [
        (
            known.name,
            known.package if known.published else f"contrib/{known.package}",
            version or "-",
            known.about,
        )
        for known, version in rows
    ]
    print_table(("plugin", "package or folder", "installed", "about"), table, {})


@click.command("install", cls=Command, epilog=examples("gsd plugins install ./contrib/gsd-plugin-slack"))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@source_options
def install(names: tuple[str, ...], no_index: bool, find_links: tuple[str, ...]) -> None:
    """Install or upgrade packages with plugins.

    NAME is a folder, a wheel, or a published plugin of the list (see gsd plugins list). With --no-index, it
    may be any package or requirement in the folders of --find-links. The tool that manages the environment of
    gsd does it: pipx, uv or pip. A plugin is code that runs with your rights, so install only what you trust.
    """
    refuse_agents("install plugins")
    before = set(_plugins())
    sources = [_source(name, find_links if no_index else ()) for name in names]
    packages = [package for package, _ in sources]
    for package, origin in sources:
        print_labeled("from", f"{package}: {origin}")
    installer, options, begun = find_installer(), _options(no_index, find_links), Path(sys.prefix) / BEGUN
    what = f"install {', '.join(names)}"
    if begun.exists():
        # The tool may take what a kill has left for the whole package.
        interrupted: list[str] = json.loads(begun.read_text("utf-8"))
        warn([f"an installation was interrupted, and is done again: {', '.join(interrupted)}"])
        _run(installer.repair(interrupted, options), what)
        # What pip was writing when it was killed; it does not look for that again.
        for draft in Path(sysconfig.get_path("purelib")).glob("*.dist-info/*.tmp"):
            draft.unlink(missing_ok=True)
    write_below(begun.parent, BEGUN, json.dumps(packages).encode())
    try:
        _run(installer.install(packages, options), what)
    finally:
        begun.unlink()
    if added := sorted(set(_plugins()) - before):
        print_line(f"Installed: {', '.join(name for name, _ in added)}. See: gsd plugins")
    else:
        print_line("Done. No new plugin was added; gsd plugins lists those that are there.")


@click.command("uninstall", cls=Command)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def uninstall(names: tuple[str, ...]) -> None:
    """Uninstall the packages of plugins.

    NAME is the name of a plugin, or of its package. All plugins of the package are removed with it.
    """
    refuse_agents("uninstall plugins")
    installed = _plugins()
    packages = {_normal(package) for _, package in installed}
    found: list[str] = []
    for name in names:
        known = next((package for plugin, package in installed if plugin == name), "")
        package = known or (name if _normal(name) in packages else "")
        if not package:
            close = nearest(name, tuple(sorted({plugin for plugin, _ in installed})))
            hint = "gsd plugins lists the plugins; those that are built in, and files, have no package"
            raise UserError(f"no package with a plugin {name!r} is installed{close}", hint=hint)
        found.append(package)
    _run(find_installer().uninstall(list(dict.fromkeys(found))), f"uninstall {', '.join(names)}")
    print_line(f"Uninstalled: {', '.join(dict.fromkeys(found))}")


@click.command("outdated", cls=Command)
@source_options
@json_flag
def outdated(no_index: bool, find_links: tuple[str, ...], as_json: bool) -> None:
    """List the installed packages with plugins that have a newer version."""
    command = find_installer().outdated(_options(no_index, find_links))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        problem = done.stderr.strip().rpartition("\n")[2]
        raise UserError(f"cannot look for newer versions: {problem}", hint="check the network connection")
    packages = {_normal(package) for _, package in _plugins()}
    rows = cast("list[dict[str, str]]", json.loads(done.stdout or "[]"))
    found = [row for row in rows if _normal(row["name"]) in packages]
    if as_json:
        data = [
            {"package": row["name"], "version": row["version"], "latest": row.get("latest_version")}
            for row in found
        ]
        print_json({"outdated": data})
    elif found:
        table = [(row["name"], row["version"], row.get("latest_version", "")) for row in found]
        print_table(("package", "installed", "latest"), table, {})
    else:
        print_line("no newer version of a package with plugins was found")


def _source(name: str, folders: Sequence[str]) -> tuple[str, str]:
    """Return what the installer gets for *name*, and where it comes from; raise ``UserError`` if it may not.

    A package index gives a name to whoever asks first, so only names that are published by us are looked for
    there; a package in one of *folders* is the user's own choice.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    path = Path(name)
    # An absolute path cannot be taken for an option.
    if name and (path.is_dir() or (path.suffix == ".whl" and path.exists())):
        return str(path.resolve()), "a folder or wheel on this machine"
    package = packages_by_name().get(name.replace("-", "_"), name)
    try:
        requirement = Requirement(package)
    except InvalidRequirement as error:
        hint = "give a folder, a wheel, or a published plugin (gsd plugins list)"
        raise UserError(f"{name!r} is not a package: {error}", hint=hint) from error
    wanted = _normal(requirement.name)
    if folders and not requirement.url:
        return package, ", ".join(folders)
    known = next((one for one in known_plugins() if _normal(one.package) == wanted), None)
    if known and known.published:
        return package, "the package index, published by GSD"
    why = "is not published yet" if known else "is not on the list of published plugins"
    where = f"./contrib/{package}, in a copy of GSD's repository" if known else "./FOLDER, or a wheel"
    raise UserError(
        f"{name!r} {why}, so a package of that name in the index would be somebody else's",
        hint=f"install it from a path: gsd plugins install {where}; others that you trust: use pip",
    )


def _run(command: Sequence[str], what: str) -> None:
    """Run the installer with its own output; raise ``UserError`` if it fails."""
    # Its messages are for people, and standard output is for data.
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        message = f"cannot {what}: {Path(command[0]).name} exited with code {done.returncode}"
        raise UserError(message, hint="its messages above say why")


def _plugins() -> list[tuple[str, str]]:
    """Return the installed plugins, each with its package."""
    importlib.invalidate_caches()
    points = entry_points(group=ENTRY_POINT_GROUP)
    return [(point.name, point.dist.name) for point in points if point.dist]


def _normal(name: str) -> str:
    """Return a package's name as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()
