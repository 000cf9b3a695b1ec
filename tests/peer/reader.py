"""GSD's own tool, which reads the projects that we write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

DIRECTORY = os.environ.get("GSD_PEER_DIR", "")
TOOL = Path(DIRECTORY) / "node_modules/@opengsd/gsd-core/gsd-core/bin/gsd-tools.cjs"

# Without GSD_PEER_DIR the tool is optional, also in CI. With it, a missing tool is a failure, so
# that a broken installation is noticed.
needs_gsd = pytest.mark.skipif(
    not DIRECTORY,
    reason="GSD's own tool is optional: run tests/peer/install.sh DIR and set GSD_PEER_DIR=DIR",
)


def ask_gsd(root: Path, *arguments: str) -> Any:
    """Return the JSON that GSD's tool prints about the project at *root*."""
    if not TOOL.is_file() or not shutil.which("node"):
        pytest.fail(f"GSD_PEER_DIR is set to {DIRECTORY!r}, but the tool is not in it, or there is no node")
    result = subprocess.run(
        ["node", str(TOOL), *arguments], cwd=root, capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(result.stdout)
