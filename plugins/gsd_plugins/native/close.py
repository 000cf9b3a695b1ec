"""close: archive a finished milestone, and make room for the next one. No agent is involved."""

from __future__ import annotations

from collections.abc import Iterator

from gsd_core import (
    FileMove,
    FileWrite,
    Inquiry,
    Option,
    Permanent,
    Question,
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
    Tag,
    phase_order,
)
from gsd_core.planning.audit import Audit, audit, audit_path, inputs_digest, read_audit, render_audit
from gsd_core.planning.config import get
from gsd_core.planning.milestone_close import (
    Shipped,
    archived_requirements,
    collapse_roadmap,
    evolve_project,
    milestones_entry,
    shipped,
)
from gsd_core.planning.state import close_milestone
from gsd_core.planning.summary import with_notes

from .paths import date_of

ARCHIVE = ".planning/milestones"
PHASES = ".planning/phases/"
KEEP, CLOSE = "Keep it open", "Close it with these gaps"
WITH_TAG, WITHOUT_TAG = "with a tag", "without a tag"
"""The words with which ``gsd milestone complete --tag`` and ``--no-tag`` ask for the step."""
MAX_SHOWN = 10


def is_due(now: StepSituation) -> bool:
    """Whether the user wants the milestone closed: by a setting, or by starting the next one."""
    return now.close and bool(now.planning.phases)


step_type = StepType(
    kind="close",
    before="end",
    due=is_due,
    writes=(
        *(f".planning/{name}.md" for name in ("ROADMAP", "REQUIREMENTS", "PROJECT", "STATE", "MILESTONES")),
        ".planning/v*-MILESTONE-AUDIT.md",
        ".planning/milestones/**",
        ".planning/phases/**",
    ),
    title="Archive the milestone and tag it",
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Archive the milestone; ask first if its audit has gaps."""
    planning = with_notes(step.planning, step.project)
    _check(step)
    found = audit(planning, step.project)
    if found.status == "gaps_found" and not _accepted(step):
        answer = (await host.ask(_inquiry(found)))[0]
        if answer.words != CLOSE:
            raise Permanent(
                f"{found.milestone} has gaps and is kept open",
                hint=f"see what is missing with: gsd milestone audit, and in {audit_path(found.milestone)}",
            )
    about = shipped(planning, step.project, date_of(step))
    moved, removed = tuple(_moves(step, about)), tuple(_removed(step))
    return StepResult(
        subject=f"chore: complete milestone {about.label}",
        files=tuple(_files(step, about, found)),
        moved=moved,
        removed=removed,
        tag=_tag(step, about),
    )


def _check(step: StepRequest) -> None:
    planning = step.planning
    if not planning.phases:
        raise Permanent(f"there is no milestone to close: {planning.idle or 'the project has no phases'}")
    if left := [phase.number for phase in planning.phases if phase.number not in step.complete]:
        left.sort(key=phase_order)
        raise Permanent(
            f"{planning.milestone} cannot be closed: phase {', '.join(left)} is not complete",
            hint="complete it with: gsd run",
        )
    if (step.project / f"{ARCHIVE}/{planning.milestone}-ROADMAP.md").exists():
        raise Permanent(
            f"{planning.milestone} is archived already, in {ARCHIVE}",
            hint="give the milestone in ROADMAP.md and STATE.md the next version",
        )


def _accepted(step: StepRequest) -> bool:
    """Whether a person left the gaps of the milestone, as it is now, open."""
    head = read_audit(step.project, step.planning.milestone)
    return bool(head.text("gaps_accepted_by")) and head.text("inputs") == inputs_digest(step.planning)


def _inquiry(found: Audit) -> Inquiry:
    gaps = [f"{one.requirement.id}: {one.status}, {one.evidence}" for one in found.gaps]
    gaps += [f"phase {number} is not verified" for number in found.unverified]
    more = [f"- and {len(gaps) - MAX_SHOWN} more"] if len(gaps) > MAX_SHOWN else []
    lines = [f"{found.milestone} has gaps:", *(f"- {gap}" for gap in gaps[:MAX_SHOWN]), *more]
    question = Question(
        text="\n".join([*lines, "Close it all the same?"]),
        header="Close",
        options=(
            Option(label=KEEP, description="nothing is archived", recommended=True),
            Option(label=CLOSE, description="they are listed in MILESTONES.md as known gaps"),
        ),
        free_text=False,
    )
    return Inquiry(questions=(question,), reason=f"closing {found.milestone}")


def _files(step: StepRequest, about: Shipped, found: Audit) -> Iterator[FileWrite]:
    """Yield the archives first, then the files that continue."""
    documents = step.planning.documents
    known_gaps = [f"{one.requirement.id}: {one.requirement.text} ({one.evidence})" for one in found.gaps]
    known_gaps += [f"Phase {number} was not verified" for number in found.unverified]
    met = [one.requirement for one in found.requirements if one.status == "satisfied"]
    base = f"{ARCHIVE}/{about.version}"
    yield FileWrite(path=f"{base}-ROADMAP.md", text=documents["ROADMAP.md"])
    if text := documents.get("REQUIREMENTS.md"):
        yield FileWrite(path=f"{base}-REQUIREMENTS.md", text=archived_requirements(text, about))
    if not _is_current(step):
        text = render_audit(found, step.planning, audited=step.now.isoformat(timespec="seconds"))
        yield FileWrite(path=f"{base}-MILESTONE-AUDIT.md", text=text)
    entry = milestones_entry(documents.get("MILESTONES.md", ""), about, known_gaps)
    yield FileWrite(path=".planning/MILESTONES.md", text=entry)
    if text := documents.get("PROJECT.md"):
        yield FileWrite(path=".planning/PROJECT.md", text=evolve_project(text, about, met))
    if text := documents.get("STATE.md"):
        yield FileWrite(path=".planning/STATE.md", text=close_milestone(text, about.version, about.date))
    yield FileWrite(path=".planning/ROADMAP.md", text=collapse_roadmap(documents["ROADMAP.md"], about))


def _is_current(step: StepRequest) -> bool:
    """Whether the audit on disk is about the milestone as it is now."""
    return read_audit(step.project, step.planning.milestone).text("inputs") == inputs_digest(step.planning)


def _moves(step: StepRequest, about: Shipped) -> Iterator[FileMove]:
    if _is_current(step):
        path = audit_path(about.version)
        yield FileMove(path=path, target=f"{ARCHIVE}/{about.version}-MILESTONE-AUDIT.md")
    for phase in about.phases:
        if phase.directory.startswith(PHASES) and (step.project / phase.directory).is_dir():
            name = phase.directory.removeprefix(PHASES)
            yield FileMove(path=phase.directory, target=f"{ARCHIVE}/{about.version}-phases/{name}")


def _removed(step: StepRequest) -> Iterator[str]:
    if "REQUIREMENTS.md" in step.planning.documents:
        yield ".planning/REQUIREMENTS.md"
    path = audit_path(step.planning.milestone)
    if not _is_current(step) and (step.project / path).is_file():
        yield path


def _tag(step: StepRequest, about: Shipped) -> Tag | None:
    wanted = get(step.planning.config, "git.create_tag", True)
    if step.text in (WITH_TAG, WITHOUT_TAG):
        wanted = step.text == WITH_TAG
    if not wanted:
        return None
    done = "\n".join(f"- {one}" for one in about.accomplishments[:6])
    parts = [about.label, f"Key accomplishments:\n{done}" if done else "", "See .planning/MILESTONES.md."]
    return Tag(name=about.version, message="\n\n".join(part for part in parts if part))
