"""What the command is told: it has no schema and no functions of ours, so both stand in the prompt."""

from __future__ import annotations

import json

from gsd_core import AgentFunction, AgentTask

ASK = AgentFunction(
    name="ask_human",
    description="Ask a person something that you must not decide yourself; replies with the answer.",
    schema={
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["question"],
    },
)

_CALLS = """\
# Functions

You have these functions besides your own tools:

{functions}

You call them by what you answer with. End your turn with one JSON document and nothing after it:
- {{"calls": [{{"function": "NAME", "arguments": {{…}}}}]}}: the functions are called in this order, \
and you are started again with what they reply.
  Do the work that a call is about before you end the turn.
  End the turn after each `task_done`; the next task begins when you have read its reply.
- {{"value": …}}: your final answer, when everything is done.
"""
_VALUE = "# The answer\n\n{intro} JSON that fits this schema, and nothing after it:\n\n```json\n{schema}\n```"
_NO_CHANGE = "Change no file: this is a task for reading and thinking only."


def functions_of(task: AgentTask) -> tuple[AgentFunction, ...]:
    """Return the functions that the command may call: the task's, and a question to a human."""
    asks = task.tools is None or "AskUserQuestion" in task.tools
    return (*task.functions, *((ASK,) if asks else ()))


def first_prompt(task: AgentTask) -> str:
    """Return the whole of what the command has to know."""
    functions = functions_of(task)
    parts = [
        task.system,
        task.prompt,
        "" if task.writable else _NO_CHANGE,
        _CALLS.format(functions="\n".join(map(_described, functions))) if functions else "",
        _answer(task, bool(functions)),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _described(function: AgentFunction) -> str:
    return f"- `{function.name}`: {function.description} Arguments: {json.dumps(dict(function.schema))}"


def _answer(task: AgentTask, calls: bool) -> str:
    if task.schema is None:
        return ""
    intro = "The value of your final answer is" if calls else "End with one document of"
    return _VALUE.format(intro=intro, schema=json.dumps(dict(task.schema), indent=1))


def replied(function: str, reply: str) -> str:
    """Return what a function replied, for the next turn."""
    return f"`{function}` replied:\n{reply}"


def mend(faults: tuple[str, ...]) -> str:
    """Return what is wrong with an answer."""
    listed = "\n".join(f"- {fault}" for fault in faults)
    return f"Your answer cannot be used yet:\n{listed}\nAnswer again, in full."


def transcript(said: list[str]) -> str:
    """Return a conversation as one prompt: the command remembers nothing of its earlier turns."""
    if len(said) == 1:
        return said[0]
    first, *rest = said
    told = "\n\n".join(f"## {'You' if n % 2 == 0 else 'To you'}\n\n{text}" for n, text in enumerate(rest))
    return f"{first}\n\n# So far\n\nYou have worked on this already; go on from here.\n\n{told}"
