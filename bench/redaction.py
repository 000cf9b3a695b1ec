"""Measure how many secrets the redactor misses, and how much ordinary text it changes.

Run ``python bench/redaction.py [FOLDER ...]`` from the root of the repository, in an environment with the
development requirements. The secrets are the shapes of ``tests/sanitize/corpus.py`` with random contents, in
random surroundings. The ordinary text is that of the folders, by default the packages installed beside this
Python: source code, documentation, JSON, lock files and minified JavaScript, at most 400 lines of each file.
The packages have example passwords too, so not every changed line is a mistake: the first ones are printed.
"""

from __future__ import annotations

import random
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from gsd_core.sanitize import redact
from tests.sanitize.corpus import shapes

ROUNDS = 20
FILES = 3_000
LINES = 400
WIDTH = 2_000
SUFFIXES = frozenset(
    ".py .pyi .md .rst .txt .json .toml .yml .yaml .js .ts .css .lock".split()  # noqa: SIM905
)
AROUND = ("{}", "error: {} was refused", '"{}",', "({})", "| {} |", "> {}", "echo '{}'", "{}\n", "\t{}  # a")


def missed(strict: bool) -> tuple[int, list[str]]:
    """Return how many secrets were tried, and the names of the shapes that were shown."""
    chance = random.Random(1)
    tried, shown = 0, list[str]()
    for seed in range(ROUNDS):
        for name, (text, secret) in shapes(seed).items():
            tried += 1
            if secret in redact(chance.choice(AROUND).replace("{}", text), strict=strict):
                shown.append(name)
    return tried, shown


def ordinary_lines(folders: list[Path]) -> Iterator[str]:
    """Yield lines of a random selection of files, the same in each run on the same machine."""
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES)
    random.Random(1).shuffle(files)
    for path in files[:FILES]:
        if path.is_file():
            for line in path.read_text("utf-8", "replace").splitlines()[:LINES]:
                yield line[:WIDTH]


def main() -> int:
    """Print the rates; return 1 if a secret was missed."""
    folders = [Path(name) for name in sys.argv[1:]] or [Path(sysconfig.get_paths()["purelib"])]
    failed = False
    for strict in (False, True):
        tried, shown = missed(strict)
        failed = failed or bool(shown)
        name = "strict" if strict else "for people"
        print(f"{name}: {len(shown)} of {tried} secrets missed {sorted(set(shown)) if shown else ''}")
        lines = changed = 0
        examples: list[str] = []
        for line in ordinary_lines(folders):
            lines += 1
            if (after := redact(line, strict=strict)) != line:
                changed += 1
                examples.append(f"  {line.strip()[:150]}\n    {after.strip()[:150]}")
        print(f"{name}: {changed} of {lines} ordinary lines changed ({100 * changed / max(lines, 1):.3f} %)")
        print("\n".join(random.Random(2).sample(examples, min(12, len(examples)))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
