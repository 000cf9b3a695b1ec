"""The small built-in plugins honor the contracts of their hooks."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from gsd_core import (
    Artifact,
    Deny,
    GapReport,
    Inquiry,
    KeyLink,
    MustHaves,
    Notice,
    Option,
    PhaseView,
    Plan,
    ProjectInfo,
    Question,
    Spend,
    StepRequest,
    StepResult,
    Stop,
    ToolUse,
    bind_settings,
)
from gsd_core.testing import conformance, make_manager
from gsd_plugins import answers, apprise, budget, history, inplace, must_haves, permissions, retry, uat, yolo

STEP = StepRequest(
    id="1/plan",
    run="r-1",
    kind="plan",
    project=Path(),
    tree=Path(),
    now=datetime(2026, 1, 31, tzinfo=UTC),
)
ASKED = Inquiry(
    questions=(Question(id="q-1", text="Which?", options=(Option(label="a"), Option(label="b"))),)
)
UNKNOWN = Inquiry(questions=(Question(id="q-2", text="What else?"),))


def test_all_implement_existing_hooks() -> None:
    modules = (answers, apprise, budget, history, inplace, must_haves, permissions, retry, uat, yolo)

    assert len(make_manager(*modules).get_plugins()) == len(modules)


@pytest.mark.parametrize("plugin", [answers, apprise, budget, retry, yolo])
def test_settings_have_defaults_and_flags(plugin: object) -> None:
    assert len(conformance.check_settings(plugin)) == 1


@pytest.mark.parametrize("plugin", [must_haves, uat])
def test_detectors_find_the_same_gaps_twice(plugin: object, tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("import b from './b'\n")
    promised = MustHaves(
        artifacts=(Artifact(path="gone.py"),),
        key_links=(KeyLink(source="a.js", target="b.js", pattern="b+"),),
    )
    plan = Plan(id="01-01", phase="1", must_haves=promised, summary="s")
    phase = PhaseView(number="1", name="A", project=tmp_path, plans=(plan,), directory="phases/01-a")
    (tmp_path / "phases/01-a").mkdir(parents=True)
    (tmp_path / "phases/01-a/01-UAT.md").write_text("## Tests\n### 1. A\nresult: issue\nreported: no\n")

    report = conformance.check_find_gaps(plugin, phase)

    assert isinstance(report, GapReport)
    assert [gap.about for gap in report.gaps] == ["gone.py" if plugin is must_haves else "01-UAT:1"]


def test_answers_answers_and_declines(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('{"Which?": "b"}')
    settings = answers.AnswersSettings(answers=str(tmp_path / "answers.json"))
    with bind_settings({answers.AnswersSettings: settings}):
        (given,) = conformance.check_answer(answers, ASKED, declines=UNKNOWN)

    assert given.chosen == ("b",)


def test_yolo_answers_and_declines() -> None:
    with bind_settings({yolo.YoloSettings: yolo.YoloSettings(yes=True)}):
        (given,) = conformance.check_answer(yolo, ASKED, declines=UNKNOWN)

    assert given.chosen == ("a",)


def test_yolo_writes_config() -> None:
    values = conformance.check_write_config(yolo, ProjectInfo(root=Path(), yes=True))

    assert "workflow.auto_advance" in {value.key for value in values}


def test_permissions_decides_about_tools() -> None:
    use = ToolUse(step="s", name="Bash", input={"command": "git push"}, asked_by="agent", tree=Path())

    assert isinstance(conformance.check_permit_tool(permissions, use), Deny)


def test_budget_stops_at_the_limit() -> None:
    spend = Spend(run="r", step="s", spent=Decimal(5), reserved=None, calls=1)
    with bind_settings({budget.BudgetSettings: budget.BudgetSettings(max_usd=Decimal(5))}):
        assert isinstance(conformance.check_check_budget(budget, spend), Stop)


def test_retry_wraps() -> None:
    async def attempt(step: StepRequest) -> StepResult:
        return StepResult(subject=step.id)

    assert conformance.check_wrap_step(retry, STEP, attempt).subject == "1/plan"


def test_inplace_returns_the_project() -> None:
    assert conformance.check_workspace(inplace, STEP) == Path()


def test_apprise_is_silent_without_a_target() -> None:
    conformance.check_notify(apprise, Notice(key="k", type="error", title="t"))
    assert conformance.check_doctor(apprise) == ()
