"""Token usage, counted turn by turn, and its price.

The CLI reports a cost only at the end of an uninterrupted call, and after a resume that cost
includes earlier calls. So usage is taken from the stream of each turn and priced here.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import attrs

from gsd_core import Usage

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, StreamEvent

_SYNTHETIC_MODEL = "<synthetic>"  # a message that the CLI made up itself, such as an API error


@attrs.define
class UsageCounter:
    """Counts each turn of a call once; *total* is their sum.

    The CLI sends a message twice: as a stream, whose start has the input tokens and whose end has
    the output tokens; and again as an ``AssistantMessage`` for each content block, with the numbers
    of the start. The stream is counted; the blocks only if the message was not streamed.
    """

    total: Usage = attrs.field(factory=Usage)
    _open: dict[str, Mapping[str, Any]] = attrs.field(factory=dict[str, Mapping[str, Any]])
    _counted: set[str] = attrs.field(factory=set[str])

    def add_event(self, message: StreamEvent) -> Usage | None:
        """Return the usage of a turn if *message* ends one."""
        # A subagent streams at the same time as its parent; its tool call's id keeps them apart.
        event, stream = message.event, message.parent_tool_use_id or ""
        if event.get("type") == "message_start":
            self._open[stream] = event["message"]
            self._counted.add(event["message"]["id"])
        if event.get("type") == "message_delta" and stream in self._open:
            start = self._open.pop(stream)
            usage = {**_without_none(start.get("usage")), **_without_none(event.get("usage"))}
            return self._add(usage, start.get("model", ""))
        return None

    def add_message(self, message: AssistantMessage) -> Usage | None:
        """Return the usage of a turn if *message* is the first block of one that was not streamed."""
        if message.model == _SYNTHETIC_MODEL or not message.message_id or message.message_id in self._counted:
            return None
        self._counted.add(message.message_id)
        return self._add(_without_none(message.usage), message.model)

    def _add(self, raw: Mapping[str, Any], model: str) -> Usage:
        usage = Usage(
            input_tokens=raw.get("input_tokens", 0),
            output_tokens=raw.get("output_tokens", 0),
            cache_read_tokens=raw.get("cache_read_input_tokens", 0),
            cache_write_tokens=raw.get("cache_creation_input_tokens", 0),
            turns=1,
        )
        cache_creation = _without_none(raw.get("cache_creation"))
        turn = with_price(usage, model, hour_writes=cache_creation.get("ephemeral_1h_input_tokens", 0))
        self.total += turn
        return turn


def _without_none(raw: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (raw or {}).items() if value is not None}


@attrs.frozen
class Price:
    """Dollars per million tokens."""

    input: Decimal = attrs.field(converter=Decimal)
    output: Decimal = attrs.field(converter=Decimal)
    cache_read: Decimal = attrs.field(converter=Decimal)


# As Claude Code 2.1.329 counts them for answers of up to 10,000 tokens (measured): Anthropic's list
# prices, https://claude.com/pricing. Long contexts may cost more.
PRICES = {
    "claude-opus-5-5": Price("4", "20", "0.2"),
    "claude-opus-5": Price("5", "25", "0.5"),
    "claude-opus-4-8": Price("5", "25", "0.5"),
    "claude-opus-4-6": Price("5", "25", "0.5"),
    "claude-opus-4-5": Price("5", "25", "0.5"),
    "claude-fable-5": Price("8", "40", "0.2"),
    "claude-sonnet-5-5": Price("2", "10", "0.1"),
    "claude-sonnet-5": Price("2", "10", "0.2"),
    "claude-sonnet-4": Price("3", "15", "0.3"),
    "claude-haiku-5-5": Price("0.1", "0.5", "0.01"),
    "claude-haiku-4-5": Price("1", "5", "0.1"),
    "claude-3-5-haiku": Price("0.8", "4", "0.08"),
}
_CACHE_WRITE_FACTOR = Decimal("1.25")  # of the input price, for five minutes
_HOUR_CACHE_WRITE_FACTOR = Decimal(2)


def with_price(usage: Usage, model: str, *, hour_writes: int = 0) -> Usage:
    """Return *usage* with its cost in dollars if the price of *model* is known.

    *hour_writes* is the number of cache writes that are kept for an hour, which cost more.
    """
    # Ids may have a suffix, so match by part; "claude-opus-5-5" also contains "claude-opus-5", so the
    # longest match is the right one.
    name = max((name for name in PRICES if name in model), key=len, default=None)
    if name is None:
        return usage
    price = PRICES[name]
    short_writes = usage.cache_write_tokens - hour_writes
    cache_writes = short_writes * _CACHE_WRITE_FACTOR + hour_writes * _HOUR_CACHE_WRITE_FACTOR
    dollars = (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_tokens * price.cache_read
        + cache_writes * price.input
    ) / 1_000_000
    return attrs.evolve(usage, dollars=dollars, basis="priced")
