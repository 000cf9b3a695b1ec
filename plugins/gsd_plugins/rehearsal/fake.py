"""An agent that plays a scenario without the CLI and without any process, in milliseconds.

This module is also a plugin, for tests that start ``gsd`` in a separate process:
``gsd run idea.md -p gsd_plugins.rehearsal.fake --agent fake``. The settings of its section can be set by
variables, too: ``GSD_FAKE_IDEA``, ``GSD_FAKE_SEED``, ``GSD_FAKE_PHASES`` …
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from gsd_core import (
    AgentHost,
    AgentResult,
    AgentTask,
    Finding,
    Permanent,
    RunInfo,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_doctor, gsd_lifespan, gsd_run_agent, gsd_settings

from .active_rules import ActiveRules
from .scenario import Scenario

if TYPE_CHECKING:
    from .replies import Replies


@attrs.define(eq=False)
class FakeAgent:
    """An agent plugin that plays *scenario*, or else for each run what *choose* returns, by *rules*.

    It asks ``host.permit`` before it writes a file, asks the scenario's question, calls ``task_done``
    and follows its replies. From these it also learns which tasks are done, so an interrupted task
    can simply be run again. The scenario's overload happens once in each run, and never in a
    resumed conversation.
    """

    scenario: Scenario | None = None
    choose: Callable[[RunInfo], Scenario] = lambda run: Scenario(run.idea, run.seed or 0)
    rules: ActiveRules = attrs.field(factory=ActiveRules)
    _runs: dict[str, Scenario] = attrs.field(factory=dict[str, Scenario], init=False)
    _models: dict[str, Replies] = attrs.field(factory=dict[str, "Replies"], init=False)
    _prompts: dict[str, str] = attrs.field(factory=dict[str, str], init=False)

    @implements(gsd_lifespan)
    def lifespan(self, run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
        """Keep the run's scenario for as long as the run lasts."""
        yield self._during(run)

    @asynccontextmanager
    async def _during(self, run: RunInfo) -> AsyncGenerator[None]:
        self._runs[run.id] = self.scenario or self.choose(run)
        try:
            yield
        finally:
            del self._runs[run.id]

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task* with the answers of the scenario."""
        scenario = self.scenario or self._runs.get(task.run)
        if scenario is None:
            hint = "give it a scenario, or enter its lifespan for this run"
            raise Permanent(f"the fake agent has no scenario for run {task.run!r}", hint=hint)
        # Imported late: `gsd --help` loads this module, and http.server takes longer than all the rest.
        from .in_process import InProcess
        from .replies import Replies

        model = self._models.setdefault(task.run, Replies(scenario, self.rules))
        if (conversation := task.conversation) is not None:
            # A model remembers its conversation: the scenario looks things up in all of its prompts.
            before = self._prompts.get(conversation.id, "") if conversation.resume else ""
            prompts = self._prompts[conversation.id] = f"{before}\n{task.prompt}".lstrip()
            task = attrs.evolve(task, prompt=prompts)
            model.refuses = model.refuses and not conversation.resume
        call = self.rules.begin_call(task.step)
        return await InProcess(task=task, host=host, model=model, call=call).run()


@implements(gsd_doctor)
def doctor() -> Iterable[Finding]:
    """Say that the scripted turns are counted and have a price, so that a budget can be rehearsed."""
    message = "what its turns would cost is counted"
    yield Finding(name="scripted model", ok=True, message=message, reports=("dollars", "tokens", "turns"))


@attrs.frozen(kw_only=True)
class FakeSettings:
    """The scenario to play; *idea* is the path of a document to use instead of the run's own idea.

    *seed* is used if the run has none. *phases* is 1, 2 or 3; 0 means that the seed decides.
    """

    idea: str = setting("")
    seed: int = setting(0)
    phases: int = setting(0)
    question: bool = setting(True)
    gap: bool = setting(True)
    overloaded: bool = setting(True)
    discuss: bool = setting(False)
    wide: bool = setting(False)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``fake``."""
    return (FakeSettings,)


def _by_settings(run: RunInfo) -> Scenario:
    chosen = settings_of(FakeSettings)
    return Scenario(
        Path(chosen.idea).read_text(encoding="utf-8") if chosen.idea else run.idea,
        chosen.seed if run.seed is None else run.seed,
        phases=chosen.phases or None,
        **attrs.asdict(chosen, filter=attrs.filters.exclude("idea", "seed", "phases")),
    )


_agent = FakeAgent(choose=_by_settings)
lifespan = _agent.lifespan
run_agent = _agent.run_agent
