"""What has happened, as a list that any number of readers follow, each from its own position; and how it is
read: to the end, even if whoever asked for it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import attrs

from gsd_core import Event, Session

T = TypeVar("T")


@attrs.define
class ShieldedTasks:
    """Runs coroutines to their end, even if their callers are cancelled.

    A thread cannot be cancelled: what it reads would be lost, and be closed below it.
    """

    _tasks: set[asyncio.Task[Any]] = attrs.field(factory=set[asyncio.Task[Any]], init=False)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of *work*."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def wait(self) -> None:
        """Wait until nothing runs any more."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Nobody may have waited for it to the end; then asyncio would log that nobody has seen the error.
            task.exception()


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel *task* and wait for its end; raise what it has failed with, if it has."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def cancel_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel *tasks* and wait for their ends, whatever they end with."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_one_ends(*works: Coroutine[Any, Any, Any]) -> Sequence[asyncio.Task[Any]]:
    """Run *works* until one of them ends, cancel the others, and return the tasks, which all have ended."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_tasks(*tasks)
    return tasks


@attrs.frozen(kw_only=True)
class Change:
    """Something that happened: to a session (*event* is ``None``), or in its project's run.

    *number* counts up from 1 in this process, without gaps. *session* is the state of the session then, and
    *before* that of the change before, if any. *output* is the cursor after what the session has printed.
    """

    number: int
    session: Session
    before: Session | None = None
    event: Event | None = None
    output: int = 0


@attrs.define(kw_only=True)
class Changes:
    """The last changes, at least *kept* of them if there were as many. Only one event loop may use it."""

    kept: int
    _entries: list[Change] = attrs.field(factory=list[Change], init=False)
    _first: int = attrs.field(default=1, init=False)
    _last: dict[str, Session] = attrs.field(factory=dict[str, Session], init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    @property
    def number(self) -> int:
        """The number of the last change; 0 before the first."""
        return self._first + len(self._entries) - 1

    def publish(self, found: Iterable[tuple[Session, Event | None, int]]) -> None:
        """Add what was *found*, sessions with an event and the end of their output, and wake all readers."""
        before = self.number
        for session, event, output in found:
            last = self._last.get(session.id)
            self._last[session.id] = session
            number = self.number + 1
            change = Change(number=number, session=session, before=last, event=event, output=output)
            self._entries.append(change)
        if self.number == before:
            return
        # Not one by one: each removal moves all the others.
        if len(self._entries) > self.kept + self.kept // 4:
            over = len(self._entries) - self.kept
            del self._entries[:over]
            self._first += over
        wake, self._wake = self._wake, asyncio.Event()
        wake.set()

    def after(self, number: int) -> tuple[Sequence[Change], bool]:
        """Return the changes after *number*, and whether some before them are not kept any more.

        A number from the future is one of another process: everything kept is returned, as incomplete.
        """
        lost = number > self.number or number + 1 < self._first
        return self._entries[0 if lost else number + 1 - self._first :], lost

    async def wait(self, after: int, seconds: float) -> int:
        """Wait at most *seconds* for a change after number *after*, and return the last number."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.number <= after:
                    await self._wake.wait()
        return self.number


def note_questions(open_ones: dict[str, None], event: Event) -> None:
    """Bring *open_ones*, the ids of a run's open questions, up to date with *event*."""
    match event.name:
        case "question.asked":
            open_ones.update((str(one["id"]), None) for one in event.data["inquiry"]["questions"])
        case "question.answered":
            open_ones.pop(str(event.data["question"]), None)
        case "question.withdrawn":
            for question in event.data["questions"]:
                open_ones.pop(str(question), None)
        case _:
            pass
