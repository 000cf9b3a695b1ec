"""The truths of a phase, and what is known of each before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

from gsd_core import Evidence, Gap, GapReport, PhaseView, Truth, padded

from .place import executed


@frozen(kw_only=True)
class Claim:
    """One truth to verify; *ids* are all the ids under which plans promised it, the first counts."""

    ids: tuple[str, ...]
    text: str

    @property
    def id(self) -> str:
        """The id by which it is asked for and answered."""
        return self.ids[0]


def claims_of(phase: PhaseView) -> tuple[Claim, ...]:
    """Return what the executed plans promised, each wording once; without any, the roadmap's criteria."""
    truths = [truth for plan in executed(phase) for truth in plan.must_haves.truths]
    found: dict[str, Claim] = {}
    for truth in truths or _criteria(phase):
        wording = " ".join(truth.text.lower().split()).rstrip(".")
        known = found.get(wording, Claim(ids=(), text=truth.text))
        found[wording] = evolve(known, ids=(*known.ids, truth.id))
    return tuple(found.values())


def _criteria(phase: PhaseView) -> Iterator[Truth]:
    for number, text in enumerate(phase.criteria or (phase.goal or phase.name,), start=1):
        yield Truth(id=f"{padded(phase.number)}:C{number}", text=text)


def unknown(claims: tuple[Claim, ...], report: GapReport) -> tuple[Claim, ...]:
    """Return the claims that no evidence, gap or check for a human is about."""
    known = {gap.about for gap in report.gaps} | {evidence.about for evidence in report.evidence}
    known |= {check.about for check in report.human}
    return tuple(claim for claim in claims if not known & set(claim.ids))


def contradicted(claims: tuple[Claim, ...], report: GapReport) -> tuple[Gap, ...]:
    """Return gaps for what the evidence says does not hold, where no detector made a gap of it."""
    texts = {name: claim.text for claim in claims for name in claim.ids}
    told = {gap.about for gap in report.gaps}
    return tuple(_gap(item, texts) for item in report.evidence if not item.holds and item.about not in told)


def _gap(evidence: Evidence, texts: dict[str, str]) -> Gap:
    truth = texts.get(evidence.about, evidence.about)
    return Gap(truth=truth, reason=evidence.proof, about=evidence.about, found_by=evidence.by)
