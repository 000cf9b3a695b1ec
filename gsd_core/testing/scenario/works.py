"""What is planned for a product, phase by phase, and what carrying it out writes."""

from __future__ import annotations

from attrs import frozen

from .product import FileEdit, Product
from .work import USAGE, Job, Work, artifact, link


@frozen(kw_only=True)
class Works:
    """The plans for *product* in so many *phases*.

    *usage*: whether the one who writes README.md keeps to the plan and writes its usage.
    *mark* stands in front of an entry in a listing.
    """

    product: Product
    phases: int
    usage: bool = True
    mark: str = "-"
    asks: bool = True

    def of_phase(self, number: str) -> tuple[Work, ...]:
        """Return the first round's plans of a phase; none if the scenario does not know it."""
        known = {"1": self._first(), "2": (self._command_line(),), "3": (self._report(),)}
        return known[number] if number in list(known)[: self.phases] else ()

    def _first(self) -> tuple[Work, ...]:
        if self.phases == 1:
            return (self._entries(),)
        return self._entries(), self._store()

    def _entries(self) -> Work:
        p, alone = self.product, self.phases == 1
        readme = (self._readme(),) if alone else ()
        listing = Job(
            name="List entries with a mark in front",
            edits=(p.listing(self.mark), p.test("listing"), *readme),
            action=f"In {p.path('listing')} write `MARK` and `listing(entries)`, a line for each entry with "
            "the mark in front; ask which mark it is to be. Test the mark and the empty listing."
            + (" Write README.md: what it is, `## Usage` with an example, `## Develop`." if alone else ""),
            check="python3 -m unittest -q tests.test_entries tests.test_listing",
            done="Every entry is listed with the mark in front, and the tests pass",
            asks=self.asks,
        )
        return Work(
            name="Entries that are read, counted and listed",
            objective="Read entries from lines of text, count them by topic and list them",
            requirements=("CORE-01", "CORE-02", *(("DOC-01",) if alone else ())),
            truths=(
                "A line `topic: text` is read as an entry, and written again as the same line",
                "A line without a topic, or with an unknown one, is refused with what is wrong",
                "A listing has one line for each entry, with the chosen mark in front",
            ),
            artifacts=(
                artifact(p.path("entries"), "Reading and counting", min_lines=20, exports=["parse", "count"]),
                artifact(p.path("listing"), "The listing", contains="MARK", exports=["listing"]),
                *((USAGE,) if alone else ()),
            ),
            links=(link("tests/test_listing.py", p.path("listing"), "import", f"from {p.package}.listing"),),
            jobs=(self._reading(), listing),
        )

    def _reading(self) -> Job:
        p = self.product
        return Job(
            name="Read entries from lines of text",
            edits=(
                p.ignored(),
                p.module("init"),
                p.module("entries"),
                FileEdit(path="tests/__init__.py", content=f'"""Tests of {p.package}."""\n'),
                p.test("entries"),
            ),
            action=f"Make the package `{p.package}`. In {p.path('entries')} write `Entry` (topic, text), "
            f"`parse`, which refuses what is not `topic: text`, and `count`. "
            f"The topics are {', '.join(p.topics)}. Test them. Keep Python's byte code out of git.",
            check="python3 -m unittest -q tests.test_entries",
            done="Lines are read, bad ones are refused with a reason, and the tests pass",
        )

    def _store(self) -> Work:
        p = self.product
        store = Job(
            name="Keep entries in a file",
            edits=(p.module("store"), p.test("store")),
            action=f"In {p.path('store')} write `load(path)` and `save(path, entries)`: one line for each "
            "entry, UTF-8; no file is no entries. Test both.",
            check="python3 -m unittest -q tests.test_store",
            done="What was saved is loaded, and the tests pass",
        )
        readme = Job(
            name="Say what it is and how it is used",
            edits=(self._readme(),),
            action="Write README.md: what it is, `## Usage` with an example, "
            "`## Develop` with how to run the tests.",
            check='grep -q "^# " README.md',
            done="README.md says what it is, how it is used and how it is tested",
        )
        return Work(
            name="A file of entries, and a README",
            objective="Keep entries from one use to the next, and say how",
            depends_on=(1,),
            requirements=("STORE-01", "DOC-01"),
            truths=("Entries that were saved are the same when they are loaded",),
            artifacts=(
                artifact(p.path("store"), "Loading and saving", min_lines=10, exports=["load", "save"]),
                USAGE,
            ),
            links=(link(p.path("store"), p.path("entries"), "parse", r"from \.entries import parse"),),
            jobs=(store, readme),
        )

    def _readme(self) -> FileEdit:
        return self.product.readme(usage=self.section if self.usage else "")

    @property
    def section(self) -> str:
        return "usage" if self.phases == 1 else "usage_store"

    def _command_line(self) -> Work:
        p = self.product
        commands = Job(
            name="Add and list entries from the command line",
            edits=(p.module("cli"), p.module("main"), p.test("cli")),
            action=f"In {p.path('cli')} write `main(arguments)` with the commands add and list and "
            f"the option --file; `python3 -m {p.package}` runs it. "
            "A bad line is an error on stderr and exit code 1. Test it.",
            check="python3 -m unittest -q tests.test_cli",
            done="What was added is listed, a bad line is refused, and the tests pass",
        )
        manual = Job(
            name="Show the commands in the README",
            edits=(p.readme_with("commands"),),
            action="Add `## Command line` to README.md, before `## Develop`, "
            "with an example of each command.",
            check=f'grep -q "python3 -m {p.package} add" README.md && python3 -m unittest -q',
            done="README.md shows the commands",
        )
        return Work(
            name="A command line",
            objective=f"Use {p.title} without writing Python",
            requirements=("CLI-01", "CLI-02"),
            truths=(
                f"`python3 -m {p.package} add` keeps an entry and `list` shows it",
                "A bad line ends with exit code 1 and keeps nothing",
            ),
            artifacts=(
                artifact(p.path("cli"), "The commands", min_lines=20, exports=["main"]),
                artifact("README.md", "The commands, with examples", contains="## Command line"),
            ),
            links=(
                link(p.path("cli"), p.path("store"), "load and save", r"from \.store import load, save"),
                link(p.path("main"), p.path("cli"), "main", r"from \.cli import main"),
            ),
            jobs=(commands, manual),
        )

    def _report(self) -> Work:
        p = self.product
        table = Job(
            name="Count entries by topic in a report",
            edits=(p.module("report"), p.test("report")),
            action=f"In {p.path('report')} write `report(entries)`: a line for each topic with its number, "
            "the total last, the numbers aligned. Test it.",
            check="python3 -m unittest -q tests.test_report",
            done="The report has every topic and the total, and the tests pass",
        )
        command = Job(
            name="Report from the command line",
            edits=(p.report_command(), p.test("report_command")),
            action=f"Add the command report to {p.path('cli')}. "
            f"Test it by running `python3 -m {p.package} report`.",
            check="python3 -m unittest -q tests.test_report tests.test_report_command",
            done="The command prints the report, and its tests pass",
        )
        return Work(
            name="A report by topic",
            objective="See at a glance what there is",
            requirements=("REPORT-01",),
            truths=(f"`python3 -m {p.package} report` prints a line for each topic, and the total",),
            artifacts=(artifact(p.path("report"), "The report", min_lines=8, exports=["report"]),),
            links=(link(p.path("cli"), p.path("report"), "report", r"from \.report import report"),),
            jobs=(table, command),
        )
