"""The matrix: requirement → statements → plans → commits → checks → evidence.

One row for each requirement. It is built from the planning files and the results of a verification: those of
the verify step itself, or those that were read back from a VERIFICATION.md, so it needs no run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

from .markdown import cells
from .model import PhaseView, Plan, Requirement, Verdict
from .must_haves import UNMET, MustHaveResults, MustHaveStatus, plans_for, truths_of


@attrs.frozen(kw_only=True)
class RecordedCase:
    """A test case that a check ran; *fails_without* says without what it fails, or that it does not."""

    name: str
    fails_without: str

    @property
    def is_proof(self) -> bool:
        """Whether it is known to fail without the work."""
        return not self.fails_without.startswith(("nothing", "not measured"))


@attrs.frozen(kw_only=True)
class RecordedResult:
    """What a verification says about the must-have *about*: its status and the proof, or the reason.

    *cases* are the test cases, if it is about the check of a task.
    """

    about: str
    status: MustHaveStatus
    proof: str = ""
    cases: tuple[RecordedCase, ...] = ()


ASSUMED = "assumed, nobody looked"
"""How the reason of a requirement begins whose last check only a policy answered."""

Results: TypeAlias = Mapping[str, RecordedResult]
"""Results by the ids of must-haves and of task checks (``01-02/1``)."""


@attrs.frozen(kw_only=True)
class TracedCheck:
    """The check of one task; *result* is ``None`` if the verification does not mention it."""

    id: str
    command: str
    result: RecordedResult | None = None

    @property
    def cases(self) -> tuple[RecordedCase, ...]:
        return self.result.cases if self.result else ()


@attrs.frozen(kw_only=True)
class Trace:
    """One row: where a requirement went.

    *status* is ``Error`` if the chain is broken at this requirement, ``Blocked`` if something that it needs
    does not hold, ``Complete`` if it is verified, else what the table in REQUIREMENTS.md says. *reason*
    explains it.
    """

    requirement: Requirement
    phase: str = ""
    plans: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    checks: tuple[TracedCheck, ...] = ()
    evidence: tuple[RecordedResult, ...] = ()
    status: str = "Pending"
    reason: str = ""


def count_verified(rows: Iterable[Trace]) -> int:
    """Return how many requirements a verification saw: a phase can be complete without one."""
    return sum(
        row.status == "Complete" and (not row.reason or row.reason.startswith(ASSUMED)) for row in rows
    )


def trace(
    requirement: Requirement,
    phase: PhaseView | None,
    results: Results,
    *,
    verdict: Verdict | None,
    has_statements: bool = False,
) -> Trace:
    """Return the row of *requirement*, which *phase* has to deliver.

    *results* are those of the phase's *verdict*. *has_statements*: whether the project has a numbered idea.
    A broken chain is an error in a project that has one: statements, truths that say what they serve, or a
    verification of requirements. In a project that was made without, the row keeps the status
    that REQUIREMENTS.md claims, and only the reason says what is missing.
    """
    if phase is None:
        row = Trace(requirement=requirement, phase=requirement.phase, status=requirement.status)
        # What is left for a later version needs no phase.
        if not requirement.version.startswith("v1") and not requirement.phase:
            return row
        reason = f"phase {requirement.phase} is not in ROADMAP.md" if requirement.phase else "in no phase"
        return attrs.evolve(row, status="Error" if has_statements else row.status, reason=reason)
    plans = plans_for(requirement.id, phase.plans)
    served = [truth for truth in truths_of(plans) if requirement.id in truth.serves]
    evidence = [results[requirement.id]] if requirement.id in results else []
    for truth in served:
        evidence += [results[name] for name in truth.ids if name in results][:1]
    row = Trace(
        requirement=requirement,
        phase=requirement.phase or phase.number,
        plans=tuple(plan.id for plan in plans),
        commits=tuple(dict.fromkeys(sha for plan in plans for sha in phase.commits.get(plan.id, ()))),
        checks=tuple(_checks(plans, results)),
        evidence=tuple(evidence),
    )
    has_truth = bool(served) or not all(plan.must_haves.truths for plan in plans)
    status, reason = _status(row, phase, has_truth=has_truth, verdict=verdict)
    is_chained = (
        has_statements
        or any(truth.serves for plan in phase.plans for truth in plan.must_haves.truths)
        or any(name in results for name in phase.requirements)
    )
    if status == "Error" and not is_chained:
        status = requirement.status
    return attrs.evolve(row, status=status, reason=reason)


def _checks(plans: Iterable[Plan], results: Results) -> Iterable[TracedCheck]:
    for plan in plans:
        for task in plan.tasks:
            if task.check:
                name = f"{plan.id}/{task.number}"
                yield TracedCheck(id=name, command=task.check, result=results.get(name))


def _status(row: Trace, phase: PhaseView, *, has_truth: bool, verdict: Verdict | None) -> tuple[str, str]:
    name, claimed = row.requirement.id, row.requirement.status
    if not phase.plans:
        # A phase that was done before, and whose plans are gone.
        return claimed, f"phase {phase.number} has no plans" if claimed == "Complete" else ""
    if not row.plans:
        return "Error", f"no plan of phase {phase.number} lists {name}"
    if not has_truth:
        return "Error", f"no truth of {', '.join(row.plans)} serves {name}"
    if verdict is None or verdict.status == "unknown":
        return claimed, f"phase {phase.number} is not verified"
    if verdict.stale:
        return claimed, f"the verification of phase {phase.number} is older than its work"
    failing = [one for one in row.evidence if one.status in UNMET]
    failing += [check.result for check in row.checks if check.result and check.result.status == "fails"]
    if failing:
        return "Blocked", failing[0].proof.strip("-") or f"{failing[0].about} is not proven"
    if waiting := next((one for one in row.evidence if one.status == "human"), None):
        return "In Progress", f"a person has to check: {waiting.proof}"
    if not any(one.about == name and one.status != "open" for one in row.evidence):
        return "Error", f"the verification of phase {phase.number} has no evidence for {name}"
    if assumed := next((one for one in row.evidence if one.status == "assumed"), None):
        return "Complete", f"{ASSUMED}: {assumed.proof}"
    return "Complete", ""


def recorded_results(results: MustHaveResults) -> dict[str, RecordedResult]:
    """Return the results of a verification by each id, those of task checks too."""
    found = {
        name: RecordedResult(about=one.must_have.id, status=one.status, proof=one.proof)
        for one in results.each
        for name in one.must_have.ids
    }
    for evidence in results.report.evidence:
        status: MustHaveStatus = "holds" if evidence.holds else "fails"
        about = evidence.about
        found.setdefault(about, RecordedResult(about=about, status=status, proof=evidence.proof))
    for gap in results.report.gaps:
        known = found.get(gap.key)
        if known is None or known.status == "holds":
            found[gap.key] = RecordedResult(about=gap.key, status="fails", proof=gap.reason)
    return found


# Reading a VERIFICATION.md. Its tables have a column Status, and their first column names the must-haves.

_LABELS: tuple[tuple[str, MustHaveStatus], ...] = (
    ("not_wired", "fails"),
    ("not ", "fails"),
    ("fail", "fails"),
    ("human", "human"),
    ("assumed", "assumed"),
    ("uncertain", "uncertain"),
    ("unverified", "uncertain"),
    ("verified", "holds"),
    ("satisfied", "holds"),
    ("pass", "holds"),
    ("wired", "holds"),
)
# GSD's marks count, whatever words follow: "✓ PASS — exits with 1 on failure". "?" has several meanings.
_MARKS: tuple[tuple[str, MustHaveStatus], ...] = (("✓", "holds"), ("✅", "holds"), ("✗", "fails"))
_ID_SEPARATOR = re.compile(r"\s*,\s*")


def parse_results(text: str) -> dict[str, RecordedResult]:
    """Read the results in the tables of a VERIFICATION.md, ours or GSD's; the last one about an id counts.

    GSD numbers its truths, so only its rows about requirements can be found by their ids.
    """
    found: dict[str, RecordedResult] = {}
    columns: dict[str, int] | None = None
    for line in text.splitlines():
        row = [cell.strip() for cell in cells(line)]
        if not row:
            columns = None
        elif columns is None:
            # Only the first row is the head: a cell below it may contain any word.
            columns = {name.lower(): at for at, name in enumerate(row)}
        elif "test case" in columns and (check := found.get(row[0])) and len(row) > columns["test case"] + 1:
            at = columns["test case"]
            case = RecordedCase(name=row[at].replace("\\|", "|"), fails_without=row[at + 1])
            found[row[0]] = attrs.evolve(check, cases=(*check.cases, case))
        elif columns.get("status", len(row)) < len(row) and set(row[0]) - set("-: "):
            at = next((columns[n] for n in ("evidence", "details", "blocking issue") if n in columns), -1)
            ids = _ID_SEPARATOR.split(row[0].strip("*` "))
            label = row[columns["status"]].lower().lstrip("*` ")
            marked: list[MustHaveStatus] = [status for mark, status in _MARKS if label.startswith(mark)]
            statuses = marked or [status for word, status in _LABELS if word in label]
            result = RecordedResult(
                about=ids[0],
                status=statuses[0] if statuses else "fails",
                proof=row[at] if 0 <= at < len(row) else "",
            )
            found |= dict.fromkeys(ids, result)
    return found


def phase_of_requirement(requirement: Requirement, phases: Sequence[PhaseView]) -> PhaseView | None:
    """Return the phase that ROADMAP.md gives the requirement to, else that of the traceability table."""
    listed = next((phase for phase in phases if requirement.id in phase.requirements), None)
    return listed or next((phase for phase in phases if phase.number == requirement.phase), None)
