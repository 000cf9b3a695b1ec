"""``gsd cost``: shows what the agent calls of a run cost."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from gsd_core.sanitize import one_line

from .global_options import global_options_of, gsd_command
from .output import console, json_flag, print_json, print_line, print_table, styled

if TYPE_CHECKING:
    from gsd_core.machine.ledger import Call
    from gsd_core.views.cost import Costs, Grouping

GROUPINGS = ("phase", "step", "model", "day")
NARROW = 70
"""Below this width, the columns that the sum of tokens consists of are left out."""


@gsd_command("cost", "gsd cost", "gsd cost --by model --all", last=json_flag)
@click.option(
    "--by", type=click.Choice(GROUPINGS), default="phase", help="how to group the calls (default: phase)"
)
@click.option("--all", "all_runs", is_flag=True, help="all runs of the project, not only the last one")
def command(ctx: click.Context, by: Grouping, all_runs: bool, as_json: bool) -> None:
    """Show the cost of the last run: dollars, tokens and agent calls, and what is left of the budget.

    The dollars are those that the agent reports. Where it reports none, they are estimated from the tokens
    and the list prices, and marked as "about". With a subscription nothing is billed per call; the amounts
    then say what the calls would cost at list prices. A call in progress counts with its turns so far.
    """
    from gsd_core.journal.store import damage_reported
    from gsd_core.machine.ledger import CALL_KINDS
    from gsd_core.run.spending import with_turns
    from gsd_core.views.cost import calls_of, report_json

    from .launch import RunOptions, build_settings
    from .options import value_of
    from .plugin_loading import loaded_plugins
    from .project import load, open_journal

    project = load(global_options_of(ctx))
    last = project.state.run
    with open_journal(project.root) as journal, damage_reported(journal.path):
        kinds = ["run.started", *CALL_KINDS]
        facts = tuple(journal.events(run=None if all_runs else last, kinds=kinds)) if last else ()
        calls = calls_of(with_turns(journal, facts))
    runs = [fact.run for fact in facts if fact.kind == "run.started"]
    # That of the flags, of the environment, or of the settings files, if a loaded plugin has such a setting.
    budget = None
    if last:
        options = RunOptions(global_options=global_options_of(ctx), resume=True)
        value = value_of(build_settings(options, loaded_plugins(ctx), project), "--max-budget-usd")
        budget = value if isinstance(value, Decimal) else None
    if as_json:
        print_json(report_json(runs, calls, by, budget=budget))
    elif not last:
        print_line("no run yet in this project, so no cost")
    else:
        _show(runs, calls, by, budget)


def _show(runs: list[str], calls: tuple[Call, ...], by: Grouping, budget: Decimal | None) -> None:
    from gsd_core.views.amounts import counted, dollars_text, tokens_text
    from gsd_core.views.cost import grouped, left_of, remarks, sum_of

    total = sum_of(calls)
    about = f"run {runs[0]}" if len(runs) == 1 else counted(len(runs), "run")
    parts = [_amount(total), tokens_text(total.usage), counted(total.calls, "agent call")]
    print_line(styled(", ".join(filter(None, parts)), "bold"))
    print_line(f"  {about}")
    if budget is not None:
        left = left_of(budget, calls, runs)
        rest = "an unknown amount is" if left is None else dollars_text(left)
        print_line(f"  budget: {rest} left of {dollars_text(budget)} (--max-budget-usd)")
    for line in remarks(total):
        print_line(f"  {line}")
    if not calls:
        return
    print_line()
    wide = console().width >= NARROW
    parts_of_tokens = ["input", "output", "cache read", "cache write"] if wide else []
    columns = [by, "cost", "calls", "tokens", *parts_of_tokens]
    rows = [[one_line(name, 60), *_cells(costs, wide)] for name, costs in grouped(calls, by)]
    print_table(columns, [*rows, ["total", *_cells(total, wide)]], {"total": "bold"}, numbers=columns[1:])


def _cells(costs: Costs, wide: bool) -> list[str]:
    usage = costs.usage
    parts = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    shown = [f"{part:,}" for part in parts] if wide else []
    return [_amount(costs), f"{costs.calls:,}", f"{costs.usage.tokens:,}", *shown]


def _amount(costs: Costs) -> str:
    from gsd_core.views.amounts import dollars_text

    if costs.usage.dollars is None:
        return "unknown" if costs.calls else "$0"
    sign = "about " if costs.estimated and costs.usage.dollars else ""
    return f"{sign}{dollars_text(costs.usage.dollars)}{' + unknown' if costs.unknown else ''}"
