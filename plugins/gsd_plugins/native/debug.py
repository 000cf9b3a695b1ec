"""debug: find the root causes of gaps before they are planned, or of a problem that the user describes.

An agent that may only read and run commands investigates all gaps of a verdict in one call. Each gets a file
``.planning/debug/NN-SLUG.md`` in the format of GSD's debug sessions, with two more keys: ``gap``, and
``verified``, the time of the verdict. The planner is given the root cause. If a later verdict has the same
gap, it is investigated again, with the cause that did not help under "Eliminated".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import attrs

from gsd_core import (
    FileWrite,
    Gap,
    PhaseView,
    PlanningError,
    RejectedAnswer,
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
    padded,
    read_below,
    slug,
)
from gsd_core.planning.frontmatter import Node, read_frontmatter, render_frontmatter
from gsd_core.planning.markdown import document, inline, prose

from .answers import RUN_COMMAND, DiagnosesAnswer, DiagnosisAnswer, acceptance, parse_answer
from .models import task_for
from .prompt_context import describe_gap, fence, files_section, join, phase_section, section, system_prompt
from .run_command import command_runner
from .skills import rules_section

FOLDER = ".planning/debug"
MAX_BYTES = 200_000
MAX_FILES = 200
MECHANICAL = frozenset({"coverage", "checkout", "gsd", "must_haves", "history"})
"""The finders of gaps that say themselves what is missing: nothing is to be found out about those."""

_FIELD = re.compile(r"^(?:- )?(root_cause|fix|files|hypothesis): (.+)$", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Diagnosis:
    """What a debug file says about a *gap* of the verdict of the time *verified*."""

    gap: str = ""
    verified: str = ""
    root_cause: str = ""
    fix: str = ""
    files: str = ""
    eliminated: tuple[str, ...] = ()
    path: str = ""
    created: str = ""


def is_due(now: StepSituation) -> bool:
    """Whether the phase's verdict has gaps about behavior that no diagnosis covers."""
    if now.workflow != "native":  # GSD's own verify-work does this itself
        return False
    phase, workflow = now.phase, now.planning.config.get("workflow")
    if isinstance(workflow, Mapping) and cast("Mapping[str, object]", workflow).get("diagnose") is False:
        return False
    return phase is not None and bool(_undiagnosed(phase))


STEP_TYPE = StepType(
    kind="debug", before="plan", due=is_due, writes=(f"{FOLDER}/*.md",), title="Find the root causes of gaps"
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Investigate the gaps of the phase's verdict, or what the user described, and write the debug files."""
    if step.phase:
        gaps = _undiagnosed(step.phase) or tuple(filter(_is_about_behavior, _gaps(step.phase)))
        known, number = read_diagnoses(step.phase), padded(step.phase.number)
    else:
        gaps = (Gap(truth=step.text or step.detail, reason="reported by the user"),)
        known, number = dict[str, Diagnosis](), ""
    if not gaps:
        return StepResult(subject=f"docs({number or 'debug'}): nothing to diagnose")
    task = task_for(
        step,
        "debugger",
        system=system_prompt("debug"),
        prompt=_prompt(step, gaps, known),
        functions=(RUN_COMMAND,),
        answer=DiagnosesAnswer,
        turns=80,
    )

    def problems(answer: DiagnosesAnswer) -> Iterator[str]:
        given, wanted = [one.gap for one in answer.diagnoses], [key_of(gap) for gap in gaps]
        yield from (f"no diagnosis of gap {key}" for key in wanted if key not in given)
        yield from (f"{key!r} is not a gap that was given" for key in given if key not in wanted)
        yield from (f"more than one diagnosis of gap {key}" for key in wanted if given.count(key) > 1)

    accept = acceptance(DiagnosesAnswer, problems)
    try:
        result = await host.run_agent("debug", task, accept, {RUN_COMMAND.name: command_runner(host)})
        found = parse_answer(DiagnosesAnswer, result.value).diagnoses
    except RejectedAnswer:
        # The plan can be made without a cause; a run must not end because of this step.
        found = ()
    by_gap = {one.gap: one for one in found}
    files = tuple(
        _file(step, gap, by_gap.get(key_of(gap)), known.get(key_of(gap), Diagnosis()), f"{FOLDER}/{name}.md")
        for gap, name in zip(gaps, _names(step, gaps, known, number), strict=True)
    )
    what = f"gaps of phase {step.phase.number}" if step.phase else "a reported problem"
    return StepResult(subject=f"docs({number or 'debug'}): diagnose {what}", files=files)


def read_diagnoses(phase: PhaseView) -> Mapping[str, Diagnosis]:
    """Return the diagnoses in the debug files about the phase's gaps, by the gap's key."""
    try:
        names = sorted(path.name for path in (phase.project / FOLDER).glob(f"{padded(phase.number)}-*.md"))
    except OSError:
        return {}
    found = (_read(phase.project, f"{FOLDER}/{name}") for name in names[:MAX_FILES])
    return {one.gap: one for one in found if one.gap}


def key_of(gap: Gap) -> str:
    """Return what names the gap in a debug file and in the debugger's answer: its key, on one line."""
    return " ".join(gap.key.split())


def _read(project: Path, path: str) -> Diagnosis:
    try:
        front = read_frontmatter(read_below(project, path, limit=MAX_BYTES).decode("utf-8"), path=path)
    except (OSError, UnicodeDecodeError, PlanningError):
        return Diagnosis()
    fields = [(name, prose(text)) for name, text in _FIELD.findall(front.body)]
    last = dict(fields)
    eliminated = front.body.partition("\n## Eliminated\n")[2].partition("\n## ")[0]
    return Diagnosis(
        gap=front.text("gap"),
        verified=front.text("verified"),
        root_cause=last.get("root_cause", ""),
        fix=last.get("fix", ""),
        files=last.get("files", ""),
        eliminated=tuple(prose(text) for name, text in _FIELD.findall(eliminated) if name == "hypothesis"),
        path=path,
        created=front.text("created"),
    )


def _gaps(phase: PhaseView) -> tuple[Gap, ...]:
    return phase.verdict.gaps if phase.verdict and phase.verdict.status == "gaps_found" else ()


def _is_about_behavior(gap: Gap) -> bool:
    return gap.status != "unverified" and MECHANICAL.isdisjoint(gap.found_by.split(", "))


def _undiagnosed(phase: PhaseView) -> tuple[Gap, ...]:
    gaps = [gap for gap in _gaps(phase) if _is_about_behavior(gap)]
    if not gaps or phase.verdict is None:
        return ()
    known, verified = read_diagnoses(phase), phase.verdict.verified
    return tuple(gap for gap in gaps if known.get(key_of(gap), Diagnosis()).verified != verified)


def _prompt(step: StepRequest, gaps: Sequence[Gap], known: Mapping[str, Diagnosis]) -> str:
    described: list[str] = []
    for gap in gaps:
        before = known.get(key_of(gap), Diagnosis())
        details = {
            "should be true": gap.truth,
            "reported": gap.reason,
            "evidence": gap.evidence,
            "missing": "; ".join(gap.missing),
            "causes named before": "; ".join(filter(None, [*before.eliminated, before.root_cause])),
        }
        described.append(describe_gap(key_of(gap), details))
    return join(
        phase_section(step, step.phase) if step.phase else "",
        section("Gaps to investigate", fence("gaps", "\n".join(described))),
        files_section(step, step.phase) if step.phase else "",
        rules_section(step, "debugger"),
    )


def _names(
    step: StepRequest, gaps: Sequence[Gap], known: Mapping[str, Diagnosis], number: str
) -> tuple[str, ...]:
    """Return a file name for each gap, without its suffix; a gap that was diagnosed before keeps its file."""
    taken = {Path(one.path).stem for one in known.values()}
    names: list[str] = []
    for gap in gaps:
        if key_of(gap) in known:
            names.append(Path(known[key_of(gap)].path).stem)
            continue
        first = "-".join(filter(None, [number, step.detail or slug(gap.truth)]))
        name, count = first, 2
        while name in taken:
            name, count = f"{first}-{count}", count + 1
        taken.add(name)
        names.append(name)
    return tuple(names)


def _file(
    step: StepRequest, gap: Gap, found: DiagnosisAnswer | None, before: Diagnosis, path: str
) -> FileWrite:
    now = step.now.isoformat()
    cause = found.root_cause.strip() if found else ""
    head: dict[str, Node] = {
        "status": "diagnosed" if cause else "investigating",
        "trigger": gap.reason if step.phase else gap.truth,
        "created": before.created or now,
        "updated": now,
        "gap": key_of(gap),
    }
    if step.phase and step.phase.verdict:
        head["verified"] = step.phase.verdict.verified
    eliminated = tuple(dict.fromkeys(filter(None, [*before.eliminated, before.root_cause])))
    symptoms = {
        "expected": gap.truth,
        "actual": found.actual if found else gap.reason,
        "errors": gap.evidence,
        "reproduction": found.reproduction if found else "",
    }
    places = "; ".join(f"{place.path}: {place.issue}" for place in found.files) if found else ""
    focus = {
        "hypothesis": cause or "none yet",
        "next_action": "plan the fix" if cause else "investigate by hand, or plan without a known cause",
    }
    resolution = {"root_cause": cause, "fix": found.fix if found else "", "files": places}
    body = [
        f"## Current Focus\n\n{_lines(focus)}",
        f"## Symptoms\n\n{_lines(symptoms)}",
        "## Eliminated",
        *(
            f"- hypothesis: {inline(one)}\n  evidence: the gap was still there after its fix"
            for one in eliminated
        ),
        "## Evidence",
        *(
            f"- timestamp: {now}\n  checked: {inline(clue.checked)}\n  found: {inline(clue.found)}\n"
            f"  implication: {inline(clue.implication)}"
            for clue in (found.clues if found else ())
        ),
        f"## Resolution\n\n{_lines(resolution)}\nverification:\nfiles_changed: []",
    ]
    return FileWrite(path=path, text=f"{render_frontmatter(head)}\n{document(body)}")


def _lines(fields: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {inline(text)}".rstrip() for name, text in fields.items())
