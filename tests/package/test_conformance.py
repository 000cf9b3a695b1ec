"""Every built-in plugin passes the conformance check of every hook that it implements."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest

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
    Outage,
    PhaseView,
    Plan,
    Planning,
    Postpone,
    ProjectInfo,
    Question,
    RunInfo,
    SourceFile,
    Spend,
    StepRequest,
    StepResult,
    StepSituation,
    Stop,
    TickPhase,
    ToolUse,
    bind_settings,
    implements,
)
from gsd_core.hookspecs import gsd_run_agent
from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from gsd_core.plugins.loading import build_manager
from gsd_core.run.step_types import collect_step_types
from gsd_core.testing import FakeAgentHost, a_notice, a_spend, make_hooks
from gsd_core.testing import a_process as kit_process
from gsd_core.testing import conformance as kit
from gsd_core.testing.fakes import FakeHost
from gsd_plugins import claude, rehearsal
from gsd_plugins import native as native_plugin
from gsd_plugins.answers import AnswersSettings
from gsd_plugins.apprise import AppriseSettings
from gsd_plugins.budget import BudgetSettings
from gsd_plugins.rehearsal import RehearsalSettings
from gsd_plugins.rehearsal.api import MessagesApi
from gsd_plugins.yolo import YoloSettings
from tests.claude.harness import says
from tests.run.harness import git, repository
from tests.sandbox.box import require_sandbox

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
    folder = ".planning/phases/01-greetings"
    return PhaseView(number="1", name="Greetings", project=tree, plans=plans, directory=folder)


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


def check_native_steps_come_at_the_end(plugin: Any, tree: Path) -> None:
    found = list(native_plugin.steps())
    assert [(one.kind, one.before) for one in found] == [("audit", "end"), ("close", "end")]
    nothing = StepSituation(project=Path("nowhere"), planning=Planning())
    assert not any(one.due(nothing) for one in found)


def check_native_executes_code_steps(plugin: Any, tree: Path) -> None:
    other = attrs.evolve(step(tree), id="no-such-kind", kind="no-such-kind", phase=None)
    result = kit.check_execute_step(plugin, step(tree), FakeHost(), declines=other)

    assert result is not None
    assert isinstance(result.changes[-1], TickPhase)


def check_answers_come_from_the_file(plugin: Any, tree: Path) -> None:
    path = tree / "answers.toml"
    path.write_text('"Which database?" = "SQLite"\n', encoding="utf-8")
    unknown = Inquiry(questions=(Question(id="q-2", text="Which color?"),))
    with bind_settings({AnswersSettings: AnswersSettings(answers=str(path))}):
        [answer] = kit.check_answer(plugin, INQUIRY, declines=unknown)

    assert answer.words == "SQLite"


def check_recommended_options_are_chosen(plugin: Any, tree: Path) -> None:
    kit.check_answer(plugin, INQUIRY, declines=INQUIRY)
    with bind_settings({YoloSettings: YoloSettings(yes=True)}):
        [answer] = kit.check_answer(plugin, INQUIRY, declines=ESCALATION)

    assert answer.words == "PostgreSQL"


def check_config_is_proposed_only_with_yes(plugin: Any, tree: Path) -> None:
    assert kit.check_write_config(plugin, ProjectInfo(root=tree)) == ()
    assert {value.key for value in kit.check_write_config(plugin, ProjectInfo(root=tree, yes=True))} > {
        "mode"
    }


def check_budget_stops_at_the_limit(plugin: Any, tree: Path) -> None:
    spend = Spend(run="r-1", step="init", spent=Decimal(5), reserved=None, calls=3)
    assert kit.check_check_budget(plugin, spend) is None
    with bind_settings({BudgetSettings: BudgetSettings(max_usd=Decimal(5))}):
        assert isinstance(kit.check_check_budget(plugin, spend), Stop)


def check_a_call_waits_for_its_turn(plugin: Any, tree: Path) -> None:
    # The state folder is that of all tests, so the agent is only this one's.
    spend = a_spend(agents=(str(tree),))
    assert kit.check_check_budget(plugin, spend) is None

    async def refused(request: StepRequest, /) -> StepResult:
        error = Outage("429", datetime.now(UTC) + timedelta(minutes=1))
        error.plugin = str(tree)
        raise error

    with pytest.raises(AssertionError, match="429"):
        kit.check_wrap_step(plugin, step(tree), refused)
    assert isinstance(kit.check_check_budget(plugin, attrs.evolve(spend, step="other")), Postpone)


def check_a_run_outside_of_a_session_is_not_limited(plugin: Any, tree: Path) -> None:
    assert kit.check_check_budget(plugin, a_spend(working=1, wanted=9)) is None


def check_writes_are_permitted_in_the_project_only(plugin: Any, tree: Path) -> None:
    use = ToolUse(step="s", name="Write", input={"file_path": "a.py"}, asked_by="agent", tree=tree)
    assert kit.check_permit_tool(plugin, use) == Allow()
    assert isinstance(
        kit.check_permit_tool(plugin, attrs.evolve(use, input={"file_path": ".git/config"})), Deny
    )


def check_detector(plugin: Any, tree: Path) -> None:
    found = kit.check_find_gaps(plugin, phase(tree))

    assert isinstance(found, GapReport) or list(found) == []


def check_faults_are_found(plugin: Any, tree: Path) -> None:
    text = "def total(prices):\n    return sum(prices[:20])\n"

    found = kit.check_find_mutants(plugin, SourceFile(root=tree, path="cart.py", text=text))

    assert [mutant.name for mutant in found] == ["total", "20"]


def check_a_success_passes_through(plugin: Any, tree: Path) -> None:
    done = StepResult(subject="docs: x", files=(FileWrite(path="x", text="x"),))

    async def once(request: StepRequest, /) -> StepResult:
        return done

    assert kit.check_wrap_step(plugin, step(tree), once) == done


def check_workspace_is_the_project(plugin: Any, tree: Path) -> None:
    assert kit.check_workspace(plugin, step(tree)) == tree


def check_plans_get_a_work_tree(plugin: Any, tree: Path) -> None:
    execute = attrs.evolve(step(tree), id="1/execute/01-01", kind="execute")
    assert kit.check_workspace(plugin, execute) is None  # it is in no repository
    git(repository(tree), "commit", "-q", "--allow-empty", "-m", "Begin")

    found = kit.check_workspace(plugin, execute, declines=attrs.evolve(execute, kind="verify"))

    assert found is not None
    assert (found / ".git").is_file()
    assert not found.is_relative_to(tree)


def check_work_trees_are_judged(plugin: Any, tree: Path) -> None:
    project = repository(tree)
    with chdir(project):
        [before] = kit.check_doctor(plugin)
        (project / ".gitignore").write_text(".planning/\n")
        [after] = kit.check_doctor(plugin)

    assert (before.ok, after.ok) == (True, False)
    assert "git ignores .planning" in after.message


def check_bad_addresses_are_reported(plugin: Any, tree: Path) -> None:
    with bind_settings({AppriseSettings: AppriseSettings(urls=("nonsense://",))}):
        [finding] = kit.check_doctor(plugin)

    assert not finding.ok


def check_credentials_are_found(plugin: Any, tree: Path) -> None:
    findings = kit.check_doctor(plugin)

    assert findings
    assert all(finding.ok for finding in findings)


def check_settings(plugin: Any, tree: Path) -> None:
    assert kit.check_settings(plugin)


def check_notify(plugin: Any, tree: Path) -> None:
    kit.check_notify(plugin, Notice(key="k", type="question", title="Which database?"))


def check_on_event(plugin: Any, tree: Path) -> None:
    kit.check_on_event(plugin, Event(seq=1, name="run.started", at=NOW, run="r-1"))


def check_lifespan(plugin: Any, tree: Path) -> None:
    kit.check_lifespan(plugin, run_info(tree))


def check_no_answer_without_a_terminal(plugin: Any, tree: Path) -> None:
    assert list(kit.check_answer(plugin, INQUIRY, declines=INQUIRY)) == []


def check_processes_are_confined(plugin: Any, tree: Path) -> None:
    require_sandbox()
    project = tree / "project"
    project.mkdir()
    kit.check_sandbox(plugin, kit_process(project), starts=True)


def check_a_sandbox_of_another_system_declines(plugin: Any, tree: Path) -> None:
    assert sys.platform == "darwin" or kit.check_sandbox(plugin, kit_process(tree)) is None


def check_kinds_are_valid(plugin: Any, tree: Path) -> None:
    found = collect_step_types(make_hooks(native=plugin)).types
    assert {one.kind for _, one in found} <= set(plugin.STEPS)
    assert all(one.title for _, one in found)


def check_acceptance_tests_are_shown(plugin: object, tree: Path) -> None:
    assert kit.check_panels(plugin, tree) == ()
    folder = tree / ".planning" / "phases" / "01-core"
    folder.mkdir(parents=True)
    (folder / "01-UAT.md").write_text("## Tests\n\n### 1. It greets\nresult: pass\n\n### 2. It bows\n")
    (folder / "02-UAT.md").write_bytes(b"\xff")

    [panel] = kit.check_panels(plugin, tree)

    assert panel.figures == {"Passed": "1 of 3"}
    assert panel.rows[:2] == (("01", "It greets", "pass"), ("01", "It bows", "pending"))
    assert "cannot be read: not UTF-8" in panel.rows[2]


CHECKS: dict[tuple[str, str], Check] = {
    ("bubblewrap", "sandbox"): check_processes_are_confined,
    ("seatbelt", "sandbox"): check_a_sandbox_of_another_system_declines,
    ("claude", "doctor"): check_credentials_are_found,
    ("claude", "settings"): check_settings,
    ("rehearsal", "lifespan"): check_lifespan,
    ("rehearsal", "settings"): check_settings,
    ("native", "execute_step"): check_native_executes_code_steps,
    ("native", "steps"): check_kinds_are_valid,
    ("commands", "doctor"): lambda plugin, tree: kit.check_doctor(plugin),
    ("rehearsal", "doctor"): lambda plugin, tree: kit.check_doctor(plugin),
    ("terminal", "answer"): check_no_answer_without_a_terminal,
    ("terminal", "lifespan"): check_lifespan,
    ("terminal", "notify"): check_notify,
    ("terminal", "on_event"): check_on_event,
    ("terminal", "settings"): check_settings,
    ("must_haves", "find_gaps"): check_detector,
    ("must_haves", "find_mutants"): check_faults_are_found,
    ("history", "find_gaps"): check_detector,
    ("mcp", "cli_commands"): lambda plugin, tree: kit.check_cli_commands(plugin),
    ("sessions", "check_budget"): check_a_run_outside_of_a_session_is_not_limited,
    ("sessions", "cli_commands"): lambda plugin, tree: kit.check_cli_commands(plugin),
    ("sessions", "on_event"): check_on_event,
    ("sessions", "session_host"): lambda plugin, tree: kit.check_session_host(plugin),
    ("sessions", "settings"): check_settings,
    ("processes", "dispatch"): lambda plugin, tree: kit.check_dispatch(plugin),
    ("uat", "find_gaps"): check_detector,
    ("uat", "panels"): check_acceptance_tests_are_shown,
    ("answers", "answer"): check_answers_come_from_the_file,
    ("answers", "settings"): check_settings,
    ("retry", "settings"): check_settings,
    ("retry", "wrap_step"): check_a_success_passes_through,
    ("apprise", "doctor"): check_bad_addresses_are_reported,
    ("apprise", "notify"): check_notify,
    ("apprise", "settings"): check_settings,
    ("permissions", "permit_tool"): check_writes_are_permitted_in_the_project_only,
    ("permissions", "settings"): check_settings,
    ("budget", "check_budget"): check_budget_stops_at_the_limit,
    ("budget", "settings"): check_settings,
    ("governor", "check_budget"): check_a_call_waits_for_its_turn,
    ("governor", "settings"): check_settings,
    ("governor", "wrap_step"): check_a_success_passes_through,
    ("inplace", "workspace"): check_workspace_is_the_project,
    ("worktree", "workspace"): check_plans_get_a_work_tree,
    ("worktree", "lifespan"): check_lifespan,
    ("worktree", "doctor"): check_work_trees_are_judged,
    ("web", "cli_commands"): lambda plugin, tree: kit.check_cli_commands(plugin),
    ("web", "lifespan"): check_lifespan,
    ("web", "links"): lambda plugin, tree: kit.check_links(plugin, a_notice()),
    ("web", "settings"): check_settings,
    ("yolo", "answer"): check_recommended_options_are_chosen,
    ("yolo", "settings"): check_settings,
    ("yolo", "write_config"): check_config_is_proposed_only_with_yes,
}
NEEDS_A_PROCESS = {
    *(("claude", "run_agent"), ("rehearsal", "run_agent")),
    # See tests/commands.
    *(("commands", "execute_step"), ("commands", "steps")),
    # See tests/sandbox.
    *(("bubblewrap", "sandbox"), ("seatbelt", "sandbox")),
}


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


def test_every_hook_of_every_built_in_plugin_is_checked() -> None:
    assert set(CHECKS) | NEEDS_A_PROCESS == implemented()


@pytest.mark.parametrize(("plugin", "hook"), sorted(CHECKS))
def test_a_built_in_plugin_passes_the_check_of_its_hook(
    plugin: str, hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    CHECKS[plugin, hook](importlib.import_module(f"gsd_plugins.{plugin}"), tmp_path)


@attrs.define
class RehearsalInARun:
    """The agent ``rehearsal``, with a separate run and lifespan for each call."""

    tree: Path
    calls: int = 0

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        self.calls += 1
        run = attrs.evolve(run_info(self.tree), id=f"r-{self.calls}")
        [lifespan] = rehearsal.lifespan(run)
        async with lifespan:
            return await rehearsal.run_agent(attrs.evolve(task, run=run.id), host)


@pytest.mark.slow
def test_the_rehearsal_agent_passes_the_agent_check(tmp_path: Path) -> None:
    calm = RehearsalSettings(phases=1, overloaded=False)
    with bind_settings({RehearsalSettings: calm}):
        result = kit.check_run_agent(RehearsalInARun(tmp_path), task(tmp_path), FakeAgentHost())

    assert result is not None
    assert result.value == calm.scenario(run_info(tmp_path)).roadmap()


@pytest.mark.slow
def test_the_claude_agent_passes_the_agent_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesApi(lambda request: says("a roadmap")) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
        text_only = attrs.evolve(task(tmp_path), schema=None)
        result = kit.check_run_agent(claude, text_only, FakeAgentHost())

    assert result is not None
    assert result.text == "a roadmap"
