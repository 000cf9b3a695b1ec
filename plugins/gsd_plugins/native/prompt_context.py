"""The parts of the agents' prompts: our own text from data files, all other material inside fences."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import takewhile

import attrs

from gsd_core import AgentResult, AgentTask, Conversation, Gap, PhaseView, Plan, Statement, StepRequest
from gsd_core.planning.check import criteria_texts
from gsd_core.planning.codebase import SECTIONS, sections_of
from gsd_core.planning.config import get
from gsd_core.planning.context import read_decisions
from gsd_core.planning.idea import CONSTRAINT, MAX_STATEMENTS, OUT_OF_SCOPE
from gsd_core.planning.must_haves import ASKED, asked_of
from gsd_core.planning.project import project_summary

from .paths import executed_plans

REQUIREMENTS_LIMIT = 12_000
"""Characters of a phase's requirements with their statements. The limits below are in characters, too."""
STATEMENT_LIMIT = 1_500
SHORT_STATEMENT_LIMIT = 200
CONSTRAINTS_LIMIT = 4_000
DECISIONS_LIMIT = 8_000
EARLIER_DECISIONS_LIMIT = 4_000
RESEARCH_LIMIT = 16_000
PLANS_LIMIT = 12_000
CODEBASE_LIMIT = 6_000
NOTES_LIMIT = 6_000
FILES_LIMIT = 4_000
COMMAND_LIMIT = 400
LANGUAGE_LIMIT = 40
HANDOFF_LIMIT = 8_000
MAX_FOLDERS = 12
"""How many folders are named whose files are not listed."""

SUMMARY_LIMIT = 1000
"""Characters of the project's summary."""

# What the template of CONTEXT.md has, and says nothing.
_BOILERPLATE = re.compile(
    r"^\*\*Gathered:\*\* [\d-]+\n|^\*\*Status:\*\* Ready for planning\n+"
    r"|^<(specifics|deferred)>\n+## .*\n+None(?: beyond the decisions above)?\.?\n+</\1>\n*"
    r"|^---\n+(?:\*(?:Phase|Context gathered): .*\*\n*)+",
    re.MULTILINE,
)
_CONSTRAINTS = re.compile(r"^## Constraints\s*$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^[-*] +(?:\*\*(.+?):?\*\*:? *)?(.+)$", re.MULTILINE)


@cache
def prompt_text(name: str) -> str:
    """Return the text of ``prompts/NAME.md``."""
    return files("gsd_plugins.native").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()


def system_prompt(name: str) -> str:
    """Return the system prompt of a role: its instructions, and the rules that all roles share."""
    return join(prompt_text(name), prompt_text("rules"))


def phase_sections(step: StepRequest, phase: PhaseView) -> str:
    """Return the phase, what limits it, and what was decided and found out about it."""
    return join(
        phase_section(step, phase),
        constraints_section(step, phase.context),
        earlier_decisions_section(step, phase),
        section(
            "Decisions to follow",
            fence("context", capped(_BOILERPLATE.sub("", phase.context).strip(), DECISIONS_LIMIT)),
        ),
        section("Research", fence("research", capped(phase.research, RESEARCH_LIMIT))),
    )


def phase_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the phase's goal, its success criteria, and its requirements with the idea's words."""
    listed = requirements_text(step, phase)
    stated = f"Requirements, each with the words of the idea that it comes from:\n{listed}" if listed else ""
    criteria = bullets(f"{name}: {' '.join(text.split())}" for name, text in criteria_texts(phase).items())
    core_value = step.planning.core_value
    summary = project_summary(step.planning.documents.get("PROJECT.md", ""))
    body = join(
        f"Name: {phase.name}",
        f"Goal: {phase.goal}",
        f"Success criteria:\n{criteria}",
        stated,
        f"The project: {summary[:SUMMARY_LIMIT]}" if summary else "",
        f"Core value of the project: {core_value}" if core_value else "",
    )
    return section(f"Phase {phase.number}", fence("phase", body))


def requirements_text(step: StepRequest, phase: PhaseView) -> str:
    """Return the phase's requirements with the statements of the idea that they come from; all of them.

    If the text is too long, the statements are cut, and of a requirement with very many statements, only the
    ids of the last ones are given.
    """
    text = _requirements(step, phase.requirements, STATEMENT_LIMIT, MAX_STATEMENTS)
    if len(text) <= REQUIREMENTS_LIMIT:
        return text
    most = max(1, REQUIREMENTS_LIMIT // SHORT_STATEMENT_LIMIT // len(phase.requirements))
    return _requirements(step, phase.requirements, SHORT_STATEMENT_LIMIT, most)


def _requirements(step: StepRequest, names: Iterable[str], limit: int, most: int) -> str:
    known = {requirement.id: requirement for requirement in step.planning.requirements}
    statements = {statement.id: statement for statement in step.planning.statements}
    lines: list[str] = []
    for name in names:
        requirement = known.get(name)
        lines.append(f"- {name}: {requirement.text if requirement else '(not in REQUIREMENTS.md)'}")
        used = [one for one in requirement.statements if one in statements] if requirement else []
        lines += [f"  {describe_statement(step, statements[one], limit)}" for one in used[:most]]
        lines += [f"  and, in .planning/IDEA.md: {', '.join(used[most:])}"] if used[most:] else []
    return "\n".join(lines)


def describe_statement(step: StepRequest, statement: Statement, limit: int) -> str:
    """Return a statement's words, with the decision about it, if any, or the heading that it is under."""
    decided = (
        f"decided: phase {phase.number}, {name}"
        for phase in step.planning.phases
        for name in (
            *(one.id for one in read_decisions(phase.context) if statement.id in one.statements),
            *(name for plan in phase.plans for name, text in asked_of(plan) if _is_about(text, statement)),
        )
    )
    text = capped(statement.text, limit).replace("\n", "\n  ")
    under = f"under {statement.heading[:100]!r}" if statement.heading else ""
    about = next(decided, under)
    return f"{statement.id}{about and f' ({about})'}: {text}"


def _is_about(asked: str, statement: Statement) -> bool:
    """Whether most words of a question that was *asked* are those of a statement, by their beginnings.

    What an agent asks while it executes a plan does not say which statement it is about.
    """
    texts = (asked.partition("?")[0], statement.text)
    question, said = ({word[:3] for word in re.findall(r"\w{3,}", text.casefold())} for text in texts)
    return 2 * len(question & said) > len(question)


def constraints(project: str) -> tuple[tuple[str, str], ...]:
    """Return the constraints listed in a PROJECT.md, each as its type and its text."""
    found = _CONSTRAINTS.search(project.replace("\r\n", "\n"))
    listed: list[tuple[str, str]] = _BULLET.findall(found[1]) if found else []
    return tuple((kind or "Constraint", text) for kind, text in listed)


def constraints_section(step: StepRequest, context: str = "") -> str:
    """Return what limits the whole project: the constraints, and what is out of scope.

    A constraint that the decisions in *context* repeat is shown only there.
    """
    project = constraints(step.planning.documents.get("PROJECT.md", ""))
    decided = " ".join(context.split())
    stated = [f"{kind}: {text}" for kind, text in project if " ".join(text.split()) not in decided]
    said = [
        f"{label}: {describe_statement(step, statement, STATEMENT_LIMIT)}"
        for name, label in ((CONSTRAINT, "The idea says"), (OUT_OF_SCOPE, "Out of scope"))
        for statement in step.planning.statements
        if name in statement.used_by
    ]
    body = capped(bullets([*stated, *said]), CONSTRAINTS_LIMIT)
    return section("Constraints of the project", fence("constraints", body))


def earlier_decisions_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the decisions of the phases before this one, with their ids: the latest phase first."""
    earlier = takewhile(lambda other: other.number != phase.number, step.planning.phases)
    lines: list[str] = []
    for other in reversed([*earlier]):
        tracked = [(one.id, one.text) for one in read_decisions(other.context) if one.is_tracked]
        asked = (each for plan in other.plans for each in asked_of(plan))
        lines += [f"phase {other.number}, {name}: {text}" for name, text in [*tracked, *asked]]
    body = capped(bullets(lines), EARLIER_DECISIONS_LIMIT)
    return section("Decisions of earlier phases, which hold here too", fence("decisions", body))


def others_section(title: str, phases: Iterable[PhaseView]) -> str:
    """Return other phases with their goals, under *title*."""
    return section(title, fence("phases", bullets(f"{one.number}: {one.name}: {one.goal}" for one in phases)))


def other_phases_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the phases of the milestone whose work is not that of *phase*."""
    others = (one for one in step.planning.phases if one.number != phase.number)
    return others_section("Other phases, whose work is not part of this one", others)


def existing_plans_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the plans that were executed so far, with their files, and the phase's open plans."""
    executed = [plan for each in step.planning.phases for plan in executed_plans(each)]
    planned = capped(_outlines(plan for plan in phase.plans if not plan.summary), PLANS_LIMIT)
    built = capped(_outlines(executed, phase), PLANS_LIMIT)
    return join(
        section("Executed so far", fence("built", built)),
        section("Planned in this phase, not yet executed", fence("planned", planned)),
    )


def notes_section(step: StepRequest, phase: PhaseView) -> str:
    """Return what executed plans decided and left open: the nearest phases first."""

    def distance(other: PhaseView) -> int:
        return 0 if other.number == phase.number else 1 if other.number in phase.depends_on else 2

    # Within the same distance, the latest first: a limit cuts off what matters least.
    phases = [*reversed(step.planning.phases)]
    phases.sort(key=distance)
    lines: list[str] = []
    for plan in (plan for each in phases for plan in reversed(executed_plans(each))):
        # What was asked in another phase is among its decisions.
        asked = asked_of(plan) if plan in phase.plans else ()
        lines += [f"- {name}: {' '.join(text.split())}" for name, text in asked]
        own = (one for one in plan.decisions if not one.startswith(ASKED))
        lines += [f"- {plan.id} decided: {' '.join(text.split())}" for text in own]
        lines += [f"- {plan.id} left open: {' '.join(text.split())}" for text in plan.issues]
    body = capped("\n".join(lines), NOTES_LIMIT)
    return section("Decisions and open issues of executed plans", fence("notes", body))


def files_section(step: StepRequest, phase: PhaseView) -> str:
    """Return the paths that git tracks; first those in folders that the phase's and other plans change."""

    def folders(plans: Iterable[Plan]) -> set[str]:
        return {path.rpartition("/")[0] for plan in plans for path in plan.files_modified}

    own = folders(phase.plans)
    others = folders(plan for each in step.planning.phases for plan in each.plans)

    def order(path: str) -> tuple[int, int, str]:
        folder = path.rpartition("/")[0]
        relevance = 0 if folder in own else 1 if not folder else 2 if folder in others else 3
        return relevance, path.count("/") if relevance == 3 else 0, path

    paths = sorted((path for path in step.files if not path.startswith(".planning/")), key=order)
    size, shown = 0, 0
    while shown < len(paths) and (size := size + len(paths[shown]) + 1) <= FILES_LIMIT:
        shown += 1
    rest = Counter(f"{path.partition('/')[0]}/" if "/" in path else "./" for path in paths[shown:])
    lines = [*paths[:shown], *(f"{name} {count} more files" for name, count in rest.most_common(MAX_FOLDERS))]
    if len(rest) > MAX_FOLDERS:
        lines.append(f"and more in {len(rest) - MAX_FOLDERS} other folders")
    return section("Files in the repository", fence("files", "\n".join(lines)))


def programs_section(step: StepRequest) -> str:
    """Return the build tools that are installed."""
    names = ", ".join(step.programs)
    return f"Installed programs, as far as they were looked for: {names}." if names else ""


def dependencies_section(step: StepRequest, phase: PhaseView, plan: Plan) -> str:
    """Return what was executed, first what *plan* builds on, and the phase's other open plans, with files."""
    earlier_phases = [step.planning.phase(number) for number in phase.depends_on]
    first = [other for other in executed_plans(phase) if other.id in plan.depends_on]
    first += [other for each in earlier_phases if each for other in executed_plans(each)]
    rest = (other for each in step.planning.phases for other in executed_plans(each) if other not in first)
    others = [other for other in phase.plans if other not in executed_plans(phase) and other.id != plan.id]
    built = capped(_outlines([*first, *rest], phase), PLANS_LIMIT)
    planned = capped(_outlines(others), PLANS_LIMIT)
    return join(
        section("Executed so far, first what this plan builds on", fence("built", built)),
        section("Open plans of the phase, whose work is theirs", fence("others", planned)),
    )


def conventions_section(step: StepRequest) -> str:
    """Return the project's own rules for agents, if any: its CLAUDE.md, and what config.json says of them."""
    title = "Project conventions; follow them where they apply to your task"
    config = step.planning.config
    # Values of a file of the project: on one line, and within a fence, like its other texts.
    commands = [
        f"{name}: {' '.join(command.split())[:COMMAND_LIMIT]}"
        for key, name in (("workflow.test_command", "tests"), ("workflow.build_command", "build"))
        if (command := get(config, key, ""))
    ]
    language = " ".join(get(config, "response_language", "").split())[:LANGUAGE_LIMIT]
    spoken = "Write what people will read (questions, options, summaries) in this language; not code, names"
    return join(
        section(title, fence("CLAUDE.md", step.planning.documents.get("CLAUDE.md", ""))),
        section("The project's own commands", fence("commands", bullets(commands))),
        section("Language", f"{spoken} or file formats.\n{fence('language', language)}") if language else "",
    )


def handoff_section(step: StepRequest) -> str:
    """Return what a person or another tool wrote down when the work was paused, if it has not been used."""
    title = "Where the work was paused; take it into account where it concerns your task"
    return section(title, fence("handoff", capped(step.planning.documents.get("HANDOFF", ""), HANDOFF_LIMIT)))


def codebase_section(step: StepRequest, *, brief: bool = False) -> str:
    """Return what has to be respected of the code that was there before: a bounded part of the survey.

    *brief*: only how it is tested, and where its modules end.
    """
    wanted = {
        "TESTING.md": ("Test Framework", "Test File Organization"),
        "STRUCTURE.md": ("Where to Add New Code",),
        "ARCHITECTURE.md": ("Layers", "Architectural Constraints"),
        "CONVENTIONS.md": () if brief else SECTIONS["CONVENTIONS.md"][1],
    }
    parts: list[str] = []
    for name, sections in wanted.items():
        if text := sections_of(step.planning.documents.get(f"codebase/{name}", ""), *sections):
            parts.append(f"{name}\n{capped(text, CODEBASE_LIMIT // len(wanted))}")
    if not parts:
        return ""
    rules = (
        "This project had code before it was planned. Use its own test commands, follow its conventions, and "
        "change a module only for what belongs to it. More is in .planning/codebase/."
    )
    return section("The existing code", f"{rules}\n{fence('codebase', join(*parts))}")


def _outlines(plans: Iterable[Plan], phase: PhaseView | None = None) -> str:
    """Return what *plans* build; with the gaps that the last verification of *phase* found in the files."""
    # Once a plan was executed after it, a verdict says little about what is missing.
    gaps = phase.verdict.gaps if phase and phase.verdict and not phase.verdict.stale else ()
    missing = {artifact.path: artifact.issue for gap in gaps for artifact in gap.artifacts}
    lines: list[str] = []
    for plan in plans:
        summary = f" (see {plan.summary})" if plan.summary else ""
        title = plan.name or plan.objective.partition("\n")[0]
        lines.append(f"- {plan.id} {title}{summary}")
        for artifact in plan.must_haves.artifacts:
            exports = f" ({', '.join(artifact.exports)})" if artifact.exports else ""
            gap = f" (gap: {missing[artifact.path]})" if artifact.path in missing else ""
            lines.append(f"  {artifact.path}: {artifact.provides}{exports}{gap}")
    return "\n".join(lines)


def follow_up(task: AgentTask, result: AgentResult, prompt: str) -> AgentTask:
    """Return a task that continues *task*, in the same conversation if there is one."""
    if not result.conversation:
        return attrs.evolve(task, prompt=join(task.prompt, prompt))
    conversation = Conversation(id=result.conversation, cwd=str(task.tree), resume=True)
    return attrs.evolve(task, prompt=prompt, conversation=conversation)


def capped(text: str, limit: int) -> str:
    """Return *text*, or its beginning of at most *limit* characters with a note on what is cut off."""
    if len(text) <= limit:
        return text
    end = text.rfind("\n", 0, limit)
    # A cut in the middle of a line, if the line before it ends far from the limit.
    end = end if end > limit // 2 else limit
    return f"{text[:end]}\n[cut off: {len(text) - end} of {len(text)} characters]"


def join(*parts: str) -> str:
    """Return the parts that are not empty, separated by blank lines."""
    return "\n\n".join(part for part in parts if part.strip())


def section(title: str, body: str) -> str:
    """Return *body* under a heading; empty if there is no body."""
    return f"# {title}\n{body}" if body.strip() else ""


def bullets(items: Iterable[str]) -> str:
    """Return a list with one line per item."""
    return "\n".join(f"- {item}" for item in items)


def gap_details(gap: Gap) -> dict[str, str]:
    """Return what is known about a gap, by the names of its parts; what says nothing new is left out."""
    files = [f"{one.path}: {one.issue}" for one in gap.artifacts if one.issue != gap.reason]
    missing = "; ".join(gap.missing)
    details = {"truth": gap.truth, "reason": gap.reason, "evidence": gap.evidence}
    return {**details, "files": "; ".join(files), "missing": missing}


def describe_gap(key: str, details: Mapping[str, str]) -> str:
    """Return the lines about a gap: its key, and its *details* that are not empty."""
    lines = (f"  {name}: {' '.join(text.split())}" for name, text in details.items() if text)
    return "\n".join([f"- gap {key}", *lines])


def fence(name: str, text: str) -> str:
    """Return *text* as data: between tags that do not occur in it, so it cannot close them.

    The tag depends only on the text, so the same text always gives the same prompt.
    """
    if not text.strip():
        return ""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    tags = (f"data-{digest[:size]}" for size in range(8, len(digest) + 1))
    tag = next(tag for tag in tags if tag not in text)
    plain_name = re.sub(r"[^\w. -]+", "_", name)[:100]
    return f'<{tag} name="{plain_name}">\n{text.strip()}\n</{tag}>'
