"""audit and close: ``audit-milestone`` and ``complete-milestone`` do them, and code contradicts them.

The command's audit looks at the code, which GSD's own comparison of the planning files does not. That one
cannot be talked into anything. So an unmet requirement counts, whichever of the two has found it.

Source of the audit's keys and of its file's name: ``workflows/audit-milestone.md`` of get-shit-done-cc 1.42,
which calls the file ``v{version}-v{version}-MILESTONE-AUDIT.md`` in one place.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from gsd_core import (
    Done,
    FileWrite,
    Found,
    Gap,
    Permanent,
    PlanningError,
    StepHost,
    StepRequest,
    StepResult,
    phase_order,
)
from gsd_core.planning.audit import Audit, audit, audit_path, inputs_digest
from gsd_core.planning.frontmatter import (
    Frontmatter,
    Node,
    as_map,
    as_maps,
    as_text,
    as_texts,
    read_frontmatter,
    render_frontmatter,
)
from gsd_core.planning.markdown import document, inline, read_text
from gsd_core.planning.model import Planning
from gsd_core.planning.phases import every_folder
from gsd_core.planning.roadmap import parse_roadmap
from gsd_plugins.native import (
    Decision,
    closing_name,
    confirm_close,
    decide_on_gaps,
    gap_of,
    kept_open,
    open_items_of,
    require_complete,
)

from .steps import Command, run_command

ARCHIVE = ".planning/milestones"
MAX_NAMED = 5
"""How many open items are named to the command; the others it finds itself."""


# audit


async def execute_audit(step: StepRequest, host: StepHost) -> StepResult:
    """Have the milestone audited; add a phase for what is missing, or ask what to do about it."""
    version = _version(step)
    before = await asyncio.to_thread(_written, step.project, version)

    def missing(step: StepRequest, _: Planning) -> str:
        now = _written(step.project, version)
        if now is None:
            return f"there is no {audit_path(version)}"
        # One that has our mark was judged before; it counts only if the command has changed it.
        return f"{now.path} is still the earlier audit" if now.is_ours and now == before else ""

    command = Command(name="audit-milestone", arguments=lambda step: version, missing=missing)
    planning = _as_observed(await run_command(step, host, command), step.planning)
    written = await asyncio.to_thread(_written, step.project, version)
    if written is None or not planning.phases:
        raise Permanent(f"after the audit of {version}, {planning.idle or 'its phases are gone'}")
    found = audit(planning, step.project)
    gaps = tuple(_gaps(written, found))
    # The command has replaced the file, and with it the list of the phases that were added for its gaps.
    named = [phase.number for phase in planning.phases if phase.name == closing_name(version)]
    tried = tuple(dict.fromkeys([*(before.head.texts("gap_phases") if before else ()), *named]))
    step = attrs.evolve(step, planning=planning)
    decided = Decision(left=gaps) if step.text else await decide_on_gaps(step, host, version, gaps, tried)
    digest = "" if decided.added or step.text else inputs_digest(planning)
    path = audit_path(version)
    return StepResult(
        subject=f"docs: record what the audit of {version} has led to",
        files=(FileWrite(path=path, text=_recorded(written, found, gaps, decided, tried, digest)),),
        removed=() if written.path == path else (written.path,),
        changes=decided.added,
        outcome=Found(gaps=decided.left) if decided.left else Done(),
    )


@attrs.frozen(kw_only=True)
class _Written:
    """The audit that a command wrote."""

    path: str
    head: Frontmatter

    @property
    def is_ours(self) -> bool:
        return bool(self.head.text("inputs") or self.head.texts("gap_phases"))


def _written(project: Path, version: str) -> _Written | None:
    """Return the audit in *project*, the most recent one if there are several names for it."""
    # Where the workflow says `v{version}`, the version has a `v` already.
    name = re.compile(rf"(?:v*{re.escape(version.removeprefix('v'))}-)+MILESTONE-AUDIT\.md")
    found = [path for path in (project / ".planning").glob("*-MILESTONE-AUDIT.md") if name.match(path.name)]
    found = [path for path in found if path.is_file() and path.name.startswith("v")]
    if not found:
        return None
    path = f".planning/{max(found, key=lambda path: path.stat().st_mtime_ns).name}"
    text = read_text(project, path)
    try:
        return _Written(path=path, head=read_frontmatter(text, path=path))
    except PlanningError:
        # A model's YAML may be broken. Its text stays, and what it says about gaps cannot be used.
        return _Written(path=path, head=Frontmatter(body=text, values={"status": "gaps_found"}))


def _gaps(written: _Written, found: Audit) -> Iterator[Gap]:
    """Yield what has to be done: what code knows to be missing, and what the command says is."""
    known = {one.requirement.id for one in found.to_do}
    yield from map(gap_of, found.to_do)
    listed = as_map(written.head.get("gaps"))
    requirements = as_maps(listed.get("requirements", ""))
    for one in requirements:
        name, status = as_text(one.get("id", "")), as_text(one.get("status", "")).lower()
        # Partial means that a person should look at it: no phase can do that.
        if name and name not in known and status != "partial":
            known.add(name)
            reason = as_text(one.get("evidence", "")) or as_text(one.get("reason", "")) or status
            text = next((r.requirement.text for r in found.requirements if r.requirement.id == name), "")
            yield Gap(truth=f"{name}: {text}".rstrip(": "), reason=reason, about=name, found_by="audit")
    others = [(kind, one) for kind in ("integration", "flows") for one in _items(listed.get(kind, ""))]
    for kind, text in others:
        yield Gap(truth=inline(text), reason=f"{kind} gap of the audit", about=f"{kind}: {text}"[:200])
    said = written.head.text("status").lower()
    if said == "gaps_found" and not (known or requirements or others) and found.status != "gaps_found":
        text = f"What {written.path} lists as missing is there"
        yield Gap(truth=text, reason="the audit says gaps_found and names no gap in its frontmatter")


def _items(value: object) -> Iterator[str]:
    """Yield a list's items as one line each: a text, or the texts of a map."""
    for item in cast("list[object]", value) if isinstance(value, list) else ():
        if isinstance(item, dict):
            texts = cast("dict[str, Any]", item).items()
            parts = [f"{key}: {' '.join(as_texts(inner)) or as_text(inner)}" for key, inner in texts]
            yield "; ".join(part for part in parts if not part.endswith(": "))[:300]
        elif isinstance(item, str) and item.strip():
            yield item.strip()[:300]


def _recorded(
    written: _Written, found: Audit, gaps: Sequence[Gap], decided: Decision, tried: Sequence[str], digest: str
) -> str:
    """Return the command's audit with what became of its gaps, and what code has found besides."""
    head: dict[str, Node] = {key: value for key, value in written.head.values.items() if key not in _OURS}
    said = as_text(written.head.get("status")).lower()
    if gaps or said == "gaps_found":
        # What a person accepted, or has to look at, does not keep a run from success.
        head["status"] = "gaps_found" if gaps and not decided.accepted_by else "tech_debt"
    head.setdefault("milestone", found.milestone)
    phases = [*tried, *(phase.number for phase in decided.added)]
    head |= {"inputs": digest} if digest else {}
    head |= {"gap_phases": phases} if phases else {}
    head |= {"gaps_accepted_by": decided.accepted_by} if decided.accepted_by else {}
    body = written.head.body.split(f"\n{TITLE}\n")[0].strip("\n")
    return f"{render_frontmatter(head)}\n{document([body, *_findings(found, decided, said)])}"


_OURS = ("inputs", "gap_phases", "gaps_accepted_by")
TITLE = "## Compared by gsd"


def _findings(found: Audit, decided: Decision, said: str) -> Iterator[str]:
    lines = [f"- {one.requirement.id}: {one.status}, {inline(one.evidence)}" for one in found.gaps]
    lines += [f"- Phase {number} has no verification that covers its work" for number in found.unverified]
    yield TITLE
    if lines and said != "gaps_found":
        yield f"The command said `{inline(said) or 'nothing'}`. The planning files do not agree:"
    yield "\n".join(lines) or "The planning files have no gap."
    if decided.added:
        yield f"Added for the gaps: phase {', '.join(phase.number for phase in decided.added)}."
    if decided.accepted_by:
        yield f"Left open by {inline(decided.accepted_by)}."


def _as_observed(now: Planning, before: Planning) -> Planning:
    """Return the planning files as they are *now*; whether a verdict is stale only git's history says."""
    stale = {phase.number for phase in before.phases if phase.verdict and phase.verdict.stale}
    phases = tuple(
        attrs.evolve(phase, verdict=attrs.evolve(phase.verdict, stale=True))
        if phase.verdict and phase.number in stale
        else phase
        for phase in now.phases
    )
    return attrs.evolve(now, phases=phases, config=before.config, documents=before.documents)


# close


async def execute_close(step: StepRequest, host: StepHost) -> StepResult:
    """Have the milestone archived; ask first if anything is open, because the command may not."""
    # An attempt that was interrupted may have left the last things undone, such as the tag.
    if step.attempt == 1 and not _still_open(step, step.planning):
        return StepResult(subject="nothing to do: the milestone is archived already")
    version, by, found = _version(step), "", None
    # After a kill the command may have begun: then its phases are in the archive, and look incomplete.
    if not (step.project / f"{ARCHIVE}/{version}-ROADMAP.md").is_file():
        require_complete(step)
        found = audit(step.planning, step.project)
        decided = await confirm_close(step, host, found, open_items_of(found, step))
        if decided.left:
            return kept_open(version, decided)
        by = decided.accepted_by
    command = Command(name="complete-milestone", arguments=lambda step: version, missing=_still_open)
    await run_command(step, host, command, more=_instructions(step, found, by))
    return StepResult(subject=f"{version} was completed by the user's command")


def _instructions(step: StepRequest, found: Audit | None, by: str) -> str:
    lines = [
        "Keep git's branches as they are: do not merge, delete or push any.",
        "Reorganize ROADMAP.md as the workflow says: no phase of this milestone remains in progress.",
    ]
    if step.text == "without a tag":
        lines.append("Create no tag, whatever the configuration says.")
    if step.text == "with a tag":
        lines.append("Create the tag, whatever the configuration says.")
    if by and found:
        gaps = ", ".join(one.requirement.id for one in found.gaps[:MAX_NAMED])
        lines.append(
            f"What is open was shown, and it was agreed ({by}) to close the milestone all the same: "
            f"acknowledge it without asking again, and list it in MILESTONES.md."
            f"{f' Known gaps: {gaps}.' if gaps else ''}"
        )
    return "\n".join(f"- {line}" for line in lines)


def _still_open(step: StepRequest, _: Planning) -> str:
    """Return what a completed milestone would have, and this one has not."""
    version = _version(step)
    path = f"{ARCHIVE}/{version}-ROADMAP.md"
    if not (step.project / path).is_file():
        return f"there is no {path}"
    # Once the archive exists, GSD's readers take the milestone as shipped, whatever ROADMAP.md says; its next
    # milestone would then begin among the old phases.
    project = step.project
    folders = (*every_folder(project), *every_folder(project, f"{ARCHIVE}/{version}-phases"))
    own = {folder.number for folder in folders}
    mentions = parse_roadmap(read_text(project, ".planning/ROADMAP.md")).mentions()
    left = sorted({one.number for one in mentions if not one.shipped and one.number in own}, key=phase_order)
    return f"ROADMAP.md still has phase {', '.join(left)} of {version} in progress" if left else ""


def _version(step: StepRequest) -> str:
    return step.detail or step.planning.milestone
