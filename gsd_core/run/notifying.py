"""Notify people: send each notification once, record the result, and remind of questions that stay open.

The run does not wait for a notifier, except for a bounded time at its end. What is sent is recorded before
and after: a process that resumes the run sends nothing twice, and a kill in between is recorded as a failure,
because nobody knows whether the service received the notification.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Any, cast

from attrs import define, evolve, field

from gsd_core.errors import ConfigError, JournalError, PluginError
from gsd_core.hookspecs import gsd_links, gsd_notify
from gsd_core.machine.facts import Delivered, NoticeBegun, NoticeSent, QuestionAsked, Recorded
from gsd_core.machine.state import inquiry_key
from gsd_core.model.notice import Delivery, Notice
from gsd_core.model.question import Inquiry
from gsd_core.plugins.call_group import Outcome
from gsd_core.sanitize import clip, safe_text
from gsd_core.settings import NotifySettings

from .notifications import question_notice
from .runtime import Run

SEND_LIMIT = timedelta(seconds=10)
STOPPED_LIMIT = timedelta(seconds=3)
"""How long notices may still take after a human stopped the run and waits for the shell to return."""
NOTIFY_AFTER = timedelta(seconds=1)
"""How long a question has to stay open before people are notified of it.

With ``--yes`` a policy answers most questions within milliseconds; nobody has to act on those.
"""
LONGEST_INTERVAL = timedelta(days=1)
POLL = timedelta(seconds=30)
MAX_REASON = 300
MAX_LINKS = 3


@define(kw_only=True)
class Notifier:
    """Sends the notifications of one run.

    *begun* has the time of each notification that this process or an earlier one of the run began to send,
    by key.
    """

    run: Run
    _begun: dict[str, datetime] = field(factory=dict[str, datetime], init=False)
    _ending: asyncio.Event = field(factory=asyncio.Event, init=False)
    _tasks: set[asyncio.Task[None]] = field(factory=set[asyncio.Task[None]], init=False)

    def start(self) -> None:
        """Continue where earlier processes of the run stopped."""
        unknown: dict[str, str] = {}
        asked: dict[str, Recorded[QuestionAsked]] = {}
        for fact in list(self.run.facts(NoticeBegun, NoticeSent, QuestionAsked)):
            match fact.data:
                case QuestionAsked(inquiry=inquiry):
                    asked[inquiry_key(inquiry)] = cast("Recorded[QuestionAsked]", fact)
                case NoticeBegun(key=key):
                    self._begun.setdefault(key, fact.at)
                    unknown[key] = fact.step
                case NoticeSent(key=key):
                    self._begun.setdefault(key, fact.at)
                    unknown.pop(key, None)
        for key, step in unknown.items():
            self._record_sent(key, step, [Delivered(reason="gsd ended before there was a result")])
        for key, fact in asked.items():
            if (record := self.run.state.inquiries.get(key)) and record.open:
                self.follow(fact)

    @property
    def command(self) -> str:
        """How to call gsd for the project from anywhere: who reads a notification is in no folder."""
        return shlex.join(["gsd", "-C", str(self.run.root)])

    def send(self, notice: Notice) -> None:
        """Send a notice in the background, unless it was sent before or is of a type that nobody wants."""
        self._start(self._send(notice))

    def follow(self, asked: Recorded[QuestionAsked]) -> None:
        """Notify people of the inquiry in the fact *asked* if it stays open, and remind them of it."""
        if "question" in self._settings.events:
            self._start(self._follow(asked))

    async def finish(self, limit: timedelta) -> None:
        """Wait for the notices that are being sent, at most for *limit*; cancel those that take longer."""
        self._ending.set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=limit.total_seconds())
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    @property
    def _settings(self) -> NotifySettings:
        return self.run.request.settings.of(NotifySettings)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # asyncio keeps only weak references to tasks: without the set, one could be collected half-way.
        task = asyncio.get_running_loop().create_task(work, name="gsd:notify")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, asked: Recorded[QuestionAsked]) -> None:
        # In ten steps: if something blocks the event loop for a while, that counts as one of them, and a
        # policy still has the other nine to answer.
        for _ in range(10):
            await self._sleep(NOTIFY_AFTER / 10)
        remind_after = self._settings.remind_after
        for number in count():
            key = _question_key(asked, number)
            if number and (remind_after <= timedelta(0) or not await self._is_due(asked, number)):
                return
            inquiry = self._unanswered(asked)
            if inquiry is None:
                return
            about = inquiry, key, self.run.id, self.run.root.name, self.command
            await self._send(question_notice(*about, reminder=number))

    async def _is_due(self, asked: Recorded[QuestionAsked], number: int) -> bool:
        """Wait for the time of a reminder; return whether it came before the run's end."""
        first = self._settings.remind_after
        interval = min(first * 2 ** min(number - 1, 16), max(first, LONGEST_INTERVAL))
        due = self._begun[_question_key(asked, number - 1)] + interval
        if _question_key(asked, number) in self._begun:
            return True
        loop = asyncio.get_running_loop()
        # Hardly longer than the interval if the clock is set back, but never shorter only because the event
        # loop's clock is a little faster. In short sleeps, because a sleeping machine stops that clock.
        latest = loop.time() + (interval + POLL).total_seconds()
        while self.run.now() < due and loop.time() < latest:
            if self._ending.is_set() or self._unanswered(asked) is None:
                return False
            left = min((due - self.run.now()).total_seconds(), latest - loop.time(), POLL.total_seconds())
            await self._sleep(timedelta(seconds=max(0.0, left)))
        return True

    async def _sleep(self, time: timedelta) -> None:
        """Sleep, but not beyond the run's end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(time.total_seconds()):
                await self._ending.wait()

    def _unanswered(self, asked: Recorded[QuestionAsked]) -> Inquiry | None:
        """Return the inquiry with its open questions; ``None`` if it is answered, withdrawn or replaced."""
        record = self.run.state.inquiries.get(inquiry_key(asked.data.inquiry))
        if record is None or not record.open or record.at != asked.at:
            return None
        left = tuple(one for one in record.inquiry.questions if one.id not in record.answers)
        return evolve(record.inquiry, questions=left)

    async def _send(self, notice: Notice) -> None:
        notifiers = self.run.hooks.plugins_of(gsd_notify)
        if notice.key in self._begun or notice.type not in self._settings.events:
            return
        self._begun[notice.key] = self.run.now()
        if not notifiers:
            return
        # A notice leaves this machine. Its texts come from facts, but also from errors of the core.
        title, body = safe_text(notice.title, multiline=False), safe_text(notice.body)
        notice = evolve(notice, title=title, body=body)
        notice = evolve(notice, links=self._links(notice))
        # The run itself finds out that its journal cannot be written; people should hear of that too.
        with suppress(JournalError):
            begun = self.run.record(NoticeBegun(key=notice.key, type=notice.type), step=notice.step)
            # A reminder counts from what is recorded, as it does in a process that resumes the run.
            self._begun[notice.key] = begun.at
        try:
            outcomes = await self.run.hooks.fan_out(gsd_notify, SEND_LIMIT, notice)
        except asyncio.CancelledError:
            unknown = Delivered(reason="the run ended before there was a result")
            self._record_sent(notice.key, notice.step, [unknown])
            raise
        deliveries = [one for outcome in outcomes for one in _deliveries(outcome)]
        self._record_sent(notice.key, notice.step, deliveries)

    def _links(self, notice: Notice) -> tuple[str, ...]:
        number = count()
        try:
            found = self.run.hooks.collect(gsd_links, lambda _: str(next(number)), notice).items
        except ConfigError:
            # With strict plugins. The failure is reported; it is no reason to send nothing.
            return ()
        texts = dict.fromkeys(safe_text(link, multiline=False) for _, link in found)
        return tuple(link for link in texts if link.startswith(("http://", "https://")))[:MAX_LINKS]

    def _record_sent(self, key: str, step: str, deliveries: Sequence[Delivered]) -> None:
        plugins = dict.fromkeys(one.plugin for one in deliveries if one.plugin)
        failed = tuple(name for name in plugins if not all(d.ok for d in deliveries if d.plugin == name))
        sent = tuple(name for name in plugins if name not in failed)
        fact = NoticeSent(key=key, ok=sent, failed=failed, deliveries=tuple(deliveries))
        with suppress(JournalError):
            self.run.record(fact, step=step)


def _question_key(asked: Recorded[QuestionAsked], number: int) -> str:
    return f"question {asked.run} {asked.seq}" + (f" reminder {number}" if number else "")


def _deliveries(outcome: Outcome[Sequence[Delivery] | None]) -> Iterator[Delivered]:
    """Yield a plugin's deliveries as they are recorded; one that returns ``None`` has one service, itself."""
    found: Sequence[Delivery] = outcome.value or ()
    if error := outcome.error:
        reason = error.cause_text if isinstance(error, PluginError) else str(error)
        found = (Delivery(service=outcome.plugin, ok=False, reason=reason),)
    elif outcome.value is None:
        found = (Delivery(service=outcome.plugin),)
    for delivery in found:
        # The plugin may have put anything into the fields.
        tries: Any = delivery.tries
        yield Delivered(
            service=clip(safe_text(str(delivery.service), multiline=False), MAX_REASON),
            ok=bool(delivery.ok),
            reason=clip(safe_text(str(delivery.reason), multiline=False), MAX_REASON),
            tries=int(tries) if isinstance(tries, int | float) else 1,
            plugin=outcome.plugin,
        )
