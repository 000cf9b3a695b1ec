"""Ask a human about what failed: retry, skip or abort; nobody there ends the run by its cause."""

from __future__ import annotations

from gsd_core.ids import StepId
from gsd_core.machine.due import End, Escalate, exit_of
from gsd_core.question import Inquiry, Option, Question

from .ask import ask
from .session import Run


async def escalate(run: Run, item: Escalate) -> None:
    """Ask; raises ``Parked`` if nobody can answer."""
    step = StepId.parse(item.step)
    options = (
        Option(label="Retry", description=_retry(item)),
        Option(label="Skip", description="leave this phase, and all that depends on it, undone"),
        Option(label="Abort", description="end the run here; it can be resumed"),
    )
    question = Question(text=_text(item, step), header="What now?", options=options, free_text=False)
    inquiry = Inquiry(kind="escalation", questions=(question,), reason=_reason(item))
    occasion = f"{item.cause} {item.generation}"
    await ask(run, inquiry, step=item.step, occasion=occasion)


def _retry(item: Escalate) -> str:
    return "one more gap round" if item.cause == "gaps" else "try the step again, afresh"


def _text(item: Escalate, step: StepId) -> str:
    match item.cause:
        case "gaps":
            listed = "".join(f"\n- {gap}" for gap in item.gaps)
            return f"Phase {step.phase} still has gaps:{listed}\nWhat now?"
        case "lost":
            return f"Step {item.step} was lost three times in a row. What now?"
        case "repeats":
            return f"Step {item.step} was done, and its work is gone from the disk each time. What now?"
        case "failed":
            return f"Step {item.step} failed: {item.failure.message if item.failure else ''}\nWhat now?"


def _reason(item: Escalate) -> str:
    hint = item.failure.hint if item.failure else ""
    return hint or {"gaps": "the gap rounds are used up, or the last one closed none"}.get(item.cause, "")


def unanswered(item: Escalate) -> End:
    """Return how a run ends when nobody answers an escalation."""
    if item.cause == "gaps":
        return End(outcome="gaps", exit=6, reason=f"gaps remain: {', '.join(item.gaps)}")
    code = exit_of(item.failure)
    message = item.failure.message if item.failure else _WITHOUT_FAILURE[item.cause]
    return End(outcome="budget" if code == 5 else "failed", exit=code, reason=f"{item.step}: {message}")


_WITHOUT_FAILURE = {
    "lost": "three attempts in a row were lost with the process that made them",
    "repeats": "it was done, and its work is gone from the disk each time",
    "failed": "it failed",
}
