"""Fixtures for testing plugins: ``pytest_plugins = ["gsd_core.testing.pytest_plugin"]``.

They are not loaded automatically: put that line into your ``conftest.py`` or a test module. Test modules may
import the types of the fixtures from here too, which is why pytest must not try to rewrite this module
(PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gsd_core.planning.model import PhaseView
from gsd_core.plugins.calling import Hooks
from gsd_core.settings import bind_settings

from .fakes import FakeAgentHost, FakeClock, FakeHost
from .registry import make_hooks
from .samples import a_phase
from .small_run import SmallRun, run_small

MakeHooks: TypeAlias = Callable[..., Hooks]
MakePhase: TypeAlias = Callable[..., PhaseView]
UseSettings: TypeAlias = Callable[..., None]
RunSmall: TypeAlias = Callable[..., SmallRun]


@pytest.fixture
def gsd_hooks() -> MakeHooks:
    """Return :func:`gsd_core.testing.make_hooks`: the hooks of exactly the plugins that a test names."""
    return make_hooks


@pytest.fixture
def gsd_phase(tmp_path: Path) -> MakePhase:
    """Return a function that makes phases: ``gsd_phase({"app.py": "x = 1"}, goal="It runs")``.

    The files are written to ``tmp_path``.
    """

    def make(files: Mapping[str, str] | None = None, **changes: Any) -> PhaseView:
        return a_phase(tmp_path, files, **changes)

    return make


@pytest.fixture
def gsd_host() -> FakeHost:
    """Return the host of a step; set its ``agent``, ``answers`` and ``checks`` as the test needs."""
    return FakeHost()


@pytest.fixture
def gsd_agent_host() -> FakeAgentHost:
    """Return the host of an agent; set its ``policy``, ``answers`` and ``replies`` as the test needs."""
    return FakeAgentHost()


@pytest.fixture
def gsd_clock() -> FakeClock:
    """Return a clock that the test moves."""
    return FakeClock()


@pytest.fixture
def gsd_use_settings() -> Generator[UseSettings]:
    """Return ``use(MySettings(…), …)``, which sets what ``settings_of`` returns until the test ends."""
    with ExitStack() as stack:
        bound: dict[type, object] = {}

        def use(*values: object) -> None:
            bound.update({type(value): value for value in values})
            stack.enter_context(bind_settings(dict(bound)))

        yield use


@pytest.fixture
def gsd_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSmall:
    """Return ``gsd_run(plugin, …)``: a whole run of a small project in ``tmp_path``, without Claude Code.

    Its arguments are those of :func:`gsd_core.testing.run_small`. The user's own settings of gsd and git have
    no effect, and the list of the user's journals stays as it is.
    """
    for name in [name for name in os.environ if name.startswith("GSD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    runs = itertools.count(1)

    def run(*plugins: object, **options: Any) -> SmallRun:
        return run_small(tmp_path / f"run-{next(runs)}", *plugins, **options)

    return run
