"""The detector on small project trees, through its hook."""

from __future__ import annotations

from pathlib import Path

import gsd_plugin_example_gaps as detector
import pytest
from gsd_plugin_example_gaps import ExampleGapsSettings

from gsd_core import Gap, GapReport, PhaseView, Plan, bind_settings
from gsd_core.testing.conformance import check_find_gaps, check_settings


def phase(tree: Path, *files_modified: str) -> PhaseView:
    """Return a phase whose only plan modified these files."""
    plan = Plan(id="01-01", phase="1", files_modified=files_modified)
    return PhaseView(number="1", name="one", project=tree, plans=(plan,))


def find_gaps(view: PhaseView) -> list[Gap]:
    """Run the detector with the conformance checks of its hook."""
    found = check_find_gaps(detector, view)
    assert not isinstance(found, GapReport)
    return list(found)


def test_todos_without_an_issue_are_one_gap_per_file(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("x = 1\n# TODO: time zones\n# FIXME later\n")

    [gap] = find_gaps(phase(tmp_path, "app.py"))

    assert (gap.about, gap.status) == ("app.py", "partial")
    assert gap.reason == "2 without an issue, the first in line 2"
    assert gap.evidence == "app.py:2: # TODO: time zones\napp.py:3: # FIXME later"


@pytest.mark.parametrize("text", ["# TODO(#12): time zones", "# FIXME see #3", "todos = 1", "", "# AUTODOC"])
def test_todos_with_an_issue_and_similar_words_are_not_gaps(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.py").write_text(text)

    assert find_gaps(phase(tmp_path, "app.py")) == []


def test_only_the_phases_files_inside_the_project_are_read(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "outside.py").write_text("# TODO: outside")
    (tree / "link.py").symlink_to(tmp_path / "outside.py")
    (tree / "other.py").write_text("# TODO: another phase's")

    assert find_gaps(phase(tree, "../outside.py", "link.py", "missing.py", ".")) == []


def test_binary_and_huge_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "image.png").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge.txt").write_text("# TODO\n" * 200_000)

    assert find_gaps(phase(tmp_path, "image.png", "huge.txt")) == []


def test_words_and_issues_are_settings(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("# TODO\n# LATER\n# LATER ABC-7\n")
    assert check_settings(detector) == (ExampleGapsSettings,)

    configured = ExampleGapsSettings(words=("LATER",), issue=r"[A-Z]+-\d+")
    with bind_settings({ExampleGapsSettings: configured}):
        [gap] = find_gaps(phase(tmp_path, "app.py"))

    assert gap.evidence == "app.py:2: # LATER"
