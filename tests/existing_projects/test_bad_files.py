"""Bad planning files give a result, or an error with file, line and hint, fast and in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

import attrs
import pytest

import gsd_core
from gsd_core.errors import PlanningError
from gsd_core.planning.health import check_health, repairs
from gsd_core.planning.phases import cached_plan
from gsd_core.planning.requirements import read_requirements
from gsd_core.planning.survey import read_planning, survey
from tests.existing_projects import mutations as m
from tests.planning.trees import make_project

SECONDS, MEGABYTES = 1.0, 200
REFERENCE = 0.03
"""CPU seconds of :func:`_reference` on an idle machine."""
LIMIT = SECONDS + 0.5
"""Seconds for a whole command, which includes the start of Python."""


def readers(root: Path) -> Iterator[Callable[[], object]]:
    """Yield every way in which the commands read a project."""
    yield lambda: read_planning(root)
    yield lambda: survey(root).phases(every=True)
    yield lambda: survey(root).view("3")
    yield lambda: read_requirements(root)
    yield lambda: repairs(root, check_health(root), "2026-01-31")


def failures(root: Path, cases: Iterable[m.Case]) -> list[str]:
    """Return the failures: a crash, an error without path, line or hint, or too much time."""
    found: list[str] = []
    for what, name, data in cases:
        file = root / ".planning" / name
        file.write_bytes(data)
        for read in readers(root):
            seconds, failure = _timed(read)
            for _ in range(2):  # other processes can only make it slower
                if seconds > SECONDS:
                    seconds = min(seconds, _timed(read)[0])
            if failure:
                found.append(f"{what} of {name}: {failure}")
            if seconds > SECONDS:
                found.append(f"{what} of {name}: {seconds:.1f} s")
        file.write_text(m.GOOD[name])
    return found


def _timed(read: Callable[[], object]) -> tuple[float, str]:
    """Return the CPU seconds that *read* would take on an idle machine, and its failure."""
    cached_plan.cache_clear()
    start = time.process_time()
    failure = _failure(read)
    seconds = time.process_time() - start
    if seconds > SECONDS:
        seconds *= min(1.0, REFERENCE / _reference())
    return seconds, failure


def _reference() -> float:
    """Return the CPU seconds of a fixed task; other processes, which share the caches, slow it down too."""
    start = time.process_time()
    total = 0
    for number in range(500_000):
        total += number & 7
    return time.process_time() - start


def _failure(read: Callable[[], object]) -> str:
    try:
        read()
    except PlanningError as error:
        return "" if error.path and error.line > 0 and error.hint else f"incomplete error: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_project(tmp_path, m.GOOD)


def test_the_unchanged_files_are_valid(root: Path) -> None:
    [phase] = survey(root).phases()

    assert (phase.number, phase.plans, phase.depends_on) == ("3", 1, ("1", "2", "2.1"))
    assert [len(plan.tasks) for plan in survey(root).view("3").plans] == [1]


@pytest.mark.long
def test_truncated_files_are_read_or_rejected(root: Path) -> None:
    assert failures(root, m.truncated(step=61)) == []


@pytest.mark.long
def test_files_changed_at_random_are_read_or_rejected(root: Path) -> None:
    assert failures(root, m.mutated(10, seed=1)) == []


@pytest.mark.long
def test_files_in_other_encodings_are_read_or_rejected(root: Path) -> None:
    assert failures(root, m.encoded()) == []


@pytest.mark.long
def test_costly_files_are_read_or_rejected(root: Path) -> None:
    cases = [case for number, case in enumerate(m.shaped()) if number % 5 == 0]

    assert failures(root, cases) == []


@pytest.mark.long
def test_more_than_two_thousand_bad_files(root: Path) -> None:
    cases = list(chain(m.truncated(step=2), m.mutated(120, seed=2), m.encoded(), m.shaped()))

    assert len(cases) > 2_000
    assert failures(root, cases) == []


@attrs.frozen
class Measured:
    """The result of a command in its own process, and what it used."""

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
if sys.platform == "linux":  # there, ru_maxrss starts with the parent's value
    lines = open("/proc/self/status").read().splitlines()
    megabytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
usage = {"exit": code, "seconds": used.ru_utime + used.ru_stime, "megabytes": megabytes}
print("\\n" + json.dumps(usage), file=sys.stderr)
"""


def measured(*args: str | Path) -> Measured:
    home = Path(gsd_core.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, args)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PYTHONPATH": f"{home}:{home / 'plugins'}", "PATH": "/usr/bin:/bin"},
    )
    stderr, _, last = done.stderr.rstrip().rpartition("\n")
    usage = json.loads(last)
    return Measured(usage["exit"], done.stdout, stderr, usage["seconds"], usage["megabytes"])


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


def check_limits(root: Path, *commands: tuple[str, ...]) -> None:
    """Run commands on a project with a bad file, and check the time and memory of each."""
    for command in commands:
        result = measured(*command, "-C", root, "--json")
        for _ in range(2):
            if result.seconds >= LIMIT:
                result = min(result, measured(*command, "-C", root, "--json"), key=lambda one: one.seconds)

        assert "Traceback" not in result.stderr
        assert "this is a bug" not in result.stderr
        assert result.exit in ((0, 1) if command[0] == "health" else (0, 2))
        if result.exit == 2:
            assert "hint: " in result.stderr
            assert ".planning/" in result.stderr
        assert result.seconds < LIMIT
        assert result.megabytes < MEGABYTES


@pytest.mark.slow
def test_a_file_of_50_mb_is_rejected_cheaply(root: Path) -> None:
    (root / ".planning/ROADMAP.md").write_bytes(big("text"))

    check_limits(root, ("phases",), ("health",))


@pytest.mark.long
@pytest.mark.parametrize("what", BIG)
@pytest.mark.parametrize("name", m.GOOD)
def test_files_of_50_mb_are_rejected_cheaply(root: Path, what: str, name: str) -> None:
    (root / ".planning" / name).write_bytes(big(what))

    check_limits(root, ("phases", "--all"), ("plans", "3"), ("gaps", "3"), ("requirements",), ("health",))


@pytest.mark.long
@pytest.mark.parametrize(
    "what", ["closed flow lists", "aliases", "closed JSON", "phases", "one flow", "tasks"]
)
def test_a_whole_command_stays_within_its_limits_on_the_costliest_files(root: Path, what: str) -> None:
    for shape, name, data in m.shaped():
        if shape == what and name in ("ROADMAP.md", "config.json", "phases/03-new/03-01-PLAN.md"):
            (root / ".planning" / name).write_bytes(data)
    check_limits(root, ("phases", "--all"), ("plans", "3"), ("health",))


PHASE = "### Phase 1: A\n**Goal**: a\n"


@pytest.mark.parametrize(
    ("text", "line", "mentioned"),
    [
        (b"", 1, "empty"),
        (b"\n \n", 1, "empty"),
        (b"# Roadmap\n\nFirst we plan, then we build.\n", 1, "no phase"),
        (f"# Roadmap\n\n```\n{PHASE}".encode(), 3, "```"),
        (f"# Roadmap\n\n<details>\n{PHASE}".encode(), 3, "<details>"),
        (b"# Roadmap\n\xff\n", 2, "UTF-8"),
        (b"x" * 2_100_000, 1, "2 MB"),
    ],
)
def test_a_roadmap_without_readable_phases_is_an_error_with_line_and_hint(
    root: Path, text: bytes, line: int, mentioned: str
) -> None:
    (root / ".planning/ROADMAP.md").write_bytes(text)

    with pytest.raises(PlanningError, match=rf"^\.planning/ROADMAP\.md:{line}: ") as error:
        read_planning(root)

    assert mentioned in str(error.value)
    assert error.value.hint
    assert "E003" in [issue.code for issue in check_health(root)]


@pytest.mark.parametrize(
    "text", ["## ✅ v1.0 MVP\n", f"<details>\n<summary>✅ v1.0 MVP</summary>\n\n{PHASE}\n</details>\n"]
)
def test_a_roadmap_whose_milestones_have_shipped_needs_no_phases(root: Path, text: str) -> None:
    (root / ".planning/ROADMAP.md").write_text(text)

    assert read_planning(root).phases == ()
    assert "E003" not in [issue.code for issue in check_health(root)]


def test_a_folder_in_place_of_a_file_is_an_error(root: Path) -> None:
    (root / ".planning/ROADMAP.md").unlink()
    (root / ".planning/ROADMAP.md").mkdir()

    with pytest.raises(PlanningError, match=r"\.planning/ROADMAP\.md:1: "):
        survey(root)


def test_a_dangling_link_is_ignored(root: Path) -> None:
    plan = root / ".planning/phases/03-new/03-01-PLAN.md"
    plan.unlink()
    plan.symlink_to("nowhere")

    assert [phase.plans for phase in survey(root).phases()] == [0]


def test_a_device_is_not_read(root: Path) -> None:
    (root / ".planning/ROADMAP.md").unlink()
    (root / ".planning/ROADMAP.md").symlink_to("/dev/zero")

    with pytest.raises(PlanningError, match=r"\.planning/ROADMAP\.md:1: "):
        survey(root)
