"""The rules that ``gsd plugins check`` applies, and what it found about them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Self

import attrs


@attrs.frozen(kw_only=True)
class Rule:
    """One rule: *what* must be true of a plugin, *why*, and how to *fix* it; an *id* keeps its meaning."""

    id: str
    what: str
    why: str
    fix: str


@attrs.define(kw_only=True)
class Findings:
    """The results of running a plugin, saved to *path* before each part of the check.

    A plugin may end or hang its process at any time. The file then has everything found before, and
    *current* is the part that was running: ``imports``, ``fits``, or the name of a hook.
    """

    path: Path
    current: str = "start"
    hooks: list[str] = attrs.field(factory=list[str])
    checked: list[str] = attrs.field(factory=list[str])
    problems: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])
    skipped: dict[str, str] = attrs.field(factory=dict[str, str])
    seconds: dict[str, float] = attrs.field(factory=dict[str, float])
    answered: dict[str, bool] = attrs.field(factory=dict[str, bool])

    def add(self, rule: str, problems: Iterable[str] = ()) -> None:
        """Record that *rule* was checked, and its *problems*, if any."""
        if rule not in self.checked:
            self.checked.append(rule)
        self.problems.extend((rule, problem) for problem in problems if (rule, problem) not in self.problems)

    def begin(self, part: str) -> None:
        """Save the findings so far, and that *part* begins."""
        self.current = part
        data = attrs.asdict(self, filter=lambda field, _: field.name != "path")
        self.path.write_text(json.dumps(data), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the findings saved to *path*."""
        data = json.loads(path.read_text(encoding="utf-8"))
        problems = [(str(rule), str(problem)) for rule, problem in data.pop("problems")]
        return cls(path=path, problems=problems, **data)


_TEXTS = tomllib.loads(files("gsd_core.testing.check").joinpath("rules.toml").read_text("utf-8"))
RULES: tuple[Rule, ...] = tuple(Rule(id=name, **texts) for name, texts in _TEXTS.items())
