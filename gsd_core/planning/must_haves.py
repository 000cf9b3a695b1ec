"""The must-haves of a phase and their results: the expectations, and the findings of detectors and verifiers.

A must-have is a truth, an artifact or a key link. Plans declare them in their frontmatter; one that
several plans declare counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import attrs

from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.ids import padded

from .model import PhaseView, Plan

MustHaveStatus: TypeAlias = Literal["holds", "fails", "partial", "missing", "uncertain", "human", "open"]
"""``human``: a person has to check it; ``open``: nothing was reported about it."""

_UNMET: tuple[MustHaveStatus, ...] = ("fails", "partial", "missing", "uncertain")


@attrs.frozen(kw_only=True)
class MustHave:
    """Something that must hold.

    *ids* are all the names that gaps and evidence may use for it. *details* say what an artifact
    provides, or how a link is made.
    """

    ids: tuple[str, ...]
    text: str
    details: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id that verifiers are given."""
        return self.ids[0]

    def is_about(self, name: str) -> bool:
        """Whether *name* is one of its ids; an empty name is not."""
        return bool(name) and name in self.ids


@attrs.frozen(kw_only=True)
class MustHaveResult:
    """The status of a must-have, with its *proof* (or the reason why it does not hold)."""

    must_have: MustHave
    status: MustHaveStatus
    proof: str = ""
    gaps: tuple[Gap, ...] = ()


@attrs.frozen(kw_only=True)
class MustHaveResults:
    """The results of all must-haves of a phase, and the *report* from which they were derived."""

    truths: tuple[MustHaveResult, ...]
    artifacts: tuple[MustHaveResult, ...]
    links: tuple[MustHaveResult, ...]
    report: GapReport = attrs.field(repr=False)

    @property
    def each(self) -> tuple[MustHaveResult, ...]:
        """Truths, artifacts and links."""
        return (*self.truths, *self.artifacts, *self.links)

    @property
    def score(self) -> str:
        """How many must-haves hold: ``3/4 must-haves verified``.

        Truths always count, artifacts and links only if something was reported about them. Each gap that
        is not about a must-have (such as a failing check) and each detector that failed counts as one
        more that does not hold, because with gaps the score must not be full.
        """
        reported = [result for result in (*self.artifacts, *self.links) if result.status != "open"]
        counted = [*self.truths, *reported]
        of_must_haves = {gap.key for result in self.each for gap in result.gaps}
        other_gaps = {gap.key for gap in self.report.gaps} - of_must_haves
        holding = sum(result.status == "holds" for result in counted)
        total = len(counted) + len(other_gaps) + len(self.report.failed_detectors)
        return f"{holding}/{total} must-haves verified"


@attrs.frozen(kw_only=True)
class Coverage:
    """Whether a requirement is met, judged by the must-haves of the *plans* that list it."""

    requirement: str
    plans: tuple[str, ...]
    status: Literal["satisfied", "blocked", "human", "uncertain", "orphaned"]
    proof: str = ""


def truths_of(phase: PhaseView, plans: Sequence[Plan]) -> tuple[MustHave, ...]:
    """Return the truths of *plans*; if they have none, the phase's success criteria; else its goal.

    The order is that of GSD's own verifier.
    """
    truths = [(truth.id, truth.text) for plan in plans for truth in plan.must_haves.truths]
    criteria = phase.criteria or (phase.goal or phase.name,)
    numbered = [(f"{padded(phase.number)}:C{number}", text) for number, text in enumerate(criteria, start=1)]
    return _merged(
        (" ".join(text.lower().split()).rstrip("."), MustHave(ids=(name,), text=text))
        for name, text in truths or numbered
    )


def artifacts_of(plans: Iterable[Plan]) -> tuple[MustHave, ...]:
    """Return the artifacts of *plans*; their ids are the path and the position (``01-02:A1``)."""
    return _merged(
        (
            path,
            MustHave(
                ids=(path, artifact.path, f"{plan.id}:A{number}"),
                text=path,
                details=_details(artifact.provides),
            ),
        )
        for plan in plans
        for number, artifact in enumerate(plan.must_haves.artifacts, start=1)
        for path in [artifact.path.strip().removeprefix("./")]
    )


def links_of(plans: Iterable[Plan]) -> tuple[MustHave, ...]:
    """Return the key links of *plans*; their ids are the position (``01-02:L1``) and ``source -> target``."""
    return _merged(
        (text, MustHave(ids=(f"{plan.id}:L{number}", text), text=text, details=_details(link.via)))
        for plan in plans
        for number, link in enumerate(plan.must_haves.key_links, start=1)
        for text in [f"{link.source} -> {link.target}"]
    )


def _details(text: str) -> tuple[str, ...]:
    return (text,) if text.strip() else ()


def _merged(must_haves: Iterable[tuple[str, MustHave]]) -> tuple[MustHave, ...]:
    """Return one must-have for each key, with the ids and details of all that have this key."""
    merged: dict[str, MustHave] = {}
    for key, must_have in must_haves:
        if known := merged.get(key):
            ids = dict.fromkeys((*known.ids, *must_have.ids))
            details = dict.fromkeys((*known.details, *must_have.details))
            must_have = attrs.evolve(known, ids=tuple(ids), details=tuple(details))
        merged[key] = must_have
    return tuple(merged.values())


def results_of(phase: PhaseView, report: GapReport) -> MustHaveResults:
    """Return the result of each must-have of the phase's plans."""
    return MustHaveResults(
        truths=tuple(_result(one, report) for one in truths_of(phase, phase.plans)),
        artifacts=tuple(_result(one, report) for one in artifacts_of(phase.plans)),
        links=tuple(_result(one, report) for one in links_of(phase.plans)),
        report=report,
    )


def _result(must_have: MustHave, report: GapReport) -> MustHaveResult:
    """Derive a must-have's result: a gap outweighs evidence, and without evidence it does not hold."""
    gaps = tuple(gap for gap in report.gaps if must_have.is_about(gap.about) or gap.truth == must_have.text)
    if gaps:
        return MustHaveResult(
            must_have=must_have, status=_status_of_gaps(gaps), proof=gaps[0].reason, gaps=gaps
        )
    for check in report.human:
        if must_have.is_about(check.about):
            return MustHaveResult(must_have=must_have, status="human", proof=check.test)
    reported = [evidence for evidence in report.evidence if must_have.is_about(evidence.about)]
    if not reported:
        return MustHaveResult(must_have=must_have, status="open")
    decisive = next((evidence for evidence in reported if not evidence.holds), reported[0])
    status: MustHaveStatus = "holds" if decisive.holds else "fails"
    return MustHaveResult(must_have=must_have, status=status, proof=decisive.proof)


def _status_of_gaps(gaps: Sequence[Gap]) -> MustHaveStatus:
    """Return the status for the worst of *gaps*."""
    if any(gap.status == "failed" for gap in gaps):
        # A detector that finds no file at all lists the file itself as missing.
        return "missing" if any(gap.about in gap.missing for gap in gaps) else "fails"
    return "partial" if any(gap.status == "partial" for gap in gaps) else "uncertain"


def coverage_of(phase: PhaseView, results: MustHaveResults) -> tuple[Coverage, ...]:
    """Return the coverage of each of the phase's requirements."""
    return tuple(_coverage(requirement, phase, results) for requirement in phase.requirements)


def _coverage(requirement: str, phase: PhaseView, results: MustHaveResults) -> Coverage:
    plans = tuple(plan.id for plan in phase.plans if requirement in plan.requirements)
    if not plans:
        return Coverage(requirement=requirement, plans=(), status="orphaned", proof="no plan lists it")
    # Ids of must-haves begin with `01-02:`, those of task checks with `01-02/`.
    prefixes = tuple(f"{plan}{mark}" for plan in plans for mark in ":/")
    of_plans = [one for one in results.each if any(name.startswith(prefixes) for name in one.must_have.ids)]
    judged = of_plans or list(results.truths)
    gaps = [gap for gap in results.report.gaps if gap.about == requirement or gap.about.startswith(prefixes)]
    reasons = [gap.reason for gap in gaps] + [one.proof for one in judged if one.status in _UNMET]
    if reasons:
        return Coverage(requirement=requirement, plans=plans, status="blocked", proof=reasons[0])
    # As in the score, only truths count if nothing was reported about them.
    statuses = {one.status for one in judged if one.status != "open" or one in results.truths}
    if statuses == {"holds"}:
        proof = f"{sum(one.status == 'holds' for one in judged)} must-haves hold"
        return Coverage(requirement=requirement, plans=plans, status="satisfied", proof=proof)
    status: Literal["human", "uncertain"] = "human" if "human" in statuses else "uncertain"
    return Coverage(requirement=requirement, plans=plans, status=status)
