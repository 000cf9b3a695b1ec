"""What each hook is asked when a plugin is tried: ordinary occasions, none of them the plugin's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, frozen

from gsd_core.errors import Permanent
from gsd_core.model.event import EVENT_NAMES
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.step import StepRequest, StepResult
from gsd_core.testing import samples
from gsd_core.testing.agent_host import FakeAgentHost
from gsd_core.testing.host import FakeHost, Turn

Args: TypeAlias = tuple[Any, ...]
Maker: TypeAlias = Callable[[Path], "list[Args]"]
FILES = {"app.py": "def add(a: int, b: int) -> int:\n    return a + b\n", "empty.txt": ""}


@frozen(kw_only=True)
class Occasion:
    """One call of a hook: *args* makes its arguments anew each time; *limit* is the hook's time."""

    args: Callable[[], Args]
    limit: timedelta
    waits: bool = False


def prepare(tree: Path) -> None:
    """Write the files that some occasions are about."""
    samples.write_files(tree, FILES)


def occasions(hook: str, tree: Path) -> tuple[Occasion, ...]:
    """Return the occasions for an asynchronous hook, in the project *tree*, which is prepared."""
    limit, maker = timedelta(seconds=_SECONDS[hook]), _MAKERS[hook]
    makes = [partial(_nth, maker, tree, number) for number in range(len(maker(tree)))]
    return tuple(Occasion(args=args, limit=limit, waits=hook == "gsd_answer") for args in makes)


def _nth(maker: Maker, tree: Path, number: int) -> Args:
    return maker(tree)[number]


def same(hook: str, value: Any) -> Any:
    """Return what has to be the same when the hook is asked again."""
    if hook == "gsd_find_gaps":
        gaps: tuple[Gap, ...] = value.gaps if isinstance(value, GapReport) else tuple(value)
        return sorted((gap.key, gap.reason) for gap in gaps)
    return value if hook in _REPEATED else None


_SECONDS: Mapping[str, float] = {
    "gsd_execute_step": 30, "gsd_run_agent": 60, "gsd_wrap_step": 10, "gsd_find_gaps": 60, "gsd_answer": 2,
    "gsd_notify": 10, "gsd_permit_tool": 2, "gsd_check_budget": 2, "gsd_workspace": 10, "gsd_on_event": 2,
}  # fmt: skip
_REPEATED = {"gsd_permit_tool", "gsd_check_budget", "gsd_execute_step"}


def _nobody_plays(turn: Turn) -> None:
    raise Permanent("in a check nobody plays the agent")


async def _attempt(step: StepRequest, /) -> StepResult:
    return StepResult(subject=step.id)


def _steps(tree: Path) -> list[Args]:
    kinds = ("init", "discuss", "plan", "execute", "verify", "complete", "research")
    return [(samples.a_step(tree, kind), FakeHost(agent=_nobody_plays)) for kind in kinds]


def _wraps(tree: Path) -> list[Args]:
    return [(samples.a_step(tree), _attempt)]


def _agents(tree: Path) -> list[Args]:
    summed = samples.a_task(tree, "Sum it up in one word.", schema=samples.SCHEMA)
    return [(samples.a_task(tree, "Say OK."), FakeAgentHost()), (summed, FakeAgentHost())]


def _phases(tree: Path) -> list[Args]:
    return [(samples.a_phase(tree),), (samples.a_phase(tree, plans=(samples.a_plan(*FILES, "gone.py"),)),)]


def _inquiries(tree: Path) -> list[Args]:
    action = samples.a_question("Has the parcel arrived?", human_only=True)
    database = samples.an_inquiry("Which database?", "SQLite", "PostgreSQL")
    return [(database,), (evolve(database, questions=(action,)),)]


def _notices(tree: Path) -> list[Args]:
    types = ("question", "progress", "error", "complete", "crash")
    return [(samples.a_notice(type=kind),) for kind in types]


def _uses(tree: Path) -> list[Args]:
    names = ("Bash", "Read", "Write", "WebFetch", "mcp__any__thing")
    odd: tuple[object, ...] = ("", "rm -rf / 'unfinished", "x" * 20_000, None)
    uses = [*(samples.a_use(tree, name) for name in names), samples.a_use(tree, input={})]
    return [(use,) for use in (*uses, *(samples.a_use(tree, input={"command": text}) for text in odd))]


def _spends(tree: Path) -> list[Args]:
    much = samples.a_spend(spent=Decimal(10**6), calls=10**6, unknown_calls=3)
    return [(samples.a_spend(calls=0, spent=Decimal(0)),), (much,)]


def _events(tree: Path) -> list[Args]:
    return [(samples.an_event(name),) for name in EVENT_NAMES]


def _trees(tree: Path) -> list[Args]:
    return [(samples.a_step(tree),)]


_MAKERS: Mapping[str, Maker] = {
    "gsd_execute_step": _steps, "gsd_run_agent": _agents, "gsd_wrap_step": _wraps, "gsd_find_gaps": _phases,
    "gsd_answer": _inquiries, "gsd_notify": _notices, "gsd_permit_tool": _uses, "gsd_check_budget": _spends,
    "gsd_workspace": _trees, "gsd_on_event": _events,
}  # fmt: skip
