"""Run the command as a user would."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from gsd_core.testing.conformance import check_cli_commands

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


def run(folder: Path) -> str:
    """Return the output of the command."""
    [command] = check_cli_commands(plugin)
    return CliRunner().invoke(command, [str(folder)], catch_exceptions=False).output


def test_each_phase_gets_a_line(tmp_path: Path) -> None:
    (tmp_path / ".planning").mkdir()
    (tmp_path / ".planning" / "ROADMAP.md").write_text(ROADMAP)

    assert run(tmp_path) == "1 Core: 0 of 0\n"


def test_a_folder_without_a_roadmap_has_no_phases(tmp_path: Path) -> None:
    assert run(tmp_path) == "no phases\n"
