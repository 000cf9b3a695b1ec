"""An agent that needs no model: it replays answers from files, one for each role.

Agents are asked in the order of the setting `run.agent`; one that does not handle a task returns `None`.
An agent that lets a model use tools must ask `host.permit` before each use, report each turn with
`host.progress`, call the task's functions with `host.call`, and pass `host.environment` to its processes.

Settings in `gsd.toml`:

    [my_plugin]
    folder = "answers"   # contains planner.json, verifier.json, …
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
from gsd_core import Activity, AgentHost, AgentResult, AgentTask, Permanent, implements, setting, settings_of
from gsd_core.hookspecs import gsd_run_agent, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*folder* with the answers (``planner.json`` and so on); if empty, every task is declined."""

    folder: str = setting("")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_run_agent)
async def replay(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Return the stored answer for the task's role; decline if there is none."""
    folder = settings_of(MyPluginSettings).folder
    if not folder:
        return None
    answer = await asyncio.to_thread(_read, folder, f"{task.role}.json")
    if answer is None:
        return None
    await host.progress(Activity(kind="text", text=f"replayed the answer of the {task.role}"))
    if task.schema is None:
        return AgentResult(text=str(answer))
    return AgentResult(value=answer)


def _read(folder: str, name: str) -> Any:
    path = Path(folder).expanduser() / name
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Permanent(f"{name} is not valid JSON: {error}", hint="fix the file") from error
