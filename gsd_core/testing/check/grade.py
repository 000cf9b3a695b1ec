"""Put together what was read and what was tried: a verdict for each rule."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import frozen

from gsd_core.errors import UserError

from . import reading, shelf
from .rules import RULES, Rule
from .target import Target

SCHEMA_VERSION = 1
SECONDS = 180.0
Status: TypeAlias = Literal["holds", "broken", "skipped"]


@frozen(kw_only=True)
class Verdict:
    """What became of one rule: *problems* if it is broken, *reason* if it was not looked at."""

    rule: Rule
    status: Status
    problems: tuple[str, ...] = ()
    reason: str = ""


def check_plugin(
    target: Target, *, verbs: Collection[str] = (), run_agent: bool = False, seconds: float = SECONDS
) -> tuple[Verdict, ...]:
    """Return a verdict for each rule; *verbs* are the names of commands that are taken.

    An agent is called only with *run_agent*. The trial ends after *seconds*.
    """
    tried = _tried(target, tuple(verbs), run_agent, seconds)
    read = _read(target, tried)
    return tuple(_verdict(rule, read, tried) for rule in RULES)


def _verdict(rule: Rule, read: Mapping[str, Iterable[str] | None], tried: Mapping[str, Any]) -> Verdict:
    problems = [text for name, text in tried["problems"] if name == rule.id]
    reason: str = tried["skipped"].get(rule.id, "it has no such hook")
    looked = rule.id in tried["looked"]
    if rule.id in read:
        found = read[rule.id]
        problems, looked = [*problems, *(found or ())], looked or found is not None
        reason = "its package is not here" if found is None else reason
    if problems:
        return Verdict(rule=rule, status="broken", problems=tuple(problems))
    if not looked:
        return Verdict(rule=rule, status="skipped", reason=reason)
    return Verdict(rule=rule, status="holds")


def _read(target: Target, tried: Mapping[str, Any]) -> Mapping[str, Iterable[str] | None]:
    """Return the problems by rule of what can be read; ``None`` where there is nothing to read."""
    try:
        return _found(target, tried["hooks"])
    except UserError as error:
        return {"imports": [str(error)]}


def _found(target: Target, hooks: Collection[str]) -> Mapping[str, Iterable[str] | None]:
    packaged, own = target.folder is not None, target.kind in ("folder", "installed")
    declares = bool(reading.declared_dependencies(target))
    here = bool(target.sources)
    return {
        "public-doors": [*reading.private_doors(target)] if here else None,
        "declared": [*reading.undeclared(target)] if here and declares else None,
        "entry-point": [*shelf.wrong_entry_point(target)] if packaged and own else None,
        "packaged": [*shelf.badly_packaged(target)] if packaged and own else None,
        "documented": [*reading.undocumented(target)] if here else None,
        "typed": [*reading.untyped(target)] if here else None,
        "tested": [*shelf.untested(target, sorted(hooks))] if packaged else None,
        "no-state": [*reading.global_statements(target)] if here else [],
    }


def _tried(target: Target, verbs: tuple[str, ...], run_agent: bool, seconds: float) -> Mapping[str, Any]:
    """Try the plugin in a process of its own, in an empty project with an empty home."""
    with tempfile.TemporaryDirectory(prefix="gsd-check-") as name:
        base = Path(name)
        for folder in ("project", "home"):
            (base / folder).mkdir()
        _make_repository(base / "project")
        given = {
            "name": target.name, "module": target.module, "file": str(target.file or ""),
            "path": str(target.path or ""), "tree": str(base / "project"), "home": str(base / "home"),
            "notes": str(base / "notes.json"), "verbs": verbs, "run_agent": run_agent,
        }  # fmt: skip
        ending = _run(given, base, seconds)
        return _concluded(json.loads((base / "notes.json").read_text("utf-8")), ending)


def _make_repository(tree: Path) -> None:
    (tree / "README.md").write_text("# A thing\n", encoding="utf-8")
    identity = ("-c", "user.name=check", "-c", "user.email=check@localhost", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "README.md"), (*identity, "commit", "-q", "-m", "begin")):
        subprocess.run(["git", *command], cwd=tree, check=False, capture_output=True)


def _run(given: Mapping[str, Any], base: Path, seconds: float) -> str:
    """Run the trial; return how it ended, if not well."""
    (base / "notes.json").write_text(
        json.dumps({"stage": "begin", "hooks": [], "looked": [], "problems": [], "skipped": {}})
    )
    command = [sys.executable, "-m", "gsd_core.testing.check.trial"]
    try:
        done = subprocess.run(
            command, input=json.dumps(given), text=True, capture_output=True, cwd=base / "project",
            env=_environment(base / "home"), timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {seconds:g} s"
    if done.returncode:
        last = next(reversed(done.stderr.strip().splitlines()), "")
        return f"it ended the process with {done.returncode}" + (f": {last[:300]}" if last else "")
    return ""


def _environment(home: Path) -> dict[str, str]:
    """Return our environment with another home; packages of the user's own are still found."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GSD_")}
    paths = os.pathsep.join(path for path in sys.path if path)
    return {**ours, "HOME": str(home), "PYTHONUSERBASE": site.getuserbase(), "PYTHONPATH": paths}


def _concluded(notes: dict[str, Any], ending: str) -> Mapping[str, Any]:
    """Return the notes; a trial that ended before its time is put down to the stage that it was in."""
    stage = notes["stage"]
    if stage != "end":
        rule = stage if stage in ("imports", "fits") else "prompt" if "within" in ending else "names-errors"
        notes["problems"].append([rule, f"{stage}: {ending or 'it ended the process'}"])
    return notes
