"""The agent ``rehearsal``: the real Claude Code CLI against a scripted model on loopback.

It needs no account and no network, and plays a :class:`Scenario` for any idea. There are two ways
to play one: this agent, which exercises everything but the model, and :class:`FakeAgent` (with
``rehearsal.cli = false``, or as a plugin: ``gsd_plugins.rehearsal.fake``), which starts no process and takes
milliseconds. With ``--script`` a file says what goes wrong: see :mod:`.scenario_file`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from gsd_core import (
    AgentHost,
    AgentResult,
    AgentTask,
    ConfigError,
    Permanent,
    RunInfo,
    StepId,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_lifespan, gsd_run_agent, gsd_settings

from .active_rules import ActiveRules
from .fake import FakeAgent as FakeAgent
from .fake import doctor as doctor
from .own_files import OwnFiles
from .product import own_idea
from .scenario import Scenario as Scenario
from .scenario_file import ScenarioFile, read_scenario

if TYPE_CHECKING:
    from .server import RehearsalServer

PARALLEL = Path(__file__).parent / "templates" / "parallel.toml"
"""The scenario file of ``gsd demo --parallel``."""

_log = logging.getLogger(__name__)
SCRIPTED = "this was a rehearsal: the model's answers came from a script"
NOT_THE_IDEA = f"{SCRIPTED}, and the code does not do what the idea says"
"""What the last line of a run says about a rehearsal."""


@attrs.frozen(kw_only=True)
class _Rehearsal:
    """The rehearsal of one run: the agent, the scenario that it plays, and the files that it made."""

    agent: RehearsalServer | FakeAgent
    scenario: Scenario
    files: OwnFiles


_rehearsals: dict[str, _Rehearsal] = {}
"""The rehearsals of the runs in this process, by the run's id."""


@attrs.frozen(kw_only=True)
class RehearsalSettings:
    """The scenario to rehearse; *phases* is 1, 2 or 3, and 0 means that the seed decides.

    *script* is the path of a scenario file, which takes the place of *phases*, *question*, *gap* and
    *overloaded*. *cli*: whether the real Claude Code takes part; without it a rehearsal takes seconds.
    """

    script: Path | None = setting(None, flag="--script", help="rehearse what this scenario file says")
    cli: bool = setting(True, help="whether the real Claude Code takes part in a rehearsal", harmless=True)
    phases: int = setting(0, help="number of phases in the roadmap", harmless=True)
    here: bool = setting(
        False, flag="--here", help="rehearse even in a repository with work of its own", consent=True
    )
    question: bool = setting(True, help="whether the model asks its question", harmless=True)
    gap: bool = setting(True, help="whether the model leaves a gap", harmless=True)
    overloaded: bool = setting(
        True, help="whether one request is refused as if the API were overloaded", harmless=True
    )
    # The contents of the scenario file, read once: later, an agent could have changed it.
    file: ScenarioFile | None = attrs.field(
        default=attrs.Factory(lambda own: read_scenario(own.script) if own.script else None, takes_self=True),
        init=False,
        eq=False,
        repr=False,
    )

    def scenario(self, run: RunInfo) -> Scenario:
        """Return the scenario for a run's idea and seed."""
        said = self.file or self
        return Scenario(
            run.idea,
            run.seed or 0,
            phases=said.phases or None,
            question=said.question,
            gap=said.gap,
            tdd=self.file is not None and self.file.tdd,
            wide=self.file is not None and self.file.wide,
            overloaded=self.overloaded and self.file is None,
        )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``rehearsal``."""
    return (RehearsalSettings,)


@implements(gsd_lifespan)
def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Provide a server for the run; nothing is started before the first task."""
    return (_serve(run),)


@asynccontextmanager
async def _serve(run: RunInfo) -> AsyncGenerator[None]:
    # Imported late: http.server takes longer to import than everything else that `gsd --help` needs.
    from .server import RehearsalServer, record_of_files, rehearsal_folder

    chosen = settings_of(RehearsalSettings)
    if chosen.script and "rehearsal" not in run.agent.split(", "):
        # Somebody who believes that this is a rehearsal must not pay for a model.
        hint = "pass --agent rehearsal, or leave --script out"
        raise ConfigError(f"--script is for a rehearsal, and the agent is {run.agent!r}", hint=hint)
    scenario = chosen.scenario(run)
    folder = await asyncio.to_thread(rehearsal_folder, run) if chosen.file else None
    counts = folder / "rules.json" if folder else None
    rules = ActiveRules(rules=chosen.file.rules if chosen.file else (), file=counts)
    if "rehearsal" in run.agent.split(", ") and not scenario.product.as_asked:
        _log.warning(
            "this is a rehearsal: it plays a script, which builds a small program that greets, and does not "
            "build what the idea says"
        )
    files = OwnFiles(project=run.project, record=await asyncio.to_thread(record_of_files, run))
    async with RehearsalServer.open(run, scenario, rules) as server:
        agent = server if chosen.cli else FakeAgent(scenario, rules=rules)
        _rehearsals[run.id] = _Rehearsal(agent=agent, scenario=scenario, files=files)
        try:
            yield
        finally:
            del _rehearsals[run.id]
            for rule in rules.unused():
                why = "check its `when`; the run may also not have come that far"
                _log.warning("%s of %s has not applied: %s", rule, chosen.script, why)


def example_idea() -> str:
    """Return the idea whose program the script builds, for ``gsd demo``."""
    return own_idea()


def what_is_scripted() -> tuple[str, str]:
    """Return two lines for ``gsd demo``: what is scripted in a rehearsal, and what is real."""
    cli = settings_of(RehearsalSettings).cli
    scripted = "the model's words" if cli else "the model's words, and the agent: rehearsal.cli is off"
    real = "git and its commits, the plans' checks, the sandbox where one works, the verification"
    return (
        f"scripted: {scripted}; no account, no request to a model, no cost",
        f"real:     {'Claude Code, ' if cli else ''}{real}",
    )


@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Do *task* with the answers of the scenario, by Claude Code or without it."""
    from gsd_plugins.claude import run_claude

    rehearsal = _rehearsals.get(task.run)
    if rehearsal is None:
        hint = "enter the lifespan of the plugin for this run before running a task"
        raise Permanent(f"no rehearsal server for run {task.run!r}", hint=hint)
    await asyncio.to_thread(_keep_files_of_others, rehearsal, task)
    agent = rehearsal.agent
    if isinstance(agent, FakeAgent):
        result = await agent.run_agent(task, host)
    else:
        result = await run_claude(task, host, env=await agent.environment(task))
    note = SCRIPTED if rehearsal.scenario.product.as_asked else NOT_THE_IDEA
    return attrs.evolve(result, note=note) if result else None


def _keep_files_of_others(rehearsal: _Rehearsal, task: AgentTask) -> None:
    """Raise ``Permanent`` before a file is overwritten that no rehearsal made: at the start if possible."""
    scenario, files = rehearsal.scenario, attrs.evolve(rehearsal.files, project=task.tree)
    if task.role == "roadmapper":
        files.check(scenario.edits())
    elif task.role == "executor":
        plan = StepId.parse(task.step).detail
        files.claim(edit for one in scenario.tasks(plan, about=task.prompt) for edit in one.edits)
