"""What cannot be had from the CLI in a test's time: long answers, and messages that were not streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from claude_agent_sdk import AssistantMessage, Message, StreamEvent, TextBlock

from gsd_core import Activity
from gsd_plugins.claude.messages import MessageReader
from tests.claude.workbench import RecordingHost


def read(*messages: Message, times: Iterator[float]) -> RecordingHost:
    host = RecordingHost()
    reader = MessageReader(host=host, resumed=False, time=lambda: next(times))

    async def take_all() -> None:
        for message in messages:
            await reader.read(message)

    asyncio.run(take_all())
    return host


def said(text: str, message_id: str) -> AssistantMessage:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return AssistantMessage(
        content=[TextBlock(text)], model="claude-opus-5-5", usage=usage, message_id=message_id
    )


def event(**data: Any) -> StreamEvent:
    return StreamEvent(uuid="", session_id="", event=data)


def test_a_long_answer_gives_a_sign_of_life_now_and_then() -> None:
    more = event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "x"})
    # The clock is looked at once for each piece, and once more for each sign that is given.
    times = iter([5.0, 19.0, 21.0, 21.0, 30.0, 42.0, 42.0])
    host = read(more, more, more, more, more, times=times)

    assert host.activities == [Activity(kind="text", text="…")] * 2
    assert not host.usages


def test_a_message_that_was_not_streamed_is_counted_once_for_all_its_blocks() -> None:
    host = read(said("one", "m1"), said("two", "m1"), said("three", "m2"), times=iter(range(100)))

    assert [usage.turns for usage in host.usages] == [1, 1]
    assert [activity.text for activity in host.kinds("text")][:2] == ["one", "two"]


def test_a_streamed_message_is_counted_by_the_numbers_of_its_end() -> None:
    begun = {"id": "m1", "model": "claude-opus-5-5", "usage": {"input_tokens": 10, "output_tokens": 1}}
    host = read(
        event(type="message_start", message=begun),
        said("one", "m1"),
        event(type="message_delta", delta={}, usage={"output_tokens": 70}),
        times=iter(range(100)),
    )

    (usage,) = host.usages
    assert (usage.input_tokens, usage.output_tokens, usage.turns, usage.basis) == (10, 70, 1, "priced")
