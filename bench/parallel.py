"""Measure what gsd itself takes while plans are executed side by side: ``python bench/parallel.py``.

One phase of N plans, of which all but the first wait only for that one, is executed by simulated agents that
take T seconds for each plan, in a real repository, with real commits, checks and merges. No schedule is
shorter than the critical path, or than all work divided by the number of agents; what it takes beyond the
longer of the two, divided by the number of tasks, is printed with its spread over the repetitions.

Then work trees of a repository with 10,000 files are entered, as a plan's attempt does: with the files of the
repository in the page cache (warm), and after they were dropped from it (cold). None is removed before all
are made: without a journal, ext4 looks at each file that was deleted in the last minutes before it makes a
new one, which takes ten times as long.

The load of the machine, the processor's time of gsd and its children, and the number of processes that are
started are printed, too: on a busy machine only these say something. Simulated agents have no sandbox, whose
cost ``bench/sandbox.py`` measures. Returns 1 if a median is above its limit.

Options: ``--plans``, ``--seconds``, ``--slots``, ``--files``, ``--times``, ``--profile FILE`` (of cProfile).
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).parents[1]))

from gsd_core.git import Git
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_plugins.rehearsal import FakeAgent, Scenario
from gsd_plugins.rehearsal.plans import ScriptedPlan, ScriptedPlans
from tests.run import harness as h

LIMIT_OVERHEAD, LIMIT_TREE = 0.5, 1.0


@attrs.frozen(kw_only=True)
class _ManyPlans(ScriptedPlans):
    """One phase: a plan, and *count* plans that depend on it."""

    count: int

    def for_phase(self, number: str) -> tuple[ScriptedPlan, ...]:
        if number != "1":
            return ()
        return (super().for_phase(number)[0], *(self._number(n) for n in range(self.count)))

    def _number(self, number: int) -> ScriptedPlan:
        plan = self.plan("search", module=f"phase_1_{number}")
        [task] = plan.tasks
        truths = {f"{text}, in module {number}": serves for text, serves in plan.truths.items()}
        # A check that takes no time: what is measured is not the plan's own.
        [edit] = task.edits[1:]
        task = attrs.evolve(task, edits=(edit,), check=f"grep -q containing {edit.path}")
        return attrs.evolve(plan, name=f"Search {number}", depends_on=(1,), truths=truths, tasks=(task,))


@attrs.frozen(slots=False)
class _Many(Scenario):
    count: int = 0

    def _plans(self, ending: str = ".") -> ScriptedPlans:
        return _ManyPlans(product=self.product, phases=1, ending=ending, asks=False, count=self.count)


started: Counter[str] = Counter()
"""The processes that this one started, by the name of the program."""


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen":
        started[Path(os.fsdecode(str(arguments[0]))).name] += 1


def overhead(folder: Path, plans: int, seconds: float, slots: int) -> tuple[float, float, float, float]:
    """Return the time beyond the bound and the processor's, in seconds for each task, and what was started.

    That is the number of processes of git, and of others, for each task.
    """
    root = h.repository(folder / "project")

    spent: dict[str, float] = {}
    count: dict[str, tuple[int, int]] = {}

    async def work(task: AgentTask, _: AgentHost) -> AgentResult | None:
        spent.setdefault(task.role, sum(os.times()[:4]))
        count.setdefault(task.role, (started["git"], started.total()))
        if task.role == "executor":
            await asyncio.sleep(seconds)
        return None

    scenario = _Many(h.IDEA, phases=1, question=False, gap=False, overloaded=False, count=plans - 1)
    settings = {"workspace": ["worktree", "inplace"], "max_parallel": slots, "depth": "comprehensive"}
    end = h.do(h.request(root, h.Watched(FakeAgent(scenario), work), given=h.idea(), run=settings))
    assert end.outcome == "done", end.reason
    executed = [one for one in h.facts(root, "attempt.started", "step.completed") if "/execute/" in one.step]
    took = (executed[-1].at - executed[0].at).total_seconds()
    bound = seconds + max(seconds, (plans - 1) * seconds / slots)
    tasks = len(h.facts(root, "task.committed"))
    git, all_of_them = (b - a for a, b in zip(count["executor"], count["verifier"], strict=True))
    processor = spent["verifier"] - spent["executor"]
    return (took - bound) / tasks, processor / tasks, git / tasks, (all_of_them - git) / tasks


def repository_of(folder: Path, files: int) -> Path:
    """Return a new repository of so many small files."""
    root = h.repository(folder)
    for number in range(files):
        path = root / f"d{number // 100:03}" / f"s{number % 100 // 20}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * (20 + number % 300))
    h.git(root, "config", "gc.auto", "0")  # a background process would be measured, too
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "Add files")
    return root


def drop_from_cache(root: Path) -> None:
    """Tell the system that the contents of *root* will not be needed soon."""
    os.sync()
    for path in root.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


async def tree_seconds(root: Path, path: Path, *, cold: bool) -> tuple[float, float]:
    """Return how long it takes to enter a new work tree, and the processor's time, in seconds."""
    if cold:
        drop_from_cache(root)
    began, spent = time.monotonic(), sum(os.times()[:4])
    os.close(await Git(root).enter_worktree(path))
    return time.monotonic() - began, sum(os.times()[:4]) - spent


def spread(values: Sequence[float]) -> str:
    """Return the median and the range of *values*."""
    return f"median {statistics.median(values):.2f}, {min(values):.2f} to {max(values):.2f}"


def main() -> int:
    """Print what was measured; return 1 if a median is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--slots", type=int, default=3)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    profile = cProfile.Profile()
    sys.addaudithook(_count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["GSD_STATE_DIR"] = str(folder / "state")
        each: list[tuple[float, float, float, float]] = []
        for number in range(options.times):
            if options.profile:
                profile.enable()
            each.append(overhead(folder / str(number), options.plans, options.seconds, options.slots))
            profile.disable()
        if options.profile:
            profile.dump_stats(options.profile)
        over, spent, git, others = zip(*each, strict=True)
        load = f"load {os.getloadavg()[0]:.1f}"
        print(f"{options.plans} plans of {options.seconds} s, {options.slots} at once, {load}")
        print(f"s beyond the bound for each task: {spread(over)}; of the processor: {spread(spent)}")
        print(f"processes for each task: {spread(git)} of git, {spread(others)} others", flush=True)
        root = repository_of(folder / "files", options.files)
        warm: Sequence[float] = ()
        for kind in ("cold", "warm"):
            paths = [folder / "trees" / f"{kind}-{number}" for number in range(2 * options.times)]
            measured = [asyncio.run(tree_seconds(root, path, cold=kind == "cold")) for path in paths]
            warm, spent = zip(*measured, strict=True)
            made = f"s to enter a work tree of {options.files:,} files, {kind}: {spread(warm)}"
            print(f"{made}; of the processor: {spread(spent)}", flush=True)
    is_slow = statistics.median(over) > LIMIT_OVERHEAD or statistics.median(warm) > LIMIT_TREE
    return int(is_slow)


if __name__ == "__main__":
    sys.exit(main())
