"""What tests of plugins need: fakes instead of mocks, hooks without discovery, a conformance kit.

Nothing here needs pytest.
"""

from .clock import FakeClock
from .host import FakeHost
from .human import ScriptedHuman
from .manager import make_hooks, make_manager
from .notify import RecordingNotifier

__all__ = ["FakeClock", "FakeHost", "RecordingNotifier", "ScriptedHuman", "make_hooks", "make_manager"]
