"""How often a forecast contains what the next phase then takes: ``python bench/forecast.py``.

Projects are simulated: phases of two plans with two tasks each, whose steps take times that are spread like a
log-normal distribution (sigma 0.5: two in three steps take between 0.6 and 1.6 times the usual). The share of
forecasts is printed that contained the time of the next phase, by the number of finished phases. It should be
80 % of them; with few phases it is less, because nothing is known that has not happened yet.

Options: the number of projects, the first seed.
"""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gsd_core.machine.facts import TaskCommitted
from gsd_core.machine.state import State
from gsd_core.planning.model import PhaseView, Plan, Task
from gsd_core.views.forecast import forecast
from gsd_core.views.summary import StepDone

USUAL = {"discuss": 60, "plan": 200, "execute/a": 300, "execute/b": 300, "verify": 200, "complete": 1}
TASKS = tuple(Task(number=number, name="") for number in (1, 2))
DONE = tuple(TaskCommitted(task=str(task.number), name="", commit="") for task in TASKS)


def contains(finished: int, dice: random.Random) -> bool:
    """Whether the forecast after so many *finished* phases contains what the next one takes."""
    at, steps, phases = datetime(2026, 1, 1, tzinfo=UTC), list[StepDone](), list[PhaseView]()
    for number in map(str, range(1, finished + 2)):
        for kind, usual in USUAL.items():
            end = at + timedelta(seconds=usual * dice.lognormvariate(0, 0.5))
            steps.append(
                StepDone(
                    id=f"{number}/{kind}",
                    started_at=at,
                    status="completed",
                    spans=((at, end),),
                    tasks=DONE if "execute" in kind else (),
                )
            )
            at = end
        plans = tuple(Plan(id=name, phase=number, tasks=TASKS) for name in "ab")
        phases.append(PhaseView(project=Path(), number=number, name="", plans=plans))
    return forecast(State(), phases, steps, slots=1).earlier[-1].within


def main() -> None:
    """Print the shares."""
    count, first = (int(given) for given in [*sys.argv[1:], *("150", "1")[len(sys.argv) - 1 :]])
    for finished in (2, 3, 5, 10):
        dice = random.Random(first * 1000 + finished)
        share = sum(contains(finished, dice) for _ in range(count)) / count
        print(f"{finished:2} finished phases: {share:.0%} of {count} forecasts contained the next one")


if __name__ == "__main__":
    main()
