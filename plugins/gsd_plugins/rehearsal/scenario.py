"""A scenario: what a model would answer in every step of a run, for any idea, as data.

It builds a small working project: a program that greets, with Python's standard library, tests run by
``python3 -m unittest``, one to three phases, and names taken from the idea. The agent
``rehearsal`` plays it over a Messages API, and :class:`~gsd_plugins.rehearsal.fake.FakeAgent` without any
process.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from functools import cached_property

import attrs

from gsd_core import Option, Question, normal_phase, padded
from gsd_core.planning.idea import split_statements

from .plans import CHECKPOINT, Json, ScriptedPlans, ScriptedTask, is_quick, merges
from .product import FileEdit, Product

_ASKED_ID = re.compile(
    r"^- (\d[\w.]*(?:(?:-\d+)?:[TD]|:C)\d+|[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)*-\d+[a-z]?): ", re.MULTILINE
)
NO_MODEL = "This is a rehearsal: no model has read the prompt, so nothing was done."
"""The answer to a prompt of the user's own, for which there is no script."""
_REQUIREMENT = re.compile(r"\b(?!UTF-|SHA-|ISO-|RFC-)[A-Z]+-\d+\b")
_STATEMENTS = re.compile(r"^The statements of the idea are S1 to S(\d+)\.$", re.MULTILINE)
_LISTED = re.compile(r"^- ((?:[A-Z][A-Z0-9_-]*-\d+|\d[\w.]*:C\d+)): ", re.MULTILINE)
"""The requirements and criteria in a planner's prompt."""
_CHECKPOINT = re.compile(r"^(\d+)\. .* \(checkpoint:[\w-]+\)$", re.MULTILINE)
"""A checkpoint in the list of tasks of an executor's prompt."""
_GAP = re.compile(r"^- gap (.+)$", re.MULTILINE)
_ANSWERED = re.compile(r"^- (.+\?)$\n^  ", re.MULTILINE)
"""The answered questions in the prompt of a second discussion."""
_DECISION = re.compile(r"^- \*\*(D-\d+):\*\*", re.MULTILINE)
"""The decisions in a planner's prompt that plans have to name."""
_COMMITTED = re.compile(r"^Tasks already committed, do not repeat them: ([\d, ]+)\.$", re.MULTILINE)
_DEFERRED = re.compile(r"(?<![^ \n])Deferred: ([\d, ]+)\.")
_DOCUMENT = re.compile(r"^- ([A-Z]+\.md): title `(.+?)`, sections (.+)$", re.MULTILINE)
_FIRST_FILE = re.compile(r"^Modules\n- .*?: .*?, such as ([^,\n]+)", re.MULTILINE)
_TEST_COMMAND = re.compile(r"^- test command: (.+?)(?: \(from .*\))?$", re.MULTILINE)
"""The parts of a mapper's prompt."""
_OWN_STATEMENTS = (
    *("context", "CORE-01", "CORE-01", "CORE-02", "STORE-01", "CLI-01", "CLI-02", "REPORT-01"),
    *("CORE-02", "library", "web", "DOC-01"),
)
"""What the statements of the scenario's own idea become, in order."""
SCRIPTED_NOTE = "This is a rehearsal: its script writes this program, and not the one that the idea asks for."


@attrs.frozen(slots=False)  # cached_property needs a __dict__
class Scenario:
    """A model's answers for *idea_text*; the same text and *seed* always give the same answers.

    *phases*: 1, 2 or 3; ``None`` is 2 or 3, depending on the seed. One phase is one plan of two tasks.
    *question*: the first plan asks how greetings end, and the code uses the answer.
    *gap*: README.md lacks its usage, which its task's check does not notice; a gap round adds it.
    *discuss*: two questions are asked before each phase is planned.
    *tdd*: the first plan is test-driven, and greetings are a plan of their own.
    *wide*: the first phase has six plans, of which four can be executed side by side; two of them change the
    same lines of a file that neither names, and of two others, one calls a function that the other renames.
    Then it is the second plan that asks.
    *overloaded*: one request of :attr:`overloaded_step` is refused because the API is overloaded.
    """

    idea_text: str
    seed: int = 0
    phases: int | None = attrs.field(default=None, validator=attrs.validators.in_((None, 1, 2, 3)))
    question: bool = True
    gap: bool = True
    overloaded: bool = True
    discuss: bool = False
    tdd: bool = False
    wide: bool = False

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

    def roadmap(self, about: str = "") -> Json:
        """Return the answer to ``init``.

        *about* is the roadmapper's prompt, which says how many statements the idea has. The first one is
        taken for background, and the others are given to the requirements in turn.
        """
        phases = self._phases()
        found = _STATEMENTS.findall(about)
        count = int(found[-1]) if found else len(split_statements(self.idea_text))
        names = [name for phase in phases for name in phase["requirements"]]
        ids = [f"S{number}" for number in range(1, count + 1)]
        context, used = (ids[:1], ids[1:]) if count > len(names) else ([], ids)
        stated = {name: used[number :: len(names)] for number, name in enumerate(names)}
        texts = self.product.answer("requirements")
        own = self.product.as_asked and count == len(_OWN_STATEMENTS)
        if own:
            stated = {name: _stated(name) for name in _OWN_STATEMENTS if name in texts}
            context = _stated("context")

        def requirement(name: str) -> Json:
            category, text = texts[name]
            statements = stated.get(name, [])
            reason = "" if own else f"{', '.join(statements)}: {SCRIPTED_NOTE}"
            reason = reason if statements else "The product is of no use without it"
            return {
                "id": name,
                "category": category,
                "text": text,
                "statements": statements,
                "reason": reason,
            }

        said = self.product.answer("roadmap", note="" if self.product.as_asked else f" {SCRIPTED_NOTE}")
        for part, name in (("out_of_scope", "web"), ("constraints", "library")):
            said[part][0]["statements"] = _stated(name) if own else []
        return {
            **said,
            "requirements": [*map(requirement, names)],
            "later": [*map(requirement, ["SHARE-01", *(name for name in stated if name not in names)])],
            "context": context,
            "phases": phases,
        }

    def discussion(self, about: str = "") -> Json:
        """Return the answer to a phase's ``discuss``; once its questions are answered, there are no more."""
        said, answered = self.product.answer("discussion"), _ANSWERED.findall(about)
        asked = [each for each in said["questions"] if self.discuss and each["question"] not in answered]
        return {**said, "questions": asked}

    def diagnoses(self, about: str) -> Json:
        """Return the answer to ``debug``: each gap of the debugger's prompt with the cause that it names."""
        gaps = dict.fromkeys(_GAP.findall(about))
        return {"diagnoses": [self.product.answer("diagnosis", gap=gap) for gap in gaps]}

    def codebase(self, about: str) -> Json:
        """Return the answer of a mapper: the documents that *about*, its prompt, asks for.

        Each has the sections that the prompt names, one file of the project, and its test commands.
        """
        file = (_FIRST_FILE.findall(about) or ["README.md"])[0]
        tests = " and ".join(f"`{command}`" for command in _TEST_COMMAND.findall(about)) or "none"
        lines = {"Run Commands": f"Run {tests}.", "": f"See `{file}`."}
        documents: list[Json] = []
        for name, title, listed in _DOCUMENT.findall(about):
            sections = [
                f"## {section}\n\n{lines['']}\n{lines['Run Commands'] if name == 'TESTING.md' else ''}"
                for section in listed.split(", ")
            ]
            documents.append({"name": name, "text": "\n\n".join([f"# {title}", *sections])})
        return {"documents": documents}

    def plans(self, phase: str, round: int = 0, about: str = "") -> Json:  # noqa: A002 - StepRequest's name
        """Return the answer to a phase's ``plan``, in its first round (0) or for gaps.

        A quick task is planned by its step's detail (``001-slug``) in place of *phase*.
        *about* is the planner's prompt: it names the gaps, or the requirements of a phase that is
        not in this scenario's roadmap.
        """
        if is_quick(phase):
            return {"plans": [self._plans().quick(phase).to_json()]}
        if round:
            return {"plans": _naming([self._plans().closing(about).to_json()], about)}
        listed = tuple(dict.fromkeys(_LISTED.findall(about)))
        named = tuple(dict.fromkeys(_REQUIREMENT.findall("\n".join(listed) or about)))
        requirements = {str(n): planned["requirements"] for n, planned in enumerate(self._phases(), 1)}
        own = set(requirements.get(phase, ()))
        if own and (not named or own & set(named)):
            plans = [plan.to_json() for plan in self._plans().for_phase(phase)]
        else:
            # A project that was not started by this scenario, or a phase that was inserted by hand.
            plans = [self._plans().unplanned(phase, named).to_json()]
        return {"plans": _naming(_serving(plans, listed), about)}

    def tasks(self, plan: str, answer: str = "", about: str = "") -> tuple[ScriptedTask, ...]:
        """Return the tasks of a plan (``01-02``) in order.

        *answer* is the user's answer to :meth:`user_question`; *about* is the executor's prompt, which also
        lists the checkpoints that a scenario file added at the end.
        """
        checkpoints = dict.fromkeys(_CHECKPOINT.findall(about))
        own = self._own_tasks(plan, answer, about)
        return (*own, *[CHECKPOINT] * len(checkpoints), *merges(about, own))

    def _own_tasks(self, plan: str, answer: str, about: str) -> tuple[ScriptedTask, ...]:
        if is_quick(plan):
            return self._plans().quick(plan).tasks
        end = plan.rpartition("-")[2]
        if not end.isdecimal():
            return self._plans().closing(about).tasks  # a plan of somebody else, such as 01-data-layer or 04a
        phase, number = _phase_of(plan), int(end)
        plans = self._plans(self.product.ending_for(answer)).for_phase(phase)
        unplanned = self._plans().unplanned(phase)
        if number == 1 and (not plans or unplanned.tasks[0].files[-1] in about):
            return unplanned.tasks
        return plans[number - 1].tasks if number <= len(plans) else self._plans().closing(about).tasks

    def edits(self) -> tuple[FileEdit, ...]:
        """Return the edits of all phases, in order, as far as they are known before gaps are found."""
        plans = [plan for n in range(1, self.phase_count + 1) for plan in self._plans().for_phase(str(n))]
        return tuple(edit for plan in plans for task in plan.tasks for edit in task.edits)

    def user_question(self) -> Question:
        """Return the question that a task with ``asks`` needs an answer to."""
        (label, ending), *others = self.product.endings
        first = Option(label=f"{label} (Recommended)", description=f"Hello, Ada{ending}", recommended=True)
        rest = [Option(label=label, description=f"Hello, Ada{ending}") for label, ending in others]
        return Question(text="How should each greeting end?", header="Ending", options=(first, *rest))

    def summary(self, plan: str, answer: str = "", issues: Iterable[str] = ()) -> Json:
        """Return the answer to a plan's ``execute``."""
        asked = any(task.asks for task in self.tasks(plan))
        decision = f"Greetings end with {self.product.ending_for(answer)}"
        return {
            "summary": f"Done and tested: {self.tasks(plan)[-1].done}",
            "deviations": [],
            "decisions": [decision] if asked else [],
            "issues": list(issues),
        }

    def verdicts(
        self,
        asked: Iterable[str],
        phase: str,
        *,
        read: Iterable[str] = (),
        ran: Iterable[tuple[str, str]] = (),
    ) -> Json:
        """Return the answer to ``verify`` for the must-haves with these ids: each of them holds.

        It cites the first line of a file of the plan that was *read* (for a decision, the first two), and the
        command of the plan's first task if it *ran* and succeeded, with the first test case in the tool's
        reply: *ran* has pairs of them.
        """
        files, commands, verdicts = tuple(read), tuple(ran), list[Json]()
        for name in asked:
            plan = self._plan_for(name, phase)
            task, own = self.tasks(plan)[0], self.evidence_of(plan)
            # Not the same evidence for everything: that would be sent back.
            last = 2 if re.search(r"^D-|:D", name) else 1
            shown = (own,) if own in files else files[:1]
            cited: list[Json] = [{"file": path, "first": 1, "last": last} for path in shown]
            for command, reply in commands:
                if command == task.check or not cited:
                    case = _TEST_CASE.search(reply)
                    cited.append({"command": command, "exit": 0, "case": case[1] if case else ""})
            verdict: Json = {"id": name, "status": "holds", "evidence": task.done, "citations": cited}
            verdicts.append({**verdict, "reason": "", "missing": []})
        return {"verdicts": verdicts, "findings": []}

    def asked_in(self, text: str, phase: str) -> tuple[str, ...]:
        """Return the ids of a phase's must-haves that *text*, a verifier's prompt, asks about, in order."""
        found = dict.fromkeys(_ASKED_ID.findall(text))
        if is_quick(phase):
            return tuple(found)
        return tuple(name for name in found if _phase_of(self._plan_for(name, phase)) == phase)

    def files_for(self, asked: Iterable[str], phase: str) -> tuple[str, ...]:
        """Return the files to read before judging these must-haves, one for each plan."""
        plans = dict.fromkeys(self._plan_for(name, phase) for name in asked)
        return tuple(dict.fromkeys(map(self.evidence_of, plans)))

    def command_for(self, asked: Iterable[str], phase: str) -> str:
        """Return the command to run before judging these must-haves."""
        return next((self.tasks(self._plan_for(name, phase))[0].check for name in asked), "")

    def evidence_of(self, plan: str) -> str:
        """Return the file that shows what a plan built: a module, else its last file."""
        files = self.tasks(plan)[0].files
        modules = [path for path in files if path.endswith(".py") and "__init__" not in path]
        return next((path for path in modules if not path.startswith("tests/")), files[-1])

    def _plan_for(self, name: str, phase: str) -> str:
        """Return the plan that promises a must-have; criteria and requirements count as the first plan's."""
        if is_quick(phase):
            return phase
        owner, colon, rest = name.partition(":")
        if colon and rest[0] in "TD":
            return owner
        return f"{owner if colon else padded(phase)}-01"

    def _plans(self, ending: str = ".") -> ScriptedPlans:
        return ScriptedPlans(
            product=self.product,
            phases=self.phase_count,
            usage=not self.gap,
            ending=ending,
            asks=self.question,
            tdd=self.tdd,
            wide=self.wide,
        )

    def _phases(self) -> list[Json]:
        """Return the phases of the roadmap; each depends on the one before."""
        stored = self.phase_count > 1
        greeted = "parsed, greeted and stored" if stored else "parsed and greeted"
        phases: list[Json] = self.product.answer("phases", greeted=greeted)
        if not stored:
            phases[0]["requirements"].remove("STORE-01")
        return [
            {**phase, "depends_on": [str(number)] if number else []}
            for number, phase in enumerate(phases[: self.phase_count])
        ]


def _stated(name: str) -> list[str]:
    """Return the statements of the scenario's own idea that become *name*."""
    return [f"S{number}" for number, became in enumerate(_OWN_STATEMENTS, 1) if became == name]


def _naming(plans: list[Json], about: str) -> list[Json]:
    """Return the plans with the decisions of the prompt named in their first task."""
    if names := tuple(dict.fromkeys(_DECISION.findall(about))):
        plans[0]["tasks"][0]["action"] += f" Decided: {', '.join(names)}."
    return plans


def _serving(plans: list[Json], listed: tuple[str, ...]) -> list[Json]:
    """Return the plans with truths that serve all that the prompt lists, and nothing else.

    A person may have changed the roadmap since this scenario wrote it.
    """
    if not listed:
        return plans
    truths: list[Json] = [truth for plan in plans for truth in plan["truths"]]
    for truth in truths:
        truth["serves"] = [name for name in truth["serves"] if name in listed]
    served = {name for truth in truths for name in truth["serves"]}
    truths[-1]["serves"] += [name for name in listed if name not in served]
    for truth in truths:
        truth["serves"] = truth["serves"] or [listed[0]]
    return plans


def _phase_of(plan: str) -> str:
    return normal_phase(plan.rpartition("-")[0])


def is_accepted(reply: str) -> bool:
    """Return whether a reply of ``task_done`` means that the task is committed, now or earlier."""
    # Only the beginning counts: the rest may quote anything, such as a check's output or a task's name.
    if reply.startswith("The human says: "):
        # A person's reply to a checkpoint accepts it, unless something is to be fixed first.
        return "\nFix that, then call task_done" not in reply
    return re.match(r"Task \d+ is (?:already )?(?:committed|done)\b", reply) is not None


def committed_before(about: str) -> frozenset[int]:
    """Return the numbers of the tasks that an executor's prompt says are committed already."""
    return frozenset(int(number) for listed in _COMMITTED.findall(about) for number in listed.split(","))


def deferred_in(said: str) -> frozenset[int]:
    """Return the numbers of the tasks that a prompt, a complaint or a reply of ``task_done`` defers."""
    return frozenset(int(number) for listed in _DEFERRED.findall(said) for number in listed.split(","))


def listed_files(about: str) -> list[str]:
    """Return the files that a reviewer's prompt lists, each as a JSON string in a list's item."""
    return [json.loads(name) for name in re.findall(r'^- ("(?:[^"\\\n]|\\.)*")$', about, re.MULTILINE)]


def changed_files(prompt: str) -> list[str]:
    """Return the files that a verifier's prompt lists as changed."""
    listed = re.findall(r'<data-\w+ name="files">\n(.*?)\n</data-', prompt, re.DOTALL)
    return re.findall(r"^- (.+)$", "\n".join(listed), re.MULTILINE)


_TEST_CASE = re.compile(r"^test cases that passed: ([^,\n]+)", re.MULTILINE)


def is_success(reply: str) -> bool:
    """Return whether a reply of ``run_command`` means that the command exited with 0."""
    return reply.partition("\n")[0].strip() == "exit 0"
