"""The order of plans: which may start now, and on which chain of work the end depends.

A plan starts when those that it depends on are done, not when a whole wave is. Of several that may start, the
one with the longest chain of work behind it goes first (the critical path method; Kelley and Walker 1959).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from posixpath import normpath

import attrs

from gsd_core.planning.model import Plan


def _normal(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(normpath, paths))


@attrs.frozen(kw_only=True)
class Work:
    """A piece of work: it comes *after* others, changes *files*, and has a *size*, in a unit that all share.

    A file can be a folder, for all that is in it.
    """

    id: str
    after: tuple[str, ...] = ()
    files: tuple[str, ...] = attrs.field(default=(), converter=_normal)
    size: float = 1.0


def works_of(
    plans: Sequence[Plan], after: Mapping[str, Sequence[str]], before: Sequence[str] = ()
) -> list[Work]:
    """Return the *plans* of a phase as work, by their ids; a task is a unit of work.

    *after* says what each depends on (see ``plan_dependencies``); one that depends on none comes after the
    work *before* the phase.
    """
    return [
        Work(
            id=plan.id,
            after=tuple(after[plan.id] or before),
            files=plan.files_modified,
            size=max(1, len(plan.tasks)),
        )
        for plan in plans
    ]


@attrs.define(kw_only=True, slots=False)
class Schedule:
    """All pieces of *works*; dependencies on others, and those that close a circle, are ignored."""

    works: Sequence[Work]

    @cached_property
    def after(self) -> Mapping[str, tuple[str, ...]]:
        """What each piece waits for, in the order of the works."""
        known = {work.id for work in self.works}
        found = {work.id: tuple(one for one in work.after if one in known) for work in self.works}
        while True:
            try:
                TopologicalSorter(found).prepare()
            except CycleError as error:
                # Its first two names are a piece and one that depends on it.
                first, second = error.args[1][:2]
                found[second] = tuple(one for one in found[second] if one != first)
            else:
                return found

    @cached_property
    def lengths(self) -> Mapping[str, float]:
        """How long the longest chain of work is that begins with each piece."""
        sizes = {work.id: work.size for work in self.works}
        found = dict(sizes)
        for name in reversed([*TopologicalSorter(self.after).static_order()]):
            for earlier in self.after[name]:
                found[earlier] = max(found[earlier], sizes[earlier] + found[name])
        return found

    def critical_path(self, done: Collection[str] = ()) -> tuple[str, ...]:
        """Return the longest chain of pieces that are not *done*, first to last."""
        left = [work for work in self.works if work.id not in done]
        rest = Schedule(works=left) if done else self
        path: list[str] = []
        begins = [name for name in rest.after if not rest.after[name]]
        while begins:
            path.append(max(begins, key=lambda name: rest.lengths[name]))
            begins = [name for name, after in rest.after.items() if path[-1] in after]
        return tuple(path)

    def startable(
        self,
        *,
        done: Collection[str] = (),
        only: Collection[str] | None = None,
        running: Collection[str] = (),
        slots: int = 1,
    ) -> tuple[Work, ...]:
        """Return at most *slots* pieces that may start beside those *running*, the most urgent first.

        Two that change the same file never run at once. What comes before a piece has to be *done*, or *only*
        names those that wait for nothing.
        """
        by_id = {work.id: work for work in self.works}
        taken = [by_id[name] for name in running if name in by_id]
        left = [work for work in self.works if work.id not in done and work.id not in running]
        if only is None:
            only = [work.id for work in left if all(one in done for one in self.after[work.id])]
        ready = [work for work in left if work.id in only]
        found: list[Work] = []
        for work in sorted(ready, key=lambda work: -self.lengths[work.id]):
            if len(found) >= slots:
                break
            if not any(overlap(work, other) for other in (*taken, *found)):
                found.append(work)
        return tuple(found)

    def makespan(self, durations: Mapping[str, float], slots: int) -> float:
        """Return when all is done if each piece takes as long as *durations* say, in any unit."""
        now, done, ends = 0.0, set[str](), dict[str, float]()
        while True:
            for work in self.startable(done=done, running=ends, slots=slots - len(ends)):
                ends[work.id] = now + durations[work.id]
            if not ends:
                return now
            first = min(ends, key=lambda name: ends[name])
            now = ends.pop(first)
            done.add(first)


def overlap(one: Work, other: Work) -> bool:
    """Whether two pieces change the same file, or one changes a file in a folder that the other changes."""
    theirs, ours = {*other.files}, {*one.files}
    return not (theirs.isdisjoint(_with_folders(ours)) and ours.isdisjoint(_with_folders(theirs)))


def _with_folders(paths: Collection[str]) -> set[str]:
    parts = [path.split("/") for path in paths]
    return {"/".join(names[:end]) for names in parts for end in range(1, len(names) + 1)}
