"""Budgets before a run starts: limits that its agents cannot keep, and runs without a limit."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import attrs

from gsd_core.errors import ConfigError
from gsd_core.machine.history import phase_of
from gsd_core.machine.ledger import Call, total_of
from gsd_core.model.counts import dollars_text
from gsd_core.model.usage import Unit
from gsd_core.planning.survey import read_planning
from gsd_core.run.spending import paid_calls
from gsd_core.settings import RunSettings, Settings
from gsd_core.views.amounts import counted

from .options import SettingsClasses
from .output import warn
from .project import open_journal

BUDGET = "budget"
UNITS: dict[str, Unit] = {"usd": "dollars", "tokens": "tokens", "turns": "turns"}
"""The units of the settings in the section ``budget``, by the end of their names."""
OWN_PROMPT_TOKENS = 12_000
"""The most that gsd's own prompts may take in a phase, as ``bench/prompt_cost.py`` measures it."""


def check_limits(classes: SettingsClasses, settings: Settings, reports: Collection[Unit]) -> bool:
    """Return whether the run has a limit; raise ``ConfigError`` if its agents report nothing that it is in.

    *reports* is what they all report. Turns can always be limited: a call that reports none counts as one.
    """
    limited = {
        UNITS[field.name.rpartition("_")[2]]: f"{BUDGET}.{field.name}"
        for section, kind in classes
        if section == BUDGET
        for field in attrs.fields(kind)
        if getattr(settings.of(kind), field.name) is not None
    }
    silent = [unit for unit in limited if unit not in (*reports, "turns")]
    run: RunSettings = settings.of(RunSettings)
    agents = " or ".join(map(repr, run.agent))
    if silent:
        units = " or ".join(silent)
        problem = f"the agent {agents} does not say that it reports how many {units} it uses"
        if len(silent) == len(limited):
            limits = ", ".join(limited.values())
            message = f"{problem}, so a budget in {units} ({limits}) cannot be kept"
            raise ConfigError(message, hint="limit its turns: --max-budget-turns N")
        warn([f"{problem}: only the budget in other units limits this run"])
    return bool(limited)


def without_limit(root: Path) -> str:
    """Return what to know about a run without a limit: what phases have cost here, if any did."""
    calls: list[Call] = []
    rest = 0
    if root.is_dir():
        rest = sum(not phase.ticked for phase in read_planning(root).phases)
        with open_journal(root) as journal:
            calls = [call for call in paid_calls(journal).calls.values() if phase_of(call.step)]
    phases = len({(call.run, phase_of(call.step)) for call in calls})
    if not phases:
        about = (
            "this project has no history for an estimate. gsd's own prompts take less than "
            f"{OWN_PROMPT_TOKENS:,} tokens a phase (bench/prompt_cost.py); what the agent reads and writes "
            "comes on top"
        )
    else:
        used = total_of(calls)
        known = used.dollars and not any(call.usage.dollars is None for call in calls)

        def amount(share: int) -> str:
            of = share * used.tokens // phases
            return dollars_text(used.dollars * share / phases) if known else f"{of:,} tokens"

        average = f"{amount(1)} on average ({counted(phases, 'phase')})"
        about = f"by this project's journal, a phase takes {average}"
        about += f", so the {counted(rest, 'open phase')} may take {amount(rest)}" if rest else ""
    return f"nothing limits what this run may use; {about}"
