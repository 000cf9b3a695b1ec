"""Every built-in plugin keeps the contract of every hook that it implements."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from attrs import define, evolve, field

from gsd_core import (
    AgentHost,
    AgentResult,
    AgentTask,
    Allow,
    Deny,
    Event,
    FileWrite,
    GapReport,
    Inquiry,
    Notice,
    Option,
    PhaseView,
    Plan,
    ProjectInfo,
    Question,
    RunInfo,
    Spend,
    StepRequest,
    StepResult,
    Stop,
    TickPhase,
    ToolUse,
    bind_settings,
    implements,
)
from gsd_core.hookspecs import gsd_run_agent
from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from gsd_core.plugins.loading import build_manager
from gsd_core.testing import conformance as kit
from gsd_core.testing.fakes import FakeHost
from gsd_plugins import claude, rehearsal
from gsd_plugins.answers import AnswersSettings
from gsd_plugins.apprise import AppriseSettings
from gsd_plugins.budget import BudgetSettings
from gsd_plugins.rehearsal import RehearsalSettings
from gsd_plugins.rehearsal.api import MessagesApi
from gsd_plugins.yolo import YoloSettings
from tests.claude.workbench import RecordingHost, says

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
OPTIONS = (Option(label="PostgreSQL", recommended=True), Option(label="SQLite"))
QUESTION = Question(id="q-1", text="Which database?", options=OPTIONS)
INQUIRY = Inquiry(questions=(QUESTION,))
ESCALATION = Inquiry(kind="escalation", questions=(QUESTION,))
Check: TypeAlias = Callable[[Any, Path], object]


def step(tree: Path) -> StepRequest:
    return StepRequest(
        id="1/complete", run="r-1", kind="complete", phase=phase(tree), project=tree, tree=tree, now=NOW
    )


def phase(tree: Path) -> PhaseView:
    plans = (Plan(id="01-01", phase="1", summary="S.md"),)
    folder = ".planning/phases/01-entries"
    return PhaseView(number="1", name="Entries", project=tree, plans=plans, directory=folder)


def run_info(tree: Path) -> RunInfo:
    return RunInfo(id="r-1", project=tree, idea="# Ledger\n\nShared costs of a flat.", agent="rehearsal")


def task(tree: Path) -> AgentTask:
    return AgentTask(
        step="init",
        role="roadmapper",
        run="r-1",
        prompt="Make a roadmap.",
        tree=tree,
        schema={"type": "object"},
    )


def executes_code_steps(plugin: Any, tree: Path) -> None:
    other = evolve(step(tree), id="survey", kind="survey", phase=None)
    result = kit.check_execute_step(plugin, step(tree), FakeHost(), declines=other)

    assert result is not None
    assert isinstance(result.changes[-1], TickPhase)


def answers_what_the_file_says(plugin: Any, tree: Path) -> None:
    path = tree / "answers.toml"
    path.write_text('"Which database?" = "SQLite"\n', encoding="utf-8")
    unknown = Inquiry(questions=(Question(id="q-2", text="Which colour?"),))
    with bind_settings({AnswersSettings: AnswersSettings(answers=str(path))}):
        [answer] = kit.check_answer(plugin, INQUIRY, declines=unknown)

    assert answer.words == "SQLite"


def answers_what_is_recommended(plugin: Any, tree: Path) -> None:
    kit.check_answer(plugin, INQUIRY, declines=INQUIRY)
    with bind_settings({YoloSettings: YoloSettings(yes=True)}):
        [answer] = kit.check_answer(plugin, INQUIRY, declines=ESCALATION)

    assert answer.words == "PostgreSQL"


def proposes_config_for_yes_only(plugin: Any, tree: Path) -> None:
    assert kit.check_write_config(plugin, ProjectInfo(root=tree)) == ()
    assert {value.key for value in kit.check_write_config(plugin, ProjectInfo(root=tree, yes=True))} > {
        "mode"
    }


def stops_at_the_limit(plugin: Any, tree: Path) -> None:
    spend = Spend(run="r-1", step="init", spent=Decimal(5), reserved=None, calls=3)
    assert kit.check_check_budget(plugin, spend) is None
    with bind_settings({BudgetSettings: BudgetSettings(max_usd=Decimal(5))}):
        assert isinstance(kit.check_check_budget(plugin, spend), Stop)


def permits_the_project_only(plugin: Any, tree: Path) -> None:
    use = ToolUse(step="s", name="Write", input={"file_path": "a.py"}, asked_by="agent", tree=tree)
    assert kit.check_permit_tool(plugin, use) == Allow()
    assert isinstance(kit.check_permit_tool(plugin, evolve(use, input={"file_path": ".git/config"})), Deny)


def finds_what_is_missing(plugin: Any, tree: Path) -> None:
    found = kit.check_find_gaps(plugin, phase(tree))

    assert isinstance(found, GapReport) or list(found) == []


def wraps_what_succeeds(plugin: Any, tree: Path) -> None:
    done = StepResult(subject="docs: x", files=(FileWrite(path="x", text="x"),))

    async def once(request: StepRequest, /) -> StepResult:
        return done

    assert kit.check_wrap_step(plugin, step(tree), once) == done


def works_in_the_project(plugin: Any, tree: Path) -> None:
    assert kit.check_workspace(plugin, step(tree)) == tree


def tells_of_bad_addresses(plugin: Any, tree: Path) -> None:
    with bind_settings({AppriseSettings: AppriseSettings(urls=("nonsense://",))}):
        [finding] = kit.check_doctor(plugin)

    assert not finding.ok


def knows_of_credentials(plugin: Any, tree: Path) -> None:
    [finding] = kit.check_doctor(plugin)

    assert finding.ok


def has_settings(plugin: Any, tree: Path) -> None:
    assert kit.check_settings(plugin)


def is_told(plugin: Any, tree: Path) -> None:
    kit.check_notify(plugin, Notice(key="k", type="question", title="Which database?"))


def watches(plugin: Any, tree: Path) -> None:
    kit.check_on_event(plugin, Event(seq=1, name="run.started", at=NOW, run="r-1"))


def lives_with_a_run(plugin: Any, tree: Path) -> None:
    kit.check_lifespan(plugin, run_info(tree))


def declines_without_a_terminal(plugin: Any, tree: Path) -> None:
    assert list(kit.check_answer(plugin, INQUIRY, declines=INQUIRY)) == []


CHECKS: dict[tuple[str, str], Check] = {
    ("claude", "doctor"): knows_of_credentials,
    ("claude", "settings"): has_settings,
    ("rehearsal", "lifespan"): lives_with_a_run,
    ("rehearsal", "settings"): has_settings,
    ("native", "execute_step"): executes_code_steps,
    ("terminal", "answer"): declines_without_a_terminal,
    ("terminal", "lifespan"): lives_with_a_run,
    ("terminal", "notify"): is_told,
    ("terminal", "on_event"): watches,
    ("terminal", "settings"): has_settings,
    ("must_haves", "find_gaps"): finds_what_is_missing,
    ("uat", "find_gaps"): finds_what_is_missing,
    ("answers", "answer"): answers_what_the_file_says,
    ("answers", "settings"): has_settings,
    ("retry", "settings"): has_settings,
    ("retry", "wrap_step"): wraps_what_succeeds,
    ("apprise", "doctor"): tells_of_bad_addresses,
    ("apprise", "notify"): is_told,
    ("apprise", "settings"): has_settings,
    ("permissions", "permit_tool"): permits_the_project_only,
    ("budget", "check_budget"): stops_at_the_limit,
    ("budget", "settings"): has_settings,
    ("inplace", "workspace"): works_in_the_project,
    ("yolo", "answer"): answers_what_is_recommended,
    ("yolo", "settings"): has_settings,
    ("yolo", "write_config"): proposes_config_for_yes_only,
}
WITH_A_PROCESS = {("claude", "run_agent"), ("rehearsal", "run_agent")}


def implemented() -> set[tuple[str, str]]:
    manager = build_manager()
    for name in DEFAULT_PLUGINS:
        manager.register(importlib.import_module(name), name=name.rpartition(".")[2])
    plugins = [(name, plugin) for name, plugin in manager.list_name_plugin() if plugin]
    return {
        (name, caller.name.removeprefix("gsd_"))
        for name, plugin in plugins
        for caller in manager.get_hookcallers(plugin) or ()
    }


def test_every_built_in_has_a_check_for_every_hook_that_it_implements() -> None:
    assert set(CHECKS) | WITH_A_PROCESS == implemented()


@pytest.mark.parametrize(("plugin", "hook"), sorted(CHECKS))
def test_it_keeps_the_contract(
    plugin: str, hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    CHECKS[plugin, hook](importlib.import_module(f"gsd_plugins.{plugin}"), tmp_path)


@define
class Rehearsed:
    """The agent ``rehearsal``, each call within the lifespan of a run of its own."""

    tree: Path
    calls: int = field(default=0)

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        self.calls += 1
        run = evolve(run_info(self.tree), id=f"r-{self.calls}")
        [lifespan] = rehearsal.lifespan(run)
        async with lifespan:
            return await rehearsal.run_agent(evolve(task, run=run.id), host)


@pytest.mark.slow
def test_the_rehearsal_keeps_the_contract_of_an_agent(tmp_path: Path) -> None:
    calm = RehearsalSettings(phases=1, overloaded=False)
    with bind_settings({RehearsalSettings: calm}):
        result = kit.check_run_agent(Rehearsed(tmp_path), task(tmp_path), RecordingHost())

    assert result is not None
    assert result.value == calm.scenario(run_info(tmp_path)).roadmap()


@pytest.mark.slow
def test_claude_keeps_the_contract_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesApi(lambda request: says("a roadmap")) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
        text_only = evolve(task(tmp_path), schema=None)
        result = kit.check_run_agent(claude, text_only, RecordingHost())

    assert result is not None
    assert result.text == "a roadmap"
