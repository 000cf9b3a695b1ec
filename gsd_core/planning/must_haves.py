"""The must-haves of a phase and their results: the expectations, and the findings of detectors and verifiers.

A must-have is a requirement, a success criterion or a decision of the phase, or a truth, an artifact or a
key link of its plans. Plans declare theirs in their frontmatter; one that several plans declare counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.ids import padded

from .context import owed_decisions, uncovered
from .model import PhaseView, Plan, Requirement, Truth

MustHaveKind: TypeAlias = Literal["requirement", "criterion", "decision", "truth", "artifact", "link"]
MustHaveStatus: TypeAlias = Literal[
    "holds", "fails", "partial", "missing", "uncertain", "human", "assumed", "open"
]
"""``human``: a person has to check it; ``assumed``: a person had to, but nobody looked; ``open``: nothing was
reported about it."""

ASKED = "[Asked]"
"""How a decision in a SUMMARY begins that is the answer to a question while the plan was executed."""
COVERAGE = "coverage"
"""The finder of gaps in the chain from requirements and decisions to plans and truths."""

UNMET: tuple[MustHaveStatus, ...] = ("fails", "partial", "missing", "uncertain")


@attrs.frozen(kw_only=True)
class MustHave:
    """Something that must hold.

    *ids* are all the names that gaps and evidence may use for it. *details* say what an artifact
    provides, how a link is made, or how a decision came about. *serves* are the requirements and criteria
    that a truth makes true.
    """

    ids: tuple[str, ...]
    text: str
    kind: MustHaveKind = "truth"
    details: tuple[str, ...] = ()
    serves: tuple[str, ...] = ()

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

    requirements: tuple[MustHaveResult, ...] = ()
    criteria: tuple[MustHaveResult, ...] = ()
    decisions: tuple[MustHaveResult, ...] = ()
    truths: tuple[MustHaveResult, ...] = ()
    artifacts: tuple[MustHaveResult, ...] = ()
    links: tuple[MustHaveResult, ...] = ()
    report: GapReport = attrs.field(factory=GapReport, repr=False)

    @property
    def each(self) -> tuple[MustHaveResult, ...]:
        """All results, in the order of the fields."""
        return (*self.required, *self.artifacts, *self.links)

    @property
    def required(self) -> tuple[MustHaveResult, ...]:
        """Requirements, criteria, decisions and truths: what a verification always has to cover."""
        return (*self.requirements, *self.criteria, *self.decisions, *self.truths)

    @property
    def score(self) -> str:
        """How many must-haves hold: ``3/4 must-haves verified``.

        What is required always counts, artifacts and links only if something was reported about them. Each
        gap that is not about a must-have (such as a failing check) and each detector that failed counts as
        one more that does not hold, because with gaps the score must not be full.
        """
        reported = [result for result in (*self.artifacts, *self.links) if result.status != "open"]
        counted = [*self.required, *reported]
        of_must_haves = {gap.key for result in self.each for gap in result.gaps}
        other_gaps = {gap.key for gap in self.report.gaps} - of_must_haves
        holding = sum(result.status == "holds" for result in counted)
        total = len(counted) + len(other_gaps) + len(self.report.failed_detectors)
        return f"{holding}/{total} must-haves verified"


@attrs.frozen(kw_only=True)
class Coverage:
    """Whether a requirement is met, judged by itself and by the must-haves of the *plans* that list it."""

    requirement: str
    plans: tuple[str, ...]
    status: Literal["satisfied", "blocked", "human", "assumed", "uncertain", "orphaned"]
    proof: str = ""


def required_of(
    phase: PhaseView, plans: Sequence[Plan], requirements: Iterable[Requirement] = ()
) -> tuple[MustHave, ...]:
    """Return what a verification has to cover: the phase's requirements, criteria and decisions, and its
    plans' truths.

    *requirements* are those of REQUIREMENTS.md, for their texts. Without any criterion and truth, the goal
    of the phase counts as its only criterion.
    """
    return (
        *requirements_of(phase, requirements),
        *criteria_of(phase, plans),
        *decisions_of(phase),
        *truths_of(plans),
    )


def requirements_of(phase: PhaseView, requirements: Iterable[Requirement] = ()) -> tuple[MustHave, ...]:
    """Return the phase's requirements; one that is not in *requirements* has its id as its text."""
    texts = {requirement.id: requirement.text for requirement in requirements}
    return tuple(
        MustHave(ids=(name,), text=texts.get(name) or name, kind="requirement")
        for name in dict.fromkeys(phase.requirements)
    )


def criteria_of(phase: PhaseView, plans: Sequence[Plan] = ()) -> tuple[MustHave, ...]:
    """Return the phase's success criteria; their ids are their positions (``01:C2``).

    If there are none, and no truths of *plans* either, the goal takes their place.
    """
    has_truths = any(plan.must_haves.truths for plan in plans)
    texts = phase.criteria or (() if has_truths else (phase.goal or phase.name,))
    return tuple(
        MustHave(ids=(f"{padded(phase.number)}:C{number}",), text=text, kind="criterion")
        for number, text in enumerate(texts, start=1)
    )


def decisions_of(phase: PhaseView) -> tuple[MustHave, ...]:
    """Return the phase's decisions that its plans have to implement; their ids are those of CONTEXT.md.

    What was asked while a plan was executed is one too; its id has the plan's (``01-02:D1``).
    """
    found = [(one.id, one.text, one.notes) for one in owed_decisions(phase)]
    found += [(name, text, ()) for plan in phase.plans for name, text in asked_of(plan)]
    return tuple(
        MustHave(ids=(name,), text=f"Decision {name} is implemented: {text}", kind="decision", details=notes)
        for name, text, notes in found
    )


def asked_of(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what was asked and answered while *plan* was executed, with its id, as its SUMMARY has it."""
    for number, text in enumerate(plan.decisions, start=1):
        if text.startswith(ASKED):
            yield f"{plan.id}:D{number}", text.removeprefix(ASKED).strip()


def truths_of(plans: Iterable[Plan]) -> tuple[MustHave, ...]:
    """Return the truths of *plans*, each with the requirements and criteria that it serves."""
    return _merged(
        (
            " ".join(truth.text.lower().split()).rstrip("."),
            MustHave(ids=(truth.id,), text=truth.text, serves=served_by(plan, truth)),
        )
        for plan in plans
        for truth in plan.must_haves.truths
    )


def served_by(plan: Plan, truth: Truth) -> tuple[str, ...]:
    """Return the ids that a truth of *plan* serves; in a plan that does not say so, its requirements."""
    stated = any(one.serves for one in plan.must_haves.truths)
    return truth.serves if stated else plan.requirements


def plans_for(requirement: str, plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """Return the plans that list the requirement, or that have a truth which serves it."""
    return tuple(
        plan
        for plan in plans
        if requirement in plan.requirements
        or any(requirement in truth.serves for truth in plan.must_haves.truths)
    )


def unserved_requirements(phase: PhaseView, requirements: Iterable[Requirement] = ()) -> Iterator[Gap]:
    """Yield a gap for each of the phase's requirements that no plan lists, or that no truth serves.

    A plan that says nothing of requirements may be for any of them, and one of another tool may have no
    truths at all: then only the verifier can tell.
    """
    if not all(plan.lists_requirements for plan in phase.plans):
        return
    served = {name for truth in truths_of(phase.plans) for name in truth.serves}
    for must_have in requirements_of(phase, requirements):
        name = must_have.id
        if not (plans := plans_for(name, phase.plans)):
            reason = f"no plan of phase {phase.number} lists {name}"
        elif name not in served and all(plan.must_haves.truths for plan in plans):
            reason = f"no truth serves {name}, although it is listed by {', '.join(p.id for p in plans)}"
        else:
            continue
        yield Gap(
            truth=must_have.text,
            reason=reason,
            about=name,
            status="unverified",
            missing=(f"a plan that lists {name}, with a truth that says how to observe it",),
            found_by=COVERAGE,
        )


def uncovered_decisions(phase: PhaseView) -> Iterator[Gap]:
    """Yield a gap for each decision of the phase's CONTEXT.md that none of its plans names."""
    must_haves = {one.id: one for one in decisions_of(phase)}
    for decision in uncovered(owed_decisions(phase), phase.plans):
        yield Gap(
            truth=must_haves[decision.id].text,
            reason=f"no plan of phase {phase.number} names {decision.id}",
            about=decision.id,
            status="unverified",
            missing=(f"a plan with a task that implements {decision.id} and names it",),
            found_by=COVERAGE,
        )


def artifacts_of(plans: Iterable[Plan]) -> tuple[MustHave, ...]:
    """Return the artifacts of *plans*; their ids are the path and the position (``01-02:A1``)."""
    return _merged(
        (
            path,
            MustHave(
                ids=(path, artifact.path, f"{plan.id}:A{number}"),
                text=path,
                kind="artifact",
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
        (
            text,
            MustHave(ids=(f"{plan.id}:L{number}", text), text=text, kind="link", details=_details(link.via)),
        )
        for plan in plans
        for number, link in enumerate(plan.must_haves.key_links, start=1)
        for text in [f"{link.source} -> {link.target}"]
    )


def _details(text: str) -> tuple[str, ...]:
    return (text,) if text.strip() else ()


def _merged(must_haves: Iterable[tuple[str, MustHave]]) -> tuple[MustHave, ...]:
    """Return one must-have for each key, with the ids, details and *serves* of all that have this key."""
    merged: dict[str, MustHave] = {}
    for key, must_have in must_haves:
        if known := merged.get(key):
            ids = dict.fromkeys((*known.ids, *must_have.ids))
            details = dict.fromkeys((*known.details, *must_have.details))
            serves = dict.fromkeys((*known.serves, *must_have.serves))
            must_have = attrs.evolve(known, ids=tuple(ids), details=tuple(details), serves=tuple(serves))
        merged[key] = must_have
    return tuple(merged.values())


def results_of(
    phase: PhaseView, report: GapReport, requirements: Iterable[Requirement] = ()
) -> MustHaveResults:
    """Return the result of each must-have of the phase; *requirements* give the requirements' texts."""
    return MustHaveResults(
        requirements=tuple(_result(one, report) for one in requirements_of(phase, requirements)),
        criteria=tuple(_result(one, report) for one in criteria_of(phase, phase.plans)),
        decisions=tuple(_result(one, report) for one in decisions_of(phase)),
        truths=tuple(_result(one, report) for one in truths_of(phase.plans)),
        artifacts=tuple(_result(one, report) for one in artifacts_of(phase.plans)),
        links=tuple(_result(one, report) for one in links_of(phase.plans)),
        report=report,
    )


def _result(must_have: MustHave, report: GapReport) -> MustHaveResult:
    """Derive a must-have's result: a gap outweighs evidence, and without evidence it does not hold."""
    if gaps := tuple(gap for gap in report.gaps if _is_gap_in(must_have, gap)):
        status = _status_of_gaps(gaps)
        return MustHaveResult(must_have=must_have, status=status, proof=gaps[0].reason, gaps=gaps)
    if check := next((check for check in report.human if must_have.is_about(check.about)), None):
        return MustHaveResult(must_have=must_have, status="human", proof=check.test)
    reported = [evidence for evidence in report.evidence if must_have.is_about(evidence.about)]
    if against := next((evidence for evidence in reported if not evidence.holds), None):
        return MustHaveResult(must_have=must_have, status="fails", proof=against.proof)
    if check := next((check for check in report.assumed if must_have.is_about(check.about)), None):
        return MustHaveResult(must_have=must_have, status="assumed", proof=check.test)
    if not reported:
        return MustHaveResult(must_have=must_have, status="open")
    return MustHaveResult(must_have=must_have, status="holds", proof=reported[0].proof)


def _is_gap_in(must_have: MustHave, gap: Gap) -> bool:
    # By its text only if the gap has no id: two must-haves may have the same text and different fates.
    return must_have.is_about(gap.about) if gap.about else gap.truth == must_have.text


def _status_of_gaps(gaps: Sequence[Gap]) -> MustHaveStatus:
    """Return the status for the worst of *gaps*."""
    if any(gap.status == "failed" for gap in gaps):
        # A detector that finds no file at all lists the file itself as missing.
        return "missing" if any(gap.about in gap.missing for gap in gaps) else "fails"
    return "partial" if any(gap.status == "partial" for gap in gaps) else "uncertain"


def coverage_of(phase: PhaseView, results: MustHaveResults) -> tuple[Coverage, ...]:
    """Return the coverage of each of the phase's requirements."""
    return tuple(_coverage(result, phase, results) for result in results.requirements)


def _coverage(own: MustHaveResult, phase: PhaseView, results: MustHaveResults) -> Coverage:
    requirement = own.must_have.id
    listing = plans_for(requirement, phase.plans)
    plans = tuple(plan.id for plan in listing)
    serving = [one for one in results.truths if requirement in one.must_have.serves]
    is_listed = all(plan.lists_requirements for plan in phase.plans)
    if is_listed and not plans:
        return Coverage(requirement=requirement, plans=(), status="orphaned", proof="no plan lists it")
    if is_listed and not serving and all(plan.must_haves.truths for plan in listing):
        return Coverage(requirement=requirement, plans=plans, status="orphaned", proof="no truth serves it")
    # Ids of must-haves begin with `01-02:`, those of task checks with `01-02/`.
    prefixes = tuple(f"{plan}{mark}" for plan in plans for mark in ":/")
    reported = [one for one in (*results.artifacts, *results.links) if one.status != "open"]
    files = [one for one in reported if any(name.startswith(prefixes) for name in one.must_have.ids)]
    checks = tuple(f"{plan}/" for plan in plans)
    judged = [own, *serving, *files]
    reasons = [one.proof for one in judged if one.status in UNMET]
    reasons += [gap.reason for gap in results.report.gaps if gap.about.startswith(checks)]
    if reasons:
        return Coverage(requirement=requirement, plans=plans, status="blocked", proof=reasons[0])
    statuses = {one.status for one in judged}
    if statuses == {"holds"}:
        proof = own.proof or f"{len(judged)} must-haves hold"
        return Coverage(requirement=requirement, plans=plans, status="satisfied", proof=proof)
    if "open" in statuses:
        return Coverage(requirement=requirement, plans=plans, status="uncertain")
    status: Literal["human", "assumed"] = "human" if "human" in statuses else "assumed"
    return Coverage(requirement=requirement, plans=plans, status=status)
