"""The permission gate of a step: policy plugins decide about a tool's use, or leave it to a human."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

import attrs

from gsd_core.errors import Permanent
from gsd_core.hookspecs import gsd_permit_tool
from gsd_core.model.agent import Allow, Ask, Deny, Permission, ToolUse
from gsd_core.model.question import Inquiry, Option, Question
from gsd_core.plugins.call_group import Outcome
from gsd_core.sanitize import safe_text

from .delivery import relative_to
from .questions import ask
from .runtime import Run
from .sandbox import Sandbox

POLICY_LIMIT = timedelta(seconds=2)
MAX_FAILURES_IN_A_ROW = 3
MAX_APPROVAL = 20_000
"""The most characters that a person is asked to approve; they are all shown."""
WRITING_TOOLS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
"""Claude Code's tools that write a file, each with the argument that names it."""


@attrs.define
class StepGate:
    """Decides about the tools that a step's agents and checks want to use.

    *failures* counts failures in a row by policy. Each one denies the use, so a broken policy would make
    the agent try one thing after another; after a few failures the step ends instead.
    *written* are the files that agents were allowed to write with a tool. *asked_to_name*: the agent was
    told once to name the other files that it changed. *asked_to_remove*: it was told once to take secrets out
    of the files that it wants committed. *asked_about_tests*: it was told once to leave the tests of a
    test-driven feature as they were when they failed.
    """

    run: Run
    step: str
    failures: dict[str, int] = attrs.field(factory=dict[str, int])
    written: set[str] = attrs.field(factory=set[str])
    asked_to_name: bool = False
    asked_to_remove: bool = False
    asked_about_tests: bool = False

    @property
    def mark(self) -> str:
        """The mark of permitted commands' processes, by which recovery finds them after a crash."""
        return self.run.mark

    @property
    def sandbox(self) -> Sandbox:
        """What permitted commands are started in."""
        return self.run.sandbox

    async def permit(self, use: ToolUse) -> Permission:
        """Return the decision of the policies; ``Ask`` if a human has to decide."""
        outcomes = await self.run.hooks.fan_out(gsd_permit_tool, POLICY_LIMIT, use)
        for outcome in outcomes:
            plugin = outcome.plugin
            self.failures[plugin] = self.failures.get(plugin, 0) + 1 if outcome.error else 0
            if self.failures[plugin] >= MAX_FAILURES_IN_A_ROW:
                message = f"the policy {plugin!r} failed {MAX_FAILURES_IN_A_ROW} times in a row"
                raise Permanent(message, hint=f"fix it, or continue without it: -p no:{plugin}")
        permission = strictest(outcomes)
        if isinstance(permission, Allow):
            self._note(use)
        return permission

    def _note(self, use: ToolUse) -> None:
        path = use.input.get(WRITING_TOOLS.get(use.name, ""))
        if isinstance(path, str):
            self.written.add(relative_to(use.tree, path))

    async def confirm(self, use: ToolUse, reason: str) -> Permission:
        """Ask a human."""
        text = f"Allow {use.name}?\n{shown(use)}"
        if len(text) > MAX_APPROVAL:
            about = f"{len(text)} characters are too many for a person to approve"
            return Deny(reason=f"{about}: put the command into a file")
        options = (Option(label="Deny", recommended=True), Option(label="Allow"))
        question = Question(text=text, header="Permission", options=options)
        inquiry = Inquiry(kind="permission", questions=(question,), reason=reason)
        [answer] = await ask(self.run, inquiry, step=self.step, key="permission", agent_waits=True)
        if answer.chosen == ("Allow",):
            self._note(use)
            return Allow()
        return Deny(reason=answer.text or f"{answer.by or 'a human'} said no: {reason}")

    async def decide(self, use: ToolUse) -> Permission:
        """Return ``Allow`` or ``Deny``: ask a human if the policies leave it open."""
        permission = await self.permit(use)
        return await self.confirm(use, permission.reason) if isinstance(permission, Ask) else permission


class RepeatGate(StepGate):
    """The gate for a command that has run already: whatever needs a person's consent does not run again."""

    def __init__(self, gate: StepGate) -> None:
        super().__init__(gate.run, gate.step, gate.failures, gate.written)

    async def decide(self, use: ToolUse) -> Permission:
        permission = await self.permit(use)
        return Deny(reason="a person agreed to one run") if isinstance(permission, Ask) else permission


def strictest(outcomes: Sequence[Outcome[Permission | None]]) -> Permission:
    """Combine the decisions of the policies: ``Deny`` beats ``Ask`` beats ``Allow``.

    A policy that fails counts as ``Deny``, because it might have denied. Without any decision, a human is
    asked.
    """
    failed = [Deny(reason=f"the policy {o.plugin!r} failed: {o.error}") for o in outcomes if o.error]
    permissions = [*failed, *(o.value for o in outcomes if o.value is not None)]
    for kind in (Deny, Ask):
        if strict := next((each for each in permissions if isinstance(each, kind)), None):
            return strict
    return permissions[0] if permissions else Ask(reason="no policy decides about it")


def shown(use: ToolUse) -> str:
    """Return a tool's input for the human who has to approve it.

    It is never truncated, because the rest would be approved unseen. Control characters, which could hide
    a part, are removed, and secrets are redacted.
    """
    command = use.input.get("command")
    text = command if isinstance(command, str) else json.dumps(dict(use.input), ensure_ascii=False, indent=1)
    return safe_text(text)
