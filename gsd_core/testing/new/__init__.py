"""``gsd plugins new``: a package for a new plugin that passes its own tests from the start.

``examples/`` has a plugin and its tests for each hook, and for a channel, as real code that our own tests
run; ``template/`` has the rest of the package. Both use the name ``my_plugin``, which is replaced here.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

import attrs

from gsd_core.errors import UserError
from gsd_core.files import DRAFT, write_below
from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from gsd_core.plugins.validation import HOOKS, SETTINGS_OF_HOOKS, nearest
from gsd_core.settings import CORE_SECTIONS

PREFIX = "gsd-plugin-"
TAKEN_NAMES = {module.rpartition(".")[2] for module in DEFAULT_PLUGINS} | {name for name, _ in CORE_SECTIONS}
"""Names that a plugin cannot have: those of built-in plugins, and sections of ``gsd.toml`` that are ours."""

KINDS = {
    "agent": "run_agent",
    "answerer": "answer",
    "budget": "check_budget",
    "command": "cli_commands",
    "config": "write_config",
    "config_writer": "write_config",
    "detector": "find_gaps",
    "dispatcher": "dispatch",
    "executor": "execute_step",
    "faults": "find_mutants",
    "gap_detector": "find_gaps",
    "notifier": "notify",
    "observer": "on_event",
    "panel": "panels",
    "permission_policy": "permit_tool",
    "policy": "permit_tool",
    "step": "steps",
    "step_wrapper": "wrap_step",
    "wrapper": "wrap_step",
}
"""The hook that each kind of plugin starts with, by the name that the how-to guides use."""

EXAMPLES = {"channel": "gsd_answer"}
"""Examples beside those of the hooks, with the hook that each is about."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_FOLDER = files("gsd_core.testing.new")
_LIBRARIES = {"attrs": "attrs>=24.2", "click": "click>=8.1"}
_CONFTEST = '''\
"""The fixtures of gsd_core: ``gsd_phase``, ``gsd_host``, ``gsd_agent_host``, ``gsd_use_settings``, …"""

pytest_plugins = ["gsd_core.testing.pytest_plugin"]
'''
_GITIGNORE = "__pycache__/\n.venv/\ndist/\n"


@attrs.frozen(kw_only=True)
class NewPackage:
    """A package to write: the plugin's *name* (``license_check``) and its *hook* (``gsd_find_gaps``).

    *example*: the module in ``examples/`` that it starts with.
    """

    name: str
    hook: str
    example: str

    @classmethod
    def of(cls, name: str, hook: str) -> NewPackage:
        """Return the package for what a user typed; raise ``UserError`` if the name or hook is invalid."""
        if (kind := hook.replace("-", "_")) in EXAMPLES:
            return cls(name=plugin_name(name), hook=EXAMPLES[kind], example=kind)
        found = full_hook(hook)
        return cls(name=plugin_name(name), hook=found, example=found.removeprefix("gsd_"))

    @property
    def package(self) -> str:
        """The name of the distribution and of its folder."""
        return PREFIX + self.name.replace("_", "-")

    @property
    def module(self) -> str:
        """The name of the module."""
        return self.package.replace("-", "_")

    def texts(self) -> Mapping[str, str]:
        """Return the text of each file, by its path in the package's folder."""
        code = _read(f"examples/{self.example}.py")
        tests = _read(f"examples/test_{self.example}.py")
        summary, _, details = inspect.cleandoc(ast.get_docstring(ast.parse(code)) or "").partition("\n")
        imported = re.findall(r"^(?:from|import) (\w+)", code, re.M)
        used = [spec for name, spec in _LIBRARIES.items() if name in imported]
        dependencies = ", ".join(f'"{name}"' for name in ("gsd-core", *used))
        pyproject, readme = Template(_read("template/pyproject.toml")), Template(_read("template/README.md"))
        texts = {
            "pyproject.toml": pyproject.substitute(summary=summary).replace('"gsd-core"', dependencies),
            "README.md": readme.substitute(
                summary=summary, details=details.strip(), hook=self.hook, used=self._used()
            ),
            ".gitignore": _GITIGNORE,
            **{
                f".github/workflows/{name}": Template(_read(f"template/{name}")).substitute()
                for name in ("ci.yml", "release.yml")
            },
            f"src/{self.module}/__init__.py": code,
            f"src/{self.module}/py.typed": "",
            "tests/conftest.py": _CONFTEST,
            # The relative import keeps the place of the one that replaces it, by isort's rules.
            f"tests/test_{self.name}.py": tests.replace(
                f"from . import {self.example} as plugin", "import gsd_plugin_my_plugin as plugin"
            ),
        }
        camel_case = "".join(part.capitalize() for part in self.name.split("_"))
        names = {"my_plugin": self.name, "my-plugin": self.name.replace("_", "-"), "MyPlugin": camel_case}
        any_name = re.compile("|".join(names))
        return {path: any_name.sub(lambda found: names[found[0]], text) for path, text in texts.items()}

    def _used(self) -> str:
        if setting := SETTINGS_OF_HOOKS.get(self.hook):
            return (
                f"It takes over part of the work, so it is used only if the setting `run.{setting}` lists "
                f"`my_plugin`.\nFor a try, set the variable `GSD_{setting.upper()}`."
            )
        return "Once installed, every run uses it; `-p no:my_plugin` leaves it out of one run."


def plugin_name(name: str) -> str:
    """Return *name* as a plugin's name; raise ``UserError`` if it cannot be one."""
    short = name.removeprefix(PREFIX)
    if not _NAME.fullmatch(short):
        hint = "use lowercase letters, digits and hyphens, starting with a letter, such as license-check"
        raise UserError(f"{name!r} is not a valid plugin name", hint=hint)
    found = short.replace("-", "_")
    hint = f"choose another name, such as my-{short}"
    if keyword.iskeyword(found):
        raise UserError(f"{name!r} is a Python keyword", hint=hint)
    if found in TAKEN_NAMES:
        raise UserError(f"gsd itself uses the name {found!r}", hint=hint)
    return found


def full_hook(hook: str) -> str:
    """Return the hook's full name; raise ``UserError`` with a suggestion if it does not exist."""
    name = hook if hook.startswith("gsd_") else f"gsd_{hook}"
    if name in HOOKS:
        return name
    kind = hook.removeprefix("gsd_").replace("-", "_")
    if found := KINDS.get(kind) or EXAMPLES.get(kind, "").removeprefix("gsd_"):
        raise UserError(f"no hook {hook!r}", hint=f"use --hook {found}")
    close = nearest(name, HOOKS).removeprefix("; ")
    raise UserError(f"no hook {hook!r}", hint=close or f"hooks: {', '.join(HOOKS)}")


def write_package(package: NewPackage, directory: Path) -> Path:
    """Write *package* to its own folder in *directory*; never overwrite a file.

    A folder with files of the same package, and no others, is completed.
    """
    folder, texts = directory / package.package, package.texts()
    try:
        files = [path for path in folder.rglob("*") if not path.is_dir() and not path.match("*".join(DRAFT))]
        known = {folder / path: text.encode() for path, text in texts.items()}
        if folder.is_file() or any(path not in known or path.read_bytes() != known[path] for path in files):
            hint = "choose another name or another --directory"
            raise UserError(f"{str(folder)!r} already exists", hint=hint)
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_below(folder, path, text.encode())
    except OSError as error:
        hint = "choose another --directory"
        raise UserError(f"cannot write {str(folder)!r}: {error}", hint=hint) from error
    return folder


def _read(path: str) -> str:
    return _FOLDER.joinpath(path).read_text(encoding="utf-8")
