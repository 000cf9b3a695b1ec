"""Checkpoints: the questions for tasks that only a person can do."""

from __future__ import annotations

import attrs

from gsd_core import Answer, HumanCheck, Inquiry, Option, Plan, Question, StepRequest, Task
from gsd_core.planning.config import get
from gsd_core.planning.markdown import elements, named
from gsd_core.planning.must_haves import ASKED
from gsd_plugins.uat import BROKEN, WORKS

from .answers import AskArchitecture, NeedAuthentication

DONE = Option(label="Done", description="I have done this.")
CANNOT = Option(label="Not possible", description="The plan has to do without it; say how.")
KEEP = Option(label="Keep to the plan", description="Do without this change.", recommended=True)
MAX_MESSAGE = 1000
MAX_OPTIONS = 4
ARCHITECTURE, CHANGE = "Architecture", "Change the architecture?"
"""The header of a question about the architecture, and how its text begins."""
END_OF_PHASE = "end-of-phase"


def inquiry_for(step: StepRequest, plan: Plan, task: Task, rejections: int) -> Inquiry:
    """Return the question of a checkpoint that was rejected *rejections* times before."""
    details, what = task.details, task.action or task.name
    match task.type:
        case "checkpoint:decision":
            text = _text(details.get("decision") or what, details.get("context") or task.verify)
            options = _options(details.get("options", ""))
            question = Question(text=text, header="Please decide", options=options)
        case "checkpoint:human-action":
            verification = details.get("verification") or task.verify
            text = _text(what, details.get("instructions", ""), verification)
            question = Question(text=text, header="Please do", options=(DONE,), human_only=True)
        case _:
            check = postponed_check(plan, task)
            text = _text(check.test, check.expected)
            question = Question(text=text, header="Please check", options=(WORKS, BROKEN), inspection=True)
    if rejections:
        # The text is part of a question's identity: unchanged, the earlier answer would be returned.
        question = attrs.evolve(question, text=f"{question.text}\n\n(Asked again, attempt {rejections + 1}.)")
    reason = f"task {task.number} of plan {plan.id} needs a person: {task.name}"
    return Inquiry(kind="checkpoint", step=step.id, questions=(question,), reason=reason)


def authentication_inquiry(step: StepRequest, plan: Plan, call: NeedAuthentication, number: int) -> Inquiry:
    """Return the question for the *number*-th login that the plan needs; no policy may answer it."""
    # The text is part of a question's identity: a second login is another question.
    again = f"(Login {number} of this plan.)" if number > 1 else ""
    question = Question(
        text=_text(f"{call.service} needs a login.", call.message[:MAX_MESSAGE], call.action, again),
        header="Please log in",
        options=(DONE, CANNOT),
        human_only=True,
    )
    reason = f"plan {plan.id} needs access to {call.service}"
    return Inquiry(kind="checkpoint", step=step.id, questions=(question,), reason=reason)


def architecture_inquiry(step: StepRequest, plan: Plan, call: AskArchitecture) -> Inquiry:
    """Return the question about a change of the architecture.

    Where a policy answers it (``--yes``), nothing is changed: that is what the plan was approved for.
    """
    labels = dict.fromkeys(" ".join(option.split()) for option in call.options)
    options = [Option(label=label) for label in labels if label and label != KEEP.label][:MAX_OPTIONS]
    question = Question(
        text=_text(CHANGE, call.change[:MAX_MESSAGE]),
        header=ARCHITECTURE,
        options=(KEEP, *(options or [Option(label="Make the change")])),
    )
    reason = f"plan {plan.id} does not contain this change"
    return Inquiry(kind="checkpoint", step=step.id, questions=(question,), reason=reason)


def decision_of(question: Question, answer: Answer) -> str:
    """Return the answer to a question that came up while a plan was executed, as a decision of the plan."""
    is_ruling = question.header == ARCHITECTURE
    said = answer.words if is_ruling and not answer.text else question.explain(answer)
    said = f"{said} (the default: nobody answered)" if answer.is_assumption else said
    text = " ".join(question.text.removeprefix(CHANGE).split())
    # Claude Code's own mark of an option.
    said = said.replace(" (Recommended)", "")
    return f"{'[Rule 4]' if is_ruling else ASKED} {text}{'' if text.endswith('?') else ':'} {said}"


def is_postponed(step: StepRequest, task: Task) -> bool:
    """Whether a checkpoint waits for the end of the phase (``workflow.human_verify_mode``).

    Only what a person looks at can wait, and only if a verification follows; decisions and actions cannot.
    """
    mode = get(step.planning.config, "workflow.human_verify_mode", END_OF_PHASE)
    return task.type == "checkpoint:human-verify" and step.will_be_verified and mode == END_OF_PHASE


def postponed_check(plan: Plan, task: Task) -> HumanCheck:
    """Return what a person is asked at the end of the phase for a postponed checkpoint."""
    details = task.details
    return HumanCheck(
        test=details.get("what-built") or task.action or task.name,
        expected=details.get("how-to-verify") or task.verify,
        why=f"checkpoint of plan {plan.id}, task {task.number}",
        about=f"{plan.id}/{task.number}",
    )


def is_satisfied(task: Task, answer: Answer) -> bool:
    """Whether *answer* completes the task; a comment without a choice is not approval."""
    return task.type == "checkpoint:decision" or answer.chosen in ((WORKS.label,), (DONE.label,))


def _text(*parts: str) -> str:
    return "\n\n".join(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _options(text: str) -> tuple[Option, ...]:
    """Return a decision's options, from ``<option>`` elements or else lines; GSD recommends the first."""
    found: list[Option] = []
    for element in named(text, "option"):
        parts = {part.name: part.text for part in elements(element.inside)}
        label = parts.get("name") or element.attributes.get("id") or element.inside.strip()
        description = "; ".join(f"{name}: {parts[name]}" for name in ("pros", "cons") if parts.get(name))
        found.append(Option(label=label, description=description))
    if not found:
        found = [Option(label=line.lstrip("-*0123456789.) ").strip()) for line in text.splitlines()]
    unique: dict[str, Option] = {}
    for option in found:
        if option.label:
            unique.setdefault(option.label, option)
    return tuple(attrs.evolve(option, recommended=index == 0) for index, option in enumerate(unique.values()))
