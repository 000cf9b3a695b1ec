"""One step at a time, in the project's own folder: the facts are the same as before there was more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from . import harness as h

KNOWN = Path(__file__).parents[1] / "data" / "journals"
PLAYED: dict[str, dict[str, Any]] = {
    "plain": {},
    "question": {"question": True},
    "gap": {"gap": True},
    "overloaded": {"overloaded": True},
    "discuss": {"discuss": True},
    "tdd": {"tdd": True},
    "all": {"phases": 3, "question": True, "gap": True, "overloaded": True, "discuss": True, "tdd": True},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in ("plain", "all") else pytest.mark.long) for one in PLAYED]
)
def test_the_facts_of_a_run_are_those_of_the_version_that_did_one_step_at_a_time(
    tmp_path: Path, name: str
) -> None:
    root = h.repository(tmp_path / "project")
    h.do(h.request(root, h.one_phase(**PLAYED[name]), given=h.idea()))
    lines = [
        f"{fact.kind} {fact.step or '-'} {fact.attempt} {' '.join(sorted(fact.data))}"
        for fact in h.facts(root)
    ]

    # Written by the version before; a scenario that changes writes its file anew.
    assert lines == (KNOWN / f"{name}.txt").read_text(encoding="utf-8").splitlines()
