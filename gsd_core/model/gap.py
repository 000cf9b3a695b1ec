"""Gaps: truths that a phase promised and that do not hold."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

GapStatus: TypeAlias = Literal["failed", "partial", "unverified"]


@frozen(kw_only=True)
class BadArtifact:
    """A file that has to do with a gap, and what is wrong with it."""

    path: str
    issue: str


@frozen(kw_only=True)
class Gap:
    """A truth that does not hold; only *truth* and *reason* are required.

    *about* names what the gap is about, so that two rounds can be compared without comparing
    words: a truth's id (``01-02:T1``), a path, a requirement. *found_by* is stamped by the core.
    """

    truth: str
    reason: str
    about: str = ""
    status: GapStatus = "failed"
    artifacts: tuple[BadArtifact, ...] = ()
    missing: tuple[str, ...] = ()
    evidence: str = ""
    found_by: str = ""

    @property
    def key(self) -> str:
        """What the gap is known by from round to round."""
        return self.about or self.truth


@frozen(kw_only=True)
class Evidence:
    """What is known of one truth or must-have: *about* as in :class:`Gap`; *holds*; the proof."""

    about: str
    holds: bool
    proof: str
    by: str = ""


@frozen(kw_only=True)
class HumanCheck:
    """Something only a human can verify."""

    test: str
    expected: str
    why: str = ""
    about: str = ""


@frozen(kw_only=True)
class GapReport:
    """What all detectors and the verifier found about a phase as it is now."""

    gaps: tuple[Gap, ...] = ()
    failed_detectors: tuple[str, ...] = field(default=())
    human: tuple[HumanCheck, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def passed(self) -> bool:
        """No gap, no detector that failed, nothing left for a human."""
        return not (self.gaps or self.failed_detectors or self.human)
