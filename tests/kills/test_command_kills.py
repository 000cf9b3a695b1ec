"""Commands that do one thing, killed at calls of the system and typed again; see ``bench/kills.py``."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.e2e.project import Project

from .commands import CASES, Campaign

SEED = 20261101


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("name", ["phase add", "milestone complete"])
def test_a_killed_command_that_is_typed_again_ends_as_if_nothing_had_happened(
    name: str, tmp_path: Path
) -> None:
    [case] = [case for case in CASES if case.name == name]
    campaign, chance = Campaign(case, Project(tmp_path / "p")), random.Random(SEED)
    try:
        campaign.prepare()
        assert [one for _ in range(3) for one in campaign.kill_once(chance, at_call=True)] == []
    finally:
        campaign.project.clear()
