"""Dependencies that the phase declares, and that nothing in the tree uses.

Whatever names a dependency counts as its use: an import, a script, a setting, a sentence in the README. Only
where it is declared and locked does not.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Collection, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import PurePosixPath

import attrs

from gsd_core import BadArtifact, Gap

from .files import read
from .modules import Sources, table_of

_LOCK = re.compile(r"-lock\.(?:json|yaml)$|\.lockb?$|^go\.sum$|shrinkwrap")
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_REQUIREMENT = re.compile(r"^[ \t]*([A-Za-z0-9][\w.-]*)(?=[ \t]*(?:[\[<>=!~;@#,(]|$))", re.MULTILINE)
_REQUIRED_BY_GO = re.compile(r"^[ \t]*(?:require[ \t]+)?(\S+\.\S+)[ \t]+v\S+[ \t]*$", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Manifest:
    """The dependencies that a manifest declares, and the *rest* of its text."""

    declared: frozenset[str] = frozenset()
    rest: str = ""


def find_unused(sources: Sources, changed: Collection[str]) -> Iterator[Gap]:
    """Yield a gap for each dependency that a *changed* manifest has since the phase, and that is not used."""
    added: dict[str, str] = {}
    for path in changed:
        now = read_manifest(path, sources.text(path) or "").declared
        added |= dict.fromkeys(now - read_manifest(path, sources.before.get(path, "")).declared, path)
    unused: dict[str, re.Pattern[str]] = {
        name: re.compile(rf"(?<![a-z0-9]){re.escape(_normal(name))}") for name in added
    }
    imported, named = set[str](), set[str]()
    for path in sources.files:
        pure = PurePosixPath(path)
        named |= {part.removesuffix(".py") for part in pure.parts}
        if not unused or pure.parts[0] == ".planning" or _LOCK.search(pure.name):
            continue
        found = sources.tree.find(path)
        text = "" if isinstance(found, str) else read(sources.tree, found).text
        manifest = read_manifest(path, text)
        for name in manifest.declared:
            named |= {_normal(name).replace("-", "_"), *_modules(name)}
        if pure.suffix == ".py":
            # Of each imported module, the first part of its name.
            names = ",".join(found[1] or found[2] for found in _IMPORT.finditer(text)).split(",")
            imported |= {re.split(r"[.\s]", name.strip())[0] for name in names}
        text = _normal(manifest.rest if manifest.declared else text)
        unused = {name: pattern for name, pattern in unused.items() if not pattern.search(text)}
    # What is imported may come from a distribution that is not installed here and has another name.
    unexplained = imported - named - sys.stdlib_module_names - {""}
    for name in sorted(unused):
        path, modules = added[name], _modules(name)
        is_unknown = path.endswith((".toml", ".txt")) and not modules and unexplained
        if not is_unknown and imported.isdisjoint(modules):
            issue = f"it declares {name}, which nothing in the tree uses"
            yield Gap(
                truth=f"The dependency {name} of {path} is used",
                reason=issue,
                about=f"{path}: {name}",
                artifacts=(BadArtifact(path=path, issue=issue),),
                missing=(f"use {name}, remove it from {path}, or say in the README what needs it",),
            )


def read_manifest(path: str, text: str) -> Manifest:
    """Return what the manifest at *path* declares; nothing if it is not one, or cannot be read.

    Type definitions are not among it: no code names them.
    """
    name = PurePosixPath(path).name
    try:
        if name == "package.json":
            table = table_of(json.loads(text))
            names = {one for one in table_of(table.get("dependencies")) if not one.startswith("@types/")}
            rest = {key: value for key, value in table.items() if not key.lower().endswith("dependencies")}
            return Manifest(declared=frozenset(names), rest=json.dumps(rest))
        if name == "pyproject.toml":
            table = table_of(tomllib.loads(text))
            project = table_of(table.get("project"))
            poetry = table_of(table_of(table.get("tool")).get("poetry"))
            names = {*_REQUIREMENT.findall("\n".join(project.pop("dependencies", ())))}
            names |= {*poetry.pop("dependencies", ())} - {"python"}
            project.pop("optional-dependencies", None)
            table.pop("dependency-groups", None)
            return Manifest(declared=frozenset(names), rest=str(table))
    except (ValueError, TypeError):
        return Manifest()
    if re.fullmatch(r"requirements.*\.txt", name):
        return Manifest(declared=frozenset(_REQUIREMENT.findall(text)))
    if name == "go.mod":
        return Manifest(declared=frozenset(_REQUIRED_BY_GO.findall(text)), rest=_REQUIRED_BY_GO.sub("", text))
    return Manifest()


def _normal(text: str) -> str:
    """Return *text* with one separator in place of those that names of distributions may have."""
    return re.sub(r"[-_.]+", "-", text.lower())


def _modules(name: str) -> frozenset[str]:
    """Return the modules of a distribution that is installed here, which may have other names."""
    try:
        files = distribution(name).files or ()
    except (PackageNotFoundError, ValueError):
        return frozenset()
    return frozenset(file.parts[0].removesuffix(".py") for file in files if file.suffix == ".py")
