"""What is to be checked: an installed plugin's name, a module, a file, or a package's folder."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from attrs import frozen

from gsd_core.errors import UserError
from gsd_core.plugins.discovery import DEFAULT_PLUGINS, ENTRY_POINT_GROUP, Choice, discover
from gsd_core.plugins.validation import nearest

Kind: TypeAlias = Literal["built-in", "installed", "module", "file", "folder"]


@frozen(kw_only=True)
class Target:
    """A plugin that is found and not imported.

    *module* is its dotted name; a *file* has none. *folder* holds its ``pyproject.toml``, if that is
    here; *path* is what has to be added to ``sys.path``. *distribution* is what it came with.
    """

    name: str
    kind: Kind
    module: str = ""
    file: Path | None = None
    folder: Path | None = None
    path: Path | None = None
    distribution: str = ""

    @property
    def sources(self) -> tuple[Path, ...]:
        """Its Python files, the module itself first."""
        if self.file:
            return (self.file,)
        found = self._origin()
        if found is None:
            return ()
        if found.name != "__init__.py":
            return (found,)
        others = sorted(path for path in found.parent.rglob("*.py") if path != found)
        return (found, *others)

    def _origin(self) -> Path | None:
        if self.path:
            base = self.path.joinpath(*self.module.split("."))
            both = (base / "__init__.py", base.with_suffix(".py"))
            return next((path for path in both if path.is_file()), None)
        spec = importlib.util.find_spec(self.module)
        origin = Path(spec.origin) if spec and spec.origin else None
        return origin if origin and origin.suffix == ".py" else None

    def project(self) -> Mapping[str, Any]:
        """Return what its ``pyproject.toml`` says; empty if that is not here."""
        return _read_toml(self.folder / "pyproject.toml") if self.folder else {}


def find_target(text: str) -> Target:
    """Find what *text* means; raise ``UserError`` if it means nothing."""
    path = Path(text)
    if path.is_dir():
        return _of_folder(path.resolve())
    if path.suffix == ".py":
        return _of_file(path.resolve())
    installed = {c.name: c.target for c in discover(Choice(), entry_points(group=ENTRY_POINT_GROUP))}
    if text in installed:
        return _of_installed(text, installed[text])
    if _is_module(text):
        built_in = text in DEFAULT_PLUGINS
        return _with_folder(
            Target(name=text.rpartition(".")[2], kind="built-in" if built_in else "module", module=text)
        )
    hint = "a plugin's name, a module, a file that ends in .py, or a package's folder"
    raise UserError(f"nothing to check: {text!r}{nearest(text, tuple(installed))}", hint=hint)


def _of_file(path: Path) -> Target:
    if not path.is_file():
        raise UserError(f"no file {str(path)!r}", hint="name a file that is there")
    return Target(name=path.stem, kind="file", file=path)


def _of_folder(folder: Path) -> Target:
    project = _read_toml(folder / "pyproject.toml")
    if not project:
        raise UserError(f"no pyproject.toml in {str(folder)!r}", hint="name the folder of a plugin's package")
    points = _entry_points(project)
    packages = _packages(folder)
    if not points and not packages:
        raise UserError(
            f"no package in {str(folder)!r}",
            hint="its modules are looked for in src/ and beside pyproject.toml",
        )
    name, module = next(iter(points.items())) if points else (packages[0].name, packages[0].name)
    module = module.partition(":")[0]
    root = folder / "src" if (folder / "src").is_dir() else folder
    return Target(name=name, kind="folder", module=module, folder=folder, path=root)


def _of_installed(name: str, target: str | EntryPoint | Path) -> Target:
    if isinstance(target, EntryPoint):
        distribution = target.dist.name if target.dist else ""
        found = Target(name=name, kind="installed", module=target.module, distribution=distribution)
        return _with_folder(found)
    return _with_folder(Target(name=name, kind="built-in", module=str(target), distribution="gsd-core"))


def _with_folder(target: Target) -> Target:
    """Look for the folder of its package: a checkout, or an editable installation."""
    from attrs import evolve

    for source in target.sources[:1]:
        for parent in list(source.parents)[:4]:
            if (parent / "pyproject.toml").is_file():
                return evolve(target, folder=parent)
    return target


def _packages(folder: Path) -> list[Path]:
    roots = (folder / "src", folder)
    return [path.parent for root in roots for path in sorted(root.glob("*/__init__.py"))]


def _entry_points(project: Mapping[str, Any]) -> Mapping[str, str]:
    groups = project.get("project", {}).get("entry-points", {})
    return cast("Mapping[str, str]", groups.get(ENTRY_POINT_GROUP, {}))


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {str(path)!r}: {error}", hint="mend the file") from error


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
