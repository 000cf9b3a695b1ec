"""A scenario: what a model would answer, for any idea, as data.

It makes a small project that works: Python's standard library, tests by ``python3 -m unittest``,
two or three phases, names taken from the idea. :class:`~gsd_core.testing.agent.FakeAgent` plays it
without processes, the plugin ``rehearsal`` over a Messages API.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from functools import cached_property

import attrs
from attrs import field, frozen

from gsd_core.model.ids import normal_phase
from gsd_core.model.question import Option, Question

from .product import FileEdit, Product
from .repairs import repair, unknown
from .roadmap import requirements_of, roadmap
from .work import Job, Json, Work
from .works import Works

__all__ = ["FileEdit", "Job", "Json", "Product", "Scenario", "Work", "accepted"]

_TRUTH_ID = re.compile(r"\b\d[\w.]*(?:-\d+:T|:C)\d+\b")
_REQUIREMENT = re.compile(r"\b(?!UTF-|SHA-|ISO-|RFC-)[A-Z]+-\d+\b")


@frozen(slots=False)
class Scenario:
    """What a model answers to *idea_text*; the same text and *seed* always make the same.

    *phases*: 1, 2 or 3; ``None`` is 2 or 3, by the seed. One phase is one plan of two tasks.
    *question*: the first plan asks which mark an entry has in a listing, and the code shows it.
    *gap*: README.md lacks its usage, which its task's check does not see; a gap round adds it.
    *overloaded*: one request is refused for overload (:attr:`overloaded_step`).
    """

    idea_text: str
    seed: int = 0
    phases: int | None = field(default=None, validator=attrs.validators.in_((None, 1, 2, 3)))
    question: bool = True
    gap: bool = True
    overloaded: bool = True

    @cached_property
    def product(self) -> Product:
        """The names that the idea comes to."""
        return Product.of(self.idea_text, self.seed)

    @cached_property
    def phase_count(self) -> int:
        """How many phases the roadmap has."""
        return self.phases or random.Random(f"phases/{self.seed}").choice((3, 2))

    @property
    def overloaded_step(self) -> str:
        """The step of which one request is refused; empty if none is."""
        return "1/execute/01-01" if self.overloaded else ""

    def roadmap(self) -> Json:
        """Return the answer to ``init``."""
        return roadmap(self.product, self.phase_count)

    def plans(self, phase: str, round: int = 0, about: str = "") -> Json:  # noqa: A002 - StepRequest's word
        """Return the answer to a phase's ``plan``, in its first round (0) or for gaps.

        *about* is what the planner was told: the gaps, or the requirements of a phase that is
        not in this scenario's roadmap.
        """
        if round:
            return {"plans": [self._repair(about).value()]}
        named = tuple(dict.fromkeys(_REQUIREMENT.findall(about)))
        own = requirements_of(self.product, self.phase_count, phase)
        if own and (not named or set(own) & set(named)):
            return {"plans": [work.value() for work in self._works().of_phase(phase)]}
        return {"plans": [unknown(self.product, phase, named).value()]}

    def jobs(self, plan: str, answer: str = "", about: str = "") -> tuple[Job, ...]:
        """Return the tasks of a plan (``01-02``), in their order.

        *answer* is what a human said to :meth:`asked`; *about* is what the executor was told.
        """
        phase, number = _phase_of(plan), int(plan.rpartition("-")[2])
        works = self._works(self.product.mark(answer)).of_phase(phase)
        other = unknown(self.product, phase)
        if number == 1 and (not works or other.jobs[0].files[-1] in about):
            return other.jobs
        return works[number - 1].jobs if number <= len(works) else self._repair(about).jobs

    def asked(self) -> Question:
        """Return the one question; a job that ``asks`` needs its answer."""
        (first, mark), *others = self.product.marks
        best = Option(label=f"{first} (Recommended)", description=f"{mark} topic: text", recommended=True)
        rest = [Option(label=label, description=f"{mark} topic: text") for label, mark in others]
        return Question(
            text="Which mark should stand in front of an entry when entries are listed?",
            header="Mark",
            options=(best, *rest),
        )

    def summary(self, plan: str, answer: str = "", issues: Iterable[str] = ()) -> Json:
        """Return the answer to a plan's ``execute``."""
        asked = any(job.asks for job in self.jobs(plan))
        mark = f"Entries are listed with {self.product.mark(answer)} in front"
        return {"deviations": [], "decisions": [mark] if asked else [], "issues": list(issues)}

    def verdicts(self, truths: Iterable[str]) -> Json:
        """Return the answer to ``verify`` for the truths with these ids."""
        return {"verdicts": [self._verdict(truth) for truth in truths]}

    def truths_in(self, text: str, phase: str) -> tuple[str, ...]:
        """Return the ids of a phase's truths that *text* names, in their order."""
        found = dict.fromkeys(_TRUTH_ID.findall(text))
        return tuple(truth for truth in found if _phase_of(_plan_of(truth)) == phase)

    def files_of(self, truths: Iterable[str]) -> tuple[str, ...]:
        """Return the files of the plans that promise these truths."""
        plans = dict.fromkeys(map(_plan_of, truths))
        files = [path for plan in plans for job in self.jobs(plan) for path in job.files]
        return tuple(dict.fromkeys(files))

    def _verdict(self, truth: str) -> Json:
        job = self.jobs(_plan_of(truth))[0]
        evidence = f"{', '.join(job.files)}; shown by `{job.check}`"
        return {"id": truth, "status": "holds", "evidence": evidence, "reason": "", "missing": []}

    def _repair(self, about: str) -> Work:
        return repair(self.product, self._works().section, about)

    def _works(self, mark: str = "-") -> Works:
        return Works(
            product=self.product,
            phases=self.phase_count,
            usage=not self.gap,
            mark=mark,
            asks=self.question,
        )


def _plan_of(truth: str) -> str:
    """Return the plan that promises a truth; a roadmap's criterion (``01:C1``) is the first plan's."""
    owner, _, name = truth.partition(":")
    return owner if name.startswith("T") else f"{owner}-01"


def _phase_of(plan: str) -> str:
    return normal_phase(plan.rpartition("-")[0])


def accepted(reply: str) -> bool:
    """Tell whether a reply of ``task_done`` says that the task is committed, or done already."""
    refused = re.search(r"\bnot (yet )?committed\b|^Not |^Stop ", reply)
    return not refused and bool(re.search(r"\b(committed|done)\b", reply))
