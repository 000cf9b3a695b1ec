"""plan: plan a phase, or the gaps that its verification found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice

import attrs

from gsd_core import (
    AgentResult,
    AgentTask,
    Artifact,
    FileWrite,
    Gap,
    Inquiry,
    KeyLink,
    ListPlans,
    MustHaves,
    Option,
    Permanent,
    PhaseView,
    Plan,
    Question,
    StepHost,
    StepRequest,
    StepResult,
    Task,
    Truth,
    padded,
)
from gsd_core.planning.check import criteria_texts
from gsd_core.planning.config import get
from gsd_core.planning.markdown import escape
from gsd_core.planning.must_haves import served_by
from gsd_core.planning.plan import render_plan
from gsd_core.planning.plan_tasks import cycle_of, is_test_file
from gsd_core.planning.waves import waves

from .answers import PlanAnswer, PlanIssuesAnswer, PlansAnswer, TaskAnswer, acceptance, parse_answer
from .debug import Diagnosis, key_of, read_diagnoses
from .depth import plans_hint
from .models import task_for
from .paths import phase_file, phase_of, position, unwritten_plan_ids
from .plan_checks import lost_facts, normalized, validate_plans
from .prompt_context import (
    bullets,
    capped,
    describe_gap,
    existing_plans_section,
    fence,
    files_section,
    follow_up,
    gap_details,
    handoff_section,
    join,
    notes_section,
    other_phases_section,
    phase_sections,
    prompt_text,
    section,
    system_prompt,
)
from .skills import agent_skills_section, code_sections

MAX_REVISIONS = 3
TDD = (
    "The project is test-driven: everything whose result can be computed from its input is a plan of type "
    "tdd, one for each feature. The other type is for layout, configuration and glue code alone."
)
MAX_REVIEWS = 3
MAX_PLANS_TEXT = 80_000
"""Characters of the plans that the reviewer sees."""
EXECUTE, STOP = "Execute them anyway", "Stop"


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Run a planner, and have it revise its plans until they pass the checks, at most three times.

    In a comprehensive project an agent reviews plans that pass the checks in code; what it finds is revised
    too. If it still objects after three reviews, a person decides.
    """
    phase = phase_of(step)
    task = task_for(
        step,
        "planner",
        system=join(system_prompt("plan"), prompt_text("gaps") if step.round else ""),
        prompt=_prompt(step, phase),
        answer=PlansAnswer,
        turns=60,
    )

    def problems_of(answer: PlansAnswer) -> Sequence[str]:
        found = feature_problems(answer.plans)
        return found if answer.plans else ("plans: at least one plan is required",)

    accept = acceptance(PlansAnswer, problems_of)
    result = await host.run_agent("plan", task, accept)
    plans = _plans(step, result)
    # At depth comprehensive, unless ``workflow.plan_check`` is false.
    is_reviewed = step.depth == "comprehensive" and get(step.planning.config, "workflow.plan_check", True)
    revision = reviews = 0
    while True:
        problems = validate_plans(step, plans, _plans(step, result, as_written=True))
        if not revision and not step.round:
            problems = (*problems, *lost_facts(step, plans))
        if not problems and is_reviewed and reviews < MAX_REVIEWS:
            reviews += 1
            problems = await _review(step, plans, reviews, host)
            if problems and (reviews == MAX_REVIEWS or revision == MAX_REVISIONS):
                await _ask_about_objections(step, problems, host)
                break
        if not problems:
            break
        if revision == MAX_REVISIONS:
            raise Permanent(
                f"the plans for phase {phase.number} still have problems after {MAX_REVISIONS} revisions: "
                + "; ".join(problems),
                hint="edit the phase in .planning/ROADMAP.md, or write its plans by hand, and resume",
            )
        revision += 1
        result = await host.run_agent(f"revise-{revision}", revision_of(task, result, problems), accept)
        plans = _plans(step, result)

    ids = [plan.id for plan in plans]
    activity = f"Planned Phase {phase.number}: {', '.join(ids)}"
    return StepResult(
        subject=f"docs({padded(phase.number)}): plan {'gap closure' if step.round else 'phase'}",
        files=tuple(FileWrite(path=plan.path, text=render_plan(plan)) for plan in plans),
        changes=(
            ListPlans(phase=phase.number, plans=tuple((plan.id, plan.name) for plan in plans)),
            position(step, status="Ready to execute", activity=activity),
        ),
    )


def _prompt(step: StepRequest, phase: PhaseView) -> str:
    gaps = step.report.gaps if step.report and step.round else ()
    diagnosed = read_diagnoses(phase) if gaps else dict[str, Diagnosis]()
    return join(
        phase_sections(step, phase),
        other_phases_section(step, phase),
        existing_plans_section(step, phase),
        notes_section(step, phase),
        code_sections(step, phase, "planner"),
        handoff_section(step),
        section("Gaps to close", fence("gaps", "\n".join(_describe_gap(gap, diagnosed) for gap in gaps))),
        section("Plans listed in the roadmap, to be written now", bullets(unwritten_plan_ids(phase))),
        "" if step.round else plans_hint(step.depth),
        TDD if get(step.planning.config, "workflow.tdd_mode", False) else "",
    )


def _describe_gap(gap: Gap, diagnosed: Mapping[str, Diagnosis]) -> str:
    known = diagnosed.get(key_of(gap), Diagnosis())
    about = {"root cause": known.root_cause, "places": known.files, "suggested fix": known.fix}
    return describe_gap(gap.key, {**gap_details(gap), **about})


def feature_problems(answers: Sequence[PlanAnswer]) -> tuple[str, ...]:
    """Return why the test-driven plans of an answer cannot be executed as such."""
    found: list[str] = []
    for number, answer in enumerate(answers):
        if answer.type != "tdd":
            continue
        where = f"plans[{number}], which is of type tdd"
        if len(answer.tasks) != 1 or answer.tasks[0].type != "auto":
            found.append(f"{where}: expected one task of type auto, its feature")
            continue
        [feature] = answer.tasks
        if not feature.behavior.strip() or not feature.action.strip():
            found.append(f"{where}: expected the feature's behavior, and its implementation as action")
        if not feature.check.strip():
            found.append(f"{where}: expected a check, the command that runs the feature's tests")
        if not any(map(is_test_file, feature.files)) or all(map(is_test_file, feature.files)):
            found.append(f"{where}: files has to name the feature's test file, and a file that is not a test")
    return tuple(found)


def revision_of(task: AgentTask, result: AgentResult, problems: Sequence[str]) -> AgentTask:
    """Return the task of a revision, in the same conversation if there is one."""
    return follow_up(task, result, section(prompt_text("revise"), fence("problems", bullets(problems))))


def _plans(step: StepRequest, result: AgentResult, *, as_written: bool = False) -> tuple[Plan, ...]:
    answers = parse_answer(PlansAnswer, result.value).plans
    gaps = step.report.gaps if step.report and step.round else ()
    return plans_from(answers, phase_of(step), gap_closure=step.round > 0 and not as_written, gaps=gaps)


def plans_from(
    answers: Sequence[PlanAnswer], phase: PhaseView, *, gap_closure: bool, gaps: Sequence[Gap] = ()
) -> tuple[Plan, ...]:
    """Return a planner's answers as plans; ids, waves and truth ids are assigned here.

    A plan also lists the requirements that its truths serve. *gaps* are those that a gap closure closes.
    """
    # First the ids in the roadmap that have no file yet, then new ones.
    taken = {*phase.listed, *(plan.id for plan in phase.plans)}
    suffixes = (plan_id.rpartition("-")[2] for plan_id in taken)
    last = max((int(digits) for digits in suffixes if digits.isdecimal()), default=0)
    new = (f"{padded(phase.number)}-{number:02d}" for number in count(last + 1))
    ids = (*unwritten_plan_ids(phase), *islice(new, len(answers)))[: len(answers)]
    plans = [_plan(answer, index, ids, phase) for index, answer in enumerate(answers)]
    placed = waves({plan.id: plan.depends_on for plan in plans})
    # Plans in a dependency cycle have no wave; the checks reject them.
    plans = [attrs.evolve(plan, wave=placed.get(plan.id, 1)) for plan in plans]
    return tuple(_gap_closure(plan, phase, gaps) if gap_closure else plan for plan in plans)


def _gap_closure(plan: Plan, phase: PhaseView, gaps: Sequence[Gap]) -> Plan:
    """Place a plan after the phase's last wave, and give it the requirements of the plans it repairs.

    A truth that says nothing else serves what the truth that did not hold serves, or what the gap is about.
    """
    last = max((earlier.wave for earlier in phase.plans), default=0)
    files = set(plan.files_modified)
    repaired = [earlier for earlier in phase.plans if files & set(earlier.files_modified)]
    inherited = tuple(dict.fromkeys(name for earlier in repaired for name in earlier.requirements))
    requirements = plan.requirements or inherited or phase.requirements
    served = _served_before(phase, gaps)
    default = _known(requirements, phase) or tuple(criteria_texts(phase))
    truths = tuple(
        attrs.evolve(truth, serves=truth.serves or served.get(normalized(truth.text), default))
        for truth in plan.must_haves.truths
    )
    return attrs.evolve(
        plan,
        gap_closure=True,
        wave=last + plan.wave,
        depends_on=plan.depends_on
        or tuple(one.id for one in phase.plans if one.wave == last and one.summary),
        requirements=requirements,
        must_haves=attrs.evolve(plan.must_haves, truths=truths),
    )


def _served_before(phase: PhaseView, gaps: Sequence[Gap]) -> dict[str, tuple[str, ...]]:
    """Return what is served by each truth of the phase's plans and of *gaps*, by its normalized text."""
    criteria = criteria_texts(phase)
    served: dict[str, tuple[str, ...]] = {normalized(text): (name,) for name, text in criteria.items()}
    own = (*phase.requirements, *criteria)
    served |= {normalized(gap.truth): (gap.about,) for gap in gaps if gap.about in own}
    for plan in phase.plans:
        for truth in plan.must_haves.truths:
            if names := served_by(plan, truth):
                served[normalized(truth.text)] = names
    return {text: known for text, names in served.items() if (known := _known(names, phase))}


def _known(names: Iterable[str], phase: PhaseView) -> tuple[str, ...]:
    return tuple(name for name in names if name in phase.requirements or name in criteria_texts(phase))


def _plan(answer: PlanAnswer, index: int, ids: Sequence[str], phase: PhaseView) -> Plan:
    plan_id = ids[index]
    served = [name for truth in answer.truths for name in truth.serves if name in phase.requirements]
    return Plan(
        id=plan_id,
        phase=phase.number,
        name=answer.name,
        objective=answer.objective,
        type=answer.type,
        # The checks reject an invalid number, which is kept as it is.
        depends_on=tuple(ids[n - 1] if 0 < n <= len(ids) else str(n) for n in answer.depends_on),
        files_modified=answer.files_modified,
        autonomous=all(task.type == "auto" for task in answer.tasks),
        requirements=tuple(dict.fromkeys([*answer.requirements, *served])),
        must_haves=MustHaves(
            truths=tuple(
                Truth(id=f"{plan_id}:T{number}", text=truth.text, serves=truth.serves)
                for number, truth in enumerate(answer.truths, start=1)
            ),
            artifacts=tuple(Artifact(**attrs.asdict(item, recurse=False)) for item in answer.artifacts),
            key_links=tuple(KeyLink(**attrs.asdict(link, recurse=False)) for link in answer.key_links),
        ),
        tasks=_tasks(answer),
        path=phase_file(phase, f"{plan_id}-PLAN.md"),
    )


def _tasks(answer: PlanAnswer) -> tuple[Task, ...]:
    if answer.type != "tdd":
        return tuple(_task(task, number) for number, task in enumerate(answer.tasks, start=1))
    feature = _task(answer.tasks[0], 1)
    details = {"behavior": answer.tasks[0].behavior, "implementation": feature.action}
    return cycle_of(attrs.evolve(feature, details=details), 1)


def _task(answer: TaskAnswer, number: int) -> Task:
    task = Task(number=number, name=answer.name, type=answer.type, files=answer.files, done=answer.done)
    if answer.type == "auto":
        return attrs.evolve(task, action=answer.action, verify=answer.verify, check=answer.check)
    return attrs.evolve(task, details=_checkpoint_details(answer))


def _checkpoint_details(answer: TaskAnswer) -> Mapping[str, str]:
    """Return a checkpoint's texts by the element names that GSD uses in PLAN.md."""
    if answer.type == "checkpoint:human-verify":
        return {"what-built": answer.action, "how-to-verify": answer.verify}
    if answer.type == "checkpoint:human-action":
        return {"instructions": answer.action, "verification": answer.verify}
    options: list[str] = []
    for number, option in enumerate(answer.options, start=1):
        parts = {"name": option.name, "pros": option.pros, "cons": option.cons}
        inside = "".join(f"<{name}>{escape(text, 'option')}</{name}>" for name, text in parts.items() if text)
        options.append(f'<option id="option-{number}">{inside}</option>')
    return {"decision": answer.action, "context": answer.verify, "options": "\n".join(options)}


# The review by an agent that did not write the plans


async def _review(step: StepRequest, plans: Sequence[Plan], number: int, host: StepHost) -> tuple[str, ...]:
    """Return the blockers that an agent finds in *plans*; *number* counts the reviews of the step from 1."""
    phase = phase_of(step)
    known = {plan.id for plan in plans}
    text = "\n\n".join(f"{plan.path}\n{render_plan(plan)}" for plan in plans)
    gaps = step.report.gaps if step.round and step.report else ()
    task = task_for(
        step,
        "checker",
        agent="plan-checker",
        system=system_prompt("plan_check"),
        prompt=join(
            section("The plans to review", fence("plans", capped(text, MAX_PLANS_TEXT))),
            section("They have to close these gaps", fence("gaps", bullets(gap.truth for gap in gaps))),
            phase_sections(step, phase),
            existing_plans_section(step, phase),
            files_section(step, phase),
            agent_skills_section(step, "plan-checker"),
        ),
        answer=PlanIssuesAnswer,
        turns=40,
    )

    def problems(answer: PlanIssuesAnswer) -> Iterator[str]:
        scope = ", ".join(sorted(known))
        for issue in answer.issues:
            if issue.plan not in known:
                yield f"there is no plan {issue.plan!r}; the plans are {scope}"

    result = await host.run_agent(f"review-{number}", task, acceptance(PlanIssuesAnswer, problems))
    return tuple(
        f"{issue.plan}: {issue.problem}" + (f" ({issue.fix})" if issue.fix.strip() else "")
        for issue in parse_answer(PlanIssuesAnswer, result.value).issues
        if issue.severity == "blocker"
    )


async def _ask_about_objections(step: StepRequest, objections: Sequence[str], host: StepHost) -> None:
    """Ask whether plans are executed to which the reviewer still objects; raise ``Permanent`` if not."""
    phase = phase_of(step)
    question = Question(
        text=f"The review of the plans for phase {phase.number} still objects:\n{bullets(objections)}",
        header="Plan review",
        options=(
            Option(label=EXECUTE, description="the verification will show what is missing", recommended=True),
            Option(label=STOP, description="edit the phase or its plans, then resume"),
        ),
        free_text=False,
    )
    inquiry = Inquiry(step=step.id, questions=(question,), reason="the planner has revised them already")
    [answer] = await host.ask(inquiry)
    if answer.chosen == (STOP,):
        problem = f"the plans for phase {phase.number} are not executed: {'; '.join(objections)}"
        hint = "edit the phase in .planning/ROADMAP.md, or write its plans by hand, and resume"
        raise Permanent(problem, hint=hint)
