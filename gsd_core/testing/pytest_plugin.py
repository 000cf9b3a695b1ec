"""Fixtures for the tests of plugins: ``pytest_plugins = ["gsd_core.testing.pytest_plugin"]``.

Not loaded by itself: a test suite that wants them says so, in its ``conftest.py`` or in a test module,
which may import the fixtures' types from here as well (PYTEST_DONT_REWRITE: there is no ``assert``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gsd_core.planning.model import PhaseView
from gsd_core.plugins.calling import Hooks
from gsd_core.settings import bind_settings

from .agent_host import FakeAgentHost
from .clock import FakeClock
from .host import FakeHost
from .manager import make_hooks
from .samples import a_phase

MakeHooks: TypeAlias = Callable[..., Hooks]
MakePhase: TypeAlias = Callable[..., PhaseView]
UseSettings: TypeAlias = Callable[..., None]


@pytest.fixture
def gsd_hooks() -> MakeHooks:
    """Give :func:`gsd_core.testing.make_hooks`: hooks with the plugins that a test names, and no others."""
    return make_hooks


@pytest.fixture
def gsd_phase(tmp_path: Path) -> MakePhase:
    """Give a maker of phases: ``gsd_phase({"app.py": "x = 1"}, goal="It runs")`` writes the files."""

    def make(files: Mapping[str, str] | None = None, **changes: Any) -> PhaseView:
        return a_phase(tmp_path, files, **changes)

    return make


@pytest.fixture
def gsd_host() -> FakeHost:
    """Give a step's host; set its ``agent``, ``answers`` and ``checks`` to what the test is about."""
    return FakeHost()


@pytest.fixture
def gsd_agent_host() -> FakeAgentHost:
    """Give an agent's host; set its ``policy``, ``answers`` and ``replies`` to what the test is about."""
    return FakeAgentHost()


@pytest.fixture
def gsd_clock() -> FakeClock:
    """Give a clock that the test moves."""
    return FakeClock()


@pytest.fixture
def gsd_use_settings() -> Generator[UseSettings]:
    """Give ``use(MySettings(…), …)``: what ``settings_of`` finds until the test ends."""
    with ExitStack() as stack:
        bound: dict[type, object] = {}

        def use(*values: object) -> None:
            bound.update({type(value): value for value in values})
            stack.enter_context(bind_settings(dict(bound)))

        yield use
