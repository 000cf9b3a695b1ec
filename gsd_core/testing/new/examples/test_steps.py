"""Ask when the step is due, and call it through its hook."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from gsd_core import Found, StepSituation, Verdict
from gsd_core.testing import FakeHost, a_phase, a_situation, a_step
from gsd_core.testing.conformance import check_execute_step, check_settings, check_steps
from gsd_core.testing.pytest_plugin import UseSettings

from . import steps as plugin

PASSED = Verdict(status="passed", verified="2030-01-01T00:00:00Z")


def test_the_kind_is_valid_and_the_settings_have_defaults(tmp_path: Path) -> None:
    [added] = check_steps(plugin, a_situation(tmp_path))

    assert added.before == "complete"
    assert check_settings(plugin) == (plugin.MyPluginSettings,)


def test_it_is_due_once_for_each_verification(tmp_path: Path, gsd_host: FakeHost) -> None:
    phase = a_phase(tmp_path, {"app.py": "x = 1\n"}, verdict=PASSED)
    [added] = check_steps(plugin)

    def due(verdict: Verdict) -> bool:
        return added.due(a_situation(tmp_path, phase=attrs.evolve(phase, verdict=verdict)))

    assert due(PASSED)
    result = check_execute_step(plugin, a_step(tmp_path, plugin.KIND, phase=phase), gsd_host)
    assert result is not None
    [file] = result.files
    (tmp_path / file.path).parent.mkdir(parents=True)
    (tmp_path / file.path).write_text(file.text)

    assert not due(PASSED)
    assert due(attrs.evolve(PASSED, verified="2030-01-01T01:00:00Z"))


@pytest.mark.parametrize(("lines", "gaps"), [(3, 0), (4, 1)])
def test_a_file_that_is_too_long_is_a_gap(
    tmp_path: Path, gsd_host: FakeHost, gsd_use_settings: UseSettings, lines: int, gaps: int
) -> None:
    gsd_use_settings(plugin.MyPluginSettings(max_lines=3))
    step = a_step(tmp_path, plugin.KIND, phase=a_phase(tmp_path, {"app.py": "x = 1\n" * lines}))

    result = check_execute_step(plugin, step, gsd_host, declines=a_step(tmp_path, "plan"))

    assert result is not None
    assert isinstance(result.outcome, Found)
    assert len(result.outcome.gaps) == gaps


def test_without_a_verification_it_is_not_due(tmp_path: Path) -> None:
    situation: StepSituation = a_situation(tmp_path)

    assert [added.due(situation) for added in check_steps(plugin)] == [False]
