"""What a model says in one message, and how the Messages API puts it on the wire.

Format: https://docs.claude.com/en/api/messages-streaming
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from uuid import uuid4

from attrs import field, frozen

Json: TypeAlias = dict[str, Any]


@frozen
class Text:
    """The model says *text*."""

    text: str


@frozen
class ToolUseBlock:
    """The model uses the tool *name*; *id* is made up unless given."""

    name: str
    input: Mapping[str, Any]
    id: str = field(factory=lambda: f"toolu_{uuid4().hex[:24]}")


Block: TypeAlias = Text | ToolUseBlock


def _usage() -> Mapping[str, int]:
    return {"input_tokens": 100, "output_tokens": 20}


@frozen
class Blocks:
    """A message of the model; *usage* as the API counts it. *stop_reason* follows from the blocks."""

    content: tuple[Block, ...]
    stop_reason: str = ""
    usage: Mapping[str, int] = field(factory=_usage)

    @property
    def stopped(self) -> str:
        """Why the model stopped."""
        uses = any(isinstance(block, ToolUseBlock) for block in self.content)
        return self.stop_reason or ("tool_use" if uses else "end_turn")


@frozen
class Failure:
    """An error of the API, such as ``Failure(529, "overloaded_error", "Overloaded")``."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(factory=dict[str, str])


@frozen
class Cut:
    """The connection breaks in the middle of the message *said*."""

    said: Blocks


Reply: TypeAlias = Blocks | Failure | Cut


SSE = {"content-type": "text/event-stream", "cache-control": "no-cache"}
JSON = {"content-type": "application/json"}


def failed(failure: Failure) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of an error."""
    error = {"type": failure.type, "message": failure.message}
    body = json.dumps({"type": "error", "error": error}).encode()
    return failure.status, {**JSON, **failure.headers}, body


def whole(reply: Blocks, model: str) -> Json:
    """Return *reply* as the API's message."""
    return {
        "id": f"msg_{uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(block) for block in reply.content],
        "stop_reason": reply.stopped,
        "stop_sequence": None,
        "usage": dict(reply.usage),
    }


def _block(block: Block) -> Json:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}


def stream(reply: Blocks, model: str) -> bytes:
    """Return *reply* as server-sent events."""
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(reply, model))
    return "".join(lines).encode()


def _events(reply: Blocks, model: str) -> Iterator[Json]:
    opening: Json = {**whole(reply, model), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": {**opening, "usage": {**reply.usage, "output_tokens": 1}}}
    for index, block in enumerate(reply.content):
        yield {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        yield {"type": "content_block_delta", "index": index, "delta": _delta(block)}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": reply.stopped, "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": dict(reply.usage)}
    yield {"type": "message_stop"}


def _empty(block: Block) -> Json:
    return {**_block(block), **({"text": ""} if isinstance(block, Text) else {"input": {}})}


def _delta(block: Block) -> Json:
    if isinstance(block, Text):
        return {"type": "text_delta", "text": block.text}
    return {"type": "input_json_delta", "partial_json": json.dumps(dict(block.input))}
