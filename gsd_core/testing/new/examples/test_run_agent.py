"""Call the agent through its hook, with an in-memory host."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from gsd_core import Permanent
from gsd_core.testing import FakeAgentHost, a_task
from gsd_core.testing.conformance import check_run_agent, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import run_agent as plugin

SCHEMA = {"type": "object"}


@pytest.fixture
def folder(tmp_path: Path, gsd_use_settings: UseSettings) -> Path:
    """Return the folder that the settings name."""
    gsd_use_settings(plugin.MyPluginSettings(folder=str(tmp_path)))
    return tmp_path


def test_a_stored_answer_is_replayed_and_other_roles_are_declined(
    folder: Path, gsd_agent_host: FakeAgentHost
) -> None:
    (folder / "verifier.json").write_text('{"verdicts": []}')

    result = check_run_agent(
        plugin, a_task(folder, schema=SCHEMA), gsd_agent_host, declines=a_task(folder, role="planner")
    )

    assert result is not None
    assert result.value == {"verdicts": []}
    assert gsd_agent_host.activities[0].text == "replayed the answer of the verifier"


def test_without_a_folder_every_task_is_declined(tmp_path: Path, gsd_agent_host: FakeAgentHost) -> None:
    assert check_run_agent(plugin, a_task(tmp_path), gsd_agent_host, declines=a_task(tmp_path)) is None


def test_invalid_json_is_a_permanent_failure(folder: Path, gsd_agent_host: FakeAgentHost) -> None:
    (folder / "verifier.json").write_text("{")

    with pytest.raises(Permanent, match=r"verifier\.json is not valid JSON"):
        asyncio.run(plugin.replay(a_task(folder), gsd_agent_host))


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
