"""Checks that only a human can make, asked together once everything else holds."""

from __future__ import annotations

from attrs import evolve

from gsd_core import Answer, Evidence, Gap, GapReport, HumanCheck, Inquiry, Question, StepHost, StepRequest

from .checkpoint import BROKEN, WORKS


async def ask_human(step: StepRequest, host: StepHost, found: GapReport) -> GapReport:
    """Ask for the human checks; a no is a gap in the human's words.

    While there are gaps the checks stay open: nobody looks twice at what is going to be mended.
    """
    if not found.human or found.gaps or found.failed_detectors:
        return found
    questions = tuple(_question(check) for check in found.human)
    reason = "only a person can verify this"
    answers = await host.ask(Inquiry(kind="checkpoint", step=step.id, questions=questions, reason=reason))
    report = evolve(found, human=())
    for check, answer in zip(found.human, answers, strict=True):
        report = _with(report, check, answer)
    return report


def _question(check: HumanCheck) -> Question:
    lines = [check.test, f"Expected: {check.expected}" if check.expected else "", check.why]
    text = "\n".join(dict.fromkeys(line for line in lines if line))
    return Question(text=text, header="Please check", options=(WORKS, BROKEN))


def _with(report: GapReport, check: HumanCheck, answer: Answer) -> GapReport:
    about = check.about or check.test
    if answer.chosen == (WORKS.label,):
        proof = Evidence(about=about, holds=True, proof=f"checked by hand: {answer.words}", by=answer.how)
        return evolve(report, evidence=(*report.evidence, proof))
    gap = Gap(truth=check.expected or check.test, reason=answer.words, about=about, found_by="human")
    return evolve(report, gaps=(*report.gaps, gap))
