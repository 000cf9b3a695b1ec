"""A run in this process, with the real plugins, a fake agent and a real repository."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from gsd_core.codec import unstructure
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import RunInfo, gsd_run_agent
from gsd_core.journal.inbox import put as put
from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, ToolUse
from gsd_core.model.question import Answer
from gsd_core.model.step import Idea
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.loading import collect_settings
from gsd_core.run.runtime import RunEnd, RunRequest
from gsd_core.run.sandbox import Sandbox
from gsd_core.run.start import run_project
from gsd_core.settings import CORE_SECTIONS, Layer, resolve
from gsd_core.testing import make_hooks
from gsd_plugins import budget, history, inplace, must_haves, native, permissions, retry, uat, worktree, yolo
from gsd_plugins.rehearsal import FakeAgent, Scenario
from gsd_plugins.yolo import YoloSettings

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
IDEA = "# Greeter\n\nA small program that greets people by name.\n"
BUILT_IN: dict[str, object] = {
    "native": native,
    "must_haves": must_haves,
    "history": history,
    "uat": uat,
    "permissions": permissions,
    "retry": retry,
    "inplace": inplace,
    "worktree": worktree,
    "yolo": yolo,
    "budget": budget,
}


def repository(root: Path) -> Path:
    """Make a repository with an identity, and no commit."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Tester")
    git(root, "config", "user.email", "tester@example.invalid")
    return root


def git(root: Path, *arguments: str) -> str:
    """Run git there and return what it prints."""
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout


def idea(text: str = IDEA) -> Idea:
    """Return the idea with that text."""
    return Idea(name="idea.md", text=text, sha256=hashlib.sha256(text.encode()).hexdigest())


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def one_phase(**more: Any) -> FakeAgent:
    """Return an agent for one phase with one plan of two tasks, in which nothing fails."""
    plain: dict[str, Any] = {"phases": 1, "question": False, "gap": False, "overloaded": False}
    return FakeAgent(Scenario(IDEA, **{**plain, **more}))


def plugin(hook: Callable[..., Any], function: Callable[..., Any], **options: bool) -> object:
    """Return a plugin with that one function."""
    implements(hook, **options)(getattr(function, "__func__", function))
    return type("Plugin", (), {"f": staticmethod(function)})()


Before = Callable[[AgentTask, AgentHost], Awaitable[AgentResult | None]]


@define(eq=False)
class Watched:
    """An agent that remembers its *tasks*; *before* may fail, or answer in the agent's place."""

    agent: FakeAgent
    before: Before | None = None
    tasks: list[AgentTask] = field(factory=list[AgentTask], init=False)

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task*."""
        self.tasks.append(task)
        result = await self.before(task, host) if self.before else None
        return result if result is not None else await self.agent.run_agent(task, host)

    def of(self, role: str) -> list[AgentTask]:
        """Return the tasks of that role."""
        return [task for task in self.tasks if task.role == role]


async def write(task: AgentTask, host: AgentHost, path: str, text: str) -> None:
    """Write a file as an agent does with its tool, which the core gets to know."""
    file = task.tree / path
    use = ToolUse(
        step=task.step,
        name="Write",
        input={"file_path": str(file), "content": text},
        asked_by="agent",
        tree=task.tree,
    )
    assert isinstance(await host.permit(use), Allow)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def answer(root: Path, question: str, *chosen: str, text: str = "") -> None:
    """Answer a question through the inbox, as ``gsd answer`` does."""
    given = Answer(question=question, chosen=chosen, text=text)
    put(journal(root), "answer", unstructure(given), by="tester")


def journal(root: Path) -> Path:
    """Return the path of the project's journal."""
    return root / ".git" / "gsd" / "journal.db"


def asked(root: Path) -> list[str]:
    """Return the ids of all questions that were asked, in their order."""
    inquiries = [fact.data["inquiry"] for fact in facts(root, "question.asked")]
    return [question["id"] for inquiry in inquiries for question in inquiry["questions"]]


def request(
    root: Path,
    agent: object,
    *,
    given: Idea | None = None,
    run: Mapping[str, Any] | None = None,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    options: Options | None = None,
    without: tuple[str, ...] = (),
    yes: bool = True,
    ablation: bool = False,
    **plugins: object,
) -> RunRequest:
    """Return a request with the built-in plugins except those *without*, *agent*, and *plugins*.

    Without *ablation*, checks do not run again without the work, which takes longer than the rest of a run.
    """
    chosen = {name: plugin for name, plugin in BUILT_IN.items() if name not in without}
    hooks: Hooks = make_hooks(fake=agent, **chosen, **plugins)
    classes = (*CORE_SECTIONS, *collect_settings(hooks))
    given_sections = {"run": {"agent": ["fake"], **(run or {})}, **(sections or {})}
    if not ablation:
        given_sections["limits"] = {"ablation": "0s", **given_sections.get("limits", {})}
    layer = Layer(origin="test", sections=given_sections)
    settings = resolve(classes, [layer])
    settings = evolve(settings, values={**settings.values, YoloSettings: YoloSettings(yes=yes)})
    return RunRequest(
        root=root,
        idea=given,
        settings=settings,
        hooks=hooks,
        plugins=(),
        info=RunInfo(id="", project=root, yes=yes, agent="fake"),
        options=options or Options(),
        clock=now,
    )


def no_sandbox() -> Sandbox:
    """Return what starts processes without confining them."""
    return Sandbox(root=Path(), hooks=make_hooks())


def quick(asked: RunRequest) -> RunRequest:
    """Return the request with a short grace period for plugins that do not end."""
    return evolve(asked, hooks=evolve(asked.hooks, grace=timedelta(seconds=0.2)))


def do(asked: RunRequest) -> RunEnd:
    """Run the request to its end."""
    return asyncio.run(run_project(asked))


def facts(root: Path, *kinds: str) -> list[Record]:
    """Return the journal's facts of those kinds; all if none is given."""
    with Journal.open(journal(root), clock=now, writable=False) as opened:
        return list(opened.events(kinds=kinds or None, facts_only=True))


def trailed(root: Path) -> list[tuple[str, str]]:
    """Return step and task of every commit that has them, oldest first."""
    form = (
        "%(trailers:key=GSD-Step,valueonly,separator=%x2C)|%(trailers:key=GSD-Task,valueonly,separator=%x2C)"
    )
    lines = git(root, "log", "--reverse", f"--format={form}").splitlines()
    return [(step, task) for step, _, task in (line.partition("|") for line in lines) if step]
