"""Results of the commands that check a task or a phase."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

Outcome: TypeAlias = Literal["passed", "failed", "skipped"]
ReplacedBecause: TypeAlias = Literal["passes before", "cannot run", "disputed"]


@attrs.frozen(kw_only=True)
class CaseResult:
    """How a test case ended that a check has run; *name* is what its runner calls it.

    *passes_without*: it passes without the work of the check's plan too, so it proves nothing about it;
    ``None`` if that was not measured.
    *needs* are functions without which it fails (``src/cart.py: total``), as far as there was time to try.
    """

    name: str
    outcome: Outcome
    passes_without: bool | None = None
    needs: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class CheckResult:
    """A command's *exit* code (``None`` if it was refused or timed out) and the end of its *output*.

    *flaw* says why the command proves nothing even with exit code 0: it ran no tests, or it hides that
    tests failed. *unusable* says why the command cannot run, however the task was done: a program is not
    installed, its syntax is wrong, or it was refused. *passed_before*: it passed before the task as well,
    so that it shows only that nothing broke. *passes_without*: it still passes if the work of its plan is
    taken out again, so that it does not depend on it. *cases* are the test cases that it ran in a clean
    checkout, if its runner reports them.
    """

    command: str
    exit: int | None
    output: str = ""
    flaw: str = ""
    unusable: str = ""
    passed_before: bool = False
    passes_without: bool = False
    cases: tuple[CaseResult, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the command ran, succeeded, and proves something."""
        return self.exit == 0 and not self.flaw

    @property
    def outcome(self) -> str:
        """What happened, to follow the command in a sentence: ``exited with 2``, ``ran no tests`` …"""
        if self.flaw:
            return self.flaw
        if self.exit is None:
            return "did not run to its end"
        return f"exited with {self.exit}" if self.exit else "passed"


@attrs.frozen(kw_only=True)
class TaskCheck:
    """The current result of the check of one *task* (its number) of a *plan* (its id, such as ``01-02``)."""

    plan: str
    task: int
    result: CheckResult


@attrs.frozen(kw_only=True)
class ReplacedCheck:
    """The planner's decision about the check of one *task* of a plan, made while the plan was executed.

    *was* is the command in the PLAN, *check* the one that counts: the same if the planner keeps it.
    """

    task: int
    was: str
    check: str
    reason: str
    because: ReplacedBecause
