"""Ask the budget policies whether the run may spend more, before each agent call and after each turn."""

from __future__ import annotations

from decimal import Decimal

from gsd_core.errors import Exhausted
from gsd_core.hookspecs import gsd_check_budget
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.model.usage import Pause, Stop, Usage

from .permission import POLICY_LIMIT
from .questions import ask
from .runtime import Run

_HINT = "raise --max-budget-usd and resume"


async def check_budget(run: Run, step: str, reserve: Decimal | None, running: Usage | None = None) -> None:
    """Return if the run may spend more; raise ``Exhausted`` if not. ``Stop`` beats ``Pause``.

    *reserve* is what the next call may use, *running* is what the call under way has used. A policy that
    fails stops the run: nobody knows what it would have said, and spending cannot be undone.
    """
    spend = run.ledger.spend(run.id, step, reserve, running or Usage())
    outcomes = await run.hooks.fan_out(gsd_check_budget, POLICY_LIMIT, spend)
    for outcome in outcomes:
        if outcome.error is not None:
            raise Exhausted(f"the budget policy {outcome.plugin!r} failed: {outcome.error}")
        if isinstance(outcome.value, Stop):
            raise Exhausted(outcome.value.reason, hint=_HINT)
    for outcome in outcomes:
        if isinstance(outcome.value, Pause):
            reason = outcome.value.reason
            options = (Option(label="Stop", recommended=True), Option(label="Continue"))
            question = Question(
                text=f"{reason}. Continue spending?", header="Budget", options=options, free_text=False
            )
            inquiry = Inquiry(kind="permission", questions=(question,), reason=reason)
            # The number of calls is part of the key: each pause is a question of its own.
            [answer] = await ask(run, inquiry, step=step, key=f"budget {run.ledger.calls}")
            if answer.chosen != ("Continue",):
                raise Exhausted(reason, hint=_HINT)
