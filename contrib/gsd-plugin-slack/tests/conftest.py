"""Make the package importable in a checkout, where it is not installed, and the stand-in for Slack."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "src"), str(Path(__file__).parent)]
