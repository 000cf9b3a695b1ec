"""Settings of the agent ``rehearsal``."""

from __future__ import annotations

from attrs import frozen

from gsd_core import RunInfo, setting
from gsd_core.testing.scenario import Scenario


@frozen(kw_only=True)
class RehearsalSettings:
    """What is rehearsed; *phases* is 1, 2 or 3, and 0 leaves it to the seed."""

    phases: int = setting(0, help="how many phases the roadmap has")
    question: bool = setting(True, help="whether the model asks its question")
    gap: bool = setting(True, help="whether the model leaves a gap")
    overloaded: bool = setting(True, help="whether one request is refused for overload")

    def scenario(self, run: RunInfo) -> Scenario:
        """Return the scenario of a run's idea and seed."""
        return Scenario(
            run.idea,
            run.seed or 0,
            phases=self.phases or None,
            question=self.question,
            gap=self.gap,
            overloaded=self.overloaded,
        )
