"""The truths of a phase, and what is known of each before anybody is asked."""

from __future__ import annotations

from gsd_core import Evidence, Gap, GapReport, PhaseView
from gsd_core.planning.must_haves import Promise, truths_of

from .place import executed


def claims_of(phase: PhaseView) -> tuple[Promise, ...]:
    """Return what the executed plans promised, each wording once; without any, the roadmap's criteria."""
    return truths_of(phase, executed(phase))


def unknown(claims: tuple[Promise, ...], report: GapReport) -> tuple[Promise, ...]:
    """Return the claims that no evidence, gap or check for a human is about."""
    known = {gap.about for gap in report.gaps} | {evidence.about for evidence in report.evidence}
    known |= {check.about for check in report.human}
    return tuple(claim for claim in claims if not known & set(claim.ids))


def contradicted(claims: tuple[Promise, ...], report: GapReport) -> tuple[Gap, ...]:
    """Return gaps for what the evidence says does not hold, where no detector made a gap of it."""
    texts = {name: claim.text for claim in claims for name in claim.ids}
    told = {gap.about for gap in report.gaps}
    return tuple(_gap(item, texts) for item in report.evidence if not item.holds and item.about not in told)


def _gap(evidence: Evidence, texts: dict[str, str]) -> Gap:
    truth = texts.get(evidence.about, evidence.about)
    return Gap(truth=truth, reason=evidence.proof, about=evidence.about, found_by=evidence.by)
