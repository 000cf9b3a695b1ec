"""Gaps that a human found: the phase's ``NN-UAT.md`` (acceptance tests), as GSD writes it.

A test that failed, or a gap in the file that is still ``failed``, is a gap. A test that nobody
made yet is a check for a human. The list of gaps decides about its tests: a test that went wrong
and whose gaps are all ``resolved`` is done with. What a human skipped with a reason stays skipped.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import evolve, frozen

from gsd_core import (
    BadArtifact,
    Evidence,
    Gap,
    GapReport,
    HumanCheck,
    PhaseView,
    PlanningError,
    implements,
    normal_phase,
)
from gsd_core.hookspecs import gsd_find_gaps
from gsd_core.planning.frontmatter import Value, as_text, as_texts, read_frontmatter

MAX_BYTES = 1_000_000
FINE = ("pass", "fixed", "accepted", "dropped", "resolved", "n/a")
WRONG = ("issue", "fail")
CLOSED = ("resolved", "accepted")

_TEST = re.compile(r"^#{3,4}\s*(\d+)[.:)]?\s*(.*?)\s*$")
_FIELD = re.compile(r"^(?:[-*]\s+)?\**([a-z_]+)\**:\**\s*(.*?)\s*$")
_NOTHING = re.compile(r"\W*(none( yet)?)?\W*", re.IGNORECASE)


@frozen(kw_only=True)
class Tested:
    """One test of the file, its fields by name."""

    number: str
    name: str
    fields: Mapping[str, str]

    def says(self, *names: str) -> str:
        """Return the first of these fields that is there."""
        return next((self.fields[name] for name in names if self.fields.get(name)), "")

    @property
    def result(self) -> str:
        """The result in lower case without brackets; a test without one is pending."""
        return self.says("result").strip("[]*` ").lower() or "pending"


@implements(gsd_find_gaps)
async def acceptance(phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Read the acceptance tests of the phase, if there are any."""
    return await asyncio.to_thread(_report, phase)


def _report(phase: PhaseView) -> GapReport:
    reports = [_read(path, phase) for path in _files(phase)]
    return GapReport(
        gaps=tuple(gap for report in reports for gap in report.gaps),
        human=tuple(check for report in reports for check in report.human),
        evidence=tuple(proof for report in reports for proof in report.evidence),
    )


def _files(phase: PhaseView) -> list[Path]:
    if not phase.directory:
        return []
    folder = phase.project / phase.directory
    found = [(path, path.name.removesuffix("-UAT.md")) for path in sorted(folder.glob("*-UAT.md"))]
    return [path for path, number in found if normal_phase(number) == phase.number]


def _read(path: Path, phase: PhaseView) -> GapReport:
    shown = path.relative_to(phase.project).as_posix()
    front = read_frontmatter(_text(path, shown), path=shown)
    sections = _sections(front.body)
    tests = list(_tests(sections.get("tests", "")))
    listed = _listed(sections.get("gaps", ""), shown)
    settled = {as_text(gap.get("test", "")) for gap in listed}
    closed = front.text("status").lower() in CLOSED
    if closed:
        settled |= {test.number for test in tests}
    about = path.name.removesuffix(".md")
    open_tests = [test for test in tests if test.number not in settled]
    return GapReport(
        gaps=(
            *_numbered([_gap(gap, tests, about) for gap in listed if _failed(gap, closed)]),
            *(_failure(test, about) for test in open_tests if test.result.startswith(WRONG)),
        ),
        human=tuple(_check(test, about) for test in tests if _to_do(test)),
        evidence=tuple(_proof(test, about) for test in tests if test.result.startswith(FINE)),
    )


def _numbered(gaps: Sequence[Gap]) -> Iterator[Gap]:
    """Tell apart several gaps of one test: ``01-UAT:3``, ``01-UAT:3/2``."""
    seen: Counter[str] = Counter()
    for gap in gaps:
        seen[gap.about] += 1
        yield gap if seen[gap.about] == 1 else evolve(gap, about=f"{gap.about}/{seen[gap.about]}")


def _text(path: Path, shown: str) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PlanningError("larger than 1 MB", path=shown)
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PlanningError("not UTF-8 text", path=shown) from error
    except OSError as error:
        raise PlanningError(f"cannot be read: {error.strerror}", path=shown) from error


def _sections(body: str) -> dict[str, str]:
    """Return the text under each heading of the second level, by its name in lower case."""
    parts = re.split(r"^##\s+(.+?)\s*$", re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL), flags=re.MULTILINE)
    return {name.lower(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _tests(section: str) -> Iterator[Tested]:
    heading: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*section.splitlines(), "### 0. end"]:
        if match := _TEST.match(line):
            if heading:
                yield Tested(number=heading[1], name=heading[2], fields=_fields(lines))
            heading, lines = match, []
        else:
            lines.append(line)


def _fields(lines: Sequence[str]) -> dict[str, str]:
    """Return ``name: value`` lines; what is indented below goes on with the value."""
    fields: dict[str, str] = {}
    last = ""
    for line in lines:
        if match := _FIELD.match(line):
            last = match[1]
            fields[last] = "" if match[2] in ("|", ">", "|-", ">-") else match[2].strip("\"'")
        elif last and line.startswith((" ", "\t")):
            fields[last] = f"{fields[last]} {line.strip()}".strip()
    return fields


def _listed(section: str, shown: str) -> list[Mapping[str, Value]]:
    """Return the file's gaps; one that is a mere sentence has only its truth."""
    if _NOTHING.fullmatch(section):
        return []
    fenced = re.sub(r"^```.*$", "", section, flags=re.MULTILINE)
    indented = "\n".join(f"  {line}" for line in fenced.splitlines())
    try:
        found = read_frontmatter(f"---\ngaps:\n{indented}\n---\n", path=shown).get("gaps")
    except PlanningError as error:
        raise PlanningError(f"section Gaps: {error.args[0]}", path=shown, hint=error.hint) from error
    items = found if isinstance(found, list) else [found]
    maps = [item if isinstance(item, dict) and "truth" in item else {"truth": _prose(item)} for item in items]
    return [item for item in maps if not _NOTHING.fullmatch(as_text(item["truth"]))]


def _prose(item: Value) -> Value:
    return as_text(item) or ", ".join(as_texts(item))


def _failed(gap: Mapping[str, Value], closed: bool) -> bool:
    return as_text(gap.get("status", "resolved" if closed else "failed")).lower() == "failed"


def _gap(gap: Mapping[str, Value], tests: Sequence[Tested], about: str) -> Gap:
    number = as_text(gap.get("test", ""))
    truth = as_text(gap["truth"])
    expected = next((test.says("expected") for test in tests if test.number == number), "")
    reason = as_text(gap.get("reason", "")) or "stands as a gap in the acceptance tests"
    return Gap(
        truth=truth,
        reason=_with_severity(reason, as_text(gap.get("severity", ""))),
        about=f"{about}:{as_text(gap.get('gap_id', '')) or number or truth}",
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


def _failure(test: Tested, about: str) -> Gap:
    reason = test.says("reported", "issue", "reason", "note") or "a human saw it fail"
    return Gap(
        truth=test.name,
        reason=_with_severity(reason, test.says("severity")),
        about=f"{about}:{test.number}",
        evidence=f"expected: {test.says('expected')}",
    )


def _with_severity(reason: str, severity: str) -> str:
    return f"{reason} ({severity})" if severity else reason


def _to_do(test: Tested) -> bool:
    if test.result.startswith("skip"):
        return not test.says("reason", "note", "reported")
    return not test.result.startswith((*FINE, *WRONG))


def _check(test: Tested, about: str) -> HumanCheck:
    why = test.says("reason", "blocked_by") or test.result
    return HumanCheck(test=test.name, expected=test.says("expected"), why=why, about=f"{about}:{test.number}")


def _proof(test: Tested, about: str) -> Evidence:
    return Evidence(about=f"{about}:{test.number}", holds=True, proof=f"a human: {test.result}")
