"""A project whose journal a test writes, and ``gsd`` in this process."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import define, field
from click.testing import CliRunner, Result

from gsd_core import Inquiry, Option, Question
from gsd_core.cli.app import gsd
from gsd_core.cli.global_options import GlobalOptions
from gsd_core.cli.plugin_loading import choose_plugins, load_plugins
from gsd_core.cli.project_trust import examine, remember
from gsd_core.codec import unstructure
from gsd_core.journal.store import Journal
from gsd_core.machine.state import PhaseSnapshot, PlanSnapshot, Snapshot
from gsd_core.settings import journals_folder
from gsd_core.trust import KnownJournals

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J[red]x[/red]\u202e"
DATABASE = Question(
    id="q-1",
    text="Which database?",
    header="Database",
    options=(Option(label="SQLite", description="one file", recommended=True), Option(label="PostgreSQL")),
)


def call(*args: str | Path, stdin: str | None = None) -> Result:
    """Run ``gsd`` in this process, as its console script would."""
    return CliRunner().invoke(gsd, [str(arg) for arg in args], input=stdin, prog_name="gsd")


def said(*args: str | Path) -> Any:
    """Return the JSON that ``gsd … --json`` prints."""
    result = call(*args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def trust_everything(root: Path) -> None:
    """Trust all that the project at *root* wants, as a person at a terminal would."""
    loaded = load_plugins(choose_plugins(GlobalOptions(directory=root)), frozenset())
    remember(examine(loaded, root))


@define
class Bench:
    """A repository, and facts for its journal, a second apart."""

    root: Path
    run: str = "r-1"
    count: int = 0
    written: list[str] = field(factory=list[str])

    @property
    def journal(self) -> Path:
        """The path of the journal."""
        return self.root / ".git" / "gsd" / "journal.db"

    def fact(self, kind: str, step: str = "", /, *, attempt: int = 1, **data: Any) -> None:
        """Append a fact."""
        self.count += 1
        with Journal.open(self.journal, clock=lambda: BEGAN + timedelta(seconds=self.count)) as journal:
            journal.append(kind, data, run=self.run, step=step, attempt=attempt)
            known = KnownJournals(journals_folder())
            if not known.has(journal, self.root):
                known.add(journal, self.root, BEGAN)

    def start(self) -> None:
        """Record a run with three phases: one complete, one in progress, one pending."""
        self.fact("run.started", idea={"name": "idea.md", "text": "…", "sha256": "ab12"})
        self.fact("run.opened", pid=1, version="0.1.0", agent=["fake"], options={})
        seen = Snapshot(
            phases=(
                PhaseSnapshot(
                    number="1", name="Core", ticked=True, context=True, plans=(_plan("01-01", True),)
                ),
                PhaseSnapshot(
                    number="2", name="More", context=True, plans=(_plan("02-01", True), _plan("02-02"))
                ),
                PhaseSnapshot(number="3", name="Rest"),
            )
        )
        self.fact("project.observed", **unstructure(seen))

    def work(self) -> None:
        """Record an execution in progress, with a commit and its usage."""
        step = "2/execute/02-02"
        self.fact("attempt.started", step, kind="execute", phase="2", plan="02-02", executor="native")
        self.fact("task.committed", step, task="02-02/1", commit="abcdef0123", paths=["a.py"])
        usage = {"input_tokens": 1000, "output_tokens": 234, "dollars": "0.42", "basis": "reported"}
        self.fact("agent.closed", step, key="execute", ended="done", usage=usage)

    def ask(self, *questions: Question, step: str = "2/execute/02-02") -> None:
        """Record a question."""
        inquiry = Inquiry(step=step, questions=questions or (DATABASE,), reason="the plan leaves it open")
        self.fact("question.asked", step, inquiry=unstructure(inquiry), occasion="1")

    def close(self, outcome: str = "done", exit_code: int = 0, reason: str = "3 phases complete") -> None:
        """Record the end of the run."""
        self.fact("run.closed", outcome=outcome, exit=exit_code, reason=reason, dollars="0.42", commits=1)

    def inbox(self) -> list[dict[str, Any]]:
        """Return what other processes put into the inbox."""
        with Journal.open(self.journal, clock=lambda: BEGAN) as journal:
            return [{"kind": item.kind, "by": item.by, **item.data} for item in journal.take_inbox()]


def _plan(plan: str, done: bool = False) -> PlanSnapshot:
    return PlanSnapshot(id=plan, summary=done)


def repository(root: Path) -> Path:
    """Make a repository with an identity."""
    root.mkdir(parents=True, exist_ok=True)
    for command in (["init", "-q"], ["config", "user.name", "T"], ["config", "user.email", "t@example.org"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return root
