"""The fakes and the conformance kit, and the specs themselves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast, get_args

import attrs
import click
import pytest

from gsd_core import (
    AgentResult,
    AgentTask,
    Allow,
    Answer,
    ConfigValue,
    ConfinedProcess,
    FileWrite,
    Finding,
    Gap,
    Inquiry,
    Mutant,
    Notice,
    Option,
    Panel,
    PhaseView,
    ProjectInfo,
    Question,
    RunInfo,
    SandboxedCommand,
    Session,
    SessionRequest,
    SourceFile,
    Spend,
    StepType,
    Stop,
    ToolUse,
    UnitEnd,
    UnitFact,
    UserError,
    WorkUnit,
    hookspecs,
    implements,
)
from gsd_core.hook_markers import Mode, mode_of
from gsd_core.hookspecs import gsd_answer, gsd_sandbox
from gsd_core.plugins.validation import HOOKS
from gsd_core.testing import (
    FakeClock,
    RecordingNotifier,
    ScriptedHuman,
    a_process,
    a_situation,
    conformance,
    make_hooks,
)
from tests.hooks import behaviors
from tests.hooks.behaviors import DONE, HERE, INQUIRY, INSTANT, NOTICE, PHASE, PROJECT, STEP, event

HOST = cast("Any", None)
TASK = AgentTask(step="s", role="planner", prompt="hi", tree=HERE)
USE = ToolUse(step="s", name="Read", input={}, asked_by="agent", tree=HERE)
SPEND = Spend(run="r", step="s", spent=Decimal(1), reserved=None, calls=1)
PROCESS = ConfinedProcess(command=("true",), cwd=HERE, environment={}, places=(), home=HERE)
RUN = RunInfo(id="r", project=HERE)


SOURCE = SourceFile(root=Path(), path="a.py", text="x = 1")
FAULT = Mutant(kind="value", name="1", first=1, last=1, start=4, end=5, text="2")


def always(value: Any) -> Callable[..., Any]:
    async def behave() -> Any:
        return value

    return behave


def contributes(*values: ConfigValue) -> Callable[[ProjectInfo], Iterable[ConfigValue]]:
    def contribute(project: ProjectInfo) -> Iterable[ConfigValue]:
        return values

    return contribute


def shows(*panels: Panel) -> Callable[[Path], Iterable[Panel]]:
    def contribute(project: Path) -> Iterable[Panel]:
        return panels

    return contribute


def links_to(*links: str) -> Callable[[Notice], Iterable[str]]:
    def contribute(notice: Notice) -> Iterable[str]:
        return links

    return contribute


def lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    yield here()


@asynccontextmanager
async def here() -> AsyncGenerator[Path, None]:
    yield HERE


def cases() -> Iterable[tuple[str, Any, tuple[Any, ...]]]:
    """Every hook with a function that keeps its contract, and arguments for its check."""
    yield "execute_step", always(DONE), (STEP, HOST)
    yield "run_agent", always(AgentResult(text="x")), (TASK, HOST)
    yield "wrap_step", behaviors.passes, (STEP, behaviors.core)
    yield "find_gaps", behaviors.finds_nothing, (PHASE,)
    yield "find_mutants", always([FAULT]), (SOURCE,)
    yield "answer", behaviors.answers_with("ok"), (INQUIRY,)
    yield "notify", always(None), (NOTICE,)
    yield "write_config", contributes(ConfigValue(key="a", value=1)), (PROJECT,)
    yield "sandbox", confines, (PROCESS,)
    yield "permit_tool", always(Allow()), (USE,)
    yield "check_budget", always(Stop(reason="r")), (SPEND,)
    yield "workspace", workspace, (STEP,)
    yield "on_event", always(None), (event(1),)
    yield "lifespan", lifespan, (RUN,)
    yield "panels", shows(Panel(name="a", title="A", columns=("x",), rows=(("1",),))), (HERE,)
    yield "links", links_to("https://example.net/1"), (NOTICE,)
    yield "session_host", always(NoSessions()), ()
    yield "dispatch", always(Nowhere()), ()
    yield "settings", lambda: [FakeClock], ()
    yield "cli_commands", lambda: [click.Command("x", help="does x")], ()
    yield "steps", lambda: [StepType(kind="review", before="complete", title="Review")], (a_situation(HERE),)
    yield "doctor", lambda: [Finding(name="git", ok=False, message="none", fix="install git")], ()


class Nowhere:
    async def submit(self, unit: WorkUnit) -> None: ...

    async def facts(self, unit: str, after: int = 0) -> AsyncIterator[UnitFact]:
        for _ in range(0):
            yield UnitFact(seq=0, kind="", at=datetime.now(UTC), attempt=0, data={})

    async def wait(self, unit: str) -> UnitEnd:
        return UnitEnd(problem="no room")

    async def answer(self, unit: str, answer: Answer) -> None: ...

    async def cancel(self, unit: str) -> None: ...


class NoSessions:
    def start(self, request: SessionRequest) -> Session:
        raise UserError("no room")

    def stop(self, session: str) -> Session:
        raise UserError("no such session")

    def list(self) -> list[Session]:
        return []


async def confines(process: ConfinedProcess) -> SandboxedCommand:
    return SandboxedCommand(command=process.command, environment=process.environment)


async def workspace(step: object) -> AbstractAsyncContextManager[Path]:
    return here()


CASES = list(cases())


def check(name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    spec = getattr(hookspecs, f"gsd_{name}")
    return getattr(conformance, f"check_{name}")(behaviors.plugin(spec, function), *args, **options)


def test_there_is_a_check_for_every_hook() -> None:
    assert sorted(name for name, _, _ in CASES) == sorted(name.removeprefix("gsd_") for name in HOOKS)


@pytest.mark.parametrize(("name", "function", "args"), CASES, ids=[name for name, _, _ in CASES])
def test_a_plugin_that_keeps_the_contract_passes(name: str, function: Any, args: tuple[Any, ...]) -> None:
    check(name, function, *args)


@pytest.mark.parametrize("name", [name for name, f, _ in CASES if inspect.iscoroutinefunction(f)])
def test_every_check_finds_nonsense_or_an_error(name: str) -> None:
    args = next(args for other, _, args in CASES if other == name)
    with pytest.raises(AssertionError, match="failed in gsd_"):
        check(name, behaviors.raises(ValueError("boom")), *args)
    if name not in ("notify", "on_event"):
        with pytest.raises(AssertionError, match="returned int, not"):
            check(name, behaviors.returns_nonsense, *args)


async def leaves_a_task() -> None:
    LEFT.append(asyncio.create_task(behaviors.hangs(), name="forgotten"))


LEFT: list[asyncio.Task[None]] = []


def only_the_first_call(behave: Callable[[], Any]) -> Callable[[], Any]:
    calls: list[int] = []

    async def p() -> Any:
        calls.append(1)
        return [Gap(truth="t", reason="r")] if len(calls) == 1 else await behave()

    return p


COMPLAINTS: list[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    ("notify", leaves_a_task, (NOTICE,), {}, "left tasks behind: forgotten"),
    ("answer", behaviors.answers_with("ok"), (INQUIRY,), {"declines": INQUIRY}, "gsd_answer should decline"),
    (
        "answer",
        always([Answer(question="z", text="")]),
        (INQUIRY,),
        {},
        "answered 'z', which was not asked",
    ),
    ("answer", always([Answer(question="q", text="")]), (INQUIRY,), {}, "an empty answer"),
    ("find_mutants", always([attrs.evolve(FAULT, end=99)]), (SOURCE,), {}, "not in the text"),
    ("find_mutants", always([attrs.evolve(FAULT, text="1")]), (SOURCE,), {}, "changes nothing"),
    ("find_mutants", always([attrs.evolve(FAULT, last=7)]), (SOURCE,), {}, "in none of 1 lines"),
    ("find_gaps", only_the_first_call(behaviors.finds_nothing_at_all), (PHASE,), {}, "in the same tree"),
    (
        "execute_step",
        always(attrs.evolve(DONE, files=(FileWrite(path="../x", text=""),))),
        (STEP, HOST),
        {},
        "'../x' is not relative",
    ),
    ("run_agent", always(AgentResult()), (attrs.evolve(TASK, schema={}), HOST), {}, "has no value"),
    (
        "write_config",
        contributes(*[ConfigValue(key="a", value=1)] * 2),
        (PROJECT,),
        {},
        "more than once: a",
    ),
    ("cli_commands", lambda: [click.Command("x")], (), {}, "'x' has no help"),
    (
        "doctor",
        lambda: [Finding(name="git", ok=False, message="m")],
        (),
        {},
        "'git' is not ok and has no fix",
    ),
    ("settings", lambda: [int], (), {}, "int is not an attrs class"),
    ("panels", shows(Panel(name="a", title="")), (HERE,), {}, "'a' has no title"),
    ("panels", shows(Panel(name="a", title="A", rows=(("1",),))), (HERE,), {}, "does not fit its columns"),
    ("panels", shows(*[Panel(name="a", title="A")] * 2), (HERE,), {}, "more than once: a"),
    (
        "panels",
        shows(Panel(name="a", title="A", text=cast("Any", 1))),
        (HERE,),
        {},
        "has not only texts",
    ),
    ("links", links_to("javascript:alert(1)"), (NOTICE,), {}, "not a URL of a page"),
    ("links", links_to("https://me:secret@example.net"), (NOTICE,), {}, "a user name or a password"),
    ("doctor", lambda: [1], (), {}, "contributed int"),
]


@pytest.mark.parametrize(("name", "function", "args", "options", "words"), COMPLAINTS)
def test_the_kit_explains_what_is_wrong(
    name: str, function: Any, args: tuple[Any, ...], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(AssertionError, match=words):
        check(name, function, *args, **options)


def test_the_kit_finds_a_plugin_that_does_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "GRACE", INSTANT)
    monkeypatch.setattr(conformance, "DECLINE_LIMIT", INSTANT)

    async def stubborn() -> None:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            await behaviors.ignores_cancellation()

    with pytest.raises(AssertionError, match="gsd_notify did not stop within"):
        check("notify", stubborn, NOTICE)


def test_a_detector_that_returns_none_keeps_the_contract() -> None:
    assert check("find_gaps", always(None), PHASE) == ()


@pytest.mark.parametrize("when", ["enter", "exit"])
@pytest.mark.parametrize(
    "behave", [behaviors.raises(ValueError("boom")), behaviors.exits, behaviors.ignores_cancellation]
)
def test_the_kit_finds_a_resource_that_cannot_be_entered_or_exited(
    monkeypatch: pytest.MonkeyPatch, when: str, behave: behaviors.Behavior
) -> None:
    monkeypatch.setattr(conformance, "GRACE", INSTANT)

    @asynccontextmanager
    async def resource() -> AsyncGenerator[None, None]:
        if when == "enter":
            await behave()
        yield
        if when == "exit":
            await behave()

    def contribute(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
        yield resource()

    with pytest.raises(AssertionError, match=r"gsd_lifespan: (ValueError|SystemExit|did not (start|exit))"):
        check("lifespan", contribute, RUN)


def test_the_kit_reports_that_a_plugin_does_not_implement_the_hook() -> None:
    with pytest.raises(AssertionError, match="does not implement gsd_answer"):
        conformance.check_answer(RecordingNotifier(), INQUIRY)


@pytest.mark.slow
def test_the_kit_says_that_a_channel_waits_for_a_person() -> None:
    withdrawn: list[str] = []

    class Channel:
        @implements(gsd_answer)
        async def wait(self, inquiry: Inquiry) -> Sequence[Answer] | None:
            try:
                await asyncio.Event().wait()
            finally:
                withdrawn.append(inquiry.questions[0].id)
            return None

    with pytest.raises(AssertionError, match=r"nobody answered within \d+ s: if the plugin waits"):
        conformance.check_answer(Channel(), INQUIRY)
    assert withdrawn


def test_the_kit_shows_why_a_sandbox_does_not_start_a_process(tmp_path: Path) -> None:
    class Box:
        @implements(gsd_sandbox)
        async def box(self, process: ConfinedProcess) -> SandboxedCommand:
            command = ("/bin/sh", "-c", "no-such-box", *process.command)
            return SandboxedCommand(command=command, environment=process.environment, sandbox="box")

    with pytest.raises(AssertionError, match=r"'exit 7' ended with 127, and wrote: .*no-such-box"):
        conformance.check_sandbox(Box(), a_process(tmp_path), starts=True)


def test_a_scripted_human_answers_what_the_script_contains_and_leaves_the_rest_open() -> None:
    questions = (
        Question(
            id="1", text="Which database?", options=(Option(label="PostgreSQL"), Option(label="SQLite"))
        ),
        Question(id="2", text="Which name?"),
        Question(
            id="3", text="Which colours?", multiple=True, options=(Option(label="red"), Option(label="blue"))
        ),
        Question(id="4", text="Unknown?"),
    )
    human = ScriptedHuman({"database": "SQLite", "name": "Ada", "colours": ["red", "blue"]})

    answers = conformance.check_answer(human, Inquiry(questions=questions), declines=INQUIRY)

    assert [(a.question, a.words) for a in answers] == [("1", "SQLite"), ("2", "Ada"), ("3", "red, blue")]
    assert questions[3] in human.asked


def test_a_recording_notifier_keeps_the_notices() -> None:
    notifier = RecordingNotifier()
    asyncio.run(make_hooks(notifier).fan_out(hookspecs.gsd_notify, timedelta(seconds=1), NOTICE))
    assert notifier.notices == [NOTICE]
    assert make_hooks(notifier).plugins_of(hookspecs.gsd_notify) == ("RecordingNotifier",)


def test_a_fake_clock_advances_while_code_sleeps() -> None:
    clock = FakeClock()
    began = clock.now()
    asyncio.run(clock.sleep(90))
    clock.advance(timedelta(seconds=10))
    assert (clock.now() - began, clock.monotonic(), clock.slept) == (timedelta(seconds=100), 100.0, [90])


def test_specs_have_at_most_two_parameters_without_defaults() -> None:
    for name in HOOKS:
        parameters = inspect.signature(getattr(hookspecs, name)).parameters.values()
        assert len(parameters) <= 2
        assert all(p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_documented_in_full(name: str) -> None:
    text = inspect.getdoc(getattr(hookspecs, name)) or ""
    for word in ("When:", "Return:", "Failure:", "Since:", "Example::", f"@implements({name})"):
        assert word in text


@pytest.mark.parametrize("name", HOOKS)
def test_every_spec_declares_a_mode_that_fits_its_signature(name: str) -> None:
    spec = getattr(hookspecs, name)
    mode = mode_of(spec)

    assert mode in get_args(Mode)
    assert inspect.iscoroutinefunction(spec) == (mode != "collect")
    assert ("call_next" in inspect.signature(spec).parameters) == (mode == "wrap")


def test_the_gaps_of_a_phase_are_returned() -> None:
    async def finds(phase: PhaseView) -> Sequence[Gap]:
        return [Gap(truth="t", reason=phase.name)]

    assert check("find_gaps", finds, PHASE) == [Gap(truth="t", reason="one")]
