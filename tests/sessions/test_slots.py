"""A slot is an agent: how many plans all sessions execute side by side."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_core import Cap, Session, SessionRequest, Spend, boot_id, process_start
from gsd_core.machine.facts import Record
from gsd_core.testing.samples import a_spend
from gsd_plugins.sessions import SessionsSettings, host
from gsd_plugins.sessions import share_slots as limit_agents
from gsd_plugins.sessions.queue import share_slots, take_slot
from gsd_plugins.sessions.registry import Registry
from tests.e2e.project import EXAMPLE, Project, no_problems
from tests.sessions.test_adversaries import ended, until

SLOTS = 3
SLOW = """
import asyncio
from pathlib import Path
from gsd_core import implements
from gsd_core.hookspecs import gsd_run_agent

@implements(gsd_run_agent)
async def slow(task, host):
    if task.role == "executor":
        await asyncio.sleep(0.5)
        while Path(HELD).exists() and not task.step.endswith("01-01"):
            await asyncio.sleep(0.05)
"""
"""An agent that leaves the work to the next one after half a second, and not while a file exists."""
STARTED = process_start(os.getpid())
MINE: dict[str, Any] = {"runner": os.getpid(), "runner_started": STARTED, "boot": boot_id()}
GONE: dict[str, Any] = {**MINE, "runner_started": "1"}
ORPHAN: dict[str, Any] = {**GONE, "pid": os.getpid(), "pid_started": STARTED}


def begin(project: Project, *command: str, slots: int = SLOTS) -> str:
    """Start a session of *project*, whose only phase has six plans, four of them beside each other."""
    plugins = ("-p", "gsd_plugins.rehearsal.fake", "-p", str(project.base.parent / "slow.py"))
    arguments = (*plugins, *command, "--yes", "--sandbox", "off", "--max-parallel", "4")
    request = SessionRequest(arguments=arguments, folder=project.root, project=project.root)
    return host.start_session(request, SessionsSettings(slots=slots)).id


def agents(facts: Sequence[Record]) -> list[tuple[datetime, int]]:
    """Return when an agent began (1) and ended (-1), for each attempt at a plan."""
    working: set[str] = set()
    changes: list[tuple[datetime, int]] = []
    for fact in facts:
        if fact.kind == "attempt.started" and "/execute/" in fact.step:
            working.add(fact.step)
            changes.append((fact.at, 1))
        elif fact.kind in ("step.result", "attempt.failed") and fact.step in working:
            working.remove(fact.step)
            changes.append((fact.at, -1))
        elif fact.kind == "run.opened":
            # Those of a process that was killed ended before others got its slots.
            last = next((one.at for one in reversed(facts) if one.seq < fact.seq), fact.at)
            changes += [(last, -1)] * len(working)
            working.clear()
    assert not working
    return changes


def most(changes: Sequence[tuple[datetime, int]]) -> int:
    """Return the most agents at a time."""
    now = highest = 0
    for _, change in sorted(changes):
        now += change
        highest = max(highest, now)
    return highest


@pytest.mark.slow
def test_two_wide_runs_never_have_more_agents_than_slots_and_a_killed_one_leaves_its_own_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tmp_path / "held"
    held.touch()
    (tmp_path / "slow.py").write_text(f"HELD = {str(held)!r}\n{SLOW}")
    one, two = (Project(tmp_path / name) for name in ("a", "b"))
    settings = {"SESSIONS_SLOTS": str(SLOTS), "AGENT": "slow,fake", "WORKSPACE": "worktree,inplace"}
    for project in (one, two):
        project.base.mkdir()
        project.create()
    environment = {f"GSD_{key}": value for key, value in settings.items()}
    for name, value in one.environ({**no_problems(WIDE="1"), **environment}).items():
        monkeypatch.setenv(name, value)

    command = ("run", str(EXAMPLE), "--depth", "comprehensive", "--skip-verify")
    first, second = (begin(project, *command) for project in (one, two))

    def have(*counts: int) -> bool:
        found = [host.find_session(session) for session in (first, second)]
        assert not any(one.has_ended for one in found), host.output_of(first).data.decode()
        return sorted(one.agents for one in found) == [*counts]

    until(first, lambda _: have(1, 2) and two.facts("step.queued") and one.facts("step.queued"))
    waiting = host.find_session(first)
    assert waiting.reason == "waits for a slot for another plan"
    said = one.gsd("-C", one.root, "why").out
    assert "it waits for a slot of the sessions on this machine" in said, said
    assert "gsd stop SESSION" in said
    os.kill(waiting.pid, signal.SIGKILL)

    assert until(first, ended).agents == 0
    until(second, lambda session: session.agents == SLOTS)
    again = begin(one, "resume")
    assert (queued := host.find_session(again)).state == "idle"
    assert queued.reason == "waits for a slot: 3 of 3 are in use"
    held.unlink()

    over = [until(session, ended, 120) for session in (again, second)]

    texts = [host.output_of(one.id).data.decode() for one in over]
    assert [(one.state, one.exit, one.reason) for one in over] == [("completed", 0, "")] * 2, "\n".join(texts)
    # The terminal says it, too.
    assert any("waits for a slot of the sessions" in text for text in texts)
    changes = [agents(project.facts()) for project in (one, two)]
    assert most([*chain(*changes)]) == SLOTS


def row(registry: Registry, name: str, **values: Any) -> Session:
    """Add a session of a project of its own; it is in the queue unless *values* say something else."""
    folder = Path("/nowhere") / name
    session = registry.add(project=folder, folder=folder, command=["run"])
    registry.update(session.id, **{**MINE, **values})
    return session


def share(registry: Registry, session: Session, working: int, wanted: int, slots: int = SLOTS) -> int:
    return share_slots(registry, session.id, working=working, wanted=wanted, slots=slots)


def test_a_session_in_the_queue_comes_before_a_further_slot(tmp_path: Path) -> None:
    with Registry(tmp_path) as registry:
        wide, other = row(registry, "wide"), row(registry, "other")
        assert take_slot(registry, wide.id, SLOTS) == ""
        assert share(registry, wide, 1, 3) == 2
        assert take_slot(registry, other.id, SLOTS) == ""
        assert share(registry, wide, 2, 3) == 2
        late = row(registry, "late")
        assert take_slot(registry, late.id, SLOTS) == "a slot: 3 of 3 are in use"

        # One of its plans is done, and another one could begin.
        assert share(registry, wide, 1, 3) == 1
        assert take_slot(registry, late.id, SLOTS) == ""
        assert registry.slots_in_use() == SLOTS


def test_of_two_runs_the_one_with_fewer_agents_comes_first_and_then_the_one_that_waits_longer(
    tmp_path: Path,
) -> None:
    with Registry(tmp_path) as registry:
        one, two = row(registry, "one"), row(registry, "two")
        for session in (one, two):
            assert take_slot(registry, session.id, SLOTS) == ""
        assert share(registry, one, 1, 4) == 2
        assert share(registry, two, 1, 4) == 1

        assert share(registry, one, 1, 4) == 1
        assert share(registry, two, 1, 4) == 2
        assert share(registry, two, 1, 4) == 1
        assert share(registry, one, 1, 4) == 2


def test_only_the_command_of_a_session_is_limited_and_without_a_registry_to_what_works(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = a_spend(working=2, wanted=5)

    def answer(spend: Spend = asks) -> Cap | None:
        found = asyncio.run(limit_agents(spend))
        assert isinstance(found, Cap | None)
        return found

    assert answer() is None
    with Registry() as registry:
        own = row(registry, "own", state="running", slot=1, pid=os.getpid())
        other = row(registry, "other", runner=1)
        monkeypatch.setenv("GSD_SESSION", own.id)
        assert answer(a_spend()) is None
        cap = answer()
        assert cap
        assert (cap.agents, registry.get(own.id).session.agents) == (3, 3)
        assert "3 in all" in cap.reason
        assert "gsd settings set --user sessions.slots 4" in cap.hint
        # A check of its agent that runs gsd itself is no session.
        monkeypatch.setenv("GSD_SESSION", other.id)
        assert answer() is None
    (state / "sessions" / "registry.db").write_bytes(b"x" * 5000)

    cap = answer()

    assert cap
    assert cap.agents == 2
    assert "cannot use the registry" in cap.reason
    assert cap.hint
    (state / "sessions" / "registry.db").unlink()


@pytest.mark.parametrize(("about", "expected"), [(MINE, 1), (ORPHAN, 1), (GONE, 3)])
def test_only_a_session_with_a_process_keeps_its_slots(
    tmp_path: Path, about: dict[str, Any], expected: int
) -> None:
    """A run that survives its runner still has agents."""
    with Registry(tmp_path) as registry:
        mine = row(registry, "mine", state="running", slot=1, agents=1)
        row(registry, "other", state="running", slot=2, agents=2, **about)
        # Nor does one in the queue whose runner is gone hold up anybody.
        row(registry, "queued", **GONE)

        assert share(registry, mine, 1, 4) == expected


STEP = st.tuples(
    st.sampled_from("abcde"), st.sampled_from(["begin", "more", "less", "end"]), st.integers(0, 5)
)


@given(steps=st.lists(STEP, max_size=30), slots=st.integers(1, 6))
def test_there_are_never_more_agents_than_slots_and_a_run_never_loses_one_that_works(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]], slots: int
) -> None:
    with Registry(tmp_path_factory.mktemp("registry")) as registry:
        known: dict[str, Session] = {}
        working: dict[str, int] = {}
        for name, what, number in steps:
            if what == "begin":
                known[name] = known.get(name) or row(registry, name)
                if name not in working and not take_slot(registry, known[name].id, slots):
                    working[name] = 1
            elif has := working.get(name, 0):
                left = max(1, has - number)
                match what:
                    case "more":
                        working[name] = share(registry, known[name], has, has + number, slots)
                        assert has <= working[name] <= has + number
                    case "less":
                        working[name] = share(registry, known[name], left, left, slots)
                        assert working[name] == left
                    case _:
                        registry.end(known[name].id, "completed", exit_code=0, reason="")
                        working[name] = 0
            assert sum(working.values()) == registry.slots_in_use() <= slots
        # Those that wait get a slot each as soon as there are as many, before a run gets another one.
        queued = [known[name].id for name in known if name not in working]
        for name in [name for name in working if working[name]]:
            share(registry, known[name], 1, slots + 1, slots)
            registry.end(known[name].id, "completed", exit_code=0, reason="")
        assert not any(take_slot(registry, session, slots) for session in queued[:slots])
