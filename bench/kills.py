"""Kill runs and commands again and again, and look for work that was lost, doubled or paid twice.

Run ``python bench/kills.py [--kills 1000] [--seed N] [--jobs 2]`` from the root of the repository, in an
environment with the development requirements. A thousand kills take about half an hour on two cores; the
slow tests do the same with 60.

With ``--parallel``, each is one phase of six plans, four of which are executed side by side in work trees;
two of these are in conflict. Then every commit has to be in the branch, and no work tree may be left.

With ``--machine``, all that such a run writes is copied while it is written, by ``cp -a`` and so at no one
moment, and the run continues with the copy: the machine died, and a backup was restored. What does not fit
together in the copy may be refused, but has to be named. With ``--person``, somebody edits, creates, commits,
amends, switches and stashes in the checkout meanwhile: nothing of theirs may be lost, and a run that ends
early has to say what it waits for. For both, ``--kills`` counts the copies, or the acts.

``python bench/kills.py --commands [NAME ...] [--moments 100]`` does so with the commands that do one thing:
each is killed at that many moments, half of them calls of the system (strace is needed), and typed again.

Each run is a rehearsal of two phases in a repository of its own. It is killed, alone or with its process
group, after a random number of events, and started again until it is finished. Then the project, its history
and its journal are examined. The seed decides when the kills come, but not where they hit: that depends on
the machine, so the kinds of facts that were last in the journal are counted and printed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.e2e.project import Project
from tests.kills.campaign import all_defects, run_with_kills
from tests.kills.commands import CASES, Campaign, Case
from tests.kills.disturbed import run_beside_a_person, run_on_a_dying_machine

Disturbance = Callable[[Project, random.Random], tuple[list[str], list[str]]]


def killed(project: Project, chance: random.Random, *, parallel: bool = False) -> tuple[list[str], list[str]]:
    """Do a run that is killed; return where, and its defects."""
    hit = run_with_kills(project, chance, 25, parallel=parallel)
    return hit, [*all_defects(project)]


KINDS: dict[str, Disturbance] = {
    "parallel": partial(killed, parallel=True),
    "machine": partial(run_on_a_dying_machine, deaths=8),
    "person": partial(run_beside_a_person, times=8),
}


def campaign(folder: Path, seed: int, disturbed: Disturbance) -> tuple[list[str], list[str]]:
    """Do one run; return where it was hit, and its defects."""
    project = Project(folder)
    folder.mkdir()
    try:
        hit, found = disturbed(project, random.Random(seed))
        return hit, [f"run with seed {seed}: {defect}" for defect in found]
    except AssertionError as error:
        return [], [f"run with seed {seed}: {error}"]
    finally:
        project.clear()


def kill_command(case: Case, folder: Path, moments: int, seed: int) -> int:
    """Kill a command at so many moments, print what was found, and return the number of defects."""
    campaign, chance, began = Campaign(case, Project(folder / "p")), random.Random(seed), time.monotonic()
    folder.mkdir()
    try:
        campaign.prepare()
        # Every other one at a call of the system.
        found = [one for at in range(moments) for one in campaign.kill_once(chance, at_call=at % 2 == 0)]
    except AssertionError as error:
        found = [f"{case.name}: {error}"]
    finally:
        campaign.end()
    hit = ", ".join(f"{count} {where}" for where, count in campaign.hit.most_common())
    minutes = (time.monotonic() - began) / 60
    print(f"{case.name}: {moments} kills, {minutes:.1f} minutes, {len(found)} defects ({hit})", flush=True)
    for defect in found:
        print(f"  {defect}", flush=True)
    return len(found)


def kill_commands(names: list[str], moments: int, seed: int, jobs: int) -> int:
    """Kill each command of those *names*, or all; return 1 if there are defects."""
    cases = [case for case in CASES if not names or case.name in names]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        each = [
            pool.submit(kill_command, case, Path(folder) / str(number), moments, seed)
            for number, case in enumerate(cases)
        ]
        return 1 if sum(one.result() for one in each) else 0


def main() -> int:
    """Print the result; return 1 if there are defects."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    for name in KINDS:
        parser.add_argument(f"--{name}", dest="kind", action="store_const", const=name)
    parser.add_argument("--commands", nargs="*", default=None, metavar="NAME")
    parser.add_argument("--moments", type=int, default=100)
    options = parser.parse_args()
    if options.commands is not None:
        return kill_commands(options.commands, options.moments, options.seed, options.jobs)
    hit: list[str] = []
    found: list[str] = []
    runs, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        while len(hit) < options.kills:
            seeds = [options.seed + runs + number for number in range(options.jobs)]
            each = [
                pool.submit(campaign, Path(folder) / str(s), s, KINDS.get(options.kind, killed))
                for s in seeds
            ]
            for done in each:
                where, defects = done.result()
                hit += where
                found += defects
            runs += len(seeds)
            if found:
                break
    minutes = (time.monotonic() - began) / 60
    what = f"{options.kind or ''} disturbances".lstrip()
    print(f"{len(hit)} {what} in {runs} runs, {minutes:.1f} minutes: {len(found)} defects")
    for kind, count in Counter(hit).most_common():
        print(f"{count:5}  {kind}")
    for defect in found:
        print(defect)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
