"""Scenario files: what is refused and how it is said, and which rule applies when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import evolve

from docs import generate
from gsd_core import ConfigError
from gsd_plugins.rehearsal.active_rules import ActiveRules, moment_of
from gsd_plugins.rehearsal.effects import (
    EFFECTS,
    ApiError,
    Cost,
    Disconnect,
    Hang,
    Lie,
    Moment,
    Rule,
    StayingGap,
    When,
)
from gsd_plugins.rehearsal.scenario import Scenario
from gsd_plugins.rehearsal.scenario_file import ScenarioFile, read_scenario
from tests.cli.bench import call
from tests.docs.pages import blocks

PAGE = "docs/how-to/rehearse-with-a-scenario.md"
MOMENT = moment_of("2.1/execute/02.1-03", "executor", 2, 4)
SMALLEST = {
    "error": "status = 529",
    "usage limit": "resets_in = '2s'",
    "slow": "duration = 1",
    "question": "text = 'Which?'\noptions = ['a', 'b']",
    "architecture": "text = 'Another store'",
    "tool": "input = { command = 'git push' }",
    "checkpoint": "text = 'Log in'",
}


def read(tmp_path: Path, text: str) -> ScenarioFile:
    path = tmp_path / "scenario.toml"
    path.write_text(text, "utf-8")
    return read_scenario(path)


def test_an_empty_file_is_a_scenario_without_problems(tmp_path: Path) -> None:
    assert read(tmp_path, "") == ScenarioFile(phases=1, question=False, gap=False, rules=())


@pytest.mark.parametrize("do", EFFECTS)
def test_each_effect_needs_only_its_required_keys(do: str, tmp_path: Path) -> None:
    [rule] = read(tmp_path, f"[[rule]]\ndo = '{do}'\n{SMALLEST.get(do, '')}").rules

    assert type(rule.effect) is EFFECTS[do]
    assert rule.times == EFFECTS[do].times


QUESTION = "[[rule]]\ndo = 'question'\ntext = ''\noptions = "
MISTAKES = {
    "[scenario": "not valid TOML",
    "[scenaro]": "the file: unknown key 'scenaro'; did you mean 'scenario'?",
    "[scenario]\nphase = 2": "[scenario]: unknown key 'phase'; did you mean 'phases'?",
    "[scenario]\nphases = 4": "[scenario]: phases: expected 1, 2 or 3, got 4",
    "[scenario]\nphases = '2'": "[scenario]: phases: expected an integer, got '2'",
    "[scenario]\ngap = 'yes'": "[scenario]: gap: expected true or false, got 'yes'",
    "scenario = 3": "[scenario]: expected a table, got 3",
    "[rule]\ndo = 'hang'": "write each rule under [[rule]]",
    "rule = [1]": "[[rule]] 1: expected a table, got 1",
    "[[rule]]\ntimes = 1": "[[rule]] 1: do: missing; allowed: error, disconnect",
    "[[rule]]\ndo = 'error2'": "[[rule]] 1: do: unknown 'error2'; did you mean 'error'?",
    "[[rule]]\ndo = ['hang']": "[[rule]] 1: do: unknown ['hang']",
    "[[rule]]\ndo = 'error'": "[[rule]] 1: status is missing: HTTP status",
    "[[rule]]\ndo = 'error'\nstatus = 200": "[[rule]] 1: status: expected a status from 400 to 599, got 200",
    "[[rule]]\ndo = 'hang'\nfor = '1s'": "[[rule]] 1: unknown key 'for'; allowed: duration",
    "[[rule]]\ndo = 'hang'\nduration = 'soon'": "[[rule]] 1: duration: expected seconds or a duration",
    "[[rule]]\ndo = 'hang'\ntimes = -1": "[[rule]] 1: times: expected at least 0, got -1",
    "[[rule]]\ndo = 'hang'\ntimes = true": "[[rule]] 1: times: expected an integer, got True",
    "[[rule]]\ndo = 'hang'\nwhen = 'plan'": "[[rule]] 1: when: expected a table, got 'plan'",
    "[[rule]]\ndo = 'hang'\nwhen = { stage = 'plan' }": "[[rule]] 1: when: unknown key 'stage'",
    "[[rule]]\ndo = 'hang'\nwhen = { step = 'excute' }": "unknown 'excute'; did you mean 'execute'?",
    "[[rule]]\ndo = 'hang'\nwhen = { role = 'planer' }": "unknown 'planer'; did you mean 'planner'?",
    "[[rule]]\ndo = 'hang'\nwhen = { call = 'x' }": "[[rule]] 1: when: call: expected an integer, got 'x'",
    "[[rule]]\ndo = 'lie'\nhow = 'badly'": "how: expected one of 'unchanged', 'unreported', got 'badly'",
    "[[rule]]\ndo = 'cost'\ndollars = -1": "dollars: expected a number of at least 0, got -1",
    "[[rule]]\ndo = 'cost'\ndollars = 1\ninput_tokens = 5": "dollars and tokens cannot be combined",
    f"{QUESTION}['a']": "options: expected 2 to 4 options, got 1",
    f"{QUESTION}['a', ['b']]": "options[1]: expected a string, got ['b']",
    f"{QUESTION}['a', 'b']\ntimes = 0": "times: 'question' needs a number",
    "[[rule]]\ndo = 'checkpoint'\ntext = ''\nkind = 'decision'": "options: a decision needs them",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_refused_with_its_table_and_its_key(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape(MISTAKES[text])) as refused:
        read(tmp_path, text)

    assert "scenario.toml" in str(refused.value)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, "[scenario]\nphases = 9\n[[rule]]\ndo = 'x'\n[[rule]]\ndo = 'error'\nstats = 1")

    assert len(str(refused.value).splitlines()) == 5


NO_TOML = {"not text": b"\xff", "too large": b"#" * 1_000_001, "too deep": b"a = " + b"[" * 5000}


@pytest.mark.parametrize("raw", NO_TOML.values(), ids=NO_TOML)
def test_a_file_that_is_no_toml_is_refused(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_bytes(raw)

    with pytest.raises(ConfigError, match=r"scenario\.toml"):
        read_scenario(path)


@pytest.mark.parametrize("name", ["absent.toml", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read '/"):
        read_scenario(tmp_path / name)


WHENS: list[tuple[When, bool]] = [
    (When(), True),
    (When(step="execute", phase="02.1", plan="02.1-03", round=0, role="executor", task=4, call=2), True),
    (When(step="plan"), False),
    (When(phase="2"), False),
    (When(plan="02.1-01"), False),
    (When(round=1), False),
    (When(role="planner"), False),
    (When(task=0), False),
    (When(call=1), False),
]


@pytest.mark.parametrize(("when", "expected"), WHENS)
def test_a_rule_applies_where_every_key_matches(when: When, expected: bool) -> None:
    assert when.matches(MOMENT) is expected


def rule(number: int, effect: ApiError | Disconnect | Lie | StayingGap | Hang, **more: int | When) -> Rule:
    given = {"when": When(), "times": 1, **more}
    return Rule(number=number, effect=effect, **given)  # type: ignore[arg-type] # both keys have their type


def moment(call: int) -> Moment:
    return evolve(MOMENT, call=call)


def test_a_rule_applies_as_often_as_it_says_and_then_the_next_one() -> None:
    first, then = ApiError(status=529), ApiError(status=500)
    rules = ActiveRules(rules=[rule(1, first, times=2), rule(2, then, times=0), rule(3, Disconnect())])

    assert [rules.take(ApiError, MOMENT) for _ in range(4)] == [first, first, then, then]
    assert [str(unused) for unused in rules.unused()] == ["rule 3 (disconnect)"]
    assert rules.take(Cost, MOMENT) is None


def test_an_impossible_effect_is_passed_over_and_stays_unused() -> None:
    gaps = [StayingGap(about="A"), StayingGap(about="B"), StayingGap()]
    rules = ActiveRules(rules=[rule(n, gap) for n, gap in enumerate(gaps, 1)])

    taken = [*rules.take_each(StayingGap, MOMENT, possible=lambda gap: gap.about != "A")]

    assert taken == gaps[1:]
    assert [unused.number for unused in rules.unused()] == [1]


def test_another_process_continues_with_the_rules_that_are_left(tmp_path: Path) -> None:
    file = tmp_path / "new" / "rules.json"
    listed = [rule(1, Lie(), times=2), rule(2, Hang())]
    before = ActiveRules(rules=listed, file=file)
    before.begin_call("1/plan")
    before.take(Lie, MOMENT)
    after = ActiveRules(rules=listed, file=file)
    edited = ActiveRules(rules=[rule(1, Lie(says="it works"), times=2)], file=file)

    assert after.begin_call("1/plan") == 2
    assert [after.take(Lie, moment(call)) is not None for call in (1, 2)] == [True, False]
    assert [edited.take(Lie, moment(call)) is not None for call in (1, 2, 3)] == [True, True, False]


def test_the_scenario_of_the_page_is_valid_and_the_reference_has_every_effect(tmp_path: Path) -> None:
    [shown] = [block.text for block in blocks("toml") if block.page == PAGE]
    reference = generate.pages()["scenario-files.md"]

    assert [type(rule.effect) for rule in read(tmp_path, shown).rules] == [ApiError, Lie]
    assert [name for name in EFFECTS if f'\n## do = "{name}"\n' not in reference] == []


def test_the_command_line_says_what_is_wrong_in_the_file_and_where_examples_are(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[[rule]]\ndo = "error2"\n')

    result = call("run", "-C", tmp_path / "new", "--agent", "rehearsal", "--script", file)

    assert result.exit_code == 2
    assert "[[rule]] 1: do: unknown 'error2'; did you mean 'error'?" in result.stderr
    assert "examples/rehearsal" in result.stderr
    # Without the plugin, --script would be an unknown option.
    assert "no:rehearsal" not in result.stderr


@pytest.mark.parametrize(
    ("gap", "number"),
    [
        ("reason: It fails (NOTES.md has no note 3)\nreason: It fails (NOTES.md has no note 2)", 3),
        ("reason: the verdict is not proven: b.py was not read", 1),
        ("- 01-02: Add note 1\nreason: the verdict is not proven: b.py was not read", 2),
    ],
)
def test_the_plan_for_a_gap_changes_something_and_its_executor_knows_what(gap: str, number: int) -> None:
    scenario = Scenario("# Ledger\n\nShared costs.", phases=1, gap=False)
    [plan] = scenario.plans("1", 1, f"  truth: It works\n{gap}")["plans"]
    [planned] = plan["tasks"]
    [task] = scenario.tasks("01-03", about=f"1. {planned['name']}\n{planned['action']}")

    assert planned["name"] == task.name == f"Add note {number}"
    assert task.files == ("NOTES.md",)
    assert task.edits[0].applied("- Note 0: old.\n").count("\n") == 2
