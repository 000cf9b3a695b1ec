"""What a phase promised, each thing once: its truths, its artifacts, its key links.

What became of a phase's promises, by what detectors and verifiers found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from attrs import evolve, field, frozen

from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.ids import padded

from .model import PhaseView, Plan


@frozen(kw_only=True)
class MustHave:
    """Something that must hold.

    *ids* are all the names by which gaps and evidence may speak of it; *details* is what was said
    of it besides: what an artifact provides, by what means a link is made.
    """

    ids: tuple[str, ...]
    text: str
    details: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id by which it is asked for and answered."""
        return self.ids[0]

    def is_about(self, name: str) -> bool:
        """Whether *name* is one of its ids; no name is none."""
        return bool(name) and name in self.ids


def truths_of(phase: PhaseView, plans: Sequence[Plan]) -> tuple[MustHave, ...]:
    """Return what *plans* promised; without any, the roadmap's criteria; without these, the goal."""
    truths = [(truth.id, truth.text) for plan in plans for truth in plan.must_haves.truths]
    criteria = phase.criteria or (phase.goal or phase.name,)
    numbered = [(f"{padded(phase.number)}:C{number}", text) for number, text in enumerate(criteria, start=1)]
    return _once((_even(text), MustHave(ids=(name,), text=text)) for name, text in truths or numbered)


def artifacts_of(plans: Iterable[Plan]) -> tuple[MustHave, ...]:
    """Return the files that *plans* promised: known by path and by place (``01-02:A1``)."""
    return _once(
        (
            path,
            MustHave(
                ids=(path, artifact.path, f"{plan.id}:A{number}"), text=path, details=_some(artifact.provides)
            ),
        )
        for plan in plans
        for number, artifact in enumerate(plan.must_haves.artifacts, start=1)
        for path in [artifact.path.strip().removeprefix("./")]
    )


def links_of(plans: Iterable[Plan]) -> tuple[MustHave, ...]:
    """Return the links that *plans* promised: known by place (``01-02:L1``) and by their ends."""
    return _once(
        (text, MustHave(ids=(f"{plan.id}:L{number}", text), text=text, details=_some(link.via)))
        for plan in plans
        for number, link in enumerate(plan.must_haves.key_links, start=1)
        for text in [f"{link.source} -> {link.target}"]
    )


def _once(promises: Iterable[tuple[str, MustHave]]) -> tuple[MustHave, ...]:
    found: dict[str, MustHave] = {}
    for key, promise in promises:
        known = found.get(key)
        found[key] = _both(known, promise) if known else promise
    return tuple(found.values())


def _both(one: MustHave, other: MustHave) -> MustHave:
    ids = dict.fromkeys((*one.ids, *other.ids))
    return evolve(one, ids=tuple(ids), details=tuple(dict.fromkeys((*one.details, *other.details))))


def _some(text: str) -> tuple[str, ...]:
    return (text,) if text.strip() else ()


def _even(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")


MustHaveStatus: TypeAlias = Literal["holds", "fails", "partial", "missing", "uncertain", "human", "open"]
_WRONG = ("fails", "partial", "missing", "uncertain")


@frozen(kw_only=True)
class MustHaveResult:
    """A promise and what became of it (``open``: nobody said); *gaps* are those that are about it."""

    promise: MustHave
    became: MustHaveStatus
    proof: str = ""
    gaps: tuple[Gap, ...] = ()


@frozen(kw_only=True)
class MustHaveResults:
    """Everything that a phase promised, and what became of it."""

    truths: tuple[MustHaveResult, ...]
    artifacts: tuple[MustHaveResult, ...]
    links: tuple[MustHaveResult, ...]
    report: GapReport = field(repr=False)

    @property
    def each(self) -> tuple[MustHaveResult, ...]:
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


def must_have_results(phase: PhaseView, report: GapReport) -> MustHaveResults:
    """Return what the report says of each promise of the phase's plans."""
    return MustHaveResults(
        truths=_found(truths_of(phase, phase.plans), report),
        artifacts=_found(artifacts_of(phase.plans), report),
        links=_found(links_of(phase.plans), report),
        report=report,
    )


@frozen(kw_only=True)
class Coverage:
    """What became of a requirement, by the must-haves of the *plans* that deliver it."""

    requirement: str
    plans: tuple[str, ...]
    status: Literal["satisfied", "blocked", "human", "uncertain", "orphaned"]
    proof: str = ""


def coverage_of(phase: PhaseView, findings: MustHaveResults) -> tuple[Coverage, ...]:
    """Return what became of each of the phase's requirements."""
    return tuple(_coverage(name, phase, findings) for name in phase.requirements)


def _coverage(name: str, phase: PhaseView, findings: MustHaveResults) -> Coverage:
    plans = tuple(plan.id for plan in phase.plans if name in plan.requirements)
    if not plans:
        return Coverage(requirement=name, plans=(), status="orphaned", proof="no plan names it")
    marks = tuple(f"{plan}{mark}" for plan in plans for mark in ":/")
    theirs = [one for one in findings.each if any(known.startswith(marks) for known in one.promise.ids)]
    theirs = theirs or list(findings.truths)
    gaps = [gap for gap in findings.report.gaps if gap.about == name or gap.about.startswith(marks)]
    reasons = [gap.reason for gap in gaps] + [one.proof for one in theirs if one.became in _WRONG]
    became = {one.became for one in theirs if one.became != "open" or one in findings.truths}
    if reasons:
        return Coverage(requirement=name, plans=plans, status="blocked", proof=reasons[0])
    if became == {"holds"}:
        proof = f"{sum(one.became == 'holds' for one in theirs)} must-haves hold"
        return Coverage(requirement=name, plans=plans, status="satisfied", proof=proof)
    return Coverage(requirement=name, plans=plans, status="human" if "human" in became else "uncertain")


def _found(promises: Iterable[MustHave], report: GapReport) -> tuple[MustHaveResult, ...]:
    return tuple(_finding(promise, report) for promise in promises)


def _finding(promise: MustHave, report: GapReport) -> MustHaveResult:
    """Say what became of a promise: a gap outweighs evidence, nothing at all is no proof."""
    if gaps := tuple(gap for gap in report.gaps if promise.is_about(gap.about) or gap.truth == promise.text):
        return MustHaveResult(promise=promise, became=_worst(gaps), proof=gaps[0].reason, gaps=gaps)
    for check in report.human:
        if promise.is_about(check.about):
            return MustHaveResult(promise=promise, became="human", proof=check.test)
    told = [evidence for evidence in report.evidence if promise.is_about(evidence.about)]
    if not told:
        return MustHaveResult(promise=promise, became="open")
    first = next((evidence for evidence in told if not evidence.holds), told[0])
    return MustHaveResult(promise=promise, became="holds" if first.holds else "fails", proof=first.proof)


def _worst(gaps: Sequence[Gap]) -> MustHaveStatus:
    if any(gap.status == "failed" for gap in gaps):
        return "missing" if any(gap.about in gap.missing for gap in gaps) else "fails"
    return "partial" if any(gap.status == "partial" for gap in gaps) else "uncertain"
