"""``--dry-run``: what would be due first, with which plugins and settings; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import attrs

from gsd_core.git import Git
from gsd_core.machine.due import Due, End, Start, due
from gsd_core.machine.state import Snapshot, State
from gsd_core.plugins.loading import collect_settings
from gsd_core.run.observe import digest, read_project
from gsd_core.run.runtime import RunRequest
from gsd_core.settings import CORE_SECTIONS
from gsd_core.views.status import SCHEMA_VERSION

from .output import print_line
from .project import check_folder


async def plan_json(request: RunRequest) -> dict[str, Any]:
    """Return what the run would begin with, as JSON data."""
    new = check_folder(request.root)
    state = request.last_run.state if request.last_run else State()
    seen = Snapshot() if new else digest(await read_project(request.root, Git(request.root)))
    first = due(attrs.evolve(state, seen=seen, options=request.options, closed=None, stop_asked=False))
    return {
        "schema_version": SCHEMA_VERSION,
        "project": str(request.root),
        "new_folder": new,
        "idea": request.idea and {"name": request.idea.name, "sha256": request.idea.sha256},
        "due": [_due_json(work) for work in first],
        "plugins": [{"name": i.name, "status": i.status, "reason": i.reason} for i in request.plugins],
        "settings": list(_settings_json(request)),
    }


def _due_json(work: Due) -> dict[str, str]:
    if isinstance(work, End):
        return {"what": "end", "step": "", "why": work.reason}
    step = str(work.step)
    return {
        "what": "start" if isinstance(work, Start) else type(work).__name__.lower(),
        "step": step,
        "why": "",
    }


def _settings_json(request: RunRequest) -> Iterator[dict[str, str]]:
    """Yield every setting that is not a default, with its value and origin."""
    for section, kind in (*CORE_SECTIONS, *collect_settings(request.hooks)):
        value = request.settings.of(kind)
        for attribute in attrs.fields(kind):
            name = f"{section}.{attribute.name}"
            if origin := request.settings.origins.get(name):
                yield {"name": name, "value": _text(getattr(value, attribute.name)), "origin": origin}


def _text(value: Any) -> str:
    return ", ".join(map(str, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else str(value)


def show_plan(plan: dict[str, Any]) -> None:
    """Print *plan* for people."""
    made = " (would be made, with git init)" if plan["new_folder"] else ""
    print_line(f"project: {plan['project']}{made}")
    if plan["idea"]:
        print_line(f"idea: {plan['idea']['name']}, sha256 {plan['idea']['sha256'][:12]}")
    for work in plan["due"]:
        print_line("first: " + " ".join(part for part in (work["what"], work["step"], work["why"]) if part))
    for plugin in plan["plugins"]:
        reason = f" ({plugin['reason']})" if plugin["reason"] else ""
        print_line(f"plugin: {plugin['name']} {plugin['status']}{reason}")
    for setting in plan["settings"]:
        print_line(f"setting: {setting['name']} = {setting['value']} ({setting['origin']})")
    if not plan["settings"]:
        print_line("settings: all defaults")
