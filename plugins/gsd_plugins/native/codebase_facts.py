"""What code can find out about existing code without an agent: languages, tools, test commands, modules.

It comes from the names of the tracked files and from the manifests; nothing is executed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, cast

import attrs

from gsd_core import read_start

MANIFEST_LIMIT = 200_000
"""Bytes of a manifest that are read."""
MIN_SOURCES = 5
"""Source files from which a repository counts as existing code."""
MAX_MODULES = 25

LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys((".py", ".pyi"), "Python"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "JavaScript"),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), "TypeScript"),
    **dict.fromkeys((".c", ".h"), "C"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp", ".hh"), "C++"),
    **dict.fromkeys((".sh", ".bash"), "Shell"),
    **dict.fromkeys((".ex", ".exs"), "Elixir"),
    **dict.fromkeys((".kt", ".kts"), "Kotlin"),
    ".go": "Go",
    ".rs": "Rust",
    ".java": "Java",
    ".rb": "Ruby",
    ".php": "PHP",
    ".swift": "Swift",
    ".cs": "C#",
    ".scala": "Scala",
    ".hs": "Haskell",
    ".lua": "Lua",
    ".dart": "Dart",
    ".zig": "Zig",
    ".vue": "Vue",
    ".svelte": "Svelte",
    ".sql": "SQL",
    ".pl": "Perl",
    ".r": "R",
    ".jl": "Julia",
}
MANAGERS: Mapping[str, str] = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "Pipfile.lock": "pipenv",
    "requirements.txt": "pip",
    "package-lock.json": "npm",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lockb": "bun",
    "Cargo.lock": "cargo",
    "go.sum": "go",
    "Gemfile.lock": "bundler",
    "composer.lock": "composer",
    "pom.xml": "maven",
    "build.gradle": "gradle",
    "build.gradle.kts": "gradle",
    "mix.lock": "mix",
}
_GENERATED_FOLDERS = frozenset(
    {
        *("node_modules", "vendor", "third_party", "dist", "build", "target", "out", "generated", "gen"),
        *("__generated__", ".planning", ".claude", ".gsd", "migrations"),
    }
)
_GENERATED_NAME = re.compile(
    r"(?:\.min\.(?:js|mjs)|\.d\.ts|_pb2(?:_grpc)?\.py|\.pb\.go|\.g\.dart|\.generated\.\w+|_generated\.\w+)$"
)
_ENTRY_NAMES = frozenset({"__main__", "main", "app", "server", "manage", "cli", "index"})
_MAKE_TEST = re.compile(r"^(test|tests|check)[ \t]*:(?!=)", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Facts:
    """What was found; *tests* are commands, each with the file that it comes from."""

    languages: tuple[tuple[str, int], ...] = ()
    managers: tuple[str, ...] = ()
    tests: tuple[tuple[str, str], ...] = ()
    entries: tuple[str, ...] = ()
    modules: tuple[tuple[str, int, tuple[str, ...]], ...] = ()

    def as_text(self) -> str:
        """Return the facts for a prompt."""
        lines = [f"- language: {name}, {count} files" for name, count in self.languages]
        lines += [f"- package manager: {name}" for name in self.managers]
        lines += [f"- test command: {command} (from {source})" for command, source in self.tests]
        lines += [f"- entry point: {entry}" for entry in self.entries]
        modules = [f"- {name}: {n} source files, such as {', '.join(some)}" for name, n, some in self.modules]
        return "\n".join([*lines, "", "Modules", *modules])


def source_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of source files that people write: not dependencies, builds or generated code."""
    found: list[str] = []
    for path in paths:
        pure = PurePosixPath(path)
        generated = not _GENERATED_FOLDERS.isdisjoint(pure.parts[:-1]) or _GENERATED_NAME.search(pure.name)
        if pure.suffix.lower() in LANGUAGES and not generated:
            found.append(path)
    return tuple(found)


def facts_of(root: Path, paths: Sequence[str]) -> Facts:
    """Return the facts about the tracked files *paths* of the project at *root*."""
    sources = source_files(paths)
    languages = Counter(LANGUAGES[PurePosixPath(path).suffix.lower()] for path in sources)
    names = {PurePosixPath(path).name for path in paths}
    modules: dict[str, list[str]] = {}
    for path in sources:
        parts = PurePosixPath(path).parts
        # `src` and the like are no module: what is in them is.
        depth = 2 if parts[0] in ("src", "lib", "packages", "apps", "crates", "internal", "cmd") else 1
        modules.setdefault("/".join(parts[:-1][:depth]) or ".", []).append(path)
    largest = sorted(modules.items(), key=lambda module: (-len(module[1]), module[0]))[:MAX_MODULES]
    return Facts(
        languages=tuple(languages.most_common()),
        managers=tuple(dict.fromkeys(tool for name, tool in MANAGERS.items() if name in names)),
        tests=_test_commands(root, paths, sources),
        entries=_entries(root, paths, sources),
        modules=tuple((name, len(files), tuple(files[:3])) for name, files in largest),
    )


def _test_commands(root: Path, paths: Sequence[str], sources: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    tracked = set(paths)
    if "Makefile" in tracked and (target := _MAKE_TEST.search(_text(root, "Makefile"))):
        found.append((f"make {target[1]}", "Makefile"))
    scripts = _table(_json(root, "package.json") if "package.json" in tracked else {}, "scripts")
    # What `npm init` writes is no test.
    if scripts.get("test") and "no test specified" not in str(scripts["test"]):
        manager = next(
            (m for lock, m in MANAGERS.items() if lock in tracked and m in ("pnpm", "yarn")), "npm"
        )
        found.append((f"{manager} test", "package.json"))
    if "tox.ini" in tracked:
        found.append(("tox", "tox.ini"))
    python_tests = [path for path in sources if re.search(r"(?:^|/)(?:test_[^/]+|[^/]+_test)\.py$", path)]
    if python_tests:
        pyproject = _text(root, "pyproject.toml") if "pyproject.toml" in tracked else ""
        configured = "pytest" in pyproject or tracked & {"pytest.ini", "conftest.py", "tests/conftest.py"}
        uses_pytest = configured or any("import pytest" in _text(root, path) for path in python_tests[:20])
        found.append(("pytest" if uses_pytest else "python3 -m unittest", python_tests[0]))
    if "Cargo.toml" in tracked:
        found.append(("cargo test", "Cargo.toml"))
    if "go.mod" in tracked and any(path.endswith("_test.go") for path in sources):
        found.append(("go test ./...", "go.mod"))
    if "mix.exs" in tracked:
        found.append(("mix test", "mix.exs"))
    return tuple(found)


def _entries(root: Path, paths: Sequence[str], sources: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    if "package.json" in paths:
        package = _json(root, "package.json")
        named = package.get("bin")
        values = cast("Mapping[str, Any]", named).values() if isinstance(named, Mapping) else [named]
        found += [f"{value} (package.json)" for value in (package.get("main"), *values) if value]
    if "pyproject.toml" in paths:
        project: Mapping[str, Any] = {}
        with suppress(tomllib.TOMLDecodeError):
            project = _table(tomllib.loads(_text(root, "pyproject.toml")), "project")
        scripts = _table(project, "scripts").items()
        found += [f"{name} = {target} (pyproject.toml)" for name, target in scripts]
    found += [
        path
        for path in sources
        if PurePosixPath(path).stem in _ENTRY_NAMES and len(PurePosixPath(path).parts) <= 4
    ]
    return tuple(found[:15])


def _text(root: Path, path: str) -> str:
    try:
        return read_start(root, path, MANIFEST_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _json(root: Path, path: str) -> Mapping[str, Any]:
    try:
        value: object = json.loads(_text(root, path))
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
