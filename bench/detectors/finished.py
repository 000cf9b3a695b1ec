"""Run the detectors over files of finished projects, where each report is a false alarm, or a real oddity.

Run ``python -m bench.detectors.finished [-n COUNT] [--seed SEED] FOLDER ...`` with folders of finished code:
a language's standard library, ``site-packages``, ``node_modules``. COUNT random files of each language are
read as if a plan listed them.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from gsd_core import Gap
from gsd_plugins.must_haves.artifacts import check_file
from gsd_plugins.must_haves.files import Tree
from gsd_plugins.must_haves.modules import Sources
from gsd_plugins.must_haves.source import LANGUAGES


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the source files below a folder."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            # Declarations and minified code are not read as source.
            if Path(name).suffix in LANGUAGES and ".min." not in name and ".d." not in name:
                yield Path(parent) / name


def report(root: Path, file: Path) -> str:
    """Return what is reported about a file, empty for nothing."""
    path = file.relative_to(root).as_posix()
    # An empty file is nobody's oversight here.
    if not file.stat().st_size:
        return ""
    found = check_file(Sources(tree=Tree.of(root)), path, ())
    reason = found.reason if isinstance(found, Gap) else ""
    return "" if reason in ("it is a stub: it contains no code", "it is empty") else reason


def main() -> int:
    """Print the reports, and their share by language."""
    parser = argparse.ArgumentParser(description="Measure the detectors on finished files.")
    parser.add_argument("-n", "--count", type=int, default=300, help="files of each language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    files: dict[str, list[tuple[Path, Path]]] = {}
    for folder in options.folders:
        for file in files_of(folder.resolve()):
            files.setdefault(LANGUAGES[file.suffix], []).append((folder.resolve(), file))
    for language, found in files.items():
        chosen = random.Random(options.seed).sample(found, min(options.count, len(found)))
        reports = [(file, reason) for root, file in chosen if (reason := report(root, file))]
        for file, reason in reports:
            print(f"{file}\n  {reason}")
        print(f"{language}: {len(reports)} of {len(chosen)} files reported\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
