"""Gaps between what summaries claim and what the project and its git history contain.

A SUMMARY.md is only a claim: it may name files that were never made and commits that never
happened. This detector reports

- files that a summary says were created or changed and that do not exist, unless a later summary says that
  they were deleted or moved;
- files that exist and are in no commit, if no plan lists them (the core checks those that plans list);
- task commits that are not ancestors of HEAD;
- test cases that no file contains, as an observation, until the phase is done;
- a self-check that failed, and requirements that were "completed" without being planned.

A hash that git does not know is not always a forgery: a squash merge or a rebase replaces all commits of a
phase, and the summaries keep the old hashes. So if *none* of a phase's hashes is known, it is a gap only as
long as the phase has not been verified (work is verified before it is merged), or if the promised files are
not in HEAD either. If some are known, history was not rewritten, and each unknown one is a gap. A shallow
clone knows few commits; the same rule holds.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from gsd_core import (
    BadArtifact,
    Gap,
    GapReport,
    Observation,
    PhaseView,
    Plan,
    PlanningError,
    implements,
    read_start,
    some_of,
)
from gsd_core.hookspecs import gsd_find_gaps
from gsd_core.planning.frontmatter import Frontmatter, as_list, as_map, as_text, read_frontmatter
from gsd_core.planning.plan_tasks import is_test_file

MAX_SUMMARY = 400_000
MAX_LATER = 300
"""How many summaries of the project are searched for deletions."""

_HASH = re.compile(r"(?<![\w./-])`?\b([0-9a-f]{7,40})\b`?(?![\w./-])")
_DELETED = re.compile(
    r"(?i)\b(?:delet|remov|renam|mov(?:ed|es|ing)\b|replac|drop|merg|consolidat|retir|supersed|inlin)"
)
_TEST_CASE = re.compile(r"\b(?:test_\w{3,}|Test[A-Z]\w{3,})\b")
"""A test case as pytest, unittest and Go name it."""
_SELF_CHECK = re.compile(r"(?im)^\W*self-?check\W*[:—-]*\W*(passed|failed)\b")
_PATH = re.compile(r"[\w.@()\[\]+-]+(?:/[\w.@()\[\]+-]+)*\.\w{1,10}")
_OBVIOUS = re.compile(
    r"(?:(.)\1{6,}|(?:deadbee|cafebab|badc0de|c0ffee|feedfac|f00ba|abc123|abcdef|a1b2c3|1a2b3c|12345)\w*)"
)
"""Obviously made-up hashes; fewer than one in a million random ones looks like this."""


@attrs.frozen(kw_only=True)
class Summary:
    """What one SUMMARY.md claims."""

    plan: Plan
    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    test_cases: tuple[str, ...] = ()
    self_check: str = ""


@implements(gsd_find_gaps)
async def summaries_are_true(phase: PhaseView) -> GapReport:
    """Compare the summaries of the phase with its files and commits."""
    return await asyncio.to_thread(_find, phase)


def _find(phase: PhaseView) -> GapReport:
    summaries = [s for plan in phase.plans if plan.summary and (s := read_summary(phase.project, plan))]
    return GapReport(
        gaps=tuple(_false_claims(phase, summaries)), observations=tuple(_unknown_tests(phase, summaries))
    )


def _unknown_tests(phase: PhaseView, summaries: Sequence[Summary]) -> Iterator[Observation]:
    named = any(summary.test_cases for summary in summaries)
    if phase.history is None or phase.ticked or not named:
        return
    paths = {*phase.changed, *filter(is_test_file, phase.history.files)}
    known = "\n".join(paths)
    for path in paths:
        with suppress(OSError):
            known += read_start(phase.project, path, MAX_SUMMARY).decode("utf-8", "replace")
    for summary in summaries:
        if unknown := [name for name in summary.test_cases if name not in known]:
            text = f"{summary.plan.summary} names test cases that no file contains: {some_of(unknown)}"
            yield Observation(text=text, severity="minor")


def _false_claims(phase: PhaseView, summaries: Sequence[Summary]) -> Iterator[Gap]:
    later = _texts_of_all(phase.project)
    for summary in summaries:
        yield from _false_files(phase, summary, later)
        yield from _false_requirements(phase, summary)
        if summary.self_check == "failed":
            yield Gap(
                truth=f"Plan {summary.plan.id} passed its self-check",
                reason=f"{summary.plan.summary} says that its self-check failed",
                about=f"{summary.plan.id}:self-check",
            )
    yield from _false_commits(phase, summaries)


def read_summary(project: Path, plan: Plan) -> Summary | None:
    """Read the claims of a plan's summary; ``None`` if it cannot be read."""
    try:
        text = read_start(project, plan.summary, MAX_SUMMARY).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    try:
        head = read_frontmatter(text, path=plan.summary)
    except PlanningError:
        head = Frontmatter(body=text)
    checks = _SELF_CHECK.findall(head.body)
    return Summary(
        plan=plan,
        files=tuple(dict.fromkeys([*_listed_files(head), *_files_of_body(head.body)])),
        commits=tuple(dict.fromkeys(_task_commits(head.body))),
        requirements=head.texts("requirements-completed", "requirements_completed"),
        test_cases=tuple(dict.fromkeys(_TEST_CASE.findall(head.body))),
        self_check=checks[-1].lower() if checks else "",
    )


def _listed_files(head: Frontmatter) -> Iterator[str]:
    files = as_map(head.get("key-files", "key_files"))
    for kind in ("created", "modified"):
        for item in as_list(files.get(kind, "")):
            entry = as_map(item)
            text = as_text(entry.get("path", entry.get("file", ""))) if entry else as_text(item)
            if path := _path(text):
                yield path


def _files_of_body(body: str) -> Iterator[str]:
    """Yield the files that a list under "Files Created/Modified" names; not those that it calls deleted."""
    for line in _section(body, r"Files\s+(?:Created|Modified|Changed)[^\n]*"):
        match = re.match(r"\s*[-*]\s+(?:\*\*)?`([^`]+)`", line)
        if match and not _DELETED.search(line) and (path := _path(match[1])):
            yield path


def _path(text: str) -> str:
    """Return the path in an entry such as ``src/cart.py (new)``; empty if it is not one file."""
    bare = re.sub(r"\s+[(—–-].*$", "", text.strip().strip("`\"'")).removeprefix("./")
    if _DELETED.search(text[len(bare) :]) or bare.startswith(("/", "~", ".planning/", "..")):
        return ""
    return bare if _PATH.fullmatch(bare) and "://" not in bare else ""


def _task_commits(body: str) -> Iterator[str]:
    """Yield the hashes of the tasks' commits.

    The commit that contains the summary itself ("Plan metadata") cannot be known to it, and is left out.
    """
    for line in _section(body, r"(?:Task\s+)?Commits\b[^\n]*"):
        if re.search(r"(?i)metadata|docs?\W*(?:commit|:)|summary", line):
            continue
        for match in _HASH.finditer(line):
            if re.search(r"\d", match[1]) or _OBVIOUS.fullmatch(match[1]) or "`" in match[0]:
                yield match[1]


def _section(body: str, heading: str) -> list[str]:
    match = re.search(rf"(?im)^#+\s*{heading}$|^\*\*{heading}\*\*:?\s*$", body)
    if not match:
        return []
    rest = body[match.end() :]
    end = re.search(r"(?m)^#+\s", rest)
    return rest[: end.start() if end else len(rest)].splitlines()


def _texts_of_all(project: Path) -> dict[str, str]:
    """Return the summaries and plans of all phases, by path: a later phase may have deleted a file."""
    found: dict[str, str] = {}
    folder = Path(os.path.realpath(project)) / ".planning" / "phases"
    for path in sorted(folder.glob("*/**/*.md"))[:MAX_LATER]:
        if path.name.endswith(("SUMMARY.md", "PLAN.md")) and path.is_file() and not path.is_symlink():
            name = path.relative_to(folder.parent.parent).as_posix()
            with suppress(OSError):
                found[name] = read_start(folder.parent.parent, name, MAX_SUMMARY).decode("utf-8", "replace")
    return found


def _false_files(phase: PhaseView, summary: Summary, texts: dict[str, str]) -> Iterator[Gap]:
    root = Path(os.path.realpath(phase.project))
    artifacts = {a.path.strip().removeprefix("./") for p in phase.plans for a in p.must_haves.artifacts}
    planned = artifacts | {
        path
        for p in phase.plans
        for path in (*p.files_modified, *(f for task in p.tasks for f in task.files))
    }
    for path in summary.files:
        if path in artifacts:
            continue  # must_haves and the core judge it
        if not os.path.lexists(root / path):
            if (phase.history and path in phase.history.removed) or _was_deleted(path, texts):
                continue
            reason = f"{summary.plan.summary} says that it was written, and it does not exist"
        elif phase.history is None or path in phase.history.files or path in planned:
            continue
        elif any(name.startswith(f"{path}/") for name in phase.history.files):
            continue  # a folder
        else:
            reason = f"{summary.plan.summary} says that it was written, and it is in no commit"
        truth = f"{path} was written by plan {summary.plan.id}"
        bad = (BadArtifact(path=path, issue=reason),)
        yield Gap(truth=truth, reason=reason, about=path, artifacts=bad, missing=(path,))


def _was_deleted(path: str, texts: dict[str, str]) -> bool:
    """Whether any plan or summary says that the file was deleted, moved or replaced."""
    names = re.compile(rf"(?<![\w-])(?:{re.escape(path)}|{re.escape(path.rpartition('/')[2])})(?![\w-])")
    return any(
        names.search(line) and _DELETED.search(line)
        for text in texts.values()
        if path in text or names.search(text)
        for line in text.splitlines()
    )


def _false_requirements(phase: PhaseView, summary: Summary) -> Iterator[Gap]:
    planned = {name.upper() for plan in phase.plans for name in plan.requirements}
    known = planned | {name.upper() for name in phase.requirements}
    for name in summary.requirements if planned else ():
        if re.fullmatch(r"[A-Za-z][\w.]*-\d+\w*", name) and name.upper() not in known:
            yield Gap(
                truth=f"Plan {summary.plan.id} completed requirement {name}",
                reason=f"{summary.plan.summary} lists {name}, which no plan of phase {phase.number} has",
                about=f"{summary.plan.id}:{name}",
            )


def _false_commits(phase: PhaseView, summaries: Sequence[Summary]) -> Iterator[Gap]:
    if phase.history is None or not phase.history.commits:
        return
    claims = {claim for summary in summaries for claim in summary.commits}
    known = {claim for claim in claims if any(one.startswith(claim) for one in phase.history.commits)}
    verified = phase.ticked or (phase.verdict is not None and phase.verdict.status == "passed")
    for summary in summaries:
        unknown = [claim for claim in summary.commits if claim not in known]
        in_head = all(path in phase.history.files for path in summary.plan.files_modified or summary.files)
        if not known and verified and in_head:
            # Squashed or rebased after the verification: all hashes are old, and the work is there.
            unknown = [claim for claim in unknown if _OBVIOUS.fullmatch(claim)]
        if unknown:
            named = ", ".join(unknown[:5])
            yield Gap(
                truth=f"The commits that plan {summary.plan.id} reports exist",
                reason=f"{summary.plan.summary} names {named}: no such commit is part of HEAD's history",
                about=f"{summary.plan.id}:commits",
                evidence="If the history was rewritten on purpose, correct the hashes in the summary.",
            )
