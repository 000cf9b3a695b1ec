"""Ask the budget policies before an agent spends."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from gsd_core.errors import Exhausted
from gsd_core.hookspecs import gsd_check_budget
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.model.usage import Pause, Stop, Usage

from .questions import ask
from .runtime import Run

LIMIT = timedelta(seconds=2)


async def check_budget(run: Run, step: str, reserve: Decimal | None, running: Usage | None = None) -> None:
    """Return if the run may go on spending; Stop beats Pause, and a policy that fails is a Stop.

    *running* is what the call under way has used so far.
    """
    spend = run.ledger.spend(run.id, step, reserve, running or Usage())
    outcomes = await run.hooks.fan_out(gsd_check_budget, LIMIT, spend)
    for outcome in outcomes:
        if outcome.error is not None:
            raise Exhausted(f"the budget policy {outcome.plugin!r} failed: {outcome.error}")
        if isinstance(outcome.value, Stop):
            raise Exhausted(outcome.value.reason, hint="raise --max-budget-usd and resume")
    for outcome in outcomes:
        if isinstance(outcome.value, Pause):
            await _ask_to_go_on(run, step, outcome.value.reason)


async def _ask_to_go_on(run: Run, step: str, reason: str) -> None:
    options = (Option(label="Stop", recommended=True), Option(label="Go on"))
    question = Question(text=f"{reason}. Go on spending?", header="Budget", options=options, free_text=False)
    inquiry = Inquiry(kind="permission", questions=(question,), reason=reason)
    [answer] = await ask(run, inquiry, step=step, occasion=f"budget {run.ledger.calls}")
    if answer.chosen != ("Go on",):
        raise Exhausted(reason, hint="raise --max-budget-usd and resume")
