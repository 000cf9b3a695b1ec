"""What a session of a project waits for besides its turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_plugins.sessions.barriers import PhaseFacts, Work, gate_of, will_be_possible, work_of
from gsd_plugins.sessions.registry import Registry, Row

CHAIN = {
    "1": PhaseFacts(),
    "2": PhaseFacts(depends_on=("1",)),
    "3": PhaseFacts(depends_on=("2",)),
}


def queue(tmp_path: Path, *commands: str) -> list[Row]:
    with Registry(tmp_path / "registry") as registry:
        for command in commands:
            registry.add(project=tmp_path, folder=tmp_path, command=command.split())
        return registry.all()


def gates(rows: list[Row], phases: dict[str, PhaseFacts], plan_ahead: int = 1) -> list[str]:
    return [gate_of(row, [o for o in rows if o is not row], phases, plan_ahead) for row in rows]


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("run idea.md", Work(does="run")),
        ("-C p -p x run idea.md --phases 1-3", Work(does="run", range="1-3")),
        ("resume --only=2", Work(does="resume", range="2")),
        ("plan 02", Work(does="plan", range="2")),
        ("plan --gaps 2", Work(does="plan", range="2", gaps=True)),
        ("execute --seed 7 2.1", Work(does="execute", range="2.1")),
        ("discuss 3", Work(does="discuss", range="3")),
        ("verify 3 --seed 7", Work(does="verify", range="3")),
        ("execute", Work(does="execute")),
        ("exec 3", Work()),
        ("run --phases", Work(does="run")),
        ("-C", Work()),
        ("", Work()),
    ],
)
def test_the_work_of_a_command_is_its_verb_and_its_phases(command: str, work: Work) -> None:
    assert work_of(command.split()) == work


def test_a_phase_waits_for_the_session_that_is_to_verify_what_it_depends_on(tmp_path: Path) -> None:
    rows = queue(tmp_path, "execute 2", "verify 1", "execute 1", "version")

    executed = CHAIN | {"1": PhaseFacts(executed=True)}
    assert gates(rows, executed) == ["session s2, which is to verify phase 1", "", "", ""]
    assert gates(rows, CHAIN | {"1": PhaseFacts(executed=True, verified=True)}) == [""] * 4
    assert gates([row for row in rows if row.number != 2], executed) == [""] * 3


def test_what_needs_a_phase_waits_for_the_session_that_is_to_execute_it(tmp_path: Path) -> None:
    rows = queue(tmp_path, "execute 2", "verify 1", "execute 1", "verify 2")
    first, third = (f"session s{n}, which is to execute phase" for n in (1, 3))

    assert gates(rows, CHAIN)[1:] == [f"{third} 1", "", f"{first} 2"]
    assert gates([rows[0], rows[2]], CHAIN) == [f"{third} 1", ""]
    assert gates([rows[0], rows[2]], CHAIN | {"1": PhaseFacts(executed=True)}) == ["", ""]


@pytest.mark.parametrize(
    ("command", "others", "possible"),
    [
        ("execute 2", ["execute 1"], False),
        ("execute 2", ["execute 1", "plan 2"], True),
        ("execute 2", ["execute 1", "plan 2 --gaps"], False),
        ("execute 2", ["run idea.md"], True),
        ("execute 1", ["plan 1"], True),
        ("execute 1", ["plan 2", "verify 1"], False),
        ("execute 5", ["plan 5 --gaps"], True),
        ("execute 5", ["plan 5", "run"], False),
        ("execute 2", ["run --phases 2-3"], False),
        ("execute 2", ["verify 1", "plan 1"], False),
        ("execute 2", [], False),
        ("execute 4", ["plan 4", "execute 1"], False),
        ("execute 4", ["plan 4", "execute 1", "execute 3"], True),
        ("verify 1", ["execute 1"], True),
        ("verify 1", ["execute 2"], False),
        ("exec 1", ["execute 1"], False),
    ],
)
def test_a_session_may_wait_only_if_others_will_do_all_that_is_missing(
    command: str, others: list[str], possible: bool, tmp_path: Path
) -> None:
    done = PhaseFacts(planned=True, executed=True)
    phases = CHAIN | {"4": PhaseFacts(depends_on=("1", "3")), "5": done}

    assert will_be_possible(command.split(), queue(tmp_path, *others), phases) is possible


def test_what_executes_a_phase_waits_for_the_session_that_is_to_plan_it(tmp_path: Path) -> None:
    rows = queue(tmp_path, "execute 1", "verify 1", "plan 1", "plan 1 --gaps")
    planned = {"1": PhaseFacts(planned=True)}
    executed = {"1": PhaseFacts(planned=True, executed=True)}

    first = "session s1, which is to execute phase 1"
    assert gates(rows, CHAIN) == ["session s3, which is to plan phase 1", first, "", ""]
    assert gates(rows, planned) == ["", first, "", ""]
    assert gates(rows, executed) == ["session s4, which is to plan phase 1", "", "", ""]


def test_a_run_of_all_phases_waits_for_nobody(tmp_path: Path) -> None:
    executed = CHAIN | {"1": PhaseFacts(executed=True)}
    assert gates(queue(tmp_path, "run idea.md", "verify 1", "resume"), executed) == ["", "", ""]


def test_of_sessions_that_wait_for_each_other_the_oldest_begins(tmp_path: Path) -> None:
    rows = queue(tmp_path, "run --phases 1,3", "run --phases 2")

    assert gates(rows, CHAIN) == ["", "session s1, which is to verify phase 1"]


def test_plans_are_made_only_so_far_ahead(tmp_path: Path) -> None:
    rows = queue(tmp_path, "plan 3")
    planned = {number: PhaseFacts(planned=True) for number in ("1", "2")} | {"3": PhaseFacts()}

    [why] = gates(rows, planned)

    assert why == "phase 1 to be verified (2 are planned ahead, sessions.plan_ahead = 1)"
    assert gates(rows, planned, plan_ahead=2) == [""]
    assert gates(rows, planned | {"1": PhaseFacts(planned=True, verified=True)}) == [""]


COMMANDS = st.sampled_from(
    [f"{verb} {number}" for verb in ("plan", "execute", "verify") for number in range(1, 6)]
    + [f"run --phases {low}{rest}" for low in range(1, 5) for rest in ("", "-5", ",5", ",3")]
)


@given(
    st.lists(COMMANDS, min_size=1, max_size=7),
    st.lists(st.sets(st.integers(1, 4)), min_size=5, max_size=5),
    st.data(),
)
def test_there_is_always_a_session_that_may_begin(
    tmp_path_factory: pytest.TempPathFactory,
    commands: list[str],
    needs: list[set[int]],
    data: st.DataObject,
) -> None:
    phases = {
        str(number): PhaseFacts(depends_on=tuple(str(n) for n in needed if n < number))
        for number, needed in enumerate(needs, 1)
    }
    rows = queue(tmp_path_factory.mktemp("queue"), *commands)

    # Whichever of them ends next, verified or not, one more can begin, until none is left.
    while rows:
        free = [row for row, why in zip(rows, gates(rows, phases), strict=True) if not why]
        assert free, [row.session.command for row in rows]
        rows.remove(data.draw(st.sampled_from(free)))
