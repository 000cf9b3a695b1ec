"""Each calling mode with plugins that behave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import attrs
import pytest

from gsd_core import (
    AgentResult,
    AgentTask,
    Answer,
    ConfigError,
    ConfigValue,
    Gap,
    GapReport,
    Notice,
    PluginError,
    StepRequest,
    StepResult,
    hookimpl,
    hookspecs,
    implements,
    settings_of,
)
from gsd_core.hook_markers import Mode, mode_of
from gsd_core.hookspecs import (
    gsd_answer,
    gsd_find_gaps,
    gsd_notify,
    gsd_run_agent,
    gsd_settings,
    gsd_workspace,
    gsd_write_config,
)
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.plugins.loading import collect_settings
from gsd_core.plugins.validation import HOOKS
from gsd_core.run.snapshot import proposed_config
from gsd_core.settings import bind_settings
from gsd_core.testing import make_hooks
from tests.hooks import behaviors
from tests.hooks.behaviors import HOUR, INQUIRY, INSTANT, NOTICE, PHASE, PROJECT, answers_with, make, valid

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


def test_pick_asks_only_the_listed_plugins_in_order_until_one_does_not_decline() -> None:
    asked: list[str] = []
    behave = {name: answers_with(name, asked) for name in ("a", "unlisted", "c")}
    hooks = make(gsd_run_agent, none=answers_with(None, asked), **behave)

    won = asyncio.run(behaviors.pick_answers(hooks, "none", "c", "a"))

    assert won is not None
    assert (won.plugin, asked) == ("c", ["None", "c"])
    assert asyncio.run(behaviors.pick_answers(hooks, "none")) is None


def test_pick_names_a_listed_plugin_that_is_not_installed_and_those_that_are() -> None:
    hooks = make(gsd_run_agent, rehearsal=answers_with("r"), claude=answers_with("c"))

    with pytest.raises(ConfigError) as caught:
        asyncio.run(behaviors.pick_answers(hooks, "claude", "claud"))

    assert str(caught.value) == "unknown plugin 'claud' for gsd_run_agent; installed: 'claude', 'rehearsal'"


def test_a_workspace_is_picked_and_entered() -> None:
    @asynccontextmanager
    async def tree() -> AsyncGenerator[Path, None]:
        yield Path("elsewhere")

    async def makes(step: StepRequest) -> AbstractAsyncContextManager[Path]:
        return tree()

    async def main() -> Path:
        kind = cast("type[AbstractAsyncContextManager[Path]]", AbstractAsyncContextManager)
        picked = await make(gsd_workspace, w=makes).pick(gsd_workspace, ("w",), kind, behaviors.STEP)
        assert picked is not None
        assert picked.value is not None
        async with picked.value as path:
            return path

    assert asyncio.run(main()) == Path("elsewhere")


def test_a_method_can_implement_a_hook() -> None:
    class Agent:
        @implements(gsd_run_agent)
        async def run(self, task: AgentTask, host: Any) -> AgentResult | None:
            return AgentResult(text=task.prompt)

    task = AgentTask(step="s", role="planner", prompt="hi", tree=Path())
    won = asyncio.run(
        make_hooks(agent=Agent()).pick(gsd_run_agent, ("agent",), AgentResult, task, cast("Any", None))
    )

    assert won == Outcome(plugin="agent", value=AgentResult(text="hi"))


class PluggyPlugin:
    """In the style of pluggy's documentation: functions with the hooks' names, and fewer arguments."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    @hookimpl
    def gsd_settings(self) -> Iterable[type]:
        return [Word]

    @hookimpl(trylast=True)
    async def gsd_notify(self, notice: Notice) -> None:
        self.notices.append(notice)

    @hookimpl
    async def gsd_find_gaps(self) -> Sequence[Gap]:
        return [Gap(truth="t", reason="r")]

    @hookimpl(optionalhook=True)
    async def gsd_from_the_future(self, moon: object) -> None:
        raise AssertionError


@attrs.frozen
class Word:
    word: str = "default"


def test_a_plugin_may_use_pluggys_own_marker_and_conventions() -> None:
    plugin = PluggyPlugin()
    hooks = make_hooks(pluggy_plugin=plugin)

    asyncio.run(hooks.fan_out(gsd_notify, HOUR, NOTICE))
    [outcome] = asyncio.run(hooks.fan_out(gsd_find_gaps, HOUR, PHASE))

    assert plugin.notices == [NOTICE]
    assert outcome.value == [Gap(truth="t", reason="r")]
    assert collect_settings(hooks) == (("pluggy_plugin", Word),)


@pytest.mark.parametrize("names", [("b", "last", "a", "first"), ("first", "a", "b", "last")])
def test_the_order_is_tryfirst_then_by_name_then_trylast(names: tuple[str, ...]) -> None:
    options = {"first": {"tryfirst": True}, "last": {"trylast": True}}
    made = {n: behaviors.plugin(gsd_answer, answers_with(n), **options.get(n, {})) for n in names}
    assert make_hooks(**made).plugins_of(gsd_answer) == ("first", "a", "b", "last")


async def _call_in_mode(hooks: Hooks, spec: Any, mode: str) -> None:
    match mode:
        case "collect":
            hooks.collect(spec, str)
        case "pick":
            await hooks.pick(spec, (), StepResult)
        case "race":
            await hooks.race(spec, bool)
        case "fan_out":
            await hooks.fan_out(spec, HOUR)
        case "wrap":
            hooks.wrap(spec, behaviors.core, StepResult)
        case _:
            async with hooks.subscribe(spec):
                pass


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_cannot_be_called_in_another_mode_than_it_declares(name: str, mode: Mode) -> None:
    spec = getattr(hookspecs, name)
    if mode_of(spec) != mode:
        with pytest.raises(TypeError, match=f"{name} declares the mode '{mode_of(spec)}'"):
            asyncio.run(_call_in_mode(make_hooks(), spec, mode))


def test_a_race_without_a_winner_is_none() -> None:
    for hooks in (make(gsd_answer), make(gsd_answer, a=answers_with(None), b=answers_with("1"))):
        assert asyncio.run(hooks.race(gsd_answer, valid, inquiry=INQUIRY)) is None


def test_a_race_reports_the_winner_after_the_losers_are_cancelled_and_before_they_end() -> None:
    trace: list[object] = []

    async def main() -> None:
        recorded = asyncio.Event()

        async def loser() -> None:
            try:
                await behaviors.hangs()
            finally:
                await recorded.wait()
                trace.append("loser gone")

        async def won(outcome: Outcome[Sequence[Answer]]) -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            trace.extend([outcome.plugin, *(task.cancelling() for task in others)])
            recorded.set()

        await make(gsd_answer, ok=answers_with("ok"), loser=loser).race(
            gsd_answer, valid, won, inquiry=INQUIRY
        )

    asyncio.run(main())
    assert trace == ["ok", 1, "loser gone"]


def test_fan_out_returns_an_outcome_for_each_plugin_in_order() -> None:
    gap, report = Gap(truth="t", reason="r"), GapReport()

    async def finds(phase: object) -> Sequence[Gap]:
        return (gap,)

    async def reports(phase: object) -> GapReport:
        return report

    outcomes = asyncio.run(make(gsd_find_gaps, b=reports, a=finds).fan_out(gsd_find_gaps, HOUR, PHASE))

    assert outcomes == [Outcome(plugin="a", value=(gap,)), Outcome(plugin="b", value=report)]


def test_a_detector_that_returns_none_found_nothing_and_did_not_fail() -> None:
    async def finds_none(phase: object) -> None:
        return None

    [outcome] = asyncio.run(make(gsd_find_gaps, a=finds_none).fan_out(gsd_find_gaps, HOUR, PHASE))

    assert outcome == Outcome(plugin="a", value=None, error=None)


def test_a_fan_out_without_plugins_has_no_outcomes() -> None:
    assert asyncio.run(make(gsd_notify).fan_out(gsd_notify, INSTANT, NOTICE)) == []


def test_plugins_see_the_settings_of_the_run_that_calls_them() -> None:
    @attrs.frozen
    class Mine:
        word: str = "default"

    async def behave() -> Sequence[Answer]:
        return [Answer(question="q", text=settings_of(Mine).word)]

    async def run(word: str) -> str:
        with bind_settings({Mine: Mine(word)}):
            won = await behaviors.pick_answers(make(gsd_run_agent, p=behave), "p")
        assert won is not None
        return str(won.value[0].text) if won.value else ""

    async def main() -> list[str]:
        return list(await asyncio.gather(run("one"), run("two")))

    assert asyncio.run(main()) == ["one", "two"]


def values(*keys: str) -> Any:
    def contribute(project: object) -> Iterable[ConfigValue]:
        yield from (ConfigValue(key=key, value=1) for key in keys)

    return contribute


def test_collect_merges_what_all_contribute_by_the_name_of_the_plugin() -> None:
    found = make(gsd_write_config, b=values("x"), a=values("y", "z")).collect(gsd_write_config, _key, PROJECT)
    assert [(plugin, item.key) for plugin, item in found.items] == [("a", "y"), ("a", "z"), ("b", "x")]


def test_collect_names_both_plugins_that_contribute_the_same_name() -> None:
    hooks = make(gsd_write_config, b=values("x"), a=values("x"))
    with pytest.raises(ConfigError, match="'a' and 'b' both contribute 'x' to gsd_write_config"):
        hooks.collect(gsd_write_config, _key, PROJECT)


@pytest.mark.parametrize("keys", [("workflow", "workflow.research"), ("workflow.research", "workflow")])
def test_overlapping_keys_for_the_config_are_refused_naming_both_plugins(keys: tuple[str, str]) -> None:
    hooks = make(gsd_write_config, a=values(keys[0]), b=values(keys[1]))
    with pytest.raises(ConfigError, match=r"'[ab]' contributes 'workflow' and '[ab]' contributes"):
        proposed_config(hooks, PROJECT)


def _key(value: ConfigValue) -> str:
    return value.key


def test_settings_classes_come_with_their_plugin_and_those_that_need_arguments_are_rejected() -> None:
    @attrs.frozen
    class Good:
        url: str = ""

    @attrs.frozen
    class Bare:
        url: str

    hooks = make(
        gsd_settings, good=lambda: [Good], bare=lambda: [Bare], no_class=lambda: [1], other=lambda: [int]
    )
    failures: list[PluginFailure] = []

    assert collect_settings(attrs.evolve(hooks, report=failures.append)) == (("good", Good),)
    assert [(failure.plugin, failure.error) for failure in failures] == [
        ("bare", "TypeError('Bare.url has no default')"),
        ("no_class", "contributed int to Iterable[type[Any]]"),
        ("other", "TypeError('int is not an attrs class')"),
    ]


def test_a_failure_that_passes_several_boundaries_is_reported_once() -> None:
    failures: list[PluginFailure] = []
    inner = attrs.evolve(
        make(gsd_run_agent, inner=behaviors.raises(ValueError("boom"))), report=failures.append
    )

    async def asks_again() -> Any:
        return await behaviors.pick_answers(inner, "inner")

    outer: Hooks = attrs.evolve(make(gsd_run_agent, outer=asks_again), report=failures.append)
    with pytest.raises(PluginError, match="plugin 'inner' failed"):
        asyncio.run(behaviors.pick_answers(outer, "outer"))

    assert [failure.plugin for failure in failures] == ["inner"]
