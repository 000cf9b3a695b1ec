"""``--dry-run``: shows what a run would do, a sentence per step, its plugins and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core.errors import JournalError
from gsd_core.git import Git
from gsd_core.machine.due import Due, End, Start, due
from gsd_core.machine.facts import RunOpened
from gsd_core.machine.state import State
from gsd_core.model.ids import StepId
from gsd_core.planning.model import Planning
from gsd_core.plugins.loading import collect_settings
from gsd_core.run.loop import capacity_of
from gsd_core.run.preflight import kept_idea
from gsd_core.run.runtime import RunRequest
from gsd_core.run.snapshot import full_snapshot, read_project
from gsd_core.run.step_types import collect_step_types
from gsd_core.sanitize import one_line
from gsd_core.settings import CORE_SECTIONS, RunSettings, bind_settings
from gsd_core.views.forecast import FORECAST, forecast, forecast_lines
from gsd_core.views.next import Added, added_by, describe_due, state_when_resumed
from gsd_core.views.sentences import describe_work, what_follows
from gsd_core.views.summary import StepDone, summarize

from .output import print_line, warn
from .project import open_journal

MAX_SENTENCE = 400


async def plan_json(request: RunRequest, *, new: bool) -> dict[str, Any]:
    """Return how the run would start, as JSON data; *new*: it would create the repository first."""
    state = request.last_run.state if request.last_run else State()
    # A new folder inside a repository is created by the run.
    empty = new or not request.root.is_dir()
    planning = Planning() if empty else await read_project(request.root, Git(request.root))
    types = collect_step_types(request.hooks)
    with bind_settings(request.settings.values):
        snapshot = await full_snapshot(
            state,
            planning,
            git=Git(request.root),
            settings=request.settings.of(RunSettings),
            idea=kept_idea(request.root) or request.idea,
            types=types,
            hooks=request.hooks,
        )
    now = attrs.evolve(
        state_when_resumed(state, snapshot),
        options=request.options,
        asked={**state.asked, **request.asked},
        requested=tuple(request.asked),
    )
    built_in = {info.name for info in request.plugins if info.source == "default"}
    named = [("" if plugin in built_in else plugin, one) for plugin, one in types.types]
    work = due(now)
    return {
        "project": str(request.root),
        "new_folder": new,
        "idea": request.idea and {"name": request.idea.name, "sha256": request.idea.sha256},
        "due": [
            {
                **_due_json(one, types.types),
                "does": describe_work(one, now, named),
                "why": describe_due(one, now, planning, before=state, added=types.types),
            }
            for one in work
        ],
        "asked": list(request.asked),
        "forecast": None if request.options.only_asked else _forecast_json(request, now, planning),
        "then": list(what_follows(now, work, [one for one in named if one[0]])),
        "plugins": [
            {"name": i.name, "status": i.status, "reason": i.reason, "source": i.source}
            for i in request.plugins
        ],
        "settings": list(_settings_json(request)),
    }


def _forecast_json(request: RunRequest, state: State, planning: Planning) -> dict[str, Any]:
    """Return the forecast from the finished steps of all runs of the project with the same agents."""
    settings = request.settings.of(RunSettings)
    steps: list[StepDone] = []
    try:
        # A journal that is not trusted is none.
        steps = [*_finished_steps(request.root, settings.agent)] if request.last_run else []
    except JournalError as error:
        warn([f"a forecast needs the whole journal: {error}"])
    history = request.last_run.history if request.last_run and request.last_run.id else None
    confined = bool(history.sandbox) if history else settings.sandbox != "off"
    slots = capacity_of(request.settings, planning.config, request.root, is_confined=confined)
    found = forecast(state, planning.phases, steps, slots=slots)
    return {**FORECAST.dump(found), "words": [*forecast_lines(found)]}


def _finished_steps(root: Path, agents: Sequence[str]) -> Iterator[StepDone]:
    """Yield the steps of all runs of these *agents*."""
    with open_journal(root) as journal:
        for run in [record.run for record in journal.events(kinds=["run.started"])]:
            used = [fact.data.agent for fact in journal.facts(RunOpened, run=run)]
            if used and used[-1] == agents:
                yield from summarize(journal.events(run=run, facts_only=True)).steps


def _due_json(work: Due, added: Added) -> dict[str, str | None]:
    if isinstance(work, End):
        return {"what": "end", "step": "", "plugin": None}
    what = "start" if isinstance(work, Start) else type(work).__name__.lower()
    plugin, _ = added_by(added, StepId.parse(str(work.step)).kind)
    return {"what": what, "step": str(work.step), "plugin": plugin or None}


def _settings_json(request: RunRequest) -> Iterator[dict[str, str]]:
    """Yield each setting that is not a default, with its value and origin."""
    for section, kind in (*CORE_SECTIONS, *collect_settings(request.hooks)):
        values = cast("object", request.settings.of(kind))
        for attribute in attrs.fields(kind):
            name = f"{section}.{attribute.name}"
            if origin := request.settings.origins.get(name):
                value = getattr(values, attribute.name)
                parts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
                # As a settings file has them.
                texts = (str(one).lower() if isinstance(one, bool) else str(one) for one in parts)
                yield {"name": name, "value": ", ".join(texts), "origin": origin}


def show_plan(plan: dict[str, Any], *, verbose: bool) -> None:
    """Print *plan* for people; all plugins by name only if *verbose*."""
    new = " (a git repository would be created)" if plan["new_folder"] else ""
    print_line(f"project: {plan['project']}{new}")
    if plan["idea"]:
        print_line(f"idea: {plan['idea']['name']}, sha256 {plan['idea']['sha256'][:12]}")
    for work in plan["due"]:
        # Only the first is certain; what follows depends on how it ends.
        when = "first" if work is plan["due"][0] else "then" if plan["asked"] else "also due"
        because = ": " if work["what"] == "end" else ", because "
        print_line(one_line(f"{when}: {work['does']}{because}{work['why']}", MAX_SENTENCE))
    for sentence in (*plan["then"], *(plan["forecast"] or {"words": ()})["words"]):
        print_line(one_line(sentence, MAX_SENTENCE))
    usual = [one for one in plan["plugins"] if one["source"] == "default" and one["status"] == "active"]
    if not verbose and usual:
        print_line(f"plugins: {len(usual)} built-in ones (-v lists them)")
    for plugin in plan["plugins"]:
        if verbose or plugin not in usual:
            reason = f" ({plugin['reason']})" if plugin["reason"] else ""
            print_line(f"plugin: {plugin['name']} {plugin['status']}{reason}")
    for setting in plan["settings"]:
        print_line(f"setting: {setting['name']} = {setting['value']} ({setting['origin']})")
    if not plan["settings"]:
        print_line("settings: all defaults")
