"""The plugin to check: the name of an installed one, a module, a file, or the folder of a package."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping
from datetime import date
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from gsd_core.errors import UserError
from gsd_core.plugins.discovery import DEFAULT_PLUGINS, ENTRY_POINT_GROUP, Choice, discover
from gsd_core.plugins.validation import nearest

Kind: TypeAlias = Literal["built-in", "installed", "module", "file", "folder"]


@attrs.frozen(kw_only=True)
class Target:
    """A plugin that has been found but not imported.

    *module* is its dotted name; a single *file* has none. *attribute* is the object in the module that is the
    plugin, as in the entry point ``module:attribute``; empty if it is the module itself. *folder* has its
    ``pyproject.toml``, if that is available; *path* must be on ``sys.path`` to import it. *distribution* is
    the package that it came with.
    """

    name: str
    kind: Kind
    module: str = ""
    attribute: str = ""
    file: Path | None = None
    folder: Path | None = None
    path: Path | None = None
    distribution: str = ""

    @property
    def sources(self) -> tuple[Path, ...]:
        """Its Python files, starting with the module itself."""
        if self.file:
            return (self.file,)
        if self.path:
            origin = find_module(self.path, self.module)
        else:
            spec = importlib.util.find_spec(self.module)
            origin = Path(spec.origin) if spec and spec.origin else None
        if origin is None or origin.suffix != ".py":
            return ()
        if origin.name != "__init__.py":
            return (origin,)
        others = sorted(path for path in origin.parent.rglob("*.py") if path != origin)
        return (origin, *others)

    @property
    def project(self) -> Mapping[str, Any]:
        """The table ``project`` of its ``pyproject.toml``; empty if there is none."""
        table: Mapping[str, Any] = self._pyproject.get("project", {})
        return table

    @property
    def check_settings(self) -> Mapping[str, Any]:
        """The settings with which the plugin is checked: the table ``tool.gsd.check`` of its package."""
        table: Mapping[str, Any] = self._pyproject.get("tool", {}).get("gsd", {}).get("check", {})
        # As TOML has dates, which JSON does not.
        return {str(key): str(value) if isinstance(value, date) else value for key, value in table.items()}

    @property
    def entry_points(self) -> Mapping[str, str]:
        """The plugins that its ``pyproject.toml`` declares: module by name."""
        return _entry_points(self.project)

    @property
    def _pyproject(self) -> Mapping[str, Any]:
        return _read_pyproject(self.folder) if self.folder else {}


def find_target(text: str) -> Target:
    """Return the plugin that *text* refers to; raise ``UserError`` if there is none."""
    path = Path(text)
    if path.is_dir():
        return _folder_target(path.resolve())
    if path.suffix == ".py":
        if not path.is_file():
            raise UserError(f"file {text!r} does not exist", hint="check the path")
        return Target(name=path.stem, kind="file", file=path.resolve())
    installed = {c.name: c.target for c in discover(Choice(), entry_points(group=ENTRY_POINT_GROUP))}
    if text in installed:
        found = installed[text]
        if isinstance(found, EntryPoint):
            distribution = found.dist.name if found.dist else ""
            target = Target(
                name=text,
                kind="installed",
                module=found.module,
                attribute=found.attr or "",
                distribution=distribution,
            )
        else:
            target = Target(name=text, kind="built-in", module=str(found), distribution="gsd-core")
    elif _is_module(text):
        kind: Kind = "built-in" if text in DEFAULT_PLUGINS else "module"
        target = Target(name=text.rpartition(".")[2], kind=kind, module=text)
    else:
        hint = "give the name of a plugin, a module, a .py file, or the folder of a package"
        raise UserError(f"no plugin {text!r}{nearest(text, tuple(installed))}", hint=hint)
    # A checkout or an editable installation: its pyproject.toml is close by.
    for source in target.sources[:1]:
        for parent in list(source.parents)[:4]:
            if (parent / "pyproject.toml").is_file():
                return attrs.evolve(target, folder=parent)
    return target


def find_module(root: Path, module: str) -> Path | None:
    """Return the file of *module* below *root*, if it exists."""
    base = root.joinpath(*module.split("."))
    candidates = (base / "__init__.py", base.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)


def _folder_target(folder: Path) -> Target:
    pyproject = _read_pyproject(folder)
    if not pyproject:
        raise UserError(f"no pyproject.toml in {str(folder)!r}", hint="give the folder of a plugin's package")
    root = folder / "src" if (folder / "src").is_dir() else folder
    declared = _entry_points(pyproject.get("project", {}))
    packages = [path.parent.name for base in (root, folder) for path in sorted(base.glob("*/__init__.py"))]
    if not declared and not packages:
        raise UserError(f"no package in {str(folder)!r}", hint="put it into src/ or next to pyproject.toml")
    name, value = next(iter(declared.items())) if declared else (packages[0], packages[0])
    module, _, attribute = value.partition(":")
    return Target(name=name, kind="folder", module=module, attribute=attribute, folder=folder, path=root)


def _entry_points(project: Mapping[str, Any]) -> Mapping[str, str]:
    declared = project.get("entry-points", {}).get(ENTRY_POINT_GROUP, {})
    return {str(name): str(value) for name, value in declared.items()}


def _read_pyproject(folder: Path) -> Mapping[str, Any]:
    path = folder / "pyproject.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {str(path)!r}: {error}", hint="fix the file") from error


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
