"""The detector on small trees, through its hook."""

from __future__ import annotations

from pathlib import Path

import gsd_plugin_example_gaps as detector
import pytest

from gsd_core import Gap, GapReport, PhaseView, Plan, bind_settings
from gsd_core.testing.conformance import check_find_gaps, check_settings


def phase(tree: Path, **files: str | bytes) -> PhaseView:
    """A phase whose only plan modified these files; ``_`` in a name stands for a dot."""
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (tree / name.replace("_", ".")).write_bytes(data)
    paths = tuple(name.replace("_", ".") for name in files)
    return PhaseView(
        number="1", name="one", project=tree, plans=(Plan(id="01-01", phase="1", files_modified=paths),)
    )


def gaps(view: PhaseView) -> list[Gap]:
    found = check_find_gaps(detector, view)
    assert not isinstance(found, GapReport)
    return list(found)


def test_a_leftover_without_an_issue_is_a_gap_about_its_file(tmp_path: Path) -> None:
    [gap] = gaps(phase(tmp_path, app_py="x = 1\n# TODO: time zones\n# FIXME later\n"))

    assert (gap.about, gap.status) == ("app.py", "partial")
    assert gap.reason == "2 without an issue, the first in line 2"
    assert gap.evidence == "app.py:2: # TODO: time zones\napp.py:3: # FIXME later"


@pytest.mark.parametrize("text", ["# TODO(#12): time zones", "# FIXME see #3", "todos = 1", "", "# AUTODOC"])
def test_what_an_issue_keeps_and_what_only_looks_like_it_is_no_gap(tmp_path: Path, text: str) -> None:
    assert gaps(phase(tmp_path, app_py=text)) == []


def test_only_files_of_the_phase_within_the_project_are_read(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "outside.py").write_text("# TODO: outside")
    (tree / "other.py").write_text("# TODO: another phase's")
    plan = Plan(id="01-01", phase="1", files_modified=("../outside.py", "gone.py", "."))

    assert gaps(PhaseView(number="1", name="one", project=tree, plans=(plan,))) == []


def test_a_file_that_is_no_text_harms_nothing(tmp_path: Path) -> None:
    assert gaps(phase(tmp_path, image_png=b"\xff\xfe\x00", huge_txt="# TODO\n" * 200_000)) == []


def test_words_and_issues_are_settings(tmp_path: Path) -> None:
    view = phase(tmp_path, app_py="# TODO\n# LATER\n# LATER ABC-7\n")
    assert check_settings(detector) == (detector.ExampleGapsSettings,)

    with bind_settings(
        {detector.ExampleGapsSettings: detector.ExampleGapsSettings(("LATER",), r"[A-Z]+-\d+")}
    ):
        [gap] = gaps(view)
    assert gap.evidence == "app.py:2: # LATER"
