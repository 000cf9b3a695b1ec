"""What readers of changes and output get."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from gsd_core import Event, Session
from gsd_plugins.sessions.changes import Changes
from gsd_plugins.web.feed import MAX_FRAME, Feed, event_json
from gsd_plugins.web.stream import Connection
from gsd_plugins.web.text import clean, printed_text
from tests.web.asgi import Client, Response, ended_session, serving
from tests.web.contract import mistakes

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLIPBOARD = b"before\x1b]52;c;cm0gLXJmIC8=\x07after\xe2\x80\xaetxt.exe\n"
"""Output of an agent that writes to the clipboard, and turns the direction of the text around."""


@attrs.define
class Published:
    """A source of changes that a test publishes itself."""

    changes: Changes = attrs.field(factory=lambda: Changes(kept=5000))

    def sessions(self) -> Sequence[Session]:
        """Return no session."""
        return ()

    def publish(self, count: int) -> None:
        """Add *count* events."""
        about: dict[str, Any] = {"id": "s1", "project": Path("/p"), "command": ("run",), "state": "running"}
        session = Session(**about, created=NOW, updated=NOW)
        for _ in range(count):
            event = Event(
                seq=self.changes.number + 1, name="agent.activity", at=NOW, run="r", data={"text": "x"}
            )
            self.changes.publish([(session, event, 0)])


def published(count: int) -> Any:
    """Return a source with *count* changes."""
    source = Published()
    source.publish(count)
    return source


def test_a_frame_has_at_most_256_changes_and_no_number_is_missing() -> None:
    source = published(1000)
    feed = Feed(source=source)
    feed.take()

    position, numbers, sizes = 0, list[int](), list[int]()
    while (piece := feed.after(position)).entries:
        frame = json.loads(feed.frame(piece, None))
        numbers += [change["number"] for change in frame["frame"]]
        sizes.append(len(frame["frame"]))
        position = frame["number"]

    assert numbers == list(range(1, 1001))
    assert max(sizes) == MAX_FRAME


@pytest.mark.parametrize("position", [0, 100, 5000])
def test_a_reader_that_is_too_far_behind_or_ahead_is_resynchronized(position: int) -> None:
    source = published(1000)
    feed = Feed(source=source, kept=500, max_lag=300)
    feed.take()

    piece = feed.after(position)

    assert (piece.lost, piece.number, list(piece.entries)) == (True, 1000, [])
    assert feed.after(feed.everything_from()).entries[0].number == 701


@pytest.mark.slow
def test_a_slow_reader_holds_up_nobody_and_the_memory_for_it_is_bounded() -> None:
    async def scenario() -> tuple[list[Any], int]:
        source = published(0)
        async with serving(source=source) as client:
            stuck, subscribed, resynchronized = asyncio.Event(), asyncio.Event(), asyncio.Event()
            got: list[Any] = []
            asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
            asked.put_nowait({"type": "websocket.connect"})
            for text in ('{"subscribe": {"session": "*"}}', '{"ping": 1}'):
                asked.put_nowait({"type": "websocket.receive", "text": text})

            async def send(message: Any) -> None:
                if message["type"] == "websocket.send":
                    got.append(json.loads(message["text"]))
                    if "pong" in got[-1]:
                        subscribed.set()
                    if "resync" in got[-1]:
                        resynchronized.set()
                    if "frame" in got[-1]:
                        await stuck.wait()

            connection = Connection(site=client.site, scope="read", receive=asked.get, send=send)
            task = asyncio.create_task(connection.run())
            await subscribed.wait()
            for _ in range(30):
                source.publish(1000)
                client.site.feed.take()
                await asyncio.sleep(0)
            kept = len(client.site.feed)
            stuck.set()
            await resynchronized.wait()
            asked.put_nowait({"type": "websocket.disconnect", "code": 1000})
            await task
            return got, kept

    got, kept = asyncio.run(scenario())

    frames = [message for message in got if "frame" in message]
    assert len(frames) == 1
    assert got[-1] == {"resync": True, "number": 30_000}
    assert kept <= 20_000


async def talk(client: Client, scope: Any, *orders: object) -> Sequence[Any]:
    """Send *orders* over one connection, and return what was answered to them."""
    asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    asked.put_nowait({"type": "websocket.connect"})
    got: list[Any] = []
    answered = asyncio.Event()

    async def send(message: Any) -> None:
        got.append(json.loads(message["text"]) if "text" in message else message)
        if message["type"] == "websocket.close" or "pong" in message.get("text", ""):
            answered.set()

    for order in [*orders, {"ping": "end"}]:
        text = order if isinstance(order, str) else json.dumps(order)
        asked.put_nowait({"type": "websocket.receive", "text": text})
    task = asyncio.create_task(Connection(site=client.site, scope=scope, receive=asked.get, send=send).run())
    async with asyncio.timeout(20):
        await answered.wait()
        asked.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await task
    return got[2:]


def test_who_may_only_watch_types_into_no_terminal(tmp_path: Path) -> None:
    session = ended_session(tmp_path / "p")
    orders = (
        {"input": {"session": session, "data": "eA=="}},
        {"resize": {"session": session, "columns": 80, "rows": 24}},
    )

    async def scenario() -> Sequence[Any]:
        async with serving() as client:
            return await talk(client, "read", *orders)

    assert [one["error"]["code"] for one in asyncio.run(scenario())[:-1]] == ["forbidden", "forbidden"]


@pytest.mark.parametrize(
    "order",
    [
        {"unknown": {}},
        {"subscribe": "s1"},
        {"subscribe": {"session": "s99"}},
        {"subscribe": {"session": "*", "after": -1}},
        {"subscribe": {"session": "*", "after": "1"}},
        {"terminal": {"session": "*"}},
        {"terminal": {"session": "s1", "cursor": 1e99}},
        {"input": {"session": "s1", "data": "not base64!"}},
        {"input": {"session": "s1", "data": "eA=="}},
        {"resize": {"session": "s1", "columns": 0, "rows": 24}},
    ],
)
def test_a_message_that_cannot_be_obeyed_is_answered_and_the_connection_lives(
    order: object, tmp_path: Path
) -> None:
    ended_session(tmp_path / "p")

    async def scenario() -> Sequence[Any]:
        async with serving() as client:
            return await talk(client, "control", order)

    error, pong = asyncio.run(scenario())
    assert error["error"]["code"] in ("invalid", "not_found", "conflict")
    assert pong == {"pong": "end"}


def test_the_document_describes_the_messages_that_are_understood(tmp_path: Path) -> None:
    session = ended_session(tmp_path / "p")
    orders = (
        {"subscribe": {"session": "*", "after": None, "epoch": "other", "output": False}},
        {"subscribe": {"session": session, "output": True, "cursor": 0}},
        {"unsubscribe": {"session": session}},
        {"terminal": {"session": session, "cursor": 0}},
        {"terminal": {"session": session, "close": True}},
        {"input": {"session": session, "data": "eA=="}},
        {"resize": {"session": session, "columns": 80, "rows": 24}},
    )

    async def scenario() -> Sequence[Any]:
        async with serving() as client:
            return await talk(client, "control", *orders)

    got = asyncio.run(scenario())
    assert [found for order in orders for found in mistakes("ClientMessage", order)] == []
    assert [found for message in got for found in mistakes("ServerMessage", message)] == []
    # The session has ended, so it has no terminal; no message is unknown.
    assert {one["error"]["code"] for one in got if "error" in one} == {"conflict"}
    assert mistakes("ClientMessage", {"unknown": {}}) != []


@pytest.mark.parametrize(
    ("text", "code"), [("nonsense", 1007), ("[]", 1007), ("[" * 60_000, 1007), ("1" * 70_000, 1009)]
)
def test_nonsense_closes_the_connection(text: str, code: int) -> None:
    async def scenario() -> Sequence[Any]:
        async with serving() as client:
            return await talk(client, "control", text)

    assert asyncio.run(scenario())[0] == {"type": "websocket.close", "code": code}


def test_output_for_the_page_has_no_escape_sequences(tmp_path: Path) -> None:
    session = ended_session(tmp_path / "p", CLIPBOARD)

    async def scenario() -> Any:
        async with serving() as client:
            return (await client.get(f"/api/v1/sessions/{session}/output")).data

    page = asyncio.run(scenario())
    assert page["text"] == "beforeaftertxt.exe\n"
    assert page["end"] == len(CLIPBOARD)


@pytest.mark.parametrize("cut", range(len(CLIPBOARD)))
def test_a_piece_of_output_never_ends_within_a_sequence(cut: int) -> None:
    first, used = printed_text(CLIPBOARD[:cut], is_last=False)
    rest, _ = printed_text(CLIPBOARD[used:], is_last=True)

    assert first + rest == "beforeaftertxt.exe\n"


def test_what_an_agent_does_is_said_in_the_words_of_the_terminal() -> None:
    data = {"kind": "tool", "tool": "mcp__gsd__run_command", "text": "pytest -q"}
    event = Event(seq=1, at=NOW, run="r", step="1/plan", name="agent.activity", data=data)

    assert event_json(event)["data"] == {**data, "words": "runs pytest -q"}


def test_a_secret_and_a_control_character_in_data_are_not_sent() -> None:
    found = clean({"a\x1b[2Jb": ["\x1b]0;title\x07x", 1, None, {"k": "\u202ey"}]})

    assert found == {"ab": ["x", 1, None, {"k": "y"}]}


def test_the_whole_output_is_searched_and_no_secret_is_found_by_guessing(tmp_path: Path) -> None:
    secret = "ghp_" + "a1" * 18
    lines = [f"line {number}" for number in range(3000)]
    lines[5] = "\x1b[1mA nee\x1b[0mdle\x1b]0;title\x07"
    lines[2000] = f"NEEDLE token={secret}"
    output = "\r\n".join(lines).encode()
    session = ended_session(tmp_path / "p", output)
    base = f"/api/v1/sessions/{session}/output/search"

    async def scenario() -> list[Response]:
        async with serving() as client:
            paths = ["?text=needle", f"?text={secret[:12]}", f"?text=needle&end={output.index(b'NEEDLE')}"]
            return [await client.get(base + path) for path in (*paths, "?text=", "?text=" + "x" * 201)]

    everything, guessed, earlier, *refused = asyncio.run(scenario())
    assert everything.data == {"lines": ["A needle", "NEEDLE token=[redacted]"], "total": 2}
    assert guessed.data["total"] == 0
    assert earlier.data["lines"] == ["A needle"]
    assert [one.status for one in refused] == [400, 400]
