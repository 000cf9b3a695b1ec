"""Which file an import means: relative paths, index files, aliases, packages of the same repository."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, cast

import attrs

from .files import Tree, read
from .source import Reference, Source, read_source, word_set

EXTENSIONS = (
    *(".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts"),
    *(".vue", ".svelte", ".json", ".d.ts"),
)
_COLLECTORS = word_set("index mod main api exports public-api public_api lib")
"""Modules that collect others: only those are followed."""
OTHERS_FOLDERS = ("node_modules", "vendor", "target", "dist", "build", "venv", "site-packages")
MAX_FILES = 2000
"""How many files of a project are searched for an indirect link."""
MAX_DEPTH = 4
"""How many re-exporting modules are followed."""


@attrs.define(kw_only=True)
class Sources:
    """The project's files as :class:`Source` values, each read once.

    *files*, *before* and *removed* are those of the phase's history; *promises* is what its plans say.
    """

    tree: Tree
    files: Collection[str] = ()
    before: Mapping[str, str] = attrs.field(factory=dict[str, str])
    removed: Mapping[str, str] = attrs.field(factory=dict[str, str])
    promises: str = ""
    _texts: dict[str, str | None] = attrs.field(factory=dict[str, str | None])
    _sources: dict[str, Source | None] = attrs.field(factory=dict[str, Source | None])

    def text(self, path: str) -> str | None:
        """Return the text of a file of the project; ``None`` if it does not exist or is binary."""
        if path not in self._texts:
            found = self.tree.find(path)
            content = read(self.tree, found) if not isinstance(found, str) and found.is_file() else None
            self._texts[path] = content.text if content and not content.binary else None
        return self._texts[path]

    def source(self, path: str) -> Source | None:
        """Return the parsed file; ``None`` if it cannot be parsed."""
        if path not in self._sources:
            text = self.text(path)
            self._sources[path] = read_source(path, text) if text is not None else None
        return self._sources[path]

    def exists(self, path: str) -> bool:
        """Whether the project has a file with that path."""
        return bool(path) and not isinstance(self.tree.find(path), str)

    def resolved(self, path: str) -> str:
        """Return *path*; if it does not exist, the only file that ends like it: plans leave out folders."""
        found = [] if not path or self.exists(path) else [f for f in self.files if f.endswith(f"/{path}")]
        return found[0] if len(found) == 1 else path

    def json(self, path: str) -> dict[str, Any]:
        """Return the object in a JSON file, even with comments and trailing commas; else an empty one."""
        text = self.text(path)
        if text is None:
            return {}
        text = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or "", text, flags=re.DOTALL)
        try:
            return table_of(json.loads(re.sub(r",(\s*[}\]])", r"\1", text)))
        except ValueError:
            return {}


def table_of(value: object) -> dict[str, Any]:
    """Return *value* if it is an object of JSON, else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def refers(sources: Sources, path: str, target: str, *, depth: int = 0) -> bool:
    """Whether the file at *path* imports *target*, directly or through modules that pass it on."""
    source = sources.source(path)
    if source is None or depth > MAX_DEPTH:
        return False
    match source.language:
        case "javascript":
            return any(_javascript(sources, path, ref, target, depth) for ref in source.references)
        case "python":
            return any(_python(sources, path, ref, target, depth) for ref in source.references)
        case "go":
            return _go(sources, path, source, target)


def refers_through(sources: Sources, path: str, target: str) -> bool:
    """Whether the file at *path* imports a module that imports *target*; the module may have any purpose."""
    suffix, stem = PurePosixPath(path).suffix, PurePosixPath(target).stem
    stem = PurePosixPath(target).parent.name if stem in ("index", "__init__", "lib") else stem
    return any(
        file not in (path, target)
        and stem in (sources.text(file) or "")
        and refers(sources, path, file)
        and refers(sources, file, target)
        for file in islice(project_files(sources.tree, suffix), MAX_FILES)
    )


def project_files(tree: Tree, suffix: str, below: str = "") -> Iterator[str]:
    """Yield the paths of the project's own files with a suffix, or of those in a folder."""
    for parent, folders, names in os.walk(tree.root / below):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in OTHERS_FOLDERS)
        for name in sorted(names):
            if name.endswith(suffix):
                yield (Path(parent) / name).relative_to(tree.root).as_posix()


# JavaScript


def javascript_candidates(sources: Sources, path: str, module: str) -> list[str]:
    """Return the paths that an import in the file at *path* may mean, without extensions."""
    module = re.sub(r"[?#].*$", "", module) if not module.startswith("#") else module
    if module.startswith("."):
        return [posixpath.normpath(posixpath.join(posixpath.dirname(path), module))]
    if module.startswith("/"):
        return [module.lstrip("/"), f"public{module}"]
    found: list[str] = []
    folder = PurePosixPath(path).parent
    for parent in [folder, *folder.parents]:
        for name in ("tsconfig.json", "jsconfig.json", "tsconfig.app.json", "tsconfig.base.json"):
            options = table_of(sources.json((parent / name).as_posix()).get("compilerOptions"))
            found += _aliased(options, parent.as_posix(), module)
    return found


def _aliased(options: dict[str, Any], folder: str, module: str) -> list[str]:
    base = posixpath.join(folder, str(options.get("baseUrl", ".")))
    found = [posixpath.normpath(posixpath.join(base, module))] if "baseUrl" in options else []
    for pattern, targets in table_of(options.get("paths")).items():
        prefix, star, suffix = pattern.partition("*")
        if module == pattern or (star and module.startswith(prefix) and module.endswith(suffix)):
            middle = module[len(prefix) : len(module) - len(suffix)] if star else ""
            listed: list[Any] = targets if isinstance(targets, list) else []  # pyright: ignore[reportUnknownVariableType]
            found += [posixpath.normpath(posixpath.join(base, str(t).replace("*", middle))) for t in listed]
    return found


def _javascript(sources: Sources, path: str, reference: Reference, target: str, depth: int) -> bool:
    candidates = javascript_candidates(sources, path, reference.module)
    reached: list[str] = []
    for candidate in candidates:
        if candidate == target or _same_module(candidate, target):
            return True
        reached += [f for f in module_files(candidate) if sources.exists(f)][:1]
    if not candidates and reference.module:
        package = _workspace_package(sources, reference.module, target)
        if package is not None:
            return package
        if not reached and _suffix_matches(reference.module, target):
            return True
    return any(
        file != path and refers(sources, file, target, depth=depth + 1)
        for file in reached
        if PurePosixPath(file).stem in _COLLECTORS
    )


def _same_module(candidate: str, target: str) -> bool:
    stem = re.sub(r"(?:\.d)?\.\w+$", "", target)
    without = re.sub(r"\.(?:[cm]?jsx?|[cm]?tsx?)$", "", candidate)
    is_index = posixpath.basename(stem) in ("index", "+server")
    return without == stem or (is_index and without == posixpath.dirname(stem))


def module_files(candidate: str) -> list[str]:
    """Return the files that an import of *candidate* may mean."""
    stem = re.sub(r"\.[cm]?jsx?$", "", candidate)
    return [candidate, *(stem + e for e in EXTENSIONS), *(f"{candidate}/index{e}" for e in EXTENSIONS)]


def _workspace_package(sources: Sources, module: str, target: str) -> bool | None:
    """Whether *module* is the package of *target*; ``None`` if it is not one of the repository."""
    for parent in PurePosixPath(target).parents:
        manifest = sources.json((parent / "package.json").as_posix())
        name = manifest.get("name")
        if not isinstance(name, str) or not (module == name or module.startswith(f"{name}/")):
            continue
        rest = module[len(name) :].strip("/")
        entry = re.sub(r"^(?:\./)?", "", str(manifest.get("main") or manifest.get("module") or ""))
        relative = PurePosixPath(target).relative_to(parent).as_posix()
        stem = PurePosixPath(relative).stem
        if rest:
            return _suffix_matches(rest, relative) or stem == PurePosixPath(rest).stem
        exported = json.dumps(manifest.get("exports", ""))
        return relative == entry or relative in exported or stem in ("index", "main", "mod")
    return None


def _suffix_matches(module: str, target: str) -> bool:
    """Whether an alias such as ``@/lib/store`` or ``$lib/store`` ends like the path of *target*."""
    parts = [part for part in re.sub(r"\.(?:[cm]?jsx?|[cm]?tsx?|vue|svelte)$", "", module).split("/") if part]
    stem = re.sub(r"(?:\.d)?\.\w+$", "", target)
    stems = [stem, posixpath.dirname(stem)] if posixpath.basename(stem) == "index" else [stem]
    if re.match(r"[@~#$]", module):
        return any(f"/{s}".endswith("/" + "/".join(parts[1:])) for s in stems)
    return len(parts) > 1 and any(f"/{s}".endswith("/" + "/".join(parts)) for s in stems)


# Python


def _python(sources: Sources, path: str, reference: Reference, target: str, depth: int) -> bool:
    name = reference.module.lstrip(".")
    level = len(reference.module) - len(name)
    base = name.replace(".", "/")
    if level:
        folder = PurePosixPath(path).parent
        for _ in range(level - 1):
            folder = folder.parent
        base = (folder / base).as_posix()

    def is_meant(path: str, base: str) -> bool:
        # The package may be below any folder that is on the path: src/, backend/, or the file's own.
        return path == base or (not level and bool(base) and path.endswith(f"/{base}"))

    stem = target.removesuffix(".py").removesuffix(".pyi").removesuffix("/__init__")
    if any(is_meant(stem, wanted) for wanted in (base, *(f"{base}/{taken}" for taken in reference.names))):
        return True
    # `from shop import Cart` may mean shop/cart.py, if shop/__init__.py passes it on.
    parents = [p.as_posix() for p in PurePosixPath(target).parents if p.as_posix() != "."]
    package = next((parent for parent in parents if base and is_meant(parent, base)), None)
    initial = f"{package}/__init__.py"
    source = sources.source(initial) if package and initial not in (path, target) else None
    return bool(source and (source.open or refers(sources, initial, target, depth=depth + 1)))


def is_dotted_reference(text: str, target: str) -> bool:
    """Whether *text* names a Python module or something in it: ``blog.urls``, ``notes.cli:main``."""
    if not re.fullmatch(r"[\w.]+(?::[\w.]+(?:\(\))?)?", text) or not target.endswith(".py"):
        return False
    stem = target.removesuffix(".py").removesuffix("/__init__")
    parts = text.split(":")[0].split(".")
    # The last parts may be a class or a function of the module.
    options = [
        "/".join(parts[:end]) for end in range(len(parts), 0, -1) if end > 1 or len(parts) == 1 or ":" in text
    ]
    return any(stem == option or stem.endswith(f"/{option}") for option in options)


# Go


def _go(sources: Sources, path: str, source: Source, target: str) -> bool:
    folder, own = posixpath.dirname(target), posixpath.dirname(path)
    if not target.endswith(".go"):
        return False
    if folder == own:
        # Files of one package need no import: the source uses a name that the target declares.
        other = sources.source(target)
        if other is None or not other.defined:
            return True
        names = {name for name in other.defined if "." not in name and name not in ("main", "init", "_")}
        return bool(names & (source.identifiers - (source.defined - names))) if names else True
    module, root = "", ""
    for parent in PurePosixPath(target).parents:
        text = sources.text((parent / "go.mod").as_posix())
        if text and (match := re.search(r"^module\s+\"?([^\s\"]+)", text, re.MULTILINE)):
            module, root = match[1], parent.as_posix()
            break
    inside = posixpath.relpath(folder or ".", root or ".") if module else folder
    wanted = (module if inside == "." else f"{module}/{inside}") if module else ""
    imported = [reference.module for reference in source.references]
    if wanted in imported:
        return True
    return not module and bool(folder) and any(one.endswith(f"/{folder}") for one in imported)
