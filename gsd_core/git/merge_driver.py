"""The merge driver of gsd in one clone: its settings, and the attributes that say for which files it is.

Both are in git's directory, so they are never committed: a clone without the driver has git's usual merge.
See ``gitattributes(5)``, "Defining a custom merge driver".
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable

from gsd_core.files import read_below, write_below

from .command import Command
from .repository import common_dir, prefix
from .untrusted import MERGE_LINES

ATTRIBUTES = "info/attributes"


def install_driver(git: Command, program: str, names: Iterable[str]) -> None:
    """Let git merge the planning files called *names* with *program*, how gsd is started. Can be repeated."""
    # A driver that fails would leave our side as the result, without markers: a gsd that was removed, or is
    # broken, must not do that.
    gsd = shlex.quote(program).replace("%", "%%")
    driver = f"{gsd} merge-driver -- %O %A %B %L %P || {{ grep -q '^<<<<<<<' %A && exit 1; {MERGE_LINES}; }}"
    git("config", "--local", "merge.gsd.name", "planning files, by meaning")
    git("config", "--local", "merge.gsd.driver", driver)
    _write_attributes(git, names, wanted=True)


def remove_driver(git: Command, names: Iterable[str]) -> None:
    """Undo :func:`install_driver`; nothing happens if there is no driver."""
    _write_attributes(git, names, wanted=False)
    # 5 and 128: there is no such section.
    git.run("config", "--local", "--remove-section", "merge.gsd", ok=(0, 5, 128))


def _write_attributes(git: Command, names: Iterable[str], *, wanted: bool) -> None:
    project = re.sub(r"([*?\[\\])", r"\\\1", prefix(git))
    # Also those of workstreams, in folders below. JSON quotes like C.
    paths = (json.dumps(f"/{project}.planning/**/{name}", ensure_ascii=False) for name in names)
    lines = [f"{path} merge=gsd" for path in paths]
    folder = common_dir(git)
    old = os.fsdecode(read_below(folder, ATTRIBUTES)) if (folder / ATTRIBUTES).exists() else ""
    kept = [line for line in old.splitlines(keepends=True) if line.rstrip("\n") not in lines]
    if kept and not kept[-1].endswith("\n"):
        kept[-1] += "\n"
    new = "".join([*kept, *(f"{line}\n" for line in lines if wanted)])
    if new != old:
        write_below(folder, ATTRIBUTES, os.fsencode(new))
