"""Measure how long ``gsd --help`` takes, as a multiple of importing click.

Run ``python bench/startup.py [ROUNDS]`` where gsd is installed; it takes a few seconds.

gsd needs click in any case, so the ratio shows what gsd adds, and is comparable between machines. The two are
measured alternately, because a machine's load changes. The result is the median of the ratios, with the
quartiles.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

LIMIT = 2.5
ROUNDS = 15


def seconds(*arguments: str) -> float:
    """Return the wall time of a Python process with *arguments*."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(rounds: int) -> list[float]:
    """Return the ratios of *rounds* pairs of processes."""
    command, click = ("-m", "gsd_core", "--help"), ("-c", "import click")
    seconds(*command), seconds(*click)  # Write the byte code first.
    return [seconds(*command) / seconds(*click) for _ in range(rounds)]


def main() -> int:
    """Print the ratio; return 1 if its median exceeds the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    ratios = measure(rounds)
    low, median, high = statistics.quantiles(ratios, n=4)
    about = f"quartiles {low:.2f} and {high:.2f}, {rounds} rounds, limit {LIMIT}"
    print(f"gsd --help: {median:.2f} times `import click` ({about})")
    return 1 if median > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
