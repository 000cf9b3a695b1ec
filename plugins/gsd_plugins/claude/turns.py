"""The use of tokens, turn by turn, from the stream of one call.

A message arrives as one stream (its beginning knows the input, its end the output) and again as
an ``AssistantMessage`` for each of its blocks, with the numbers of the beginning: each message is
counted once, from its stream; from its blocks only if it was not streamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

from gsd_core import Usage

from .prices import priced

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, StreamEvent

_SYNTHETIC = "<synthetic>"


@define
class Turns:
    """The turns so far; *total* is their sum."""

    total: Usage = field(factory=Usage)
    _open: dict[str, Mapping[str, Any]] = field(factory=dict[str, Mapping[str, Any]])
    _counted: set[str] = field(factory=set[str])

    def of_event(self, message: StreamEvent) -> Usage | None:
        """Return the use of a turn if the event ends one."""
        event, stream = message.event, message.parent_tool_use_id or ""
        if event.get("type") == "message_start":
            self._open[stream] = event["message"]
            self._counted.add(event["message"]["id"])
        if event.get("type") == "message_delta" and stream in self._open:
            begun = self._open.pop(stream)
            return self._count(
                {**_known(begun.get("usage")), **_known(event.get("usage"))}, begun.get("model", "")
            )
        return None

    def of_message(self, message: AssistantMessage) -> Usage | None:
        """Return the use of a turn if the message is one that was not streamed, and new."""
        if message.model == _SYNTHETIC or not message.message_id or message.message_id in self._counted:
            return None
        self._counted.add(message.message_id)
        return self._count(_known(message.usage), message.model)

    def _count(self, raw: Mapping[str, Any], model: str) -> Usage:
        cached = _known(raw.get("cache_creation"))
        turn = priced(_usage(raw), model, hour_writes=cached.get("ephemeral_1h_input_tokens", 0))
        self.total += turn
        return turn


def _known(raw: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (raw or {}).items() if value is not None}


def _usage(raw: Mapping[str, Any]) -> Usage:
    return Usage(
        input_tokens=raw.get("input_tokens", 0),
        output_tokens=raw.get("output_tokens", 0),
        cache_read_tokens=raw.get("cache_read_input_tokens", 0),
        cache_write_tokens=raw.get("cache_creation_input_tokens", 0),
        turns=1,
    )
