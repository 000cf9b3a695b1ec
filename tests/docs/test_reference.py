"""The reference is generated from the code, and its descriptions match what a run does."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import attrs
import click
import pytest

from docs import generate, tables
from gsd_core import EVENT_NAMES, Event, hookspecs, implements
from gsd_core.cli.app import gsd
from gsd_core.cli.commands import COMMANDS
from gsd_core.cli.plugin_loading import LOADED
from gsd_core.hookspecs import gsd_on_event
from gsd_core.journal.schema import ACTIVITY
from gsd_core.machine.facts import KIND_OF, Record
from gsd_core.machine.state import State
from gsd_core.plugins.validation import HOOKS
from gsd_core.run.publishing import events_of
from gsd_plugins import native
from tests.package.source import ROOT
from tests.run import harness

PAGES = generate.pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_matches_the_code(name: str) -> None:
    written = (generate.FOLDER / name).read_text("utf-8")

    assert written == PAGES[name], "run: python -m docs.generate"


def test_there_is_no_other_page() -> None:
    written = {path for path in generate.FOLDER.rglob("*") if path.is_file()}

    assert {path.relative_to(generate.FOLDER).as_posix() for path in written} == set(PAGES)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_documented_with_its_exact_parameters(name: str) -> None:
    parameters = ", ".join(inspect.signature(getattr(hookspecs, name)).parameters)

    assert f"\n## {name}({parameters})\n" in PAGES["hooks.md"]


def test_each_hook_has_a_test_that_names_it() -> None:
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if "package" not in path.parts]
    named = {name for path in tests if path != Path(__file__) for name in _names_in(path)}

    assert [name for name in HOOKS if named.isdisjoint((name, name.removeprefix("gsd_")))] == []


def _names_in(path: Path) -> Iterator[object]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Name(id=found) | ast.alias(name=found) | ast.Constant(value=str(found)):
                yield found
            case _:
                pass


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_in_the_reference(name: str) -> None:
    root = click.Context(gsd, info_name="gsd")
    command = gsd.get_command(root, name)
    assert command is not None
    ctx = click.Context(command, info_name=name, parent=root)
    ctx.meta[LOADED] = generate.built_in()
    _, _, rest = PAGES["commands.md"].partition(f"\n## gsd {name}\n")
    section = rest.partition("\n## ")[0]

    assert inspect.cleandoc(command.help or "?") in section
    for parameter in command.get_params(ctx):
        if isinstance(parameter, click.Option):
            assert all(option in section for option in parameter.opts)
            assert (parameter.help or "?").replace("|", "\\|") in section


def test_every_event_is_documented() -> None:
    assert set(tables.EVENTS) == set(EVENT_NAMES)


FIELDS = {kind: {field.name.rstrip("_") for field in attrs.fields(cls)} for cls, kind in KIND_OF.items()}
PASSED_ON = (
    "attempt.failed",
    "step.failed",
    "step.queued",
    "task.committed",
    "files.kept",
    "files.left",
    "merge.failed",
    "plugin.failed",
)


@pytest.mark.parametrize("kind", [*PASSED_ON, "recovered"])
def test_everything_that_an_event_takes_from_its_fact_is_documented(kind: str) -> None:
    given = dict.fromkeys(FIELDS[kind], "x")
    at = datetime(2026, 1, 1, tzinfo=UTC)
    step = "1/execute/01-01"
    fact = Record(seq=1, run="r", epoch=1, at=at, kind=kind, v=1, step=step, attempt=1, data=given)

    [event] = events_of(State(), fact)

    assert set(event.data) == set(tables.EVENTS[event.name][1].split(", "))


def test_every_kind_of_fact_is_documented() -> None:
    assert set(tables.FACTS) == {*KIND_OF.values(), "attempt.declared"} - ACTIVITY
    assert set(tables.ACTIVITY) <= ACTIVITY


class Watcher:
    def __init__(self) -> None:
        self.events: list[Event] = []

    @implements(gsd_on_event)
    async def watch(self, event: Event) -> None:
        self.events.append(event)


@pytest.mark.slow
def test_a_run_records_and_publishes_only_documented_data(tmp_path: Path) -> None:
    root, watcher = harness.repository(tmp_path / "p"), Watcher()
    agent = harness.one_phase(question=True, gap=True)
    end = harness.do(harness.request(root, agent, given=harness.idea(), watcher=watcher))

    assert end.exit == 0
    for fact in harness.facts(root):
        assert set(fact.data) <= FIELDS[fact.kind], fact.kind
    for event in watcher.events:
        assert set(event.data) <= set(tables.EVENTS[event.name][1].split(", ")), event.name
    published = {event.name for event in watcher.events}
    assert {"gap.found", "question.answered", "phase.completed", "task.committed", "run.closed"} <= published

    folder = root / ".planning"
    written = [str(path.relative_to(root)) for path in folder.rglob("*") if path.is_file()]
    assert ".planning/phases/01-greetings/01-02-SUMMARY.md" in written
    assert [path for path in written if not is_documented(path)] == []
    assert not is_documented(".planning/phases/01-greetings/notes.md")


REGEXES = {"NAME": r"[\w.-]+", "NNN": r"\d+", "NN": r"[\d.]+", "MM": r"\d+", "X.Y": r"\d+\.\d+"}
EXAMPLES = {"NAME": "a", "NNN": "001", "NN": "01", "MM": "02", "X.Y": "1.0"}


def filled(row: str, parts: Mapping[str, str]) -> str:
    """Return the name of a file in the reference with its placeholders replaced; `SUMMARY` has none."""
    names = "|".join(map(re.escape, parts))
    return re.sub(rf"(?<![A-Z])({names})(?![A-Z])", lambda found: parts[found[1]], row)


def is_documented(path: str) -> bool:
    """Whether the reference of files has a row for *path*."""
    # Logs have a folder of their own.
    rows = [row.replace("autopilot/NAME", "autopilot/(?:log/)?NAME") for row in tables.PLANNING_FILES]
    return any(re.fullmatch(filled(row, REGEXES) + (".*" if row.endswith("/") else ""), path) for row in rows)


def test_every_file_that_a_built_in_step_declares_is_documented() -> None:
    examples = [filled(row, EXAMPLES) for row in tables.PLANNING_FILES]
    declared = {path for one in native.steps() for path in one.writes}

    assert ".planning/v*-MILESTONE-AUDIT.md" in declared
    for path in declared:
        named = path.replace("{phase}", ".planning/phases/01-a").replace("{number}", "01")
        if named.endswith("**"):
            assert any(one.startswith(named.removesuffix("**")) for one in examples), path
        else:
            assert any(PurePosixPath(one).match(named) for one in examples), path
