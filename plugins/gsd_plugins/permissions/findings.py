"""What speaks against a command, and the decision that follows from it."""

from __future__ import annotations

import attrs

from gsd_core import Allow, Ask, Deny, Permission

from .outward import mentioned


@attrs.define
class Findings:
    """Reasons collected while the command *source* is followed; *commands* counts the commands in it."""

    source: str
    denied: list[str] = attrs.field(factory=list[str])
    asked: list[str] = attrs.field(factory=list[str])
    outwards: list[str] = attrs.field(factory=list[str])
    written: list[str] = attrs.field(factory=list[str])
    commands: int = 0

    def add(self, objection: Deny | Ask | None) -> None:
        """Add an objection that matters only without a sandbox."""
        if objection:
            (self.denied if isinstance(objection, Deny) else self.asked).append(objection.reason)

    def deny(self, reason: str) -> None:
        """Add what no agent may do without a sandbox."""
        self.denied.append(reason)

    def ask(self, reason: str) -> None:
        """Add what a human decides about without a sandbox."""
        self.asked.append(reason)

    def outward(self, reason: str) -> None:
        """Add an effect on other machines, which a sandbox does not prevent."""
        self.outwards.append(reason)

    def hidden(self, reason: str) -> None:
        """Add that a part is known only at run time: it may be anything that the command mentions."""
        self.ask(reason)
        if not self.outwards and (found := mentioned(self.source)):
            self.outward(f"it may have effects on other machines ({found})")

    def decide(self, *, confined: bool) -> Permission:
        """Return the decision; with a sandbox, only effects on other machines are asked about."""
        if self.written:
            return Deny(reason=f"this step is read-only: {self.written[0]}")
        if self.denied and not confined:
            return Deny(reason=self.denied[0])
        if reasons := [*self.outwards, *([] if confined else self.asked)]:
            return Ask(reason=reasons[0])
        return Allow()
