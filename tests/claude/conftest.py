from pathlib import Path

import pytest

from tests.claude.harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    tree, home = tmp_path / "tree", tmp_path / "home"
    tree.mkdir()
    home.mkdir()
    return Harness(tree, home)
