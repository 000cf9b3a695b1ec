"""Call the wrapper through its hook."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest
from gsd_core import StepRequest, StepResult
from gsd_core.testing import a_step
from gsd_core.testing.conformance import check_settings, check_wrap_step
from gsd_core.testing.pytest_plugin import UseSettings

from . import wrap_step as plugin


async def attempt(step: StepRequest, /) -> StepResult:
    """Succeed."""
    return StepResult(subject=f"docs: {step.id}")


def test_the_result_of_the_attempt_passes_through(tmp_path: Path) -> None:
    result = check_wrap_step(plugin, a_step(tmp_path), attempt)

    assert result.subject == "docs: 1/plan"


def test_a_slow_attempt_is_logged(
    tmp_path: Path, gsd_use_settings: UseSettings, caplog: pytest.LogCaptureFixture
) -> None:
    gsd_use_settings(plugin.MyPluginSettings(warn_after=timedelta(seconds=-1)))

    with caplog.at_level(logging.WARNING):
        check_wrap_step(plugin, a_step(tmp_path), attempt)

    assert "1/plan took" in caplog.text


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
