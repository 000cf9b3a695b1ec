"""What tests of plugins need: fakes instead of mocks, hooks without discovery, a conformance kit.

Nothing here needs pytest, but for :mod:`gsd_core.testing.pytest_plugin`, which gives it as fixtures.
"""

from .agent_host import FakeAgentHost
from .clock import FakeClock
from .host import FakeHost
from .human import ScriptedHuman
from .manager import make_hooks, make_manager
from .notify import RecordingNotifier
from .samples import (
    a_notice,
    a_phase,
    a_plan,
    a_project,
    a_question,
    a_run,
    a_spend,
    a_step,
    a_task,
    a_use,
    an_event,
    an_inquiry,
)

__all__ = [
    "FakeAgentHost",
    "FakeClock",
    "FakeHost",
    "RecordingNotifier",
    "ScriptedHuman",
    "a_notice",
    "a_phase",
    "a_plan",
    "a_project",
    "a_question",
    "a_run",
    "a_spend",
    "a_step",
    "a_task",
    "a_use",
    "an_event",
    "an_inquiry",
    "make_hooks",
    "make_manager",
]
