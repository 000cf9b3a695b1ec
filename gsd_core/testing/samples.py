"""A sample of each value that hooks receive; keyword arguments set what a test is about.

::

    phase = a_phase(tmp_path, {"app.py": "x = 1"}, goal="It runs")
    inquiry = an_inquiry("Which database?", "SQLite", "PostgreSQL")
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from gsd_core.hookspecs import ProjectInfo, RunInfo
from gsd_core.model.agent import AgentTask, ToolUse
from gsd_core.model.event import Event
from gsd_core.model.ids import StepId, question_id
from gsd_core.model.notice import Notice
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.model.sandbox import ConfinedProcess, Place
from gsd_core.model.step import Idea, StepRequest, StepSituation
from gsd_core.model.usage import Spend
from gsd_core.planning.model import PhaseView, Plan, Planning, Task

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RUN = "r-test"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}
"""A schema for tasks that need one."""


def write_files(tree: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Write *files*, given as text by path in *tree*; return the paths."""
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text, encoding="utf-8")
    return tuple(files)


def make_repository(root: Path, files: Mapping[str, str]) -> None:
    """Make a repository in *root* with *files*, committed."""
    root.mkdir(parents=True, exist_ok=True)
    write_files(root, files)
    run_git(root, "init", "-q", "-b", "main", "--template=")
    with (root / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write("[user]\n\tname = Test\n\temail = test@localhost\n[commit]\n\tgpgSign = false\n")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "--no-verify", "-m", "docs: initialize the project")


def run_git(root: Path, *arguments: str) -> str:
    """Return what a command of git prints."""
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def a_plan(*files_modified: str, **changes: Any) -> Plan:
    """Return the executed plan ``01-01`` of phase 1, with one task that modified those files."""
    task = Task(number=1, name="Build it", files=files_modified, action="build it", done="it is built")
    plan = Plan(
        id="01-01",
        phase="1",
        name="Build",
        objective="Build it",
        files_modified=files_modified,
        tasks=(task,),
        path=".planning/phases/01-one/01-01-PLAN.md",
        summary=".planning/phases/01-one/01-01-SUMMARY.md",
    )
    return attrs.evolve(plan, **changes)


def a_phase(tree: Path, files: Mapping[str, str] | None = None, **changes: Any) -> PhaseView:
    """Write *files* to *tree* and return phase 1, whose one plan modified them."""
    paths = write_files(tree, files or {})
    phase = PhaseView(
        number="1",
        name="One",
        project=tree,
        goal="The first thing works",
        criteria=("it works",),
        directory=".planning/phases/01-one",
        plans=(a_plan(*paths),),
        listed=("01-01",),
    )
    return attrs.evolve(phase, **changes)


def a_step(tree: Path, kind: str = "plan", **changes: Any) -> StepRequest:
    """Return the first attempt at a step of *kind*, in phase 1 of the project *tree*."""
    phase = changes.pop("phase", None) or a_phase(tree)
    step_kind: Any = kind
    detail = "01-01" if kind == "execute" else ""
    step = StepRequest(
        id=str(StepId(step_kind, "" if kind == "init" else phase.number, detail)),
        run=RUN,
        kind=step_kind,
        project=tree,
        tree=tree,
        phase=None if kind == "init" else phase,
        plan=phase.plans[0] if kind == "execute" else None,
        idea=Idea(name="idea.md", text="# A thing\n\nIt does something.\n", sha256="0" * 64),
        planning=Planning(name="A thing", phases=(phase,)),
        now=NOW,
    )
    return attrs.evolve(step, **changes)


def a_situation(tree: Path, **changes: Any) -> StepSituation:
    """Return what decides whether a step is due: phase 1 of the project *tree*, and no completed step."""
    phase = changes.pop("phase", None) or a_phase(tree)
    planning = Planning(name="A thing", phases=(phase,))
    return attrs.evolve(StepSituation(project=tree, planning=planning, phase=phase), **changes)


def a_task(tree: Path, prompt: str = "Describe the project.", **changes: Any) -> AgentTask:
    """Return a task for an agent: a verifier that reads *tree*."""
    task = AgentTask(step="1/verify", role="verifier", prompt=prompt, tree=tree, run=RUN)
    return attrs.evolve(task, **changes)


def a_question(text: str, *labels: str, **changes: Any) -> Question:
    """Return a question with an option for each label; the first is recommended."""
    options = tuple(Option(label=label, recommended=n == 0) for n, label in enumerate(labels))
    number = question_id(RUN, "1/plan", "", text, list(labels))
    return attrs.evolve(Question(id=number, text=text, options=options), **changes)


def an_inquiry(text: str = "Which one?", *labels: str, **changes: Any) -> Inquiry:
    """Return an inquiry with one question; its options are ``This`` and ``That`` if there are no labels."""
    question = a_question(text, *(labels or ("This", "That")))
    return attrs.evolve(Inquiry(step="1/plan", questions=(question,), reason="the plan needs it"), **changes)


def a_notice(title: str = "Phase 1 is done", **changes: Any) -> Notice:
    """Return a notification."""
    notice = Notice(key="phase-1", type="progress", title=title, body="All is well.", run=RUN)
    return attrs.evolve(notice, **changes)


def a_use(tree: Path, name: str = "Bash", **changes: Any) -> ToolUse:
    """Return an agent's use of a tool in *tree*: ``Bash`` runs ``ls``, other tools use ``app.py``."""
    given = {"command": "ls"} if name == "Bash" else {"file_path": str(tree / "app.py")}
    use = ToolUse(step="1/execute/01-01", name=name, input=given, asked_by="agent", tree=tree)
    return attrs.evolve(use, **changes)


def a_process(tree: Path, *command: str, **changes: Any) -> ConfinedProcess:
    """Return a process that may write in *tree* and in a new home folder beside it, ``true`` by default."""
    home = tree.parent / f"{tree.name}-home"
    home.mkdir(exist_ok=True)
    process = ConfinedProcess(
        command=command or ("true",),
        cwd=tree,
        environment={"PATH": "/usr/bin:/bin", "HOME": str(home), "WORD": "hello"},
        places=(Place(path=home, source=home, writable=True), Place(path=tree, source=tree, writable=True)),
        home=home,
    )
    return attrs.evolve(process, **changes)


def a_spend(**changes: Any) -> Spend:
    """Return what a run has spent after its first agent call."""
    spend = Spend(run=RUN, step="1/plan", spent=Decimal("0.10"), reserved=None, calls=1)
    return attrs.evolve(spend, **changes)


def an_event(name: Any = "step.completed", **changes: Any) -> Event:
    """Return an event."""
    return attrs.evolve(Event(seq=1, name=name, at=NOW, run=RUN, step="1/plan"), **changes)


def a_run(project: Path, **changes: Any) -> RunInfo:
    """Return a run without a terminal."""
    return attrs.evolve(RunInfo(id=RUN, project=project, no_input=True, idea="# A thing\n"), **changes)


def a_project(root: Path, **changes: Any) -> ProjectInfo:
    """Return a project with an empty ``config.json``."""
    return attrs.evolve(ProjectInfo(root=root), **changes)
