"""The thread of a run, kept as it should be: what is to be shown is stated here, and one task sends it.

So Slack may be slow, refuse for a while or be away: nothing waits for it, only the newest version of a
message is sent, and a failure is tried again. A message that may have arrived although the call failed is
looked up before it is sent again, by the metadata that each message has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, cast

import attrs
from slack_sdk.errors import SlackApiError

from gsd_core import redact_data

from .messages import MAX_SECTION, Message, clipped, escaped, plain
from .storage import Storage, Thread

ROOT = ""
"""The key of the thread's first message; the others have the id of a question, or the key of a reminder."""
PACE = 1.1
"""Seconds after a new message: Slack allows one per second in a channel."""
PACE_OF_CHANGES = 0.3
"""Seconds after a change. Slack allows about 50 in a minute, and says when to wait if there are more."""
FIRST_PAUSE = 1.0
"""Seconds to wait after a failure; they double with each further one, up to a limit."""
LONGEST_PAUSE = 60.0
MAX_LINES = 40
MAX_PAGES = 5

log = logging.getLogger(__name__)
# The libraries log each failed attempt with its traceback, and at the level DEBUG what is sent.
library_log = logging.getLogger(f"{__name__}.library")
library_log.setLevel(logging.CRITICAL)


@attrs.define
class _Entry:
    """A message: how it should be, how it is now, and its timestamp once it exists."""

    wanted: Message | None = None
    shown: Message | None = None
    ts: str = ""

    @property
    def is_due(self) -> bool:
        """Whether the message is not as it should be."""
        return self.wanted is not None and self.wanted != self.shown


@attrs.define(kw_only=True)
class RunThread:
    """The messages of *run* in *channel*; *problem* says why Slack does not take them at the moment."""

    client: Any  # an AsyncWebClient, whose methods have incomplete types
    channel: str
    run: str
    storage: Storage
    problem: str = ""
    ts: str = ""
    _entries: dict[str, _Entry] = attrs.field(factory=dict[str, _Entry], init=False)
    _lines: list[str] = attrs.field(factory=list[str], init=False)
    _left_out: int = attrs.field(default=0, init=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _idle: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _uncertain: bool = attrs.field(default=True, init=False)
    _bot: str = attrs.field(default="", init=False)
    _sending: _Entry | None = attrs.field(default=None, init=False)

    def show(self, key: str, message: Message) -> None:
        """Show *message* under *key*, in place of the one that has been shown there."""
        entry = self._entries.setdefault(key, _Entry())
        if entry.wanted != message:
            entry.wanted = message
            self._wake()

    def add_line(self, text: str) -> None:
        """Add a line of progress. Lines are sent together, and the oldest are left out if there are many."""
        self._lines.append(text)
        self._trim()
        self._wake()

    def is_shown(self, key: str) -> bool:
        """Whether there is or will be a message under *key*."""
        return key in self._entries

    async def settled(self) -> None:
        """Wait until everything is shown."""
        await self._idle.wait()

    async def send_forever(self) -> None:
        """Send what is to be shown, and try again what fails."""
        pause = FIRST_PAUSE
        while True:
            try:
                done = await self._send_one()
            except Exception as exc:
                wait = self._failed(exc, pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                await asyncio.sleep(wait)
                continue
            if self.problem:
                log.info("slack: messages are accepted again")
            self.problem, pause = "", FIRST_PAUSE
            if done:
                await asyncio.sleep(PACE if done == "posted" else PACE_OF_CHANGES)
                continue
            self._idle.set()
            self._changed.clear()
            await self._changed.wait()

    def _trim(self) -> None:
        too_many = max(0, len(self._lines) - MAX_LINES)
        self._left_out += too_many
        del self._lines[:too_many]

    def _wake(self) -> None:
        self._idle.clear()
        self._changed.set()

    async def _send_one(self) -> Literal["posted", "changed", ""]:
        """Send one message, a question first and the status last; return what was done, if anything."""
        due = next((entry for key, entry in self._entries.items() if key and entry.is_due), None)
        root = self._entries[ROOT]
        if not (due or self._lines or root.is_due):
            return ""
        self._sending = None
        if self._uncertain:
            await self._find_messages()
            self._uncertain = False
        if not self.ts:
            await self._post_root()
            return "posted"
        if due is None and self._lines:
            await self._send_lines()
            return "posted"
        return await self._send(due or root)

    async def _post_root(self) -> None:
        self._sending = entry = self._entries[ROOT]
        wanted = entry.wanted
        assert wanted is not None, "the first message is set before the task starts"
        entry.ts = self.ts = await self._post(wanted.arguments())
        entry.shown = wanted
        self._store()

    async def _send(self, entry: _Entry) -> Literal["posted", "changed"]:
        self._sending, wanted, is_new = entry, entry.wanted, not entry.ts
        assert wanted is not None, "only an entry with a message is due"
        if not entry.ts:
            entry.ts = await self._post(wanted.arguments(), thread=self.ts)
        else:
            changed = {"channel": self.channel, "ts": entry.ts, **_safe(wanted.arguments())}
            await self.client.api_call("chat.update", json=changed)
        entry.shown = wanted
        return "posted" if is_new else "changed"

    async def _send_lines(self) -> None:
        lines, left_out = self._lines, self._left_out
        self._lines, self._left_out = [], 0
        first = [f"({left_out} earlier lines are left out)"] if left_out else []
        text = clipped("\n".join([*first, *lines]), 2 * MAX_SECTION)
        parts = [text[at : at + MAX_SECTION] for at in range(0, len(text), MAX_SECTION)]
        blocks = [plain(part) for part in parts]
        try:
            await self._post({"text": escaped(clipped(text, 300)), "blocks": blocks}, thread=self.ts)
        except BaseException:
            self._lines, self._left_out = [*lines, *self._lines], self._left_out + left_out
            self._trim()
            raise

    async def _post(self, arguments: Mapping[str, Any], thread: str = "") -> str:
        # A call that fails half-way may have posted the message: then it is looked up first.
        self._uncertain = True
        place = {"channel": self.channel, **({"thread_ts": thread} if thread else {})}
        plainly = {"unfurl_links": False, "unfurl_media": False}
        try:
            response = await self.client.api_call(
                "chat.postMessage", json={**place, **plainly, **_safe(arguments)}
            )
        except SlackApiError as error:
            self._uncertain = error_code(error) in ("", "fatal_error", "internal_error", "request_timeout")
            raise
        self._uncertain = False
        return str(response["ts"])

    async def _find_messages(self) -> None:
        """Find the run's messages that exist already, of an earlier process or of a call that failed."""
        if not self._bot:
            self._bot = str((await self.client.auth_test())["bot_id"])
        if not self.ts:
            known = await asyncio.to_thread(self.storage.read_thread, self.run)
            self.ts = known.ts if known and known.channel == self.channel else await self._find_root()
            if not self.ts:
                return
            self._store()
        self._entries.setdefault(ROOT, _Entry()).ts = self.ts
        async for message in self._pages("conversations.replies", ts=self.ts):
            about = self._metadata(message, "gsd_question") or self._metadata(message, "gsd_reminder")
            if about.get("run") == self.run and about.get("question"):
                self._entries.setdefault(str(about["question"]), _Entry()).ts = str(message["ts"])

    async def _find_root(self) -> str:
        """Return the timestamp of the run's first message; empty if the channel has none.

        A run's id contains its start (``r-20260103T040506-1a2b3c``): nothing older has to be read.
        """
        oldest = 0.0
        with suppress(ValueError, IndexError):
            started = datetime.strptime(self.run.split("-")[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
            oldest = started.timestamp() - 60
        async for message in self._pages("conversations.history", oldest=f"{oldest:.6f}"):
            if self._metadata(message, "gsd_run").get("run") == self.run:
                return str(message["ts"])
        return ""

    async def _pages(self, method: str, **arguments: str) -> AsyncGenerator[Mapping[str, Any]]:
        """Yield the messages of a channel or a thread, at most a thousand."""
        cursor = ""
        for _ in range(MAX_PAGES):
            wanted = {"channel": self.channel, "include_all_metadata": "true", "limit": "200", **arguments}
            try:
                page = await self.client.api_call(method, params={**wanted, "cursor": cursor})
            except SlackApiError as error:
                # Without the permission to read the channel: a message sent twice is better than none.
                if error_code(error) == "missing_scope":
                    return
                raise
            for message in page.get("messages") or ():
                yield message
            about: Mapping[str, Any] = page.get("response_metadata") or {}
            cursor = str(about.get("next_cursor") or "")
            if not cursor:
                return

    def _metadata(self, message: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
        """Return the metadata of one of our own messages; another app could claim to be us in its own."""
        metadata: Mapping[str, Any] = message.get("metadata") or {}
        if message.get("bot_id") != self._bot or metadata.get("event_type") != kind:
            return {}
        payload: Mapping[str, Any] = metadata.get("event_payload") or {}
        return payload

    def _store(self) -> None:
        try:
            self.storage.write_thread(self.run, Thread(channel=self.channel, ts=self.ts))
        except OSError as error:
            # The thread can be found in the channel as well.
            log.warning("slack: the thread of the run cannot be stored: %s", error)

    def _failed(self, exc: Exception, pause: float) -> float:
        """Note why a message was not sent; return how many seconds to wait before the next attempt."""
        code, entry = error_code(exc), self._sending
        if code == "ratelimited":
            return retry_after(exc)
        is_root = entry is not None and entry is self._entries.get(ROOT)
        if code == "thread_not_found" or (code == "message_not_found" and is_root):
            self._start_over()
            return PACE
        if code in ("message_not_found", "cant_update_message", "edit_window_closed") and entry:
            # Somebody deleted it, or the workspace forbids changes. An open question is posted anew.
            entry.ts, entry.shown = "", None
            if is_root:
                entry.shown, entry.ts = entry.wanted, self.ts
            elif entry.wanted and not any(block["type"] == "actions" for block in entry.wanted.blocks):
                entry.shown = entry.wanted
            return PACE
        if code.startswith(("invalid_blocks", "msg_", "no_text")) and entry and entry.wanted:
            if not entry.wanted.blocks:
                entry.shown = entry.wanted
            entry.wanted = attrs.evolve(entry.wanted, blocks=())
            log.warning("slack: a message was refused (%s) and is sent as plain text", code)
            return PACE
        problem = code or f"Slack cannot be reached ({type(exc).__name__})"
        if problem != self.problem:
            log.warning("slack: messages cannot be sent: %s; trying again until they can", problem)
        self.problem = problem
        return pause

    def _start_over(self) -> None:
        """Begin a new thread, because somebody deleted the first message."""
        self.ts, self._uncertain = "", False
        for entry in self._entries.values():
            entry.ts, entry.shown = "", None


def error_code(exc: BaseException) -> str:
    """Return Slack's name of an error, such as ``channel_not_found``; empty if Slack did not answer."""
    if not isinstance(exc, SlackApiError):
        return ""
    error: Any = exc
    if getattr(error.response, "status_code", None) == 429:
        return "ratelimited"
    data: Any = getattr(error.response, "data", None)
    found = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return str(found.get("error") or "")


def retry_after(exc: BaseException) -> float:
    """Return how many seconds Slack wants us to wait."""
    headers: Any = getattr(getattr(exc, "response", None), "headers", None) or {}
    found = {str(key).lower(): value for key, value in dict(headers).items()}
    value = str(found.get("retry-after", ""))
    return max(PACE, float(value)) if value.isdecimal() else 30.0


def _safe(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return *arguments* without secrets: whatever is in them leaves this machine here."""
    ours = ("type", "block_id", "action_id", "event_type", "run", "question")
    safe: dict[str, Any] = redact_data(dict(arguments), verbatim=ours)
    return safe
