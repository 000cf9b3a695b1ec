"""The fixtures of gsd_core for the tests of the examples.

A generated package names ``gsd_core.testing.pytest_plugin`` in its ``conftest.py`` instead; pytest allows
that at the top of a test suite only.
"""

from gsd_core.testing.pytest_plugin import gsd_agent_host, gsd_host, gsd_phase, gsd_run, gsd_use_settings

__all__ = ["gsd_agent_host", "gsd_host", "gsd_phase", "gsd_run", "gsd_use_settings"]
