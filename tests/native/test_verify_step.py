"""verify: a requirement, a criterion or a truth holds only with proof, and the proof is checked."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import (
    AgentResult,
    Answer,
    CaseResult,
    CheckResult,
    Evidence,
    Gap,
    GapReport,
    History,
    HumanCheck,
    MustHaves,
    Permanent,
    PhaseView,
    Plan,
    Planning,
    Requirement,
    Statement,
    StepRequest,
    StepResult,
    TaskCheck,
    ToolRecord,
    Truth,
    Verified,
)
from gsd_core.planning.verification import parse_verdict
from gsd_core.testing.fakes import FakeHost, Turn
from gsd_plugins import native
from gsd_plugins.native.answers import Citation
from gsd_plugins.native.citations import Sources

CODE = "import notes\n\ndef add(text):\n    notes.save(text)\n"
READ = ToolRecord(tool="Read", target="notes.py")
LINE = {"file": "notes.py", "first": 3, "last": 3}
PROOF = "notes.py:3: add() saves it; notes.py:3 reads: def add(text):"
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project's folder, with the code that the verifier cites."""
    TREE.append(tmp_path_factory.mktemp("project"))
    (TREE[-1] / "notes.py").write_text(CODE)
    return TREE[-1]


TREE: list[Path] = []


def a_plan(*truths: str, plan: str = "01-01") -> Plan:
    must = MustHaves(truths=tuple(Truth(id=f"{plan}:T{n}", text=t) for n, t in enumerate(truths, start=1)))
    return Plan(id=plan, phase="1", must_haves=must, summary="SUMMARY.md", files_modified=("notes.py",))


def a_step(*plans: Plan, report: GapReport | None = None, **fields: Any) -> StepRequest:
    planning = {name: fields.pop(name) for name in ("requirements_texts", "statements") if name in fields}
    phase = PhaseView(
        number="1", name="Notes", project=TREE[-1], goal="Notes are kept", plans=plans, **fields
    )
    return StepRequest(
        id="1/verify",
        run="r-1",
        kind="verify",
        project=TREE[-1],
        tree=TREE[-1],
        now=NOW,
        phase=phase,
        report=report,
        planning=Planning(
            phases=(phase,),
            requirements=planning.get("requirements_texts", ()),
            statements=planning.get("statements", ()),
        ),
    )


def verdict(name: str, status: str = "holds", **fields: Any) -> dict[str, Any]:
    said = {"evidence": "add() saves it", "reason": "", "missing": [], "citations": [LINE]}
    return {"id": name, "status": status, **said, **fields}


def says(*verdicts: Any, uses: tuple[ToolRecord, ...] = (READ,), findings: Any = ()) -> dict[str, Any]:
    """Return an agent that has used these tools (by default it has read notes.py) and gives *verdicts*."""
    value = {"verdicts": list(verdicts), "findings": list(findings)}
    return {"verify": AgentResult(value=value, uses=uses)}


def run(step: StepRequest, host: FakeHost) -> StepResult:
    result = asyncio.run(native.execute_step(step, host))
    assert result is not None
    return result


def report_of(step: StepRequest, host: FakeHost) -> GapReport:
    outcome = run(step, host).outcome
    assert isinstance(outcome, Verified)
    return outcome.report


ADD = a_plan("A note can be added")


def test_a_truth_holds_with_the_verifier_s_evidence() -> None:
    report = report_of(a_step(ADD), FakeHost(agent=says(verdict("01-01:T1"))))

    assert report.passed
    assert report.evidence == (Evidence(about="01-01:T1", holds=True, proof=PROOF),)


def test_the_report_is_written_as_a_verification() -> None:
    result = run(a_step(ADD), FakeHost(agent=says(verdict("01-01:T1"))))
    file = result.files[0]

    assert result.subject == "docs(01): verify phase"
    assert file.path == ".planning/phases/01-notes/01-VERIFICATION.md"
    assert parse_verdict(file.text, path=file.path).status == "passed"


@pytest.mark.parametrize(("status", "expected"), [("fails", "failed"), ("uncertain", "unverified")])
def test_a_failed_or_uncertain_truth_is_a_gap(status: str, expected: str) -> None:
    answer = verdict("01-01:T1", status, reason="add() is empty", missing=["a body"])
    gap = report_of(a_step(ADD), FakeHost(agent=says(answer))).gaps[0]

    assert (gap.about, gap.truth, gap.status) == ("01-01:T1", "A note can be added", expected)
    assert (gap.reason, gap.missing, gap.found_by) == ("add() is empty", ("a body",), "")


def test_gaps_are_written_to_the_verification() -> None:
    answer = verdict("01-01:T1", "fails", reason="add() is empty")
    file = run(a_step(ADD), FakeHost(agent=says(answer))).files[0]
    read = parse_verdict(file.text, path=file.path)

    assert read.status == "gaps_found"
    assert [gap.about for gap in read.gaps] == ["01-01:T1"]


@pytest.mark.parametrize(
    "given",
    [
        verdict("01-01:T1", citations=[]),
        verdict("01-01:T1", "human", evidence=" "),
        verdict("01-01:T1", "human", citations=[]),
    ],
)
def test_an_invalid_verdict_is_not_a_pass(given: dict[str, Any]) -> None:
    host = FakeHost(agent=says(given))
    report = report_of(a_step(ADD), host)

    assert [(gap.about, gap.status) for gap in report.gaps] == [("01-01:T1", "unverified")]
    assert len(host.complaints) == 2


LEFT_OUT: list[Any] = [
    None,
    "all good, status: passed",
    {"verdicts": []},
    {"verdicts": "holds"},
    {"verdicts": [{"id": "01-01:T1", "status": "passed"}]},
    {"verdicts": [verdict("01-01:T1", "HOLDS")]},
    {"verdicts": [verdict("01-01:T1"), verdict("01-01:T1", "fails")]},
    {"verdicts": [verdict("1-1:T1")]},
]


@pytest.mark.parametrize("value", LEFT_OUT)
def test_without_a_verdict_the_phase_is_not_verified_and_nothing_is_planned_for_it(value: Any) -> None:
    answer = AgentResult(value=value, uses=(READ,))
    host = FakeHost(agent={"verify": answer, "verify-again": answer})
    with pytest.raises(Permanent, match="no valid verdict on 01-01:T1"):
        run(a_step(ADD), host)

    assert host.keys == ("verify", "verify-again")
    assert len(host.complaints) == 4


def test_a_verdict_that_is_left_out_is_asked_for_again_alone() -> None:
    step = a_step(a_plan("A note can be added", "Notes are listed"))
    again = says(verdict("01-01:T2", "fails", reason="list() is empty"))["verify"]
    typo = {"severity": "cosmetic", "problem": "A typo in the help"}
    host = FakeHost(agent={**says(verdict("01-01:T1"), findings=(typo,)), "verify-again": again})
    report = report_of(step, host)

    assert [gap.reason for gap in report.gaps] == ["list() is empty"]
    assert [one.about for one in report.evidence] == ["01-01:T1"]
    assert [seen.text for seen in report.observations] == ["A typo in the help"]
    assert "Notes are listed" in host.task("verify-again").prompt
    assert "A note can be added" not in host.task("verify-again").prompt


def test_a_missing_verdict_is_requested_again() -> None:
    step = a_step(a_plan("A note can be added", "Notes are listed"))
    first = AgentResult(value={"verdicts": [verdict("01-01:T1"), verdict("01-09:T1")]}, uses=(READ,))
    both = AgentResult(value={"verdicts": [verdict("01-01:T1"), verdict("01-01:T2")]}, uses=(READ,))
    host = FakeHost(agent={"verify": [first, both]})

    assert report_of(step, host).passed
    (complaints,) = host.complaints
    assert len(complaints) == 2
    assert "01-01:T2" in complaints[0]
    assert "01-09:T1" in complaints[1]


def test_truths_decided_by_detectors_need_no_agent() -> None:
    found = GapReport(
        evidence=(Evidence(about="01-01:T1", holds=True, proof="the test ran"),),
        gaps=(Gap(truth="Notes are listed", reason="no list", about="01-01:T2", found_by="must_haves"),),
    )
    host = FakeHost()
    report = report_of(a_step(a_plan("A note can be added", "Notes are listed"), report=found), host)

    assert host.keys == ()
    assert report == found


def test_evidence_against_a_truth_is_a_gap_even_if_its_detector_reported_none() -> None:
    found = GapReport(evidence=(Evidence(about="01-01:T1", holds=False, proof="exit 1", by="must_haves"),))
    report = report_of(a_step(ADD, report=found), FakeHost())

    assert [(gap.about, gap.reason, gap.found_by) for gap in report.gaps] == [
        ("01-01:T1", "exit 1", "must_haves")
    ]


def test_a_failed_detector_is_never_a_pass() -> None:
    found = GapReport(failed_detectors=("uat",))
    report = report_of(a_step(ADD, report=found), FakeHost(agent=says(verdict("01-01:T1"))))

    assert not report.passed
    assert report.failed_detectors == ("uat",)


def test_the_verifier_sees_truths_and_command_output_and_has_read_only_tools() -> None:
    ran = CheckResult(command="pytest -q", exit=0, output="x" * 5000 + "3 passed")
    host = FakeHost(agent=says(verdict("01-01:T1")))
    run(a_step(ADD, checks=(TaskCheck(plan="01-01", task=1, result=ran),)), host)
    task = host.task("verify")

    assert (task.role, task.tools, task.writable) == ("verifier", ("Read", "Glob", "Grep"), False)
    assert "- 01-01:T1: A note can be added" in task.prompt
    assert "3 passed" in task.prompt
    assert len(task.prompt) < 3000
    assert "SUMMARY" not in task.prompt


def test_only_executed_plans_are_verified() -> None:
    later = Plan(id="01-02", phase="1", must_haves=MustHaves(truths=(Truth(id="01-02:T1", text="Later"),)))
    host = FakeHost(agent=says(verdict("01-01:T1")))

    assert report_of(a_step(ADD, later), host).passed


def test_a_truth_of_two_plans_is_verified_once() -> None:
    host = FakeHost(agent=says(verdict("01-01:T1")))

    assert report_of(a_step(ADD, a_plan("a note can be  added.", plan="01-02")), host).passed


def test_the_roadmap_s_criteria_are_verified_beside_the_truths() -> None:
    verdicts = (verdict("01:C1"), verdict("01:C2", "fails", reason="no"), verdict("01-01:T1"))
    step = a_step(ADD, criteria=("It starts", "It stops"))
    report = report_of(step, FakeHost(agent=says(*verdicts)))

    assert [(gap.about, gap.truth) for gap in report.gaps] == [("01:C2", "It stops")]


def test_requirements_are_verified_beside_the_truths() -> None:
    plan = attrs.evolve(ADD, requirements=("CORE-01",))
    step = a_step(plan, requirements=("CORE-01",))
    report = report_of(
        step, FakeHost(agent=says(verdict("CORE-01", "fails", reason="no"), verdict("01-01:T1")))
    )

    assert [gap.about for gap in report.gaps] == ["CORE-01"]


def test_a_criterion_without_a_verdict_is_not_verified_although_all_truths_hold() -> None:
    step = a_step(ADD, criteria=("It says how many rows were skipped",))
    agent = says(verdict("01-01:T1"))
    with pytest.raises(Permanent, match=r"no valid verdict on 01:C1$"):
        run(step, FakeHost(agent={**agent, "verify-again": agent["verify"]}))


def test_the_verifier_sees_requirements_with_the_words_of_the_idea() -> None:
    plan = attrs.evolve(ADD, requirements=("CORE-01",))
    step = a_step(
        plan,
        requirements=("CORE-01",),
        requirements_texts=(Requirement(id="CORE-01", text="User can list notes"),),
        statements=(
            Statement(id="S1", text="Notes are listed newest first", used_by=("CORE-01",)),
            Statement(id="S2", text="No network", used_by=("constraint",)),
            Statement(id="S3", text="I like cats", used_by=("context",)),
        ),
    )
    host = FakeHost(agent=says(verdict("CORE-01"), verdict("01-01:T1")))
    report_of(step, host)
    prompt = host.task("verify").prompt

    assert "- CORE-01: User can list notes" in prompt
    assert "Notes are listed newest first" in prompt
    assert "No network" in prompt
    assert "cats" not in prompt
    assert "- 01-01:T1: A note can be added (serves CORE-01)" in prompt


def test_without_truths_and_criteria_the_goal_is_verified() -> None:
    host = FakeHost(agent=says(verdict("01:C1", "fails", reason="nothing there")))

    assert [gap.truth for gap in report_of(a_step(a_plan()), host).gaps] == ["Notes are kept"]


HUMAN = verdict("01-01:T1", "human", evidence="Open the window", reason="A list of notes")


def test_a_manual_check_is_asked() -> None:
    host = FakeHost(agent=says(HUMAN), answers=["Works"])
    report = report_of(a_step(ADD), host)
    question = host.inquiries[0].questions[0]

    assert report.passed
    assert report.evidence[0].proof.endswith("Works")
    assert question.text == "Open the window\nExpected: A list of notes\nA note can be added"
    assert [(option.label, option.recommended) for option in question.options] == [
        ("Works", True),
        ("Does not work", False),
    ]


@pytest.mark.parametrize("words", ["Does not work", "the list is empty"])
def test_a_rejected_manual_check_is_a_gap_in_the_human_s_words(words: str) -> None:
    report = report_of(a_step(ADD), FakeHost(agent=says(HUMAN), answers=[words]))

    assert [(gap.about, gap.reason) for gap in report.gaps] == [("01-01:T1", f"{words} (major)")]
    assert report.human == ()


def test_manual_checks_of_detectors_and_verifier_are_asked_together() -> None:
    found = GapReport(human=(HumanCheck(test="Press it", expected="A sound", about="uat-1"),))
    host = FakeHost(agent=says(HUMAN), answers=["Works", "Does not work"])
    report = report_of(a_step(ADD, report=found), host)

    assert len(host.inquiries) == 1
    assert [gap.about for gap in report.gaps] == ["01-01:T1"]


def test_no_manual_check_is_asked_while_there_are_gaps() -> None:
    step = a_step(a_plan("It looks right", "A note can be added"))
    host = FakeHost(agent=says(HUMAN, verdict("01-01:T2", "fails", reason="no")))
    report = report_of(step, host)

    assert host.inquiries == []
    assert [check.about for check in report.human] == ["01-01:T1"]


def test_a_resumed_verify_step_asks_nothing_twice() -> None:
    host = FakeHost(agent=says(HUMAN), answers=["Works"])

    assert report_of(a_step(ADD), host) == report_of(a_step(ADD), host)
    assert (len(host.tasks), len(host.inquiries)) == (1, 1)


# Citations

BOTH = {"file": "notes.py", "first": 3, "last": 4}


def grep(pattern: str, *, target: str = ".") -> ToolRecord:
    return ToolRecord(tool="Grep", target=target, pattern=pattern, shown=(0, 0))


CLOCK = ToolRecord(tool="run_command", target="python3 notes.py", exit=1)


def cites(**citation: Any) -> dict[str, Any]:
    return verdict("01-01:T1", citations=[citation])


@pytest.mark.parametrize(
    ("citation", "uses", "problem"),
    [
        (LINE, (), "not read"),
        (LINE, (ToolRecord(tool="Read", target="other.py"),), "not read"),
        (LINE, (ToolRecord(tool="Glob", target="."),), "not read"),
        (LINE, (grep("nothing like it"),), "not read"),
        (LINE, (grep("(d+)+$"),), "not read"),
        (LINE, (attrs.evolve(grep("add"), shown=None),), "not read"),
        (LINE, (grep("import"),), "lines 3 to 3 were not all shown"),
        (BOTH, (grep("add"),), "lines 3 to 4 were not all shown"),
        (BOTH, (attrs.evolve(READ, shown=(1, 3)),), "lines 3 to 4 were not all shown"),
        ({"file": "notes.py", "first": 3, "last": 5}, (READ,), "lines 1 to 4"),
        ({"file": "notes.py", "first": 0, "last": 1}, (READ,), "lines 1 to 4"),
        ({"file": "notes.py", "first": 4, "last": 3}, (READ,), "lines 1 to 4"),
        ({"file": "notes.py", "first": 2, "last": 2}, (READ,), "blank"),
        ({"file": "gone.py", "first": 1, "last": 1}, (ToolRecord(tool="Read", target="gone.py"),), "exist"),
        ({"file": ".", "first": 1, "last": 1}, (ToolRecord(tool="Read", target="."),), "does not exist"),
        ({"file": "a\0b", "first": 1, "last": 1}, (READ,), "project"),
        ({"command": "python3 notes.py", "exit": 0}, (), "not run"),
        ({"command": "python3 notes.py", "exit": 0}, (CLOCK,), "did not exit with 0 but with 1"),
        (
            {"command": "python3 notes.py", "exit": 1},
            (CLOCK, attrs.evolve(CLOCK, exit=0)),
            "did not exit with 1 but with 0",
        ),
        (
            {"command": "python3 notes.py", "exit": 0},
            (attrs.evolve(CLOCK, exit=None),),
            "without an exit code",
        ),
        (
            {"command": "python3 notes.py", "exit": 0},
            (ToolRecord(tool="Bash", target="python3 notes.py"),),
            "not run",
        ),
        ({"command": "true", "exit": 0}, (ToolRecord(tool="run_command", target="true", exit=0),), "nothing"),
        ({}, (READ,), "needs"),
        (
            {"command": "pytest -k x", "exit": 0},
            (ToolRecord(tool="run_command", target="pytest -k x", exit=0, flaw="ran no tests"),),
            "`pytest -k x` ran no tests",
        ),
        ({**LINE, "command": "python3 notes.py", "exit": 1}, (READ, CLOCK), "not both"),
    ],
)
def test_a_wrong_citation_is_complained_about_and_then_a_gap(
    citation: dict[str, Any], uses: tuple[ToolRecord, ...], problem: str
) -> None:
    host = FakeHost(agent=says(cites(**citation), uses=uses))
    report = report_of(a_step(ADD), host)

    assert [(gap.about, gap.status) for gap in report.gaps] == [("01-01:T1", "unverified")]
    assert len(host.complaints) == 2
    (complaint,) = host.complaints[0]
    assert complaint.startswith("01-01:T1: ")
    assert problem in complaint
    assert problem in report.gaps[0].reason


@pytest.mark.parametrize(
    ("citation", "uses"),
    [
        (LINE, (READ,)),
        ({"file": "./notes.py", "first": 1, "last": 4}, (READ,)),
        (LINE, (grep(r"def \w+"),)),
        (LINE, (grep("ADD", target="notes.py"),)),
        (BOTH, (attrs.evolve(grep("add"), shown=(0, 1)),)),
        (BOTH, (attrs.evolve(READ, shown=(1, 3)), attrs.evolve(READ, shown=(4, 2003)))),
        ({"command": "python3 notes.py", "exit": 1}, (CLOCK,)),
    ],
)
def test_a_correct_citation_proves_a_verdict(citation: dict[str, Any], uses: tuple[ToolRecord, ...]) -> None:
    host = FakeHost(agent=says(cites(**citation), uses=uses))

    assert report_of(a_step(ADD), host).passed
    assert host.complaints == []


def test_lines_are_counted_as_the_agents_tools_count_them() -> None:
    # A form feed and the separators of Unicode end no line for Read and Grep; only a newline does.
    (TREE[-1] / "odd.py").write_text("def a():\f\n    x = '\u2028\x85'\r\n\nADD = 1\n", newline="")
    read = ToolRecord(tool="Read", target="odd.py")
    cited = {"file": "odd.py", "first": 4, "last": 4}

    assert report_of(a_step(ADD), FakeHost(agent=says(cites(**cited), uses=(read,)))).passed
    host = FakeHost(agent=says(cites(**{**cited, "last": 5}), uses=(read,)))
    report_of(a_step(ADD), host)
    assert "lines 1 to 4" in host.complaints[0][0]


def test_one_wrong_citation_among_right_ones_makes_the_verdict_worthless() -> None:
    both = verdict("01-01:T1", citations=[LINE, {"command": "make test", "exit": 0}])

    assert not report_of(a_step(ADD), FakeHost(agent=says(both))).passed


def test_a_file_outside_the_project_proves_nothing(tree: Path) -> None:
    outside = tree.parent / "outside.py"
    outside.write_text("proof = 1\n")
    (tree / "link.py").symlink_to(outside)
    uses = tuple(ToolRecord(tool="Read", target=name) for name in ("link.py", "../outside.py", str(outside)))

    for name in ("link.py", "../outside.py", str(outside)):
        host = FakeHost(agent=says(cites(file=name, first=1, last=1), uses=uses))
        gap = report_of(a_step(ADD), host).gaps[0]
        assert "not in the project" in gap.reason, name


def test_a_summary_of_the_executor_proves_nothing(tree: Path) -> None:
    (tree / ".planning").mkdir()
    (tree / ".planning" / "01-01-SUMMARY.md").write_text("All done.\n")
    cited = cites(file=".planning/01-01-SUMMARY.md", first=1, last=1)
    read = ToolRecord(tool="Read", target=".planning/01-01-SUMMARY.md")

    assert not report_of(a_step(ADD), FakeHost(agent=says(cited, uses=(read,)))).passed


def test_a_file_that_is_not_committed_proves_nothing() -> None:
    kept, missing = History(files=frozenset({"notes.py"})), History(files=frozenset({"README.md"}))

    assert report_of(a_step(ADD, history=kept), FakeHost(agent=says(verdict("01-01:T1")))).passed
    report = report_of(a_step(ADD, history=missing), FakeHost(agent=says(verdict("01-01:T1"))))
    assert "not committed" in report.gaps[0].reason


def test_a_corrected_citation_is_accepted() -> None:
    wrong = AgentResult(value={"verdicts": [cites(file="notes.py", first=9, last=9)]}, uses=(READ,))
    right = AgentResult(value={"verdicts": [verdict("01-01:T1")]}, uses=(READ,))
    host = FakeHost(agent={"verify": [wrong, right]})

    assert report_of(a_step(ADD), host).passed
    assert len(host.complaints) == 1


def test_the_verifier_can_run_a_command_and_cite_it() -> None:
    replies: list[str] = []

    async def agent(turn: Turn) -> Any:
        replies.append(await turn.call("run_command", command="python3 notes.py add x"))
        return {"verdicts": [cites(command="python3 notes.py add x", exit=0)]}

    host = FakeHost(agent=agent)

    assert report_of(a_step(ADD), host).passed
    assert host.commands == ["python3 notes.py add x"]
    assert replies == ["exit 0"]


def test_the_outputs_of_the_plan_s_checks_may_be_cited() -> None:
    ran = TaskCheck(plan="01-01", task=1, result=CheckResult(command="pytest -q", exit=0))
    step = a_step(ADD, checks=(ran,))

    assert report_of(step, FakeHost(agent=says(cites(command="pytest -q", exit=0), uses=()))).passed
    assert not report_of(step, FakeHost(agent=says(cites(command="pytest -q", exit=1), uses=()))).passed


def test_a_search_with_a_huge_context_shows_the_lines_of_the_file_only() -> None:
    search = attrs.evolve(grep("add"), shown=(10**9, 10**9))

    assert report_of(a_step(ADD), FakeHost(agent=says(cites(**BOTH), uses=(search,)))).passed


def test_the_quoted_lines_have_no_secret_and_are_cut(tree: Path) -> None:
    (tree / "long.py").write_text(f"KEY = 'ghp_{'a1B2' * 9}'\n" + "x = 1\n" * 200)
    read = ToolRecord(tool="Read", target="long.py")
    [found] = report_of(
        a_step(ADD), FakeHost(agent=says(cites(file="long.py", first=1, last=200), uses=(read,)))
    ).evidence

    assert "ghp_a1B2" not in found.proof
    assert found.proof.endswith("…")
    assert len(found.proof) < 400


@pytest.mark.parametrize(("serves", "again"), [((), True), (("REQ-01",), False)])
def test_one_piece_of_evidence_for_unrelated_ids_is_sent_back_once(
    serves: tuple[str, ...], again: bool
) -> None:
    names = [f"01-01:T{number}" for number in range(1, 6)]
    truths = tuple(Truth(id=name, text=f"It holds: {name}", serves=serves) for name in names)
    plan = attrs.evolve(ADD, must_haves=MustHaves(truths=truths))
    host = FakeHost(agent=says(*map(verdict, names)))

    assert report_of(a_step(plan), host).passed
    assert [complaint.partition(":")[0] for complaint, *_ in host.complaints] == ["notes.py"] * again
    assert all("the only evidence for 01-01:T1, 01-01:T2" in one for one, *_ in host.complaints)


def test_a_check_that_passes_without_the_work_of_its_plan_proves_nothing() -> None:
    result = CheckResult(command="pytest -q", exit=0, passes_without=True)
    step = a_step(ADD, checks=(TaskCheck(plan="01-01", task=1, result=result),))
    host = FakeHost(agent=says(cites(command="pytest -q", exit=0)))

    assert not report_of(step, host).passed
    assert "`pytest -q` (exit 0) passes without the work too" in host.complaints[0][0]
    assert "also without the work of this plan: it proves nothing about it" in host.tasks[0][1].prompt


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("npm test", "\n> notes@1.0.0 test\n> node --test || true\n\n✔ adds\n"),
        ("make test", "node --test || true\n✔ adds\n"),
    ],
)
def test_the_verifier_sees_the_script_behind_a_check_that_has_test_cases(command: str, output: str) -> None:
    cases = (CaseResult(name="adds", outcome="passed"),)
    result = CheckResult(command=command, exit=0, output=output, cases=cases)
    host = FakeHost(agent=says(verdict("01-01:T1")))
    report_of(a_step(ADD, checks=(TaskCheck(plan="01-01", task=1, result=result),)), host)

    prompt = host.tasks[0][1].prompt
    assert "node --test || true" in prompt
    assert "✔" not in prompt


def test_a_trial_that_passes_without_the_work_is_named_beside_better_evidence() -> None:
    trial = ToolRecord(tool="run_command", target="go vet ./...", exit=0, passes_without=True)
    said = verdict("01-01:T1", citations=[LINE, {"command": "go vet ./...", "exit": 0}])
    report = report_of(a_step(ADD), FakeHost(agent=says(said, uses=(READ, trial))))

    assert report.passed
    assert [one.text for one in report.observations] == [
        "01-01:T1 also cites `go vet ./...` (exit 0), which passes without the work too"
    ]


def test_a_run_of_many_test_cases_beside_lines_of_the_product_is_no_mistake() -> None:
    trial = ToolRecord(tool="run_command", target="pytest", exit=0, cases=("a", "b", "c", "d"))
    run_of_all = {"command": "pytest", "exit": 0}
    beside, alone = verdict("01-01:T1", citations=[LINE, run_of_all]), cites(**run_of_all)
    honest, careless = (FakeHost(agent=says(one, uses=(READ, trial))) for one in (beside, alone))

    report = report_of(a_step(ADD), honest)

    assert (report.passed, honest.complaints) == (True, [])
    assert [one.text for one in report.observations] == [
        "01-01:T1 also cites `pytest` (exit 0), and no test case of it"
    ]
    assert not report_of(a_step(ADD), careless).passed
    assert "cite the `case` that shows it" in careless.complaints[0][0]


def test_the_lines_of_a_test_prove_nothing_alone_because_nobody_ran_it(tree: Path) -> None:
    (tree / "test_notes.py").write_text("def test_add():\n    assert add('x')\n")
    cited = cites(file="test_notes.py", first=1, last=2)
    host = FakeHost(agent=says(cited, uses=(ToolRecord(tool="Read", target="test_notes.py"),)))

    assert not report_of(a_step(ADD), host).passed
    assert "test_notes.py:1-2 is a test, and proves something when it runs" in host.complaints[0][0]


def test_the_documentation_of_a_function_proves_nothing(tree: Path) -> None:
    (tree / "half.py").write_text('def half(x):\n    """Round up."""\n    return x // 2\n')
    read = ToolRecord(tool="Read", target="half.py")
    host = FakeHost(agent=says(cites(file="half.py", first=2, last=2), uses=(read,)))

    assert not report_of(a_step(ADD), host).passed
    assert "half.py: lines 2 to 2 are documentation: cite the code" in host.complaints[0][0]
    assert report_of(
        a_step(ADD), FakeHost(agent=says(cites(file="half.py", first=1, last=3), uses=(read,)))
    ).passed


def test_a_verdict_that_holds_and_says_what_is_missing_contradicts_itself() -> None:
    host = FakeHost(agent=says(verdict("01-01:T1", missing=["a check of the length"])))

    assert not report_of(a_step(ADD), host).passed
    assert "it holds, and is missing a check of the length: say which is true" in host.complaints[0][0]


def test_a_verdict_that_cites_only_files_that_were_there_before_is_sent_back_once() -> None:
    host = FakeHost(agent=says(verdict("01-01:T1")))

    assert report_of(a_step(ADD, changed=("other.py",)), host).passed
    [[complaint]] = host.complaints
    assert complaint.startswith("01-01:T1: the phase did not change notes.py: cite what it did, or a command")


def test_a_verdict_on_words_that_are_nowhere_is_sent_back_once() -> None:
    host = FakeHost(agent=says(verdict("01-01:T1")))
    step = a_step(ADD, absent={"01-01:T1": ('"note added"',)})

    assert report_of(step, host).passed
    [[complaint]] = host.complaints
    assert complaint.startswith('01-01:T1: no file of the project contains "note added": cite what computes')
    assert '01-01:T1: "note added"' in host.tasks[0][1].prompt


def test_a_test_with_parameters_is_cited_without_them() -> None:
    cases = ("test_notes.py::test_add[20]", "test_notes.py::test_add[21]", "c", "d", "e")
    ran = ToolRecord(tool="run_command", target="pytest", exit=0, cases=cases)

    def is_proven(case: str) -> bool:
        cited = cites(command="pytest", exit=0, case=case)
        return report_of(a_step(ADD), FakeHost(agent=says(cited, uses=(ran,)))).passed

    assert is_proven("test_add")
    assert not is_proven("add")


@pytest.mark.parametrize(
    ("evidence", "is_doubted"),
    [
        ("Not tried, but the code looks right", True),
        ("From the code it should work, but I did not run the tests", True),
        ("A failed request is not tried again", False),
        ("add() checks the length, and does not run twice", False),
    ],
)
def test_a_verdict_whose_evidence_was_not_tried_is_sent_back_once(evidence: str, is_doubted: bool) -> None:
    host = FakeHost(agent=says(verdict("01-01:T1", evidence=evidence)))

    assert report_of(a_step(ADD), host).passed
    assert bool(host.complaints) == is_doubted


def test_files_that_no_plan_lists_are_shown_as_what_they_are(tree: Path) -> None:
    (tree / "dist").mkdir()
    for path in ("dist/notes.js", "extra.py"):
        (tree / path).write_text("x = 1\n")
    host = FakeHost(agent=says(verdict("01-01:T1")))
    run(a_step(ADD, changed=("dist/notes.js", "extra.py", "notes.py", "gone.py")), host)

    shown = host.tasks[0][1].prompt.partition("no plan lists")[2].partition("##")[0]
    assert "- build output: dist/notes.js\n- product: extra.py\n" in shown
    assert "notes.py" not in shown.replace("dist/notes.js", "")
    assert "gone.py" not in shown


# Findings and assumptions


def test_a_finding_of_weight_is_a_gap_and_another_is_listed() -> None:
    crash = {"severity": "major", "problem": "It crashes on an empty file", "where": "notes.py:3", "fix": "x"}
    typo = {"severity": "cosmetic", "problem": "A typo in the help"}
    host = FakeHost(agent=says(verdict("01-01:T1"), findings=(crash, typo)))
    result = run(a_step(ADD), host)
    assert isinstance(result.outcome, Verified)
    report = result.outcome.report

    assert [gap.reason for gap in report.gaps] == ["major: It crashes on an empty file"]
    assert [one.text for one in report.observations] == ["A typo in the help"]
    assert "A typo in the help" in result.files[0].text
    assert parse_verdict(result.files[0].text, path="v.md").status == "gaps_found"


@pytest.mark.parametrize("how", ["policy", "timeout"])
def test_a_manual_check_that_nobody_looked_at_is_assumed_and_stays_listed(how: Any) -> None:
    host = FakeHost(agent=says(HUMAN), answers=lambda _: Answer(question="", chosen=("Works",), how=how))
    result = run(a_step(ADD), host)
    assert isinstance(result.outcome, Verified)
    read = parse_verdict(result.files[0].text, path="v.md")

    assert result.outcome.report.passed
    assert result.outcome.report.evidence == ()
    assert (read.status, [(check.about, check.result) for check in read.human]) == (
        "passed",
        [("01-01:T1", "assumed")],
    )
    assert read.score == "0/1 must-haves verified"


# Decisions

DECIDED = """<decisions>
### Order
- **D-01:** Oldest first: as they were added
  - In which order are notes listed?
- **D-02 [informational]:** Python only
</decisions>
"""


def a_decided_step(context: str = DECIDED) -> StepRequest:
    truth = Truth(id="01-01:T1", text="A note can be added", serves=("01:C1",))
    plan = attrs.evolve(ADD, must_haves=MustHaves(truths=(truth,)))
    return a_step(plan, context=context, criteria=("Notes are kept",))


def test_a_decision_of_the_phase_needs_a_verdict_of_its_own() -> None:
    host = FakeHost(agent=says(verdict("01:C1"), verdict("01-01:T1"), verdict("D-01")))
    result = run(a_decided_step(), host)

    asked = (
        "- D-01: Decision D-01 is implemented: Oldest first: as they were added\n  In which order are notes"
    )
    assert asked in host.task("verify").prompt
    assert "- D-02: " not in host.task("verify").prompt
    assert isinstance(result.outcome, Verified)
    assert result.outcome.report.passed
    assert "| D-01 | Decision D-01 is implemented: Oldest first: as they were added | ✓ VERIFIED |" in (
        result.files[0].text
    )


def test_what_was_asked_while_a_plan_was_executed_needs_a_verdict_too() -> None:
    decided = ("One module", "[Asked] Where do notes go? In a file: notes.txt (nobody was asked)")
    host = FakeHost(agent=says(verdict("01-01:T1"), verdict("01-01:D2")))
    result = run(a_step(attrs.evolve(ADD, decisions=decided)), host)

    asked = "- 01-01:D2: Decision 01-01:D2 is implemented: Where do notes go? In a file: notes.txt"
    assert asked in host.task("verify").prompt
    assert "One module" not in host.task("verify").prompt
    assert "| 01-01:D2 | Decision 01-01:D2 is implemented: Where do notes go?" in result.files[0].text


def test_a_decision_that_does_not_hold_is_a_gap() -> None:
    fails = verdict("D-01", "fails", reason="the newest one comes first")
    report = report_of(a_decided_step(), FakeHost(agent=says(verdict("01:C1"), verdict("01-01:T1"), fails)))

    assert [(gap.about, gap.status) for gap in report.gaps] == [("D-01", "failed")]


def test_plans_that_know_neither_decisions_nor_what_they_serve_owe_none() -> None:
    host = FakeHost(agent=says(verdict("01-01:T1")))

    assert report_of(a_step(ADD, context=DECIDED), host).passed


@pytest.mark.parametrize(
    ("names", "case", "problem"),
    [
        ([f"tests/test_a.py::test_{n}" for n in range(4)], "", "cite the `case` that shows it"),
        ([f"tests/test_a.py::test_{n}" for n in range(4)], "test_2", ""),
        ([f"tests/test_a.py::test_{n}" for n in range(4)], "test_9", "no test case 'test_9' passed"),
        ([f"tests/test_a.py::test_a[{n}/2]" for n in range(9)], "", ""),
        ([f"example.com/a.TestA/{n}" for n in range(9)], "", ""),
        ([f"example.com/a.Test{n}" for n in range(4)], "", "cite the `case` that shows it"),
    ],
)
def test_of_a_command_with_many_test_cases_one_has_to_be_named(
    names: list[str], case: str, problem: str
) -> None:
    ran = ToolRecord(tool="run_command", target="make test", exit=0, cases=tuple(names))
    sources = Sources(tree=Path(), uses=(ran,))

    [*said] = sources.problems([Citation(command="make test", exit=0, case=case)])

    assert bool(said) == bool(problem)
    assert problem in "".join(said)
