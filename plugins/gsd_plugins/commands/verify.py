"""verify: the verdict of the user's commands on a phase, combined with what the detectors found.

``execute-phase`` ends with a verification. If the phase has none, or plans were executed after it,
``verify-work`` lets a person test the phase, and its UAT.md is the verdict.
"""

from __future__ import annotations

import attrs

from gsd_core import (
    Evidence,
    Gap,
    GapReport,
    Inquiry,
    Permanent,
    PhaseView,
    StepHost,
    StepRequest,
    StepResult,
    Verified,
)
from gsd_core.planning.model import Planning
from gsd_core.planning.must_haves import required_of
from gsd_plugins.native import undecided
from gsd_plugins.uat import find_uat_gaps, question_of, with_answer

from .steps import Command, run_command

BY = "commands"
PASSED = ("pass", "passed", "approved", "verified")


async def execute_verify(step: StepRequest, host: StepHost) -> StepResult:
    """Return the verdict on the phase as it is now; the core adds what the detectors found."""
    phase = step.phase
    if phase is None:
        raise Permanent(f"{step.id} has no phase")
    verdict = phase.verdict
    if verdict is not None and verdict.status != "unknown" and not verdict.stale:
        gaps = verdict.gaps
        if verdict.status == "gaps_found" and not gaps:
            text = f"{verdict.path} says gaps_found, but lists no gap"
            gaps = (Gap(truth="The verification lists its gaps", reason=text, status="unverified"),)
        human = tuple(check for check in verdict.human if check.result.lower() not in PASSED)
        found = GapReport(gaps=gaps, human=human)
        source = f"{verdict.path}, written by the user's own commands, says {verdict.status}"
    else:
        found = await _from_acceptance_tests(step, host, phase)
        source = f"the acceptance tests of phase {phase.number} passed"
    # Detectors come first: no command overrules them, which the core ensures as well.
    before = step.report or GapReport()
    report = attrs.evolve(
        before,
        gaps=(*before.gaps, *found.gaps),
        human=tuple(dict.fromkeys((*before.human, *found.human))),
        evidence=(*before.evidence, *found.evidence),
    )
    executed = [plan for plan in phase.plans if plan.summary]
    required = required_of(phase, executed, step.planning.requirements)
    # A must-have holds that no gap, check or evidence is about; GSD's own verifier names a truth by its text.
    said = {_plain(gap.truth) for gap in report.gaps}
    holding = [one for one in undecided(required, report) if _plain(one.text) not in said]
    names = [name for one in holding for name in one.ids]
    evidence = [Evidence(about=name, holds=True, proof=source, by=BY) for name in names]
    report = await _ask_human(step, host, attrs.evolve(report, evidence=(*report.evidence, *evidence)))
    return StepResult(subject=f"docs({phase.number}): verify phase", outcome=Verified(report=report))


async def _from_acceptance_tests(step: StepRequest, host: StepHost, phase: PhaseView) -> GapReport:
    """Have the phase tested with ``verify-work`` and return what its UAT.md says."""

    def missing(step: StepRequest, planning: Planning) -> str:
        now = planning.phase(phase.number)
        if now is None or not now.directory:
            return f"phase {phase.number} has no folder"
        there = any((step.project / now.directory).glob("*-UAT.md"))
        return "" if there else f"phase {phase.number} has no UAT.md"

    command = Command(name="verify-work", arguments=lambda step: phase.number, missing=missing)
    planning = await run_command(step, host, command)
    report = await find_uat_gaps(planning.phase(phase.number) or phase)
    return report if isinstance(report, GapReport) else GapReport(gaps=tuple(report or ()))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".")


async def _ask_human(step: StepRequest, host: StepHost, report: GapReport) -> GapReport:
    """Return the report with its manual checks answered; what a person rejects becomes a gap."""
    # With gaps, the checks stay open: the repairs would make a person check everything twice.
    if not report.human or report.gaps or report.failed_detectors:
        return report
    questions = tuple(question_of(check) for check in report.human)
    reason = "only a person can verify this"
    answers = await host.ask(Inquiry(kind="checkpoint", step=step.id, questions=questions, reason=reason))
    answered = attrs.evolve(report, human=())
    for check, answer in zip(report.human, answers, strict=True):
        answered = with_answer(answered, check, answer, answer.words)
    return answered
