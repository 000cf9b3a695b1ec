"""The plans of a scenario for each phase, and the files that executing them writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from .product import FileEdit, Product

Json: TypeAlias = dict[str, Any]


@attrs.frozen(kw_only=True)
class ScriptedTask:
    """One task: the edits it makes and the *check* that proves it; *asks*: it asks the question first."""

    name: str
    edits: tuple[FileEdit, ...]
    action: str
    check: str
    done: str
    asks: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that the task writes."""
        return tuple(edit.path for edit in self.edits)

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

    def _tasks(self) -> list[Json]:
        if not self.behavior:
            return [task.to_json() for task in self.tasks]
        tests, code, _ = self.tasks
        files = [*code.files, *tests.files]
        return [{**code.to_json(), "name": self.name, "files": files, "behavior": self.behavior}]

    def to_json(self) -> Json:
        """Return the plan as a planner answers it."""
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
            "tasks": self._tasks(),
        }


def _artifact(path: str, provides: str, **more: Any) -> Json:
    return {"path": path, "provides": provides, **more}


def _link(source: str, target: str, via: str, pattern: str) -> dict[str, str]:
    return {"from": source, "to": target, "via": via, "pattern": pattern}


README_TRUTH = "README.md describes the project and how to use it"
README = _artifact("README.md", "project overview and usage", contains="## Usage")


@attrs.frozen(kw_only=True)
class ScriptedPlans:
    """The plans for *product* in a roadmap of *phases* phases.

    *usage*: whether the task that writes README.md includes the planned section on usage.
    *asks*: whether the first plan asks for the ending; *ending* is the one that greetings end with.
    *tdd*: whether the parsing of guests is a test-driven plan of its own.
    """

    product: Product
    phases: int
    usage: bool = True
    ending: str = "."
    asks: bool = True
    tdd: bool = False

    @property
    def usage_section(self) -> str:
        """The template of the section on usage: a single phase has no storage to show."""
        return "usage" if self.phases == 1 else "usage_store"

    def for_phase(self, number: str) -> tuple[ScriptedPlan, ...]:
        """Return the first round's plans of a phase; empty if it is not in the scenario's roadmap."""
        greetings = self._parsing_and_greeting()
        storage = () if self.phases == 1 else (self._storage(),)
        plans = {
            "1": (*(self._test_first(greetings) if self.tdd else (greetings,)), *storage),
            "2": (self._command_line(),),
            "3": (self._report(),),
        }
        return plans[number] if number in [*plans][: self.phases] else ()

    def _parsing_and_greeting(self) -> ScriptedPlan:
        p, alone = self.product, self.phases == 1
        write_readme = " Write README.md: an overview, `## Usage` with an example, `## Development`."
        parsing = ScriptedTask(
            name="Parse guests from lines of text",
            edits=(
                p.gitignore(),
                p.module("__init__"),
                p.module("guests"),
                FileEdit(path="tests/__init__.py", content=f'"""Tests of {p.package}."""\n'),
                p.test("guests"),
            ),
            action=f"Create the package `{p.package}`. In {p.path('guests')} write `Guest` (language, name), "
            "`parse`, which rejects a line that is not `language: name`, and `count`. "
            "The languages are English, French and Spanish. Add tests, "
            "and ignore Python's bytecode in .gitignore.",
            check="python3 -m unittest -q tests.test_guests",
            done="Valid lines are parsed, invalid ones are rejected with a reason, and the tests pass",
        )
        greeting = ScriptedTask(
            name="Greet guests in their language",
            edits=(p.greetings(self.ending), p.test("greetings"), *((self._readme(),) if alone else ())),
            action=f"In {p.path('greetings')} write `ENDING` and `greetings(guests)`, which returns one line "
            "for each guest in their language, with the ending. Ask how a greeting is to end. "
            f"Test the words, the ending and the empty list.{write_readme if alone else ''}",
            check="python3 -m unittest -q tests.test_guests tests.test_greetings",
            done="Each guest is greeted with the chosen ending, and the tests pass",
            asks=self.asks,
        )
        return ScriptedPlan(
            name="Parsing and greeting",
            objective="Parse guests from lines of text, count them by language and greet them",
            requirements=("CORE-01", "CORE-02", *(("DOC-01",) if alone else ())),
            truths={
                "A line `language: name` is parsed into a guest and formatted as the same line": (
                    "CORE-01",
                    "01:C1",
                ),
                "A line without a language or with an unknown one is rejected with a reason": (
                    "CORE-01",
                    "01:C1",
                ),
                "Each guest is greeted in their language, with the chosen ending": (
                    "CORE-02",
                    "01:C2",
                ),
                **({README_TRUTH: ("DOC-01",)} if alone else {}),
            },
            artifacts=(
                _artifact(p.path("guests"), "parsing and counting", min_lines=20, exports=["parse", "count"]),
                _artifact(p.path("greetings"), "the greetings", contains="ENDING", exports=["greetings"]),
                *((README,) if alone else ()),
            ),
            links=(
                _link(
                    "tests/test_greetings.py", p.path("greetings"), "import", f"from {p.package}.greetings"
                ),
            ),
            tasks=(parsing, greeting),
        )

    def _test_first(self, both: ScriptedPlan) -> tuple[ScriptedPlan, ScriptedPlan]:
        """Return the parsing as a test-driven plan, and the greetings as one that builds on it."""
        parsing, greeting = both.tasks
        tests = tuple(edit for edit in parsing.edits if edit.path.startswith("tests/"))
        code = tuple(edit for edit in parsing.edits if edit not in tests)
        cycle = (
            attrs.evolve(parsing, edits=tests),
            attrs.evolve(parsing, edits=code),
            attrs.evolve(parsing, edits=()),
        )
        own = dict([*both.truths.items()][:2])
        first = attrs.evolve(
            both,
            name="Parsing guests",
            objective="Parse guests from lines of text, and count them by language",
            requirements=("CORE-01",),
            truths=own,
            artifacts=both.artifacts[:1],
            links=(),
            tasks=cycle,
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

    def _storage(self) -> ScriptedPlan:
        p = self.product
        store = ScriptedTask(
            name="Store guests in a file",
            edits=(p.module("store"), p.test("store")),
            action=f"In {p.path('store')} write `load(path)` and `save(path, guests)`: one line for each "
            "guest, in UTF-8. A missing file has no guests. Test both.",
            check="python3 -m unittest -q tests.test_store",
            done="Saved guests can be loaded, and the tests pass",
        )
        # The check does not look for "## Usage": that is how the scenario's gap gets past its task.
        readme = ScriptedTask(
            name="Write the README",
            edits=(self._readme(),),
            action="Write README.md: an overview, `## Usage` with an example, "
            "`## Development` with how to run the tests.",
            check='grep -q "^# " README.md',
            done="README.md describes the project, its usage and its tests",
        )
        return ScriptedPlan(
            name="Storage and README",
            objective="Store guests between uses, and document how",
            depends_on=(2,) if self.tdd else (1,),
            requirements=("STORE-01", "DOC-01"),
            truths={
                "Guests are unchanged after they are saved and loaded": ("STORE-01",),
                README_TRUTH: ("DOC-01",),
            },
            artifacts=(
                _artifact(p.path("store"), "loading and saving", min_lines=10, exports=["load", "save"]),
                README,
            ),
            links=(_link(p.path("store"), p.path("guests"), "parse", r"from \.guests import parse"),),
            tasks=(store, readme),
        )

    def _readme(self) -> FileEdit:
        return self.product.readme(*((self.usage_section,) if self.usage else ()))

    def _command_line(self) -> ScriptedPlan:
        p = self.product
        commands = ScriptedTask(
            name="Greet guests from the command line",
            edits=(p.module("cli"), p.module("__main__"), p.test("cli")),
            action=f"In {p.path('cli')} write `main(arguments)` with the commands greet and list and "
            f"the option --file; `python3 -m {p.package}` runs it. "
            "An invalid line is an error on stderr and exit code 1. Add tests.",
            check="python3 -m unittest -q tests.test_cli",
            done="A guest is greeted and listed, an invalid line is rejected, and the tests pass",
        )
        manual = ScriptedTask(
            name="Document the commands in the README",
            edits=(p.readme_with("commands"),),
            action="Add `## Command line` to README.md, before `## Development`, "
            "with an example of each command.",
            check=f'grep -q "python3 -m {p.package} greet" README.md && python3 -m unittest -q',
            done="README.md documents the commands",
        )
        return ScriptedPlan(
            name="Command line",
            objective=f"Use {p.title} without writing Python",
            requirements=("CLI-01", "CLI-02"),
            truths={
                f"`python3 -m {p.package} greet` greets and stores a guest, and `list` shows it": (
                    "CLI-01",
                    "02:C1",
                ),
                "An invalid line exits with code 1 and is not stored": ("CLI-02", "02:C2"),
            },
            artifacts=(
                _artifact(p.path("cli"), "the commands", min_lines=20, exports=["main"]),
                _artifact("README.md", "examples of the commands", contains="## Command line"),
            ),
            links=(
                _link(p.path("cli"), p.path("store"), "load and save", r"from \.store import load, save"),
                _link(p.path("__main__"), p.path("cli"), "main", r"from \.cli import main"),
            ),
            tasks=(commands, manual),
        )

    def _report(self) -> ScriptedPlan:
        p = self.product
        table = ScriptedTask(
            name="Count guests by language in a report",
            edits=(p.module("report"), p.test("report")),
            action=f"In {p.path('report')} write `report(guests)`: one line for each language with its "
            "count, then the total, with aligned numbers. Add tests.",
            check="python3 -m unittest -q tests.test_report",
            done="The report has every language and the total, and the tests pass",
        )
        command = ScriptedTask(
            name="Add the report command",
            edits=(p.report_command(), p.test("report_command")),
            action=f"Add the command report to {p.path('cli')}. "
            f"Test it by running `python3 -m {p.package} report`.",
            check="python3 -m unittest -q tests.test_report tests.test_report_command",
            done="The command prints the report, and its tests pass",
        )
        return ScriptedPlan(
            name="Language report",
            objective="Show at a glance how many guests there are",
            requirements=("REPORT-01",),
            truths={
                f"`python3 -m {p.package} report` prints one line for each language, and the total": (
                    "REPORT-01",
                    "03:C1",
                    "03:C2",
                )
            },
            artifacts=(_artifact(p.path("report"), "the report", min_lines=8, exports=["report"]),),
            links=(_link(p.path("cli"), p.path("report"), "report", r"from \.report import report"),),
            tasks=(table, command),
        )


_TRUTH = re.compile(r"""^[\s\-*]*["']?truth["']?\s*:\s*["']?(.+?)["']?,?\s*$""", re.MULTILINE)
_NO_LICENSE = re.compile(r"no LICENSE|LICENSE (is )?missing", re.IGNORECASE)


MISSING_NOTE = "NOTES.md has no note {}"
"""What a gap of a scenario file says, so that the planner and the executor recognize it."""
_NO_NOTE = re.compile(MISSING_NOTE.format(r"(\d+)"))
_UNPROVEN = re.compile(r"the verdict is not proven|the verifier gave no valid verdict")
CHECKPOINT = ScriptedTask(name="Ask a person", edits=(), action="", check="", done="A person was asked")
"""A task for a person: the executor calls ``task_done``, and the core asks."""


def gap_plan(product: Product, usage_section: str, about: str) -> ScriptedPlan:
    """Return the plan that closes the gaps described in *about*.

    The scenario can add the README's usage, which is its own gap, the note that a gap of a scenario file
    lacks, and a license, which the example detector of the docs looks for. It promises every truth in
    *about*, because the planner's answer is rejected otherwise; the next verification finds the gaps that
    it could not close.
    """
    if _NO_LICENSE.search(about):
        task = ScriptedTask(
            name="Add a license",
            edits=(product.license(),),
            action="LICENSE is missing from the root: add one.",
            check="test -s LICENSE",
            done="The project has a license",
        )
        artifact = _artifact("LICENSE", "the license")
    elif number := _missing_note(about):
        task = ScriptedTask(
            name=f"Add note {number}",
            edits=(FileEdit(path="NOTES.md", content=f"- Note {number}: it works now.\n", append=True),),
            action=f"{MISSING_NOTE.format(number)}: add it.",
            check=f'grep -q "Note {number}:" NOTES.md',
            done=f"NOTES.md has note {number}",
        )
        artifact = _artifact("NOTES.md", "what was fixed", contains=f"Note {number}:")
    else:
        task = ScriptedTask(
            name="Add a usage section to the README",
            edits=(product.readme_with(usage_section),),
            action="README.md has no section `## Usage`: add one with an example, before `## Development`.",
            check='grep -q "^## Usage" README.md',
            done="README.md explains the usage",
        )
        artifact = README
    [file] = task.files
    return ScriptedPlan(
        name=f"{file} gap closure",
        objective=task.done,
        truths=dict.fromkeys(_TRUTH.findall(about) or [f"{file} contains what was promised"], ()),
        artifacts=(artifact,),
        tasks=(task,),
    )


def _missing_note(about: str) -> int:
    """Return the number of the note to add to NOTES.md for the gaps in *about*; 0 for other gaps."""
    if notes := _NO_NOTE.findall(about):
        # The prompt may quote the gaps of earlier rounds, too.
        return max(map(int, notes))
    if not _UNPROVEN.search(about):
        return 0
    # A verifier lied: nothing is wrong with the product, but a plan has to change something.
    return 1 + max(map(int, re.findall(r"Add note (\d+)", about)), default=0)


def unplanned_phase(product: Product, phase: str, requirements: tuple[str, ...] = ()) -> ScriptedPlan:
    """Return the plan for a phase that is not in the scenario's roadmap, such as one added by hand."""
    edit = product.search(phase)
    module = edit.path.removesuffix(".py").replace("/", ".")
    task = ScriptedTask(
        name="Search guests by word",
        edits=(product.gitignore(), edit),
        action=f"In {edit.path} write `containing(guests, word)`.",
        check=f'python3 -c \'from {module} import containing; assert containing(["One"], "one")\'',
        done="Guests whose line contains a word are found",
    )
    return ScriptedPlan(
        name="Search",
        objective=task.done,
        requirements=requirements,
        truths={"A search finds the guests whose line contains a word, ignoring case": requirements},
        artifacts=(_artifact(edit.path, "the search", exports=["containing"]),),
        tasks=(task,),
    )


def is_quick(name: str) -> bool:
    """Return whether *name* is that of a quick task (``001-slug``), and not a phase or the id of a plan."""
    return re.match(r"\d{3}-\D", name) is not None


def quick_plan(name: str) -> ScriptedPlan:
    """Return the plan of a quick task: it adds a line about itself to NOTES.md."""
    task = ScriptedTask(
        name=f"Note quick task {name[:3]}",
        edits=(FileEdit(path="NOTES.md", content=f"- Quick task {name[:3]} is done.\n", append=True),),
        action=f"Add a line about quick task {name[:3]} to NOTES.md.",
        check=f'grep -q "Quick task {name[:3]} is done" NOTES.md',
        done=f"NOTES.md says that quick task {name[:3]} is done",
    )
    return ScriptedPlan(
        name=f"Quick task {name[:3]}",
        objective=task.done,
        truths={task.done: ()},
        artifacts=(_artifact("NOTES.md", "notes", contains=f"Quick task {name[:3]} is done"),),
        tasks=(task,),
    )
