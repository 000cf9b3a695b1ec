"""Commands that prove something, and what they did."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class CheckResult:
    """What a command did: *exit* code (``None`` if it was refused or timed out), *output* (its end)."""

    command: str
    exit: int | None
    output: str = ""

    @property
    def ok(self) -> bool:
        """The command ran and succeeded."""
        return self.exit == 0


@frozen(kw_only=True)
class TaskCheck:
    """The check of one task of a plan (``01-02``, task 1), as it came out just now."""

    plan: str
    task: int
    result: CheckResult
