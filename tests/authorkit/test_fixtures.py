"""The fixtures and fakes, used as in a plugin author's tests."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from gsd_core import Activity, Allow, Deny, Usage, setting, settings_of
from gsd_core.hookspecs import gsd_notify
from gsd_core.testing import (
    FakeAgentHost,
    FakeClock,
    FakeHost,
    RecordingNotifier,
    a_notice,
    a_question,
    a_step,
    a_use,
)
from gsd_core.testing.pytest_plugin import MakeHooks, MakePhase, UseSettings

pytest_plugins = ["gsd_core.testing.pytest_plugin"]


@attrs.frozen(kw_only=True)
class Colors:
    """A section."""

    sky: str = setting("blue")


@attrs.frozen(kw_only=True)
class Sizes:
    """Another section."""

    sky: int = setting(1)


def test_hooks_come_only_from_the_plugins_that_a_test_names(gsd_hooks: MakeHooks) -> None:
    assert gsd_hooks(mine=RecordingNotifier()).plugins_of(gsd_notify) == ("mine",)


def test_a_phase_comes_with_its_files(gsd_phase: MakePhase, tmp_path: Path) -> None:
    phase = gsd_phase({"src/app.py": "x = 1\n"}, goal="It runs")

    assert phase.project == tmp_path
    assert (tmp_path / "src/app.py").read_text() == "x = 1\n"
    assert (phase.plans[0].files_modified, phase.goal) == (("src/app.py",), "It runs")


def test_settings_are_bound_until_the_test_ends(gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(Colors(sky="red"))
    gsd_use_settings(Sizes(sky=2))

    assert (settings_of(Colors).sky, settings_of(Sizes).sky) == ("red", 2)


def test_settings_of_another_test_are_forgotten() -> None:
    assert (settings_of(Colors).sky, settings_of(Sizes).sky) == ("blue", 1)


def test_each_test_gets_new_hosts_and_a_new_clock(
    gsd_host: FakeHost, gsd_agent_host: FakeAgentHost, gsd_clock: FakeClock
) -> None:
    assert (gsd_host.tasks, gsd_agent_host.calls, gsd_clock.slept) == ([], [], [])


def test_an_agent_host_permits_and_records(gsd_agent_host: FakeAgentHost, tmp_path: Path) -> None:
    use = a_use(tmp_path)

    async def work() -> None:
        assert await gsd_agent_host.permit(use) == Allow()
        assert isinstance(await gsd_agent_host.confirm(use, "it publishes"), Deny)
        [answer] = await gsd_agent_host.ask([a_question("Which?", "This", "That")])
        assert answer.chosen == ("This",)
        assert "committed" in await gsd_agent_host.call("task_done", {"task": 1})
        await gsd_agent_host.progress(Activity(kind="start"), Usage(turns=1))
        gsd_agent_host.started(7)

    asyncio.run(work())

    assert gsd_agent_host.uses == [use]
    assert gsd_agent_host.confirmed == [(use, "it publishes")]
    assert (gsd_agent_host.usages[0].turns, gsd_agent_host.pids) == (1, [7])


@pytest.mark.parametrize("kind", ["init", "discuss", "plan", "execute", "verify"])
def test_a_step_has_what_its_kind_needs(kind: str, tmp_path: Path) -> None:
    step = a_step(tmp_path, kind)

    assert (step.phase is None) == (kind == "init")
    assert (step.plan is not None) == (kind == "execute")


def test_a_sample_takes_changes() -> None:
    assert a_notice("Broken", type="error", level="error").level == "error"


@pytest.mark.slow
def test_pytest_loads_the_fixtures_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(gsd_clock):\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]

    without = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    named = [*command, "-p", "gsd_core.testing.pytest_plugin"]
    with_them = subprocess.run(named, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "fixture 'gsd_clock' not found" in without.stdout
    assert with_them.returncode == 0
