"""verify: decide for each requirement, criterion, decision and truth of a phase whether it holds, and prove
it.

Gap detectors run first; a verifier judges what they leave open, and a person what only a person can see. A
verdict counts only with citations that :mod:`.citations` has checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Any, assert_never, cast

import attrs

from gsd_core import (
    AgentResult,
    Evidence,
    FileWrite,
    Gap,
    GapReport,
    HumanCheck,
    Observation,
    Permanent,
    PhaseView,
    RejectedAnswer,
    StepHost,
    StepRequest,
    StepResult,
    TaskCheck,
    Unnoticed,
    Verified,
    padded,
    some_of,
)
from gsd_core.planning.changed_files import lines_by_kind, unlisted_files
from gsd_core.planning.must_haves import MustHave, required_of
from gsd_core.planning.verification import render_verification

from .acceptance import ask_person
from .answers import (
    RUN_COMMAND,
    Citation,
    FindingAnswer,
    VerdictAnswer,
    VerdictsAnswer,
    parse_answer,
    validate_answer,
)
from .citations import Sources, describe
from .models import task_for
from .paths import executed_plans, phase_file, phase_of
from .prompt_context import (
    bullets,
    codebase_section,
    constraints_section,
    describe_statement,
    earlier_decisions_section,
    fence,
    join,
    others_section,
    section,
    system_prompt,
)
from .run_command import CASES_LISTED, OUTPUT_LIMIT, command_runner
from .skills import agent_skills_section
from .unfinished import with_unfinished

STATEMENT_LIMIT = 600
CONSTRAINTS_LIMIT = 4000
MAX_FINDINGS = 20

MAX_COMPLAINTS = 2
MOST_BY_ONE = 4
"""How many unrelated ids may have the same evidence without being sent back, once."""

UNTRIED = re.compile(
    r"(?:^|[.;,:(] ?)(?:(?:but|and) )?(?:i (?:(?:did|have|could)(?: not|n't))|not|never|without)"
    r" (?:\w+ ){0,2}(?:tr(?:y|ied)|r[au]n|test|verif|check|exec)",
    re.IGNORECASE,
)
"""What a verifier says of itself, and not of the product: "not tried, but it looks right"."""
NO_REASON = "the verifier gave no reason"


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Verify the phase as it is now, and write its VERIFICATION.md."""
    phase = phase_of(step)
    report = step.report or GapReport()
    required = required_of(phase, executed_plans(phase), step.planning.requirements)
    report = attrs.evolve(report, gaps=(*report.gaps, *_contradicted(required, report)))
    report = with_unfinished(phase, report)
    if left := undecided(required, report):
        report = await _ask_verifier(step, phase, host, left, report)
    report, tests = await ask_person(step, host, report)
    requirements = step.planning.requirements
    text = render_verification(phase, report, now=step.now, previous=phase.verdict, requirements=requirements)
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): verify phase",
        outcome=Verified(report=report),
        files=(FileWrite(path=phase_file(phase, f"{number}-VERIFICATION.md"), text=text), *tests),
    )


def _contradicted(required: Sequence[MustHave], report: GapReport) -> Iterator[Gap]:
    """Yield a gap for evidence that something does not hold, if its detector reported no gap for it."""
    texts = {name: one.text for one in required for name in one.ids}
    reported = {gap.about for gap in report.gaps}
    for evidence in report.evidence:
        if not evidence.holds and evidence.about not in reported:
            truth = texts.get(evidence.about, evidence.about)
            yield Gap(truth=truth, reason=evidence.proof, about=evidence.about, found_by=evidence.by)


def undecided(required: Sequence[MustHave], report: GapReport) -> tuple[MustHave, ...]:
    """Return the must-haves that no evidence, gap or manual check is about."""
    decided = {gap.about for gap in report.gaps}
    decided |= {evidence.about for evidence in report.evidence}
    decided |= {check.about for check in report.human}
    return tuple(one for one in required if decided.isdisjoint(one.ids))


# The verifier


async def _ask_verifier(
    step: StepRequest,
    phase: PhaseView,
    host: StepHost,
    required: Sequence[MustHave],
    report: GapReport,
    key: str = "verify",
) -> GapReport:
    """Return the report with the verifier's verdict on each must-have added, and its other findings.

    For verdicts that it leaves out, a new verifier is asked. Without them the phase is not verified: they say
    nothing about the product, so that there is nothing to plan. Raises ``Permanent`` then.
    """
    task = task_for(
        step,
        "verifier",
        system=system_prompt("verify"),
        prompt=_prompt(step, phase, required),
        functions=(RUN_COMMAND,),
        answer=VerdictsAnswer,
        turns=60,
    )
    # Complain only twice, because the host starts a new conversation after a third complaint, which would
    # cost as much again. Then take the answer as it is: a verdict that is not proven becomes a gap.
    result = AgentResult()

    def accept(answered: AgentResult) -> Sequence[str]:
        nonlocal result
        result = answered
        if answered.sent_back >= MAX_COMPLAINTS:
            return ()
        problems = [*_problems(required, answered.value, _sources(step, phase, answered))]
        if not answered.sent_back:
            problems += _proves_too_much(required, answered.value)
            problems += _doubts(answered.value, phase)
        return tuple(problems)

    try:
        result = await host.run_agent(key, task, accept, {RUN_COMMAND.name: command_runner(host)})
        value = result.value
    except RejectedAnswer as error:
        value = error.value
        # The tools of another answer's conversation prove nothing.
        result = result if result.value == value else AgentResult()
    sources = _sources(step, phase, result)
    report = _with_findings(report, value)
    left: list[MustHave] = []
    for one in required:
        if verdict := _verdict_on(one, value):
            report = _with_verdict(report, one, verdict, sources)
        else:
            left.append(one)
    if left and key == "verify":
        return await _ask_verifier(step, phase, host, left, report, "verify-again")
    if left:
        raise Permanent(
            f"the verifier gave no valid verdict on {', '.join(one.id for one in left)}",
            hint="resume the run to verify the phase again",
        )
    return report


def _sources(step: StepRequest, phase: PhaseView, result: AgentResult) -> Sources:
    return Sources(tree=step.tree, uses=result.uses, checks=phase.checks, history=phase.history)


def _prompt(step: StepRequest, phase: PhaseView, required: Sequence[MustHave]) -> str:
    # Paths and outputs only: nothing that the executors said about their own work.
    files = sorted({path for plan in executed_plans(phase) for path in plan.files_modified})
    unlisted = lines_by_kind(phase.project, unlisted_files(phase.changed, phase.plans))
    kinds = {
        "requirement": "Requirements",
        "criterion": "Success criteria",
        "decision": "Decisions",
        "truth": "Truths",
    }
    asked: list[str] = []
    for kind, name in kinds.items():
        questions = "\n".join(_question_about(step, one) for one in required if one.kind == kind)
        asked.append(section(f"{name} to verify", fence(name.lower(), questions)))
    later = [*dropwhile(lambda one: one.number != phase.number, step.planning.phases)][1:]
    outputs = fence("commands", "\n".join(map(_check_output, phase.checks)))
    return join(
        section("The phase", fence("phase", f"{phase.name}\n{phase.goal}")),
        others_section("Later phases: what they add does not count as missing", later),
        constraints_section(step),
        earlier_decisions_section(step, phase),
        *asked,
        codebase_section(step, brief=True),
        agent_skills_section(step, "verifier"),
        section("Files that the plans list as changed", fence("files", bullets(files))),
        section(
            "Files of the commits that no plan lists (output and data belong in .gitignore)",
            fence("unlisted", bullets(unlisted)),
        ),
        section("Current output of the checks, in a clean checkout", outputs),
        section(
            "Changes to the code that no test notices: a finding only if one would break what an id says",
            fence("faults", bullets(map(str, phase.unnoticed))),
        ),
        section(
            "Exact words that no file of the project contains",
            fence("absent", bullets(f"{name}: {some_of(words)}" for name, words in phase.absent.items())),
        ),
    )


def _question_about(step: StepRequest, must_have: MustHave) -> str:
    """Return a must-have with its id, what it serves, and its source: the idea's words, or the question."""
    serves = f" (serves {', '.join(must_have.serves)})" if must_have.serves else ""
    lines = [f"- {must_have.id}: {' '.join(must_have.text.split())}{serves}"]
    if must_have.kind == "requirement":
        lines += [
            f"  The idea says: {describe_statement(step, statement, STATEMENT_LIMIT)}"
            for statement in step.planning.statements
            if must_have.id in statement.used_by
        ]
    if must_have.kind == "decision":
        lines += [f"  {' '.join(note.split())}" for note in must_have.details]
    return "\n".join(lines)


def _check_output(check: TaskCheck) -> str:
    result = check.result
    status = "did not finish" if result.exit is None else f"exit {result.exit}"
    if result.passes_without or (result.passed_before and not result.cases):
        status += ", and also without the work of this plan: it proves nothing about it"
    passed = [case for case in result.cases if case.outcome == "passed"]
    own = [case.name for case in passed if not case.passes_without]
    other = [case.name for case in passed if case.passes_without]
    cases = [f"test cases: {some_of(own, CASES_LISTED)}"] if own else []
    if other:
        cases.append(
            f"these pass without this plan's work too, and prove nothing: {some_of(other, CASES_LISTED)}"
        )
    output = result.output[-OUTPUT_LIMIT:]
    if passed and result.ok:
        # npm and make say first what they run; the rest is about the test cases.
        said = r"^> .+|\A.+" if "make " in result.command else r"^> .+"
        output = "\n".join(re.findall(said, result.output, re.MULTILINE))
    head = f"- {check.plan}, task {check.task}: {result.command}: {status}"
    return "\n".join([head, *cases, output]).rstrip()


def _problems(required: Sequence[MustHave], value: object, sources: Sources) -> Iterator[str]:
    if invalid := validate_answer(VerdictsAnswer, value):
        yield from invalid
        return
    verdicts = parse_answer(VerdictsAnswer, value).verdicts
    given = [verdict.id for verdict in verdicts]
    wanted = [one.id for one in required]
    yield from (f"no verdict on {name}" for name in wanted if name not in given)
    yield from (f"{name!r} was not asked for" for name in given if name not in wanted)
    yield from (f"more than one verdict on {name}" for name in wanted if given.count(name) > 1)
    for verdict in verdicts:
        yield from (f"{verdict.id}: {problem}" for problem in _unproven(verdict, sources))


def _proves_too_much(required: Sequence[MustHave], value: object) -> Iterator[str]:
    """Yield a complaint about evidence that is all that is cited for several unrelated ids.

    Ids are related if a truth serves them both.
    """
    related: list[set[str]] = []
    for one in required:
        linked = {*one.ids, *one.serves}
        joined = [group for group in related if group & linked]
        related = [group for group in related if group not in joined] + [linked.union(*joined)]
    by_evidence: dict[frozenset[str], list[str]] = {}
    for entry in _entries(value, "verdicts"):
        if validate_answer(VerdictAnswer, entry):
            continue
        verdict = parse_answer(VerdictAnswer, entry)
        if verdict.status == "holds":
            by_evidence.setdefault(frozenset(map(describe, verdict.citations)), []).append(verdict.id)
    for evidence, ids in by_evidence.items():
        if evidence and sum(not group.isdisjoint(ids) for group in related) > MOST_BY_ONE:
            yield (
                f"{' and '.join(sorted(evidence))}: this is the only evidence for {', '.join(ids)}. Cite for "
                "each what shows it: the lines of its code, of a test case that fails without it, or a trial"
            )


def _doubts(value: object, phase: PhaseView) -> Iterator[str]:
    """Yield complaints about verdicts that may be right, and whose evidence does not show it.

    They cite only lines of functions that no test needs, or of files that the phase did not change, or their
    exact words are nowhere, or they say themselves that something was not tried.
    """
    faults = [one for one in phase.unnoticed if one.mutant.kind == "function"]
    for entry in _entries(value, "verdicts"):
        if validate_answer(VerdictAnswer, entry):
            continue
        verdict = parse_answer(VerdictAnswer, entry)
        cited, name = verdict.citations, verdict.id
        if verdict.status != "holds" or not cited:
            continue
        inside = [_function_of(citation, faults) for citation in cited]
        if all(inside):
            yield (
                f"{name}: no test notices if {inside[0]} does not work: use it with run_command, with "
                "odd input too, and cite the command"
            )
        if phase.changed and all(one.file and one.file not in phase.changed for one in cited):
            yield (
                f"{name}: the phase did not change {cited[0].file}: cite what it did, or a command that "
                "shows that it holds"
            )
        if UNTRIED.search(verdict.evidence):
            yield f"{name}: its evidence says that something was not tried: try it, and cite the command"
        if absent := phase.absent.get(name):
            yield (
                f"{name}: no file of the project contains {some_of(absent)}: cite what computes it, or "
                "a command whose output shows it, or say that it fails"
            )


def _function_of(citation: Citation, faults: Sequence[Unnoticed]) -> str:
    """Return the name of the function that contains the cited lines, if it is one of *faults*."""
    for one in faults:
        if one.path == citation.file and one.mutant.first <= citation.first <= one.mutant.last:
            return one.mutant.name
    return ""


def _unproven(verdict: VerdictAnswer, sources: Sources) -> tuple[str, ...]:
    """Return why a verdict that would let its must-have pass does not count."""
    if verdict.status not in ("holds", "human"):
        return ()
    # Also for a person's check: `--yes` assumes it, so at least the code for it has to be there.
    problems = sources.problems(verdict.citations)
    if verdict.status == "holds" and verdict.missing:
        problems = (*problems, f"it holds, and is missing {some_of(verdict.missing)}: say which is true")
    if verdict.status == "human" and not verdict.evidence.strip():
        problems = (*problems, "evidence has to say what the person should do")
    return problems


def _verdict_on(must_have: MustHave, value: object) -> VerdictAnswer | None:
    """Return the verdict on *must_have*; ``None`` if it is left out, not valid or ambiguous."""
    # The answer as a whole may be invalid here; one bad verdict must not spoil the others.
    matching: list[object] = [
        entry
        for entry in _entries(value, "verdicts")
        if isinstance(entry, Mapping) and cast("Mapping[str, object]", entry).get("id") == must_have.id
    ]
    if len(matching) != 1 or validate_answer(VerdictAnswer, matching[0]):
        return None
    return parse_answer(VerdictAnswer, matching[0])


def _entries(value: object, key: str) -> list[object]:
    listed = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return cast("list[object]", listed) if isinstance(listed, list) else []


def _with_verdict(
    report: GapReport, must_have: MustHave, verdict: VerdictAnswer, sources: Sources
) -> GapReport:
    if unproven := _unproven(verdict, sources):
        reason = f"the verdict is not proven: {'; '.join(unproven)}"
        gap = Gap(truth=must_have.text, reason=reason, about=must_have.id, status="unverified")
        return attrs.evolve(report, gaps=(*report.gaps, gap))
    match verdict.status:
        case "holds":
            cited = ", ".join(map(describe, verdict.citations))
            quotes = {describe(one): quote for one in verdict.citations if (quote := sources.quote(one))}
            proof = f"{cited}: {verdict.evidence.strip()}".rstrip(": ")
            proof = "; ".join([proof, *(f"{where} reads: {quote}" for where, quote in quotes.items())])
            evidence = (Evidence(about=name, holds=True, proof=proof) for name in must_have.ids)
            vague = [describe(one) for one in verdict.citations if sources.is_vague(one)]
            beside = [describe(one) for one in verdict.citations if sources.passes_anyway(one)]
            flaws = [f"{one}, which passes without the work too" for one in beside]
            flaws += [f"{one}, and no test case of it" for one in vague if one not in beside]
            seen = [Observation(text=f"{must_have.id} also cites {one}", severity="minor") for one in flaws]
            return attrs.evolve(
                report,
                evidence=(*report.evidence, *evidence),
                observations=(*report.observations, *seen),
            )
        case "human":
            check = HumanCheck(
                test=verdict.evidence,
                expected=verdict.reason or must_have.text,
                why=must_have.text,
                about=must_have.id,
            )
            return attrs.evolve(report, human=(*report.human, check))
        case "fails" | "uncertain":
            gap = Gap(
                truth=must_have.text,
                reason=verdict.reason or verdict.evidence or NO_REASON,
                about=must_have.id,
                status="failed" if verdict.status == "fails" else "unverified",
                missing=verdict.missing,
                evidence=verdict.evidence,
            )
            return attrs.evolve(report, gaps=(*report.gaps, gap))
        case _:
            assert_never(verdict.status)


def _with_findings(report: GapReport, value: object) -> GapReport:
    """Add what the verifier was not asked about: major defects as gaps, others as observations."""
    for entry in _entries(value, "findings")[:MAX_FINDINGS]:
        if validate_answer(FindingAnswer, entry):
            continue
        finding = parse_answer(FindingAnswer, entry)
        if not finding.problem.strip():
            continue
        if finding.severity in ("blocker", "major"):
            gap = Gap(
                truth=f"This defect is fixed: {' '.join(finding.problem.split())}",
                reason=f"{finding.severity}: {finding.problem}",
                missing=(finding.fix,) if finding.fix.strip() else (),
                evidence=finding.where,
            )
            report = attrs.evolve(report, gaps=(*report.gaps, gap))
        else:
            seen = Observation(text=finding.problem, severity=finding.severity, where=finding.where)
            report = attrs.evolve(report, observations=(*report.observations, seen))
    return report
