"""Call the detector through its hook, on small projects."""

from __future__ import annotations

from gsd_core import GapReport
from gsd_core.testing.conformance import check_find_gaps
from gsd_core.testing.pytest_plugin import MakePhase

from . import find_gaps as plugin


def test_a_conflict_marker_is_a_gap(gsd_phase: MakePhase) -> None:
    phase = gsd_phase({"app.py": "a = 1\n<<<<<<< HEAD\nb = 2\n"})

    found = check_find_gaps(plugin, phase)

    assert not isinstance(found, GapReport)
    [gap] = found
    assert (gap.about, gap.reason) == ("app.py", "conflict marker on line 2")


def test_a_clean_tree_has_no_gaps(gsd_phase: MakePhase) -> None:
    phase = gsd_phase({"app.py": "a = 1\n", "gone.py": ""})
    (phase.project / "gone.py").unlink()

    assert check_find_gaps(plugin, phase) == []
