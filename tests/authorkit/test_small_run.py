"""``gsd_run``: a whole run with a plugin, as in an author's own tests."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from gsd_core import (
    AgentTask,
    Answer,
    Deny,
    Event,
    Gap,
    Inquiry,
    Permission,
    PhaseView,
    RunStep,
    StepHost,
    StepRequest,
    StepResult,
    ToolUse,
    implements,
    setting,
    settings_of,
)
from gsd_core.errors import ConfigError
from gsd_core.hookspecs import (
    gsd_answer,
    gsd_execute_step,
    gsd_find_gaps,
    gsd_on_event,
    gsd_permit_tool,
    gsd_settings,
    gsd_workspace,
    gsd_wrap_step,
)
from gsd_core.testing.pytest_plugin import RunSmall

pytestmark = pytest.mark.slow

pytest_plugins = ["gsd_core.testing.pytest_plugin"]


@attrs.frozen(kw_only=True)
class Needs:
    """The settings of the plugin below."""

    path: str = setting("LICENSE")


@attrs.define(eq=False)
class License:
    """A detector that wants a file, an observer, and a wrapper."""

    events: list[str] = attrs.field(factory=list[str])
    kinds: list[str] = attrs.field(factory=list[str])
    changed: list[tuple[str, ...]] = attrs.field(factory=list[tuple[str, ...]])

    @implements(gsd_settings)
    def settings(self) -> Sequence[type]:
        return [Needs]

    @implements(gsd_find_gaps)
    async def find(self, phase: PhaseView) -> Sequence[Gap]:
        path = settings_of(Needs).path
        if (phase.project / path).exists():
            return []
        return [Gap(truth=f"There is {path}", reason="it is missing", about=path)]

    @implements(gsd_on_event)
    async def observe(self, event: Event) -> None:
        self.events.append(event.name)

    @implements(gsd_wrap_step)
    async def wrap(self, step: StepRequest, call_next: RunStep) -> StepResult:
        self.kinds.append(step.kind)
        return await call_next(step)


class Refuses:
    """A policy that lets nobody write Python."""

    @implements(gsd_permit_tool)
    async def permit(self, use: ToolUse) -> Permission | None:
        return Deny(reason="no Python") if str(use.input.get("file_path")).endswith(".py") else None


class Chooses:
    """An answerer."""

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        return [Answer(question=one.id, chosen=("PostgreSQL",)) for one in inquiry.questions]


class Fails:
    """An observer that fails."""

    @implements(gsd_on_event)
    async def observe(self, event: Event) -> None:
        raise ValueError("not my day")


def test_a_run_passes_with_a_plugin_that_is_content(gsd_run: RunSmall) -> None:
    plugin = License()

    ran = gsd_run(plugin, files={"LICENSE": "MIT\n"})

    assert (ran.exit, ran.outcome, ran.failures) == (0, "done", ())
    assert [step.kind for step in ran.steps] == ["discuss", "plan", "execute", "verify", "complete"]
    assert plugin.kinds == [step.kind for step in ran.steps]
    assert plugin.events == [event.name for event in ran.events]
    assert [call.role for call in ran.calls] == ["executor"]
    assert ran.files["app.py"].startswith("def add")
    assert ran.subjects[-1] == "docs(phase-01): complete phase execution"
    assert "SQLite" in ran.files[".planning/phases/01-one/01-CONTEXT.md"]


@attrs.frozen
class Copies:
    """A workspace in another folder, for some *kinds* of steps."""

    kinds: tuple[str, ...]
    entered: list[str] = attrs.field(factory=list[str])

    @implements(gsd_workspace)
    async def copy(self, step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
        return self._copied(step) if step.kind in self.kinds else None

    @asynccontextmanager
    async def _copied(self, step: StepRequest) -> AsyncGenerator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder, "tree")
            await asyncio.to_thread(shutil.copytree, step.project, tree)
            self.entered.append(step.id)
            yield tree


def test_a_phase_can_be_verified_in_a_copy_of_the_project(gsd_run: RunSmall) -> None:
    ran = gsd_run(copies=(plugin := Copies(("verify",))))

    assert (ran.exit, ran.failures) == (0, ())
    assert plugin.entered == ["1/verify"]
    [verify] = [step for step in ran.steps if step.kind == "verify"]
    assert verify.tree != verify.project


def test_a_plan_is_not_executed_in_a_folder_whose_changes_would_be_lost(gsd_run: RunSmall) -> None:
    ran = gsd_run(copies=Copies(("execute",)))

    assert ran.exit == 2
    assert "1/execute/01-01 changes files, but the run cannot commit them in its workspace" in ran.reason
    assert ran.calls == ()  # no agent was paid for it


class WritesWhileItVerifies:
    """An executor whose agent may write while a phase is verified."""

    @implements(gsd_execute_step)
    async def verify(self, step: StepRequest, host: StepHost) -> StepResult | None:
        if step.kind == "verify":
            task = AgentTask(step=step.id, role="fixer", prompt="Fix it.", tree=step.tree, writable=True)
            await host.run_agent("fix", task)
        return None


def test_an_agent_that_may_write_is_not_called_in_a_folder_whose_changes_would_be_lost(
    gsd_run: RunSmall,
) -> None:
    elsewhere = gsd_run(fixer=WritesWhileItVerifies(), copies=Copies(("verify",)))
    in_place = gsd_run(fixer=WritesWhileItVerifies())

    assert (elsewhere.exit, elsewhere.failures) == (1, ())  # the executor is not to blame
    assert "1/verify changes files, but the run cannot commit them in its workspace" in elsewhere.reason
    assert [call.role for call in elsewhere.calls] == ["executor"]  # no agent was paid for it
    assert (in_place.exit, [call.role for call in in_place.calls]) == (0, ["executor", "fixer"])


def test_a_gap_of_the_plugin_keeps_the_phase_from_passing(gsd_run: RunSmall) -> None:
    ran = gsd_run(mine=License())

    assert (ran.exit, ran.outcome) == (6, "gaps")
    assert "There is LICENSE" in ran.files[".planning/phases/01-one/01-VERIFICATION.md"]


def test_settings_come_as_values_or_as_in_a_file(gsd_run: RunSmall) -> None:
    by_value = gsd_run(mine=License(), settings=[Needs(path="app.py")])
    by_name = gsd_run(mine=License(), sections={"mine": {"path": "app.py"}})

    assert (by_value.exit, by_name.exit) == (0, 0)
    with pytest.raises(ConfigError, match=r"mine\.pth"):
        gsd_run(mine=License(), sections={"mine": {"pth": "app.py"}})


def test_a_policy_an_answerer_and_a_failing_observer_have_their_effects(gsd_run: RunSmall) -> None:
    ran = gsd_run(Refuses(), Chooses(), Fails(), writes={"app.py": "x = 1\n", "notes.txt": "hello\n"})

    assert ran.files["notes.txt"] == "hello\n"
    assert "app.py" not in ran.files
    assert "PostgreSQL" in ran.files[".planning/phases/01-one/01-CONTEXT.md"]
    assert ran.questions == ()
    assert any("Fails" in failure and "not my day" in failure for failure in ran.failures)


def test_each_step_of_a_phase_knows_the_folder_before_it_exists(gsd_run: RunSmall) -> None:
    ran = gsd_run()

    folders = {step.phase.directory for step in ran.steps if step.phase}
    assert (len(ran.steps), folders) == (5, {".planning/phases/01-one"})


class Silent:
    """A channel in which nobody answers; *cancelled* counts its withdrawn prompts."""

    cancelled = 0

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
        return None


class Slow:
    """A wrapper in which a step takes too long."""

    @implements(gsd_wrap_step)
    async def wrap(self, step: StepRequest, call_next: RunStep) -> StepResult:
        await asyncio.sleep(3600)
        return await call_next(step)


def test_a_run_that_waits_for_an_answer_fails_and_names_the_question(gsd_run: RunSmall) -> None:
    channel, began = Silent(), time.monotonic()

    with pytest.raises(AssertionError, match=r"0:00:03[^$]*- Which database\? \(1/discuss\)"):
        gsd_run(channel, limit=timedelta(seconds=3))

    assert channel.cancelled == 1
    assert time.monotonic() - began < 30


def test_a_run_that_takes_too_long_names_its_last_event(gsd_run: RunSmall) -> None:
    with pytest.raises(AssertionError, match=r"no question is open, the last event is [a-z]+\.[a-z]+"):
        gsd_run(Slow(), limit=timedelta(seconds=2))


def test_what_a_run_returns_has_a_short_repr_with_what_matters(gsd_run: RunSmall) -> None:
    ran = gsd_run(mine=License())

    assert len(repr(ran)) < 500
    assert "outcome='gaps'" in repr(ran)
    assert ran.reason in repr(ran)


class Demanding:
    """A detector that finds many gaps."""

    @implements(gsd_find_gaps)
    async def find(self, phase: PhaseView) -> Sequence[Gap]:
        numbers = range(1, 21)
        return [Gap(truth=f"Thing {n} exists", reason="missing", about=f"CORE-{n:02}") for n in numbers]


def test_a_run_that_ends_with_many_gaps_names_some_of_them(gsd_run: RunSmall) -> None:
    ran = gsd_run(Demanding())

    assert ran.reason == "gaps remain: CORE-01, CORE-02 and 18 more"
    assert "CORE-20" in ran.files[".planning/phases/01-one/01-VERIFICATION.md"]
