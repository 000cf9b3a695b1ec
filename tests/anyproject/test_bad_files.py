"""Bad planning files: a result, or an error with file, line and hint, at once and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import gsd_core
from gsd_core.errors import PlanningError
from gsd_core.planning.health import examine, repairs
from gsd_core.planning.requirements import read_requirements
from gsd_core.planning.survey import read_planning, survey
from tests.anyproject import mutations as m
from tests.anyproject.tree import project

SECONDS, MEGABYTES = 1.0, 200


def everything(root: Path) -> Iterator[Any]:
    """All ways in which the commands read a project."""
    yield lambda: read_planning(root)
    yield lambda: survey(root).phases(every=True)
    yield lambda: survey(root).view("3")
    yield lambda: read_requirements(root)
    yield lambda: repairs(root, examine(root), "2026-01-31")


def troubles(root: Path, cases: Iterable[m.Case]) -> list[str]:
    """Return what went wrong: a crash, an error that does not help, or too much time."""
    found: list[str] = []
    for what, name, data in cases:
        file = root / ".planning" / name
        file.write_bytes(data)
        for read in everything(root):
            began = time.process_time()
            if trouble := _trouble(read):
                found.append(f"{what} of {name}: {trouble}")
            if (spent := time.process_time() - began) > SECONDS:
                found.append(f"{what} of {name}: {spent:.1f} s")
        file.write_text(m.GOOD[name])
    return found


def _trouble(read: Any) -> str:
    try:
        read()
    except PlanningError as error:
        return "" if error.path and error.line > 0 and error.hint else f"no help: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path, m.GOOD)


def test_the_good_files_are_good(root: Path) -> None:
    [phase] = survey(root).phases()

    assert (phase.number, phase.plans, phase.depends_on) == ("3", 1, ("1", "2", "2.1"))
    assert [len(plan.tasks) for plan in survey(root).view("3").plans] == [1]


def test_files_cut_anywhere_are_read_or_refused(root: Path) -> None:
    assert troubles(root, m.truncated(step=61)) == []


def test_files_changed_at_random_are_read_or_refused(root: Path) -> None:
    assert troubles(root, m.mutated(10, seed=1)) == []


def test_files_in_other_encodings_are_read_or_refused(root: Path) -> None:
    assert troubles(root, m.encoded()) == []


def test_shapes_that_eat_time_are_read_or_refused(root: Path) -> None:
    cases = [case for number, case in enumerate(m.shaped()) if number % 5 == 0]

    assert troubles(root, cases) == []


@pytest.mark.slow
def test_two_thousand_bad_files_and_more(root: Path) -> None:
    cases = list(chain(m.truncated(step=2), m.mutated(120, seed=2), m.encoded(), m.shaped()))

    assert len(cases) > 2_000
    assert troubles(root, cases) == []


@frozen
class Spent:
    """What a command did and used, in a process of its own."""

    exit: int
    stdout: str
    stderr: str
    seconds: float
    megabytes: float


MEASURE = """
import resource, sys, json
from gsd_core.cli import main
code = 0
try:
    main()
except SystemExit as end:
    code = end.code or 0
used = resource.getrusage(resource.RUSAGE_SELF)
megabytes = used.ru_maxrss / 2**20
if sys.platform == "linux":  # where ru_maxrss begins with what the parent had
    lines = open("/proc/self/status").read().splitlines()
    megabytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
told = {"exit": code, "seconds": used.ru_utime + used.ru_stime, "megabytes": megabytes}
print("\\n" + json.dumps(told), file=sys.stderr)
"""


def measured(*args: str | Path) -> Spent:
    home = Path(gsd_core.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, args)], capture_output=True, text=True, check=True,
        timeout=120, env={"PYTHONPATH": f"{home}:{home / 'plugins'}", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    stderr, _, last = done.stderr.rstrip().rpartition("\n")
    told = json.loads(last)
    return Spent(told["exit"], done.stdout, stderr, told["seconds"], told["megabytes"])


BIG = {
    "text": (b"", b"a line of words\n", b""),
    "one line": (b"", b"x", b""),
    "frontmatter": (b"---\n", b"key: value\n", b"---\n"),
    "zeros": (b"", b"\0", b""),
    "JSON": (b"[", b"1,", b"1]"),
}


def big(what: str) -> bytes:
    head, part, end = BIG[what]
    return head + part * (50_000_000 // len(part)) + end


def bounded(root: Path, *commands: tuple[str, ...]) -> None:
    """Run commands on a project with a bad file, and hold each to its limits."""
    for command in commands:
        spent = measured(*command, "-C", root, "--json")

        assert "Traceback" not in spent.stderr
        assert "this is a bug" not in spent.stderr
        assert spent.exit in ((0, 1) if command[0] == "health" else (0, 2))
        if spent.exit == 2:
            assert "hint: " in spent.stderr
            assert ".planning/" in spent.stderr
        assert spent.seconds < SECONDS + 0.5, "with the start of Python"
        assert spent.megabytes < MEGABYTES


def test_a_file_of_50_mb_costs_nothing(root: Path) -> None:
    (root / ".planning/ROADMAP.md").write_bytes(big("text"))

    bounded(root, ("phases",), ("health",))


@pytest.mark.slow
@pytest.mark.parametrize("what", BIG)
@pytest.mark.parametrize("name", m.GOOD)
def test_files_of_50_mb_cost_nothing(root: Path, what: str, name: str) -> None:
    (root / ".planning" / name).write_bytes(big(what))

    bounded(root, ("phases", "--all"), ("plans", "3"), ("gaps", "3"), ("requirements",), ("health",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", ["closed flow lists", "aliases", "closed JSON", "phases", "one flow", "tasks"]
)
def test_the_worst_shapes_stay_in_their_limits_from_start_to_end(root: Path, what: str) -> None:
    for shape, name, data in m.shaped():
        if shape == what and name in ("ROADMAP.md", "config.json", "phases/03-new/03-01-PLAN.md"):
            (root / ".planning" / name).write_bytes(data)
    bounded(root, ("phases", "--all"), ("plans", "3"), ("health",))


def test_what_is_no_file_is_an_error_that_says_so(root: Path) -> None:
    (root / ".planning/ROADMAP.md").unlink()
    (root / ".planning/ROADMAP.md").mkdir()

    with pytest.raises(PlanningError, match=r"\.planning/ROADMAP\.md:1: is no file"):
        survey(root)


def test_a_link_that_leads_nowhere_is_no_file(root: Path) -> None:
    plan = root / ".planning/phases/03-new/03-01-PLAN.md"
    plan.unlink()
    plan.symlink_to("nowhere")

    assert [phase.plans for phase in survey(root).phases()] == [0]


def test_a_device_is_not_read(root: Path) -> None:
    (root / ".planning/ROADMAP.md").unlink()
    (root / ".planning/ROADMAP.md").symlink_to("/dev/zero")

    with pytest.raises(PlanningError, match="is no file"):
        survey(root)
