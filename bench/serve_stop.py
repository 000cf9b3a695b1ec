"""How long ``gsd serve`` takes to stop after SIGTERM, with open streams of each kind.

``python -m bench.serve_stop [TIMES]`` starts and stops it so often (default: 100), each time with 40
WebSockets that follow all sessions, 10 streams of server-sent events, and 5 MCP calls that wait. It prints
the distribution, and fails if one stop took 3 seconds or more.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import pytest

from tests.web.test_serve import seconds_to_stop

LIMIT = 3.0


def main(times: int) -> int:
    """Measure, print, and return the exit code."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GSD_STATE_DIR", str(Path(folder) / "state"))
        patch.setenv("GSD_CONFIG", str(Path(folder) / "no-config.toml"))
        taken = sorted(seconds_to_stop(Path(folder)) for _ in range(times))
    quick = sum(one < LIMIT for one in taken)
    print(f"{quick} of {times} stopped within {LIMIT:.0f} s")
    print(f"shortest {taken[0]:.2f} s, median {statistics.median(taken):.2f} s, longest {taken[-1]:.2f} s")
    for step in range(int(taken[-1] / 0.25) + 1):
        low = step * 0.25
        count = sum(low <= one < low + 0.25 for one in taken)
        print(f"{low:5.2f} s  {count:4}  {'#' * (count * 60 // times)}")
    return int(quick < times)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
