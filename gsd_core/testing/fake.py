"""The :class:`~gsd_core.testing.agent.FakeAgent` as a plugin ``fake``, for a ``gsd`` in a process of its own.

``gsd run idea.md -p gsd_core.testing.fake --agent fake``. The settings of its section are
also variables: ``GSD_FAKE_IDEA``, ``GSD_FAKE_SEED``, ``GSD_FAKE_PHASES`` …
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from gsd_core.hookspecs import RunInfo, gsd_settings
from gsd_core.markers import implements
from gsd_core.settings import setting, settings_of

from .agent import FakeAgent, of_run
from .scenario import Scenario


@frozen(kw_only=True)
class FakeSettings:
    """What the scenario is like; *idea* is the path of a document in place of the run's own.

    *seed* counts if the run has none. *phases* is 1, 2 or 3; 0 leaves it to the seed.
    """

    idea: str = setting("")
    seed: int = setting(0)
    phases: int = setting(0)
    question: bool = setting(True)
    gap: bool = setting(True)
    overloaded: bool = setting(True)


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the section ``fake``."""
    return (FakeSettings,)


def _by_settings(run: RunInfo) -> Scenario:
    said = settings_of(FakeSettings)
    return evolve(
        of_run(run),
        idea_text=Path(said.idea).read_text(encoding="utf-8") if said.idea else run.idea,
        seed=said.seed if run.seed is None else run.seed,
        phases=said.phases or None,
        question=said.question,
        gap=said.gap,
        overloaded=said.overloaded,
    )


_agent = FakeAgent(choose=_by_settings)
gsd_lifespan = _agent.lifespan
gsd_run_agent = _agent.run_agent
