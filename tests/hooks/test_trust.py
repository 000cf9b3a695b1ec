"""The list of trusted plugin files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gsd_core.plugins.importing import Trust


def test_trusted_files_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "gsd" / "trust.json"
    Trust(path).add("aa", "license")
    Trust(path).add("bb", "other")

    assert Trust(path).trusted() == {"aa", "bb"}
    assert json.loads(path.read_text())["plugins"] == {"aa": "license", "bb": "other"}
    assert [file.name for file in path.parent.iterdir()] == ["trust.json"]


def test_nothing_is_trusted_in_another_project_even_if_the_list_came_along(tmp_path: Path) -> None:
    Trust(tmp_path / "one" / "trust.json").add("aa", "license")
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    assert Trust(tmp_path / "two" / "trust.json").trusted() == frozenset()
    assert Trust(tmp_path / "three" / "trust.json").trusted() == frozenset()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"plugins": 1}', '{"plugins": {"aa": "x"}}', "\udcff"]
)
def test_a_damaged_list_trusts_nothing_and_can_be_written_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(text.encode(errors="surrogateescape"))

    assert Trust(path).trusted() == frozenset()
    Trust(path).add("bb", "b")
    assert Trust(path).trusted() == {"bb"}
