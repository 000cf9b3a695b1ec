"""Results of the commands that check a task or a phase."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class CheckResult:
    """A command's *exit* code (``None`` if it was refused or timed out) and the end of its *output*."""

    command: str
    exit: int | None
    output: str = ""

    @property
    def ok(self) -> bool:
        """Whether the command ran and succeeded."""
        return self.exit == 0


@attrs.frozen(kw_only=True)
class TaskCheck:
    """The current result of the check of one *task* (its number) of a *plan* (its id, such as ``01-02``)."""

    plan: str
    task: int
    result: CheckResult
