"""The text protocol with the command: prompts for it, and messages from it.

A command-line agent takes no JSON schema and cannot call GSD's functions, so the prompt describes
both. The command answers with JSON: the functions that it wants called, or its final value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import attrs

from gsd_core import AgentFunction, AgentTask, Permanent

MAX_ERROR = 300  # characters; an error may quote a whole value

ASK_HUMAN = AgentFunction(
    name="ask_human",
    description="Ask a person about something that you must not decide yourself; returns the answer.",
    schema={
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["question"],
    },
)

_READ_ONLY = "Do not change any files: this task is read-only."
_FUNCTIONS = """\
# Functions

Besides your own tools, you can call these functions:

{functions}

To call them, end your turn with one JSON document and nothing after it:
- {{"calls": [{{"function": "NAME", "arguments": {{…}}}}]}}: the functions are called in this order, \
and you are started again with their replies.
  Finish the work that a call reports before you end the turn.
  End the turn after each `task_done`; start the next task only after you have read its reply.
- {{"value": …}}: your final answer, once everything is done.
"""
_SCHEMA = """\
# Answer

{introduction} JSON that matches this schema, with nothing after it:

```json
{schema}
```
"""


def available_functions(task: AgentTask) -> tuple[AgentFunction, ...]:
    """Return the functions that the command may call: the task's, and ``ask_human`` if allowed."""
    may_ask = task.tools is None or "AskUserQuestion" in task.tools
    return (*task.functions, *((ASK_HUMAN,) if may_ask else ()))


def initial_prompt(task: AgentTask) -> str:
    """Return the first prompt: the task, the functions, and the schema of the answer."""
    parts = [task.system, task.prompt]
    if not task.writable:
        parts.append(_READ_ONLY)
    if functions := available_functions(task):
        listed = "\n".join(
            f"- `{each.name}`: {each.description} Arguments: {json.dumps(dict(each.schema))}"
            for each in functions
        )
        parts.append(_FUNCTIONS.format(functions=listed))
    if task.schema is not None:
        introduction = "The value of your final answer must be" if functions else "End with one document of"
        schema = json.dumps(dict(task.schema), indent=1)
        parts.append(_SCHEMA.format(introduction=introduction, schema=schema))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def correction_prompt(errors: Sequence[str]) -> str:
    """Return the prompt after an invalid answer."""
    listed = "\n".join(f"- {error}" for error in errors)
    return f"Your answer is invalid:\n{listed}\nAnswer again, in full."


def reply_prompt(function: str, reply: str) -> str:
    """Return the prompt with the *reply* of a function."""
    return f"`{function}` replied:\n{reply}"


def render_transcript(messages: Sequence[str]) -> str:
    """Return a conversation as one prompt; *messages* alternate between GSD and the command."""
    first, *rest = messages
    if not rest:
        return first
    sections = "\n\n".join(
        f"## {'Your message' if number % 2 == 0 else 'Reply to you'}\n\n{text}"
        for number, text in enumerate(rest)
    )
    return f"{first}\n\n# So far\n\nYou have already worked on this task; continue from here.\n\n{sections}"


class InvalidAnswer(ValueError):
    """An answer that cannot be used, and why; the command can correct it."""


@attrs.frozen(kw_only=True)
class FunctionCall:
    """A function that the command wants called."""

    function: str
    arguments: Mapping[str, Any]


def extract_message(output: str, key: str) -> str:
    """Return the field *key* (dotted; empty is the whole) of *output*, one JSON document.

    Raises ``Permanent``, not :class:`InvalidAnswer`: the form of the output is a matter of the
    command's options, which the model behind it cannot correct.
    """
    hint = "check the settings command_agent.command, output and answer_key"
    try:
        found: Any = json.loads(output)
    except ValueError as error:
        raise Permanent(f"standard output is not one JSON document: {error}", hint=hint) from error
    for name in filter(None, key.split(".")):
        if not isinstance(found, dict) or name not in found:
            raise Permanent(f"standard output has no field {key!r}", hint=hint)
        found = cast("dict[str, Any]", found)[name]
    return found if isinstance(found, str) else json.dumps(found)


def parse_document(message: str) -> Any:
    """Return the last JSON document in *message*, in a code block or not."""
    blocks = re.findall(r"```(?:json)?\s*\n(.*?)```", message, re.S)
    for text in (message.strip(), *reversed(blocks)):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    documents = list(_embedded_documents(message))
    if not documents:
        raise InvalidAnswer("there is no JSON document in it")
    return documents[-1]


def _embedded_documents(message: str) -> Iterator[Any]:
    """Yield the JSON objects and arrays that start at the beginning of a line."""
    decoder, end = json.JSONDecoder(), 0
    for start in re.finditer(r"^[ \t]*[{\[]", message, re.M):
        if start.end() <= end:
            continue
        try:
            document, end = decoder.raw_decode(message, start.end() - 1)
        except (ValueError, RecursionError):
            continue
        yield document


def parse_calls(document: Any) -> tuple[FunctionCall, ...] | None:
    """Return the function calls in *document*; ``None`` if it is not a document of calls."""
    if not isinstance(document, dict) or set(cast("dict[str, Any]", document)) != {"calls"}:
        return None
    calls: Any = cast("dict[str, Any]", document)["calls"]
    if not isinstance(calls, list) or not calls:
        raise InvalidAnswer("calls: expected a list with at least one call")
    return tuple(map(_parse_call, cast("Sequence[Any]", calls)))


def _parse_call(raw: Any) -> FunctionCall:
    if not isinstance(raw, dict):
        raise InvalidAnswer("calls: expected objects with function and arguments")
    call = cast("dict[str, Any]", raw)
    arguments: Any = call.get("arguments", {})
    if not isinstance(call.get("function"), str) or not isinstance(arguments, dict):
        raise InvalidAnswer("calls: function must be a string and arguments an object")
    return FunctionCall(function=call["function"], arguments=cast("dict[str, Any]", arguments))


def final_value(document: Any) -> Any:
    """Return the final value: the content of ``value``, or the document itself."""
    if not isinstance(document, dict):
        return document
    content = cast("dict[str, Any]", document)
    return content["value"] if set(content) == {"value"} else content


def validate(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with *value* according to the JSON *schema*, each error with its path."""
    # Imported here: it takes 0.2 s, and GSD imports its plugins for every command.
    from jsonschema import Draft202012Validator

    # Any, because iter_errors is only partially typed.
    validator: Any = Draft202012Validator(dict(schema))
    errors = validator.iter_errors(value)
    return [f"{error.json_path}: {error.message}"[:MAX_ERROR] for error in errors]
