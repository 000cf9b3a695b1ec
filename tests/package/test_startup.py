"""Commands that only show something start quickly: they import no heavy library."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.package.source import ROOT

HEAVY = ("claude_agent_sdk", "mcp", "apprise", "starlette", "tenacity", "cattrs", "ruamel", "jsonschema")
STATUS_NEEDS = {"tenacity", "cattrs", "ruamel"}
COMMANDS = (["--help"], ["run", "--help"], ["plugins"], ["status"], ["--version"])
SCRIPT = """
import sys
from gsd_core.cli import main
sys.argv = ["gsd", *{args!r}]
try:
    main()
except SystemExit as end:
    code = end.code
loaded = [name for name in {heavy!r} if name in sys.modules]
sys.stderr.write(f"exit {{code}}, loaded {{loaded}}")
"""


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_command_that_only_shows_something_loads_no_heavy_library(args: list[str]) -> None:
    # `status` reads the journal and the planning files.
    heavy = [name for name in HEAVY if args != ["status"] or name not in STATUS_NEEDS]
    code = SCRIPT.format(args=args, heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True, check=False
    )

    assert done.stderr.endswith("exit 0, loaded []"), done.stderr
