"""Compare how long plans take with gsd's schedule, wave by wave, and at best: ``python bench/schedule.py``.

A hundred random graphs of 5 to 60 plans are worked off in a simulation, by three agents. The sizes of plans
are spread like a log-normal distribution (sigma 0.6), and nine in ten plans depend on one to three of the ten
before them. No schedule is shorter than the critical path, or than all work divided by the number of agents;
the ratio to the longer of the two is printed. Last, one decision among 1,000 plans is timed, and how long it
takes to find out what is due in a phase of 1,000 plans, 400 of which are executed.

Options: the number of graphs, the number of agents, the first seed.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from gsd_core.machine.due import Start, due
from gsd_core.machine.schedule import Schedule, Work
from gsd_core.machine.state import PhaseSnapshot, PlanSnapshot, Snapshot, State, StepRecord
from gsd_core.model.ids import EXECUTE, StepId

LIMIT_RATIO, LIMIT_SECONDS = 1.05, 0.01


def graph(seed: int, plans: int) -> Schedule:
    """Return a random graph of so many plans."""
    dice = random.Random(seed)
    works: list[Work] = []
    for number in range(plans):
        before = [work.id for work in works[-10:]]
        count = min(len(before), dice.randint(1, 3) if dice.random() < 0.9 else 0)
        after = tuple(dice.sample(before, count))
        works.append(Work(id=f"{number:04}", after=after, size=dice.lognormvariate(0, 0.6)))
    return Schedule(works=works)


def makespan(schedule: Schedule, slots: int) -> float:
    """Return when the last plan ends, if each takes as long as its size."""
    return schedule.makespan({work.id: work.size for work in schedule.works}, slots)


def by_waves(schedule: Schedule, slots: int) -> float:
    """Return when the last plan ends if none starts before all of the wave before are done."""
    waves = waves_of(schedule)
    parts = [Schedule(works=[work for work in schedule.works if work.id in wave]) for wave in waves]
    return sum(makespan(part, slots) for part in parts)


def waves_of(schedule: Schedule) -> list[set[str]]:
    """Return the plans wave by wave: each in the first one after all that it depends on."""
    found: dict[str, int] = {}
    for work in schedule.works:
        found[work.id] = max((found[name] + 1 for name in schedule.after[work.id]), default=0)
    return [
        {name for name, wave in found.items() if wave == number} for number in range(max(found.values()) + 1)
    ]


def bound(schedule: Schedule, slots: int) -> float:
    """Return what no schedule can be shorter than."""
    return max(*schedule.lengths.values(), sum(work.size for work in schedule.works) / slots)


def decision_seconds() -> float:
    """Return how long one decision among 1,000 plans takes, the graph read anew, at best of ten."""
    works = graph(1, 1000).works
    done = {work.id for work in works[:400]}
    times: list[float] = []
    for _ in range(10):
        began = time.process_time()
        Schedule(works=works).startable(done=done, slots=3)
        times.append(time.process_time() - began)
    return min(times)


def due_seconds() -> float:
    """Return how long it takes to find out what is due in a phase of 1,000 plans, at best of ten."""
    works = graph(1, 1000).works
    plans = tuple(
        PlanSnapshot(
            id=f"01-{work.id}", summary=number < 400, depends_on=tuple(f"01-{one}" for one in work.after)
        )
        for number, work in enumerate(works)
    )
    done = [StepId(kind=EXECUTE, phase="1", detail=plan.id) for plan in plans[:400]]
    records = {str(step): StepRecord(id=step, status="completed", completed=1, attempt=1) for step in done}
    seen = Snapshot(phases=(PhaseSnapshot(number="1", context=True, plans=plans),))
    state = State(run="r", epoch=1, seen=seen, steps=records)
    times: list[float] = []
    for _ in range(10):
        began = time.process_time()
        found = due(state, capacity=3)
        times.append(time.process_time() - began)
        assert any(isinstance(one, Start) and one.step.kind == EXECUTE for one in found), found
    return min(times)


def main() -> int:
    """Print the ratios; return 1 if the median of gsd's, or the time of a decision, is above its limit."""
    count, slots, first = (int(given) for given in [*sys.argv[1:], *("100", "3", "1")[len(sys.argv) - 1 :]])
    graphs = [graph(first + number, 5 + number * 55 // max(count - 1, 1)) for number in range(count)]
    kinds: dict[str, Callable[[Schedule], float]] = {
        "gsd": lambda one: makespan(one, slots),
        "waves": lambda one: by_waves(one, slots),
    }
    medians: dict[str, float] = {}
    for name, took in kinds.items():
        ratios = sorted(took(one) / bound(one, slots) for one in graphs)
        medians[name] = statistics.median(ratios)
        tenth = ratios[len(ratios) * 9 // 10]
        spread = f"90 % below {tenth:.3f}, at most {ratios[-1]:.3f}"
        print(f"{name:5} median {medians[name]:.3f} of the bound, {spread}")
    seconds = decision_seconds()
    print(f"a decision among 1,000 plans takes {1000 * seconds:.1f} ms")
    found = due_seconds()
    print(f"what is due among 1,000 plans is found in {1000 * found:.1f} ms")
    return int(medians["gsd"] > LIMIT_RATIO or max(seconds, found) > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
