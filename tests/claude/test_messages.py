"""Messages that the CLI does not send within a test's time: long answers and unstreamed messages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, Message, StreamEvent, TextBlock, ToolUseBlock

from gsd_core import Activity
from gsd_core.testing import FakeAgentHost
from gsd_plugins.claude.messages import MessageReader
from tests.claude.harness import activities

TREE = Path("/srv/project")


def read(*messages: Message, times: Iterator[float]) -> FakeAgentHost:
    host = FakeAgentHost()
    reader = MessageReader(host=host, tree=TREE, resumed=False, time=lambda: next(times))

    async def read_all() -> None:
        for message in messages:
            await reader.read(message)

    asyncio.run(read_all())
    return host


def assistant(text: str, message_id: str) -> AssistantMessage:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return AssistantMessage(
        content=[TextBlock(text)], model="claude-opus-5-5", usage=usage, message_id=message_id
    )


def event(**data: Any) -> StreamEvent:
    return StreamEvent(uuid="", session_id="", event=data)


def test_a_long_answer_reports_activity_regularly() -> None:
    delta = event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "x"})
    # The time is read once for each event, and once more for each report.
    times = iter([5.0, 19.0, 21.0, 21.0, 30.0, 42.0, 42.0])
    host = read(delta, delta, delta, delta, delta, times=times)

    assert host.activities == [Activity(kind="text", text="…")] * 2
    assert not host.usages


def test_an_unstreamed_message_is_counted_once_for_all_its_blocks() -> None:
    host = read(
        assistant("one", "m1"), assistant("two", "m1"), assistant("three", "m2"), times=iter(range(100))
    )

    assert [usage.turns for usage in host.usages] == [1, 1]
    assert [activity.text for activity in activities(host, "text")][:2] == ["one", "two"]


def test_a_file_of_the_project_is_reported_relative_to_it() -> None:
    uses = [
        ToolUseBlock(id="1", name="Edit", input={"file_path": "/srv/project/src/app.py", "old_string": "x"}),
        ToolUseBlock(id="2", name="Read", input={"file_path": "/srv/project-two/app.py"}),
        ToolUseBlock(id="3", name="Grep", input={"path": "/srv/project/src", "pattern": "def main"}),
    ]
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = AssistantMessage(content=[*uses], model="claude-opus-5-5", usage=usage, message_id="m1")

    host = read(message, times=iter(range(100)))

    assert [activity.text for activity in activities(host, "tool")] == [
        *("src/app.py", "/srv/project-two/app.py", "def main"),
    ]


def test_a_streamed_message_is_counted_with_the_output_tokens_of_its_end() -> None:
    start = {"id": "m1", "model": "claude-opus-5-5", "usage": {"input_tokens": 10, "output_tokens": 1}}
    host = read(
        event(type="message_start", message=start),
        assistant("one", "m1"),
        event(type="message_delta", delta={}, usage={"output_tokens": 70}),
        times=iter(range(100)),
    )

    (usage,) = host.usages
    assert (usage.input_tokens, usage.output_tokens, usage.turns, usage.basis) == (10, 70, 1, "priced")
