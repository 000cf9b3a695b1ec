"""Gaps from user acceptance tests: the phase's ``NN-UAT.md``, in the formats that GSD writes.

A test that failed is a gap, and so is an entry under ``## Gaps`` with the status ``failed``. A test
without a result is a manual check. The list of gaps takes precedence over the tests: a failed test
whose gaps are all ``resolved`` is closed. A test that was skipped with a reason stays skipped.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from gsd_core import (
    Answer,
    BadArtifact,
    Evidence,
    Gap,
    GapReport,
    HumanCheck,
    Option,
    Panel,
    PhaseView,
    PlanningError,
    Question,
    implements,
    normal_phase,
)
from gsd_core.hookspecs import gsd_find_gaps, gsd_panels
from gsd_core.planning.frontmatter import Value, as_text, as_texts, read_frontmatter
from gsd_core.planning.markdown import read_text

MAX_FILES = 1000
PASSED = ("pass", "fixed", "accepted", "dropped", "resolved", "n/a")
FAILED = ("issue", "fail")
CLOSED = ("resolved", "accepted")
WORKS = Option(label="Works", description="It works as expected.", recommended=True)
BROKEN = Option(label="Does not work", description="Describe what is wrong.")

_TEST_HEADING = re.compile(r"^#{3,4}\s*(\d+)[.:)]?\s*(.*?)\s*$")
_FIELD = re.compile(r"^(?:[-*]\s+)?\**([a-z_]+)\**:\**\s*(.*?)\s*$")
_NONE = re.compile(r"\W*(none( yet)?)?\W*", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class UatTest:
    """One test of the file."""

    number: str
    name: str
    fields: Mapping[str, str]

    def first(self, *names: str) -> str:
        """Return the first of these fields that is not empty."""
        return next((self.fields[name] for name in names if self.fields.get(name)), "")

    @property
    def result(self) -> str:
        """The result in lower case, without brackets; ``pending`` if there is none."""
        return self.first("result").strip("[]*` ").lower() or "pending"

    @property
    def needs_check(self) -> bool:
        """Whether a person still has to do the test: no result, an unknown one, or an unexplained skip."""
        if self.result.startswith("skip"):
            return not self.first("reason", "note", "reported")
        return not self.result.startswith((*PASSED, *FAILED))


@attrs.frozen(kw_only=True)
class UatFile:
    """A UAT.md as data: its tests, the entries under ``## Gaps``, and when it was *started*."""

    tests: tuple[UatTest, ...] = ()
    gaps: tuple[Mapping[str, Value], ...] = ()
    started: str = ""


def read_uat(project: Path, path: str) -> UatFile:
    """Return the UAT.md at *path*, relative to *project*; empty if there is none.

    Raises :class:`PlanningError` if it cannot be read.
    """
    if not (project / path).exists():
        return UatFile()
    front = read_frontmatter(read_text(project, path), path=path)
    sections = _sections(front.body)
    return UatFile(
        tests=tuple(_tests(sections.get("tests", ""))),
        gaps=tuple(_listed_gaps(sections.get("gaps", ""), path)),
        started=front.text("started"),
    )


def question_of(check: HumanCheck) -> Question:
    """Return the question whether a manual check passes."""
    lines = [check.test, f"Expected: {check.expected}" if check.expected else "", check.why]
    text = "\n".join(dict.fromkeys(line for line in lines if line))
    return Question(text=text, header="Please check", options=(WORKS, BROKEN), inspection=True)


def with_answer(report: GapReport, check: HumanCheck, answer: Answer, reason: str) -> GapReport:
    """Return *report* with the answer about a check; one that rejects it becomes a gap with the *reason*."""
    about = check.about or check.test
    if answer.chosen != (WORKS.label,):
        gap = Gap(truth=check.expected or check.test, reason=reason, about=about, found_by="human")
        return attrs.evolve(report, gaps=(*report.gaps, gap))
    if answer.is_assumption:
        assumed = attrs.evolve(check, about=about, result="assumed")
        return attrs.evolve(report, assumed=(*report.assumed, assumed))
    proof = Evidence(about=about, holds=True, proof=f"checked by hand: {answer.words}", by=answer.how)
    return attrs.evolve(report, evidence=(*report.evidence, proof))


@implements(gsd_find_gaps)
async def find_uat_gaps(phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Read the phase's acceptance tests, if any."""
    return await asyncio.to_thread(_report, phase)


@implements(gsd_panels)
def show_tests(project: Path) -> Iterable[Panel]:
    """Show the acceptance tests of all phases with their results."""
    rows: list[tuple[str, ...]] = []
    for path in sorted(project.glob(".planning/phases/*/*-UAT.md"))[:MAX_FILES]:
        shown_path = path.relative_to(project).as_posix()
        phase = path.name.removesuffix("-UAT.md")
        try:
            tests = read_uat(project, shown_path).tests
        except PlanningError as error:
            rows.append((phase, shown_path, f"cannot be read: {error.args[0]}"))
            continue
        rows += [(phase, test.name, test.result) for test in tests]
    if rows:
        done = sum(result.startswith(PASSED) for _, _, result in rows)
        yield Panel(
            name="tests",
            title="Acceptance tests",
            figures={"Passed": f"{done} of {len(rows)}"},
            columns=("phase", "test", "result"),
            rows=tuple(rows),
        )


def _report(phase: PhaseView) -> GapReport:
    if not phase.directory:
        return GapReport()
    reports = [
        _read(path, phase)
        for path in sorted((phase.project / phase.directory).glob("*-UAT.md"))
        if normal_phase(path.name.removesuffix("-UAT.md")) == phase.number
    ]
    return GapReport(
        gaps=tuple(gap for report in reports for gap in report.gaps),
        human=tuple(check for report in reports for check in report.human),
        evidence=tuple(evidence for report in reports for evidence in report.evidence),
    )


def _read(path: Path, phase: PhaseView) -> GapReport:
    shown_path = path.relative_to(phase.project).as_posix()
    front = read_frontmatter(read_text(phase.project, shown_path), path=shown_path)
    sections = _sections(front.body)
    tests = list(_tests(sections.get("tests", "")))
    listed = _listed_gaps(sections.get("gaps", ""), shown_path)
    file_is_closed = front.text("status").lower() in CLOSED
    default_status = "resolved" if file_is_closed else "failed"
    failed = [gap for gap in listed if as_text(gap.get("status", default_status)).lower() == "failed"]
    closed_tests = {as_text(gap.get("test", "")) for gap in listed}
    if file_is_closed:
        closed_tests |= {test.number for test in tests}
    name = path.name.removesuffix(".md")
    # What failed is to be tested again, once plans have been executed to close it.
    summaries = [Path(plan.summary).name for plan in phase.plans if plan.gap_closure and plan.summary]
    tested = re.split(r"[,\s]+", " ".join(as_texts(front.get("source"))))
    known = {Path(name).name for name in tested if name}
    again = bool(known) and any(name not in known for name in summaries)
    failures = [test for test in tests if test.result.startswith(FAILED)]
    retested = {test.number for test in failures if again}
    failed = [gap for gap in failed if as_text(gap.get("test", "")) not in retested]
    unlisted = [test for test in failures if test.number not in {*closed_tests, *retested}]
    return GapReport(
        gaps=(
            *_with_unique_names([_listed_gap(gap, tests, name) for gap in failed]),
            *(_failed_test(test, name) for test in unlisted),
        ),
        human=tuple(
            HumanCheck(
                test=test.name,
                expected=test.first("expected"),
                why=test.first("reported", "reason", "blocked_by") or test.result,
                about=f"{name}:{test.number}",
            )
            for test in tests
            if test.needs_check or (test.number in retested and not file_is_closed)
        ),
        evidence=tuple(
            Evidence(about=f"{name}:{test.number}", holds=True, proof=f"acceptance test: {test.result}")
            for test in tests
            if test.result.startswith(PASSED)
        ),
    )


def _sections(body: str) -> dict[str, str]:
    """Return the text under each second-level heading, by the heading in lower case."""
    # GSD's template has comments with instructions, which are not content.
    visible = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    parts = re.split(r"^##\s+(.+?)\s*$", visible, flags=re.MULTILINE)
    return {name.lower(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _tests(section: str) -> Iterator[UatTest]:
    heading: re.Match[str] | None = None
    lines: list[str] = []
    # The heading at the end makes the loop yield the last test.
    for line in [*section.splitlines(), "### 0. end"]:
        if match := _TEST_HEADING.match(line):
            if heading:
                yield UatTest(number=heading[1], name=heading[2], fields=_fields(lines))
            heading, lines = match, []
        else:
            lines.append(line)


def _fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the ``name: value`` lines; indented lines continue the value above."""
    fields: dict[str, str] = {}
    last = ""
    for line in lines:
        if match := _FIELD.match(line):
            last = match[1]
            fields[last] = "" if match[2] in ("|", ">", "|-", ">-") else match[2].strip("\"'")
        elif last and line.startswith((" ", "\t")):
            fields[last] = f"{fields[last]} {line.strip()}".strip()
    return fields


def _listed_gaps(section: str, shown_path: str) -> list[Mapping[str, Value]]:
    """Return the entries of the Gaps section; a plain sentence becomes an entry with only a truth."""
    if _NONE.fullmatch(section):
        return []
    # The list is YAML, so the frontmatter parser can read it, with its limits on size and depth.
    unfenced = re.sub(r"^```.*$", "", section, flags=re.MULTILINE)
    indented = "\n".join(f"  {line}" for line in unfenced.splitlines())
    try:
        found = read_frontmatter(f"---\ngaps:\n{indented}\n---\n", path=shown_path).get("gaps")
    except PlanningError as error:
        raise PlanningError(f"section Gaps: {error.args[0]}", path=shown_path, hint=error.hint) from error
    entries: list[Mapping[str, Value]] = []
    for item in found if isinstance(found, list) else [found]:
        if isinstance(item, dict) and "truth" in item:
            entries.append(item)
        else:
            entries.append({"truth": as_text(item) or ", ".join(as_texts(item))})
    return [entry for entry in entries if not _NONE.fullmatch(as_text(entry["truth"]))]


def _listed_gap(gap: Mapping[str, Value], tests: Sequence[UatTest], file: str) -> Gap:
    number = as_text(gap.get("test", ""))
    truth = as_text(gap["truth"])
    expected = next((test.first("expected") for test in tests if test.number == number), "")
    reason = as_text(gap.get("reason", "")) or "listed as a gap in the acceptance tests"
    return Gap(
        truth=truth,
        reason=_with_severity(reason, as_text(gap.get("severity", ""))),
        about=f"{file}:{as_text(gap.get('gap_id', '')) or number or truth}",
        artifacts=tuple(_artifacts(gap.get("artifacts", ""))),
        missing=as_texts(gap.get("missing", "")),
        evidence=as_text(gap.get("root_cause", "")) or (f"expected: {expected}" if expected else ""),
    )


def _artifacts(value: Value) -> Iterator[BadArtifact]:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict) and "path" in item:
            yield BadArtifact(path=as_text(item["path"]), issue=as_text(item.get("issue", "")))
        elif path := as_text(item):
            yield BadArtifact(path=path.split(" (")[0], issue=path)


def _with_unique_names(gaps: Sequence[Gap]) -> Iterator[Gap]:
    """Number the gaps of the same test: ``01-UAT:3``, ``01-UAT:3/2``."""
    seen: Counter[str] = Counter()
    for gap in gaps:
        seen[gap.about] += 1
        yield gap if seen[gap.about] == 1 else attrs.evolve(gap, about=f"{gap.about}/{seen[gap.about]}")


def _failed_test(test: UatTest, file: str) -> Gap:
    reason = test.first("reported", "issue", "reason", "note") or "the test failed"
    return Gap(
        truth=test.name,
        reason=_with_severity(reason, test.first("severity")),
        about=f"{file}:{test.number}",
        evidence=f"expected: {test.first('expected')}",
    )


def _with_severity(reason: str, severity: str) -> str:
    return f"{reason} ({severity})" if severity else reason
