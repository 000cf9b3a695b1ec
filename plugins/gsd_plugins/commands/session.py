"""One command or prompt in Claude Code, with its checkpoints, until it has ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from gsd_core import AgentResult, AgentTask, Conversation, Permanent, StepHost, StepRequest, StepResult
from gsd_core.planning.config_keys import GATES

from .checkpoints import find_checkpoint

OVERLAY: Mapping[str, Any] = {
    "mode": "yolo",
    # The engine starts the next command: one that starts it itself would do so without limits and checks.
    "workflow.auto_advance": False,
    **{f"gates.{gate}": False for gate in GATES},
}
"""What ``config.json`` says while a command works; GSD's safety settings stay the user's own."""

MAX_CHECKPOINTS = 50
EXEC = "exec"
"""The kind of step of ``gsd exec``."""

SYSTEM = """\
You were started by gsd, which runs GSD's commands one after the other. Nobody reads along.
- Do only what this command is for. When it is done, end your turn: do not start another GSD command \
(discuss, plan, execute, verify, transition), even if the workflow says to advance automatically. gsd does \
that.
- Ask with AskUserQuestion. If the workflow has a checkpoint, print its banner with everything that the \
person needs to know, and end your turn: the answer comes as the next message.
- Commit what the workflow says to commit. Do not push, and do not switch branches."""


async def run_session(
    step: StepRequest, host: StepHost, prompt: str, *, name: str, more: str = ""
) -> AgentResult:
    """Run *prompt* and answer its checkpoints in the same conversation; return the last result.

    *name* is what the journal calls it, *more* is added to the system prompt. Raises ``Permanent`` if it
    reaches more than :data:`MAX_CHECKPOINTS`.
    """
    task = AgentTask(
        step=step.id,
        run=step.run,
        role="command",
        system=f"{SYSTEM}\n\n{more}".rstrip(),
        prompt=prompt,
        tools=None,
        model=step.model,
        tree=step.tree,
        writable=True,
        user_settings=True,
        owns_planning=True,
        config=OVERLAY,
    )
    result = await host.run_agent(name, task)
    asked: list[str] = []
    while checkpoint := find_checkpoint(result.text):
        if len(asked) == MAX_CHECKPOINTS:
            hint = "run it yourself in Claude Code"
            raise Permanent(f"{name} has reached {MAX_CHECKPOINTS} checkpoints", hint=hint)
        [answer] = await host.ask(checkpoint.inquiry(step.id, name, asked.count(checkpoint.text)))
        asked.append(checkpoint.text)
        # The answer belongs to this conversation: in another one, nobody would know what it answers.
        conversation = Conversation(id=result.conversation, cwd=str(step.tree), resume=True)
        reply = attrs.evolve(task, prompt=answer.words, conversation=conversation)
        result = await host.run_agent(f"{name}, answer {len(asked)}", reply)
    return result


async def execute_prompt(step: StepRequest, host: StepHost) -> StepResult:
    """Run the user's words; the answer is in the journal, from which ``gsd exec`` prints it."""
    if not step.text.strip():
        raise Permanent("there is no prompt", hint='gsd exec "PROMPT or /command"')
    # A step of the same name may have been interrupted with another prompt, whose answer is not this one's.
    digest = hashlib.sha256(step.text.encode("utf-8", "replace")).hexdigest()[:8]
    await run_session(step, host, step.text, name=f"{EXEC} {digest}")
    return StepResult(subject="done by the agent")
