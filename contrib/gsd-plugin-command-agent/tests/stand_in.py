"""Stands for a command-line agent: acts by a script, and keeps what it was told.

``python stand_in.py SCRIPT.json``: a list of turns, one for each run; a turn may ``say`` (stdout),
``mutter`` (stderr), ``write`` files, put its answer into ``answer`` (the file named by ``--answer``),
``exit``, ``hang`` or ``leave`` a process behind.
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
    """Act one turn."""
    script = Path(sys.argv[1])
    turns = json.loads(script.read_text(encoding="utf-8"))
    heard = script.with_suffix(".heard.json")
    before: list[Any] = json.loads(heard.read_text(encoding="utf-8")) if heard.exists() else []
    told = {"prompt": sys.stdin.read(), "args": sys.argv[2:], "cwd": str(Path.cwd()), "env": dict(os.environ)}
    heard.write_text(json.dumps([*before, told]), encoding="utf-8")
    act(turns[min(len(before), len(turns) - 1)], script)


def act(turn: dict[str, Any], script: Path) -> None:
    """Do what the turn says."""
    written: dict[str, str] = turn.get("write", {})
    for name, text in written.items():
        Path(name).write_text(text, encoding="utf-8")
    if turn.get("leave") or turn.get("hang"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        script.with_suffix(".child").write_text(str(child.pid), encoding="utf-8")
    if turn.get("hang"):
        script.with_suffix(".hangs").touch()
        time.sleep(600)
    if "answer" in turn:
        where = next(arg.removeprefix("--answer=") for arg in sys.argv if arg.startswith("--answer="))
        Path(where).write_text(str(turn["answer"]), encoding="utf-8")
    print(turn.get("mutter", ""), file=sys.stderr)
    print(turn.get("say", ""))
    sys.stdout.flush()
    if turn.get("kill"):
        os.kill(os.getpid(), 9)
    sys.exit(int(str(turn.get("exit", 0))))


if __name__ == "__main__":
    main()
