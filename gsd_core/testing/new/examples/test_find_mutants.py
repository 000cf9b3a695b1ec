"""Call the hook on small files."""

from __future__ import annotations

from pathlib import Path

from gsd_core import SourceFile
from gsd_core.testing.conformance import check_find_mutants

from . import find_mutants as plugin


def test_each_comparison_gets_another_limit(tmp_path: Path) -> None:
    text = "select * from visits\nwhere age >= 18\n"
    source = SourceFile(root=tmp_path, path="adults.sql", text=text)

    [mutant] = check_find_mutants(plugin, source)

    assert mutant.apply(text).endswith("where age > 18\n")
    assert (mutant.first, mutant.says) == (2, "`>=` is replaced by `>`")


def test_other_files_have_none(tmp_path: Path) -> None:
    source = SourceFile(root=tmp_path, path="adults.py", text="age >= 18\n")

    assert not check_find_mutants(plugin, source)
