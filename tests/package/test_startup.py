"""Commands that only show something start quickly: they import no heavy library."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.package.source import ROOT

HEAVY = (
    "claude_agent_sdk",
    "mcp",
    "apprise",
    "starlette",
    "cattrs",
    "psutil",
    "ruamel",
    "jsonschema",
    "tree_sitter",
    "requests",
)
STATUS_NEEDS = {"cattrs", "ruamel"}
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
    # They read the journal, if there is one, and `status` the planning files.
    reads = args in (["status"], ["plugins"])
    heavy = [name for name in HEAVY if not reads or name not in STATUS_NEEDS]
    code = SCRIPT.format(args=args, heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True, check=False
    )

    assert done.stderr.endswith("exit 0, loaded []"), done.stderr


GROUP_HELP_NEEDS = {
    "gsd_core",
    "gsd_core.own_process",
    *(
        f"gsd_core.cli{module}"
        for module in ("", ".app", ".commands", ".global_options", ".help", ".streams")
    ),
}
LIBRARIES_OF_GROUP_HELP = {"attr", "attrs", "click", "gsd_core"}


def test_the_list_of_commands_imports_neither_plugins_nor_commands() -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from gsd_core.cli import main\n"
        "sys.argv = ['gsd', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    print('LOADED', *sorted(set(sys.modules) - before))\n"
    )
    # -S: a .pth file of the environment may import anything; the paths are passed on instead.
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.rpartition("LOADED ")[2].split())
    libraries = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)

    assert libraries - {name for name in libraries if name.startswith("_")} <= LIBRARIES_OF_GROUP_HELP
    assert {name for name in loaded if name.partition(".")[0] == "gsd_core"} <= GROUP_HELP_NEEDS


def test_nothing_else_is_imported_before_ctrl_c_is_handled() -> None:
    code = "import sys; before = set(sys.modules); import gsd_core.cli; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=True,
    )

    assert set(done.stdout.split()) == {"gsd_core", "gsd_core.cli"}


MAIN = """
import sys
from gsd_core.cli import main
sys.argv = ["gsd", "watch"]
print("ready", flush=True)
main()
"""


BEFORE_MAIN = 'Traceback (most recent call last):\n  File "<string>", line 5, in <module>\nKeyboardInterrupt'
"""What Python says if the signal comes while the script still says that it is ready."""


@pytest.mark.slow
def test_ctrl_c_at_any_time_of_the_start_ends_gsd_without_a_traceback(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    ended: set[int] = set()
    for delay in [*range(0, 100, 4), *range(100, 301, 20)]:
        with subprocess.Popen(
            [sys.executable, "-c", MAIN],
            cwd=tmp_path,
            env={**os.environ, "GSD_STATE_DIR": str(tmp_path / "state")},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            time.sleep(delay / 1000)
            process.send_signal(signal.SIGINT)
            try:
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
        if said.startswith(BEFORE_MAIN):
            continue
        # Ctrl+C leaves `gsd watch` with 0 as soon as it waits for a run.
        expected = {-signal.SIGINT: "", 130: "interrupted", 0: ""}
        assert expected.get(process.returncode) == said.strip(), (delay, process.returncode, said)
        ended.add(process.returncode)

    assert ended & {-signal.SIGINT, 130}


INTERRUPTED_IMPORT = """
import sys

class Interrupted:
    def find_spec(self, name, path, target=None):
        if name == "_decimal":
            print("imported", name, file=sys.stderr)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from gsd_core.cli import main
sys.argv = ["gsd", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("args", [["watch"], ["status", "--json"]], ids=" ".join)
def test_what_ctrl_c_interrupts_is_not_imported_again_for_the_message(
    args: list[str], tmp_path: Path
) -> None:
    # libmpdec prints a warning when the extension module is initialized for the second time.
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, *args],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 130
    assert done.stderr.split() == ["imported", "_decimal", "interrupted"]


DROPPED = """
import os, signal, time, weakref
from gsd_core import cli
from gsd_core.cli import app

class Thing: pass

def work(**_):
    thing = Thing()
    watched = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing
    time.sleep(60)

app.gsd.main = work
cli.main()
"""


def test_ctrl_c_counts_although_python_drops_it_in_the_callback_of_a_weakref() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], capture_output=True, text=True, check=False, timeout=30
    )

    assert (done.returncode, done.stderr) == (130, "interrupted\n")
