"""close: archive a finished milestone, and make room for the next one. No agent is involved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gsd_core import (
    FileMove,
    FileWrite,
    Found,
    Gap,
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
from gsd_core.planning.markdown import read_text
from gsd_core.planning.milestone_close import (
    Shipped,
    archived_requirements,
    collapse_roadmap,
    evolve_project,
    milestones_entry,
    shipped,
    still_active,
)
from gsd_core.planning.open_items import open_items
from gsd_core.planning.state import close_milestone
from gsd_core.planning.summary import with_notes

from .audit import Decision, beginning_of
from .paths import date_of

ARCHIVE = ".planning/milestones"
PHASES = ".planning/phases/"
KEEP, CLOSE = "Keep it open", "Close it"
WITH_TAG, WITHOUT_TAG = "with a tag", "without a tag"
"""The words with which ``gsd milestone complete --tag`` and ``--no-tag`` ask for the step."""


def is_due(now: StepSituation) -> bool:
    """Whether the user wants the milestone closed: by a setting, or by starting the next one.

    One whose phases are still there after it was to be closed was kept open: nothing is asked twice.
    """
    last = [step.kind for step in now.completed if step.kind in ("complete", "close")][-1:]
    return now.close and bool(now.planning.phases) and last != ["close"]


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
    asks_agent=False,
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Archive the milestone; ask first if anything is open."""
    planning = with_notes(step.planning, step.project)
    version = step.detail or planning.milestone
    if not planning.phases and (step.project / f"{ARCHIVE}/{version}-ROADMAP.md").exists():
        # Somebody else archived it after this step was interrupted.
        return StepResult(subject="nothing to do: the milestone is archived already")
    require_complete(step)
    # The roadmap that is worked on may be in that folder already.
    archived = _text(step, f"{ARCHIVE}/{step.planning.milestone}-ROADMAP.md")
    if archived not in ("", step.planning.documents["ROADMAP.md"]):
        hint = "give the milestone in ROADMAP.md and STATE.md the next version"
        raise Permanent(f"{step.planning.milestone} is archived already, in {ARCHIVE}", hint=hint)
    found = audit(planning, step.project)
    left = items_of(found, step)
    decided = await confirm(step, host, found, left)
    if decided.left:
        return kept_open(found.milestone, decided)
    about = shipped(planning, step.project, date_of(step))
    # An older audit is not archived; the one of now is in its place.
    removed = [".planning/REQUIREMENTS.md", *([] if _is_current(step) else [audit_path(planning.milestone)])]
    return StepResult(
        subject=f"chore: complete milestone {about.label}",
        files=tuple(_files(step, about, found, left)),
        moved=tuple(_moves(step, about)),
        removed=tuple(path for path in removed if (step.project / path).is_file()),
        tag=_tag(step, about),
    )


def items_of(found: Audit, step: StepRequest) -> tuple[str, ...]:
    """Return what is open besides the requirements: what the audit lists, and other files of GSD."""
    listed = [f"Phase {number}: {item}" for number, items in found.debt.items() for item in items]
    return (*listed, *open_items(step.planning, step.project))


async def confirm(step: StepRequest, host: StepHost, found: Audit, left: Sequence[str]) -> Decision:
    """Ask whether a milestone with gaps or open items is closed; return who agreed, or what is left if not.

    Gaps that a person left open after the audit need no second answer.
    """
    is_accepted = read_audit(step.project, step.planning.milestone).text("gaps_accepted_by")
    gaps = () if is_accepted and _is_current(step) else gaps_in_words(found)
    if not gaps and not left:
        return Decision()
    lines = [
        *beginning_of(f"{found.milestone} has gaps:", gaps),
        *beginning_of(f"{found.milestone} has open items:", left),
        "Close it all the same?",
    ]
    # Open items are normal, and stay where they are. Gaps are promises that nobody has kept.
    options = (
        Option(label=KEEP, description="nothing is archived", recommended=bool(gaps)),
        Option(label=CLOSE, description="MILESTONES.md lists what is open", recommended=not gaps),
    )
    question = Question(text="\n".join(lines), header="Close", options=options, free_text=False)
    [answer] = await host.ask(Inquiry(questions=(question,), reason=f"closing {found.milestone}"))
    if answer.words != CLOSE:
        reason = f"{found.milestone} is kept open"
        return Decision(left=tuple(Gap(truth=text, reason=reason) for text in (*gaps, *left)))
    return Decision(accepted_by=answer.by or "a person")


def kept_open(milestone: str, decided: Decision) -> StepResult:
    """Return the result of a close that archives nothing, because of what is *decided* to be left."""
    return StepResult(subject=f"{milestone} is kept open", outcome=Found(gaps=decided.left))


def require_complete(step: StepRequest) -> None:
    """Raise ``Permanent`` unless all phases of the milestone are complete."""
    planning = step.planning
    if not planning.phases:
        raise Permanent(f"there is no milestone to close: {planning.idle or 'the project has no phases'}")
    # What is archived is what ROADMAP.md says, so the check mark has to be there as well.
    open_phases = [p.number for p in planning.phases if p.number not in step.complete or not p.ticked]
    if open_phases:
        open_phases.sort(key=phase_order)
        one = len(open_phases) == 1
        which = f"phase {open_phases[0]} is" if one else f"phases {', '.join(open_phases)} are"
        hint = f"complete {'it' if one else 'them'} with: gsd run"
        raise Permanent(f"{planning.milestone} cannot be closed: {which} not complete", hint=hint)


def gaps_in_words(found: Audit) -> tuple[str, ...]:
    """Return the requirements that are not satisfied, and the phases without a verification."""
    gaps = [f"{a.requirement.id}: {a.requirement.text} ({a.status}: {a.evidence})" for a in found.gaps]
    return (*gaps, *(f"Phase {number} was not verified" for number in found.unverified))


def _files(step: StepRequest, about: Shipped, found: Audit, left: Sequence[str]) -> Iterator[FileWrite]:
    """Yield the archives first, then the files that continue."""
    documents = step.planning.documents
    met = [one.requirement for one in found.requirements if one.status == "satisfied"]
    open_ = [one.requirement for one in found.requirements if one.status != "satisfied"]
    base = f"{ARCHIVE}/{about.version}"
    yield FileWrite(path=f"{base}-ROADMAP.md", text=documents["ROADMAP.md"])
    if text := documents.get("REQUIREMENTS.md"):
        yield FileWrite(path=f"{base}-REQUIREMENTS.md", text=archived_requirements(text, about))
    if not _is_current(step):
        text = render_audit(found, step.planning, audited=step.now.isoformat(timespec="seconds"))
        yield FileWrite(path=f"{base}-MILESTONE-AUDIT.md", text=text)
    active = still_active(documents.get("PROJECT.md", ""), met, open_)
    entry = milestones_entry(documents.get("MILESTONES.md", ""), about, gaps_in_words(found), left, active)
    yield FileWrite(path=".planning/MILESTONES.md", text=entry)
    if text := documents.get("PROJECT.md"):
        yield FileWrite(path=".planning/PROJECT.md", text=evolve_project(text, about, met, open_))
    if text := documents.get("STATE.md"):
        yield FileWrite(path=".planning/STATE.md", text=close_milestone(text, about.version, about.date))
    roadmap = collapse_roadmap(_text(step, ".planning/ROADMAP.md"), about)
    yield FileWrite(path=".planning/ROADMAP.md", text=roadmap)


def _text(step: StepRequest, path: str) -> str:
    return read_text(step.project, path) if (step.project / path).exists() else ""


def _is_current(step: StepRequest) -> bool:
    """Whether the audit on disk is about the milestone as it is now."""
    return read_audit(step.project, step.planning.milestone).text("inputs") == inputs_digest(step.planning)


def _moves(step: StepRequest, about: Shipped) -> Iterator[FileMove]:
    if _is_current(step):
        yield FileMove(path=audit_path(about.version), target=f"{ARCHIVE}/{about.version}-MILESTONE-AUDIT.md")
    for phase in about.phases:
        if phase.directory.startswith(PHASES) and (step.project / phase.directory).is_dir():
            name = phase.directory.removeprefix(PHASES)
            yield FileMove(path=phase.directory, target=f"{ARCHIVE}/{about.version}-phases/{name}")


def _tag(step: StepRequest, about: Shipped) -> Tag | None:
    wanted = get(step.planning.config, "git.create_tag", True)
    if step.text in (WITH_TAG, WITHOUT_TAG):
        wanted = step.text == WITH_TAG
    if not wanted:
        return None
    done = "\n".join(f"- {one}" for one in about.accomplishments[:6])
    parts = [about.label, f"Key accomplishments:\n{done}" if done else "", "See .planning/MILESTONES.md."]
    return Tag(name=about.version, message="\n\n".join(part for part in parts if part))
