"""Try a plugin in this process, which is made for it: ``python -m gsd_core.testing.check.trial``.

Reads what to try as JSON from standard input and writes what it found, after every stage, into a
file: if the plugin ends or holds up the process, what was found before is known.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, define, field

from gsd_core.errors import ConfigError
from gsd_core.plugins.importing import Candidate, import_candidate

from .watch import Audit, printed, surroundings

CHEAP = 0.5
HEAVY = {
    "aiohttp", "anthropic", "apprise", "boto3", "claude_agent_sdk", "cryptography", "django", "fastapi",
    "flask", "google", "httpx", "mcp", "numpy", "openai", "pandas", "pydantic", "requests", "scipy",
    "sqlalchemy", "starlette", "temporalio", "tensorflow", "torch", "transformers", "uvicorn",
}  # fmt: skip


@define(kw_only=True)
class Notes:
    """What was found: rules *looked* at, *problems* as pairs of rule and text, why some were *skipped*."""

    path: Path
    stage: str = "begin"
    hooks: tuple[str, ...] = ()
    looked: list[str] = field(factory=list[str])
    problems: list[tuple[str, str]] = field(factory=list[tuple[str, str]])
    skipped: dict[str, str] = field(factory=dict[str, str])

    def look(self, rule: str, problems: Sequence[str] = ()) -> None:
        """Note that *rule* was looked at, and what was wrong."""
        if rule not in self.looked:
            self.looked.append(rule)
        self.problems.extend((rule, problem) for problem in problems)

    def enter(self, stage: str) -> None:
        """Write down what is known before *stage* begins."""
        self.stage = stage
        data = {key: value for key, value in asdict(self).items() if key != "path"}
        self.path.write_text(json.dumps(data), encoding="utf-8")


def main() -> None:
    """Try the plugin that standard input describes."""
    given = json.loads(sys.stdin.read())
    notes = Notes(path=Path(given["notes"]))
    if given["path"]:
        sys.path.insert(0, given["path"])
    before = surroundings()
    plugin = _imported(given, notes)
    if plugin is not None and _fits(plugin, given["name"], notes):
        from .tries import try_hooks

        try_hooks(plugin, given, notes, surroundings_before=before)
    notes.enter("end")
    _leave()


def _leave() -> None:
    """End without waiting for what the plugin left behind."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _imported(given: dict[str, Any], notes: Notes) -> object:
    notes.enter("imports")
    audit, known, began = Audit(), set(sys.modules), time.process_time()
    sys.addaudithook(audit)
    try:
        with printed() as said, audit.listen():
            plugin = _import(given)
    except BaseException as error:
        notes.look("imports", [f"{type(error).__name__}: {error}"])
        return None
    took = time.process_time() - began
    notes.look("imports")
    notes.look("cheap-import", [f"it took {took:.2f} s"] if took > CHEAP else [])
    heavy = sorted({name.split(".")[0] for name in set(sys.modules) - known} & HEAVY)
    notes.look("light-import", [f"it loads {name}" for name in heavy])
    notes.look("quiet-import", [*audit.heard[:5], *(f"printed {text!r}" for text in said)])
    return plugin


def _import(given: dict[str, Any]) -> object:
    if given["file"]:
        path = Path(given["file"])
        return import_candidate(Candidate(name=given["name"], source="file", target=path), path.read_bytes())
    return importlib.import_module(given["module"])


def _fits(plugin: object, name: str, notes: Notes) -> bool:
    from gsd_core.plugins.validation import hooks_of
    from gsd_core.testing.manager import make_manager

    notes.enter("fits")
    try:
        manager = make_manager(**{name: plugin})
    except ConfigError as error:
        notes.look("fits", [str(error)])
        return False
    notes.look("fits")
    notes.hooks = hooks_of(manager, plugin)
    return True


if __name__ == "__main__":
    main()
