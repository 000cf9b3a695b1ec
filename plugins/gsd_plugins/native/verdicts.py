"""A verifier's answer, judged: what cannot be read, is missing or is in doubt does not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never, cast

from attrs import define, evolve, field

from gsd_core import AgentResult, Evidence, Gap, GapReport, GapStatus, HumanCheck
from gsd_core.planning.must_haves import Promise

from .schemas import VerdictAnswer, VerdictsAnswer
from .shape import faults, read

UNREADABLE = "the verifier gave no verdict that can be read"


@define
class Complaints:
    """Complains about an answer twice; after that it is taken as it is, and what it lacks is a gap."""

    claims: tuple[Promise, ...]
    left: int = field(default=2)

    def __call__(self, result: AgentResult) -> Sequence[str]:
        """Return what is wrong with the answer, while there is patience."""
        found = tuple(_wrong(self.claims, result.value)) if self.left else ()
        self.left -= 1
        return found


def judged(claims: tuple[Promise, ...], value: object, found: GapReport) -> GapReport:
    """Return the report with the verdict on each claim added to it."""
    entries = tuple(_entries(value))
    for claim in claims:
        found = _with(found, claim, _verdict(claim, entries))
    return found


def _wrong(claims: tuple[Promise, ...], value: object) -> Iterator[str]:
    if broken := faults(VerdictsAnswer, value):
        yield from broken
        return
    verdicts = read(VerdictsAnswer, value).verdicts
    given = [verdict.id for verdict in verdicts]
    wanted = [claim.id for claim in claims]
    yield from (f"no verdict on {name}" for name in wanted if name not in given)
    yield from (f"{name!r} was not asked for" for name in given if name not in wanted)
    yield from (f"more than one verdict on {name}" for name in wanted if given.count(name) > 1)
    yield from (f"{v.id}: no evidence of what you saw" for v in verdicts if _is_bare(v))


def _is_bare(verdict: VerdictAnswer) -> bool:
    return verdict.status in ("holds", "human") and not verdict.evidence.strip()


def _entries(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        listed = cast("Mapping[str, Any]", value).get("verdicts")
        yield from cast("list[object]", listed) if isinstance(listed, list) else ()


def _verdict(claim: Promise, entries: tuple[object, ...]) -> VerdictAnswer | None:
    """Return the only verdict on a claim; two of them, or one that cannot be read, are none."""
    about = [entry for entry in entries if _id(entry) == claim.id]
    if len(about) != 1 or faults(VerdictAnswer, about[0]):
        return None
    verdict = read(VerdictAnswer, about[0])
    return None if _is_bare(verdict) else verdict


def _id(entry: object) -> object:
    return cast("Mapping[str, object]", entry).get("id") if isinstance(entry, Mapping) else None


def _with(found: GapReport, claim: Promise, verdict: VerdictAnswer | None) -> GapReport:
    if verdict is None:
        gap = Gap(truth=claim.text, reason=UNREADABLE, about=claim.id, status="unverified")
        return evolve(found, gaps=(*found.gaps, gap))
    match verdict.status:
        case "holds":
            proofs = (Evidence(about=name, holds=True, proof=verdict.evidence) for name in claim.ids)
            return evolve(found, evidence=(*found.evidence, *proofs))
        case "human":
            expected = verdict.reason or claim.text
            check = HumanCheck(test=verdict.evidence, expected=expected, why=claim.text, about=claim.id)
            return evolve(found, human=(*found.human, check))
        case "fails":
            return evolve(found, gaps=(*found.gaps, _gap(claim, verdict, "failed")))
        case "uncertain":
            return evolve(found, gaps=(*found.gaps, _gap(claim, verdict, "unverified")))
        case _:
            assert_never(verdict.status)


def _gap(claim: Promise, verdict: VerdictAnswer, status: GapStatus) -> Gap:
    return Gap(
        truth=claim.text,
        reason=verdict.reason or verdict.evidence or UNREADABLE,
        about=claim.id,
        status=status,
        missing=verdict.missing,
        evidence=verdict.evidence,
    )
