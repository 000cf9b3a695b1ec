"""A scenario: what a model would answer in every step of a run, for any idea, as data.

It builds a small working project: Python's standard library, tests run by ``python3 -m unittest``,
one to three phases, names taken from the idea. The agent ``rehearsal`` plays it over a Messages API,
:class:`~gsd_plugins.rehearsal.fake.FakeAgent` without any process.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from functools import cached_property

import attrs

from gsd_core import Option, Question, normal_phase

from .plans import Json, ScriptedPlan, ScriptedPlans, ScriptedTask, gap_plan, unplanned_phase
from .product import Product

_TRUTH_ID = re.compile(r"\b\d[\w.]*(?:-\d+:T|:C)\d+\b")
_REQUIREMENT = re.compile(r"\b(?!UTF-|SHA-|ISO-|RFC-)[A-Z]+-\d+\b")
_REQUIREMENTS = {
    "CORE-01": ("Core", "User can write an entry as `topic: text`; any other line is rejected"),
    "CORE-02": ("Core", "User can list all entries"),
    "DOC-01": ("Documentation", "User can find usage instructions in the README"),
    "STORE-01": ("Storage", "User can load entries that were saved earlier"),
    "CLI-01": ("Command line", "User can add and list entries from the command line"),
    "CLI-02": ("Command line", "User gets a clear error message for an invalid line"),
    "REPORT-01": ("Report", "User can see how many entries each topic has"),
}


@attrs.frozen(slots=False)  # cached_property needs a __dict__
class Scenario:
    """A model's answers for *idea_text*; the same text and *seed* always give the same answers.

    *phases*: 1, 2 or 3; ``None`` is 2 or 3, depending on the seed. One phase is one plan of two tasks.
    *question*: the first plan asks which bullet to list entries with, and the code uses the answer.
    *gap*: README.md lacks its usage, which its task's check does not notice; a gap round adds it.
    *overloaded*: one request of :attr:`overloaded_step` is refused because the API is overloaded.
    """

    idea_text: str
    seed: int = 0
    phases: int | None = attrs.field(default=None, validator=attrs.validators.in_((None, 1, 2, 3)))
    question: bool = True
    gap: bool = True
    overloaded: bool = True

    @cached_property
    def product(self) -> Product:
        """The product that is built, with its names."""
        return Product.from_idea(self.idea_text, self.seed)

    @cached_property
    def phase_count(self) -> int:
        """The number of phases in the roadmap."""
        return self.phases or random.Random(f"phases/{self.seed}").choice((3, 2))

    @property
    def overloaded_step(self) -> str:
        """The step with the refused request; empty if none is refused."""
        return "1/execute/01-01" if self.overloaded else ""

    def roadmap(self) -> Json:
        """Return the answer to ``init``."""
        title, phases = self.product.title, self._phases()
        return {
            "name": title,
            "summary": f"{title} stores entries about {', '.join(self.product.topics)} as plain text, one "
            "per line. It is a terminal program for one person and needs only Python.",
            "core_value": "Every entry can be read back exactly as it was written.",
            "requirements": [
                _requirement(name, *_REQUIREMENTS[name]) for phase in phases for name in phase["requirements"]
            ],
            "later": [_requirement("SHARE-01", "Sharing", "User can merge the entries of two people")],
            "out_of_scope": [{"feature": "Web page", "reason": "a terminal is enough for one person"}],
            "constraints": [
                {"type": "Technology", "what": "Python's standard library only", "why": "nothing to install"}
            ],
            "phases": phases,
        }

    def plans(self, phase: str, round: int = 0, about: str = "") -> Json:  # noqa: A002 - StepRequest's name
        """Return the answer to a phase's ``plan``, in its first round (0) or for gaps.

        *about* is the planner's prompt: it names the gaps, or the requirements of a phase that is
        not in this scenario's roadmap.
        """
        if round:
            return {"plans": [self._gap_plan(about).to_json()]}
        named = tuple(dict.fromkeys(_REQUIREMENT.findall(about)))
        requirements = {str(n): planned["requirements"] for n, planned in enumerate(self._phases(), 1)}
        own = set(requirements.get(phase, ()))
        if own and (not named or own & set(named)):
            return {"plans": [plan.to_json() for plan in self._plans().for_phase(phase)]}
        # A project that was not started by this scenario, or a phase that was inserted by hand.
        return {"plans": [unplanned_phase(self.product, phase, named).to_json()]}

    def tasks(self, plan: str, answer: str = "", about: str = "") -> tuple[ScriptedTask, ...]:
        """Return the tasks of a plan (``01-02``) in order.

        *answer* is the user's answer to :meth:`user_question`; *about* is the executor's prompt.
        """
        phase, number = _phase_of(plan), int(plan.rpartition("-")[2])
        plans = self._plans(self.product.bullet_for(answer)).for_phase(phase)
        unplanned = unplanned_phase(self.product, phase)
        if number == 1 and (not plans or unplanned.tasks[0].files[-1] in about):
            return unplanned.tasks
        return plans[number - 1].tasks if number <= len(plans) else self._gap_plan(about).tasks

    def user_question(self) -> Question:
        """Return the question that a task with ``asks`` needs an answer to."""
        (label, bullet), *others = self.product.bullets
        first = Option(label=f"{label} (Recommended)", description=f"{bullet} topic: text", recommended=True)
        rest = [Option(label=label, description=f"{bullet} topic: text") for label, bullet in others]
        return Question(
            text="Which bullet should each entry in the list start with?",
            header="Bullet",
            options=(first, *rest),
        )

    def summary(self, plan: str, answer: str = "", issues: Iterable[str] = ()) -> Json:
        """Return the answer to a plan's ``execute``."""
        asked = any(task.asks for task in self.tasks(plan))
        decision = f"Entries are listed with the bullet {self.product.bullet_for(answer)}"
        return {"deviations": [], "decisions": [decision] if asked else [], "issues": list(issues)}

    def verdicts(self, truths: Iterable[str]) -> Json:
        """Return the answer to ``verify`` for the truths with these ids: each of them holds."""
        return {"verdicts": [self._verdict(truth) for truth in truths]}

    def _verdict(self, truth: str) -> Json:
        task = self.tasks(_plan_of(truth))[0]
        evidence = f"{', '.join(task.files)}; `{task.check}` passes"
        return {"id": truth, "status": "holds", "evidence": evidence, "reason": "", "missing": []}

    def truths_in(self, text: str, phase: str) -> tuple[str, ...]:
        """Return the ids of a phase's truths that *text* mentions, in order."""
        found = dict.fromkeys(_TRUTH_ID.findall(text))
        return tuple(truth for truth in found if _phase_of(_plan_of(truth)) == phase)

    def files_of(self, truths: Iterable[str]) -> tuple[str, ...]:
        """Return the files of the plans that promise these truths."""
        plans = dict.fromkeys(map(_plan_of, truths))
        files = [path for plan in plans for task in self.tasks(plan) for path in task.files]
        return tuple(dict.fromkeys(files))

    def _gap_plan(self, about: str) -> ScriptedPlan:
        return gap_plan(self.product, self._plans().usage_section, about)

    def _plans(self, bullet: str = "-") -> ScriptedPlans:
        return ScriptedPlans(
            product=self.product,
            phases=self.phase_count,
            usage=not self.gap,
            bullet=bullet,
            asks=self.question,
        )

    def _phases(self) -> list[Json]:
        """Return the phases of the roadmap; each depends on the one before."""
        stored = self.phase_count > 1
        core = ["CORE-01", "CORE-02", *(["STORE-01"] if stored else []), "DOC-01"]
        phases: list[Json] = [
            {
                "name": "Entries",
                "goal": f"Entries can be {'parsed, listed and stored' if stored else 'parsed and listed'}",
                "requirements": core,
                "criteria": [
                    "A line `topic: text` becomes an entry, and an invalid line is rejected with a reason",
                    "The list shows every entry, starting with a bullet",
                ],
            },
            {
                "name": "Command line",
                "goal": f"`python3 -m {self.product.package}` adds and lists entries",
                "requirements": ["CLI-01", "CLI-02"],
                "criteria": [
                    "An entry added by one command is listed by the next",
                    "An invalid line exits with code 1 and an error message",
                ],
            },
            {
                "name": "Report",
                "goal": "A report shows how many entries there are",
                "requirements": ["REPORT-01"],
                "criteria": ["The report has one line for each topic", "The last line is the total"],
            },
        ]
        return [
            {**phase, "depends_on": [str(number)] if number else []}
            for number, phase in enumerate(phases[: self.phase_count])
        ]


def _requirement(name: str, category: str, text: str) -> Json:
    return {"id": name, "category": category, "text": text}


def _plan_of(truth: str) -> str:
    """Return the plan that promises a truth; a criterion of the roadmap (``01:C1``) counts as the first's."""
    owner, _, name = truth.partition(":")
    return owner if name.startswith("T") else f"{owner}-01"


def _phase_of(plan: str) -> str:
    return normal_phase(plan.rpartition("-")[0])


def is_accepted(reply: str) -> bool:
    """Return whether a reply of ``task_done`` means that the task is committed, now or earlier."""
    # Only the beginning counts: the rest may quote anything, such as a check's output or a task's name.
    return re.match(r"Task \d+ is (?:already )?(?:committed|done)\b", reply) is not None
