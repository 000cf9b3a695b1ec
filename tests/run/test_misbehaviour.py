"""A plugin that misbehaves, in each hook and in each way: the run reports it and never crashes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gsd_core import hookspecs
from gsd_core.codec import structure
from gsd_core.errors import NoSandbox, Parked
from gsd_core.hookspecs import RunInfo, gsd_lifespan
from gsd_core.model.agent import AgentResult
from gsd_core.model.gap import GapReport
from gsd_core.model.question import Answer
from gsd_core.model.step import FileWrite, StepResult
from gsd_core.model.usage import Usage
from gsd_core.plugins.validation import MAX_STORED
from gsd_core.run import sandbox
from gsd_core.run.runtime import RunEnd
from gsd_core.run.start import run_project
from gsd_core.testing import ScriptedHuman
from gsd_plugins.rehearsal import Scenario
from tests.hooks import behaviors

from . import harness as h

pytestmark = pytest.mark.slow

ANYTHING: Any = 42
LABEL = Scenario(h.IDEA, phases=1).product.endings[0][0]
SHORT_LIMITS = {"limits": {"detector": 2, "idle": 4, "hard": 4}, "retry": {"attempts": 1}}


async def raises() -> Any:
    raise RuntimeError("broken")


async def parks() -> Any:
    raise Parked("never asked", ("q-0000000000",))


EXITS = {
    "gsd_execute_step": {1},
    "gsd_run_agent": {1, 75},
    "gsd_wrap_step": {1},
    "gsd_find_gaps": {6},
    "gsd_answer": {0},
    "gsd_notify": {0},
    "gsd_permit_tool": {1},
    "gsd_check_budget": {5},
    "gsd_workspace": {1},
    "gsd_on_event": {0},
}
LISTED = {"gsd_execute_step": "execute", "gsd_run_agent": "agent", "gsd_workspace": "workspace"}
UNNAMED = {
    ("gsd_answer", "hangs"),
    ("gsd_on_event", "hangs"),
    ("gsd_notify", "returns nonsense"),
    ("gsd_on_event", "returns nonsense"),
}
"""A human who thinks and a slow subscriber have not failed; the result of the last two hooks is ignored."""

slow = pytest.mark.slow
WAYS = [
    pytest.param(behaviors.returns_nonsense, id="returns nonsense"),
    pytest.param(raises, id="raises", marks=slow),
    pytest.param(behaviors.exits, id="exits", marks=slow),
    pytest.param(behaviors.interrupts, id="interrupts", marks=slow),
    pytest.param(behaviors.cancels_itself, id="cancels itself", marks=slow),
    pytest.param(behaviors.ignores_cancellation, id="ignores cancellation", marks=slow),
    pytest.param(behaviors.hangs, id="hangs", marks=slow),
]


def bad(hook: str, behave: Callable[[], Any]) -> object:
    """Return a plugin that misbehaves in *hook*, with any arguments."""
    spec = getattr(hookspecs, hook)
    names = [name for name in spec.__annotations__ if name != "return"]
    space: dict[str, Any] = {"behave": behave}
    exec(f"async def function({', '.join(names)}): return await behave()", space)
    return h.plugin(spec, space["function"])


def do(root: Path, run: dict[str, Any] | None = None, **plugins: Any) -> RunEnd:
    agent, human = h.one_phase(question=True), ScriptedHuman({"greeting end": LABEL})
    asked = h.request(
        root, agent, given=h.idea(), run=run, sections=SHORT_LIMITS, yes=False, zz_human=human, **plugins
    )
    return h.do(h.quick(asked))


def named(root: Path) -> set[str]:
    """Return the plugins that the journal names as having failed."""
    failed = {fact.data["plugin"] for fact in h.facts(root, "plugin.failed")}
    return failed | {p for fact in h.facts(root, "notice.sent") for p in fact.data["failed"]}


@pytest.mark.parametrize("hook", list(EXITS))
@pytest.mark.parametrize("behave", WAYS)
def test_a_plugin_that_misbehaves_is_named_and_the_run_ends(
    tmp_path: Path, hook: str, behave: Callable[[], Any], request: pytest.FixtureRequest
) -> None:
    root = h.repository(tmp_path / "project")
    run = {LISTED[hook]: ["bad"]} if hook in LISTED else {}

    end = do(root, run, bad=bad(hook, behave))

    way = request.node.callspec.id.partition("-")[0]
    assert end.exit in EXITS[hook], end
    assert "bad" in named(root) or "'bad'" in end.reason or (hook, way) in UNNAMED, end
    assert h.facts(root, "run.closed")[-1].data["exit"] == end.exit
    if end.exit:
        assert "'bad'" in end.reason or end.exit == 75 or "bad:" in end.reason, end


@pytest.mark.parametrize("behave", WAYS)
def test_a_sandbox_that_misbehaves_is_named_and_nothing_starts(
    tmp_path: Path, behave: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sandbox, "START_LIMIT", timedelta(seconds=1))
    root = h.repository(tmp_path / "project")

    with pytest.raises(NoSandbox, match="bad: "):
        do(root, {"sandboxes": ["bad"], "sandbox": "required"}, bad=bad("gsd_sandbox", behave))

    assert h.facts(root) == []


def nonsense() -> dict[str, Callable[[], Any]]:
    """Return, for some hooks, values of the right type with nonsense in their fields."""
    return {
        "gsd_execute_step": lambda: StepResult(subject=ANYTHING, files=(ANYTHING,)),
        "gsd_run_agent": lambda: AgentResult(text=ANYTHING, value={1, 2}, usage=ANYTHING),
        "gsd_wrap_step": lambda: StepResult(subject="no attempt was made"),
        "gsd_find_gaps": lambda: GapReport(gaps=ANYTHING),
        "gsd_answer": lambda: [Answer(question=ANYTHING, chosen=ANYTHING)],
    }


@pytest.mark.parametrize("hook", list(nonsense()))
def test_nonsense_in_the_fields_of_a_result_is_rejected(tmp_path: Path, hook: str) -> None:
    root = h.repository(tmp_path / "project")
    run = {LISTED[hook]: ["bad"]} if hook in LISTED else {}

    async def returns_nonsense() -> Any:
        return nonsense()[hook]()

    end = do(root, run, bad=bad(hook, returns_nonsense))

    assert end.exit in EXITS[hook], end
    assert "bad" in named(root) or "bad" in end.reason, end


LARGE = "x" * (MAX_STORED + 1)


@pytest.mark.parametrize(
    ("hook", "value"),
    [
        ("gsd_run_agent", AgentResult(value={"text": LARGE}, usage=Usage(turns=2, dollars=Decimal(1)))),
        ("gsd_execute_step", StepResult(subject="x", files=(FileWrite(path="x.txt", text=LARGE),))),
    ],
)
def test_a_result_that_the_journal_cannot_take_fails_its_step_and_its_cost_is_known(
    tmp_path: Path, hook: str, value: object
) -> None:
    root = h.repository(tmp_path / "project")

    async def returns_much() -> Any:
        return value

    end = do(root, {LISTED[hook]: ["bad"]}, bad=bad(hook, returns_much))

    assert end.exit == 1, end
    assert "'bad'" in end.reason
    assert "too large to be stored: 8.4 MB instead of at most 8.4 MB" in end.reason
    assert h.facts(root, "run.closed")[-1].data["exit"] == 1
    spent = [structure(fact.data["usage"], Usage).dollars for fact in h.facts(root, "agent.closed")]
    assert spent == ([Decimal(1)] if hook == "gsd_run_agent" else [])
    assert not (root / "x.txt").exists()


def test_a_step_that_is_parked_on_a_question_that_was_not_asked_fails(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, {"execute": ["bad"]}, bad=bad("gsd_execute_step", parks))

    assert (end.exit, "'bad'" in end.reason) == (1, True)


PATHS = ["../out.txt", *(pytest.param(p, marks=slow) for p in ("/tmp/out.txt", ".git/hooks/x", ".claude/x"))]


@pytest.mark.parametrize("path", PATHS)
def test_an_executor_cannot_write_protected_files(tmp_path: Path, path: str) -> None:
    root = h.repository(tmp_path / "project")

    async def writes() -> Any:
        return StepResult(subject="docs: mine now", files=(FileWrite(path=path, text="x"),))

    end = do(root, {"execute": ["bad"]}, bad=bad("gsd_execute_step", writes))

    assert (end.exit, "may not write" in end.reason) == (1, True)
    assert not (tmp_path / "out.txt").exists()


CONTRIBUTIONS = [
    *((hook, raises) for hook in ("gsd_write_config", "gsd_settings", "gsd_lifespan")),
    *(
        pytest.param(hook, behave, marks=slow)
        for hook in ("gsd_write_config", "gsd_settings", "gsd_lifespan")
        for behave in (behaviors.exits, behaviors.returns_nonsense)
    ),
    # The settings are collected before the run handles signals: there it may be the user's Ctrl-C.
    *(pytest.param(hook, behaviors.interrupts, marks=slow) for hook in ("gsd_write_config", "gsd_lifespan")),
]


@pytest.mark.parametrize(("hook", "behave"), CONTRIBUTIONS)
def test_a_plugin_that_fails_to_contribute_is_skipped(
    tmp_path: Path, hook: str, behave: Callable[[], Any]
) -> None:
    root = h.repository(tmp_path / "project")
    spec = getattr(hookspecs, hook)

    def contributes() -> Any:
        coroutine = behave()
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return [stop.value]
        raise AssertionError("it waits")

    names = [name for name in spec.__annotations__ if name != "return"]
    space: dict[str, Any] = {"contributes": contributes}
    exec(f"def function({', '.join(names)}): return contributes()", space)

    end = do(root, bad=h.plugin(spec, space["function"]))

    assert end.exit == 0, end
    assert hook == "gsd_settings" or "bad" in named(root)


def resource(begin: Callable[[], Any] | None, end: Callable[[], Any] | None) -> object:
    """Return a plugin with a resource that misbehaves when it is entered or exited."""

    @asynccontextmanager
    async def context() -> AsyncGenerator[None]:
        if begin:
            await begin()
        yield
        if end:
            await end()

    def lifespan(run: RunInfo) -> Iterable[Any]:
        yield context()

    return h.plugin(gsd_lifespan, lifespan)


RESOURCES = [
    pytest.param(raises, id="raises"),
    pytest.param(behaviors.exits, id="exits", marks=slow),
    pytest.param(behaviors.interrupts, id="interrupts"),
    pytest.param(behaviors.hangs, id="hangs", marks=slow),
    pytest.param(behaviors.cancels_itself, id="cancels itself", marks=slow),
    pytest.param(behaviors.ignores_cancellation, id="ignores cancellation", marks=slow),
]


@pytest.mark.parametrize("behave", RESOURCES)
def test_a_resource_that_cannot_be_entered_ends_the_run_and_names_its_plugin(
    tmp_path: Path, behave: Callable[[], Any]
) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, bad=resource(behave, None))

    assert (end.outcome, end.exit) == ("failed", 2)
    assert "plugin 'bad' cannot start" in end.reason
    assert "-p no:bad" in end.reason


@pytest.mark.parametrize("behave", RESOURCES)
def test_a_resource_that_cannot_be_exited_is_named_and_the_run_is_done(
    tmp_path: Path, behave: Callable[[], Any]
) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, bad=resource(None, behave))

    assert end.outcome == "done"
    assert named(root) == {"bad"}


def workspace(begin: Callable[[], Any] | None, end: Callable[[], Any] | None, root: Path) -> object:
    @asynccontextmanager
    async def context() -> AsyncGenerator[Any]:
        found = await begin() if begin else root
        yield found
        if end:
            await end()

    async def make() -> Any:
        return context()

    return bad("gsd_workspace", make)


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize(
    "behave", [*RESOURCES, pytest.param(behaviors.returns_nonsense, id="returns nonsense")]
)
def test_a_workspace_that_misbehaves_fails_its_step(
    tmp_path: Path, behave: Callable[[], Any], begins: bool
) -> None:
    root = h.repository(tmp_path / "project")
    context = workspace(behave if begins else None, None if begins else behave, root)

    end = do(root, {"workspace": ["bad"]}, bad=context)

    fine = behave is behaviors.returns_nonsense and not begins
    assert (end.exit, fine or "'bad'" in end.reason) == (0 if fine else 1, True), end


@slow
def test_two_runs_in_one_loop_are_independent(tmp_path: Path) -> None:
    roots = [h.repository(tmp_path / name / "project") for name in ("a", "b")]
    asked = [h.request(root, h.one_phase(), given=h.idea()) for root in roots]

    async def both() -> list[RunEnd]:
        return list(await asyncio.gather(*map(run_project, asked)))

    assert [end.outcome for end in asyncio.run(both())] == ["done", "done"]
