"""What speaks against a command, and the decision that follows from it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from gsd_core import Allow, Ask, Deny, Permission

from .outward import LOOPBACK, mentioned
from .table import is_in, rules, table


@attrs.define
class Findings:
    """The first reason for each effect of the command *source*; *commands* counts the commands in it.

    Effects are ``change`` (in a read-only step), ``outward`` (on another machine, which a sandbox does not
    prevent), and without a sandbox ``deny`` and ``ask``.
    """

    source: str
    reasons: dict[str, str] = attrs.field(factory=dict[str, str])
    commands: int = 0

    def add(self, effect: str, reason: str) -> None:
        """Add a reason; what is ``hidden`` until run time may be anything that the command mentions."""
        if effect == "hidden":
            effect = "ask"
            if "outward" not in self.reasons and (found := mentioned(self.source)):
                self.add("outward", f"it may have effects on other machines ({found})")
        self.reasons.setdefault(effect, reason)

    def object(self, objection: Deny | Ask | None) -> None:
        """Add an objection to the use of a path."""
        if objection:
            self.add("deny" if isinstance(objection, Deny) else "ask", objection.reason)

    def apply_rules(self, program: str, words: Sequence[str]) -> None:
        """Add what the table's rules say about a program and its arguments."""
        lines = "\n".join(word.replace("\n", " ") for word in words)
        here = is_in("connects", program) and any(LOOPBACK.match(word) for word in words)
        for effect, reason, pattern in rules().get(program) or rules().get(program.removesuffix("-cli"), ()):
            if pattern.search(lines) and not here:
                self.add(effect, f"{program}: {reason}")
        bare, local = [word for word in words if word[:1] != "-"], table()["local"].get(program, frozenset())
        found = local & {*bare[:1], *(word for word in words if word[:1] == "-")}
        if found and not (bare[1:] and bare[1] in table()["cloud"]["verbs"]):
            reason = "it changes something outside the project, or cannot be undone"
            self.add("ask", f"{program} {min(found)}: {reason}")

    def decide(self, *, confined: bool, writable: bool) -> Permission:
        """Return the decision; with a sandbox, only effects on other machines are asked about."""
        found = self.reasons
        if "change" in found and not writable:
            return Deny(reason=f"this step is read-only: {found['change']}")
        if "deny" in found and not confined:
            return Deny(reason=found["deny"])
        reason = found.get("outward") or ("" if confined else found.get("ask"))
        return Ask(reason=reason) if reason else Allow()
