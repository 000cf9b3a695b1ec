"""What speaks against a command, and the decision that follows from it."""

from __future__ import annotations

import re

import attrs

from gsd_core import Allow, Ask, Deny, Permission

_OUTWARD = re.compile(
    r"\b(?:git\s+push|\w+\s+publish|twine\s+upload|(?:gem|docker|podman)\s+push|mvn\s+deploy|"
    r"kubectl\s+(?:apply|delete|create)|terraform\s+(?:apply|destroy)|gh\s+\w+\s+create|ssh|scp|sendmail)"
    r"(?=[\s'\"]|$)"
)


@attrs.define
class Findings:
    """Reasons collected while a command line is followed; *commands* counts its commands."""

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

    def unparsed(self, text: str, reason: str = "it is not valid shell, or of an unusual form") -> None:
        """Note that a part could not be followed: the unseen part may do anything."""
        self.ask(f"the command cannot be checked: {reason}")
        if match := _OUTWARD.search(text):
            self.outward(f"it may have effects on other machines ({match[0].strip()})")

    def decide(self, *, confined: bool) -> Permission:
        """Return the decision; with a sandbox, only effects on other machines are asked about."""
        if self.written:
            return Deny(reason=f"this step is read-only: {self.written[0]}")
        if self.denied and not confined:
            return Deny(reason=self.denied[0])
        if reasons := [*self.outwards, *([] if confined else self.asked)]:
            return Ask(reason=reasons[0])
        return Allow()
