"""The files that a plan's commits changed: those that no plan lists, and what kind of file each is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from gsd_core.files import start_as_text
from gsd_core.model.counts import some_of

from .model import Plan
from .plan_tasks import is_test_file

FileKind: TypeAlias = Literal["product", "test", "build output", "data", "large", "binary"]

MAX_NAMED = 20
"""How many files are named in one line."""
MAX_SIZE = 1_000_000
"""The size, in bytes, above which a file is large."""
MAX_READ = 8000
"""How much of a file is read; it is also where git looks for the zero byte of a binary file."""
BUILD_FOLDERS = ("dist", "build", "out", "target", "coverage", "htmlcov", ".next", ".nyc_output")
"""The folders of build output in GitHub's templates of .gitignore for Node, Python, Rust and Java."""
_GENERATED = re.compile(r"^\W*(?:Code generated .* DO NOT EDIT\.?$|@generated\b|# sourceMappingURL=)", re.M)
_RECORD = re.compile(r"\{.*\}$|\[?\d{4}-\d\d-\d\d[T ]")
MIN_RECORDS = 3


def listed_in(plan: Plan) -> Iterator[str]:
    """Yield all paths that *plan* lists: its files, its artifacts, and the files of its tasks."""
    yield from plan.files_modified
    yield from (artifact.path for artifact in plan.must_haves.artifacts)
    yield from (path for task in plan.tasks for path in task.files)


def unlisted_files(paths: Iterable[str], plans: Iterable[Plan]) -> tuple[str, ...]:
    """Return those of *paths* that none of *plans* lists; planning files are nobody's."""
    names = [name for plan in plans for name in listed_in(plan)]
    paths = (path for path in paths if not path.startswith(".planning/"))
    return tuple(path for path in paths if not any(_is_meant(path, name) for name in names))


def untouched_files(plan: Plan, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that *plan* is to change and that are not among the changed *paths*."""
    changed = tuple(paths)
    # A checkpoint changes nothing, unless a person rejects what it shows.
    of_tasks = (name for task in plan.tasks if task.type == "auto" for name in task.files)
    names = dict.fromkeys([*plan.files_modified, *of_tasks])
    own = (name for name in names if name.strip() and not name.startswith(".planning/"))
    return tuple(name for name in own if not any(_is_meant(path, name) for path in changed))


def _is_meant(path: str, name: str) -> bool:
    """Whether a plan means *path* with *name*, which may be that of a folder, or a pattern."""
    bare = name.strip().strip("`").removeprefix("./")
    return PurePosixPath(path).is_relative_to(bare) or fnmatchcase(path, bare)


def kind_of(root: Path, path: str) -> FileKind:
    """Return what kind of file *path* is, by its place and by what is in it; one that is gone is product."""
    if not {part.lower() for part in PurePosixPath(path).parts[:-1]}.isdisjoint(BUILD_FOLDERS):
        return "build output"
    text = start_as_text(root, path, MAX_READ)
    if text.startswith("SQLite format 3\0"):
        return "data"
    if "\0" in text:
        return "binary"
    if is_test_file(path):
        return "test"
    if _GENERATED.search(text):
        return "build output"
    if _is_data(text):
        return "data"
    file = root / path
    return "large" if file.is_file() and file.stat().st_size > MAX_SIZE else "product"


def lines_by_kind(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return a line for each kind of file, with those of *paths* that still exist."""
    kinds: dict[FileKind, list[str]] = {}
    for path in paths:
        if (root / path).is_file():
            kinds.setdefault(kind_of(root, path), []).append(path)
    return tuple(f"{kind}: {some_of(files, MAX_NAMED)}" for kind, files in sorted(kinds.items()))


def is_output(root: Path, path: str) -> bool:
    """Whether *path* looks like something that a program wrote, which belongs into .gitignore."""
    return kind_of(root, path) in ("build output", "data")


def _is_data(text: str) -> bool:
    """Whether a text consists of records: objects, lines of a log, or rows with as many separators each."""
    lines = [line.rstrip(" ,;") for line in text.splitlines()[:-1]]  # the last line may be cut
    if len(lines) < MIN_RECORDS:
        return False
    counts = [{line.count(separator) for line in lines} for separator in ",;\t"]
    is_table = any(len(numbers) == 1 and 0 not in numbers for numbers in counts)
    return is_table or all(map(_RECORD.match, lines))
