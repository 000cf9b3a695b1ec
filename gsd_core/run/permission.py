"""The permission gate: what policies say about a tool's use, and what a human says if they cannot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from attrs import define, field

from gsd_core.errors import Permanent
from gsd_core.hookspecs import gsd_permit_tool
from gsd_core.model.agent import Allow, Ask, Deny, Permission, ToolUse
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.plugins.call_group import Outcome
from gsd_core.sanitize import redact, sanitize

from .questions import ask_for_a_while
from .runtime import Run

LIMIT = timedelta(seconds=2)
FAILURES_IN_A_ROW = 3


@define
class Gate:
    """The gate of one step; a policy that fails three times in a row ends it."""

    run: Run
    step: str
    failures: dict[str, int] = field(factory=dict[str, int])

    @property
    def mark(self) -> str:
        """By what a command that runs here is found after a crash."""
        return self.run.id

    async def permit(self, use: ToolUse) -> Permission:
        """Ask the policies: Deny beats Ask beats Allow; a policy that fails denies; none at all asks."""
        outcomes = await self.run.hooks.fan_out(gsd_permit_tool, LIMIT, use)
        for outcome in outcomes:
            self._count(outcome.plugin, failed=outcome.error is not None)
        return strictest(outcomes)

    def _count(self, plugin: str, *, failed: bool) -> None:
        self.failures[plugin] = self.failures.get(plugin, 0) + 1 if failed else 0
        if self.failures[plugin] >= FAILURES_IN_A_ROW:
            raise Permanent(
                f"the policy {plugin!r} failed {FAILURES_IN_A_ROW} times in a row",
                hint=f"mend it, or go on without it: -p no:{plugin}",
            )

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """Ask a human; the whole input is shown, nothing of it is hidden."""
        text = f"Allow {use.name}?\n{shown(use)}"
        options = (Option(label="Deny", recommended=True), Option(label="Allow"))
        question = Question(text=text, header="Permission", options=options)
        inquiry = Inquiry(kind="permission", questions=(question,), reason=reason)
        [answer] = await ask_for_a_while(self.run, inquiry, step=self.step, occasion="permission")
        if answer.chosen == ("Allow",):
            return Allow()
        return Deny(reason=answer.text or f"{answer.by or 'a human'} said no: {reason}")

    async def decide(self, use: ToolUse) -> Permission:
        """Permit, and confirm where the policies ask for it."""
        verdict = await self.permit(use)
        return await self.confirm(use, verdict.reason) if isinstance(verdict, Ask) else verdict


def strictest(outcomes: Sequence[Outcome[Permission | None]]) -> Permission:
    """Return what the policies say together."""
    failed = [Deny(reason=f"the policy {o.plugin!r} failed: {o.error}") for o in outcomes if o.error]
    said = [o.value for o in outcomes if o.value is not None]
    found = sorted([*failed, *said], key=_mildness)
    return found[0] if found else Ask(reason="no policy has an opinion")


def _mildness(verdict: Permission) -> int:
    return [Deny, Ask, Allow].index(type(verdict))


def shown(use: ToolUse) -> str:
    """Return a tool's input as a human should see it: all of it, cleaned, secrets hidden."""
    command = use.input.get("command")
    text = command if isinstance(command, str) else json.dumps(dict(use.input), ensure_ascii=False, indent=1)
    return redact(sanitize(text))
