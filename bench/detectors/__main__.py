"""Measure how many planted defects the detectors catch, and how many sound phases they report.

Run ``python -m bench.detectors [-v] [GROUP ...]`` in the root of the repository; it takes seconds. A group is
a file in ``bench/detectors/data``; without one, all are measured. With Node, and ``GSD_PEER_DIR`` set as
for the tests, GSD's own ``gsd-tools verify artifacts|key-links`` is measured beside ours.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.detectors.measure import CAUGHT, FALSE_ALARMS, Result, caught, false_alarms, measure, table
from bench.detectors.phases import Phase, read_phases, write_phase

PLAN = ".planning/phases/01-build/01-01-PLAN.md"
DRIVER = Path(__file__).parent / "peer.cjs"
VERDICTS = (("artifacts", "all_passed"), ("key-links", "all_verified"))
"""What ``gsd-tools verify`` checks, and the key of its verdict."""


def peer() -> Path | None:
    """Return GSD's own tool, if it is installed."""
    folder = os.environ.get("GSD_PEER_DIR", "")
    tool = Path(folder) / "node_modules/@opengsd/gsd-core/gsd-core/bin/gsd-tools.cjs"
    return tool if folder and tool.is_file() else None


def measure_peer(tool: Path, phases: Sequence[Phase]) -> list[Result]:
    """Return what GSD's own tool finds; it has no test, stub or history checks.

    Raises :class:`RuntimeError` if the tool cannot be run, or does not answer for each phase.
    """
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(folder) / phase.name for phase in phases]
        for phase, root in zip(phases, roots, strict=True):
            write_phase(phase, root)
        done = subprocess.run(
            ["node", str(DRIVER), str(tool.parent / "lib/verify.cjs"), PLAN],
            input=json.dumps([str(root) for root in roots]),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"{tool} failed: {done.stderr[-500:]}")
    results: list[Result] = []
    for phase, outputs in zip(phases, json.loads(done.stdout), strict=True):
        gaps: list[str] = []
        for (what, key), output in zip(VERDICTS, outputs, strict=True):
            answer = json.loads(output)
            # An error says that the plan has no such must-haves, which is no finding.
            if key not in answer and not str(answer.get("error", "")).startswith("No must_haves"):
                raise RuntimeError(f"{phase.name}: gsd-tools verify {what} answered {output[:200]}")
            gaps += [
                f"{artifact['path']}: {issue}"
                for artifact in answer.get("artifacts", ())
                for issue in artifact["issues"]
            ]
            gaps += [
                f"{link['from']} -> {link['to']}: {link['detail']}"
                for link in answer.get("links", ())
                if not link["verified"]
            ]
        results.append(Result(phase=phase, gaps=tuple(gaps)))
    return results


def without_old(results: Sequence[Result]) -> list[Result]:
    """Return the results without the gaps that were also found in the phase that another one changes."""
    known = {result.phase.name: set(result.gaps) for result in results}
    return [
        Result(
            phase=result.phase,
            gaps=tuple(gap for gap in result.gaps if gap not in known.get(result.phase.base, ())),
        )
        for result in results
    ]


def main() -> int:
    """Print the tables; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="Measure the detectors.")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show what was missed or reported wrongly"
    )
    parser.add_argument("groups", nargs="*")
    options = parser.parse_args()
    phases = read_phases(*options.groups)
    began = time.perf_counter()
    results = measure(phases)
    seconds = time.perf_counter() - began
    print(table(results))
    print(f"\n{len(phases)} phases, {1000 * seconds / len(phases):.0f} ms each")
    if tool := peer():
        began = time.perf_counter()
        others = measure_peer(tool, phases)
        seconds = time.perf_counter() - began
        new = without_old(others)
        print(
            f"gsd-tools verify: {caught(others):.1%} caught, {false_alarms(others):.1%} false alarms;"
            f" {caught(new):.1%} caught by what it does not say about the phase without the defect, too"
            f" ({seconds:.1f} s)"
        )
    else:
        print("gsd-tools verify: not measured (needs node, and GSD_PEER_DIR)")
    for result in [result for result in results if result.is_wrong] if options.verbose else []:
        kind = result.phase.defect or "sound"
        print(f"\n{result.phase.name} ({result.phase.language}, {kind})", *result.gaps, sep="\n  ")
    return 0 if caught(results) >= CAUGHT and false_alarms(results) <= FALSE_ALARMS else 1


if __name__ == "__main__":
    sys.exit(main())
