"""What a phase promised, each thing once: its truths, its artifacts, its key links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from gsd_core.ids import padded
from gsd_core.planning.model import PhaseView, Plan


@frozen(kw_only=True)
class Promise:
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


def truths_of(phase: PhaseView, plans: Sequence[Plan]) -> tuple[Promise, ...]:
    """Return what *plans* promised; without any, the roadmap's criteria; without these, the goal."""
    truths = [(truth.id, truth.text) for plan in plans for truth in plan.must_haves.truths]
    criteria = phase.criteria or (phase.goal or phase.name,)
    numbered = [(f"{padded(phase.number)}:C{number}", text) for number, text in enumerate(criteria, start=1)]
    return _once((_even(text), Promise(ids=(name,), text=text)) for name, text in truths or numbered)


def artifacts_of(plans: Iterable[Plan]) -> tuple[Promise, ...]:
    """Return the files that *plans* promised: known by path and by place (``01-02:A1``)."""
    return _once(
        (
            path,
            Promise(
                ids=(path, artifact.path, f"{plan.id}:A{number}"), text=path, details=_some(artifact.provides)
            ),
        )
        for plan in plans
        for number, artifact in enumerate(plan.must_haves.artifacts, start=1)
        for path in [artifact.path.strip().removeprefix("./")]
    )


def links_of(plans: Iterable[Plan]) -> tuple[Promise, ...]:
    """Return the links that *plans* promised: known by place (``01-02:L1``) and by their ends."""
    return _once(
        (text, Promise(ids=(f"{plan.id}:L{number}", text), text=text, details=_some(link.via)))
        for plan in plans
        for number, link in enumerate(plan.must_haves.key_links, start=1)
        for text in [f"{link.source} -> {link.target}"]
    )


def _once(promises: Iterable[tuple[str, Promise]]) -> tuple[Promise, ...]:
    found: dict[str, Promise] = {}
    for key, promise in promises:
        known = found.get(key)
        found[key] = _both(known, promise) if known else promise
    return tuple(found.values())


def _both(one: Promise, other: Promise) -> Promise:
    ids = dict.fromkeys((*one.ids, *other.ids))
    return evolve(one, ids=tuple(ids), details=tuple(dict.fromkeys((*one.details, *other.details))))


def _some(text: str) -> tuple[str, ...]:
    return (text,) if text.strip() else ()


def _even(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")
