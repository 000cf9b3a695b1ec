"""SIGINT and SIGTERM: the first one finishes writing and ends the agent, a second one exits at once.

Before that, SIGINT lets the agents finish their turns.
"""

from __future__ import annotations

import signal
import termios
import time

import pytest

from gsd_core.machine.state import State, StepRecord, StepStatus
from gsd_core.model.ids import StepId
from gsd_core.run.start import farewell
from tests.e2e.project import EXAMPLE, FAKE, REHEARSAL, Project, Started, defects, gate, no_problems, plugin
from tests.terminal.pseudo_terminal import on_a_terminal

BLOCKING = """import pathlib, sqlite3, time
from gsd_core import implements
from gsd_core.hookspecs import gsd_on_event, gsd_wrap_step

REACHED = pathlib.Path({reached!r})

def block(*about):
    if not REACHED.exists():
        REACHED.touch()
        {blocks}

@implements({hook})
async def call({parameters}):
    block({parameters})
    {end}
"""
HOOKS = {
    "gsd_on_event": ("event", "return None"),
    "gsd_wrap_step": ("step, call_next", "return await call_next(step)"),
}


SLEEPS = "time.sleep(60)"
COMPUTES = """sqlite3.connect(":memory:").execute(
            "WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up LIMIT 1000000000)"
            "SELECT max(n) FROM up"
        )"""
"""Python calls no handler before it has ended."""


def blocking(project: Project, hook: str, blocks: str = SLEEPS) -> tuple[str, ...]:
    """Return the arguments that load a plugin that blocks the loop for a minute or more, once."""
    parameters, end = HOOKS[hook]
    reached = str(project.base / "reached")
    return plugin(
        project, BLOCKING.format(hook=hook, parameters=parameters, end=end, reached=reached, blocks=blocks)
    )


def test_what_a_second_signal_prints_names_each_step_that_has_begun_and_not_ended() -> None:
    statuses: dict[str, StepStatus] = {
        "1/plan": "completed",
        "1/execute/01-01": "parked",
        "2/plan": "waiting",
    }
    steps = {step: StepRecord(id=StepId.parse(step), status=status) for step, status in statuses.items()}

    about, how = farewell(State(steps=steps), "gsd -C demo").splitlines()

    assert about.startswith("ended at once, in the middle of 1/execute/01-01, 2/plan; finished tasks are")
    assert how == "continue with: gsd -C demo resume"


SLOW = pytest.mark.slow
STOPS = [
    pytest.param(FAKE, signal.SIGINT, 130, id="fake-int"),
    pytest.param(FAKE, signal.SIGTERM, 143, id="fake-term", marks=SLOW),
    pytest.param(REHEARSAL, signal.SIGINT, 130, id="rehearsal-int", marks=SLOW),
    pytest.param(REHEARSAL, signal.SIGTERM, 143, id="rehearsal-term", marks=SLOW),
]
BLOCKS = [
    pytest.param("gsd_wrap_step", SLEEPS, signal.SIGINT, 130, id="step-int"),
    pytest.param("gsd_on_event", SLEEPS, signal.SIGTERM, 143, id="event-term"),
    pytest.param("gsd_wrap_step", COMPUTES, signal.SIGTERM, 143, id="step-computes-term"),
    pytest.param("gsd_on_event", COMPUTES, signal.SIGINT, 130, id="event-computes-int"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "number", "code"), STOPS)
def test_a_signal_while_a_command_runs_stops_the_run_and_resume_finishes_it(
    project: Project, agent: tuple[str, ...], number: int, code: int
) -> None:
    project.create()
    project.environment = no_problems()
    waits = gate(project)
    waits.close()
    started = project.start("run", EXAMPLE, *agent, "--yes")
    assert started.until(waits.reached.exists)
    began = time.monotonic()
    started.signal(number)
    stopped = started.wait()
    seconds = time.monotonic() - began
    (closed,) = project.facts("run.closed")
    left = project.leftovers()
    waits.open()
    resumed = project.gsd("resume", *agent[:-2], "--yes")

    assert stopped.exit == code
    assert seconds < 10
    assert (closed.data["outcome"], closed.data["exit"]) == ("stopped", code)
    assert " resume\n" in stopped.out
    assert left == []
    assert resumed.exit == 0, resumed.err
    assert list(defects(project)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("hook", "blocks", "number", "code"), BLOCKS)
def test_a_second_signal_ends_a_run_whose_loop_a_plugin_blocks(
    project: Project, hook: str, blocks: str, number: int, code: int
) -> None:
    project.create()
    project.environment = no_problems()
    loads = blocking(project, hook, blocks)
    started = project.start("run", EXAMPLE, *FAKE, "--yes", *loads)
    assert started.until((project.base / "reached").exists)
    started.signal(number)
    time.sleep(0.2)
    alive = started.process.poll() is None
    began = time.monotonic()
    started.signal(number)
    ended = started.wait()
    seconds = time.monotonic() - began
    resumed = project.gsd("resume", *FAKE[:2], "--yes", *loads)

    assert alive
    assert ended.exit == code
    assert seconds < 2
    *_, left, how = ended.err.splitlines()
    assert left.startswith("ended at once")
    assert how == f"continue with: gsd -p gsd_plugins.rehearsal.fake {' '.join(loads)} resume"
    assert resumed.exit == 0, resumed.err
    assert list(defects(project)) == []


@pytest.mark.slow
def test_a_second_signal_ends_the_agent_at_once(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    waits = gate(project)
    waits.close()
    started = project.start("run", EXAMPLE, *REHEARSAL, "--yes")
    assert started.until(waits.reached.exists)
    started.signal(signal.SIGINT)
    started.signal(signal.SIGINT)
    ended = started.wait()

    assert ended.exit == 130
    assert project.leftovers() == []


@pytest.mark.slow
def test_a_plugin_that_blocks_the_loop_is_named_within_ten_seconds(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    started = project.start("run", EXAMPLE, *FAKE, "--yes", *blocking(project, "gsd_wrap_step"))
    assert started.until((project.base / "reached").exists)
    assert started.until(lambda: project.facts("plugin.failed"), 10)
    (named,) = project.facts("plugin.failed")
    started.until(lambda: "own" in started.output, 1)
    started.kill()

    assert (named.data["plugin"], named.data["hook"]) == ("own", "gsd_wrap_step")
    assert "plugin 'own' in gsd_wrap_step has blocked the event loop" in started.output


@pytest.mark.slow
def test_control_c_twice_at_a_terminal_ends_a_blocked_run_and_shows_the_cursor(project: Project) -> None:
    project.create()
    loads = blocking(project, "gsd_wrap_step")
    command = ["gsd_core", "run", str(EXAMPLE), *FAKE, "-C", str(project.root), "--yes", *loads]
    with on_a_terminal(*command, **no_problems()) as screen:
        screen.until("\x1b[?25l")
        while not (project.base / "reached").exists():
            time.sleep(0.01)
        screen.type("\x03")
        time.sleep(0.3)
        screen.type("\x03")
        code = screen.ended()
        mode = termios.tcgetattr(screen.terminal)[3]

    assert code == 130
    assert mode & termios.ECHO
    assert mode & termios.ICANON
    assert screen.seen.rindex("\x1b[?25h") > screen.seen.rindex("\x1b[?25l")
    assert screen.seen.endswith("resume\r\n")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["begins", "ends"])
def test_a_signal_while_the_run_starts_or_ends_is_not_a_crash(project: Project, moment: str) -> None:
    project.create()
    project.environment = no_problems()
    loads = plugin(project, LINGERING.format(moment=moment, reached=str(project.base / "reached")))
    started = project.start("run", EXAMPLE, *FAKE, "--yes", *loads)
    assert started.until((project.base / "reached").exists)
    started.signal(signal.SIGINT)
    ended = started.wait()
    outcomes = [fact.data["outcome"] for fact in project.facts("run.closed")]
    resumed = project.gsd("run", EXAMPLE, *FAKE, "--yes")

    assert (ended.exit, outcomes) == ((130, ["stopped"]) if moment == "begins" else (0, ["done"]))
    assert resumed.exit == 0, resumed.err
    assert list(defects(project)) == []


TURN = """
[[rule]]
when = {{ plan = "01-01" }}
do = "slow"
duration = "{seconds}s"
times = 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("cli", [False, True], ids=["in process", "claude"])
def test_ctrl_c_lets_the_agent_finish_its_turn_and_counts_it(project: Project, cli: bool) -> None:
    started = in_a_turn(project, cli=cli, seconds=3)
    started.signal(signal.SIGINT)
    ended = started.wait()
    closed = project.facts("agent.closed")[-1]
    resumed = project.gsd("resume", "--yes")

    assert "stopping as soon as 1 agent has finished its turn; press Ctrl-C again to stop now" in ended.err
    assert (ended.exit, closed.data["ended"], closed.data["usage"]["turns"]) == (130, "lost", 1)
    assert resumed.exit == 0, resumed.err
    assert list(defects(project)) == []


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_wait_for_the_turn(project: Project) -> None:
    started = in_a_turn(project, cli=False, seconds=300)
    began = time.monotonic()
    started.signal(signal.SIGINT)
    assert started.until(lambda: "press Ctrl-C again to stop now" in started.output)
    waits = started.process.poll() is None
    started.signal(signal.SIGINT)
    ended = started.wait()
    (closed,) = project.facts("run.closed")

    assert waits
    assert (ended.exit, closed.data["outcome"]) == (130, "stopped")
    assert time.monotonic() - began < 10


def in_a_turn(project: Project, *, cli: bool, seconds: int) -> Started:
    """Start a run, and wait until the agent that executes the first plan is in a turn of some *seconds*."""
    project.create()
    project.environment = {**no_problems(), "GSD_REHEARSAL_CLI": str(cli).lower()}
    script = project.base / "slow.toml"
    script.write_text(TURN.format(seconds=seconds))
    started = project.start("run", EXAMPLE, *REHEARSAL, "--yes", "--script", str(script))
    step = "1/execute/01-01"

    def works() -> bool:
        notes = (note for note in project.facts("agent.activity") if note.step == step)
        return any(note.data["kind"] != "prompt" for note in notes)

    assert started.until(works)
    return started


LINGERING = """import asyncio, pathlib
from contextlib import asynccontextmanager
from gsd_core import implements
from gsd_core.hookspecs import gsd_lifespan

async def linger(moment):
    if moment == {moment!r}:
        pathlib.Path({reached!r}).touch()
        await asyncio.sleep(60)

@asynccontextmanager
async def resource():
    await linger("begins")
    yield
    await linger("ends")

@implements(gsd_lifespan)
def lifespan(run):
    return [resource()]
"""


@pytest.mark.slow
def test_a_notification_service_that_hangs_does_not_delay_a_stop(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    reached = str(project.base / "reached")
    started = project.start("run", EXAMPLE, *FAKE, "--yes", *plugin(project, HANGING.format(reached=reached)))
    assert started.until((project.base / "reached").exists)
    began = time.monotonic()
    started.signal(signal.SIGTERM)
    ended = started.wait()
    seconds = time.monotonic() - began

    assert ended.exit == 143
    assert seconds < 8


HANGING = """import asyncio, pathlib
from gsd_core import implements
from gsd_core.hookspecs import gsd_notify, gsd_wrap_step

@implements(gsd_notify)
async def notify(notice):
    await asyncio.sleep(600)

@implements(gsd_wrap_step)
async def wait(step, call_next):
    pathlib.Path({reached!r}).touch()
    await asyncio.sleep(600)
"""
