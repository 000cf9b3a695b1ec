"""Tools for testing plugins: fakes instead of mocks, sample values, hooks without installed plugins.

:mod:`.conformance` checks that a plugin honors the contract of a hook. Only :mod:`.pytest_plugin`, which has
the fixtures, needs pytest.
"""

from .fakes import FakeAgentHost as FakeAgentHost
from .fakes import FakeClock as FakeClock
from .fakes import FakeHost as FakeHost
from .fakes import RecordingNotifier as RecordingNotifier
from .fakes import ScriptedHuman as ScriptedHuman
from .registry import make_hooks as make_hooks
from .registry import make_manager as make_manager
from .samples import a_notice as a_notice
from .samples import a_phase as a_phase
from .samples import a_plan as a_plan
from .samples import a_process as a_process
from .samples import a_project as a_project
from .samples import a_question as a_question
from .samples import a_run as a_run
from .samples import a_situation as a_situation
from .samples import a_spend as a_spend
from .samples import a_step as a_step
from .samples import a_task as a_task
from .samples import a_use as a_use
from .samples import an_event as an_event
from .samples import an_inquiry as an_inquiry
from .small_run import SmallRun as SmallRun
from .small_run import run_small as run_small
