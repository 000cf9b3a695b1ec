"""The rules of a scenario file during a run: which of them apply now, and how often they have."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from gsd_core import StepId

from .effects import Effect, Moment, Rule
from .own_files import write_json

E = TypeVar("E", bound=Effect)


@attrs.define(eq=False, kw_only=True)
class ActiveRules:
    """The rules of one run, which several threads use.

    *file*, if any, keeps how often each rule has applied: a run that is resumed by another process continues
    with the rules that are left, as a login that was repeated stays repeated.
    """

    rules: Sequence[Rule] = ()
    file: Path | None = None
    _applied: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    _calls: dict[str, int] = attrs.field(factory=dict[str, int], init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        if self.rules and self.file and self.file.exists():
            saved = json.loads(self.file.read_text("utf-8"))
            self._applied, self._calls = saved["applied"], saved["calls"]

    def begin_call(self, step: str) -> int:
        """Count a call of the agent for *step*; return its number in the run, from 1."""
        with self._lock:
            self._calls[step] = self._calls.get(step, 0) + 1
            self._save()
            return self._calls[step]

    def take(
        self, kind: type[E], moment: Moment, *, possible: Callable[[E], bool] = lambda effect: True
    ) -> E | None:
        """Return the effect of the first rule of this kind that applies now, and count that it has applied.

        A rule whose effect is not *possible* now is passed over.
        """
        return next(self.take_each(kind, moment, possible=possible), None)

    def take_each(
        self, kind: type[E], moment: Moment, *, possible: Callable[[E], bool] = lambda effect: True
    ) -> Iterator[E]:
        """Yield the effect of each rule of this kind that applies now, and count that it has applied."""
        for rule in self.rules:
            effect = rule.effect
            if not isinstance(effect, kind) or not rule.when.matches(moment) or not possible(effect):
                continue
            with self._lock:
                applied = self._applied.get(_name(rule), 0)
                if rule.times and applied >= rule.times:
                    continue
                self._applied[_name(rule)] = applied + 1
                self._save()
            yield effect

    def of(self, kind: type[E]) -> tuple[E, ...]:
        """Return the effects of this kind, whether they apply or not."""
        return tuple(rule.effect for rule in self.rules if isinstance(rule.effect, kind))

    def count(self, kind: type[Effect]) -> int:
        """Return how many effects of this kind there have been in the run."""
        with self._lock:
            same = (rule for rule in self.rules if isinstance(rule.effect, kind))
            return sum(self._applied.get(_name(rule), 0) for rule in same)

    def unused(self) -> Iterator[Rule]:
        """Yield the rules that have not applied."""
        return (rule for rule in self.rules if not self._applied.get(_name(rule)))

    def _save(self) -> None:
        # Before the effect: a failure that ends this process must not happen again in the next one.
        if self.rules and self.file:
            write_json(self.file, {"applied": self._applied, "calls": self._calls})


def moment_of(step: str, role: str, call: int, task: int = 0) -> Moment:
    """Return the moment at which the agent of *step* is about to act."""
    parsed = StepId.parse(step)
    plan = parsed.detail if parsed.kind == "execute" else ""
    return Moment(
        step=parsed.kind, phase=parsed.phase, plan=plan, round=parsed.round, role=role, call=call, task=task
    )


def _name(rule: Rule) -> str:
    """Return the name under which a rule is counted: one that was edited in the meantime is a new one."""
    return f"{rule.number} {hashlib.sha256(repr(rule).encode()).hexdigest()[:16]}"
