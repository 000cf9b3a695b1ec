"""Conversations: their ids, resuming after a kill, and cancellation."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Any

import attrs
import pytest

from gsd_core import AgentFunction, AgentResult, Ask, Permission, ToolUse, Transient
from gsd_core.testing import FakeAgentHost
from gsd_plugins.claude import run_claude
from gsd_plugins.claude.call import CONTINUE
from gsd_plugins.rehearsal.api import ApiRequest, Blocks, MessagesApi, Reply
from tests.claude.harness import Harness, ObservedHost, alive, by_turn, says, uses


def test_a_conversation_has_the_given_id(harness: Harness) -> None:
    result, _ = harness.run(by_turn(says("x")), conversation=harness.conversation)

    assert result.conversation == harness.conversation.id


def test_complaints_are_sent_to_the_same_conversation(harness: Harness) -> None:
    harness.run(by_turn(says("an answer")), conversation=harness.conversation)
    again = attrs.evolve(harness.conversation, resume=True)
    result, requests = harness.run(by_turn(says("-"), says("better")), conversation=again, prompt="too short")

    assert result.text == "better"
    assert result.conversation == harness.conversation.id
    assert "an answer" in str(requests[0].messages)
    assert requests[0].prompt == "do it"
    assert "too short" in requests[0].last


def test_resuming_a_conversation_that_does_not_exist_starts_it(harness: Harness) -> None:
    again = attrs.evolve(harness.conversation, resume=True)
    result, requests = harness.run(by_turn(says("x")), conversation=again, prompt="the whole prompt")

    assert result.conversation == harness.conversation.id
    assert requests[0].prompt == "the whole prompt"


@pytest.mark.slow
def test_starting_a_conversation_that_exists_resumes_it(harness: Harness) -> None:
    harness.run(by_turn(says("an answer")), conversation=harness.conversation)
    result, requests = harness.run(by_turn(says("-"), says("more")), conversation=harness.conversation)

    assert result.text == "more"
    assert "an answer" in str(requests[0].messages)


@pytest.mark.slow
def test_a_resumed_call_counts_only_its_own_usage(harness: Harness) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    script = by_turn(says("a", **usage), says("b", **usage))
    first, _ = harness.run(script, conversation=harness.conversation, model="opus")
    again = attrs.evolve(harness.conversation, resume=True)
    second, _ = harness.run(script, conversation=again, model="opus")

    assert (first.usage.turns, first.usage.basis) == (1, "reported")
    assert (second.usage.turns, second.usage.input_tokens, second.usage.basis) == (1, 1000, "priced")
    assert second.usage.dollars == first.usage.dollars


KILL_ONCE_SAVED = "until grep -qs 'kill -9' $CLAUDE_CONFIG_DIR/projects/*/*.jsonl; do :; done; kill -9 $PPID"


@pytest.mark.slow
def test_a_killed_cli_is_transient_and_its_conversation_can_be_resumed(harness: Harness) -> None:
    first = uses("Write", file_path=str(harness.tree / "first.txt"), content="1")
    tools = ("Write", "Bash")

    script = by_turn(first, uses("Bash", command=KILL_ONCE_SAVED))
    with pytest.raises(Transient):
        harness.run(script, tools=tools, writable=True, conversation=harness.conversation)
    again = attrs.evolve(harness.conversation, resume=True)
    result, requests = harness.run(lambda request: says("all done"), tools=tools, conversation=again)

    assert (harness.tree / "first.txt").read_text() == "1"
    assert result.text == "all done"
    assert "first.txt" in str(requests[0].messages)
    assert CONTINUE in requests[0].last


@pytest.mark.slow
def test_a_call_killed_before_anything_was_saved_starts_again(harness: Harness) -> None:
    host = ObservedHost(on_start=lambda pid: os.kill(pid, signal.SIGKILL))
    with pytest.raises(Transient):
        harness.run(by_turn(says("x")), host, conversation=harness.conversation)
    again = attrs.evolve(harness.conversation, resume=True)
    result, requests = harness.run(by_turn(says("done")), conversation=again)

    assert (result.text, requests[0].prompt) == ("done", "do it")


async def cancel(call: asyncio.Task[AgentResult], when: asyncio.Event) -> float:
    """Cancel *call* once *when* is set; returns the seconds until it ended."""
    async with asyncio.timeout(20):
        await when.wait()
    start = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    return time.monotonic() - start


async def cancel_during_a_command(harness: Harness, host: FakeAgentHost) -> tuple[float, int]:
    """Cancel a call while its command runs; returns the seconds and the command's process id."""
    running, fifo = asyncio.Event(), harness.home / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    asyncio.get_running_loop().add_reader(reading, running.set)
    with MessagesApi(by_turn(uses("Bash", command=f"echo $$ > {fifo}; exec sleep 300"))) as api:
        task = harness.task(tools=("Bash",), writable=True)
        seconds = await cancel(
            asyncio.create_task(run_claude(task, host, env=harness.environment(api))), running
        )
    asyncio.get_running_loop().remove_reader(reading)
    with os.fdopen(reading) as lines:
        return seconds, int(lines.readline())


def test_cancelling_a_call_during_a_command_leaves_no_process(harness: Harness) -> None:
    host = FakeAgentHost()
    seconds, command = asyncio.run(cancel_during_a_command(harness, host))

    assert seconds < 5
    assert not alive(host.pids[0])
    assert not alive(command)


async def cancel_during_a_request(harness: Harness, host: FakeAgentHost) -> float:
    requested, over, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def answer_late(request: ApiRequest) -> Reply:
        loop.call_soon_threadsafe(requested.set)
        over.wait(30)
        return says("too late")

    with MessagesApi(answer_late) as api:
        call = asyncio.create_task(run_claude(harness.task(), host, env=harness.environment(api)))
        seconds = await cancel(call, requested)
        over.set()
    return seconds


def test_cancelling_a_call_during_a_request_leaves_no_process(harness: Harness) -> None:
    host = FakeAgentHost()

    assert asyncio.run(cancel_during_a_request(harness, host)) < 5
    assert not alive(host.pids[0])


async def cancel_at_the_start(harness: Harness, host: ObservedHost) -> float:
    started = asyncio.Event()
    host.on_start = lambda pid: started.set()
    with MessagesApi(by_turn(says("x"))) as api:
        call = asyncio.create_task(run_claude(harness.task(), host, env=harness.environment(api)))
        return await cancel(call, started)


def test_cancelling_a_call_at_its_start_leaves_no_process(harness: Harness) -> None:
    host = ObservedHost()

    assert asyncio.run(cancel_at_the_start(harness, host)) < 5
    assert not alive(host.pids[0])


async def cancel_twice(harness: Harness, host: ObservedHost) -> None:
    started = asyncio.Event()
    host.on_start = lambda pid: started.set()
    with MessagesApi(by_turn(says("x"))) as api:
        call = asyncio.create_task(run_claude(harness.task(), host, env=harness.environment(api)))
        await started.wait()
        call.cancel()
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


def test_cancelling_a_call_twice_leaves_no_process(harness: Harness) -> None:
    host = ObservedHost()
    asyncio.run(cancel_twice(harness, host))

    assert not alive(host.pids[0])


class Parked(Exception):
    """An exception that ends the step, as the core raises it."""


def park(*_: object) -> Any:
    raise Parked


def ask(use: ToolUse) -> Permission:
    return Ask(reason="sure?")


CHOICE = {
    "question": "Which?",
    "header": "H",
    "multiSelect": False,
    "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}],
}
NOTE = AgentFunction(name="note", description="Note it.", schema={"type": "object", "properties": {}})


@pytest.mark.parametrize(
    ("host", "use"),
    [
        (FakeAgentHost(policy=park), uses("Bash", command="touch made")),
        (FakeAgentHost(policy=ask, confirms=park), uses("Bash", command="touch made")),
        (FakeAgentHost(answers=park), uses("AskUserQuestion", questions=[CHOICE])),
        (FakeAgentHost(replies=park), uses("mcp__gsd__note")),
        (ObservedHost(on_activity=park), uses("Bash", command="true")),
    ],
    ids=["permit", "confirm", "ask", "call", "progress"],
)
def test_an_exception_of_the_host_ends_the_call(harness: Harness, host: FakeAgentHost, use: Blocks) -> None:
    with pytest.raises(Parked):
        harness.run(by_turn(use, says("x")), host, tools=("Bash", "AskUserQuestion"), functions=(NOTE,))
    assert not alive(host.pids[-1])
    assert not (harness.tree / "made").exists()
