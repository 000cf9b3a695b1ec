"""``gsd plugins check``: a plugin graded by rules with names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich_click import RichCommand

from .output import console, json_flag, print_json, print_line, styled

if TYPE_CHECKING:
    from gsd_core.testing.check import Target, Verdict

STYLES = {"holds": "green", "broken": "red", "skipped": "dim"}


@click.command("check", cls=RichCommand)
@click.argument("target")
@click.option("--run-agent", is_flag=True, help="call the plugin's agent as well; that may cost money")
@json_flag
@click.pass_context
def command(ctx: click.Context, target: str, run_agent: bool, as_json: bool) -> None:
    """Grade a plugin: an installed one's name, a module, a file, or a package's folder.

    The plugin is imported and its hooks are called, in a process of its own and in an empty project.
    Exits with 1 if a rule is broken.
    """
    from gsd_core.testing.check import check_plugin, find_target

    from .app import COMMANDS

    found = find_target(target)
    verdicts = check_plugin(found, verbs=COMMANDS, run_agent=run_agent)
    if as_json:
        _print_data(found, verdicts)
    else:
        _print_table(found, verdicts)
    ctx.exit(1 if any(verdict.status == "broken" for verdict in verdicts) else 0)


def _print_data(target: Target, verdicts: tuple[Verdict, ...]) -> None:
    from gsd_core.testing.check import SCHEMA_VERSION

    broken = any(verdict.status == "broken" for verdict in verdicts)
    data = {"schema_version": SCHEMA_VERSION, "plugin": target.name, "kind": target.kind, "ok": not broken}
    print_json({**data, "rules": [_json(verdict) for verdict in verdicts]})


def _json(verdict: Verdict) -> dict[str, object]:
    rule = verdict.rule
    return {
        "id": rule.id,
        "status": verdict.status,
        "what": rule.what,
        "why": rule.why,
        "mend": rule.mend,
        "problems": list(verdict.problems),
        "reason": verdict.reason or None,
    }


def _print_table(target: Target, verdicts: tuple[Verdict, ...]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("rule", "verdict", "what"):
        table.add_column(title, overflow="fold")
    for verdict in verdicts:
        status = styled(verdict.status, STYLES[verdict.status])
        table.add_row(styled(verdict.rule.id, "bold"), status, styled(_said(verdict)))
    console().print(table)
    for verdict in verdicts:
        _explain(verdict)
    count = {status: sum(v.status == status for v in verdicts) for status in STYLES}
    told = ", ".join(f"{number} {status}" for status, number in count.items() if number)
    print_line(f"{target.name} ({target.kind}): {told}")


def _said(verdict: Verdict) -> str:
    return f"{verdict.rule.what} ({verdict.reason})" if verdict.reason else verdict.rule.what


def _explain(verdict: Verdict) -> None:
    if verdict.status != "broken":
        return
    print_line()
    print_line(f"{verdict.rule.id}: {verdict.rule.why}")
    for problem in verdict.problems:
        print_line(f"  - {problem}")
    print_line(f"  mend: {verdict.rule.mend}")
