"""A scenario depends only on idea and seed, and the product that it builds works."""

from __future__ import annotations

import asyncio
import keyword
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gsd_core import GapReport, PhaseView
from gsd_core.planning.check import Issue, check_plans, check_serves
from gsd_core.planning.idea import split_statements
from gsd_plugins import must_haves
from gsd_plugins.native.answers import PlansAnswer, RoadmapAnswer, parse_answer
from gsd_plugins.native.init import validate_roadmap
from gsd_plugins.native.plan import plans_from
from gsd_plugins.rehearsal.scenario import Scenario, is_accepted
from tests.rehearsal.task_host import IDEAS, plan_ids

NAMES = [f"idea{number}" for number in range(len(IDEAS))]


def build(scenario: Scenario, tree: Path, answer: str = "", upto: int | None = None) -> None:
    for plan in plan_ids(scenario)[:upto]:
        for task in scenario.tasks(plan, answer):
            for edit in task.edits:
                file = tree / edit.path
                file.parent.mkdir(exist_ok=True)
                text = edit.applied(file.read_text("utf-8") if file.exists() else None)
                file.write_text(text, "utf-8")


def run(command: str, tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=tree, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize("phases", [1, 2, 3])
@pytest.mark.parametrize("idea", IDEAS, ids=NAMES)
def test_the_product_of_any_idea_passes_its_own_tests(idea: str, phases: int, tmp_path: Path) -> None:
    build(Scenario(idea, seed=phases, phases=phases), tmp_path)

    tested = run("python3 -W error -m unittest", tmp_path)

    assert tested.returncode == 0, tested.stderr
    assert "## Usage" in (tmp_path / "README.md").read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_every_check_passes_right_after_its_task(seed: int, tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], seed, phases=3)
    failed: list[tuple[str, str]] = []

    for count, plan in enumerate(plan_ids(scenario), 1):
        build(scenario, tmp_path, upto=count)
        failed += [(plan, task.name) for task in scenario.tasks(plan) if run(task.check, tmp_path).returncode]

    assert failed == []


def test_every_check_fails_before_its_task(tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], phases=3)
    tasks = [task for plan in plan_ids(scenario) for task in scenario.tasks(plan)]

    passing = [task.name for task in tasks if run(task.check, tmp_path).returncode == 0]

    assert passing == []


def test_no_files_are_left_that_are_neither_planned_nor_ignored(tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], phases=3)
    build(scenario, tmp_path)
    planned = {path for plan in plan_ids(scenario) for task in scenario.tasks(plan) for path in task.files}

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    run("python3 -m unittest", tmp_path)
    untracked = run("git ls-files --others --exclude-standard", tmp_path).stdout.splitlines()

    assert planned == set(untracked)


def everything(scenario: Scenario) -> Any:
    plans = plan_ids(scenario)
    numbers = [str(phase) for phase in range(1, scenario.phase_count + 1)]
    return [
        scenario.roadmap(),
        [scenario.plans(number) for number in numbers],
        [scenario.tasks(plan) for plan in plans],
        [scenario.summary(plan) for plan in plans],
        scenario.verdicts([f"{plan}:T1" for plan in plans], "1"),
        scenario.user_question(),
    ]


@pytest.mark.parametrize("idea", IDEAS, ids=NAMES)
def test_the_same_idea_and_seed_give_the_same_answers(idea: str) -> None:
    assert everything(Scenario(idea, 5)) == everything(Scenario(idea, 5))


def test_the_seed_makes_a_difference() -> None:
    made = [repr(everything(Scenario(IDEAS[0], seed))) for seed in range(6)]

    assert len(set(made)) > 1
    assert {Scenario(IDEAS[0], seed).phase_count for seed in range(6)} == {2, 3}


@pytest.mark.parametrize("idea", IDEAS, ids=NAMES)
def test_the_package_shadows_no_module_or_keyword(idea: str) -> None:
    package = Scenario(idea).product.package

    assert package.isidentifier()
    assert package.isascii()
    assert not keyword.iskeyword(package)
    assert package not in {*sys.stdlib_module_names, "tests"}


def test_the_names_come_from_the_idea() -> None:
    product = Scenario("# Flat ledger: who owes whom\n\nRent and heating.").product

    assert (product.title, product.package) == ("Flat ledger: who owes whom", "flat_ledger")


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_each_requirement_is_in_one_phase_and_in_its_plans(phases: int) -> None:
    scenario = Scenario(IDEAS[0], phases=phases)
    roadmap = scenario.roadmap()
    known = [requirement["id"] for requirement in roadmap["requirements"]]

    mapped = [name for phase in roadmap["phases"] for name in phase["requirements"]]
    planned = [
        name
        for number in range(1, phases + 1)
        for plan in scenario.plans(str(number))["plans"]
        for name in plan["requirements"]
    ]

    assert known == mapped
    assert sorted(known) == sorted(planned)


def test_one_phase_is_one_plan_of_two_tasks() -> None:
    scenario = Scenario(IDEAS[0], phases=1)

    assert len(scenario.roadmap()["phases"]) == 1
    assert [len(plan["tasks"]) for plan in scenario.plans("1")["plans"]] == [2]


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_the_gap_is_missing_content_of_an_artifact_and_a_gap_plan_adds_it(
    phases: int, tmp_path: Path
) -> None:
    scenario = Scenario(IDEAS[0], phases=phases)
    planned = scenario.plans("1")["plans"]
    wanted = [a["contains"] for plan in planned for a in plan["artifacts"] if a["path"] == "README.md"]

    build(scenario, tmp_path, upto=len(planned))
    before = (tmp_path / "README.md").read_text("utf-8")
    build(scenario, tmp_path, upto=len(planned) + 1)
    after = (tmp_path / "README.md").read_text("utf-8")

    assert wanted == ["## Usage"]
    assert "## Usage" not in before
    assert after.count("## Usage") == 1


def test_without_a_gap_all_artifacts_have_what_was_promised(tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], phases=3, gap=False)
    build(scenario, tmp_path)
    plans = [plan for number in "123" for plan in scenario.plans(number)["plans"]]
    texts = [((tmp_path / a["path"]).read_text("utf-8"), a) for plan in plans for a in plan["artifacts"]]

    assert [a for text, a in texts if a.get("contains", "") not in text] == []
    assert [a for text, a in texts if len(text.splitlines()) < a.get("min_lines", 0)] == []
    assert [a for text, a in texts if not all(f"def {name}(" in text for name in a.get("exports", ()))] == []


@pytest.mark.parametrize("gap", [True, False])
@pytest.mark.parametrize("idea", IDEAS, ids=NAMES)
def test_the_gap_detectors_find_the_gap_and_nothing_else(idea: str, gap: bool, tmp_path: Path) -> None:
    scenario = Scenario(idea, phases=2, gap=gap)
    first = len(scenario.plans("1")["plans"])

    build(scenario, tmp_path, upto=first)
    before = found_by_must_haves(scenario, "1", tmp_path)
    build(scenario, tmp_path)
    after = [*found_by_must_haves(scenario, "1", tmp_path), *found_by_must_haves(scenario, "2", tmp_path)]

    assert before == ([("README.md", "it does not contain '## Usage'")] if gap else [])
    assert after == []


def found_by_must_haves(scenario: Scenario, number: str, tree: Path) -> list[tuple[str, str]]:
    view = PhaseView(number=number, name="x", project=tree, directory=".planning/phases/x")
    answers = parse_answer(PlansAnswer, scenario.plans(number)).plans
    plans = tuple(evolve(plan, summary="x") for plan in plans_from(answers, view, gap_closure=False))
    found = asyncio.run(must_haves.must_haves_hold(evolve(view, plans=plans)))
    return [(gap.about, gap.reason) for gap in (found.gaps if isinstance(found, GapReport) else found or ())]


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_the_plans_pass_the_checks_of_the_planning_step(phases: int) -> None:
    scenario = Scenario(IDEAS[0], phases=phases)
    roadmap = parse_answer(RoadmapAnswer, scenario.roadmap())
    issues: list[Issue] = []

    for number, phase in enumerate(roadmap.phases, 1):
        view = PhaseView(
            number=str(number),
            name=phase.name,
            project=Path(),
            directory=".planning/phases/x",
            requirements=phase.requirements,
            criteria=phase.criteria,
        )
        plans = plans_from(
            parse_answer(PlansAnswer, scenario.plans(str(number))).plans, view, gap_closure=False
        )
        issues += [*check_plans(view, plans, phase.requirements), *check_serves(view, plans)]

    assert issues == []


@pytest.mark.slow
@pytest.mark.parametrize("phases", [1, 2, 3])
@pytest.mark.parametrize("idea", IDEAS, ids=NAMES)
def test_the_roadmap_of_any_idea_uses_each_of_its_statements(idea: str, phases: int) -> None:
    roadmap = parse_answer(RoadmapAnswer, Scenario(idea, phases=phases).roadmap())

    assert validate_roadmap(roadmap, 8, split_statements(idea)) == ()


def test_the_roadmap_uses_the_statements_of_the_prompt_if_that_has_another_idea() -> None:
    roadmap = parse_answer(
        RoadmapAnswer, Scenario("# One").roadmap("[S9] x\n\nThe statements of the idea are S1 to S9.\n")
    )
    used = {name for one in roadmap.requirements for name in one.statements} | {*roadmap.context}

    assert used == {f"S{number}" for number in range(1, 10)}


def test_the_plans_serve_what_a_person_added_to_the_phase_and_not_what_was_removed() -> None:
    prompt = "- 01:C1: x\n- 01:C3: y\n- CORE-01: a\n- NEW-01: b\n"
    plans = Scenario(IDEAS[0], phases=2).plans("1", about=prompt)["plans"]

    served = {name for plan in plans for truth in plan["truths"] for name in truth["serves"]}
    assert served == {"01:C1", "01:C3", "CORE-01", "NEW-01"}
    assert all(truth["serves"] for plan in plans for truth in plan["truths"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "ending"),
    [("Period", "."), ("Smile (Recommended)", " :)"), (">>", ">>"), ('"\\\n☃' + "x" * 99, '"\\ ☃xxxxxxxx')],
)
def test_the_product_prints_the_chosen_ending(answer: str, ending: str, tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0], phases=2)
    build(scenario, tmp_path, answer)
    package = scenario.product.package

    run(f"python3 -m {package} greet 'french: Ada'", tmp_path)
    listed = run(f"python3 -X utf8 -m {package} list", tmp_path)

    assert f"Bonjour, Ada{ending}\n" == listed.stdout


def test_only_the_first_option_is_recommended() -> None:
    options = Scenario(IDEAS[0]).user_question().options

    assert [option.recommended for option in options] == [True, False, False]
    assert options[0].label.endswith("(Recommended)")


def test_a_gap_plan_promises_the_truths_of_its_gaps() -> None:
    gaps = "- gap README.md\n  truth: README.md says how it is used\n  reason: '## Usage' is not in it\n"

    plan = Scenario(IDEAS[0]).plans("1", 1, gaps)["plans"][0]

    assert [truth["text"] for truth in plan["truths"]] == ["README.md says how it is used"]
    assert plan["files_modified"] == ["README.md"]


def test_a_missing_license_is_planned_and_written() -> None:
    scenario = Scenario(IDEAS[0])
    plan = scenario.plans("1", 1, "  truth: The project has a license\n  reason: no LICENSE in the root")

    tasks = scenario.tasks("01-03", about=plan["plans"][0]["tasks"][0]["action"])

    assert [task.files for task in tasks] == [("LICENSE",)]


def test_an_inserted_phase_is_planned_with_its_requirements(tmp_path: Path) -> None:
    scenario = Scenario(IDEAS[0])
    plans = scenario.plans("2.1", about="Requirements: AUTH-01: User can log in")["plans"]

    tasks = scenario.tasks("02.1-01")
    for edit in tasks[0].edits:
        (tmp_path / edit.path).parent.mkdir(exist_ok=True)
        (tmp_path / edit.path).write_text(edit.applied(None))

    assert plans[0]["requirements"] == ["AUTH-01"]
    assert run(tasks[0].check, tmp_path).returncode == 0


def test_each_must_have_of_the_phase_is_judged_once() -> None:
    prompt = (
        "- CORE-01: r\n- 01:C1: c\n- 01-01:T1: a (serves DOC-01)\n- 01-02:T1: b\n- 02-01:T1: other\n"
        "- 01-01:T1: nothing is cited"
    )

    asked = Scenario(IDEAS[0]).asked_in(prompt, "1")

    assert asked == ("CORE-01", "01:C1", "01-01:T1", "01-02:T1")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Task 1 is committed (abc1234). Continue with task 2.", True),
        ("Task 1 is already committed. That was the last task: answer now.", True),
        ("Task 1 is not committed: `python3 -m unittest` exits 1: 3 done", False),
        ("The plan has no task 3; its tasks are 1 to 2.", False),
        ("Task 1 (Mark entries as done) comes first.", False),
        ("Stop here: task 1 failed 3 times: not done", False),
    ],
)
def test_a_reply_shows_whether_a_task_is_committed(reply: str, expected: bool) -> None:
    assert is_accepted(reply) is expected


def test_an_existing_gitignore_keeps_its_lines() -> None:
    ignored = Scenario(IDEAS[0]).tasks("01-01")[0].edits[0]

    once = ignored.applied("node_modules/\n")

    assert once == "node_modules/\n__pycache__/\n"
    assert ignored.applied(once) == once


def test_an_unsupported_number_of_phases_is_rejected() -> None:
    with pytest.raises(ValueError, match="phases"):
        Scenario("", phases=4)


EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["greeter", "habits", "ledger"])
def test_the_examples_have_their_own_name(name: str) -> None:
    assert Scenario(example(name)).product.package == name


def test_the_script_does_what_the_example_greeter_says_and_says_so_for_every_other_idea(
    tmp_path: Path,
) -> None:
    asked = {name: Scenario(example(name), gap=False) for name in ("greeter", "habits")}
    for name, scenario in asked.items():
        (tmp_path / name).mkdir()
        build(scenario, tmp_path / name)
    readmes = {name: (tmp_path / name / "README.md").read_text("utf-8") for name in asked}

    assert {name: scenario.product.as_asked for name, scenario in asked.items()} == {
        "greeter": True,
        "habits": False,
    }
    assert "rehearsal" not in readmes["greeter"] + asked["greeter"].roadmap()["summary"]
    assert "not the one that IDEA.md asks for" in readmes["habits"]
    assert "not the one that the idea asks for" in asked["habits"].roadmap()["summary"]


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_each_statement_of_the_example_greeter_becomes_what_it_says(phases: int) -> None:
    statements = {one.id: one.text for one in split_statements(example("greeter"))}
    roadmap = parse_answer(RoadmapAnswer, Scenario(example("greeter"), phases=phases).roadmap())
    known = [*roadmap.requirements, *roadmap.later]
    became = {one.id: [statements[name] for name in one.statements] for one in known}

    assert validate_roadmap(roadmap, 8, split_statements(example("greeter"))) == ()
    assert "period" in became["CORE-02"][1]
    assert "total" in became["REPORT-01"][0]
    assert "README" in became["DOC-01"][0]
    assert "web page" in statements[roadmap.out_of_scope[0].statements[0]]


@pytest.mark.parametrize("plan", ["01-data-layer", "04a"])
def test_a_plan_that_the_script_did_not_write_has_tasks_whatever_its_name_is(plan: str) -> None:
    assert Scenario(IDEAS[0]).tasks(plan)
