"""Gaps: must-haves of a phase that its current tree does not meet."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

GapStatus: TypeAlias = Literal["failed", "partial", "unverified"]
Severity: TypeAlias = Literal["blocker", "major", "minor", "cosmetic"]


@attrs.frozen(kw_only=True)
class BadArtifact:
    """A file that is part of a gap, and what is wrong with it."""

    path: str
    issue: str


@attrs.frozen(kw_only=True)
class Gap:
    """A *truth* that does not hold, and the *reason*; the other fields are optional.

    *about* identifies the gap across rounds, even if it is worded differently: the id of a truth
    (``01-02:T1``), a path, or a requirement. *missing* lists what has to be added. The core sets *found_by*.
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
        """The identity of the gap across rounds."""
        return self.about or self.truth


@attrs.frozen(kw_only=True)
class Evidence:
    """Whether a truth or must-have *holds*, with the *proof*; *about* is as in :class:`Gap`."""

    about: str
    holds: bool
    proof: str
    by: str = ""


@attrs.frozen(kw_only=True)
class HumanCheck:
    """Something that only a human can verify; *result* is ``assumed`` if nobody looked at it."""

    test: str
    expected: str
    why: str = ""
    about: str = ""
    result: str = ""


@attrs.frozen(kw_only=True)
class Observation:
    """Something that a verifier noticed without being asked; *where* names files and lines, if any."""

    text: str
    severity: Severity
    where: str = ""


@attrs.frozen(kw_only=True)
class GapReport:
    """What the detectors and the verifier found about a phase in its current state.

    *human* are the checks that wait for a person, *assumed* those that a policy answered although nobody
    looked. *observations* weigh too little to be gaps.
    """

    gaps: tuple[Gap, ...] = ()
    failed_detectors: tuple[str, ...] = ()
    human: tuple[HumanCheck, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    assumed: tuple[HumanCheck, ...] = ()
    observations: tuple[Observation, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there is no gap, no failed detector, and nothing left for a human to verify.

        What was assumed does not keep a phase from passing; it stays listed in its VERIFICATION.md.
        """
        return not (self.gaps or self.failed_detectors or self.human)
