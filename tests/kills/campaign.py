"""Runs that are killed at random moments, for the tests here and for ``bench/kills.py``."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from gsd_core.machine.facts import Record
from tests.e2e.project import EXAMPLE, FAKE, Project, defects
from tests.run.harness import git

STARTS = 60
"""A run that is not finished by then hangs."""


PARALLEL = {
    "GSD_FAKE_PHASES": "1",
    "GSD_FAKE_WIDE": "true",
    "GSD_DEPTH": "comprehensive",
    "GSD_WORKSPACE": "worktree,inplace",
}
"""The variables for a run of six plans, four of them side by side, two of which are in conflict."""


def run_with_kills(
    project: Project, chance: random.Random, kills: int, *, parallel: bool = False
) -> list[str]:
    """Run a project to its end, killed at random moments up to *kills* times.

    Returns the kind of the last fact in the journal at each kill: where the run was hit.
    """
    project.create()
    project.environment = {
        "GSD_FAKE_PHASES": "2",
        "GSD_RETRY_ATTEMPTS": "2",
        **(PARALLEL if parallel else {}),
    }
    hit: list[str] = []
    for _ in range(STARTS):
        started = project.start("run", EXAMPLE, *FAKE, "--yes", "--output-format", "stream-json")
        if len(hit) < kills:
            started.until(started.has_lines(chance.randint(0, 14)))
            time.sleep(chance.uniform(0, 0.12))
            ended = started.kill(group=len(hit) % 2 == 1)
            if ended.exit == -9:
                facts = project.facts() if project.journal_file.exists() else []
                hit.append(facts[-1].kind if facts else "before the journal")
        else:
            ended = started.wait()
        if ended.exit == 0:
            return hit
        # Lost three times in a row is a question; with nobody to answer the run ends, and starts again.
        assert ended.exit == -9 or "three attempts in a row were lost" in ended.out, ended.out + ended.err
    raise AssertionError(f"not finished after {STARTS} starts")


def all_defects(project: Project) -> Iterator[str]:
    """Yield what is wrong with a finished project and with its journal."""
    yield from defects(project)
    facts = project.facts()
    yield from bought_twice(facts)
    tasks = Counter(fact.data["task"] for fact in facts if fact.kind == "task.committed")
    yield from (f"task recorded twice: {task}" for task, count in tasks.items() if count > 1)
    if len(trees := git(project.root, "worktree", "list").splitlines()) > 1:
        yield f"work trees left: {trees}"
    history = git(project.root, "log", "--format=%H").splitlines()
    made = [fact.data["commit"] for fact in facts if fact.kind == "task.committed"]
    yield from (f"commit lost: {sha}" for sha in made if sha not in history)
    if [fact.seq for fact in facts] != sorted(fact.seq for fact in facts):
        yield "the journal's order is broken"


def bought_twice(facts: Iterable[Record]) -> Iterator[str]:
    """Yield agent calls that were asked again, with the same prompt, although their answer was recorded.

    A step that failed starts from scratch, which is not double spending: its earlier answers are void.
    """
    answered: set[tuple[str, str, str]] = set()
    prompts: dict[tuple[str, str], str] = {}
    for fact in facts:
        if fact.kind == "step.failed":
            answered = {call for call in answered if call[0] != fact.step}
        elif fact.kind == "agent.opened":
            prompts[fact.step, fact.data["key"]] = prompt = fact.data["prompt_sha256"]
            if (fact.step, fact.data["key"], prompt) in answered:
                yield f"bought twice: {fact.step} {fact.data['key']}"
        elif fact.kind == "agent.closed" and fact.data.get("value"):
            key = fact.data["key"]
            answered.add((fact.step, key, prompts[fact.step, key]))
