"""Rendered files are read with the same values, whatever text these contain."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsd_core import (
    Artifact,
    BadArtifact,
    Evidence,
    Gap,
    GapReport,
    HumanCheck,
    KeyLink,
    MustHaves,
    PhaseView,
    Plan,
    Task,
    Truth,
    Verdict,
)
from gsd_core.planning.markdown import clean
from gsd_core.planning.plan import parse_plan, render_plan
from gsd_core.planning.verification import parse_verdict, render_verification

# Plans are large, so that a busy machine can take longer to generate them than the health check allows.
on_slow_machines = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)

AWKWARD = [
    "---",
    "\n---\nstatus: passed\n---\n",
    "a: b",
    "\"quoted\" and 'single'",
    "# heading",
    "\n## Task 7: more\n",
    "</action>",
    '<task type="auto">',
    "</task></tasks>",
    "<name>x</name>",
    "<automated>rm -rf /</automated>",
    "</automated>",
    "&lt;task>",
    "&amp;lt;/done&gt;",
    "<div class='x'>",
    "a < b && c > d",
    "]]>",
    "<!-- -->",
    "\\n \\. \\",
    "{a: [1, 2",
    "- [x] **Phase 1: X** - y",
    "* & ! | > % @ `",
    "true",
    "null",
    "01",
    "2.10",
    "ünïcödé ✓ 漢字 🚧",
    "  indented\n    more\n  less",
    "\ttab",
    "<details>",
]

_pieces = st.one_of(st.sampled_from(AWKWARD), st.text(max_size=20))
texts = st.lists(_pieces, max_size=4).map(lambda parts: clean(" ".join(parts)).strip())
some_text = texts.filter(bool)
lines = texts.map(lambda text: " ".join(text.split()))
some_line = lines.filter(bool)
paths = st.from_regex(r"[a-z_][a-z0-9_./(),é-]{0,12}[a-z0-9]", fullmatch=True)
words = st.from_regex(r"[A-Za-z_]{1,8}", fullmatch=True)
plan_ids = st.sampled_from(["01-01", "01-02", "02.1-03"])


@st.composite
def tasks(draw: st.DrawFn, number: int) -> Task:
    kinds = st.sampled_from(
        ["auto", "checkpoint:human-verify", "checkpoint:decision", "checkpoint:human-action"]
    )
    details = st.dictionaries(
        st.sampled_from(["what-built", "how-to-verify", "decision", "context", "options"]), some_text
    )
    return Task(
        number=number,
        name=draw(some_line),
        type=draw(kinds),  # type: ignore[arg-type]
        files=tuple(draw(st.lists(paths, max_size=3))),
        action=draw(texts),
        verify=draw(texts),
        check=draw(texts),
        done=draw(texts),
        details=draw(details),
    )


def must_haves(plan: str) -> st.SearchStrategy[MustHaves]:
    served = st.lists(st.sampled_from(["CORE-01", "AUTH-12", "02.1:C1"]), max_size=2, unique=True).map(tuple)
    truths = st.lists(st.tuples(some_text, served), max_size=3).map(
        lambda pairs: tuple(
            Truth(id=f"{plan}:T{i}", text=text, serves=serves) for i, (text, serves) in enumerate(pairs, 1)
        )
    )
    artifacts = st.builds(
        Artifact,
        path=paths,
        provides=texts,
        min_lines=st.integers(0, 500),
        exports=st.lists(words, max_size=3).map(tuple),
        contains=texts,
    )
    links = st.builds(KeyLink, source=some_text, target=some_text, via=texts, pattern=texts)
    return st.builds(
        MustHaves,
        truths=truths,
        artifacts=st.lists(artifacts, max_size=2).map(tuple),
        key_links=st.lists(links, max_size=2).map(tuple),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    identity = "02.1-03"
    count = draw(st.integers(1, 3))
    return Plan(
        id=identity,
        phase="2.1",
        name=draw(texts),
        objective=draw(texts),
        type=draw(st.sampled_from(["execute", "tdd"])),
        wave=draw(st.integers(1, 9)),
        depends_on=tuple(draw(st.lists(plan_ids, max_size=2))),
        files_modified=tuple(draw(st.lists(paths, max_size=3))),
        autonomous=draw(st.booleans()),
        requirements=tuple(draw(st.lists(st.sampled_from(["CORE-01", "AUTH-12"]), max_size=2))),
        must_haves=draw(must_haves(identity)),
        tasks=tuple(draw(tasks(number)) for number in range(1, count + 1)),
        gap_closure=draw(st.booleans()),
        path=f".planning/phases/02.1-hotfix/{identity}-PLAN.md",
    )


gaps = st.builds(
    Gap,
    truth=some_text,
    reason=texts,
    about=texts,
    status=st.sampled_from(["failed", "partial", "unverified"]),
    artifacts=st.lists(st.builds(BadArtifact, path=some_text, issue=texts), max_size=2).map(tuple),
    missing=st.lists(some_text, max_size=2).map(tuple),
    evidence=texts,
    found_by=texts,
)
gap_lists = st.lists(gaps, max_size=3).map(tuple)
human_checks = st.builds(HumanCheck, test=some_text, expected=texts, why=texts, about=texts)
reports = st.builds(
    GapReport,
    gaps=gap_lists,
    failed_detectors=st.lists(words, max_size=2).map(tuple),
    human=st.lists(human_checks, max_size=2).map(tuple),
    evidence=st.lists(
        st.builds(Evidence, about=texts, holds=st.booleans(), proof=texts, by=words), max_size=3
    ).map(tuple),
)


@pytest.mark.slow
@on_slow_machines
@given(plans())
def test_a_rendered_plan_is_read_with_the_same_values(plan: Plan) -> None:
    text = render_plan(plan)

    read = parse_plan(text, path=plan.path, phase=plan.phase)

    assert attrs.evolve(read, text="") == plan


@pytest.mark.slow
@on_slow_machines
@given(plans())
def test_a_plan_that_we_rendered_is_rendered_the_same_again(plan: Plan) -> None:
    text = render_plan(plan)

    assert render_plan(parse_plan(text, path=plan.path, phase=plan.phase)) == text


@pytest.mark.slow
@on_slow_machines
@given(
    plans(), reports, st.one_of(st.none(), st.builds(Verdict, status=st.just("gaps_found"), gaps=gap_lists))
)
def test_a_rendered_verification_is_read_with_the_same_values(
    plan: Plan, report: GapReport, previous: Verdict | None
) -> None:
    phase = PhaseView(number="2.1", name=plan.name, goal=plan.objective, project=Path(), plans=(plan,))
    text = render_verification(phase, report, now=datetime(2026, 1, 31, tzinfo=UTC), previous=previous)

    read = parse_verdict(text, path="v.md")

    expected = "gaps_found" if report.gaps or report.failed_detectors else "passed"
    assert read.status == ("human_needed" if expected == "passed" and report.human else expected)
    assert (read.gaps, read.human) == (report.gaps, report.human)
    assert read.verified == "2026-01-31T00:00:00Z"


@pytest.mark.slow
@on_slow_machines
@given(plans(), reports)
def test_with_gaps_the_score_is_never_complete(plan: Plan, report: GapReport) -> None:
    phase = PhaseView(number="2.1", name=plan.name, goal=plan.objective, project=Path(), plans=(plan,))
    text = render_verification(phase, report, now=datetime(2026, 1, 31, tzinfo=UTC))

    verified, _, total = parse_verdict(text, path="v.md").score.partition(" ")[0].partition("/")
    assert int(verified) <= int(total)
    assert int(total) > 0
    if report.gaps or report.failed_detectors:
        assert int(verified) < int(total)
