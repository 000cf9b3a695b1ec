"""Run the detectors over phases and count."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from bench.detectors.phases import Phase, write_phase
from gsd_core import Gap, GapReport, PhaseView
from gsd_core.git import Git
from gsd_core.planning.must_haves import unserved_requirements
from gsd_core.run.delivery import find_undelivered
from gsd_plugins.history import summaries_are_true
from gsd_plugins.must_haves import must_haves_hold

CAUGHT = 0.95
FALSE_ALARMS = 0.01


@attrs.frozen(kw_only=True)
class Result:
    """The gaps that were found in a phase, each as ``about: reason``."""

    phase: Phase
    gaps: tuple[str, ...]

    @property
    def is_wrong(self) -> bool:
        """Whether a defect was missed, or a sound phase was reported."""
        return bool(self.gaps) != bool(self.phase.defect)


async def find(view: PhaseView) -> list[Gap]:
    """Return the gaps that the detectors find, and in a repository those that the core finds itself."""
    reports: list[Sequence[Gap] | GapReport] = [await must_haves_hold(view), await summaries_are_true(view)]
    reports.append([*unserved_requirements(view)])
    if (view.project / ".git").is_dir():
        reports.append(await find_undelivered(Git(view.project), view))
    return [gap for report in reports for gap in (report.gaps if isinstance(report, GapReport) else report)]


def measure(phases: Sequence[Phase]) -> list[Result]:
    """Write each phase and run the detectors over it."""

    async def measured() -> list[Result]:
        results: list[Result] = []
        with tempfile.TemporaryDirectory() as folder:
            for phase in phases:
                gaps = await find(write_phase(phase, Path(folder) / phase.name))
                results.append(Result(phase=phase, gaps=tuple(f"{gap.about}: {gap.reason}" for gap in gaps)))
        return results

    return asyncio.run(measured())


def caught(results: Sequence[Result]) -> float:
    """Return the share of planted defects that were found."""
    planted = [result for result in results if result.phase.defect]
    return sum(bool(result.gaps) for result in planted) / max(1, len(planted))


def false_alarms(results: Sequence[Result]) -> float:
    """Return the share of sound phases in which something was found."""
    sound = [result for result in results if not result.phase.defect]
    return sum(bool(result.gaps) for result in sound) / max(1, len(sound))


def table(results: Sequence[Result]) -> str:
    """Return the counts by kind of defect and by language."""
    languages = sorted({result.phase.language for result in results})
    kinds = sorted({result.phase.defect for result in results} - {""})
    rows = [["caught", *languages, "all"]]
    rows += [[kind, *(_share(results, kind, name) for name in (*languages, ""))] for kind in kinds]
    rows.append(
        ["sound, reported", *(_share(results, "", name) for name in languages), _share(results, "", "")]
    )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    totals = f"{caught(results):.1%} caught, {false_alarms(results):.1%} false alarms"
    return "\n".join([*lines, "", totals])


def _share(results: Sequence[Result], kind: str, language: str) -> str:
    found = [r for r in results if r.phase.defect == kind and language in ("", r.phase.language)]
    return f"{sum(bool(r.gaps) for r in found)}/{len(found)}" if found else ""
