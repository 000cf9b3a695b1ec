"""Ideas for scenarios, and a ``task_done`` that replies as the steps of GSD do."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from gsd_core import Answer, Question
from gsd_plugins.rehearsal import Scenario

IDEAS = (
    "# Ledger\n\nShared costs of a flat: who paid, what for, and when.\n",
    "",
    "\n\n   \n",
    "☃ 日本語のアイデア",
    "!!! ??? *** ---",
    "# class\n\nclass class class return yield",
    "# json: a reader",
    "## nonsense\n\nnonsense nonsense nonsense TODO todo",
    "word\n" * 20_000,
    "# 3 \"\"\" pigs \\ $package ${x} {y} '''\n\n* list\n\n```python\nimport os\n```\n",
    "\x00\u202e\u2028# bidi\u0007",
    "# Tests",
    "# Größe und Maß",
    "# unittest",
    "# TODO: write a placeholder, coming soon",
    "# Placeholder",
)


def choose(label: str) -> Answer:
    return Answer(question="", chosen=(label,))


@define
class TaskHost:
    """Answers ``task_done`` by running the task's check in *tree*; *replies* are given first."""

    tree: Path
    scenario: Scenario
    plan: str
    answer: Answer = field(factory=lambda: choose("Exclamation mark"))
    replies: list[str] = field(factory=list[str])
    done: list[int] = field(factory=list[int])

    def reply(self, question: Question) -> Answer:
        return self.answer

    def function(self, name: str, arguments: Mapping[str, Any]) -> str:
        number: int = arguments["task"]
        if self.replies:
            return self.replies.pop(0)
        if number in self.done:
            return f"Task {number} is already committed."
        check = self.scenario.tasks(self.plan)[number - 1].check
        ran = subprocess.run(check, shell=True, cwd=self.tree, capture_output=True, text=True, check=False)
        if ran.returncode:
            return f"Task {number} is not committed: {ran.stderr}"
        self.done.append(number)
        return f"Task {number} is committed (abc1234)."


def plan_ids(scenario: Scenario) -> list[str]:
    """Return the ids of all plans, in the order of their execution."""
    found: list[str] = []
    for phase in range(1, scenario.phase_count + 1):
        count = len(scenario.plans(str(phase))["plans"])
        extra = 1 if phase == 1 and scenario.gap else 0
        found += [f"{phase:02d}-{number:02d}" for number in range(1, count + extra + 1)]
    return found
