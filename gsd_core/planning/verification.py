"""Reads VERIFICATION.md. A verdict that cannot be read is ``unknown``, never a pass.

Writes VERIFICATION.md; :func:`gsd_core.planning.verification.parse_verdict` reads it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

from attrs import evolve

from gsd_core.errors import PlanningError
from gsd_core.model.gap import BadArtifact, Gap, GapReport, GapStatus, HumanCheck
from gsd_core.model.ids import padded

from .frontmatter import Frontmatter, Node, Value, as_maps, as_text, as_texts, frontmatter, read_frontmatter
from .markdown import cell, clipped, inline, paragraphs, title
from .model import PhaseView, Verdict, VerdictStatus
from .must_haves import (
    Coverage,
    MustHaveResult,
    MustHaveResults,
    MustHaveStatus,
    coverage_of,
    must_have_results,
)

_STATUSES: dict[str, VerdictStatus] = {
    "passed": "passed",
    "gaps_found": "gaps_found",
    "human_needed": "human_needed",
}
_GAP_STATUSES: dict[str, GapStatus] = {"partial": "partial", "unverified": "unverified"}
_CLOSED = ("resolved", "closed", "fixed", "passed", "verified")
_BODY_STATUS = re.compile(r"^\*\*Status:?\*\*:?[ \t]*(.*)$", re.MULTILINE)


def parse_verdict(text: str, *, path: str) -> Verdict:
    """Read what a VERIFICATION.md says; broken frontmatter gives the status ``unknown``."""
    try:
        head = read_frontmatter(text, path=path)
    except PlanningError:
        return Verdict(status="unknown", path=path)
    return Verdict(
        status=_status(head),
        score=head.text("score"),
        verified=head.text("verified"),
        gaps=tuple(gap for item in as_maps(head.get("gaps")) if (gap := _gap(item))),
        human=tuple(check for item in _human(head) if (check := _check(item))),
        path=path,
    )


def _status(head: Frontmatter) -> VerdictStatus:
    if head.found:
        stated = head.text("status")
    else:
        match = _BODY_STATUS.search(head.body)
        stated = match[1] if match else ""
    words = re.sub(r"[^a-z]+", "_", stated.lower()).strip("_")
    return _STATUSES.get(words, "unknown")


def _gap(item: dict[str, Value]) -> Gap | None:
    status = as_text(item.get("status", "")).lower()
    truth = as_text(item.get("truth", item.get("gap", "")))
    if status in _CLOSED or not truth:
        return None
    return Gap(
        truth=truth,
        reason=as_text(item.get("reason", "")),
        about=as_text(item.get("about", "")),
        status=_GAP_STATUSES.get(status, "failed"),
        artifacts=tuple(_artifact(value) for value in _listed(item.get("artifacts", ""))),
        missing=tuple(text for value in _listed(item.get("missing", "")) if (text := as_text(value))),
        evidence=as_text(item.get("evidence", "")),
        found_by=as_text(item.get("found_by", "")),
    )


def _listed(value: Value) -> list[Value]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if item]


def _artifact(value: Value) -> BadArtifact:
    if isinstance(value, dict) and "path" in value:
        return BadArtifact(path=as_text(value["path"]), issue=as_text(value.get("issue", "")))
    return BadArtifact(path=as_text(value), issue="")


def _human(head: Frontmatter) -> tuple[dict[str, Value], ...]:
    value = head.get("human_verification", "human-verification")
    if isinstance(value, list):
        return tuple(item if isinstance(item, dict) else {"test": item} for item in value)
    return as_maps(value) or tuple({"test": text} for text in as_texts(value))


def _check(item: dict[str, Value]) -> HumanCheck | None:
    test = as_text(item.get("test", item.get("name", "")))
    if not test:
        return None
    return HumanCheck(
        test=test,
        expected=as_text(item.get("expected", "")),
        why=as_text(item.get("why_human", item.get("why", ""))),
        about=as_text(item.get("about", "")),
    )


MAX_TOLD = 14_000
"""Characters about all gaps in the frontmatter; readers refuse a frontmatter that is much larger."""

_TRUTH: dict[MustHaveStatus, str] = {
    "holds": "✓ VERIFIED",
    "fails": "✗ FAILED",
    "missing": "✗ FAILED",
    "partial": "✗ FAILED",
    "uncertain": "? UNCERTAIN",
    "human": "? NEEDS HUMAN",
    "open": "? UNCERTAIN",
}
_ARTIFACT: dict[MustHaveStatus, str] = {
    **_TRUTH,
    "fails": "✗ STUB",
    "missing": "✗ MISSING",
    "partial": "✗ STUB",
}
_LINK: dict[MustHaveStatus, str] = {
    **_TRUTH,
    "holds": "✓ WIRED",
    "fails": "✗ NOT_WIRED",
    "missing": "✗ NOT_WIRED",
    "partial": "✗ PARTIAL",
}


_COVERED = {
    "satisfied": "✓ SATISFIED",
    "blocked": "✗ BLOCKED",
    "human": "? NEEDS HUMAN",
    "uncertain": "? UNCERTAIN",
    "orphaned": "✗ ORPHANED",
}


def render_verification(
    phase: PhaseView,
    report: GapReport,
    *,
    now: datetime,
    previous: Verdict | None = None,
) -> str:
    """Return the text of a phase's verdict.

    The status is ``gaps_found`` also if a detector failed: what was not looked at did not pass.
    """
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    findings = must_have_results(phase, report)
    head: dict[str, Node] = {
        "phase": PurePosixPath(phase.directory).name or padded(phase.number),
        "verified": stamp,
        "status": status_of(report),
        "score": findings.score,
        **_again(report, previous),
        **({"failed_detectors": report.failed_detectors} if report.failed_detectors else {}),
        **({"gaps": [_render_verdict_gap(gap) for gap in _fitting(report.gaps)]} if report.gaps else {}),
        **(
            {"human_verification": [_render_verdict_human(check) for check in report.human]}
            if report.human
            else {}
        ),
    }
    parts = [*_intro(phase, stamp, status_of(report), previous), *_tables(phase, findings)]
    return frontmatter(head) + "\n" + "\n\n".join([*parts, *_open_points(report)]) + "\n"


def status_of(report: GapReport) -> VerdictStatus:
    """Return what a report comes to."""
    if report.gaps or report.failed_detectors:
        return "gaps_found"
    return "human_needed" if report.human else "passed"


def _again(report: GapReport, previous: Verdict | None) -> dict[str, Node]:
    if previous is None:
        return {}
    before = {gap.key: gap.truth for gap in previous.gaps}
    now = {gap.key: gap.truth for gap in report.gaps}
    return {
        "re_verification": {
            "previous_status": previous.status,
            "previous_score": previous.score,
            "gaps_closed": [text for key, text in before.items() if key not in now],
            "gaps_remaining": [text for key, text in now.items() if key in before],
            "regressions": [text for key, text in now.items() if key not in before],
        }
    }


def _fitting(gaps: Sequence[Gap]) -> Iterator[Gap]:
    """Shorten what is told of gaps, so that the frontmatter of many can be read; the text has it all."""
    room = max(MAX_TOLD // max(len(gaps), 1) // 4, 40)
    for gap in gaps:
        each = max(room // max(len(gap.missing), len(gap.artifacts), 1), 40)
        yield evolve(
            gap,
            reason=clipped(gap.reason, room),
            evidence=clipped(gap.evidence, room),
            missing=tuple(clipped(text, each) for text in gap.missing),
            artifacts=tuple(evolve(bad, issue=clipped(bad.issue, each)) for bad in gap.artifacts),
        )


def _render_verdict_gap(gap: Gap) -> dict[str, Node]:
    values: dict[str, Node] = {
        "truth": gap.truth,
        "status": gap.status,
        "reason": gap.reason,
        "artifacts": [{"path": bad.path, "issue": bad.issue} for bad in gap.artifacts],
        "missing": gap.missing,
        "evidence": gap.evidence,
        "about": gap.about,
        "found_by": gap.found_by,
    }
    return {key: value for key, value in values.items() if value or key == "reason"}


def _render_verdict_human(check: HumanCheck) -> dict[str, Node]:
    values = {
        "test": check.test,
        "expected": check.expected,
        "why_human": check.why,
        "about": check.about,
    }
    return {key: value for key, value in values.items() if value or key != "about"}


def _intro(phase: PhaseView, stamp: str, status: str, previous: Verdict | None) -> Iterator[str]:
    yield f"# Phase {phase.number}: {title(phase.name)} Verification Report"
    yield (
        f"**Phase Goal:** {inline(phase.goal)}\n**Verified:** {stamp}\n**Status:** {status}\n"
        f"**Re-verification:** {_which(previous)}"
    )


def _which(previous: Verdict | None) -> str:
    if previous is None:
        return "No — initial verification"
    return "Yes — after gap closure" if previous.gaps else f"Yes — the verdict was {previous.status}"


def _tables(phase: PhaseView, findings: MustHaveResults) -> Iterator[str]:
    yield "## Goal Achievement\n\n### Observable Truths"
    truths = [(str(n), *_row(one, _TRUTH)) for n, one in enumerate(findings.truths, start=1)]
    yield _table(("#", "Truth", "Status", "Evidence"), truths)
    yield f"**Score:** {findings.score}"
    if artifacts := [_row(one, _ARTIFACT, _details(one)) for one in findings.artifacts]:
        head = ("Artifact", "Expected", "Status", "Details")
        yield "### Required Artifacts\n\n" + _table(head, artifacts)
    if links := [_link(one) for one in findings.links]:
        yield "### Key Link Verification\n\n" + _table(("From", "To", "Via", "Status", "Details"), links)
    if coverage := coverage_of(phase, findings):
        head = ("Requirement", "Source Plan", "Status", "Evidence")
        yield "### Requirements Coverage\n\n" + _table(head, [_covered(one) for one in coverage])


def _row(finding: MustHaveResult, words: Mapping[MustHaveStatus, str], *between: str) -> tuple[str, ...]:
    return (cell(finding.promise.text), *between, words[finding.became], cell(finding.proof))


def _link(finding: MustHaveResult) -> tuple[str, ...]:
    source, _, target = finding.promise.text.partition(" -> ")
    return (cell(source), cell(target), _details(finding), _LINK[finding.became], cell(finding.proof))


def _details(finding: MustHaveResult) -> str:
    return cell("; ".join(finding.promise.details))


def _covered(coverage: Coverage) -> tuple[str, ...]:
    status = _COVERED[coverage.status]
    return cell(coverage.requirement), cell(", ".join(coverage.plans)), status, cell(coverage.proof)


def _open_points(report: GapReport) -> Iterator[str]:
    yield "## Human Verification Required"
    if not report.human:
        yield "None."
    for number, check in enumerate(report.human, start=1):
        yield (
            f"### {number}. {title(check.test)}\n\n**Test:** {inline(check.test)}\n"
            f"**Expected:** {inline(check.expected)}\n**Why human:** {inline(check.why)}"
        )
    yield "## Gaps Summary"
    if not report.gaps and not report.failed_detectors:
        yield "**No gaps found.**"
    for number, gap in enumerate(report.gaps, start=1):
        missing = "".join(f"\n   - Missing: {inline(text)}" for text in gap.missing)
        yield f"{number}. **{title(gap.truth)}**\n   - Reason: {inline(gap.reason)}{missing}"
    for name in report.failed_detectors:
        yield paragraphs(f"The detector {name} failed, so this report is incomplete.")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
