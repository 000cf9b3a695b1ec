"""Checkpoints: tasks of a plan that only a person can do, as questions."""

from __future__ import annotations

from attrs import evolve

from gsd_core import Answer, Inquiry, Option, Plan, Question, StepRequest, Task
from gsd_core.planning.markdown import elements, named

WORKS = Option(label="Works", description="It is as it should be.", recommended=True)
BROKEN = Option(label="Does not work", description="Say what is wrong.")
DONE = Option(label="Done", description="I have done this.")


def inquiry_for(step: StepRequest, plan: Plan, task: Task, tries: int) -> Inquiry:
    """Return the question of a checkpoint; asked again after a no (*tries*) it is another question."""
    question = {
        "checkpoint:decision": _decision,
        "checkpoint:human-action": _action,
    }.get(task.type, _verify)(task)
    if tries:
        question = evolve(question, text=f"{question.text}\n\n(Asked again, {tries}.)")
    return Inquiry(
        kind="checkpoint",
        step=step.id,
        questions=(question,),
        reason=f"task {task.number} of plan {plan.id} waits: {task.name}",
    )


def satisfied(task: Task, answer: Answer) -> bool:
    """Say whether the task is done with that answer; a remark without a choice is no yes."""
    return task.type == "checkpoint:decision" or answer.chosen in ((WORKS.label,), (DONE.label,))


def _verify(task: Task) -> Question:
    built = _text(task, "what-built", task.action or task.name)
    how = _text(task, "how-to-verify", task.verify)
    return Question(text=_parts(built, how), header="Please check", options=(WORKS, BROKEN))


def _decision(task: Task) -> Question:
    text = _parts(_text(task, "decision", task.action or task.name), _text(task, "context", task.verify))
    return Question(text=text, header="Please decide", options=_options(task.details.get("options", "")))


def _action(task: Task) -> Question:
    steps = _text(task, "instructions", "")
    text = _parts(task.action or task.name, steps, _text(task, "verification", task.verify))
    return Question(text=text, header="Please do", options=(DONE,), human_only=True)


def _options(text: str) -> tuple[Option, ...]:
    """Read a decision's options; the first is taken as recommended, as GSD does."""
    found = [_option(element.inside, element.attributes.get("id", "")) for element in named(text, "option")]
    lines = [Option(label=line.lstrip("-*0123456789.) ").strip()) for line in text.splitlines()]
    unique: dict[str, Option] = {}
    for option in found or lines:
        unique.setdefault(option.label, option)
    options = [option for label, option in unique.items() if label]
    return tuple(evolve(option, recommended=number == 0) for number, option in enumerate(options))


def _option(inside: str, name: str) -> Option:
    parts = {element.name: element.text for element in elements(inside)}
    about = [f"{what}: {parts[what]}" for what in ("pros", "cons") if parts.get(what)]
    return Option(label=parts.get("name") or name or inside.strip(), description="; ".join(about))


def _text(task: Task, name: str, other: str) -> str:
    return task.details.get(name, "") or other


def _parts(*parts: str) -> str:
    return "\n\n".join(dict.fromkeys(part.strip() for part in parts if part.strip()))
