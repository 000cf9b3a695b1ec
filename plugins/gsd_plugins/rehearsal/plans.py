"""The plans of a scenario for each phase, and the files that executing them writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import attrs

from .product import FileEdit, Product

Json: TypeAlias = dict[str, Any]


@attrs.frozen(kw_only=True)
class ScriptedTask:
    """One task: the edits it makes and the *check* that proves it; *asks*: it asks the question first.

    The plan does not name the files that are *undeclared*. *repairs* are made too once a check fails in the
    file of one of them.
    """

    name: str
    edits: tuple[FileEdit, ...]
    action: str
    check: str
    done: str
    asks: bool = False
    undeclared: tuple[str, ...] = ()
    repairs: tuple[FileEdit, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that the plan says the task writes."""
        return tuple(edit.path for edit in self.edits if edit.path not in self.undeclared)

    def to_json(self) -> Json:
        """Return the task as a planner answers it."""
        return {
            "name": self.name,
            "files": list(self.files),
            "action": self.action,
            "verify": f"`{self.check}` succeeds",
            "check": self.check,
            "done": self.done,
        }


@attrs.frozen(kw_only=True)
class ScriptedPlan:
    """One plan and its tasks; *truths* are their texts, each with what it serves.

    With a *behavior* it is test-driven: its tasks are those of one feature, tests first.
    """

    name: str
    objective: str
    depends_on: tuple[int, ...] = ()
    requirements: tuple[str, ...] = ()
    truths: Mapping[str, tuple[str, ...]]
    artifacts: tuple[Mapping[str, Any], ...]
    links: tuple[Mapping[str, str], ...] = ()
    tasks: tuple[ScriptedTask, ...]
    behavior: str = ""

    def to_json(self) -> Json:
        """Return the plan as a planner answers it."""
        tasks = [task.to_json() for task in self.tasks]
        if self.behavior:
            tests, code, _ = self.tasks
            files = [*code.files, *tests.files]
            tasks = [{**code.to_json(), "name": self.name, "files": files, "behavior": self.behavior}]
        return {
            "type": "tdd" if self.behavior else "execute",
            "name": self.name,
            "objective": self.objective,
            "depends_on": list(self.depends_on),
            "files_modified": sorted({path for task in self.tasks for path in task.files}),
            "requirements": list(self.requirements),
            "truths": [{"text": text, "serves": list(serves)} for text, serves in self.truths.items()],
            "artifacts": [dict(artifact) for artifact in self.artifacts],
            "key_links": [dict(link) for link in self.links],
            "tasks": tasks,
        }


@attrs.frozen(kw_only=True)
class ScriptedPlans:
    """The plans for *product* in a roadmap of *phases* phases.

    *usage*: whether the task that writes README.md includes the planned section on usage.
    *asks*: whether the first plan asks for the ending; *ending* is the one that greetings end with.
    *tdd*: whether the parsing of guests is a test-driven plan of its own. *wide*: the first phase has six
    plans in a diamond, and the second one asks.
    """

    product: Product
    phases: int
    usage: bool = True
    ending: str = "."
    asks: bool = True
    tdd: bool = False
    wide: bool = False

    @property
    def usage_section(self) -> str:
        """The template of the section on usage: a single phase has no storage to show."""
        return "usage" if self.phases == 1 else "usage_store"

    def for_phase(self, number: str) -> tuple[ScriptedPlan, ...]:
        """Return the first round's plans of a phase; empty if it is not in the scenario's roadmap."""
        if number not in ("1", "2", "3")[: self.phases]:
            return ()
        if number != "1":
            return (self.plan("commands" if number == "2" else "report"),)
        greetings, storage = self.plan("greetings"), self.plan("storage")
        parsing, greeting = greetings.tasks
        greeting = attrs.evolve(greeting, asks=self.asks and not self.wide)
        if self.phases == 1:  # no storage: README.md belongs to the greetings
            write_readme = " Write README.md: an overview, `## Usage` with an example, `## Development`."
            edits = (*greeting.edits, *storage.tasks[1].edits)
            greeting = attrs.evolve(greeting, edits=edits, action=greeting.action + write_readme)
            greetings = attrs.evolve(
                greetings,
                requirements=(*greetings.requirements, "DOC-01"),
                truths={**greetings.truths, README_TRUTH: storage.truths[README_TRUTH]},
                artifacts=(*greetings.artifacts, storage.artifacts[1]),
            )
        greetings = attrs.evolve(greetings, tasks=(parsing, greeting))
        first = self._test_first(greetings) if self.tdd else (greetings,)
        if self.wide:
            renaming, cards = (self._beside(self.plan(name)) for name in ("renaming", "cards"))
            searches = (self._search(letter) for letter in "ab")
            sixth = attrs.evolve(self.plan("license"), name="License", depends_on=(2, 3, 4, 5))
            return (greetings, renaming, cards, *searches, sixth)
        return first if self.phases == 1 else (*first, attrs.evolve(storage, depends_on=(len(first),)))

    def _beside(self, plan: ScriptedPlan) -> ScriptedPlan:
        """Return one of two plans that fit line by line: one renames a function, the other one calls it."""
        [task] = plan.tasks
        task = attrs.evolve(task, asks=self.asks and task.asks, repairs=(self.product.renamed_call,))
        return attrs.evolve(plan, depends_on=(1,), tasks=(task,))

    def _search(self, letter: str) -> ScriptedPlan:
        """Return a plan that only needs the first one, and adds a line to a file that it does not name."""
        plan = self.plan("search", module=f"phase_1{letter}")
        [task] = plan.tasks
        # The first plan has the other file.
        edits = (*task.edits[1:], self.product.edit(f"NOTES.md + - Search {letter} is there."))
        task = attrs.evolve(task, edits=edits, undeclared=("NOTES.md",))
        truths = {f"{text}, in module {letter}": serves for text, serves in plan.truths.items()}
        return attrs.evolve(plan, name=f"Search {letter}", depends_on=(1,), truths=truths, tasks=(task,))

    def _test_first(self, both: ScriptedPlan) -> tuple[ScriptedPlan, ScriptedPlan]:
        """Return the parsing as a test-driven plan, and the greetings as one that builds on it."""
        parsing, greeting = both.tasks
        tests = tuple(edit for edit in parsing.edits if edit.path.startswith("tests/"))
        code = tuple(edit for edit in parsing.edits if edit not in tests)
        own = dict([*both.truths.items()][:2])
        first = attrs.evolve(
            both,
            name="Parsing guests",
            objective="Parse guests from lines of text, and count them by language",
            requirements=("CORE-01",),
            truths=own,
            artifacts=both.artifacts[:1],
            links=(),
            tasks=tuple(attrs.evolve(parsing, edits=edits) for edits in (tests, code, ())),
            behavior="`language: name` is a guest; a line without a language, or an unknown one, is rejected",
        )
        second = attrs.evolve(
            both,
            name="Greeting",
            objective="Greet guests in their language",
            depends_on=(1,),
            requirements=tuple(name for name in both.requirements if name != "CORE-01"),
            truths={text: serves for text, serves in both.truths.items() if text not in own},
            artifacts=both.artifacts[1:],
            tasks=(greeting,),
        )
        return first, second

    def plan(self, name: str, **values: str) -> ScriptedPlan:
        """Return the plan *name* of ``answers.toml``, with *values* in its texts."""
        said = self.product.answer("plans", name, **values)
        usage = self.usage_section if self.usage else ""
        edit = partial(self.product.edit, ending=self.ending, usage=usage)
        return ScriptedPlan(
            name=said["name"],
            objective=said["objective"],
            requirements=tuple(said.get("requirements", ())),
            truths={truth["text"]: tuple(truth.get("serves", ())) for truth in said["truths"]},
            artifacts=tuple(said["artifacts"]),
            links=tuple(said.get("links", ())),
            tasks=tuple(
                ScriptedTask(edits=tuple(map(edit, task.pop("edits"))), **task) for task in said["tasks"]
            ),
        )

    def closing(self, about: str) -> ScriptedPlan:
        """Return the plan that closes the gaps described in *about*.

        The scenario can add the README's usage, which is its own gap, the note that a gap of a scenario
        file lacks, and a license, which the example detector of the docs looks for. It promises every truth
        in *about*, because the planner's answer is rejected otherwise; the next verification finds the gaps
        that it could not close.
        """
        if _NO_LICENSE.search(about):
            plan = self.plan("license")
        elif number := _missing_note(about):
            plan = self.plan("note", number=str(number), missing=MISSING_NOTE.format(number))
        else:
            plan = self.plan("usage", section=self.usage_section)
        truths = dict.fromkeys(_TRUTH.findall(about), ())
        return attrs.evolve(plan, truths=truths or plan.truths)

    def unplanned(self, phase: str, requirements: tuple[str, ...] = ()) -> ScriptedPlan:
        """Return the plan for a phase that is not in the scenario's roadmap, such as one added by hand."""
        plan = self.plan("search", module=f"phase_{re.sub(r'[^0-9A-Za-z]', '_', phase)}")
        truths = dict.fromkeys(plan.truths, requirements)
        return attrs.evolve(plan, requirements=requirements, truths=truths)

    def quick(self, name: str) -> ScriptedPlan:
        """Return the plan of a quick task: it adds a line about itself to NOTES.md."""
        return self.plan("quick", number=name[:3])


README_TRUTH = "README.md describes the project and how to use it"
MISSING_NOTE = "NOTES.md has no note {}"
"""What a gap of a scenario file says, so that the planner and the executor recognize it."""
CHECKPOINT = ScriptedTask(name="Ask a person", edits=(), action="", check="", done="A person was asked")
"""A task for a person: the executor calls ``task_done``, and the core asks."""
_MERGE = re.compile(r"^\d+\. (Merge with \w+) \(auto\)$", re.MULTILINE)
_IN_CONFLICT = re.compile(r"Both changed the same lines of (.+): they are between")
_FAILS = re.compile(r"both sides, but `.+` fails with them:")
_TRUTH = re.compile(r"""^[\s\-*]*["']?truth["']?\s*:\s*["']?(.+?)["']?,?\s*$""", re.MULTILINE)
_NO_LICENSE = re.compile(r"no LICENSE|LICENSE (is )?missing", re.IGNORECASE)
_NO_NOTE = re.compile(MISSING_NOTE.format(r"(\d+)"))
_UNPROVEN = re.compile(r"the verdict is not proven")


def _missing_note(about: str) -> int:
    """Return the number of the note to add to NOTES.md for the gaps in *about*; 0 for other gaps."""
    if notes := _NO_NOTE.findall(about):
        # The prompt may quote the gaps of earlier rounds, too.
        return max(map(int, notes))
    if not _UNPROVEN.search(about):
        return 0
    # A verifier lied: nothing is wrong with the product, but a plan has to change something.
    return 1 + max(map(int, re.findall(r"Add note (\d+)", about)), default=0)


def merges(about: str, tasks: Iterable[ScriptedTask]) -> tuple[ScriptedTask, ...]:
    """Return the tasks in the executor's prompt *about* that merge the plan's *tasks* with others' work."""
    names = ", ".join(_IN_CONFLICT.findall(about)).split(", ")
    edits = tuple(FileEdit(path=path, content="", merge=True) for path in names if path)
    if _FAILS.search(about):
        edits += tuple(edit for task in tasks for edit in task.repairs)
    return tuple(
        ScriptedTask(name=name, edits=edits, action="", check="", done="Both sides are there")
        for name in dict.fromkeys(_MERGE.findall(about))
    )


def is_quick(name: str) -> bool:
    """Return whether *name* is that of a quick task (``001-slug``), and not a phase or the id of a plan."""
    return re.match(r"\d{3}-\D", name) is not None
