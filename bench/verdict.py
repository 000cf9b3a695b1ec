"""Measure how long a phase takes from its last commit to its verdict, with and without ablation.

Run ``python bench/verdict.py [--times N] [--cli]``; it needs no account. It rehearses the example in new
folders, in turn without and with ablation, and prints the median time of a verify step, with its spread, and
the ratio. With ``--cli`` the agents are the real Claude Code with a scripted model, which takes minutes.
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

EXAMPLE = Path(__file__).parent.parent / "examples" / "greeter.md"


def verify_times(folder: Path, *, ablation: str, cli: bool) -> list[float]:
    """Rehearse the example in *folder*; return the seconds of each verify step."""
    environment = {**os.environ, "GSD_LIMITS_ABLATION": ablation, "GSD_REHEARSAL_CLI": str(cli).lower()}
    gsd = [sys.executable, "-m", "gsd_core"]
    run = [*gsd, "run", str(EXAMPLE), "-C", str(folder), "--agent", "rehearsal", "--yes"]
    subprocess.run(run, env=environment, check=True, capture_output=True)
    log = subprocess.run(
        [*gsd, "log", "-C", str(folder), "--json"], check=True, capture_output=True, text=True
    ).stdout
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the time to a verdict.")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cli", action="store_true")
    options = parser.parse_args()
    found: dict[str, list[float]] = {"0s": [], "10m": []}
    for _ in range(options.times):
        for ablation, times in found.items():
            with tempfile.TemporaryDirectory() as folder:
                times += verify_times(Path(folder, "demo"), ablation=ablation, cli=options.cli)
    for ablation, times in found.items():
        name = "without ablation" if ablation == "0s" else "with ablation"
        print(f"{name}: {statistics.median(times):.1f} s ({min(times):.1f} to {max(times):.1f})")
    print(f"ratio of the medians: {statistics.median(found['10m']) / statistics.median(found['0s']):.2f}")


if __name__ == "__main__":
    main()
