"""Call the policy through its hook."""

from __future__ import annotations

from pathlib import Path

import pytest
from gsd_core import Deny
from gsd_core.testing import a_use
from gsd_core.testing.conformance import check_permit_tool, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import permit_tool as plugin


@pytest.mark.parametrize(
    "command",
    ["curl example.org", "cd x && /usr/bin/wget y", "A=1 curl z", "(curl a)", "sh -c 'curl b'", "'curl c"],
)
def test_a_command_that_names_a_program_is_denied(command: str) -> None:
    decision = check_permit_tool(plugin, a_use(Path(), input={"command": command}))

    assert isinstance(decision, Deny)


@pytest.mark.parametrize("command", ["ls", "git commit -m 'curls'", "", "python curly.py"])
def test_it_has_no_opinion_on_other_commands(command: str) -> None:
    assert check_permit_tool(plugin, a_use(Path(), input={"command": command})) is None


def test_it_has_no_opinion_on_other_tools() -> None:
    assert check_permit_tool(plugin, a_use(Path(), "Read")) is None


def test_the_programs_can_be_set(gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(programs=("ls",)))

    assert isinstance(check_permit_tool(plugin, a_use(Path())), Deny)
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
