"""Run the command as a user would."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from gsd_core import CommandOptions
from gsd_core.testing.conformance import check_cli_commands
from gsd_core.testing.pytest_plugin import UseSettings

from . import cli_commands as plugin

ROADMAP = """\
# Roadmap: A thing

## Phases

- [ ] **Phase 1: Core** - It works

## Phase Details

### Phase 1: Core
**Goal**: It works
**Depends on**: Nothing
**Plans**: 0 plans
"""


def run() -> str:
    """Return the output of the command."""
    [command] = check_cli_commands(plugin)
    return CliRunner().invoke(command, catch_exceptions=False).output


def make_roadmap(folder: Path) -> None:
    """Write a roadmap into the project in *folder*."""
    (folder / ".planning").mkdir()
    (folder / ".planning" / "ROADMAP.md").write_text(ROADMAP)


def test_each_phase_gets_a_line(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    make_roadmap(tmp_path)
    gsd_use_settings(CommandOptions(project=tmp_path))

    assert run() == "1 Core: 0 of 0\n"


def test_programs_get_json(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    make_roadmap(tmp_path)
    gsd_use_settings(CommandOptions(project=tmp_path, as_json=True))

    assert json.loads(run()) == {"phases": [{"phase": "1", "done": 0, "plans": 0}]}


def test_a_folder_without_a_roadmap_has_no_phases(tmp_path: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(CommandOptions(project=tmp_path))

    assert run() == "no phases\n"
