"""User acceptance tests: what only a person can judge, asked in one batch and kept in ``NN-UAT.md``.

The file has the format of GSD's ``verify-work``, with one field more: ``must_have``, the id that a test is
about. A test that a person passed is not asked again; one that failed is asked again once its gap is closed.
The severity of an issue is inferred from the person's words and never asked, as in GSD's own guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import attrs

from gsd_core import (
    Answer,
    Evidence,
    FileWrite,
    GapReport,
    HumanCheck,
    Inquiry,
    PhaseView,
    Severity,
    StepHost,
    StepRequest,
    padded,
)
from gsd_core.planning.frontmatter import Node, render_frontmatter
from gsd_core.planning.markdown import document, inline, title
from gsd_plugins.uat import FAILED, PASSED, WORKS, UatFile, UatTest, question_of, read_uat, with_answer

from .paths import executed_plans, phase_file, phase_of
from .plan_checks import normalized

_SEVERITIES: tuple[tuple[Severity, str], ...] = (
    ("blocker", r"crash|\berrors?\b|exception|traceback|fails? completely|unusable|data loss"),
    ("major", r"(?:does|do|did)(?: not|n't) work|nothing happens|does nothing|wrong result|missing"),
    ("cosmetic", r"colou?rs?\b|font|spacing|align|visual|looks? off|pixel|margin"),
    ("minor", r"works,? but|slow|weird|minor|small issue|typo"),
)
_KINDS = ("pass", "issue", "pending", "skipped", "blocked")
_COUNTED_AS = ("passed", "issues", "pending", "skipped", "blocked")
_FIELDS = ("expected", "result", "reported", "severity", "reason", "blocked_by", "must_have")


async def ask_person(
    step: StepRequest, host: StepHost, report: GapReport
) -> tuple[GapReport, tuple[FileWrite, ...]]:
    """Return the report with its manual checks answered, and the UAT file; what is rejected becomes a gap."""
    # With gaps, the checks stay open: the repairs would make a person check everything twice.
    if not report.human or report.gaps or report.failed_detectors:
        return report, ()
    phase = phase_of(step)
    path = phase_file(phase, f"{padded(phase.number)}-UAT.md")
    file = read_uat(phase.project, path) if phase.directory else UatFile()
    answered, tests = attrs.evolve(report, human=()), list(file.tests)
    open_checks: list[tuple[int, HumanCheck]] = []
    for check in report.human:
        index = _index_of(tests, check, path)
        if index is None:
            number = max((int(test.number) for test in tests), default=0) + 1
            fields = {"expected": check.expected or check.why, "must_have": check.about}
            tests.append(UatTest(number=str(number), name=check.test, fields=fields))
            open_checks.append((len(tests) - 1, check))
        elif tests[index].result.startswith(PASSED):
            kept = f"checked by hand before: {tests[index].name}"
            proof = Evidence(about=check.about or check.test, holds=True, proof=kept, by="uat")
            answered = attrs.evolve(answered, evidence=(*answered.evidence, proof))
        else:
            open_checks.append((index, check))
    # The verifier and the file of the last verification may both ask for the same test.
    groups = {index: [c for i, c in open_checks if i == index] for index, _ in open_checks}
    if not groups:
        return answered, ()
    questions = tuple(question_of(checks[-1]) for checks in groups.values())
    why = "only a person can verify this"
    answers = await host.ask(Inquiry(kind="checkpoint", step=step.id, questions=questions, reason=why))
    for (index, checks), answer in zip(groups.items(), answers, strict=True):
        tests[index] = _tested(tests[index], answer)
        for check in checks:
            answered = with_answer(answered, check, answer, f"{answer.words} ({severity_of(answer.text)})")
    text = render_uat(step, phase, attrs.evolve(file, tests=tuple(tests)))
    return answered, (FileWrite(path=path, text=text),)


def severity_of(words: str) -> Severity:
    """Return how bad an issue is, by the words that report it; ``major`` if they do not say it."""
    text = words.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    for name, pattern in _SEVERITIES:
        if re.search(pattern, text):
            return name
    return "major"


def _index_of(tests: Sequence[UatTest], check: HumanCheck, path: str) -> int | None:
    name = PurePosixPath(path).stem
    for index, test in enumerate(tests):
        about = (f"{name}:{test.number}", test.first("must_have"))
        if check.about and check.about in about:
            return index
        if not test.first("must_have") and normalized(test.name) == normalized(title(check.test)):
            return index
    return None


def _tested(test: UatTest, answer: Answer) -> UatTest:
    outdated = ("reported", "severity", "reason", "blocked_by")
    fields = {name: text for name, text in test.fields.items() if name not in outdated}
    if answer.chosen != (WORKS.label,):
        # The label of the option is ours; the severity is in the person's own words.
        fields |= {"result": "issue", "reported": answer.words, "severity": severity_of(answer.text)}
    elif answer.is_assumption:
        # Still pending: the next person who verifies the phase is asked.
        fields |= {"result": "[pending]", "reason": f"assumed, nobody looked ({answer.by or answer.how})"}
    else:
        fields |= {"result": "pass"}
    return attrs.evolve(test, fields=fields)


def render_uat(step: StepRequest, phase: PhaseView, file: UatFile) -> str:
    """Return the text of the phase's UAT.md."""
    results = [_kind(test) for test in file.tests]
    pending = results.count("pending") + results.count("blocked")
    now = step.now.isoformat()
    head: dict[str, Node] = {
        "status": "partial" if pending else "complete",
        "phase": PurePosixPath(phase.directory).name or padded(phase.number),
        "source": [PurePosixPath(plan.summary).name for plan in executed_plans(phase)],
        "started": file.started or now,
        "updated": now,
    }
    current = f"[testing paused — {pending} items outstanding]" if pending else "[testing complete]"
    counted = [
        f"total: {len(results)}",
        *(f"{name}: {results.count(kind)}" for name, kind in zip(_COUNTED_AS, _KINDS, strict=True)),
    ]
    body = [
        f"# Phase {phase.number}: {title(phase.name)} - User Acceptance Tests",
        f"## Current Test\n\n{current}",
        "## Tests",
        *map(_test_text, file.tests),
        "\n".join(["## Summary", "", *counted]),
        f"## Gaps\n\n{_gaps(file) or 'None.'}",
    ]
    return f"{render_frontmatter(head)}\n{document(body)}"


def _kind(test: UatTest) -> str:
    """Return the result as one of GSD's five kinds."""
    result = test.result
    if result.startswith(PASSED):
        return "pass"
    if result.startswith(FAILED):
        return "issue"
    return next((name for name in ("skipped", "blocked") if result.startswith(name[:4])), "pending")


def _test_text(test: UatTest) -> str:
    names = [*_FIELDS, *(name for name in test.fields if name not in _FIELDS)]
    lines = [f"{name}: {inline(test.fields[name])}" for name in names if test.fields.get(name)]
    return "\n".join([f"### {test.number}. {title(test.name)}", *lines])


def _gaps(file: UatFile) -> str:
    """Return the gaps as a list in YAML: one for each issue, and earlier ones, resolved if they pass now."""
    tests = {test.number: test for test in file.tests}
    items: list[Mapping[str, Node]] = []
    for gap in file.gaps:
        test = tests.get(str(gap.get("test", "")))
        if test is None:
            items.append(gap)
        elif test.result.startswith(PASSED):
            items.append({**gap, "status": "resolved"})
    items += [
        {
            "truth": test.first("expected") or test.name,
            "status": "failed",
            "reason": f"User reported: {test.first('reported', 'reason', 'issue')}",
            "severity": test.first("severity") or "major",
            "test": int(test.number),
            "artifacts": [],
            "missing": [],
        }
        for test in file.tests
        if test.result.startswith(FAILED)
    ]
    if not items:
        return ""
    lines = render_frontmatter({"gaps": items}).splitlines()[2:-1]
    return "\n".join(line.removeprefix("  ") for line in lines)
