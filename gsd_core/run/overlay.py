"""Values in ``.planning/config.json`` for the time that an agent works which reads that file itself.

The user's own values are recorded before the file is changed, and come back afterwards; after a crash, at the
next start. Only a value that is still the one that was put there is replaced: what the agent or a person has
changed meanwhile stays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from gsd_core.errors import PlanningError
from gsd_core.files import read_below
from gsd_core.git import GitError
from gsd_core.machine.facts import ConfigOverlaid, ConfigRestored
from gsd_core.planning.config import render_config

from .runtime import Run
from .work import require_branch

log = logging.getLogger(__name__)

CONFIG = ".planning/config.json"
LIMIT = 1_000_000
"""The largest file that is read, in bytes."""


@asynccontextmanager
async def overlaid(run: Run, values: Mapping[str, Any], *, step: str, attempt: int) -> AsyncGenerator[None]:
    """Give ``config.json`` these *values*, by dotted key, until the context ends.

    A project without the file keeps it so. Raises ``PlanningError`` if the file is not a JSON object.
    """
    text = _text(run) if values else None
    config = _parse(text) if text is not None else {}
    before = {key: _get(config, key) for key in values if _get(config, key) != [values[key]]}
    if text is None or not before:
        yield
        return
    put = {key: values[key] for key in before}
    clean = CONFIG not in await run.git.changed()
    # The record first: after a crash right behind it, there is nothing to put back, which is harmless.
    run.record(ConfigOverlaid(put=put, before=before, clean=clean), step=step, attempt=attempt)
    for key, value in put.items():
        _set(config, key, [value])
    overlay = render_config(config)
    run.effects.write(run.root / CONFIG, overlay)
    try:
        yield
    finally:
        await restore(run, {overlay: text})


async def restore(run: Run, formatted: Mapping[str, str] | None = None) -> None:
    """Put back the user's values that the last overlay has replaced, unless that has been done already.

    *formatted* has the whole text to put back, as the user has formatted it, for a text that is unchanged.
    If the agent has committed the overlay with its own work, the user's values are committed after it.
    """
    last = next(iter([*run.journal.facts(ConfigOverlaid, ConfigRestored)][-1:]), None)
    if last is None or not isinstance(last.data, ConfigOverlaid):
        return
    put, before = last.data.put, last.data.before
    try:
        text = _text(run)
        config = _parse(text) if text else None
    except PlanningError as exc:
        # The agent broke the file, which the step's check will say; its user's values are in the journal.
        log.warning("%s: its own values were not restored", exc)
        text, config = None, None
    # Not one that was changed meanwhile: that was on purpose.
    keys = [key for key in put if config is not None and _get(config, key) == [put[key]]]
    if config is not None and keys:
        for key in keys:
            _set(config, key, before[key])
        restored = (formatted or {}).get(text or "") or render_config(config)
        run.effects.write(run.root / CONFIG, restored)
    commit = ""
    try:
        if last.data.clean and CONFIG in await run.git.changed():
            await require_branch(run)
            names = {"GSD-Run": run.id, "GSD-Step": last.step, "GSD-Task": "config/restored"}
            subject = "chore: restore config.json"
            commit = await run.effects.commit([CONFIG], subject, names, verify=False)
    except GitError as exc:
        log.warning("%s: %s has the user's own values again, but this is not committed", exc, CONFIG)
    run.record(ConfigRestored(keys=tuple(keys), commit=commit), step=last.step, attempt=last.attempt)


def _text(run: Run) -> str | None:
    """Return the text of the file; ``None`` if there is none."""
    try:
        return read_below(run.root, CONFIG, limit=LIMIT).decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise PlanningError(f"cannot be read: {exc}", path=CONFIG, hint="fix the file, then resume") from exc


def _parse(text: str) -> dict[str, Any]:
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise PlanningError(f"is not JSON: {exc}", path=CONFIG, hint="fix the file, then resume") from exc
    if not isinstance(data, dict):
        raise PlanningError("is not a JSON object", path=CONFIG, hint="fix the file, then resume")
    return cast("dict[str, Any]", data)


def _get(config: Mapping[str, Any], key: str) -> list[Any]:
    """Return the value at a dotted *key* in a list of one; an empty list if there is none."""
    found: Any = config
    for name in key.split("."):
        table = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if name not in table:
            return []
        found = table[name]
    return [found]


def _set(config: dict[str, Any], key: str, value: list[Any]) -> None:
    """Set the value at a dotted *key*; an empty list removes it, and tables that become empty with it."""
    name, _, rest = key.partition(".")
    if not rest:
        if value:
            config[name] = value[0]
        else:
            config.pop(name, None)
        return
    if not isinstance(config.get(name), dict):
        if not value:
            return
        config[name] = {}
    table = cast("dict[str, Any]", config[name])
    _set(table, rest, value)
    if not table and not value:
        del config[name]
