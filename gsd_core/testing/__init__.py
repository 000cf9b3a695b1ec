"""Tools for testing plugins: fakes instead of mocks, sample values, hooks without installed plugins.

:mod:`.conformance` checks that a plugin honors the contract of a hook. Only :mod:`.pytest_plugin`, which has
the fixtures, needs pytest.
"""

from .fakes import FakeAgentHost, FakeClock, FakeHost, RecordingNotifier, ScriptedHuman
from .registry import make_hooks, make_manager
from .samples import (
    a_notice,
    a_phase,
    a_plan,
    a_process,
    a_project,
    a_question,
    a_run,
    a_situation,
    a_spend,
    a_step,
    a_task,
    a_use,
    an_event,
    an_inquiry,
)
from .small_run import SmallRun, run_small

__all__ = [
    "FakeAgentHost",
    "FakeClock",
    "FakeHost",
    "RecordingNotifier",
    "ScriptedHuman",
    "SmallRun",
    "a_notice",
    "a_phase",
    "a_plan",
    "a_process",
    "a_project",
    "a_question",
    "a_run",
    "a_situation",
    "a_spend",
    "a_step",
    "a_task",
    "a_use",
    "an_event",
    "an_inquiry",
    "make_hooks",
    "make_manager",
    "run_small",
]
