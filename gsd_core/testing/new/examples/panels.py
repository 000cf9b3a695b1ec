"""Panels: shows how many lines are marked as still to do, and where, in the dashboard and by `gsd panels`.

Each call is in a new process, and may come every few seconds: read files, and keep it quick.

Settings in `gsd.toml`:

    [my_plugin]
    marks = ["TODO", "FIXME"]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from gsd_core import Panel, implements, setting, settings_of
from gsd_core.hookspecs import gsd_panels, gsd_settings

MAX_FILES = 2000
MAX_ROWS = 100
MAX_BYTES = 200_000


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*marks* that are looked for."""

    marks: tuple[str, ...] = setting(("TODO", "FIXME"))


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_panels)
def marked_lines(project: Path) -> Iterable[Panel]:
    """Show the marked lines of the Python files."""
    rows = list(find_marks(project, settings_of(MyPluginSettings).marks))
    yield Panel(
        name="marks",
        title="Still to do",
        figures={"Lines": str(len(rows))},
        columns=("file", "line", "text"),
        rows=tuple(rows[:MAX_ROWS]),
    )


def find_marks(project: Path, marks: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield file, number and text of each line with one of *marks*."""
    wanted = tuple(marks)
    for path in sorted(project.glob("**/*.py"))[:MAX_FILES]:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if any(mark in line for mark in wanted):
                yield path.relative_to(project).as_posix(), str(number), line.strip()
