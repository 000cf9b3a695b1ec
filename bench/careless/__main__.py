"""Measure how many careless agents get a false "verified".

Run ``python -m bench.careless [-v] [--check] [--jobs 2] [--only CASE] [GROUP ...]`` in the root of the
repository. A group is a file in ``bench/careless/data``, or the beginning of its name: ``first``, ``second``,
``third``, ``fourth`` and ``fifth``. It plays each case with gsd's own engine, with the real checks and
detectors and a scripted agent.

A careless case is caught if somebody was sent back with a complaint that names the mistake, or if the run
itself names it: as a gap, an observation, a deviation or a note.
What only the verifier's prompt says about a check is shown, but not caught.
An honest case is a false alarm if anybody was sent back, or if there is a gap.

``--check`` plays nothing: it shows that each case is wrong or right in the way it says.
The exit code is 0 unless a case is not what it says, or cannot be played.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from bench.careless.cases import Case, read_cases
from bench.careless.play import Result, play, problems_of

WIDTH = 300


def table(results: Sequence[Result]) -> str:
    """Return the counts by kind of mistake and by language."""
    languages = sorted({result.case.language for result in results})
    careless = [result for result in results if result.case.by]
    rows = [["caught", *languages, "all"]]
    for kind in [*sorted({result.case.kind for result in careless}), ""]:
        chosen = [result for result in careless if kind in ("", result.case.kind)]
        rows.append([kind or "all kinds", *(_share(chosen, language) for language in (*languages, ""))])
    rows.append(["false alarms", *("" for _ in languages), ""])
    for name, kinds in (("  honest, unusual", True), ("  honest, plain", False)):
        chosen = [result for result in results if not result.case.by and bool(result.case.kind) == kinds]
        rows.append([name, *(_share(chosen, language) for language in (*languages, ""))])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _share(results: Sequence[Result], language: str) -> str:
    found = [result for result in results if language in ("", result.case.language)]
    return f"{sum(result.caught for result in found)}/{len(found)}" if found else ""


def line(result: Result) -> str:
    """Return the result in one line."""
    case = result.case
    state = "caught" if result.caught else "shown" if result.shown else "MISSED"
    if not case.by:
        state = "FALSE ALARM" if result.caught else "ok"
    said = [text for text in result.said if re.search(case.names, text)] or [*result.said, *result.shown]
    why = f": {' '.join(said[0].split())[:WIDTH]}" if said else ""
    return f"{state:11} {case.name} ({case.language}, {case.kind or 'plain'}){why}"


def main() -> int:
    """Play or check the cases, and print what came of it."""
    parser = argparse.ArgumentParser(description="Measure how many careless agents get a false 'verified'.")
    parser.add_argument("-v", "--verbose", action="store_true", help="show all that was said")
    parser.add_argument("--check", action="store_true", help="only show that the cases are what they say")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], help="name of a case")
    parser.add_argument("groups", nargs="*")
    options = parser.parse_args()
    cases = [case for case in read_cases(*options.groups) if case.name in (options.only or [case.name])]
    began = time.perf_counter()
    with ProcessPoolExecutor(max_workers=options.jobs) as pool:
        if options.check:
            return _check(cases, pool)
        results: list[Result] = []
        errors = 0
        for case, future in [(case, pool.submit(play, case)) for case in cases]:
            try:
                results.append(result := future.result())
            except Exception as error:
                errors += 1
                print(f"ERROR       {case.name}: {error!r}")
                continue
            print(line(result), flush=True)
            if options.verbose:
                print(
                    f"  {result.end} ({result.seconds:.1f} s)",
                    *result.complaints,
                    *result.observations,
                    sep="\n  ",
                )
    shown = sum(bool(result.case.by and result.shown and not result.caught) for result in results)
    print(f"\n{table(results)}\n\n{shown} of those that are not caught were shown to the verifier")
    print(f"\n{len(cases)} cases in {time.perf_counter() - began:.0f} s")
    return 1 if errors else 0


def _check(cases: Sequence[Case], pool: ProcessPoolExecutor) -> int:
    bad = 0
    for case, problems in zip(cases, pool.map(problems_of, cases), strict=True):
        bad += bool(problems)
        for problem in problems:
            print(f"{case.name}: {problem}", flush=True)
    print(f"{len(cases)} cases, {bad} of them are not what they say")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
