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
from gsd_plugins.claude import run_claude
from gsd_plugins.claude.call import CONTINUE
from gsd_plugins.rehearsal.api import ApiRequest, Blocks, MessagesApi, Reply
from tests.claude.workbench import Bench, RecordingHost, alive, by_turn, says, uses


def test_a_conversation_has_the_given_id(bench: Bench) -> None:
    result, _ = bench.run(by_turn(says("x")), conversation=bench.conversation)

    assert result.conversation == bench.conversation.id


def test_complaints_are_sent_to_the_same_conversation(bench: Bench) -> None:
    bench.run(by_turn(says("an answer")), conversation=bench.conversation)
    again = attrs.evolve(bench.conversation, resume=True)
    result, requests = bench.run(by_turn(says("-"), says("better")), conversation=again, prompt="too short")

    assert result.text == "better"
    assert result.conversation == bench.conversation.id
    assert "an answer" in str(requests[0].messages)
    assert requests[0].prompt == "do it"
    assert "too short" in requests[0].last


def test_resuming_a_conversation_that_does_not_exist_starts_it(bench: Bench) -> None:
    again = attrs.evolve(bench.conversation, resume=True)
    result, requests = bench.run(by_turn(says("x")), conversation=again, prompt="the whole prompt")

    assert result.conversation == bench.conversation.id
    assert requests[0].prompt == "the whole prompt"


def test_starting_a_conversation_that_exists_resumes_it(bench: Bench) -> None:
    bench.run(by_turn(says("an answer")), conversation=bench.conversation)
    result, requests = bench.run(by_turn(says("-"), says("more")), conversation=bench.conversation)

    assert result.text == "more"
    assert "an answer" in str(requests[0].messages)


def test_a_resumed_call_counts_only_its_own_usage(bench: Bench) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    script = by_turn(says("a", **usage), says("b", **usage))
    first, _ = bench.run(script, conversation=bench.conversation, model="opus")
    again = attrs.evolve(bench.conversation, resume=True)
    second, _ = bench.run(script, conversation=again, model="opus")

    assert (first.usage.turns, first.usage.basis) == (1, "reported")
    assert (second.usage.turns, second.usage.input_tokens, second.usage.basis) == (1, 1000, "priced")
    assert second.usage.dollars == first.usage.dollars


KILL_ONCE_SAVED = "until grep -qs 'kill -9' $CLAUDE_CONFIG_DIR/projects/*/*.jsonl; do :; done; kill -9 $PPID"


def test_a_killed_cli_is_transient_and_its_conversation_can_be_resumed(bench: Bench) -> None:
    first = uses("Write", file_path=str(bench.tree / "first.txt"), content="1")
    tools = ("Write", "Bash")

    script = by_turn(first, uses("Bash", command=KILL_ONCE_SAVED))
    with pytest.raises(Transient):
        bench.run(script, tools=tools, writable=True, conversation=bench.conversation)
    again = attrs.evolve(bench.conversation, resume=True)
    result, requests = bench.run(lambda request: says("all done"), tools=tools, conversation=again)

    assert (bench.tree / "first.txt").read_text() == "1"
    assert result.text == "all done"
    assert "first.txt" in str(requests[0].messages)
    assert CONTINUE in requests[0].last


def test_a_call_killed_before_anything_was_saved_starts_again(bench: Bench) -> None:
    host = RecordingHost()
    host.on_start = lambda pid: os.kill(pid, signal.SIGKILL)
    with pytest.raises(Transient):
        bench.run(by_turn(says("x")), host, conversation=bench.conversation)
    again = attrs.evolve(bench.conversation, resume=True)
    result, requests = bench.run(by_turn(says("done")), conversation=again)

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


async def cancel_during_a_command(bench: Bench, host: RecordingHost) -> tuple[float, int]:
    """Cancel a call while its command runs; returns the seconds and the command's process id."""
    running, fifo = asyncio.Event(), bench.home / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    asyncio.get_running_loop().add_reader(reading, running.set)
    with MessagesApi(by_turn(uses("Bash", command=f"echo $$ > {fifo}; exec sleep 300"))) as api:
        task = bench.task(tools=("Bash",), writable=True)
        seconds = await cancel(
            asyncio.create_task(run_claude(task, host, env=bench.environment(api))), running
        )
    asyncio.get_running_loop().remove_reader(reading)
    with os.fdopen(reading) as lines:
        return seconds, int(lines.readline())


def test_cancelling_a_call_during_a_command_leaves_no_process(bench: Bench) -> None:
    host = RecordingHost()
    seconds, command = asyncio.run(cancel_during_a_command(bench, host))

    assert seconds < 5
    assert not alive(host.pids[0])
    assert not alive(command)


async def cancel_during_a_request(bench: Bench, host: RecordingHost) -> float:
    requested, over, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def answer_late(request: ApiRequest) -> Reply:
        loop.call_soon_threadsafe(requested.set)
        over.wait(30)
        return says("too late")

    with MessagesApi(answer_late) as api:
        call = asyncio.create_task(run_claude(bench.task(), host, env=bench.environment(api)))
        seconds = await cancel(call, requested)
        over.set()
    return seconds


def test_cancelling_a_call_during_a_request_leaves_no_process(bench: Bench) -> None:
    host = RecordingHost()

    assert asyncio.run(cancel_during_a_request(bench, host)) < 5
    assert not alive(host.pids[0])


async def cancel_at_the_start(bench: Bench, host: RecordingHost) -> float:
    started = asyncio.Event()
    host.on_start = lambda pid: started.set()
    with MessagesApi(by_turn(says("x"))) as api:
        call = asyncio.create_task(run_claude(bench.task(), host, env=bench.environment(api)))
        return await cancel(call, started)


def test_cancelling_a_call_at_its_start_leaves_no_process(bench: Bench) -> None:
    host = RecordingHost()

    assert asyncio.run(cancel_at_the_start(bench, host)) < 5
    assert not alive(host.pids[0])


async def cancel_twice(bench: Bench, host: RecordingHost) -> None:
    started = asyncio.Event()
    host.on_start = lambda pid: started.set()
    with MessagesApi(by_turn(says("x"))) as api:
        call = asyncio.create_task(run_claude(bench.task(), host, env=bench.environment(api)))
        await started.wait()
        call.cancel()
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


def test_cancelling_a_call_twice_leaves_no_process(bench: Bench) -> None:
    host = RecordingHost()
    asyncio.run(cancel_twice(bench, host))

    assert not alive(host.pids[0])


class Parked(Exception):
    """An exception with which the core ends a step."""


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
        (RecordingHost(policy=park), uses("Bash", command="touch made")),
        (RecordingHost(policy=ask, human=park), uses("Bash", command="touch made")),
        (RecordingHost(reply=park), uses("AskUserQuestion", questions=[CHOICE])),
        (RecordingHost(function=park), uses("mcp__gsd__note")),
        (RecordingHost(seen=park), uses("Bash", command="true")),
    ],
    ids=["permit", "confirm", "ask", "call", "progress"],
)
def test_an_exception_of_the_host_ends_the_call(bench: Bench, host: RecordingHost, use: Blocks) -> None:
    with pytest.raises(Parked):
        bench.run(by_turn(use, says("x")), host, tools=("Bash", "AskUserQuestion"), functions=(NOTE,))
    assert not alive(host.pids[-1])
    assert not (bench.tree / "made").exists()
