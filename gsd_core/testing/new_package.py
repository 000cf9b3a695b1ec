"""A package for a new plugin: small, complete, and passing its own tests from the first minute on.

The texts lie in ``templates/``: a hook's module, its tests, what its README says, and its settings.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from attrs import frozen

from gsd_core.errors import UserError
from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from gsd_core.plugins.validation import HOOKS, nearest
from gsd_core.settings import CORE_SECTIONS

PREFIX = "gsd-plugin-"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_TEMPLATES = files("gsd_core.testing") / "templates"
_TAKEN = {module.rpartition(".")[2] for module in DEFAULT_PLUGINS} | {name for name, _ in CORE_SECTIONS}


@frozen(kw_only=True)
class NewPackage:
    """A package to write: the plugin's *name* (``license_check``) and its *hook* (``gsd_find_gaps``)."""

    name: str
    hook: str

    @classmethod
    def of(cls, name: str, hook: str) -> NewPackage:
        """Return the package for what a user typed; raise ``UserError`` with the way out."""
        return cls(name=plugin_name(name), hook=full_hook(hook))

    @property
    def package(self) -> str:
        """The distribution's name, and its folder's."""
        return PREFIX + self.name.replace("_", "-")

    @property
    def module(self) -> str:
        """The module's name."""
        return self.package.replace("-", "_")

    def texts(self) -> Mapping[str, str]:
        """Return the files by their paths in the package's folder."""
        kind = self.hook.removeprefix("gsd_")
        return {
            "pyproject.toml": self._filled("pyproject.toml"),
            "README.md": self._filled("README.md"),
            ".gitignore": self._filled("gitignore"),
            f"src/{self.module}/__init__.py": self._filled(f"{kind}.plugin"),
            f"src/{self.module}/py.typed": "",
            "tests/conftest.py": self._filled("conftest.py"),
            f"tests/test_{self.name}.py": self._filled(f"{kind}.test"),
        }

    def _filled(self, template: str) -> str:
        return Template(_text(template)).substitute(self._words())

    def _words(self) -> Mapping[str, str]:
        words = {
            "package": self.package,
            "module": self.module,
            "plugin": self.name,
            "flag": self.name.replace("_", "-"),
            "hook": self.hook,
            "Settings": "".join(part.capitalize() for part in self.name.split("_")) + "Settings",
        }
        kind = self.hook.removeprefix("gsd_")
        about, _, rest = Template(_text(f"{kind}.about")).substitute(words).partition("\n")
        code = _text(f"{kind}.plugin")
        return words | {
            "description": about,
            "about": rest.strip() + "\n",
            "dependencies": ", ".join(f'"{name}"' for name in _dependencies(code)),
            "settings_section": _settings_section(self.name, _text(f"{kind}.settings")),
        }


def plugin_name(name: str) -> str:
    """Return *name* as a plugin's name; raise ``UserError`` if it can be none."""
    short = name.removeprefix(PREFIX)
    if not _NAME.fullmatch(short):
        hint = "small letters, digits and hyphens, beginning with a letter: license-check"
        raise UserError(f"{name!r} cannot be a plugin's name", hint=hint)
    found = short.replace("-", "_")
    if keyword.iskeyword(found):
        raise UserError(f"{name!r} is a word of Python", hint=f"choose another name, such as my-{short}")
    if found in _TAKEN:
        raise UserError(
            f"the name {found!r} is taken by gsd itself", hint=f"choose another name, such as my-{short}"
        )
    return found


def full_hook(hook: str) -> str:
    """Return the hook's full name; raise ``UserError`` with a suggestion if there is none like it."""
    name = hook if hook.startswith("gsd_") else f"gsd_{hook}"
    if name in HOOKS:
        return name
    close = nearest(name, HOOKS).removeprefix("; ")
    raise UserError(f"no hook {hook!r}", hint=close or f"hooks: {', '.join(HOOKS)}")


def write_package(package: NewPackage, directory: Path) -> Path:
    """Write *package* into a folder of its own in *directory*; never over what is there."""
    folder = directory / package.package
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            f"{str(folder)!r} is there already", hint="choose another name or another --directory"
        )
    try:
        for path, text in package.texts().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UserError(
            f"cannot write {str(folder)!r}: {error}", hint="choose another --directory"
        ) from error
    return folder


def _text(template: str) -> str:
    """Return a template's text; a hook without settings has none of those."""
    file = _TEMPLATES / f"{template}.txt"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _dependencies(code: str) -> list[str]:
    libraries = {"attrs": "attrs>=24.2", "click": "click>=8.1"}
    used = [spec for name, spec in libraries.items() if re.search(rf"^(?:from|import) {name}\b", code, re.M)]
    return ["gsd-core", *used]


def _settings_section(name: str, lines: str) -> str:
    return f"\nSettings, in `gsd.toml`:\n\n```toml\n[{name}]\n{lines}```\n" if lines else ""
