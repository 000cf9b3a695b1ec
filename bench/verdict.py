"""Measure how long a phase takes from its last commit to its verdict, with and without ablation.

Run ``python bench/verdict.py [--times N] [--cli] [--against FOLDER]``; it needs no account. It rehearses the
example in new folders, in turn without and with ablation, and prints the median time of a verify step, with
its spread, and the ratio. With ``--cli`` the agents are the real Claude Code with a scripted model, which
takes minutes. With ``--against`` another checkout of gsd takes the place of the runs without ablation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "greeter.md"


def verify_times(folder: Path, variables: dict[str, str]) -> list[float]:
    """Rehearse the example in *folder*; return the seconds of each verify step."""
    environment = {**os.environ, **variables}
    # Safe: otherwise the gsd in the working directory would come before that of PYTHONPATH.
    gsd = [sys.executable, "-P", "-m", "gsd_core"]
    run = [*gsd, "run", str(EXAMPLE), "-C", str(folder), "--agent", "rehearsal", "--yes"]
    subprocess.run(run, env=environment, check=True, capture_output=True)
    read = [*gsd, "log", "-C", str(folder), "--json"]
    log = subprocess.run(read, env=environment, check=True, capture_output=True, text=True).stdout
    began: dict[str, datetime] = {}
    times: list[float] = []
    for line in log.splitlines():
        event = json.loads(line)
        if not (event.get("step") or "").endswith("/verify"):
            continue
        at = datetime.fromisoformat(event["at"])
        if event["kind"] == "attempt.started":
            began[event["step"]] = at
        elif event["kind"] == "step.completed":
            times.append((at - began[event["step"]]).total_seconds())
    return times


def import_from(checkout: Path) -> dict[str, str]:
    """Return the variables with which the gsd of another *checkout* runs."""
    return {"PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "plugins")])}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the time to a verdict.")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cli", action="store_true")
    parser.add_argument("--against", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    cli = {"GSD_REHEARSAL_CLI": str(options.cli).lower()}
    sides = {
        "without ablation": cli | {"GSD_LIMITS_ABLATION": "0s"},
        "with ablation": cli | import_from(ROOT),
    }
    if options.against:
        sides = {
            str(options.against): cli | import_from(options.against.resolve()),
            "here": sides.popitem()[1],
        }
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.times):
        for name, variables in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                found[name] += verify_times(Path(folder, "demo"), variables)
    for name, times in found.items():
        print(f"{name}: {statistics.median(times):.1f} s ({min(times):.1f} to {max(times):.1f})")
    first, second = map(statistics.median, found.values())
    print(f"ratio of the medians: {second / first:.2f}")


if __name__ == "__main__":
    main()
