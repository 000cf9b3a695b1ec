"""VERIFICATION.md: reads and writes the verdict on a phase.

Source: the verifications of GSD v1.20.5. The frontmatter has the keys ``phase``, ``verified``, ``status``
(``passed``, ``gaps_found`` or ``human_needed``), ``score`` and perhaps ``re_verification``, ``gaps`` and
``human_verification``. The body repeats them in tables for people, which
:func:`gsd_core.planning.traceability.parse_results` reads back. The keys ``about``, ``found_by``,
``evidence``, ``failed_detectors`` and ``result: assumed`` are ours; GSD ignores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, get_args

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.checks import CaseResult
from gsd_core.model.gap import BadArtifact, Gap, GapReport, GapStatus, HumanCheck
from gsd_core.model.ids import padded

from .frontmatter import (
    MAX_CHARACTERS,
    MAX_LINES,
    Frontmatter,
    Node,
    Value,
    as_list,
    as_maps,
    as_text,
    as_texts,
    read_frontmatter,
    render_frontmatter,
)
from .markdown import cell, document, inline, paragraphs, read_text, title
from .model import PhaseView, Requirement, Verdict, VerdictStatus
from .must_haves import MustHaveResult, MustHaveResults, MustHaveStatus, coverage_of, results_of
from .traceability import recorded_results, trace

# Reading

_STATUSES: dict[str, VerdictStatus] = {status: status for status in get_args(VerdictStatus)}
_GAP_STATUSES: dict[str, GapStatus] = {"partial": "partial", "unverified": "unverified"}
_CLOSED = ("resolved", "closed", "fixed", "passed", "verified")
_BODY_STATUS = re.compile(r"^\*\*Status:?\*\*:?[ \t]*(.*)$", re.MULTILINE)


@lru_cache(maxsize=512)
def parse_verdict(text: str, *, path: str) -> Verdict:
    """Read a VERIFICATION.md.

    A verdict that cannot be read has the status ``unknown``: it is never taken for a pass, and the phase
    is verified again.
    """
    try:
        head = read_frontmatter(text, path=path)
    except PlanningError as error:
        return Verdict(status="unknown", path=path, flaws=(str(error),))
    if head.flaws:
        # Two statuses, or two lists of gaps: which of them counts is not for us to guess.
        return Verdict(status="unknown", path=path, flaws=head.flaws)
    if head.found:
        stated = head.text("status")
    else:
        match = _BODY_STATUS.search(head.body)
        stated = match[1] if match else ""
    # Bodies have the same words in other forms, such as "Gaps found" or "✓ PASSED".
    words = re.sub(r"[^a-z]+", "_", stated.lower()).strip("_")
    return Verdict(
        status=_STATUSES.get(words, "unknown"),
        score=head.text("score"),
        verified=head.text("verified"),
        gaps=tuple(gap for item in as_maps(head.get("gaps")) if (gap := _read_gap(item))),
        human=tuple(check for item in _human_items(head) if (check := _read_human_check(item))),
        path=path,
    )


def read_verification(phase: PhaseView) -> str:
    """Return the text of the phase's VERIFICATION.md; empty if there is none or it cannot be read."""
    if phase.verdict is None:
        return ""
    try:
        return read_text(phase.project, phase.verdict.path)
    except PlanningError:
        return ""


def _read_gap(item: dict[str, Value]) -> Gap | None:
    status = as_text(item.get("status", "")).lower()
    truth = as_text(item.get("truth", item.get("gap", "")))
    if status in _CLOSED or not truth:
        return None
    return Gap(
        truth=truth,
        reason=as_text(item.get("reason", "")),
        about=as_text(item.get("about", "")),
        status=_GAP_STATUSES.get(status, "failed"),
        artifacts=tuple(_read_artifact(value) for value in as_list(item.get("artifacts", ""))),
        missing=tuple(text for value in as_list(item.get("missing", "")) if (text := as_text(value))),
        evidence=as_text(item.get("evidence", "")),
        found_by=as_text(item.get("found_by", "")),
    )


def _read_artifact(value: Value) -> BadArtifact:
    if isinstance(value, dict) and "path" in value:
        return BadArtifact(path=as_text(value["path"]), issue=as_text(value.get("issue", "")))
    return BadArtifact(path=as_text(value), issue="")


def _human_items(head: Frontmatter) -> tuple[dict[str, Value], ...]:
    """Return the manual checks as maps; one that is not a map is only the test."""
    value = head.get("human_verification", "human-verification")
    if isinstance(value, list):
        return tuple(item if isinstance(item, dict) else {"test": item} for item in value)
    return as_maps(value) or tuple({"test": text} for text in as_texts(value))


def _read_human_check(item: dict[str, Value]) -> HumanCheck | None:
    test = as_text(item.get("test", item.get("name", "")))
    if not test:
        return None
    return HumanCheck(
        test=test,
        expected=as_text(item.get("expected", "")),
        why=as_text(item.get("why_human", item.get("why", ""))),
        about=as_text(item.get("about", "")),
        result=as_text(item.get("result", "")).lower(),
    )


# Writing

MAX_LISTED = 50
MAX_CASES = 300
"""How many gaps of each kind the frontmatter compares with the verification before."""

_TRUTH_LABELS: dict[MustHaveStatus, str] = {
    "holds": "✓ VERIFIED",
    "fails": "✗ FAILED",
    "missing": "✗ FAILED",
    "partial": "✗ FAILED",
    "uncertain": "? UNCERTAIN",
    "human": "? NEEDS HUMAN",
    "assumed": "? ASSUMED",
    "open": "? UNCERTAIN",
}
_ARTIFACT_LABELS: dict[MustHaveStatus, str] = {
    **_TRUTH_LABELS,
    "fails": "✗ STUB",
    "missing": "✗ MISSING",
    "partial": "✗ STUB",
}
_LINK_LABELS: dict[MustHaveStatus, str] = {
    **_TRUTH_LABELS,
    "holds": "✓ WIRED",
    "fails": "✗ NOT_WIRED",
    "missing": "✗ NOT_WIRED",
    "partial": "✗ PARTIAL",
}
_COVERAGE_LABELS = {
    "satisfied": "✓ SATISFIED",
    "blocked": "✗ BLOCKED",
    "human": "? NEEDS HUMAN",
    "assumed": "? ASSUMED",
    "uncertain": "? UNCERTAIN",
    "orphaned": "✗ ORPHANED",
}


def render_verification(
    phase: PhaseView,
    report: GapReport,
    *,
    now: datetime,
    previous: Verdict | None = None,
    requirements: Sequence[Requirement] = (),
) -> str:
    """Return the text of a phase's VERIFICATION.md; :func:`parse_verdict` reads the verdict back.

    *previous* is the verdict that this one replaces, if any; *requirements* are those of REQUIREMENTS.md,
    with the statements of the idea that they come from.
    """
    results = results_of(phase, report, requirements)
    # What a failed detector would have found is unknown, so the phase has not passed.
    passed: VerdictStatus = "human_needed" if report.human else "passed"
    status: VerdictStatus = "gaps_found" if report.gaps or report.failed_detectors else passed
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head: dict[str, Node] = {
        "phase": PurePosixPath(phase.directory).name or padded(phase.number),
        "verified": stamp,
        "status": status,
        "score": results.score,
    }
    if previous is not None:
        before = {gap.key: gap.truth for gap in previous.gaps}
        after = {gap.key: gap.truth for gap in report.gaps}
        head["re_verification"] = {
            "previous_status": previous.status,
            "previous_score": previous.score,
            "gaps_closed": _listed(text for key, text in before.items() if key not in after),
            "gaps_remaining": _listed(text for key, text in after.items() if key in before),
            "regressions": _listed(text for key, text in after.items() if key not in before),
        }
    if report.failed_detectors:
        head["failed_detectors"] = report.failed_detectors
    if report.gaps:
        head["gaps"] = _gap_nodes(report.gaps)
    if by_hand := (*report.human, *(attrs.evolve(check, result="assumed") for check in report.assumed)):
        limit = max(MAX_CHARACTERS // 4 // len(by_hand) // 5, 60)
        head["human_verification"] = [_human_check_node(check, limit) for check in by_hand]
    if previous is None:
        verified_again = "No — initial verification"
    elif previous.gaps:
        verified_again = "Yes — after gap closure"
    else:
        verified_again = f"Yes — the previous status was {previous.status}"
    assumed = "\n".join(f"- {inline(one.test)} (expected: {inline(one.expected)})" for one in report.assumed)
    findings = [(one.severity, one.text, one.where) for one in report.observations]
    parts = [
        f"# Phase {phase.number}: {title(phase.name)} Verification Report",
        f"**Phase Goal:** {inline(phase.goal)}\n**Verified:** {stamp}\n**Status:** {status}\n"
        f"**Re-verification:** {verified_again}",
        *_result_tables(phase, results),
        *_coverage_tables(phase, results, requirements, status),
        *_human_checks(report.human),
        f"### Assumed\n\nA policy answered these checks; nobody looked.\n\n{assumed}" if assumed else "",
        *_gaps_summary(report),
        "## Other Findings\n\n" + _table(("Severity", "Finding", "Where"), findings) if findings else "",
    ]
    return f"{render_frontmatter(head)}\n{document(parts)}"


def add_gaps(text: str, phase: PhaseView, gaps: Sequence[Gap], *, now: datetime, path: str) -> str:
    """Return the VERIFICATION.md *text* with more gaps, and with the status that this means.

    All else in it stays; gaps that it has already are not repeated. *text* is empty if the phase was not
    verified yet. Raises ``PlanningError`` if it cannot be read.
    """
    if not text:
        return render_verification(phase, GapReport(gaps=tuple(gaps)), now=now)
    head = read_frontmatter(text, path=path)
    known = {gap.key for item in as_maps(head.get("gaps")) if (gap := _read_gap(item))}
    new = [gap for gap in gaps if gap.key not in known]
    values: dict[str, Any] = {**head.values, "status": "gaps_found"}
    values["gaps"] = [*as_maps(head.get("gaps")), *_gap_nodes(new)]
    body = _BODY_STATUS.sub("**Status:** gaps_found", head.body, count=1)
    listed = "\n".join(
        f"- **{title(gap.truth)}** ({inline(gap.found_by)})\n  - Reason: {inline(gap.reason)}" for gap in new
    )
    if "**No gaps found.**" in body:
        body = body.replace("**No gaps found.**", listed, 1)
    elif listed:
        body = f"{body.rstrip()}\n\n## Gaps Found After the Verification\n\n{listed}\n"
    return f"{render_frontmatter(values)}\n{body.lstrip()}"


def _listed(texts: Iterable[str]) -> list[str]:
    found = [_cut(text, 150) for text in texts]
    return found if len(found) <= MAX_LISTED else [*found[:MAX_LISTED], f"{len(found) - MAX_LISTED} more"]


def _gap_nodes(gaps: Sequence[Gap]) -> list[Node]:
    """Return *gaps* for the frontmatter, so that it can be read again; the body has them in full.

    Their texts are shortened, and those for which there is no room become one.
    """
    # Four texts for each gap: reason, evidence, missing and artifacts; the last two are lists.
    limit = max(MAX_CHARACTERS * 2 // 5 // max(len(gaps), 1) // 12, 30)
    nodes: list[Node] = []
    characters, lines = MAX_CHARACTERS * 2 // 5, MAX_LINES // 2
    for number, gap in enumerate(gaps):
        items = max(limit // 40, 1)
        short = attrs.evolve(
            gap,
            truth=_cut(gap.truth, max(limit, 400)),
            reason=_cut(gap.reason, limit),
            evidence=_cut(gap.evidence, limit),
            missing=tuple(_cut(text, _share(limit, gap.missing[:items])) for text in gap.missing[:items]),
            artifacts=tuple(
                attrs.evolve(bad, issue=_cut(bad.issue, _share(limit, gap.artifacts[:items])))
                for bad in gap.artifacts[:items]
            ),
        )
        node = _gap_node(short)
        text = render_frontmatter(node)
        characters, lines = characters - len(text), lines - text.count("\n")
        if min(characters, lines) < 0:
            rest = len(gaps) - number
            reason = "there is no room for them in the frontmatter; the section Gaps Summary lists them"
            return [*nodes, _gap_node(Gap(truth=f"{rest} more gaps are closed", reason=reason))]
        nodes.append(node)
    return nodes


def _share(characters: int, items: Sequence[object]) -> int:
    """Return how many characters each of the *items* may have."""
    return max(characters // max(len(items), 1), 30)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[:characters].rstrip()}…"


def _gap_node(gap: Gap) -> dict[str, Node]:
    values: dict[str, Node] = attrs.asdict(gap)
    keys = ["truth", "status", "reason", "artifacts", "missing", "evidence", "about", "found_by"]
    return {key: values[key] for key in keys if values[key] or key == "reason"}


def _human_check_node(check: HumanCheck, limit: int) -> dict[str, Node]:
    values = {
        "test": _cut(check.test, 2 * limit),
        "expected": _cut(check.expected, limit),
        "why_human": _cut(check.why, limit),
        "about": check.about,
        "result": check.result,
    }
    return {key: value for key, value in values.items() if value or key not in ("about", "result")}


def _result_tables(phase: PhaseView, results: MustHaveResults) -> Iterator[str]:
    yield "## Goal Achievement\n\n### Observable Truths"
    # GSD's own verifier lists criteria as truths as well; the ids tell them apart.
    rows = [_required_row(one) for one in (*results.truths, *results.criteria)]
    yield _table(("#", "Truth", "Status", "Evidence"), rows)
    yield f"**Score:** {results.score}"
    for kind, found in (("Requirement", results.requirements), ("Decision", results.decisions)):
        if found:
            rows = [_required_row(one) for one in found]
            yield f"### {kind}s\n\n" + _table((kind, "Text", "Status", "Evidence"), rows)
    if results.artifacts:
        artifacts = [_row(result, _ARTIFACT_LABELS, _details(result)) for result in results.artifacts]
        yield "### Required Artifacts\n\n" + _table(("Artifact", "Expected", "Status", "Details"), artifacts)
    if results.links:
        links = [_link_row(result) for result in results.links]
        yield "### Key Link Verification\n\n" + _table(("From", "To", "Via", "Status", "Details"), links)
    if phase.checks:
        rows = [
            (
                f"{check.plan}/{check.task}",
                check.result.command,
                "✓ PASSED" if check.result.ok else "✗ FAILED",
                f"exit {check.result.exit}" if check.result.exit is not None else "refused or timed out",
            )
            for check in phase.checks
        ]
        seconds = phase.measured_for.total_seconds()
        took = f"\n\nIt took {seconds:.1f} s to see which of them need the work." if seconds else ""
        took += " There was no time to try all faults." * (not phase.measured_all)
        yield "### Checks\n\n" + _table(("Check", "Command", "Status", "Evidence"), rows) + took
    cases = [
        (f"{check.plan}/{check.task}", case.name, _fails_without(check.plan, case))
        for check in phase.checks
        for case in check.result.cases
        if case.outcome == "passed"
    ]
    if cases:
        more = f"\n\n{len(cases) - MAX_CASES} more are not listed." if len(cases) > MAX_CASES else ""
        listed = _table(("Check", "Test Case", "Fails Without"), cases[:MAX_CASES])
        yield f"### Test Cases\n\n{listed}{more}"


def _fails_without(plan: str, case: CaseResult) -> str:
    if case.passes_without is None:
        return "not measured"
    if case.passes_without:
        return f"nothing: it passes without the work of {plan} too"
    return ", ".join(case.needs) or f"the work of {plan}"


def _coverage_tables(
    phase: PhaseView, results: MustHaveResults, requirements: Sequence[Requirement], status: VerdictStatus
) -> Iterator[str]:
    """Yield the matrix: a row for each of the phase's requirements, from the idea to the evidence."""
    known = {requirement.id: requirement for requirement in requirements}
    recorded = recorded_results(results)
    rows: list[Sequence[str]] = []
    for coverage in coverage_of(phase, results):
        requirement = known.get(coverage.requirement) or Requirement(id=coverage.requirement, text="")
        row = trace(requirement, phase, recorded, verdict=Verdict(status=status))
        rows.append(
            (
                coverage.requirement,
                ", ".join(coverage.plans),
                _COVERAGE_LABELS[coverage.status],
                coverage.proof,
                ", ".join(requirement.statements),
                ", ".join(commit[:7] for commit in row.commits),
                ", ".join(check.id for check in row.checks),
            )
        )
    if rows:
        head = ("Requirement", "Source Plan", "Status", "Evidence", "Statements", "Commits", "Checks")
        yield "### Requirements Coverage\n\n" + _table(head, rows)


def _required_row(result: MustHaveResult) -> tuple[str, ...]:
    return (", ".join(result.must_have.ids), *_row(result, _TRUTH_LABELS))


def _row(result: MustHaveResult, labels: Mapping[MustHaveStatus, str], *details: str) -> tuple[str, ...]:
    return (result.must_have.text, *details, labels[result.status], result.proof)


def _link_row(result: MustHaveResult) -> tuple[str, ...]:
    source, _, target = result.must_have.text.partition(" -> ")
    return source, target, _details(result), _LINK_LABELS[result.status], result.proof


def _details(result: MustHaveResult) -> str:
    return "; ".join(result.must_have.details)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *(map(cell, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _human_checks(checks: Sequence[HumanCheck]) -> Iterator[str]:
    yield "## Human Verification Required"
    if not checks:
        yield "None."
    for number, check in enumerate(checks, start=1):
        yield (
            f"### {number}. {title(check.test)}\n\n**Test:** {inline(check.test)}\n"
            f"**Expected:** {inline(check.expected)}\n**Why human:** {inline(check.why)}"
        )


def _gaps_summary(report: GapReport) -> Iterator[str]:
    yield "## Gaps Summary"
    if not report.gaps and not report.failed_detectors:
        yield "**No gaps found.**"
    for number, gap in enumerate(report.gaps, start=1):
        missing = "".join(f"\n   - Missing: {inline(text)}" for text in gap.missing)
        yield f"{number}. **{title(gap.truth)}**\n   - Reason: {inline(gap.reason)}{missing}"
    for name in report.failed_detectors:
        yield paragraphs(f"The detector {name} failed, so this report is incomplete.")
