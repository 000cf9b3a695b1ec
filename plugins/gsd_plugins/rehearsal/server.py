"""The server of one run: a Messages API on loopback, and a separate home folder for Claude Code."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import attrs

from gsd_core import AgentTask, RunInfo
from gsd_plugins.claude import git_common_dir

from .active_rules import ActiveRules
from .api import MessagesApi
from .effects import UsageLimit
from .replies import Replies
from .scenario import Scenario

_USER_VARIABLES = ("ANTHROPIC_", "CLAUDE_CODE_OAUTH_", "CLAUDE_CODE_USE_")
"""Prefixes of the variables in a user's environment that would select a real model."""


@attrs.define(eq=False)
class RehearsalServer:
    """The API and the home of one run; both are created when the first task asks for them."""

    run: RunInfo
    scenario: Scenario
    rules: ActiveRules
    _exit_stack: AsyncExitStack
    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    _url: str = attrs.field(default="", init=False)
    _home: Path = attrs.field(factory=Path, init=False)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, run: RunInfo, scenario: Scenario, rules: ActiveRules | None = None
    ) -> AsyncGenerator[RehearsalServer]:
        """Provide a server for *run*, and stop it in the end."""
        async with AsyncExitStack() as stack:
            yield cls(run, scenario, rules or ActiveRules(), stack)

    async def environment(self, task: AgentTask) -> Mapping[str, str]:
        """Return the environment for Claude Code to do *task*; the first call starts the server."""
        async with self._lock:
            if not self._url:
                # Conversations are kept in the home. It is next to the journal, so that a resumed run finds
                # them again; without a repository there is no journal, and no run to resume.
                # A thread, because asyncio would leave the process behind if the call is cancelled.
                if home := await asyncio.to_thread(rehearsal_folder, self.run):
                    self._home = home
                else:
                    folder = TemporaryDirectory(prefix="gsd-rehearsal-")
                    self._home = Path(self._exit_stack.enter_context(folder))
                (self._home / "claude").mkdir(parents=True, exist_ok=True)
                api = MessagesApi(Replies(self.scenario, self.rules))
                self._url = self._exit_stack.enter_context(api).url
        call = await asyncio.to_thread(self.rules.begin_call, task.step)
        environment = claude_environment(task, self._url, self._home, call)
        if self.rules.of(UsageLimit):
            # Only an account that is logged in has a usage limit with a time; a key has a rate limit.
            environment |= {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-rehearsal"}
        return environment


def claude_environment(task: AgentTask, url: str, home: Path, call: int = 1) -> dict[str, str]:
    """Return the variables that make Claude Code send the requests of *task* to the API at *url* only.

    *call* is the number of the agent's call in the step.

    :class:`~gsd_plugins.rehearsal.replies.Replies` identifies the task of a request by its headers.
    """
    values = {"step": task.step, "role": task.role, "tree": os.fspath(task.tree), "call": str(call)}
    headers = [f"x-gsd-{name}: {quote(value)}" for name, value in values.items()]
    return {
        **{name: "" for name in os.environ if name.startswith(_USER_VARIABLES)},
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "rehearsal",
        "ANTHROPIC_CUSTOM_HEADERS": "\n".join(headers),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "DISABLE_AUTOUPDATER": "1",
        "HOME": str(home),
        "IS_SANDBOX": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def rehearsal_folder(run: RunInfo) -> Path | None:
    """Return the folder for what a rehearsal of *run* keeps; ``None`` without a repository."""
    common = git_common_dir(run.project)
    return common / "gsd" / "rehearsal" / run.id if common else None


def record_of_files(run: RunInfo) -> Path | None:
    """Return the file that lists what rehearsals made in the project of *run*; ``None`` without a repository.

    The projects of a repository share its git directory, so each has a file of its own.
    """
    common = git_common_dir(run.project)
    if common is None:
        return None
    below = os.path.relpath(run.project.resolve(), common.parent)
    name = hashlib.sha256(os.fsencode(below)).hexdigest()[:16]
    return common / "gsd" / "rehearsal" / f"files-{name}.json"
