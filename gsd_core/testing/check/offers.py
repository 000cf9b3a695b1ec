"""Hooks that contribute: settings, commands, findings, values, resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from gsd_core.testing import conformance, samples

from .trial import Notes


def try_offers(plugin: object, hook: str, tree: Path, verbs: tuple[str, ...], notes: Notes) -> None:
    """Collect what *plugin* contributes to *hook*; note what does not hold."""
    rule = "settings" if hook == "gsd_settings" else "contributes"
    try:
        found = _CHECKS[hook](plugin, tree)
        again = _CHECKS[hook](plugin, tree)
    except AssertionError as error:
        notes.look(rule, [f"{hook}: {error}"])
        return
    except Exception as error:
        notes.look("names-errors", [f"{hook}: {type(error).__name__}: {error}"])
        return
    notes.look(rule, [f"{hook}: {problem}" for problem in _problems(hook, found, verbs)])
    differs = hook in ("gsd_write_config", "gsd_settings") and found != again
    notes.look("same-twice", [f"{hook}: contributes something else the second time"] if differs else [])


def _lifespan(plugin: object, tree: Path) -> None:
    conformance.check_lifespan(plugin, samples.a_run(tree))


_CHECKS: Mapping[str, Callable[[Any, Path], Any]] = {
    "gsd_settings": lambda plugin, _: conformance.check_settings(plugin),
    "gsd_cli_commands": lambda plugin, _: conformance.check_cli_commands(plugin),
    "gsd_doctor": lambda plugin, _: conformance.check_doctor(plugin),
    "gsd_write_config": lambda plugin, tree: conformance.check_write_config(plugin, samples.a_project(tree)),
    "gsd_lifespan": _lifespan,
}


def _problems(hook: str, found: Any, verbs: tuple[str, ...]) -> list[str]:
    if hook == "gsd_settings":
        return [problem for kind in found for problem in _loose(kind)]
    if hook == "gsd_cli_commands":
        return [f"gsd has a command {c.name!r} of its own" for c in found if c.name in verbs]
    return []


def _loose(kind: type[Any]) -> list[str]:
    """Say what a settings class lacks."""
    flags = [f.metadata.get("flag", "") for f in attrs.fields(kind)]
    settable = getattr(kind, "__setattr__", None) is getattr(object, "__setattr__", None)
    return [
        *(
            f"{kind.__name__}: the flag {flag!r} does not begin with --"
            for flag in flags
            if flag and flag[:2] != "--"
        ),
        *([f"{kind.__name__} is not frozen"] if settable else []),
        *([] if (kind.__doc__ or "").strip() else [f"{kind.__name__} has no docstring"]),
    ]
