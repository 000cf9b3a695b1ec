"""Every built-in plugin can be blocked and replaced by a third party's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

from gsd_core.errors import Transient
from gsd_core.hookspecs import (
    ConfigValue,
    ProjectInfo,
    gsd_answer,
    gsd_check_budget,
    gsd_execute_step,
    gsd_find_gaps,
    gsd_notify,
    gsd_on_event,
    gsd_permit_tool,
    gsd_run_agent,
    gsd_workspace,
    gsd_wrap_step,
    gsd_write_config,
)
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, Permission, ToolUse
from gsd_core.model.event import Event
from gsd_core.model.gap import Gap
from gsd_core.model.notice import Notice
from gsd_core.model.question import Answer, Inquiry
from gsd_core.model.step import RunStep, StepHost, StepRequest, StepResult
from gsd_core.model.usage import Pause, Spend, Stop
from gsd_core.planning.model import PhaseView
from gsd_core.testing import ScriptedHuman
from gsd_plugins import answers, apprise, claude, native, terminal

from . import harness as h


@define(eq=False)
class Other:
    """The third party's plugins, a function for each hook; *calls* are the hooks that were called."""

    calls: list[str] = field(factory=list[str])

    async def execute(self, step: StepRequest, host: StepHost) -> StepResult | None:
        self.calls.append("execute")
        return await native.execute_step(step, host)

    async def agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        self.calls.append("agent")
        return await h.one_phase().run_agent(task, host)

    async def gaps(self, phase: PhaseView) -> Sequence[Gap]:
        self.calls.append("gaps")
        return []

    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        self.calls.append("answer")
        return await ScriptedHuman({"greeting end": "Exclamation mark"}).answer(inquiry)

    async def event(self, event: Event) -> None:
        self.calls.append("event")

    async def notice(self, notice: Notice) -> None:
        self.calls.append("notice")

    def config(self, project: ProjectInfo) -> Iterable[ConfigValue]:
        self.calls.append("config")
        yield ConfigValue(key="mode", value="interactive")

    async def wrap(self, step: StepRequest, call_next: RunStep) -> StepResult:
        self.calls.append("wrap")
        try:
            return await call_next(step)
        except Transient:
            return await call_next(step)

    async def permit(self, use: ToolUse) -> Permission | None:
        self.calls.append("permit")
        return Allow()

    async def budget(self, spend: Spend) -> Stop | Pause | None:
        self.calls.append("budget")
        return None

    async def workspace(self, step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
        self.calls.append("workspace")
        return nullcontext(step.project)


@frozen
class Case:
    """A built-in *name*; *function* replaces it in *hook*. The other fields are what the run needs."""

    name: str
    hook: Callable[..., Any]
    function: str
    run: dict[str, Any] = field(factory=dict[str, Any])
    scenario: dict[str, Any] = field(factory=dict[str, Any])
    yes: bool = True


CASES = [
    Case("native", gsd_execute_step, "execute", run={"execute": ["other"]}),
    Case("claude", gsd_run_agent, "agent", run={"agent": ["other"]}),
    Case("must_haves", gsd_find_gaps, "gaps"),
    Case("uat", gsd_find_gaps, "gaps"),
    Case("answers", gsd_answer, "answer", scenario={"question": True}, yes=False),
    Case("terminal", gsd_on_event, "event"),
    Case("terminal", gsd_answer, "answer", scenario={"question": True}, yes=False),
    Case("apprise", gsd_notify, "notice"),
    Case("yolo", gsd_write_config, "config"),
    Case("yolo", gsd_answer, "answer", scenario={"question": True}),
    Case("retry", gsd_wrap_step, "wrap", scenario={"overloaded": True}),
    Case("permissions", gsd_permit_tool, "permit"),
    Case("budget", gsd_check_budget, "budget"),
    Case("inplace", gsd_workspace, "workspace", run={"workspace": ["other"]}),
]


TWICE = [CASES[3], CASES[6], CASES[9]]
"""Cases with a hook that also appears in another case."""


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=f"{c.name}-{c.function}", marks=[pytest.mark.long] * (c in TWICE)) for c in CASES],
)
def test_a_built_in_can_be_blocked_and_replaced(tmp_path: Path, case: Case) -> None:
    root, other = h.repository(tmp_path / "project"), Other()
    asked = h.request(
        root,
        h.one_phase(**case.scenario),
        given=h.idea(),
        run=case.run,
        yes=case.yes,
        other=h.plugin(case.hook, getattr(other, case.function)),
        claude=claude,
        answers=answers,
        terminal=terminal,
        apprise=apprise,
    )
    registry = asked.hooks.manager
    assert case.name in asked.hooks.plugins_of(case.hook)

    registry.unregister(name=case.name)
    registry.set_blocked(case.name)
    end = h.do(asked)

    assert case.name not in asked.hooks.plugins_of(case.hook)
    assert (end.outcome, set(other.calls)) == ("done", {case.function}), end
