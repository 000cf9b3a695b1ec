"""A command-line agent that follows a script and records its input.

``python scripted_command.py SCRIPT.json``: the script is a list of turns, one for each run. A turn may
set ``stdout``, ``stderr``, ``write`` (files by name), ``answer`` (written to the file of
``--answer=FILE``), ``exit``, ``kill`` (itself), ``hang``, or ``background`` (leave a process running).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Record the input and perform the next turn; the last one is repeated."""
    script = Path(sys.argv[1])
    turns = json.loads(script.read_text(encoding="utf-8"))
    runs = script.with_suffix(".runs.json")
    earlier: list[Any] = json.loads(runs.read_text(encoding="utf-8")) if runs.exists() else []
    run = {"prompt": sys.stdin.read(), "args": sys.argv[2:], "cwd": str(Path.cwd()), "env": dict(os.environ)}
    runs.write_text(json.dumps([*earlier, run]), encoding="utf-8")
    perform(turns[min(len(earlier), len(turns) - 1)], script)


def perform(turn: dict[str, Any], script: Path) -> None:
    """Perform a turn of the script."""
    files: dict[str, str] = turn.get("write", {})
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    if turn.get("background") or turn.get("hang"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        script.with_suffix(".child").write_text(str(child.pid), encoding="utf-8")
    if turn.get("hang"):
        script.with_suffix(".hangs").touch()
        time.sleep(600)
    if "answer" in turn:
        path = next(arg.removeprefix("--answer=") for arg in sys.argv if arg.startswith("--answer="))
        Path(path).write_text(str(turn["answer"]), encoding="utf-8")
    print(turn.get("stderr", ""), file=sys.stderr)
    print(turn.get("stdout", ""))
    sys.stdout.flush()
    if turn.get("kill"):
        os.kill(os.getpid(), 9)
    sys.exit(int(str(turn.get("exit", 0))))


if __name__ == "__main__":
    main()
