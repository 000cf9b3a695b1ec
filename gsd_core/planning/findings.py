"""What became of a phase's promises, by what detectors and verifiers found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from attrs import field, frozen

from gsd_core.gap import Gap, GapReport
from gsd_core.planning.model import PhaseView
from gsd_core.planning.promises import Promise, artifacts_of, links_of, truths_of

Became: TypeAlias = Literal["holds", "fails", "partial", "missing", "uncertain", "human", "open"]


@frozen(kw_only=True)
class Finding:
    """A promise and what became of it (``open``: nobody said); *gaps* are those that are about it."""

    promise: Promise
    became: Became
    proof: str = ""
    gaps: tuple[Gap, ...] = ()


@frozen(kw_only=True)
class Findings:
    """Everything that a phase promised, and what became of it."""

    truths: tuple[Finding, ...]
    artifacts: tuple[Finding, ...]
    links: tuple[Finding, ...]
    report: GapReport = field(repr=False)

    @property
    def each(self) -> tuple[Finding, ...]:
        """Truths, artifacts and links."""
        return (*self.truths, *self.artifacts, *self.links)

    @property
    def score(self) -> str:
        """How many of the must-haves that were judged hold, of how many.

        A truth counts in any case. So does a gap that is about no must-have (a failing check, say),
        and a detector that failed: with gaps, not everything is verified.
        """
        counted = [*self.truths, *(one for one in (*self.artifacts, *self.links) if one.became != "open")]
        told = {gap.key for finding in self.each for gap in finding.gaps}
        more = {gap.key for gap in self.report.gaps} - told
        holding = sum(finding.became == "holds" for finding in counted)
        total = len(counted) + len(more) + len(self.report.failed_detectors)
        return f"{holding}/{total} must-haves verified"


def findings_of(phase: PhaseView, report: GapReport) -> Findings:
    """Return what the report says of each promise of the phase's plans."""
    return Findings(
        truths=_found(truths_of(phase, phase.plans), report),
        artifacts=_found(artifacts_of(phase.plans), report),
        links=_found(links_of(phase.plans), report),
        report=report,
    )


def _found(promises: Iterable[Promise], report: GapReport) -> tuple[Finding, ...]:
    return tuple(_finding(promise, report) for promise in promises)


def _finding(promise: Promise, report: GapReport) -> Finding:
    """Say what became of a promise: a gap outweighs evidence, nothing at all is no proof."""
    if gaps := tuple(gap for gap in report.gaps if promise.is_about(gap.about) or gap.truth == promise.text):
        return Finding(promise=promise, became=_worst(gaps), proof=gaps[0].reason, gaps=gaps)
    for check in report.human:
        if promise.is_about(check.about):
            return Finding(promise=promise, became="human", proof=check.test)
    told = [evidence for evidence in report.evidence if promise.is_about(evidence.about)]
    if not told:
        return Finding(promise=promise, became="open")
    first = next((evidence for evidence in told if not evidence.holds), told[0])
    return Finding(promise=promise, became="holds" if first.holds else "fails", proof=first.proof)


def _worst(gaps: Sequence[Gap]) -> Became:
    if any(gap.status == "failed" for gap in gaps):
        return "missing" if any(gap.about in gap.missing for gap in gaps) else "fails"
    return "partial" if any(gap.status == "partial" for gap in gaps) else "uncertain"
