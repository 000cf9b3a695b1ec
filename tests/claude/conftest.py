from pathlib import Path

import pytest

from tests.claude.workbench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    tree, home = tmp_path / "tree", tmp_path / "home"
    tree.mkdir()
    home.mkdir()
    return Bench(tree, home)
