"""verify: decide for each truth of a phase whether it holds; without proof, it does not.

Gap detectors run first; a verifier judges what they leave open, and a person what only a person can see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never, cast

import attrs

from gsd_core import (
    AgentResult,
    AgentTask,
    Answer,
    Evidence,
    FileWrite,
    Gap,
    GapReport,
    HumanCheck,
    Inquiry,
    Limits,
    PhaseView,
    Question,
    RejectedAnswer,
    StepHost,
    StepRequest,
    StepResult,
    TaskCheck,
    Verified,
    padded,
)
from gsd_core.planning.must_haves import MustHave, truths_of
from gsd_core.planning.verification import render_verification

from .answers import VERDICTS, VerdictAnswer, VerdictsAnswer, parse_answer, validate_answer
from .checkpoints import BROKEN, WORKS
from .models import model_for
from .paths import executed_plans, phase_file, phase_of
from .prompt_context import bullets, fence, join, section, system_prompt

OUTPUT_LIMIT = 1500
"""Characters of a command's output that the verifier sees, from its end."""

NO_VERDICT = "the verifier gave no valid verdict"


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Verify the phase as it is now, and write its VERIFICATION.md."""
    phase = phase_of(step)
    report = step.report or GapReport()
    truths = truths_of(phase, executed_plans(phase))
    report = attrs.evolve(report, gaps=(*report.gaps, *_contradicted(truths, report)))
    if undecided := _undecided(truths, report):
        report = await _ask_verifier(step, phase, host, undecided, report)
    report = await _ask_human(step, host, report)
    text = render_verification(phase, report, now=step.now, previous=phase.verdict)
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): verify phase",
        outcome=Verified(report=report),
        files=(FileWrite(path=phase_file(phase, f"{number}-VERIFICATION.md"), text=text),),
    )


def _contradicted(truths: Sequence[MustHave], report: GapReport) -> Iterator[Gap]:
    """Yield a gap for evidence that something does not hold, if its detector reported no gap for it."""
    texts = {name: truth.text for truth in truths for name in truth.ids}
    reported = {gap.about for gap in report.gaps}
    for evidence in report.evidence:
        if not evidence.holds and evidence.about not in reported:
            truth = texts.get(evidence.about, evidence.about)
            yield Gap(truth=truth, reason=evidence.proof, about=evidence.about, found_by=evidence.by)


def _undecided(truths: Sequence[MustHave], report: GapReport) -> tuple[MustHave, ...]:
    """Return the truths that no evidence, gap or manual check is about."""
    decided = {gap.about for gap in report.gaps}
    decided |= {evidence.about for evidence in report.evidence}
    decided |= {check.about for check in report.human}
    return tuple(truth for truth in truths if decided.isdisjoint(truth.ids))


# The verifier


async def _ask_verifier(
    step: StepRequest, phase: PhaseView, host: StepHost, truths: Sequence[MustHave], report: GapReport
) -> GapReport:
    """Return the report with the verifier's verdict on each truth added."""
    task = AgentTask(
        step=step.id,
        run=step.run,
        role="verifier",
        system=system_prompt("verify"),
        prompt=_prompt(phase, truths),
        tools=("Read", "Glob", "Grep"),
        schema=VERDICTS,
        model=model_for("verifier", step),
        tree=step.tree,
        limits=Limits(turns=40),
    )
    # Complain only twice, because the host starts a new conversation after a third complaint, which would
    # cost as much again. Then take the answer as it is: a truth without a valid verdict becomes a gap.
    complaints_left = 2

    def accept(result: AgentResult) -> Sequence[str]:
        nonlocal complaints_left
        if not complaints_left:
            return ()
        complaints_left -= 1
        return tuple(_problems(truths, result.value))

    try:
        value = (await host.run_agent("verify", task, accept)).value
    except RejectedAnswer as error:
        value = error.value
    for truth in truths:
        report = _with_verdict(report, truth, _verdict_on(truth, value))
    return report


def _prompt(phase: PhaseView, truths: Sequence[MustHave]) -> str:
    # Paths and outputs only: nothing that the executors said about their own work.
    files = sorted({path for plan in executed_plans(phase) for path in plan.files_modified})
    return join(
        section("The phase", fence("phase", f"{phase.name}\n{phase.goal}")),
        section(
            "Truths to verify",
            fence("truths", bullets(f"{t.id}: {' '.join(t.text.split())}" for t in truths)),
        ),
        section("Files that the plans list as changed", fence("files", bullets(files))),
        section(
            "Current output of the checks", fence("commands", "\n".join(map(_check_output, phase.checks)))
        ),
    )


def _check_output(check: TaskCheck) -> str:
    result = check.result
    status = "did not finish" if result.exit is None else f"exit {result.exit}"
    output = result.output[-OUTPUT_LIMIT:]
    return f"- {check.plan}, task {check.task}: {result.command}: {status}\n{output}".rstrip()


def _problems(truths: Sequence[MustHave], value: object) -> Iterator[str]:
    if invalid := validate_answer(VerdictsAnswer, value):
        yield from invalid
        return
    verdicts = parse_answer(VerdictsAnswer, value).verdicts
    given = [verdict.id for verdict in verdicts]
    wanted = [truth.id for truth in truths]
    yield from (f"no verdict on {name}" for name in wanted if name not in given)
    yield from (f"{name!r} was not asked for" for name in given if name not in wanted)
    yield from (f"more than one verdict on {name}" for name in wanted if given.count(name) > 1)
    yield from (
        f"{verdict.id}: no evidence of what you saw" for verdict in verdicts if _lacks_evidence(verdict)
    )


def _lacks_evidence(verdict: VerdictAnswer) -> bool:
    return verdict.status in ("holds", "human") and not verdict.evidence.strip()


def _verdict_on(truth: MustHave, value: object) -> VerdictAnswer | None:
    """Return the verdict on *truth*; ``None`` if it is missing, ambiguous, invalid or without evidence."""
    # The answer as a whole may be invalid here; one bad verdict must not spoil the others.
    listed = cast("Mapping[str, Any]", value).get("verdicts") if isinstance(value, Mapping) else None
    entries = cast("list[object]", listed) if isinstance(listed, list) else []
    matching: list[object] = [
        entry
        for entry in entries
        if isinstance(entry, Mapping) and cast("Mapping[str, object]", entry).get("id") == truth.id
    ]
    if len(matching) != 1 or validate_answer(VerdictAnswer, matching[0]):
        return None
    verdict = parse_answer(VerdictAnswer, matching[0])
    return None if _lacks_evidence(verdict) else verdict


def _with_verdict(report: GapReport, truth: MustHave, verdict: VerdictAnswer | None) -> GapReport:
    if verdict is None:
        gap = Gap(truth=truth.text, reason=NO_VERDICT, about=truth.id, status="unverified")
        return attrs.evolve(report, gaps=(*report.gaps, gap))
    match verdict.status:
        case "holds":
            evidence = (Evidence(about=name, holds=True, proof=verdict.evidence) for name in truth.ids)
            return attrs.evolve(report, evidence=(*report.evidence, *evidence))
        case "human":
            check = HumanCheck(
                test=verdict.evidence, expected=verdict.reason or truth.text, why=truth.text, about=truth.id
            )
            return attrs.evolve(report, human=(*report.human, check))
        case "fails" | "uncertain":
            gap = Gap(
                truth=truth.text,
                reason=verdict.reason or verdict.evidence or NO_VERDICT,
                about=truth.id,
                status="failed" if verdict.status == "fails" else "unverified",
                missing=verdict.missing,
                evidence=verdict.evidence,
            )
            return attrs.evolve(report, gaps=(*report.gaps, gap))
        case _:
            assert_never(verdict.status)


# Manual checks


async def _ask_human(step: StepRequest, host: StepHost, report: GapReport) -> GapReport:
    """Return the report with its manual checks answered; what a person rejects becomes a gap."""
    # With gaps, the checks stay open: the repairs would make a person check everything twice.
    if not report.human or report.gaps or report.failed_detectors:
        return report
    questions = tuple(_question(check) for check in report.human)
    reason = "only a person can verify this"
    answers = await host.ask(Inquiry(kind="checkpoint", step=step.id, questions=questions, reason=reason))
    answered = attrs.evolve(report, human=())
    for check, answer in zip(report.human, answers, strict=True):
        answered = _with_answer(answered, check, answer)
    return answered


def _question(check: HumanCheck) -> Question:
    lines = [check.test, f"Expected: {check.expected}" if check.expected else "", check.why]
    text = "\n".join(dict.fromkeys(line for line in lines if line))
    return Question(text=text, header="Please check", options=(WORKS, BROKEN))


def _with_answer(report: GapReport, check: HumanCheck, answer: Answer) -> GapReport:
    about = check.about or check.test
    if answer.chosen == (WORKS.label,):
        proof = Evidence(about=about, holds=True, proof=f"checked by hand: {answer.words}", by=answer.how)
        return attrs.evolve(report, evidence=(*report.evidence, proof))
    gap = Gap(truth=check.expected or check.test, reason=answer.words, about=about, found_by="human")
    return attrs.evolve(report, gaps=(*report.gaps, gap))
