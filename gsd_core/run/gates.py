"""What a person is asked between steps: the ``gates`` of config.json, and what is in a result's way.

The sources of the gates and their names are GSD v1.20.5's config. A gate is asked if it is ``true`` in the
project's file; without the key, and with ``mode: yolo``, it is not.
"""

from __future__ import annotations

from collections.abc import Sequence

from gsd_core.errors import Parked
from gsd_core.exit_codes import ExitCode
from gsd_core.machine.due import ApplyResult, End, Start
from gsd_core.model.ids import INIT
from gsd_core.model.question import Answer, Inquiry, Option, Question, answer_command
from gsd_core.planning.config import get

from .apply import apply_result
from .integration import InTheWay
from .questions import ask, last_asked, withdraw
from .runtime import Run

CONTINUE, GO_ON, STOP = "Continue", "Go on", "Stop"
IN_THE_WAY = "in the way"
"""How the keys of the questions about a person's files begin: a result whose step asks one is not applied."""
MAX_LISTED = 10


async def confirm(run: Run, item: Start) -> End | None:
    """Ask the gate of the step that is about to start, if any; return the run's end if it must not start.

    The question is about one step of one generation: a retry, or a process that resumes the run, does not
    ask it again.
    """
    names, text = _gate(run, item)
    config = run.planning.config
    wanted = [name for name in names if get(config, f"gates.{name}", False)]
    # With --yes, a plugin proposes "yolo"; but then the questions can be asked, and are answered.
    if not wanted or (get(config, "mode", "interactive") == "yolo" and not run.request.info.yes):
        return None
    step = str(item.step)
    options = (
        Option(label=CONTINUE, description="start the step", recommended=True),
        Option(label=STOP, description="end the run here; look at the files in .planning/, then resume"),
    )
    question = Question(text=text, header="Continue?", options=options, free_text=False)
    reason = f"gates.{wanted[0]} is true in .planning/config.json"
    key = f"gate {wanted[0]} {run.step(step).generation}"
    answer = await _answer_or_end(run, Inquiry(questions=(question,), reason=reason), step, key)
    if isinstance(answer, End):
        return answer
    if answer.chosen != (STOP,):
        return None
    # The question is asked again when the run is resumed.
    withdraw(run, step, key)
    return End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason=f"stopped before {step}, as answered")


async def apply(run: Run, item: ApplyResult) -> End | None:
    """Apply the step's result; if files of a person are in its way, ask until they are not.

    Return how the run ends if nobody answers, or the answer is to stop.
    """
    step = item.step
    key = f"{IN_THE_WAY} {run.step(step).generation}"
    try:
        await apply_result(run, step)
    except InTheWay as exc:
        options = (
            Option(label=GO_ON, description="they are committed or moved away now"),
            Option(label=STOP, description="end the run here; nothing is lost"),
        )
        text = f"The work of {step} is done and paid for, but files that you have changed are in its way:"
        text += "".join(f"\n- {path}" for path in exc.files[:MAX_LISTED])
        question = Question(text=text, header="In the way", options=options, free_text=False, human_only=True)
        reason = "they are not committed, and nothing may overwrite them"
        answer = await _answer_or_end(run, Inquiry(questions=(question,), reason=reason), step, key)
        if isinstance(answer, End):
            return answer
        withdraw(run, step, key)
        if answer.chosen == (STOP,):
            reason = f"stopped before the work of {step} was merged, as answered"
            return End(outcome="stopped", exit=ExitCode.INTERRUPTED, reason=reason)
        return None
    if (asked := last_asked(run, step, key)) and asked.open:
        withdraw(run, step, key)
    return None


async def _answer_or_end(run: Run, inquiry: Inquiry, step: str, key: str) -> Answer | End:
    """Return the answer to the only question of *inquiry*, or how the run ends without one."""
    try:
        [answer] = await ask(run, inquiry, step=step, key=key)
    except Parked:
        gsd = run.request.info.command
        record = last_asked(run, step, key)
        assert record is not None, "it was asked above"
        todo = f"{answer_command(record.inquiry.questions[0], gsd)}, then {gsd} resume"
        reason = f"{step} is waiting for an answer: {todo}"
        return End(outcome="blocked", exit=ExitCode.QUESTION, reason=reason)
    return answer


def _gate(run: Run, item: Start) -> tuple[Sequence[str], str]:
    """Return the gates before a step, one of which is asked, and the question; no names if there is none."""
    step = item.step
    phase = run.planning.phase(step.phase) if step.phase else None
    if phase is None:
        return (), ""
    name = f"phase {phase.number} ({phase.name})"
    if step.kind == "execute":
        if any(plan.summary for plan in phase.plans):
            return ("execute_next_plan",), f"Execute plan {step.detail} of {name}?"
        plans = ", ".join(plan.id for plan in phase.plans)
        return ("confirm_breakdown", "confirm_plan"), f"Execute the plans of {name}: {plans}?"
    if step.kind == "plan" and item.for_gaps:
        return ("issues_review",), f"The verification of {name} found gaps. Plan how to close them?"
    if step.kind == "complete":
        return ("confirm_transition",), f"Mark {name}, which is verified, as complete?"
    kinds = [record.id for record in run.state.steps.values()]
    if any(one.kind == INIT for one in kinds) and not any(one.phase for one in kinds):
        phases = ", ".join(f"{one.number} {one.name}" for one in run.planning.phases)
        text = f"The project is set up, with these phases: {phases}. Begin with them?"
        return ("confirm_project", "confirm_phases", "confirm_roadmap"), text
    return (), ""
