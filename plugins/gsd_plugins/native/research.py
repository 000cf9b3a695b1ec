"""research: find out what a phase's planner needs to know; the only step that uses the web."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from urllib.parse import urldefrag, urlsplit

import attrs

from gsd_core import FileWrite, StepHost, StepRequest, StepResult, StepSituation, StepType, padded
from gsd_core.planning.config import get
from gsd_core.planning.research import Claim, Confidence, Source, render_research

from .answers import ResearchAnswer, SourceAnswer, acceptance, parse_answer
from .models import READING, task_for
from .paths import date_of, phase_file, phase_of, position
from .prompt_context import (
    existing_plans_section,
    files_section,
    join,
    phase_sections,
    programs_section,
    system_prompt,
)
from .skills import rules_section

WEB_TOOLS = ("WebSearch", "WebFetch")


def is_due(now: StepSituation) -> bool:
    """Whether the phase is to be researched: depth and config ask for it, and it has no plans yet.

    A quick project has no research; a comprehensive one has it unless ``workflow.research`` is false; a
    standard one only if it is true.
    """
    if now.workflow != "native":  # GSD's own plan-phase does this itself
        return False
    if now.phase is None or now.phase.research or now.phase.plans or now.depth == "quick":
        return False
    return get(now.planning.config, "workflow.research", now.depth == "comprehensive")


step_type = StepType(
    kind="research",
    before="plan",
    due=is_due,
    writes=("{phase}/{number}-RESEARCH.md",),
    title="Research a phase before it is planned",
)


def is_due_first(now: StepSituation) -> bool:
    """Whether the phase is to be researched before it is discussed, by ``research_before_questions``."""
    first = get(now.planning.config, "workflow.research_before_questions", False)
    return first and now.phase is not None and not now.phase.context and is_due(now)


first_step_type = StepType(
    kind="early-research",
    before="discuss",
    due=is_due_first,
    writes=step_type.writes,
    title="Research a phase before its questions are asked",
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Run a researcher, and write the phase's RESEARCH.md."""
    phase = phase_of(step)
    task = task_for(
        step,
        "researcher",
        agent="phase-researcher",
        system=system_prompt("research"),
        prompt=join(
            phase_sections(step, phase),
            existing_plans_section(step, phase),
            files_section(step, phase),
            programs_section(step),
            rules_section(step, "phase-researcher"),
        ),
        tools=(*READING, *WEB_TOOLS),
        answer=ResearchAnswer,
        turns=60,
    )
    result = await host.run_agent("research", task, acceptance(ResearchAnswer, _problems))
    answer = parse_answer(ResearchAnswer, result.value)
    opened = {_page(use.target) for use in result.uses if use.tool == "WebFetch"}
    sources = [_source(source, opened) for source in answer.sources]
    text = render_research(
        phase,
        summary=answer.summary,
        claims=[Claim(**attrs.asdict(claim)) for claim in answer.claims],
        questions=answer.questions,
        sources=sources,
        confidence=answer.confidence if any(source.opened for source in sources) else "low",
        date=date_of(step),
    )
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): research phase domain",
        files=(FileWrite(path=phase_file(phase, f"{number}-RESEARCH.md"), text=text),),
        changes=(position(step, status="Ready to plan", activity=f"Researched Phase {phase.number}"),),
    )


def _problems(answer: ResearchAnswer) -> Iterator[str]:
    if not answer.summary.strip():
        yield "summary is empty"
    for number, source in enumerate(answer.sources, start=1):
        if not _is_web_address(source.url):
            yield f"source {number}: {source.url!r:.120} is not an http or https address"
        if not source.supports.strip():
            yield f"source {number}: say in `supports` what it supports"
    for number, claim in enumerate(answer.claims, start=1):
        unknown = [cited for cited in claim.sources if not 0 < cited <= len(answer.sources)]
        if unknown:
            scope = f"1 to {len(answer.sources)}" if answer.sources else "none"
            yield f"claim {number} cites source {unknown[0]}; the sources are {scope}"


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(map(str.isspace, url))


def _source(answer: SourceAnswer, opened: Collection[str]) -> Source:
    """Return a source; one that was not opened in the conversation cannot be trusted more than a rumor."""
    was_opened = _page(answer.url) in opened
    confidence: Confidence = answer.confidence if was_opened else "low"
    return Source(url=answer.url, supports=answer.supports, confidence=confidence, opened=was_opened)


def _page(url: str) -> str:
    """Return an address in a form that can be compared: without its fragment and a final slash."""
    return urldefrag(url).url.rstrip("/").replace("http://", "https://", 1)
