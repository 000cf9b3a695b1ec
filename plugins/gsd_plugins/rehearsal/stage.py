"""Where a run is rehearsed: its API on loopback, and a home for Claude Code that is not the user's."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from urllib.parse import quote

from attrs import define, field

from gsd_core import AgentTask, RunInfo, settings_of
from gsd_core.testing.scenario import Scenario

from .api import MessagesApi
from .replies import Replies
from .settings import RehearsalSettings

_ELSEWHERE = ("ANTHROPIC_", "CLAUDE_CODE_OAUTH_", "CLAUDE_CODE_USE_")


@define(eq=False)
class Stage:
    """The API of one run and a home for Claude Code; both are made for the first task."""

    run: RunInfo
    scenario: Scenario
    _opened: AsyncExitStack = field(alias="opened")
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _place: tuple[str, Path] | None = field(default=None, init=False)

    async def environment(self, task: AgentTask) -> Mapping[str, str]:
        """Return what makes Claude Code talk to the API about *task*, and to nobody else."""
        async with self._lock:
            url, home = self._place = self._place or await self._set_up()
        return {
            **_silenced(os.environ),
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "rehearsal",
            "ANTHROPIC_CUSTOM_HEADERS": _headers(task),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
            "DISABLE_AUTOUPDATER": "1",
            "HOME": str(home),
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    async def _set_up(self) -> tuple[str, Path]:
        home = await self._home()
        (home / "claude").mkdir(parents=True, exist_ok=True)
        return self._opened.enter_context(MessagesApi(Replies(self.scenario))).url, home

    async def _home(self) -> Path:
        """Return a folder that is there again when the run is resumed: beside the journal.

        Where there is no repository there is nothing to resume either.
        """
        if common := await _git_common_dir(self.run.project):
            return common / "gsd" / "rehearsal" / self.run.id
        return Path(self._opened.enter_context(TemporaryDirectory(prefix="gsd-rehearsal-")))


@define(eq=False)
class Stages:
    """The stages of the runs that this process has under way, by the run's id."""

    _by_run: dict[str, Stage] = field(factory=dict[str, Stage], init=False)

    def find(self, run: str) -> Stage | None:
        """Return the run's stage."""
        return self._by_run.get(run)

    @asynccontextmanager
    async def of(self, run: RunInfo) -> AsyncGenerator[None]:
        """Have a stage for *run* for as long as the context lasts."""
        scenario = settings_of(RehearsalSettings).scenario(run)
        async with AsyncExitStack() as opened:
            self._by_run[run.id] = Stage(run=run, scenario=scenario, opened=opened)
            try:
                yield
            finally:
                del self._by_run[run.id]


async def _git_common_dir(project: Path) -> Path | None:
    # In a thread: a process of asyncio's would be left behind when the call is cancelled.
    return await asyncio.to_thread(_ask_git, project)


def _ask_git(project: Path) -> Path | None:
    command = ("git", "-C", os.fspath(project), "rev-parse", "--git-common-dir")
    done = subprocess.run(command, stdin=DEVNULL, capture_output=True, check=False)
    if done.returncode:
        return None
    return (project / os.fsdecode(done.stdout).rstrip("\n")).resolve()


def _silenced(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return, empty, every variable by which a user's environment would lead to another model."""
    return {name: "" for name in environment if name.startswith(_ELSEWHERE)}


def _headers(task: AgentTask) -> str:
    said = {"step": task.step, "role": task.role, "tree": os.fspath(task.tree)}
    return "\n".join(f"x-gsd-{name}: {quote(value)}" for name, value in said.items())
