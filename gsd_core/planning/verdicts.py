"""Reads VERIFICATION.md. A verdict that cannot be read is ``unknown``, never a pass."""

from __future__ import annotations

import re

from gsd_core.errors import PlanningError
from gsd_core.gap import BadArtifact, Gap, GapStatus, HumanCheck
from gsd_core.planning.frontmatter import (
    Frontmatter,
    Value,
    as_maps,
    as_text,
    as_texts,
    read_frontmatter,
)
from gsd_core.planning.model import Verdict, VerdictStatus

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
