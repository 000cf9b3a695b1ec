"""discuss: ask what the idea leaves open about a phase, and record the decisions that it is planned by.

An agent that has looked at the idea and the code finds the questions, but it decides none of them: a decision
is the option that was chosen, or the words of the person who answered. If nobody answers, the user's own
policy decides, and CONTEXT.md says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from gsd_core import (
    AgentResult,
    Answer,
    FileWrite,
    Inquiry,
    Option,
    PhaseView,
    Question,
    Statement,
    StepHost,
    StepRequest,
    StepResult,
    padded,
)
from gsd_core.planning.config import get
from gsd_core.planning.context import (
    INFORMATIONAL,
    Decision,
    Scope,
    about_statements,
    add_decisions,
    render_context,
)
from gsd_core.planning.exact import contradictions, exact_facts

from .answers import DiscussionAnswer, GrayAreaAnswer, acceptance, parse_answer
from .models import task_for
from .paths import date_of, phase_file, phase_of, position
from .plan_checks import normalized
from .prompt_context import (
    bullets,
    capped,
    constraints,
    existing_plans_section,
    fence,
    files_section,
    follow_up,
    join,
    notes_section,
    other_phases_section,
    phase_sections,
    prompt_text,
    section,
    system_prompt,
)
from .skills import rules_section

DISCRETION = "Everything that the decisions above, the goal and the requirements leave open."
MAX_QUESTIONS = 4
QUOTE_LIMIT = 400
"""Characters of a statement that a question shows."""
MAX_PASSES = 2
LAST_TIME = "This is the last time you can ask."
OPTIONS = range(2, 5)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Find what is open about the phase, have it decided, and write its CONTEXT.md."""
    phase = phase_of(step)
    task = task_for(
        step,
        "discusser",
        system=system_prompt("discuss"),
        prompt=_prompt(step, phase),
        answer=DiscussionAnswer,
        turns=40,
    )
    seen: set[str] = set()
    result = await host.run_agent("discuss", task, _accept(seen, step))
    found = parse_answer(DiscussionAnswer, result.value)
    decided, answers = await _decide(step, host, found.questions)
    passes = get(step.planning.config, "workflow.max_discuss_passes", MAX_PASSES)
    for turn in range(2, passes + 1):
        # Only an answer that the agent did not expect can open new questions.
        if not any(not one.is_assumption and one.chosen != (_recommended(q).label,) for q, one in answers):
            break
        seen.update(normalized(question.question) for question in found.questions)
        said = fence("answers", "\n".join(f"- {q.question}\n  {_explained(q, one)}" for q, one in answers))
        last = LAST_TIME if turn == passes else ""
        again = follow_up(task, result, join(prompt_text("discuss_again"), last, said))
        name = "discuss-again" if turn == 2 else f"discuss-again-{turn - 1}"
        result = await host.run_agent(name, again, _accept(seen, step))
        found = parse_answer(DiscussionAnswer, result.value)
        more, answers = await _decide(step, host, found.questions)
        decided = (*decided, *more)
    number = padded(phase.number)
    if phase.context:
        # Discussed again at the user's wish: what people or other tools wrote there stays.
        text = add_decisions(phase.context, decided)
    else:
        scope = Scope(
            included=found.in_scope,
            excluded=found.out_of_scope,
            deferred=found.deferred,
            discretion=(*found.discretion, DISCRETION),
        )
        # They limit every phase, so not every phase has a plan that implements them.
        listed = constraints(step.planning.documents.get("PROJECT.md", ""))
        limits = (Decision(area=kind, text=words, tag=INFORMATIONAL) for kind, words in listed)
        text = render_context(phase, [*limits, *decided], scope, date_of(step))
    status = "Ready to plan" if not phase.plans else "Planned"
    return StepResult(
        subject=f"docs({number}): capture phase context",
        files=(FileWrite(path=phase_file(phase, f"{number}-CONTEXT.md"), text=text),),
        changes=(position(step, status=status, activity=f"Phase {phase.number} context gathered"),),
    )


def _prompt(step: StepRequest, phase: PhaseView) -> str:
    return join(
        phase_sections(step, phase),
        existing_plans_section(step, phase),
        notes_section(step, phase),
        other_phases_section(step, phase),
        files_section(step, phase),
        rules_section(step, "discusser"),
        section("The owner wants to discuss", fence("wish", step.text)),
    )


def _accept(seen: set[str], step: StepRequest) -> Callable[[AgentResult], Sequence[str]]:
    """Return the check of a discusser's answer; *seen* are the questions that were asked before."""

    def problems(answer: DiscussionAnswer) -> Iterator[str]:
        questions = answer.questions
        if len(questions) > MAX_QUESTIONS:
            yield f"questions: at most {MAX_QUESTIONS}, keep those that change the most"
        texts = [normalized(question.question) for question in questions]
        for number, question in enumerate(questions):
            where = f"questions[{number}]"
            labels = [normalized(option.label) for option in question.options]
            if not texts[number] or texts[number] in texts[:number]:
                yield f"{where}: an empty question, or one that is there twice"
            if texts[number] in seen:
                yield f"{where}: it was answered already"
            if len(labels) not in OPTIONS or len(set(labels)) < len(labels) or not all(labels):
                yield f"{where}.options: two to four options with different labels"
            if not 1 <= question.recommended <= len(labels):
                yield f"{where}.recommended: the number of one of its options, counted from 1"

    def doubts(answer: DiscussionAnswer) -> Iterator[str]:
        for number, area in enumerate(answer.questions):
            words = next((option.in_full for option in _options(area) if option.recommended), "")
            for statement in _touched(area, step):
                if facts := contradictions(exact_facts(statement.text), words):
                    yield (
                        f"questions[{number}]: the recommended option {words!r} contradicts "
                        f"{', '.join(repr(one.text) for one in facts)} of {statement.id}, which says "
                        f"{statement.text!r}: recommend what the idea says, or leave the question out"
                    )

    return acceptance(DiscussionAnswer, problems, doubts)


def _touched(area: GrayAreaAnswer, step: StepRequest) -> tuple[Statement, ...]:
    """Return the idea's statements that a question says it is about."""
    return tuple(one for one in step.planning.statements if one.id in area.statements)


def _options(area: GrayAreaAnswer) -> tuple[Option, ...]:
    return tuple(
        Option(label=each.label, description=each.description, recommended=number == area.recommended)
        for number, each in enumerate(area.options, start=1)
    )


async def _decide(
    step: StepRequest, host: StepHost, areas: Sequence[GrayAreaAnswer]
) -> tuple[tuple[Decision, ...], tuple[tuple[GrayAreaAnswer, Answer], ...]]:
    """Return a decision on each question, and the answers to those that were asked, in one batch."""
    areas = [attrs.evolve(one, statements=tuple(s.id for s in _touched(one, step))) for one in areas]
    if step.skip_discuss or not areas:
        return tuple(_assumed(one, "Assumed: nobody was asked") for one in areas), ()
    if get(step.planning.config, "workflow.discuss_mode", "discuss") == "assumptions":
        lines = bullets(f"{one.question} {_recommended(one).in_full}" for one in areas)
        text = join("These are the assumptions about the phase. Are they right?", lines)
        question = Question(text=text, header="Assumptions", options=(RIGHT, ASK))
        reason = f"phase {phase_of(step).number} is planned by them"
        [answer] = await host.ask(Inquiry(step=step.id, questions=(question,), reason=reason))
        if answer.chosen != (ASK.label,):
            return tuple(_confirmed(areas, answer)), ()
    questions: list[Question] = []
    for one in areas:
        said = [f"The idea says ({s.id}): {capped(s.text, QUOTE_LIMIT)}" for s in _touched(one, step)]
        text = join(one.question, one.why, "\n".join(said))
        questions.append(Question(text=text, header=one.area, options=_options(one)))
    reason = f"phase {phase_of(step).number} is planned by the answers"
    answers = await host.ask(Inquiry(step=step.id, questions=tuple(questions), reason=reason))
    given = tuple(zip(areas, answers, strict=True))
    decided = tuple(_decision(one, _explained(one, answer), _origin(answer)) for one, answer in given)
    return decided, given


RIGHT = Option(label="They are right", description="Plan by them.", recommended=True)
ASK = Option(label="Ask me", description="Ask each of these questions.")


def _confirmed(areas: Sequence[GrayAreaAnswer], answer: Answer) -> Iterator[Decision]:
    if answer.text:
        notes = ("It takes precedence over the assumptions", _origin(answer))
        yield Decision(area="Correction", text=answer.text, notes=notes)
    yield from (_assumed(one, f"Assumed. {_origin(answer)}") for one in areas)


def _recommended(area: GrayAreaAnswer) -> Option:
    return _options(area)[area.recommended - 1]


def _assumed(area: GrayAreaAnswer, note: str) -> Decision:
    return _decision(area, _recommended(area).in_full, note)


def _decision(area: GrayAreaAnswer, text: str, note: str) -> Decision:
    notes = (area.question, *about_statements(area.statements), note)
    return Decision(area=area.area, text=text, notes=notes)


def _origin(answer: Answer) -> str:
    match answer.how:
        case "timeout":
            return "Not answered: recommended option taken"
        case "policy":
            return f"Recommended option taken, nobody was asked ({answer.by or answer.via})"
        case "file":
            return "Answered by a prepared answer"
        case "human":
            return f"Answered by {answer.by or 'a person'}"


def _explained(area: GrayAreaAnswer, answer: Answer) -> str:
    return Question(text=area.question, options=_options(area)).explain(answer)
