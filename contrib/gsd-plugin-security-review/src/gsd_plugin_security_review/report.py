"""SECURITY.md: what was reviewed and found in a phase. Its frontmatter says to which verification it belongs.

The format is this plugin's own. Keys: ``phase``, ``reviewed`` (when), ``verification`` (the timestamp
``verified`` in VERIFICATION.md), ``status`` (``clean`` or ``issues_found``), and the numbers of ``files``,
``findings``, ``blocking`` and ``unproven``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

import attrs

from gsd_core import PhaseView, PlanningError, padded, read_below
from gsd_core.planning.frontmatter import read_frontmatter, render_frontmatter
from gsd_core.planning.markdown import bullets, cell, document, inline, title

from .findings import Finding, Severity
from .scope import Scope

LIMITS = (
    "An agent that may only read made this review. Code has checked which files it opened and that each "
    "cited line exists; whether the agent understood them is not known. Code under review can try to "
    "influence it, so a clean review is no proof that there is no defect."
)


@attrs.frozen(kw_only=True)
class Report:
    """The result of a review; *unproven* findings each have the reason why they do not count."""

    scope: Scope = attrs.field(factory=Scope)
    proven: tuple[Finding, ...] = ()
    unproven: tuple[tuple[Finding, str], ...] = ()
    blocking: tuple[Severity, ...] = ()


def report_path(phase: PhaseView) -> str:
    """Return the path of the phase's SECURITY.md."""
    return f"{phase.directory}/{padded(phase.number)}-SECURITY.md"


def reviewed_verification(phase: PhaseView) -> str | None:
    """Return the timestamp of the verification that was reviewed; ``None`` without a readable report."""
    path = report_path(phase)
    try:
        head = read_frontmatter(read_below(phase.project, path).decode("utf-8"), path=path)
    except (OSError, ValueError, PlanningError):
        return None
    # Written twice, a key says nothing.
    return head.text("verification") if head.found and not head.flaws else None


def render(phase: PhaseView, report: Report, *, now: datetime) -> str:
    """Return the text of SECURITY.md."""
    blocking = [one for one in report.proven if one.severity in report.blocking]
    stamp = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = render_frontmatter(
        {
            "phase": PurePosixPath(phase.directory).name,
            "reviewed": stamp,
            "verification": phase.verdict.verified if phase.verdict else "",
            "status": "issues_found" if report.proven else "clean",
            "files": len(report.scope.files),
            "findings": len(report.proven),
            "blocking": len(blocking),
            "unproven": len(report.unproven),
        }
    )
    parts = [
        f"# Phase {phase.number}: {title(phase.name)} Security Review",
        f"**Reviewed:** {stamp}",
        LIMITS,
        "## Findings",
        *(_findings(report) or ["None."]),
        *_unproven(report.unproven),
        "## Reviewed Files",
        bullets([f"`{path}`" for path in report.scope.files]) or "None.",
    ]
    if report.scope.skipped:
        parts += ["## Not Reviewed", bullets([f"`{path}`: {why}" for path, why in report.scope.skipped])]
    return f"{head}\n{document(parts)}"


def _findings(report: Report) -> list[str]:
    return [
        f"### {number}. {title(one.what)}\n\n"
        f"- **Severity:** {one.severity}{'' if one.severity in report.blocking else ' (no gap)'}\n"
        f"- **CWE:** {inline(one.cwe) or '-'}\n"
        f"- **Where:** `{inline(one.file)}:{one.line}`: {inline(one.quote)}\n"
        f"- **Why:** {inline(one.why)}\n"
        f"- **Should hold:** {inline(one.property)}\n"
        f"- **Fix:** {inline(one.fix)}"
        for number, one in enumerate(report.proven, 1)
    ]


def _unproven(findings: Sequence[tuple[Finding, str]]) -> Iterator[str]:
    if findings:
        yield "## Unproven Findings"
        yield "What these cite is wrong, so they are no gaps. A person may want to look at them."
        rows = [
            f"| {one.severity} | {cell(one.what)} | {cell(f'{one.file}:{one.line}')} | {cell(problem)} |"
            for one, problem in findings
        ]
        yield "\n".join(["| Severity | Finding | Where | Problem |", "| --- | --- | --- | --- |", *rows])
